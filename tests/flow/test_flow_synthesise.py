# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Counts of synthesis, a routed clock, and the table of targets."""

from dataclasses import astuple, replace
from pathlib import Path

import pytest

from cores import GOOD, WIDTHS
from modmill.flow import route, targets, tiles, tools, vivado
from modmill.flow.synthesise import synthesise
from modmill.flow.tiles import Tile

# Three tiles (one with a constant operand) and two adders of 34 bits, fully registered.
TILED = """
module core(clk, rst, i_valid, i_ready, i_a, i_b, o_valid, o_ready, o_r);
  input clk, rst, i_valid, o_ready;
  input [31:0] i_a, i_b;
  output i_ready;
  output reg o_valid;
  output reg [33:0] o_r;
  wire [33:0] p0, p1, p2;
  reg [33:0] sum;
  dsp_mul_17x17_r3 t0(clk, i_a[16:0], i_b[16:0], p0);
  dsp_mul_17x17_r3 t1(clk, i_a[31:15], 17'd12345, p1);
  dsp_mul_17x17_r2 t2(clk, i_a[31:15], i_b[31:15], p2);
  assign i_ready = 1'b1;
  always @(posedge clk) begin
    sum <= p0 + p1;
    o_r <= sum + p2;
    o_valid <= i_valid & ~rst;
  end
endmodule
""" + "".join(tiles.behavioural(Tile(17, 17, stages)) for stages in (2, 3))


@pytest.mark.parametrize("hierarchy", [False, True])
def test_ecp5_counts(tmp_path: Path, hierarchy: bool) -> None:
    found = synthesise(TILED, "core", targets.target(), tmp_path, hierarchy=hierarchy)
    # two chains of 17 carry cells; i_valid & ~rst is absorbed by its flip-flop or takes one LUT
    assert (found.dsp, found.ff, found.bram) == (3, 34 + 34 + 1, 0)
    assert found.lut - 2 * found.cells["CCU2C"] in (0, 1)
    assert found.cells["CCU2C"] == 34
    assert found.logic_delay_ns is None
    assert found.netlist.exists()


def test_xc7_counts_and_delay(tmp_path: Path) -> None:
    found = synthesise(TILED, "core", targets.target("xc7z020"), tmp_path)
    assert (found.dsp, found.ff) == (3, 34 + 34 + 1)
    assert found.logic_delay_ns is not None
    assert 1 < found.logic_delay_ns < 5


def test_a_loop_in_the_netlist_is_refused(tmp_path: Path) -> None:
    looped = "module core(input a, output y); wire x = ~(x & a); assign y = x; endmodule"
    with pytest.raises(ValueError, match="combinational loop"):
        synthesise(looped, "core", targets.target(), tmp_path)


def test_routed_clock_is_capped_and_repeatable(tmp_path: Path) -> None:
    target = targets.target("ecp5-25k")
    first, second, third = (route.route(TILED, "core", target, tmp_path, seed=seed) for seed in (1, 1, 2))
    assert first.mhz_reported == second.mhz_reported
    assert third.seed == 2
    assert first.cap_mhz == 175.0
    assert first.mhz == min(first.mhz_reported, 175.0)
    assert first.utilisation["MULT18X18D"] == (3, 28)
    assert first.critical_path is not None
    period = first.critical_path.logic_ns + first.critical_path.routing_ns
    assert period == pytest.approx(1000 / first.mhz_reported, rel=0.02)
    none = replace(target, nextpnr=replace(target.nextpnr, device=("--25k", "--package", "none")))
    small = replace(none, capacity=replace(target.capacity, dsp=2))
    with pytest.raises(tools.NoRoomError, match="core needs 3 DSP of 2 on LFE5U-25F"):
        route.route(TILED, "core", small, tmp_path)
    with pytest.raises(tools.ToolError, match=r"[Nn]one.*log:") as found:
        route.route(TILED, "core", none, tmp_path)
    assert not isinstance(found.value, tools.NoRoomError)


def test_port_widths() -> None:
    assert route.port_widths(GOOD, "core") == WIDTHS
    assert astuple(route.port_widths(TILED, "core")) == (32, 32, 34, 0, False)
    with pytest.raises(ValueError, match="no port i_a"):
        route.port_widths("module core(input clk); endmodule", "core")


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must be one of ecp5-85k, .*, not 'ecp6'"):
        targets.target("ecp6")
    with pytest.raises(ValueError, match="cannot be routed"):
        route.route(TILED, "core", targets.target("xc7z020"), tmp_path)
    with pytest.raises(tools.ToolError, match=r"yosys: .*syntax error.*log:"):
        synthesise("module core(; endmodule", "core", targets.target(), tmp_path)
    with pytest.raises(tools.ToolError, match=r"stopped after 0.5 s"):
        tools.run(["sleep", "60"], name="sleep", timeout=0.5)
    with pytest.raises(tools.ToolError, match="cannot start"):
        tools.run(["no-such-tool"], name="none")


def test_vivado_script_and_reports() -> None:
    text = vivado.script("core", targets.target("xc7a200t"), 2.5)
    assert "synth_design -top core -part xc7a200tfbg484-1 -mode out_of_context" in text
    assert "-period 2.500" in text
    with pytest.raises(ValueError, match="not LFE5U-85F"):
        vivado.script("core", targets.target(), 2.5)
    rows = (
        "| Slice LUTs* | 120 | 0 | 1 |\n| Slice Registers | 34 | 0 |\n| Block RAM Tile | 1.5 | 0 |\n| DSPs | 3 | 0 |\n"
    )
    assert vivado.parse_utilisation(rows) == {"lut": 120, "ff": 34, "bram": 1.5, "dsp": 3}
    timing = "    WNS(ns)      TNS(ns)\n    -------      -------\n     -0.123       -4.5\n"
    assert vivado.parse_slack(timing) == -0.123


def test_paths_between_fabric_registers_are_timed(tmp_path: Path) -> None:
    """Without a DSP block too, where Yosys alone finds no path: an adder of 64 bits between flip-flops."""
    text = """module core(clk, a, b, r); input clk; input [63:0] a, b; output reg [63:0] r;
    reg [63:0] x, y; always @(posedge clk) begin x <= a; y <= b; r <= x + y; end endmodule"""
    delay = synthesise(text, "core", targets.target("xc7z020"), tmp_path).logic_delay_ns
    assert delay is not None and 1 < delay < 5
