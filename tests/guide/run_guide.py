# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of a guide and compares what they print with what the guide says.

run_guide.py GUIDE.md --build FOLDER --work FOLDER [--rewrite]

In blocks marked ```console a line "$ COMMAND" is a command, one that ends in a backslash goes on in the next, and what follows
is its output, errors included. All run in one shell that starts in the root of the repository, with BUILD and WORK set.
In their output the work folder is written /tmp/guide. --rewrite puts what was printed into the guide.
"""
import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHOWN_FOLDER = "/tmp/guide"
MARK = "=== end of command ==="


def parts(text):
    """The guide as a list of texts and commands: (None, text) or (lines of the command, its output)."""
    out, in_console, plain = [], False, []
    lines = text.splitlines(keepends=True)
    i = 0
    while i < len(lines):
        line = lines[i]
        i += 1
        if in_console and line.startswith("$ "):
            command = [line]
            while command[-1].endswith("\\\n"):
                command.append(lines[i])
                i += 1
            output = []
            while not lines[i].startswith(("$ ", "```")):
                output.append(lines[i])
                i += 1
            out += [(None, "".join(plain)), ("".join(command), "".join(output))]
            plain = []
            continue
        if line.startswith("```"):
            in_console = line.strip() == "```console"
        plain.append(line)
    return out + [(None, "".join(plain))]


def run(commands, build, work):
    """What each command prints."""
    script = "".join(f"{{ {c[2:].rstrip()}\n}} 2>&1 </dev/null\nprintf '%s\\n' '{MARK}'\n" for c in commands)
    unset = ("MILLSTREAM_PASS_PATH", "ASCEND_OPP_PATH", "ASCEND_PATH", "DUMP_GE_GRAPH", "DUMP_GRAPH_LEVEL", "DUMP_GRAPH_FORMAT", "DUMP_GRAPH_PATH")
    environment = {k: v for k, v in os.environ.items() if k not in unset}
    environment.update(BUILD=os.path.abspath(build), WORK=work, LC_ALL="C.UTF-8")
    said = subprocess.run(["bash", "-c", script], cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=False).stdout.decode()
    out = re.split(f"^{MARK}\n", said.replace(work, SHOWN_FOLDER), flags=re.M)
    if len(out) != len(commands) + 1:
        sys.exit(f"the shell ended after {len(out) - 1} of {len(commands)} commands:\n{out[-1]}")
    return out[:-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("guide")
    parser.add_argument("--build", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--rewrite", action="store_true")
    options = parser.parse_args()
    work = os.path.abspath(options.work)
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    with open(options.guide, encoding="utf-8") as f:
        guide = parts(f.read())
    said = iter(run([command for command, _ in guide if command], options.build, work))
    text, failed = "", 0
    for command, wanted in guide:
        got = next(said) if command else wanted
        text += (command or "") + got
        if got != wanted:
            failed += 1
            print(command + "".join(difflib.unified_diff(wanted.splitlines(True), got.splitlines(True), "the guide", "printed")))
    if options.rewrite:
        with open(options.guide, "w", encoding="utf-8") as f:
            f.write(text)
        return 0
    print(f"{sum(1 for command, _ in guide if command) - failed} commands as the guide says, {failed} not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
