# SPDX-License-Identifier: Apache-2.0
"""Calls the millstream command line as a user would; the campaigns and benchmarks share this."""
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "build/models"

# Every topology of `millstream gen`, small enough for hundreds of runs: name -> its options.
TOPOLOGIES = {
    "layered": ["--nodes", "64", "--width", "6"],
    "lanes": ["--nodes", "64", "--width", "6"],
    "diamond": ["--nodes", "48"],
    "randwire": ["--nodes", "32", "--p", "0.75"],
    "inception": ["--nodes", "60"],
    "transformer": ["--nodes", "60"],
    "moe": ["--nodes", "48"],
    "star": ["--nodes", "32"],
}


class CommandError(Exception):
    """The command ended with another status than wanted, said no JSON, or did not end."""


class Millstream:
    def __init__(self, preset: str = "release", environment: dict | None = None):
        self.binary = ROOT / "build" / preset / "tools/millstream/millstream"
        self.environment = {**os.environ, **(environment or {})}
        if not self.binary.exists():
            raise CommandError(f"{self.binary} is missing; build it with: cmake --preset {preset} && cmake --build build/{preset}")

    def call(self, *arguments, seconds: float = 600, statuses=(0,)) -> subprocess.CompletedProcess:
        words = [str(a) for a in (self.binary, *arguments)]
        try:
            done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=seconds, env=self.environment)
        except subprocess.TimeoutExpired:
            raise CommandError(f"no end within {seconds} s: {' '.join(words)}") from None
        if done.returncode not in statuses:
            raise CommandError(f"status {done.returncode}: {' '.join(words)}\n{done.stderr.strip()[-1500:]}")
        return done

    def json(self, *arguments, **options) -> dict:
        done = self.call(*arguments, "--json", **options)
        try:
            return json.loads(done.stdout)
        except ValueError:
            raise CommandError(f"no JSON object on stdout: {' '.join(map(str, done.args))}\n{done.stdout[:300]}") from None

    def topology(self, name: str) -> pathlib.Path:
        path = MODELS.parent / "topologies" / f"{name}.mst"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.call("gen", name, *TOPOLOGIES[name], "--seed", 1, "-o", path)
        return path


def index() -> list[dict]:
    path = MODELS / "index.json"
    if not path.exists():
        raise CommandError("build/models/index.json is missing; make it with: .venv/bin/python tests/peers/models.py")
    return json.loads(path.read_text())


def arguments_of(entry: dict, expect: bool = True) -> list:
    """MODEL and the options that bind its sizes, inputs and, with `expect`, its reference outputs."""
    words = [MODELS / entry["model"]]
    for name, size in entry["dims"].items():
        words += ["--dim", f"{name}={size}"]
    for name, file in entry["inputs"].items():
        words += ["--input", f"{name}={MODELS / file}"]
    if expect:
        for name, file in entry["outputs"].items():
            words += ["--expect", f"{name}={MODELS / file}"]
    return words
