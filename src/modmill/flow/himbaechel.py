# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Place and route of AMD devices by nextpnr-himbaechel, if it is on PATH.

No package registry has it, so it was never run here: the tests run a stand-in that checks the command line and writes
a report. Its reports have the format of nextpnr's other parts.
"""

import json
import shutil
import time
from pathlib import Path

from modmill.flow import tools
from modmill.flow.route import SHELL, Routed, run, shell_netlist, timed
from modmill.flow.targets import Target

NAME = "nextpnr-himbaechel"
_PARTS = {"xc7z020": "xc7z020clg400-1", "xc7a200t": "xc7a200tfbg484-1"}


def serves(target: Target) -> bool:
    """Whether the tool is on PATH and knows the device."""
    return target.device in _PARTS and shutil.which(NAME) is not None


def route(verilog: str, top: str, target: Target, workdir: Path, *, seed: int = 1) -> Routed:
    """Place and route a core in the measuring shell. Raises ToolError if the tool fails or times no clock,
    NoRoomError if it fails and the core needs more than the device has."""
    executable = shutil.which(NAME)
    if executable is None or target.device not in _PARTS:
        raise tools.ToolError(f"{NAME}: not on PATH, or it does not know {target.name}")
    workdir.mkdir(parents=True, exist_ok=True)
    shell, cap, lack = shell_netlist(verilog, top, target, workdir)
    report = workdir / f"report-{seed}.json"
    start = time.monotonic()
    command = [
        executable, "--device", _PARTS[target.device], "--json", shell.name, "--top", SHELL, "--seed", str(seed),
        "--freq", "250", "--timing-allow-fail", "--report", report.name,
    ]  # fmt: skip
    run(command, NAME, workdir, seed, lack and f"{top} {lack} on {target.device}")
    return timed(json.loads(report.read_text()), cap, target, seed, time.monotonic() - start, NAME)
