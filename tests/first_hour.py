#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The first hour with Modmill, timed: a fresh clone, empty caches, the commands of the README.

    python3 tests/first_hour.py           the table: time to the first line and to the end of each command, with limits
    python3 tests/first_hour.py --dry     only the commands and their limits
    python3 tests/first_hour.py --sizes   megabytes to download for each part, as `mill` states them

Ends with status 1 if a command fails or a limit is exceeded. Needs the network, and an otherwise idle machine with two
cores. It is no test of the suite, because its times depend on the machine and the network; the clone has what is
committed.
"""

import os
import runpy
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Step:
    """A command of `mill`. ``first``, ``whole``: limits in seconds to its first line and to its end; 0: none."""

    what: str
    command: str
    first: float = 0
    whole: float = 0


STEPS = (
    Step("set-up and first result", "race secp256k1", first=60),
    Step("whole table, once set up", "race secp256k1", whole=20),
    Step("designs", "designs"),
    Step("constants, bounds, schedule", "explain sor-1m-p --modulus secp256k1"),
    Step("build, with simulator and its compilation", "build sor-ring --modulus P-256 -o my-core"),
    Step("check, with compilation", "check my-core"),
    Step("check again", "check my-core", whole=30),
    Step("build of the guide, first compilation done", "build kbe --modulus secp256k1 --io native -o kbe-core"),
    Step("check, with compilation", "check kbe-core"),
    Step("check again", "check kbe-core", whole=30),
)


def sizes() -> None:
    """Print the megabytes of the wheels of each part for this machine."""
    mill = runpy.run_path(str(ROOT / "mill"))
    for part, stated in mill["MEGABYTES"].items():
        with tempfile.TemporaryDirectory() as folder:
            lock = Path(folder, "part.lock")
            lock.write_text(mill["requirements"]({part}))
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
            subprocess.run([*pip, "-r", str(lock), "-d", f"{folder}/wheels"], check=True)
            found = sum(file.stat().st_size for file in Path(folder, "wheels").iterdir()) / 1e6
            print(f"{part:<10} {found:6.1f} MB, stated {stated}", flush=True)


def timed(step: Step, clone: Path, environment: dict[str, str]) -> tuple[float, float, int]:
    """Run a step; return seconds to its first line on stdout, seconds to its end, and its status."""
    start = time.monotonic()
    with subprocess.Popen(
        ["./mill", *step.command.split()], cwd=clone, env=environment, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        first = time.monotonic() - start if run.stdout.readline() else float("nan")
        run.stdout.read()
    return first, time.monotonic() - start, run.returncode


def row(step: Step, first: str, whole: str, size: str, verdict: str) -> str:
    """A line of the table."""
    limits = [f"{limit:.0f}" if limit else "" for limit in (step.first, step.whole)]
    times = f"{first:>8} {limits[0]:>6} {whole:>8} {limits[1]:>6} {size:>8}"
    return f"{times}  {verdict:<9} {step.what}: ./mill {step.command}"


def verdict(step: Step, first: float, whole: float, status: int) -> str:
    """ok, FAILED, or TOO LATE; a first line that never came is too late where it has a limit."""
    if status:
        return "FAILED"
    late = (step.first and not first <= step.first) or (step.whole and whole > step.whole)
    return "TOO LATE" if late else "ok"


def table(dry: bool) -> bool:
    """Print the table, line by line; return whether all commands kept their limits. ``dry``: run nothing."""
    print(f"{'first s':>8} {'limit':>6} {'whole s':>8} {'limit':>6} {'.venv MB':>8}")
    good = True
    with tempfile.TemporaryDirectory() as folder:
        clone, caches = Path(folder, "modmill"), Path(folder, "caches")
        if not dry:
            subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
            caches.mkdir()
        kept = {name: value for name, value in os.environ.items() if name not in ("MODMILL_CACHE", "PYTHONPATH")}
        own = {"HOME": str(caches), "XDG_CACHE_HOME": str(caches), "PIP_NO_CACHE_DIR": "1", "UV_NO_CACHE": "1"}
        for step in STEPS:
            if dry:
                print(row(step, "", "", "", ""))
                continue
            first, whole, status = timed(step, clone, kept | own)
            size = subprocess.run(["du", "-sm", ".venv"], cwd=clone, capture_output=True, text=True).stdout.split()[0]
            said = verdict(step, first, whole, status)
            good &= said == "ok"
            print(row(step, f"{first:.1f}", f"{whole:.1f}", size, said), flush=True)
    return good


if __name__ == "__main__":
    if sys.argv[1:] == ["--sizes"]:
        sizes()
    elif sys.argv[1:] in ([], ["--dry"]):
        sys.exit(0 if table(dry=bool(sys.argv[1:])) else 1)
    else:
        sys.exit(__doc__)
