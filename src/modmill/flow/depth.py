# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The logic depth of a netlist in lookup tables of k inputs, by Yosys and ABC, apart from any device.

Adders become gates as well (carry look-ahead of logarithmic depth), so no device's carry chain is in the number. Paths
begin and end at registers, ports, DSP blocks and block RAMs. ABC maps for the fewest levels and then for area; it is a
heuristic after its structural rewriting, so a netlist of fewer levels may exist.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modmill.flow import memories, tiles, tools

INPUTS = (4, 6)
"""Inputs of a lookup table: those of an ECP5, and those of a Stratix III or a 7-series device."""

_LONGEST = re.compile(r"Longest topological path in \S+ \(length=(\d+)\)")


@dataclass(frozen=True)
class Depth:
    """``levels`` and ``luts`` by the inputs of a lookup table: tables on the longest path, and tables in all."""

    levels: dict[int, int]
    luts: dict[int, int]
    seconds: float

    @property
    def values(self) -> dict[str, Any]:
        """The numbers of a row of results."""
        found = {f"levels_{k}": levels for k, levels in self.levels.items()}
        return {**found, **{f"luts_{k}": n for k, n in self.luts.items()}, "seconds": round(self.seconds, 1)}

    @property
    def line(self) -> str:
        """The result in a line."""
        return "; ".join(f"{n} levels of LUTs with {k} inputs, {self.luts[k]:,} LUTs" for k, n in self.levels.items())


def measure(verilog: str, top: str = "core") -> Depth:
    """The depth of a core. Raises ToolError if Yosys fails."""
    start = time.monotonic()
    levels, luts = {}, {}
    for k in INPUTS:
        levels[k], luts[k] = _mapped(verilog, top, k)
    return Depth(levels, luts, time.monotonic() - start)


def _mapped(verilog: str, top: str, inputs: int) -> tuple[int, int]:
    """(levels, number) of the lookup tables with so many inputs."""
    blocks = " ".join((*tiles.find(verilog), *memories.find(verilog)))
    script = [
        "read_verilog core.v",
        *([f"blackbox {blocks}"] if blocks else []),
        "proc -norom",
        f"synth -noshare -nofsm -flatten -top {top} -lut {inputs}",
        "opt_clean -purge",
        "tee -q -o depth.txt ltp -noff",
        "tee -q -o stat.json stat -json",
    ]
    with tempfile.TemporaryDirectory(prefix="modmill-depth-") as name:
        folder = Path(name)
        (folder / "core.v").write_text(re.sub(r"\(\* keep_hierarchy \*\)\n", "", verilog))
        tools.run(tools.yosys("-q", "-p", "; ".join(script)), name="yosys", cwd=folder)
        found = _LONGEST.search((folder / "depth.txt").read_text())
        modules = json.loads((folder / "stat.json").read_text())["modules"]
    if found is None:
        raise tools.ToolError("yosys: ltp prints no longest path")
    module = modules.get(f"\\{top}") or modules[top]
    return int(found[1]), int(module.get("num_cells_by_type", {}).get("$lut", 0))
