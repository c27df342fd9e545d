# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Two engines in lockstep: no fault in one bit releases a wrong word, and a comparison that is removed is noticed."""

import re

import pytest
from toy import ANSWERS, TOP, UNCHECKED, WORDS

from marks import long
from modmill.contract import ALARM
from modmill.cores.pair_check import PairReport, simulated
from modmill.cores.rsa.check import messages
from modmill.cores.rsa.machine import engine
from modmill.engines.machine.lockstep import LATENCY, Lockstep, paired
from modmill.flow.emit import netlist, without_initial_values
from modmill.flow.library import Start
from modmill.flow.words import WordSimulator
from modmill.studies.attack.faults import Attacked, Fault

ENGINE = UNCHECKED.replace(f"module {TOP}(", "module pair_engine(").replace(", o_alarm);", ");").replace(
    "output i_ready, o_valid, o_last, o_alarm;", "output i_ready, o_valid, o_last;\n  wire o_alarm;"
)  # fmt: skip


def pair(block):
    return paired(block, ENGINE, top="pair", word=16)


def later_reset(text):
    """Planted: the reset of the second engine begins a cycle later."""
    found, count = re.subn(r"assign b_rst = [^;]*;", "assign b_rst = rst_late;", text)
    assert count == 1
    return found


def attacked(text):
    return Attacked(text, "pair", WORDS, len(WORDS), 100, alarm=ALARM)


@pytest.fixture(scope="module")
def block():
    return netlist(Lockstep(16), "pair_lockstep")


@pytest.fixture(scope="module")
def whole(block):
    return attacked(pair(block))


def outcomes(attacked):
    """Of a flip of every bit in every cycle, of every register that skips, and of every bit that sticks in some."""
    faults = []
    for place, of in enumerate(attacked.places):
        for cycle in range(attacked.cycles):
            faults += [Fault("flip", place, word, bit, cycle) for word in range(of.words) for bit in range(of.width)]
            faults.append(Fault("skip", place, 0, 0, cycle))
            if cycle % 7 == 0:
                stuck = ((bit, kind) for bit in range(of.width) for kind in ("stuck at 0", "stuck at 1"))
                faults += [Fault(kind, place, of.words // 2, bit, cycle) for bit, kind in stuck]
    with attacked.runner() as runner:
        return runner.run(faults)


def test_no_fault_of_one_bit_releases_a_wrong_word(whole):
    found = outcomes(whole)
    assert len(found) > 20_000
    assert found.count("released") == 0
    assert found.count("detected") > 1_000


def test_no_alarm_comes_of_what_registers_hold_at_power_up(whole):
    for seed in range(20):
        with whole.runner(seed) as runner:
            assert runner.answer == list(ANSWERS)
            assert runner.run([]) == []


@pytest.mark.parametrize("reset", [1, 2])
@pytest.mark.parametrize("late", [False, True])
def test_a_reset_while_words_leave_reaches_both_engines(block, reset, late):
    """A reset of one cycle that begins later leaves the second engine's word behind, which raises the alarm."""
    text = later_reset(pair(block)) if late else pair(block)
    simulator = WordSimulator(text, 16, top="pair")
    runs = [simulator.run(WORDS, len(ANSWERS), start=Start(reset=reset, restart=k), timeout=300) for k in range(1, 60)]
    assert all(run.words == list(ANSWERS) for run in runs) == (reset > 1 or not late)


@pytest.mark.parametrize("late", [False, long(True)])
def test_constants_of_both_engines_survive_the_power_up(late):
    """With a later reset and some contents of registers at power-up, the second engine changes a constant in its block
    RAM."""
    core = engine("kbe", p=8819899567721, bits=44, window=2, threads=2, lockstep=True)
    text = without_initial_values(later_reset(core.verilog) if late else core.verilog)
    simulator = WordSimulator(text, core.word, top=core.top, instances=2, power_up=core.power_up)
    report = PairReport("pair", "powers")
    fault = next(simulated(core, messages(core, False), simulator, report, short=True), "")
    assert report.judged and bool(fault) == late


@pytest.mark.long
def test_the_answer_comes_two_cycles_later(whole):
    alone = Attacked(UNCHECKED, TOP, WORDS, len(WORDS), 100)
    assert whole.cycles == alone.cycles + LATENCY


@pytest.mark.long
@pytest.mark.parametrize("part", ["comparison", "second engine"])
def test_a_check_that_is_removed_is_noticed(block, part):
    if part == "comparison":  # a word is given when both engines have sent one, equal or not
        edited = re.sub(r"= x_data_late != y_data;", "= 1'b0;", re.sub(r"= o_data == y_word;", "= 1'b1;", block))
        text = pair(edited)
        assert edited.count("1'b1;") - block.count("1'b1;") >= 2
    else:  # both streams come from the first engine
        late = "reg [15:0] x_late;\n  always @(posedge clk) x_late <= x_data;\n  wire [15:0] a_data"
        text = pair(block).replace(".y_data(y_data)", ".y_data(x_late)").replace("wire [15:0] a_data", late)
    assert text != pair(block)
    assert outcomes(attacked(text)).count("released") > 0
