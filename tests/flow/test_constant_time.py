# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Operands do not reach the handshake of a design; planted leaks are found with their path."""

import pytest

from modmill.cores.multiplier.build import build
from modmill.flow.constant_time import constant_time
from modmill.flow.netlist import Netlist
from modmill.studies.mutate import SUBJECTS

LEAKS = {
    "early exit on zero": ("a == 0", "count <= 0"),
    "stall at a carry": ("sum[4]", "count <= count"),
    "slow address of a table": ("table_[a[1:0]] == 0", "count <= 3"),
}


def leaking(condition, effect):
    return f"""
module core(clk, rst, i_valid, i_ready, i_a, i_b, o_valid, o_ready, o_r);
  input clk, rst, i_valid, o_ready; input [3:0] i_a, i_b; output i_ready, o_valid; output [4:0] o_r;
  reg [3:0] a, b; reg [2:0] count; reg [4:0] table_ [3:0]; wire [4:0] sum = a + b;
  assign i_ready = count == 0; assign o_valid = count == 1; assign o_r = sum ^ table_[a[1:0]];
  always @(posedge clk) begin
    if (i_valid & i_ready) begin a <= i_a; b <= i_b; table_[count[1:0]] <= 3; end
    if (rst) count <= 0; else if (i_valid & i_ready) count <= 5;
    else if ({condition}) {effect}; else if (count != 0) count <= count - 1;
  end
endmodule
"""


@pytest.mark.parametrize("leak", LEAKS)
def test_a_planted_leak_is_found(leak):
    found = constant_time(Netlist.read(leaking(*LEAKS[leak]), "core"))
    assert found.state == "REFUTED"
    assert found.path[0][:3] in ("i_a", "i_b") and any(name.startswith("count") for name in found.path)


def test_without_leak_it_is_proved_and_the_table_is_listed():
    found = constant_time(Netlist.read(leaking("0", "count <= 0"), "core"))
    assert (found.state, found.path) == ("PROVED", ()) and len(found.tables) == 1


@pytest.mark.parametrize("case", SUBJECTS, ids=lambda case: case[0])
def test_designs_are_proved(case):
    design, modulus, io, settings = case
    core = build(design, modulus, io, **settings)
    assert constant_time(Netlist.read(core.verilog, core.top)).state == "PROVED"
