# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Stand-ins for the measurement of a point, and a command that sweeps with one of them.

Each call adds a line to the file that the environment variable SWEEP_LOG names.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from modmill.report.rows import Row
from modmill.studies.sweep.points import Result

PLAN = """
moduli = ["97", "101"]
designs = ["wide", "karatsuba"]
targets = ["ecp5-85k", "gowin"]
"""
"""Eight points."""


def row_of(point):
    """A row for a point."""
    about = {"design": point.design, "modulus": point.modulus, "io": point.io, "parameters": dict(point.settings)}
    digest = f"sha256:{point.design} {point.modulus}"
    return Row(point.kind, digest, point.tool, point.target, point.seed, {"lut": 7, "dsp": 1}, about)


def fast(point, known, folder):
    """A row at once."""
    with open(os.environ["SWEEP_LOG"], "a") as log:
        log.write(point.name + "\n")
    row = row_of(point)
    if row.digest in known:
        return Result(point, "known", digest=row.digest)
    return Result(point, "measured", digest=row.digest, row=row)


def slow(point, known, folder):
    """A row after a while, with a program below."""
    subprocess.run(["sleep", os.environ.get("SWEEP_SECONDS", "0.2")], check=True, start_new_session=True)
    return fast(point, known, folder)


def hanging(point, known, folder):
    """No row, and a program below that goes on; its process id is logged."""
    program = subprocess.Popen(["sleep", "600"], start_new_session=True)
    with open(os.environ["SWEEP_LOG"], "a") as log:
        log.write(f"{program.pid}\n")
    program.wait()


def greedy(point, known, folder):
    """Memory without end, a little at a time."""
    kept = []
    while True:
        kept.append(bytearray(os.urandom(1 << 20) * 10))
        time.sleep(0.2)


def leaping(point, known, folder):
    """Much memory at once."""
    return bytearray(10 << 30)


def killed_once(point, known, folder):
    """Killed from outside, as for want of memory; a row the next time."""
    first = not Path(os.environ["SWEEP_LOG"]).exists()
    found = fast(point, known, folder)
    if first:
        os.kill(os.getpid(), signal.SIGKILL)
    return found


def raising(point, known, folder):
    """An error in our own code."""
    return [][point.seed or 0]


if __name__ == "__main__":  # MEASURE and then the arguments of modmill
    from modmill.cli import main
    from modmill.studies.sweep import run

    run.sweep.__kwdefaults__["measure"] = f"sweep_points:{sys.argv.pop(1)}"
    main()
