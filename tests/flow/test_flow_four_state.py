# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Simulation in four states: x is found where it starts at a register, and both simulators agree in every cycle.

Where Icarus is not installed, each of these tests sees that this is said, and no more.
"""

import os
import random
from dataclasses import replace

import pytest

from cores import (
    EXTRA_RESULT,
    GOOD,
    NO_RESET,
    READY_IGNORED,
    RESULT_CHANGED,
    SLOW_RESET,
    VALID_DROPPED,
    WIDTHS,
    P,
)
from modmill.flow import four_state
from modmill.flow.four_state import FourState, differences
from modmill.flow.simulate import Run, Simulator, Widths
from modmill.flow.tools import ToolError

RANDOM = random.Random(5)
A = [0, P - 1, *(RANDOM.randrange(P) for _ in range(30))]
B = [1, P - 1, *(RANDOM.randrange(P) for _ in range(30))]
EXPECTED = [a * b % P for a, b in zip(A, B, strict=True)]

SUM = """
module core(clk, rst, k_valid, k_ready, k_m, i_valid, i_ready, i_a, o_valid, o_ready, o_r);
  input clk, rst, k_valid, i_valid, o_ready;
  input [69:0] k_m;
  input [39:0] i_a;
  output k_ready, i_ready, o_valid;
  output [69:0] o_r;
  reg done;
  reg [69:0] m, r;
  wire give = done & o_ready;
  assign k_ready = ~done;
  assign i_ready = ~k_valid & (~done | give);
  assign o_valid = done;
  assign o_r = r;
  always @(posedge clk) begin
    if (k_valid & k_ready) m <= k_m;
    if (i_valid & i_ready) r <= i_a + m;
    done <= (i_valid & i_ready) | (done & ~give);
    if (rst) done <= 0;
  end
endmodule
"""
"""Adds the number that was loaded last."""
SUM_WIDTHS = Widths(40, 0, 70, 70)

TURNS = """
module core(clk, rst, i_valid, i_ready, i_a, o_valid, o_ready, o_r);
  input clk, rst, i_valid, o_ready;
  input [3:0] i_a;
  output i_ready, o_valid;
  output [3:0] o_r;
  reg [1:0] turn = 2'h0;
  reg done;
  reg [3:0] held;
  wire give = done & o_ready;
  assign i_ready = (turn == 0) & (~done | give);
  assign o_valid = done;
  assign o_r = held;
  always @(posedge clk) begin
    turn <= turn + 1;
    if (i_valid & i_ready) held <= i_a;
    done <= (i_valid & i_ready) | (done & ~give);
    if (rst) done <= 0;
  end
endmodule
"""
"""Takes an operand in every fourth cycle, by a counter that runs without end and has no reset."""


def compiled(verilog, widths=WIDTHS):
    """The core, or None where there is no Icarus and it was said in one line."""
    if four_state.available():
        return FourState(verilog, widths=widths)
    with pytest.raises(ToolError) as caught:
        FourState(verilog, widths=widths)
    assert str(caught.value) == four_state.MISSING
    assert "\n" not in four_state.MISSING and "apt install iverilog" in four_state.MISSING
    return None


def unknown(verilog, a, b, widths=WIDTHS, **how):
    """The first word of each line about x: the port."""
    core = compiled(verilog, widths)
    return None if core is None else {line.split()[0] for line in core.run(a, b, **how).unknown}


@pytest.mark.parametrize("reset", [1, 3])
@pytest.mark.parametrize("first", [0, 1, 7])
@pytest.mark.parametrize(("gap", "stall"), [(0.0, 0.0), (0.3, 0.3)])
def test_right_core_shows_no_x(gap, stall, first, reset):
    if core := compiled(GOOD):
        seen = core.run(A, B, gap=gap, stall=stall, reset=reset, first=first)
        assert seen.unknown == seen.run.violations == []
        assert seen.run.results == EXPECTED
        assert seen.run.accepted[0] >= first
        assert bool(gap) != (seen.run.accepted == list(range(first, first + len(A))))


@pytest.mark.parametrize("reset", [1, 3])
def test_valid_register_without_reset_is_found(reset):
    assert unknown(NO_RESET, A, B, reset=reset) in (None, {"o_valid", "i_ready"})


def test_core_that_needs_a_longer_reset_is_found():
    assert unknown(SLOW_RESET, A, B) in (None, {"o_valid", "i_ready"})
    assert unknown(SLOW_RESET, A, B, reset=2) in (None, set())


def test_counter_with_neither_reset_nor_initial_value_is_found():
    one = Widths(4, 0, 4)
    a = list(range(16))
    assert unknown(TURNS, a, [], one) in (None, set())
    assert unknown(TURNS.replace(" = 2'h0", "", 1), a, [], one) in (None, {"i_ready", "o_valid"})
    # where only the result depends on it, two states would pass with luck
    of_result = TURNS.replace("o_r = held", "o_r = held ^ (lost & 4'h0) ^ {4{lost[0] ^ lost[0]}}")
    of_result = of_result.replace("reg done;", "reg done; reg [3:0] lost;")
    assert unknown(of_result, a, [], one) in (None, {"o_r"})


def test_memory_that_is_read_before_it_is_written_is_found():
    read = GOOD.replace("reg [31:0] result;", "reg [31:0] result; reg [31:0] table_[0:3];").replace(
        "o_r = result", "o_r = result ^ (table_[result[1:0]] & 32'h80000000)"
    )
    assert unknown(read, A, B) in (None, {"o_r"})


def test_data_of_a_pause_that_reaches_control_is_found():
    """In two states an operand that counts without valid is noise, and the noise may be kind."""
    leaking = GOOD.replace("(i_valid & i_ready) |", "(i_valid & i_ready) | (~full & ~done & ~i_valid & &i_a) |")
    assert leaking != GOOD
    assert unknown(leaking, A, B, gap=0.5) in (None, {"i_ready", "o_valid"})
    assert unknown(leaking, A, B, first=0) in (None, {"i_ready", "o_valid"})


def test_undriven_bit_is_found():
    assert unknown(GOOD.replace("o_r = result", "o_r[30:0] = result[30:0]"), A, B) in (None, {"o_r"})


@pytest.mark.parametrize(
    ("verilog", "violation"),
    [
        (VALID_DROPPED, "o_valid dropped"),
        (RESULT_CHANGED, "o_r changed while waiting"),
        (READY_IGNORED, "timeout"),
        (EXTRA_RESULT, "a result without an operand"),
        (GOOD.replace("      done <= 0;", "      done <= 1;"), "o_valid high straight after reset"),
    ],
)
def test_faults_of_the_handshake_are_found_here_too(verilog, violation):
    if core := compiled(verilog):
        seen = core.run(A[1:], B[1:], gap=0.3, stall=0.5, timeout=100).run
        assert any(line.startswith(violation) for line in seen.violations), seen.violations


def test_modulus_is_loaded_before_its_operands():
    loads = [(0, [5]), (3, [7]), (6, [2**68 + 1])]
    a = [*range(2**40 - 9, 2**40)]
    expected = [x + (5 if k < 3 else 7 if k < 6 else 2**68 + 1) for k, x in enumerate(a)]
    if core := compiled(SUM, SUM_WIDTHS):
        for how in ({}, {"gap": 0.4, "stall": 0.4}, {"first": 0}):
            seen = core.run(a, [], loads=loads, **how)
            assert seen.unknown == seen.run.violations == []
            assert seen.run.results == expected
        early = FourState(SUM.replace("~k_valid & (~done", "(~done", 1), widths=SUM_WIDTHS).run(a, [], loads=loads)
        assert any("operands accepted before the modulus" in line for line in early.run.violations)
        rash = FourState(SUM.replace("k_ready = ~done", "k_ready = 1'b1"), widths=SUM_WIDTHS)
        assert any("a word of the modulus" in line for line in rash.run(a, [], loads=loads, stall=0.6).run.violations)
        never = FourState(SUM.replace("reg done;", "reg done; reg lost;").replace("k_ready = ~done", "k_ready = lost"),
                          widths=SUM_WIDTHS).run(a, [], loads=loads)  # fmt: skip
        assert [line.split()[0] for line in never.unknown] == ["k_ready"]
        assert never.run.violations[0].endswith("the handshake stayed unknown")
        assert never.run.cycles < 100, "x does not become known by waiting"


def test_two_states_and_four_agree_in_every_cycle():
    loads = [(0, [5]), (3, [7])]
    a = [*range(9)]
    if core := compiled(SUM, SUM_WIDTHS):
        simulator = Simulator(SUM, widths=SUM_WIDTHS)
        two, four = simulator.run(a, [0] * 9, loads=loads), core.run(a, [], loads=loads).run
        assert two == four
        assert list(differences(two, four)) == []
        slow = FourState(SUM.replace("i_ready = ~k_valid", "i_ready = ~i_a[0] & ~k_valid"), widths=SUM_WIDTHS)
        assert "accepted: 9 with Verilator, 1 with Icarus" in differences(
            two, slow.run(a, [], loads=loads, timeout=20).run
        )


def test_differences_name_what_differs():
    """Planted in a run: each kind of difference."""
    run = Run([3, 5], [1, 2], [4, 5], [4, 5], 6, [], [1])
    assert list(differences(run, run)) == []
    other = replace(run, results=[3, 255], accepted=[1, 3], valid=[4, 5, 6], taken=[5, 5], cycles=7, loaded=[])
    assert list(differences(run, other)) == [
        "loaded: 1 with Verilator, 0 with Icarus",
        "accepted: number 1 has cycle 2 with Verilator, 3 with Icarus",
        "valid: 2 with Verilator, 3 with Icarus",
        "taken: number 0 has cycle 4 with Verilator, 5 with Icarus",
        "results: number 1 has value 0x5 with Verilator, 0xff with Icarus",
        "the run takes 6 cycles with Verilator, 7 with Icarus",
    ]


def test_wide_operands_pass_the_files_whole():
    wide = TURNS.replace("[3:0]", "[2099:0]")
    a = [2**2100 - 1, 0, 1 << 2099, RANDOM.getrandbits(2100)]
    if core := compiled(wide, Widths(2100, 0, 2100)):
        assert core.run(a, []).run.results == a


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"a": [1 << 32]}, "does not fit 32 bits"),
        ({"b": [1, 2]}, "same number of operands"),
        ({"a": [], "b": []}, "at least one operand"),
        ({"reset": 0}, "a reset of at least 1 cycle"),
        ({"first": -1}, "not 1, -1"),
        ({"gap": 1.0}, "gap must be in"),
        ({"loads": [(0, [1])]}, "no stream k"),
    ],
)
def test_what_cannot_be_run_is_refused(how, message):
    if core := compiled(GOOD):
        with pytest.raises(ValueError, match=message):
            core.run(**{"a": [1], "b": [1]} | how)


def test_run_that_takes_too_long_is_stopped():
    if core := compiled(GOOD):
        with pytest.raises(ToolError, match=r"vvp: stopped after 0\.001 s"):
            core.run(A * 5000, B * 5000, seconds=0.001)  # half a second at least


def test_text_that_icarus_refuses():
    if four_state.available():
        with pytest.raises(ToolError, match=r"iverilog: .*syntax error"):
            FourState(GOOD.replace("endmodule", "end module"), widths=WIDTHS)


@pytest.mark.parametrize("there", [(), ("iverilog",), ("iverilog", "vvp")])
def test_without_icarus_it_is_said_in_one_line(tmp_path, monkeypatch, there):
    """Missing, half missing, and two programs of these names that do not work."""
    for name in there:
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/nowhere")
    assert not four_state.available() and four_state.version() is None
    with pytest.raises(ToolError, match=r"needs Icarus Verilog .* apt install iverilog$"):
        FourState(GOOD, widths=WIDTHS)
