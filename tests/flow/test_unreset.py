# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""On the netlist of one small core of every design: nothing but data depends on registers that nothing resets."""

import re

import pytest
from test_golden import small
from unreset import unreset

from modmill.cores.multiplier.build import build
from modmill.designs import DESIGNS
from modmill.flow import emit

KNOWN = {
    r"(^|\.)results\.pair$": "set to 0 when a result begins to leave, and looked at only while one leaves",
    r"order\.storage$": "read only where it was written, in the order of the pairs",
}
ROM = "table of constants that data chooses from; what it gives is data"
FLAGS = "flags of delay lines, which no operand reaches; the digits are written anew by every load"
ALLOWED = {
    r"^(read|write) address of multiples\.\S+ depends on": ROM,
    r"^(read|write) address of rower\d+\.constants\S+ depends on h$": ROM,
    r"^register \S*fold\d*_term\d+\S* depends on \S+base$": "data with a reset",
    r"^(read address|write address|write enable) of array\.column\d+\.digits depends on \S+(group|load)$": FLAGS,
}
ALL_SET = {"mm-pa-n"}
"""Designs all of whose registers have a reset."""


def text(name, io="native", **settings):
    return build(name, small(name), io, **settings).verilog


@pytest.fixture(scope="module")
def array():
    return text("montgomery-array", "montgomery", loadable=False)


@pytest.mark.parametrize("name", [d.name for d in DESIGNS])
def test_only_data_depends_on_registers_without_reset(name):
    found = unreset(text(name), known=KNOWN, allowed=ALLOWED)
    assert found.faults == []
    assert bool(found.flushed or found.data) == (name not in ALL_SET)


def test_binary_array_and_its_delays(array):
    """What is flushed is flushed before the first result; what a ring keeps, is not."""
    found = unreset(array, known=KNOWN)
    assert found.faults == []
    assert found.named == [f"results.pair: {KNOWN[next(iter(KNOWN))]}"]
    assert found.flushed["scan_x.tokens"] == 3
    assert "array.column1.m" not in found.flushed
    assert max(found.flushed.values()) < 80  # cycles of the native core's latency


def planted(verilog, pattern, new):
    changed, count = re.subn(pattern, new, verilog, flags=re.MULTILINE)
    assert count, f"nothing to plant at {pattern}"
    return changed


def test_planted_counter_without_initial_value_is_found(array):
    for name, shown in (("turn_counter", "turn_counter"), ("y_number", "[wy]_number")):
        faults = unreset(planted(array, rf"^    {name} = \d+'h0+;\n", ""), known=KNOWN).faults
        assert any(re.search(f"write address of .*{shown}", line) for line in faults), faults


def test_planted_valid_without_reset_is_found(array):
    """The result's valid register takes its next value whatever the reset is."""
    results = re.search(r"^module core_results\(.*?^endmodule", array, re.MULTILINE | re.DOTALL)
    assert results
    changed = planted(results[0], r"o_valid <= rst \? 1'h0 : (.*);", r"o_valid <= \1;")
    faults = unreset(array.replace(results[0], changed), known=KNOWN).faults
    assert any(line.startswith("port o_valid depends on") for line in faults)


def test_planted_flag_of_one_cycle_is_found():
    """A register that only delays is harmless before data, and a fault before a handshake."""
    core = "module core(clk, rst, i_valid, o_valid, o_r, i_a);\n  input clk, rst, i_valid; input [3:0] i_a;\n"
    core += "  output o_valid; output [3:0] o_r;\n  reg valid; reg [3:0] a;\n  assign o_valid = valid, o_r = a;\n"
    core += "  always @(posedge clk) begin a <= i_a; valid <= {}; end\nendmodule\n"
    assert unreset(core.format("!rst & i_valid")).faults == []
    faulty = unreset(core.format("i_valid"))
    assert faulty.faults == ["port o_valid depends on valid"]
    assert faulty.flushed == {"a": 1, "valid": 1}


def test_initial_values_count_and_only_for_simulation(array):
    bare = emit.without_initial_values(array)
    assert "SYNTHESIS" not in bare
    assert unreset(bare, known=KNOWN).faults
