# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Synthesis, place and route by AMD Vivado, if it is on PATH.

No package registry has Vivado, so only the script's text and the parsing of report excerpts are tested here; Vivado
itself was never run.
"""

import re
import shutil
import time
from pathlib import Path
from typing import Any

from modmill.flow import tools
from modmill.flow.targets import Target

_PERIOD_NS = 3.0
_PARTS = {
    "xc7z020": "xc7z020clg400-1",
    "xc7a200t": "xc7a200tfbg484-1",
    "xc7vx690t": "xc7vx690tffg1761-2",
    "xcku5p": "xcku5p-ffvb676-2-i",
}
_ROWS = {"lut": r"(?:Slice|CLB) LUTs\*?", "ff": r"(?:Slice|CLB) Registers", "dsp": "DSPs", "bram": "Block RAM Tile"}


def script(top: str, target: Target, period_ns: float) -> str:
    """Tcl for Vivado's batch mode: out-of-context synthesis, place and route of `core.v` in the current folder.

    Raises ValueError for a device that Vivado does not serve.
    """
    if target.device not in _PARTS:
        raise ValueError(f"Vivado serves {', '.join(_PARTS)}, not {target.device}")
    return f"""read_verilog core.v
synth_design -top {top} -part {_PARTS[target.device]} -mode out_of_context
create_clock -name clk -period {period_ns:.3f} [get_ports clk]
opt_design
place_design
phys_opt_design
route_design
report_utilization -file utilization.rpt
report_timing_summary -file timing.rpt
"""


def run(verilog: str, top: str, target: Target, workdir: Path, _seed: int = 1) -> dict[str, Any]:
    """Run Vivado on a core, without pads; the requested clock period is `_PERIOD_NS`.

    Returns the values of a row: the clock that was reached, and block RAMs of 36 kbit, halves allowed.

    Raises ToolError if Vivado is not on PATH, fails, or its reports cannot be read.
    """
    executable = shutil.which("vivado")
    if executable is None:
        raise tools.ToolError("vivado: not on PATH")
    workdir.mkdir(parents=True, exist_ok=True)
    (workdir / "core.v").write_text(verilog)
    (workdir / "run.tcl").write_text(script(top, target, _PERIOD_NS))
    start = time.monotonic()
    command = [executable, "-mode", "batch", "-nojournal", "-nolog", "-source", "run.tcl"]
    tools.run(command, name="vivado", log=workdir / "vivado.log", cwd=workdir)
    used = parse_utilisation((workdir / "utilization.rpt").read_text())
    mhz = 1000 / (_PERIOD_NS - parse_slack((workdir / "timing.rpt").read_text()))
    utilisation = {"DSP": int(used["dsp"]), "LUT": int(used["lut"]), "FF": int(used["ff"]), "BRAM": used["bram"]}
    seconds = round(time.monotonic() - start, 1)
    return {"mhz": mhz, "mhz_reported": mhz, "cap_mhz": None, "utilisation": utilisation, "seconds": seconds}


def parse_utilisation(report: str) -> dict[str, float]:
    """Used dsp, lut, ff and bram in a report_utilization text. Raises ToolError if one is missing."""
    used = {}
    for name, row in _ROWS.items():
        match = re.search(rf"^\|\s*{row}\s*\|\s*([\d.]+)\s*\|", report, re.MULTILINE)
        if match is None:
            raise tools.ToolError(f"vivado: the utilisation report has no row for {name}")
        used[name] = float(match.group(1))
    return used


def parse_slack(report: str) -> float:
    """Worst negative slack in ns in a report_timing_summary text. Raises ToolError if there is none."""
    match = re.search(r"WNS\(ns\).*?\n[\s-]*\n\s*(-?[\d.]+)", report)
    if match is None:
        raise tools.ToolError("vivado: the timing report has no worst slack")
    return float(match.group(1))
