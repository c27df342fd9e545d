# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Instructions on a machine with numbered slots: products, added ones, entries, pairs, constants, in the predicted
time."""

import random

import pytest

from modmill.contract import UnsupportedError
from modmill.designs import design
from modmill.engines.machine.layout import MicrocodeLayout
from modmill.engines.machine.slot_sequencer import SlotSequencer
from modmill.engines.machine.timing import SlotTiming
from modmill.engines.machine.top import Coprocessor
from modmill.engines.microcode.hazards import check_hazards
from modmill.engines.microcode.program import ENTRY, PAIR, DatapathSpec, Instruction, Program, Task
from modmill.engines.microcode.program import OperandAddress as Address
from modmill.flow.emit import verilog
from modmill.flow.words import WordSimulator

CONTEXTS = 3
S = Address


def programs(distance):
    wait = (Instruction(),) * distance
    inputs = ((0, "a"), (1, "b"), (2, "x"), (3, "y"))
    shared = ((0, 5), (1, 7))
    sums = (
        Instruction(Task("mul", S(4), S(0), S(1))), Instruction(Task("mul", S(5), S(0), S(1), S(2), S(1,
           shared=True))), *wait,
        Instruction(Task("mul", S(4), S(4), S(5), S(5), S(5))), *wait,
    )  # fmt: skip
    entries = (
        Instruction(Task("mul", S(2), S(2), S(0, ENTRY, size=2), S(3), S(0, ENTRY, True, 2))),
        *wait,
        Instruction(advance=True),
    )
    pairs = (Instruction(Task("mul", S(2, PAIR), S(2, PAIR), S(0))), *wait, Instruction(advance=True))
    return (
        Program("sums", inputs, shared, sums, (), (), 0, ((4, 1), (5, 1))),
        Program("entries", inputs, shared, (Instruction(),), entries, (Instruction(),), 5, ((2, 1),), 1),
        Program("pairs", inputs, shared, (Instruction(),), pairs, (Instruction(),), 5, ((2, 1), (3, 1)), 1),
    )


def wanted(number, digits, x, p, f):
    a, b, x, y = x
    if number == 0:
        one, two = a * b * f, (a * b + x * 7) * f
        return (one * two + two * two) * f % p, two % p
    pair = [x, y]
    for digit in digits:
        if number == 1:
            pair[0] = (pair[0] * (a, b)[digit] + y * (5, 7)[digit]) * f % p
        else:
            pair[digit] = pair[digit] * a * f % p
    return (pair[0],) if number == 1 else tuple(pair)


@pytest.fixture(scope="module")
def bench():
    fitted = design("hbe").fit(2**31 - 1, w=12, interval=20)
    contract, machine = fitted.contract("native"), fitted.slot_machine(1)
    timing = SlotTiming(contract, machine.interval, machine.distance)
    distance, _ = timing.distances(CONTEXTS)
    made = programs(distance)
    for program in made:
        check_hazards(program, DatapathSpec(0, distance, distance, 50, 50, added=True))
    layout = MicrocodeLayout(made, timing, CONTEXTS, 32)
    coprocessor = Coprocessor(SlotSequencer(fitted.slot_machine(layout.used), layout))
    return fitted, layout, coprocessor, WordSimulator(verilog(coprocessor, "ecc"), 32, top="ecc", instances=2)


def test_rows_give_what_integers_give_in_the_predicted_time(bench):
    fitted, layout, coprocessor, simulator = bench
    p, f = fitted.p, fitted.factor
    for gap, stall in ((0.0, 0.0), (0.3, 0.3)):
        sides = []
        for seed in (1, 2):
            rnd = random.Random(seed)
            words, results, ends = layout.setup(fitted.contract("native")), [], []
            for k in (0, 1, 2, 1, 0):
                program = layout.programs[k]
                runs = [
                    ([rnd.randrange(2) for _ in range(program.digits)],
                     [rnd.choice((0, 1, p - 1, rnd.randrange(p))) for _ in range(4)])
                    for _ in range(CONTEXTS)
                ]  # fmt: skip
                words += layout.job(k, runs)
                ends.append(len(words) - 1)
                results.append((k, [wanted(k, *run, p, f) for run in runs]))
            sides.append((words, results, ends))
        count = [sum(layout.answer_words(k) for k, _ in results) for _, results, _ in sides]
        runs = simulator.run_pair(*((side[0], n) for side, n in zip(sides, count, strict=True)), gap=gap, stall=stall)
        for run, (_, results, ends) in zip(runs, sides, strict=True):
            assert not run.violations
            at = 0
            for (k, expected), end in zip(results, ends, strict=True):
                more = layout.answer_words(k)
                assert layout.results(k, run.words[at : at + more], p) == expected
                if not gap:
                    assert run.valid[at] - run.accepted[end] == coprocessor.cycles(k)
                at += more


def test_sums_of_numbers_are_refused(bench):
    _, layout, _, _ = bench
    instruction = Instruction(None, (Task("add", S(4), S(0), S(1)),))
    program = Program("adds", ((0, "a"), (1, "b")), (), (instruction,), (), (), 0, ((4, 1),))
    with pytest.raises(UnsupportedError, match="1 sums, the unit does 0"):
        MicrocodeLayout((program,), layout.timing, CONTEXTS, 32)
