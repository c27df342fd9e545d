# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Place and route on each family, and carry chains as nextpnr-nexus accepts them."""

import copy
from pathlib import Path

import pytest

from marks import long
from modmill.flow import nexus, route, tiles
from modmill.flow.targets import TARGETS, target
from modmill.flow.tiles import Tile
from modmill.flow.tools import ToolError

TILE = Tile(16, 16, 3)
SUM = f"""module core(clk, x, y, z);
  input clk;
  input [15:0] x;
  input [15:0] y;
  output reg [31:0] z;
  wire [31:0] p;
  {TILE.name} multiplier(.clk(clk), .a(x), .b(y), .p(p));
  always @(posedge clk)
    z <= z + p;
endmodule
"""
FAMILIES = {t.nextpnr.family: t.name for t in reversed(TARGETS) if t.nextpnr and t.family != "gw5a"} | {"gw5a": "gw5a"}


@pytest.mark.parametrize("family", ["nexus", *(long(family) for family in FAMILIES if family != "nexus")])
def test_a_core_is_placed_and_routed(family: str, tmp_path: Path) -> None:
    device = target(FAMILIES[family])
    found = route.route(tiles.behavioural(TILE) + SUM, "core", device, tmp_path)
    assert found.mhz > 10 and found.critical_path is not None
    assert found.tool == route.tool(device)
    capacity = {available for _, available in found.utilisation.values()}
    wanted = {device.capacity.lut, device.capacity.ff, device.capacity.dsp} - {0}
    assert wanted & capacity, f"{wanted} are not among the tool's {capacity}"


def _cell(kind: str, inputs: dict, outputs: dict, **parameters: str) -> dict:
    directions = dict.fromkeys(inputs, "input") | dict.fromkeys(outputs, "output")
    pins = {pin: [bit] for pin, bit in (inputs | outputs).items()}
    return {"type": kind, "parameters": parameters, "port_directions": directions, "connections": pins}


def _netlist() -> dict:
    """A chain of two cells, as Yosys writes an adder of two bits: VLO is bit 2, VHI is bit 3."""
    first = {"CIN": 2, "A0": 3, "B0": 3, "C0": 3, "D0": 3, "A1": 4, "B1": 3, "C1": 3, "D1": 3}
    second = {"CIN": 5, "A0": 6, "B0": 7, "C0": 2, "D0": 3, "A1": 8, "B1": 9, "C1": 2, "D1": 3}
    cells = {
        "low": _cell("VLO", {}, {"Z": 2}),
        "high": _cell("VHI", {}, {"Z": 3}),
        "first": _cell("CCU2", first, {"COUT": 5, "S0": 10, "S1": 11}, INIT0="0xFFFF", INIT1="0x00AA", INJECT="NO"),
        "second": _cell("CCU2", second, {"S0": 12, "S1": 13}, INIT0="0x96AA", INIT1="0x96AA", INJECT="NO"),
    }
    return {"modules": {"core": {"cells": cells, "ports": {"sum": {"direction": "output", "bits": [12, 13]}}}}}


def test_a_constant_carry_in_is_disconnected() -> None:
    netlist = _netlist()
    wanted = copy.deepcopy(netlist)
    wanted["modules"]["core"]["cells"]["first"]["connections"]["CIN"] = []
    assert nexus.free_carries(netlist, "core") == 1
    assert netlist == wanted
    assert nexus.free_carries(netlist, "core") == 0


@pytest.mark.parametrize("fault", ["function", "pin", "sum"])
def test_a_carry_in_on_which_an_output_depends_is_refused(fault: str) -> None:
    netlist = _netlist()
    core = netlist["modules"]["core"]
    if fault == "function":
        core["cells"]["first"]["parameters"]["INIT1"] = "0x80AA"
    elif fault == "pin":
        core["cells"]["first"]["connections"]["C1"] = [4]
    else:
        core["ports"]["sum"]["bits"].append(10)
    with pytest.raises(ToolError, match="constant carry-in, and outputs of first depend on it"):
        nexus.free_carries(netlist, "core")
