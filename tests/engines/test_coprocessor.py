# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The coprocessor in hardware: instructions made at random give what Python's integers give, in a time that nothing
changes."""

from dataclasses import replace

import pytest
from programs import random_program, random_run, replay, rng

from modmill.contract import UnsupportedError
from modmill.designs import design
from modmill.engines.machine.datapath import FieldUnit
from modmill.engines.machine.layout import MicrocodeLayout
from modmill.engines.machine.sequencer import DatapathSequencer
from modmill.engines.machine.timing import MachineTiming, busy_threads, slices, unit
from modmill.engines.machine.top import Coprocessor
from modmill.engines.microcode.hazards import check_hazards
from modmill.engines.microcode.program import ENTRY, PAIR, Instruction, Program, Task
from modmill.engines.microcode.program import OperandAddress as Address
from modmill.flow.emit import verilog
from modmill.flow.words import WordSimulator


class Bench:
    """A coprocessor for instructions made at random, compiled once."""

    def __init__(
        self, name, p, threads, sums, *, io="native", conditional_subtracts=(), programs=2, instances=1, word=32
    ):
        self.fitted = design(name).fit(p)
        self.contract = self.fitted.contract(io)
        core = self.fitted.core(io)
        self.timing = MachineTiming(self.contract, sums, core.period, core.lead, bool(conditional_subtracts))
        made_for = unit(self.timing, threads)
        below_p = self.contract.operand_bound == 1
        self.programs = tuple(
            random_program(
                rng(seed), made_for, p, 1 if below_p else 2, conditional_subtracts=conditional_subtracts,
                kept=1 if below_p else 4, slots=12,
                name=f"instructions {seed}",
            )
            for seed in range(programs)
        )  # fmt: skip
        for program in self.programs:
            check_hazards(program, made_for)
        self.layout = MicrocodeLayout(self.programs, self.timing, threads, word)
        self.exact = io == "native"
        self.coprocessor = Coprocessor(DatapathSequencer(self.fitted.core(io), self.layout))
        self.text = verilog(Coprocessor(DatapathSequencer(self.fitted.core(io), self.layout)), "ecc")
        self.simulator = WordSimulator(self.text, word, top="ecc", instances=instances)

    def multiply(self, fitted):
        return fitted.multiply if self.exact else fitted.contract(fitted.binary).expect

    def at(self, fitted):
        """The programs with constants below the modulus, which is loaded."""
        return {
            k: replace(p, shared=tuple((slot, x % fitted.p) for slot, x in p.shared))
            for k, p in enumerate(self.programs)
        }

    def job(self, number, fitted, seed):
        """Words, and what they must give."""
        rnd = rng(seed)
        program = self.at(fitted)[number]
        runs = [random_run(rnd, program, fitted.p) for _ in range(self.layout.threads)]
        multiply = self.multiply(fitted)
        return self.layout.job(number, runs), [replay(program, *run, fitted.p, multiply) for run in runs]

    def stream(self, moduli, jobs, seed):
        words, wanted, ends = [], [], []
        for fitted in moduli:
            words += self.layout.setup(fitted.contract(self.contract.io), self.at(fitted))
            for k in range(jobs):
                number = k % len(self.programs)
                more, results = self.job(number, fitted, seed + k)
                words += more
                ends.append(len(words) - 1)
                wanted.append((number, fitted.p, results))
        return words, wanted, ends

    def judged(self, run, wanted, ends, timed=True):
        assert not run.violations
        at = 0
        for (number, p, results), end in zip(wanted, ends, strict=True):
            more = self.layout.answer_words(number)
            assert self.layout.results(number, run.words[at : at + more], p) == results
            if timed:
                assert run.valid[at] - run.accepted[end] == self.coprocessor.cycles(number)
            at += more
        assert at == len(run.words)

    def words_out(self, wanted):
        return sum(self.layout.answer_words(number) for number, _, _ in wanted)


HOUSE = {
    "montgomery-array": (2**127 - 1, 3, 3, {}),
    "pseudo-mersenne": (2**136 - 15, 4, 3, {"conditional_subtracts": (1, 2)}),
    "solinas": (2**127 - 1, 1, 2, {}),
    "multistep": (2**61 - 1, 3, 2, {"conditional_subtracts": (1,)}),
    "sor-2m": (2**61 - 1, 2, 4, {}),
    "radix64k-mul": (2**61 - 1, 1, 3, {"io": "montgomery", "conditional_subtracts": (1,)}),
}


@pytest.mark.parametrize("name", HOUSE)
def test_rows_give_what_integers_give_in_the_predicted_time(name):
    p, threads, sums, options = HOUSE[name]
    bench = Bench(name, p, threads, sums, **options)
    moduli = [bench.fitted, *bench.fitted.others()[:1]]
    words, wanted, ends = bench.stream(moduli, 4, 1)
    bench.judged(bench.simulator.run(words, bench.words_out(wanted)), wanted, ends)
    run = bench.simulator.run(words, bench.words_out(wanted), gap=0.3, stall=0.3, seed=5)
    bench.judged(run, wanted, ends, timed=False)


def test_two_coprocessors_side_by_side():
    bench = Bench("multistep", 2**61 - 1, 2, 2, conditional_subtracts=(1,), instances=2)
    sides = [bench.stream([bench.fitted], 3, seed) for seed in (1, 100)]
    for gap, stall in ((0.0, 0.0), (0.4, 0.4)):
        jobs = [(words, bench.words_out(wanted)) for words, wanted, _ in sides]
        runs = bench.simulator.run_pair(*jobs, gap=gap, stall=stall)
        for run, (_, wanted, ends) in zip(runs, sides, strict=True):
            bench.judged(run, wanted, ends, timed=not gap)
        if not gap:
            assert (runs[0].accepted, runs[0].valid) == (runs[1].accepted, runs[1].valid)


def small(digits):
    """A program that multiplies, for each digit, by an entry that it picks or by one of a pair."""
    entry, pair = Address(0, ENTRY, size=4), Address(4, PAIR)
    wait = (Instruction(),) * 3
    loop = (Instruction(Task("mul", Address(6), Address(6), entry)), *wait, Instruction(Task("mul", Address(4, PAIR),
       pair, entry)), *wait,
            Instruction(None, (Task("sub", Address(7), Address(6), Address(5), offset_multiple=2),)),
            Instruction(advance=True))  # fmt: skip
    inputs = tuple((slot, f"x{slot}") for slot in range(7))
    return Program("picks", inputs, (), (Instruction(),), loop, wait, digits, ((6, 2), (4, 2), (5, 2), (7, 4)), 2)


@pytest.fixture(scope="module")
def picking():
    fitted = design("montgomery-array").fit(2**61 - 1, loadable=False)
    contract, core = fitted.contract("native"), fitted.core("native")
    timing = MachineTiming(contract, 1, core.period, core.lead)
    program = small(12)
    check_hazards(program, unit(timing, 6))
    layout = MicrocodeLayout((program,), timing, 6, 16)
    return fitted, layout, Coprocessor


def times(layout, text, fitted, count):
    """Cycles of the first and last word, one pair for each of so many jobs."""
    simulator = WordSimulator(text, layout.word, top="ecc")
    program, rnd, out = layout.programs[0], rng(2), set()
    for k in range(count):
        runs = [random_run(rnd, program, fitted.p) for _ in range(layout.threads)]
        if k < 4:
            runs = [([k] * program.digits, [(0, 1, fitted.p - 1)[k % 3]] * len(inputs)) for _, inputs in runs]
        words = layout.setup(fitted.contract("native")) + layout.job(0, runs)
        run = simulator.run(words, layout.answer_words(0))
        assert not run.violations
        out.add((run.valid[0] - run.accepted[-1], run.valid[-1] - run.accepted[-1]))
        if k < 20:
            wanted = [replay(program, *each, fitted.p, fitted.multiply) for each in runs]
            assert layout.results(0, run.words, fitted.p) == wanted
    return out


def test_the_time_is_the_same_for_all_digits_and_numbers(picking):
    fitted, layout, made = picking
    text = verilog(made(DatapathSequencer(fitted.core("native"), layout)), "ecc")
    assert len(times(layout, text, fitted, 200)) == 1


class Hasty(DatapathSequencer):
    """A planted early exit: the run ends in an issue slot whose next digits begin with 0."""

    def _digit(self, m, table, issue, progress):
        self.exit = (table.digits[:2] == 0) & issue.at(8)
        return super()._digit(m, table, issue, progress)

    def _run(self, m, idle, aligned, starting, done, offering):
        super()._run(m, idle, aligned, starting, done | self.exit, offering)


def test_a_planted_early_exit_is_caught(picking):
    fitted, layout, made = picking
    text = verilog(made(Hasty(fitted.core("native"), layout)), "ecc")
    simulator, found = WordSimulator(text, layout.word, top="ecc"), set()
    program, rnd = layout.programs[0], rng(2)
    for _ in range(12):
        runs = [random_run(rnd, program, fitted.p) for _ in range(layout.threads)]
        words = layout.setup(fitted.contract("native")) + layout.job(0, runs)
        run = simulator.run(words, layout.answer_words(0))
        found.add(run.valid[0] - run.accepted[-1])
    assert len(found) > 2


class WrongMultiple(MicrocodeLayout):
    """A planted fault: what a difference adds is no multiple of p."""

    def _offset(self, offset_multiple, p):
        return offset_multiple * p + (offset_multiple > 0)


class NoMultiple(MicrocodeLayout):
    """A planted fault: differences add nothing, so that some are negative."""

    def _offset(self, offset_multiple, p):
        return 0


@pytest.mark.parametrize("fault", [WrongMultiple, NoMultiple])
def test_a_wrong_lift_is_caught(fault):
    bench = Bench("multistep", 2**61 - 1, 2, 2, conditional_subtracts=(1,))
    bench.layout = fault(bench.programs, bench.timing, 2, 32)
    words, wanted, ends = bench.stream([bench.fitted], 3, 1)
    with pytest.raises(AssertionError):
        bench.judged(bench.simulator.run(words, bench.words_out(wanted)), wanted, ends)


@pytest.mark.parametrize(("what", "name"), [("_moved", "montgomery-array"), ("_captured", "sor-2m")])
def test_numbers_that_do_not_stand_long_enough_are_caught(what, name, monkeypatch):
    """Without a register where a multiplier looks at a number after the next one has come."""
    monkeypatch.setattr(FieldUnit, what, lambda *_: False)
    p, threads, sums, options = HOUSE[name]
    bench = Bench(name, p, threads, sums, **options)
    words, wanted, ends = bench.stream([bench.fitted], 3, 1)
    with pytest.raises(AssertionError):
        bench.judged(bench.simulator.run(words, bench.words_out(wanted)), wanted, ends)


def test_what_does_not_fit_is_refused(picking):
    _, layout, _ = picking
    contract, timing = layout.contract, layout.timing
    one = layout.programs[0]
    subtracting = replace(
        one, loop=(Instruction(None, (Task("add", Address(7), Address(6), Address(5), conditional_subtract=1),)),)
    )
    added = replace(
        one,
        loop=(Instruction(Task("mul", Address(6), Address(6), Address(6), Address(5), Address(5))),),
    )
    wide = replace(one, loop=(Instruction(None, (Task("add", Address(7), Address(6), Address(5)),) * 2),))
    constant = replace(one, loop=(Instruction(Task("mul", Address(0, shared=True), Address(6), Address(6))),))
    runs = [([0] * 12, [1] * 7)] * 6
    for make, why in [
        (lambda: MachineTiming(contract, -1), "0 or more sums, not -1"),
        (lambda: slices(design("hbe").fit(2**31 - 1, w=12).representation), "not residue"),
        (lambda: MicrocodeLayout((), timing, 1), "needs a program"),
        (lambda: MicrocodeLayout((replace(one, inputs=()),), timing, 1), "no inputs or no results"),
        (lambda: MicrocodeLayout((one,), timing, 0), "at least 1 thread, not 0"),
        (lambda: MicrocodeLayout((one,), timing, 200), "8 slots of 200 threads and 2 constants do not fit 1024"),
        (lambda: MicrocodeLayout((one,), timing, 6, 8), "words have 16 to 64 bits, not 8"),
        (lambda: MicrocodeLayout((replace(one, passes=30000),), timing, 6), "fill 22506 words; 16384 are available"),
        (lambda: MicrocodeLayout((subtracting,), timing, 6), "does not subtract multiples of p from sums"),
        (lambda: MicrocodeLayout((added,), timing, 6), "does not add two products"),
        (lambda: MicrocodeLayout((wide,), timing, 6), "2 sums, the unit does 1"),
        (lambda: MicrocodeLayout((constant,), timing, 6), "writes a shared slot"),
        (lambda: layout.job(0, runs[:5]), "does 6 runs at once, not 5"),
        (lambda: layout.job(0, [([0] * 11, [1] * 7)] * 6), "uses 12 digits, not 11"),
        (lambda: layout.job(0, [([4] * 12, [1] * 7)] * 6), "digits of 2 bits"),
        (lambda: layout.job(0, [([0] * 12, [1] * 6)] * 6), "takes 7 numbers, not 6"),
        (lambda: layout.setup(contract, {0: subtracting}), "in more than the values of its constants"),
    ]:
        with pytest.raises(UnsupportedError, match=why):
            make()


def test_issue_slots_last_as_long_as_the_multiplier_is_busy():
    for name, p, sums, issue_cycles in [
        ("montgomery-array", 2**255 - 19, 6, 16), ("pseudo-mersenne", 2**255 - 19, 5, 15),
        ("sor-2m", 2**256 - 189, 3, 18), ("pseudo-mersenne", 2**255 - 19, 7, 30),
    ]:  # fmt: skip
        fitted = design(name).fit(p)
        core = fitted.core("native")
        timing = MachineTiming(fitted.contract("native"), sums, core.period, core.lead)
        assert timing.issue_cycles == issue_cycles
        assert timing.distances(busy_threads(timing))[0] == 1
        assert timing.distances(busy_threads(timing) - 1)[0] == 2
