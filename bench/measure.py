# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: the command line, this machine in words, and tables for docs/benchmarks.md."""
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/peers"))
from command import MODELS, CommandError, Millstream, arguments_of, index  # noqa: E402,F401

PAGE = ROOT / "docs/benchmarks.md"
median = statistics.median


def cores() -> int:
    return len(os.sched_getaffinity(0))


def machine() -> str:
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    system = re.search(r'PRETTY_NAME="(.*)"', pathlib.Path("/etc/os-release").read_text())
    compiler = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    return f"{cpu.group(1) if cpu else platform.machine()}, {cores()} cores, {system.group(1) if system else platform.system()}, g++ {compiler}"


def load_words() -> str:
    """Said beside every table: figures taken while other work runs are worth little."""
    return f"load average when it began {os.getloadavg()[0]:.1f}"


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "|".join("---" if i == 0 else "---:" for i in range(len(heads))) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def write_section(name: str, text: str) -> None:
    """Replaces what docs/benchmarks.md holds between the markers of one benchmark."""
    page = PAGE.read_text()
    begin, end = f"<!-- {name} begins -->", f"<!-- {name} ends -->"
    if begin not in page or end not in page:
        raise SystemExit(f"error: {PAGE.relative_to(ROOT)} lacks the markers {begin} and {end}")
    head, rest = page.split(begin, 1)
    PAGE.write_text(head + begin + "\n" + text.strip() + "\n" + end + rest.split(end, 1)[1])


def finish(name: str, text: str, options, good: bool = True) -> int:
    print(text)
    if options.write:
        write_section(name, text)
        print(f"written to {PAGE.relative_to(ROOT)}")
    return 0 if good else 1
