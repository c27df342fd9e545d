#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The first hour with Modmill, timed: a fresh clone, empty caches, the commands of the README.

    python3 tests/first_hour.py           times of the commands, and the size of the environment after each
    python3 tests/first_hour.py --sizes   megabytes to download for each part, as `mill` states them

Needs the network. It is no test of the suite, because its times depend on the machine and the network.
"""

import os
import runpy
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = (
    ("designs",),
    ("explain", "sor-1m-p", "--modulus", "secp256k1"),
    ("race", "secp256k1"),
    ("race", "secp256k1"),
    ("build", "sor-ring", "--modulus", "P-256", "-o", "my-core"),
    ("check", "my-core"),
    ("check", "my-core"),
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


def times() -> None:
    """Run the commands in a fresh clone; print the time to the first line and to the end, and the size of .venv."""
    with tempfile.TemporaryDirectory() as folder:
        clone, caches = Path(folder, "modmill"), Path(folder, "caches")
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        own = {"HOME": str(caches), "XDG_CACHE_HOME": str(caches), "PIP_NO_CACHE_DIR": "1"}
        caches.mkdir()
        for command in COMMANDS:
            start = time.monotonic()
            with subprocess.Popen(
                ["./mill", *command], cwd=clone, env=os.environ | own, stdout=subprocess.PIPE, text=True
            ) as run:
                assert run.stdout is not None
                first = time.monotonic() - start if run.stdout.readline() else float("nan")
                run.stdout.read()
            seconds = time.monotonic() - start
            size = subprocess.run(["du", "-sm", ".venv"], cwd=clone, capture_output=True, text=True).stdout.split()[0]
            line = f"{seconds:7.1f} s, first line {first:6.1f} s, .venv {size} MB, status {run.returncode}"
            print(f"{line}: ./mill {' '.join(command)}", flush=True)


if __name__ == "__main__":
    sizes() if sys.argv[1:] == ["--sizes"] else times()
