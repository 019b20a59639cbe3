# SPDX-License-Identifier: Apache-2.0
"""Drives headless Chromium through chromedriver, with nothing but Python's own library."""
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request


def available():
    """None where a browser can be driven, else why not."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"{program} is not installed (tools/setup --browser installs it)"
    return None


class Checks:
    """Counts what was as wanted, and says what was not."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, what, ok, detail=""):
        self.passed, self.failed = self.passed + bool(ok), self.failed + (not ok)
        if not ok:
            print(f"FAILED {what}: {detail}", flush=True)


class Browser:
    def __init__(self, width, height, dark):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.home = tempfile.mkdtemp(prefix="millstream_browser_")
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.root = f"http://127.0.0.1:{port}"
        self.session = None
        options = {
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={self.home}",
                     "--hide-scrollbars", "--force-device-scale-factor=1", "--no-first-run"],
            "perfLoggingPrefs": {"enableNetwork": True},
        }
        capabilities = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        try:
            self._wait()
            answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
            self.session = answer["sessionId"]
            # The window of a headless browser is no narrower than 500 pixels: the emulated device is.
            self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
            self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        except BaseException:
            self.close()
            raise

    def _wait(self):
        for _ in range(600):
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise RuntimeError("chromedriver does not answer")

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.root + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def _in(self, method, path, body=None):
        return self._call(method, f"/session/{self.session}{path}", body)

    def cdp(self, command, **params):
        return self._in("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def open(self, url):
        self._in("POST", "/url", {"url": url})

    def js(self, script, *arguments):
        return self._in("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def keys(self, text):
        """To what has the focus. WebDriver's codes stand for keys without a character."""
        actions = [{"type": t, "value": c} for c in text for t in ("keyDown", "keyUp")]
        self._in("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def log(self, kind):
        return self._in("POST", "/se/log", {"type": kind})

    def requests(self):
        """Addresses asked for since the last call."""
        messages = [json.loads(row["message"])["message"] for row in self.log("performance")]
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]

    def screenshot(self, path, full=False):
        import base64

        clip = {}
        if full:
            size = self.cdp("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}, "captureBeyondViewport": True}
        with open(path, "wb") as out:
            out.write(base64.b64decode(self.cdp("Page.captureScreenshot", format="png", **clip)["data"]))

    def close(self):
        if self.session is not None:
            try:
                self._in("DELETE", "")
            except (OSError, RuntimeError):
                pass
        self.driver.terminate()
        self.driver.wait(30)
        shutil.rmtree(self.home, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
