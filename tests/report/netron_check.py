# SPDX-License-Identifier: Apache-2.0
"""Opens dumps that `millstream compile` writes in Netron, in headless Chromium.

netron_check.py --cli MILLSTREAM [--shots FOLDER]
Every node must be there under its type, and a node that is chosen must show its stream. Exit status 77 where there is no
browser or no Netron (.venv has it).
"""
import argparse
import glob
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from browser import Browser, Checks, available

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

TWO_STREAMS = """graph fork
  input x : f32[4]
  a = Relu(x) @engine("AIcoreEngine")
  side = Abs(a) @engine("AIcoreEngine") @user_label("side stream")
  main = Neg(a) @engine("AIcoreEngine")
  out = Add(side, main) @engine("AIcoreEngine")
  output out
"""
SUBGRAPHS = """graph branches
  input x : f32[4]
  input c : bool[]
  r = If(c) {then_branch=body(yes), else_branch=body(no)} : f32[4]
  output r
body yes
  outer x : f32[4]
  p = Relu(x) : f32[4]
  output p
body no
  outer x : f32[4]
  q = Neg(x) : f32[4]
  output q
"""
# Name, text, options of compile, and the types that Netron must show.
MODELS = [
    ("fork", TWO_STREAMS, [], ["ge:Data", "ge:Relu", "ge:Abs", "ge:Neg", "ge:Add", "ge:Send", "ge:Recv"]),
    ("branches", SUBGRAPHS, ["--strategy", "ge"], ["ge:Data", "ge:If", "subgraph"]),
]

checks = Checks()
check = checks.check


def dumps(cli, folder):
    """Name, file and wanted types of each dump of phase Build."""
    for name, text, options, types in MODELS:
        with open(os.path.join(folder, name + ".mst"), "w", encoding="utf-8") as f:
            f.write(text)
        subprocess.run([cli, "compile", name + ".mst", "--target", "npu", *options, "--dump-graph", name], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        yield name, glob.glob(os.path.join(folder, name, "ge_onnx_*_Build.pbtxt"))[0], types


class Netron:
    """Netron's own server with one file."""

    def __init__(self, program, path):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.process = subprocess.Popen([program, path, "--host", "127.0.0.1", "--port", str(self.port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("netron does not answer")

    def __enter__(self):
        return f"http://127.0.0.1:{self.port}/"

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)


def wait_for(browser, script, seconds=60):
    """What the script gives once that is something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = browser.js(script)
        if got:
            return got
        time.sleep(0.2)
    return None


SHOWN = """
const message = document.getElementById('message-text');
if (document.body.className.includes('alert') && message.textContent) return {error: message.textContent};
const nodes = [...document.querySelectorAll('.node-item-type')].map((n) => n.querySelector('text').textContent);
return nodes.length === 0 ? null : {nodes, edges: document.querySelectorAll('.edge-path').length};
"""


FORGET_AGE = "document.addEventListener('readystatechange', () => document.querySelector('meta[name=date]')?.remove());"


ATTRIBUTES = """
const names = [...document.querySelectorAll('#sidebar-content .sidebar-item-name input')].map((i) => i.value);
return names.length === 0 ? null : names;
"""


def attributes_of(browser, element):
    """Clicks on the middle of the element that the script gives, until the page takes it: the graph moves at first."""
    for _ in range(20):
        x, y = browser.js(f"const r = ({element}).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2];")
        for kind in ("mousePressed", "mouseReleased"):
            browser.cdp("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        names = wait_for(browser, ATTRIBUTES, 3)
        if names:
            return names
    return None


def look_at(program, name, path, types, shots):
    with open(path, encoding="utf-8") as f:
        written = f.read().count("op_type: ")
    with Netron(program, path) as address, Browser(1280, 900, False) as browser:
        # Else questions come first: about cookies, and after half a year about a newer version.
        browser.cdp("Network.setCookie", name="consent", value="1", url=address)
        browser.cdp("Page.addScriptToEvaluateOnNewDocument", source=FORGET_AGE)
        browser.open(address)
        shown = wait_for(browser, SHOWN) or {}
        check(f"{name} opens", "nodes" in shown, shown.get("error", "nothing is shown"))
        if "nodes" in shown:
            for wanted in types:
                check(f"{name} shows {wanted}", wanted in shown["nodes"], shown["nodes"])
            check(f"{name} has every node of the file", len(shown["nodes"]) <= written, f"{len(shown['nodes'])} of {written}")
            check(f"{name} has edges", shown["edges"] > 0, shown)
            aside = attributes_of(browser, f"[...document.querySelectorAll('.node-item-type')].find((n) => n.querySelector('text').textContent === '{types[1]}')")
            check(f"{name} shows the stream of {types[1]}", "stream_id" in (aside or []), aside)
        if shots:
            os.makedirs(shots, exist_ok=True)
            browser.screenshot(os.path.join(shots, f"netron_{name}.png"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cli", required=True)
    parser.add_argument("--shots")
    options = parser.parse_args()
    missing = available()
    program = shutil.which("netron", path=os.path.join(ROOT, ".venv", "bin") + os.pathsep + os.environ.get("PATH", ""))
    if missing is None and program is None:
        missing = "netron is not installed (tools/setup installs it into .venv)"
    if missing is not None:
        print(f"netron: skipped: {missing}")
        return 77
    cli = os.path.abspath(options.cli)
    with tempfile.TemporaryDirectory(prefix="millstream_netron_") as folder:
        for name, path, types in dumps(cli, folder):
            look_at(program, name, path, types, options.shots)
    print(f"netron: {checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
