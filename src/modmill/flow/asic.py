# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A core in the cells of a Liberty library: area and gate equivalents by Yosys and ABC, clock period by OpenSTA.

Multipliers become Booth multipliers and memories flip-flops, because a library of cells has no others; block RAMs can
be left out, as macros from elsewhere, without area and without delays. There is no placement: OpenSTA (`sta` on PATH)
takes the delays from the library's tables, for the capacitances of pins without wires, and the period is that of the
slowest path from flip-flop to flip-flop. Without OpenSTA there is no period: the Python package of Yosys does not hand
on what ABC prints of delays.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from modmill.flow import liberty, memories, tools

STA = "sta"
"""OpenSTA's program."""
_CLOCK = "clk"
_PERIOD_NS = 100
_SLACK = re.compile(r"^worst slack\s+(-?[\d.]+)", re.MULTILINE)
_LOAD_FF = 10  # of each output


@dataclass(frozen=True)
class Mapped:
    """A mapped core. ``area``: in the library's unit, mostly square micrometres; ``gates``: area over that of the
    smallest NAND of two inputs; ``ff``: flip-flops; ``memory_bits``: bits of memories that became flip-flops;
    ``macros``: how many block RAMs of each size were left out; ``period_ns``: the clock period without wires, None
    without OpenSTA."""

    area: float
    gates: int
    cells: int
    ff: int
    memory_bits: int
    macros: Mapping[str, int]
    period_ns: float | None
    library: str
    seconds: float

    @property
    def values(self) -> dict[str, Any]:
        """The numbers as JSON has them."""
        mhz = None if self.period_ns is None else round(1000 / self.period_ns, 1)
        return {**asdict(self), "cycles_per_second": mhz and round(1e6 * mhz)}

    @property
    def line(self) -> str:
        """The result in a line."""
        memories = f", {self.memory_bits:,} bits of memories among them" if self.memory_bits else ""
        clock = "no period, because OpenSTA is not on PATH"
        if self.period_ns is not None:
            clock = f"{self.period_ns:.3f} ns ({1000 / self.period_ns:.1f} MHz) without wires, by OpenSTA"
        return f"{self.area:,.0f} um2, {self.gates:,} gate equivalents, {self.ff:,} flip-flops{memories}; {clock}"

    @property
    def left_out(self) -> str:
        """The block RAMs that were left out, in a line; "" if there are none."""
        sizes = ", ".join(f"{count} of {size}" for size, count in self.macros.items())
        return sizes and f"block RAMs left out, with the paths from and to them: {sizes} bits (words of two ports)"


def map_core(verilog: str, top: str, library: Path, macros: bool = False) -> Mapped:
    """Map module ``top`` to the cells of a library; the library is only read. ``macros``: leave block RAMs out.

    Raises ValueError for a file that is no Liberty library or lacks a NAND, an inverter or a buffer, OSError if it
    cannot be read, ToolError if a tool fails, such as for a library without flip-flops.
    """
    start = time.monotonic()
    text = library.read_text(errors="replace")
    found = liberty.cells(text)
    nand = liberty.smallest(found, liberty.NAND2, "NAND with two inputs")
    inverter = liberty.smallest(found, liberty.NOT, "inverter")
    left_out = memories.find(verilog) if macros else {}
    liberty.smallest(found, liberty.BUFFER, "buffer")  # ABC fails without one
    with tempfile.TemporaryDirectory(prefix="modmill-asic-") as name:
        folder = Path(name)
        (folder / "core.v").write_text(re.sub(r"\(\* keep_hierarchy \*\)\n", "", verilog))
        (folder / "cells.lib").write_text(text)
        (folder / "drive.txt").write_text(f"set_driving_cell {inverter.name}\nset_load {_LOAD_FF} [all_outputs]\n")
        script = [
            "read_verilog core.v",
            *(f"blackbox {name}" for name in left_out),
            f"hierarchy -top {top}",
            *(f"setparam -unset INIT */t:{name}" for name in left_out),  # OpenSTA reads no parameters
            "proc",
            "flatten",
            "opt_clean -purge",
            "tee -q -o memory.json stat -json",
            f"synth -noabc -noshare -nofsm -booth -flatten -top {top}",
            "dfflibmap -liberty cells.lib",
            "abc -liberty cells.lib -constr drive.txt",
            "splitnets",  # OpenSTA reads no concatenation on the left of an assignment
            "opt_clean -purge",
            "tee -q -o stat.json stat -json",
            "write_verilog -noattr -noexpr mapped.v",
        ]
        tools.run(tools.yosys("-q", "-p", "; ".join(script)), name="yosys", cwd=folder)
        module = _module(folder / "stat.json", top)
        counts = dict(module["num_cells_by_type"])
        sizes = Counter[str]()
        for name, ram in left_out.items():
            sizes[f"{ram.depth} x {ram.width}"] += counts.pop(name, 0)
        known = {cell.name: cell for cell in found}
        if left := sorted(counts.keys() - known):
            raise ValueError(f"the Liberty library has no cell for {', '.join(left)}")
        area = sum((known[cell].area * count for cell, count in counts.items()), Fraction(0))
        ff = sum(count for cell, count in counts.items() if known[cell].state)
        memory = _module(folder / "memory.json", top).get("num_memory_bits", 0)
        period = _period(folder, top)
    return Mapped(
        float(area), round(area / nand.area), sum(counts.values()), ff, memory, dict(sorted(sizes.items())), period,
        library.name, round(time.monotonic() - start, 1),
    )  # fmt: skip


def _module(stat: Path, top: str) -> dict[str, Any]:
    modules = json.loads(stat.read_text())["modules"]
    found: dict[str, Any] = modules.get(f"\\{top}") or modules[top]
    return found


def _period(folder: Path, top: str) -> float | None:
    """The clock period in ns; None without OpenSTA."""
    program = shutil.which(STA)
    if program is None:
        return None
    (folder / "sta.tcl").write_text("\n".join(sta_script(top)))
    text = tools.run([program, "-exit", "-no_splash", "sta.tcl"], name=STA, cwd=folder)
    slack = _SLACK.search(text)
    if slack is None:
        raise tools.ToolError("sta: it printed no worst slack, so no path from register to register was timed")
    return round(_PERIOD_NS - float(slack[1]), 4)


def sta_script(top: str) -> Sequence[str]:
    """OpenSTA's script: the worst slack at a period that every path meets. Ports have no delays, so that only paths
    between registers count."""
    return (
        "read_liberty cells.lib",
        "read_verilog mapped.v",
        f"link_design {top}",
        "set_cmd_units -time ns",
        f"create_clock -name clock -period {_PERIOD_NS} [get_ports {_CLOCK}]",
        "report_worst_slack -digits 4",
        "",
    )
