# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The engine in hardware: powers right with any multiplier, in a time that no exponent changes."""

import random
import time
from dataclasses import fields, replace
from fractions import Fraction

import pytest

from marks import long
from modmill.contract import Contract, Load, UnsupportedError
from modmill.cores.rsa.machine import engine
from modmill.designs import design
from modmill.engines.machine.layout import MicrocodeLayout
from modmill.engines.machine.sequencer import DatapathSequencer
from modmill.engines.machine.timing import MachineTiming
from modmill.engines.machine.top import Coprocessor
from modmill.engines.rsa.exponentiation import Exponentiation, fixed_window, ladder, left_to_right
from modmill.engines.rsa.layout import power_layout
from modmill.flow.emit import verilog
from modmill.flow.library import Start
from modmill.flow.words import WordSimulator
from modmill.interface import Multiplier
from trial import loadable
from trial.bench import drive

TOY = 12
"""Bits of the toy multiplier's moduli."""


def contract(p):
    return replace(loadable.contract(TOY, p), load=Load(TOY, (p,), 1))


class ToyMultiplier(loadable.Loadable):
    """The bit-serial multiplier of the trial, as a Multiplier: it accepts operands in any cycle."""

    period, lead, kept, alarm = 1, 0, (), False
    read_in, stands = Multiplier.read_in, Multiplier.stands


def toy_layout(program, threads, bits=10, word=16):
    c = contract((1 << TOY) - 3)
    powers = (Exponentiation(program, c, bits), Exponentiation(left_to_right(17), c, 5))
    return power_layout(powers, MachineTiming(c, 0), threads, word)


def machine(layout, multiplier=None):
    return Coprocessor(DatapathSequencer(multiplier or ToyMultiplier(TOY), layout))


@pytest.mark.parametrize("threads", [long(1), 3])
@pytest.mark.parametrize("program", [fixed_window(3), long(fixed_window(1)), long(ladder())], ids=lambda p: p.name)
def test_powers_of_one_message_after_another(program, threads):
    """Moduli are loaded in between; producer and consumer pause; exponents have all lengths. Amaranth's simulator."""
    layout = toy_layout(program, threads)
    rnd = random.Random(1)
    for stall, gap in ((0, 0), (0.3, 0.2)):
        words, wanted = [], []
        for p in (4093, 2049, 13):
            words += layout.setup(contract(p))
            for k, bits in ((0, 10), (1, 5), (0, 4)):
                pairs = [(rnd.randrange(p), 17 if k else rnd.getrandbits(bits)) for _ in range(threads)]
                words += layout.power_job(k, pairs, bits)
                wanted += [pow(base, exponent, p) for base, exponent in pairs]
        offers = [("i", {"i_data": word}) for word in words]
        want = len(wanted) * layout.number_words
        trace = drive(machine(layout), offers, out=["o_data"], want=want, stall=stall, gap=gap, limit=10**6)
        assert layout.numbers([word for (word,) in trace.out], 0) == wanted


@pytest.fixture(scope="module")
def toy():
    layout = toy_layout(fixed_window(3), 2, bits=30)
    return layout, WordSimulator(verilog(machine(layout), "engine"), 16, top="engine")


def times(layout, simulator, p, bits, jobs):
    """Cycles from the last word in to the first and last word out, for each job alone."""
    out = set()
    for pairs in jobs:
        words = layout.setup(contract(p)) + layout.power_job(0, pairs, bits)
        run = simulator.run(words, layout.threads * layout.number_words)
        assert not run.violations
        assert layout.numbers(run.words, p) == [pow(base, exponent, p) for base, exponent in pairs]
        out.add((run.valid[0] - run.accepted[-1], run.valid[-1] - run.accepted[-1]))
    return out


def jobs(p, bits, threads, count, seed=1):
    rnd = random.Random(seed)
    full = (1 << bits) - 1
    edges = [(0, 0), (1, full), (p - 1, 1), (2, 1 << bits - 1), (p - 1, 0x55555555 & full)]
    return [[rnd.choice(edges) if k < 20 else (rnd.randrange(p), rnd.getrandbits(bits)) for _ in range(threads)]
            for k in range(count)]  # fmt: skip


@pytest.mark.parametrize("bits", [30, 12])
def test_the_time_is_the_same_for_every_exponent_and_base(toy, bits):
    layout, simulator = toy
    assert len(times(layout, simulator, 4093, bits, jobs(4093, bits, 2, 150))) == 1
    assert len(times(layout, simulator, 4093, bits, jobs(4093, bits, 2, 20))) == 1


class Hasty(DatapathSequencer):
    """A planted early exit: the run ends in an issue slot whose next digit is 0."""

    def _digit(self, m, table, issue, progress):
        self.exit = (table.digits[:3] == 0) & issue.at(8)
        return super()._digit(m, table, issue, progress)

    def _run(self, m, idle, aligned, starting, done, offering):
        super()._run(m, idle, aligned, starting, done | self.exit, offering)


def test_a_planted_early_exit_is_caught():
    p = 4093
    layout = toy_layout(fixed_window(3), 1, bits=30)
    simulator = WordSimulator(verilog(Coprocessor(Hasty(ToyMultiplier(TOY), layout)), "engine"), 16, top="engine")
    found = set()
    for pairs in jobs(p, 30, 1, 30):
        run = simulator.run(layout.setup(contract(p)) + layout.power_job(0, pairs), layout.number_words)
        found.add(run.valid[0] - run.accepted[-1])
    assert len(found) > 2


def test_two_engines_side_by_side_with_pauses_and_stalls():
    layout = toy_layout(ladder(), 2, bits=16)
    simulator = WordSimulator(verilog(machine(layout), "engine"), 16, top="engine", instances=2)
    rnd = random.Random(4)
    for gap, stall in ((0, 0), (0.4, 0.4)):
        sides, wanted = [], []
        for p in (4093, 3001):
            words, powers = layout.setup(contract(p)), []
            for _ in range(3):
                pairs = [(rnd.randrange(p), rnd.getrandbits(16)) for _ in range(2)]
                words += layout.power_job(0, pairs)
                powers += [pow(base, exponent, p) for base, exponent in pairs]
            sides.append((words, len(powers) * layout.number_words))
            wanted.append(powers)
        runs = simulator.run_pair(*sides, gap=gap, stall=stall, seed=3)
        for run, powers in zip(runs, wanted, strict=True):
            assert not run.violations
            assert layout.numbers(run.words, 0) == powers


HOUSE = [
    ("montgomery-array", 0, 160, 0, {}), ("montgomery-array", 0, 160, 1, {}), ("radix64k-mul", 0, 64, 2, {}),
    ("hbe", 0, 31, 0, {"w": 12, "interval": 20}), ("hbe", 0, 31, 0, {"w": 12, "interval": 20, "native": False}),
    ("kbe", 0, 31, 2, {"w": 12, "interval": 24}), ("kbe", 2**61 - 1, 0, 9, {}),
    ("sor-ring", 2**61 - 1, 0, 2, {}), ("mm-spa", 2**61 - 1, 0, 2, {}), ("mm-pa-p", 2**61 - 1, 0, 0, {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "p", "width", "threads", "settings", "method"),
    [(long if k % 2 == (method == "ladder") else pytest.param)(*house, method)
     for method in ("window", "ladder") for k, house in enumerate(HOUSE)],
)  # fmt: skip
def test_multipliers_of_the_house(name, p, width, threads, settings, method):
    settings = dict(settings)
    native = settings.pop("native", True)
    core = engine(name, p, width, settings, bits=40, method=method, window=3, threads=threads, native=native)
    layout, contract = core.layout, core.fitted.contract("native")
    rnd = random.Random(6)
    others = core.fitted.others() if contract.load else []
    for fitted in [core.fitted, *others, core.fitted]:
        p = fitted.p
        for k, bits in ((0, 40), (1, 17), (0, 9)):
            if k and method == "ladder":
                continue
            pairs = [(rnd.randrange(p), 65537 if k else rnd.getrandbits(bits)) for _ in range(layout.threads)]
            pairs[0] = (p - 1, pairs[0][1])
            found = core.simulate(fitted, k, pairs, bits)
            assert found.powers == [pow(base, exponent, p) for base, exponent in pairs]
            assert found.cycles == [core.cycles(k, bits)]


@pytest.mark.parametrize(("name", "io"), [("radix64k-ram", "montgomery"), ("sor-2m", "plain")])
def test_a_form_with_binary_operands_serves_too(name, io):
    p = 2**61 - 1
    core = engine(name, p, bits=40, threads=2, io=io)
    pairs = [(p - 1, 2**40 - 1), (12345678901234567, 2**39 + 5)]
    assert core.simulate(core.fitted, 0, pairs).powers == [pow(base, exponent, p) for base, exponent in pairs]


def test_powers_of_powers():
    core = engine("montgomery-array", width=64, bits=64, window=4, threads=1)
    x = y = 3
    for step in range(20):
        (x,) = core.simulate(core.fitted, 0, [(x, 2**64 - 1 - step)]).powers
        y = pow(y, 2**64 - 1 - step, core.fitted.p)
        assert x == y


def test_enough_threads_keep_the_multiplier_busy():
    """As many powers as the multiplier has room for take hardly longer than one."""
    one, many = (engine("montgomery-array", width=160, bits=64, threads=threads) for threads in (1, 0))
    assert many.layout.threads > 10
    rnd = random.Random(7)
    cycles = []
    for core in (one, many):
        pairs = [(rnd.randrange(core.fitted.p), rnd.getrandbits(64)) for _ in range(core.layout.threads)]
        cycles += core.simulate(core.fitted, 0, pairs).cycles
    assert cycles[1] < 1.25 * cycles[0]


@pytest.mark.slow
def test_an_exponentiation_of_1024_bits_takes_less_than_ten_seconds():
    core = engine("radix64k-mul", width=1024, bits=1024, threads=1)
    p = core.fitted.p
    pair = 2**1023 % p, (1 << 1024) - 1
    core.simulate(core.fitted, 1, [(3, 65537)])  # compiles
    start = time.monotonic()
    assert core.simulate(core.fitted, 0, [pair]).powers == [pow(*pair, p)]
    assert time.monotonic() - start < 10


def test_digits_in_banks_of_their_own():
    """More than 1,024 words of digits: each thread's are read back from where they were written."""
    layout = toy_layout(fixed_window(1), 60, bits=300)
    assert layout.digit_depth > 1024
    simulator = WordSimulator(verilog(machine(layout), "engine"), 16, top="engine")
    p, rnd = 4093, random.Random(8)
    for bits in (300, 40):
        pairs = [(rnd.randrange(p), rnd.getrandbits(bits)) for _ in range(60)]
        run = simulator.run(layout.setup(contract(p)) + layout.power_job(0, pairs, bits), 60 * layout.number_words)
        assert layout.numbers(run.words, p) == [pow(base, exponent, p) for base, exponent in pairs]


def test_the_first_job_after_a_reset_takes_the_predicted_cycles():
    """Whenever it comes, also without SETUP, although the multiplier accepts no operands for many cycles."""
    core = engine("pseudo-mersenne", 2**57 - 1, settings={"streams": 11}, window=1, threads=1, word=64)
    job, setup = core.message(core.fitted.p, 0, 1, [(3, 1)]), core.setting(core.fitted).words
    simulator = WordSimulator(core.verilog, core.word, top=core.top)
    assert core.multiplier.period * core.fitted.starts > core.timing.alignment
    for first in range(10 * core.multiplier.period):
        for before in ([], setup):
            words = [*before, *job.words]
            run = simulator.run(words, 1, start=Start(1, first))
            assert run.valid[0] - run.accepted[len(words) - 1] == job.cycles


def test_few_threads_get_longer_issue_slots_rather_than_empty_instructions():
    """At most 5 % slower than the shortest issue slots with empty instructions. If each step needs the one before, an
    issue slot lasts as long as a product; the ladder, whose products of a bit overlap, has shorter ones."""
    fitted = design("montgomery-array").fit(2**160 - 47, loadable=True)
    c, core = fitted.contract("native"), fitted.core("native")
    shortest = MachineTiming(c, 0, core.period, core.lead)
    for threads in (1, 2, 5, 23):
        for program in (fixed_window(3), ladder()):
            power = Exponentiation(program, c, 64)
            layout = power_layout([power], shortest, threads)
            plain = MicrocodeLayout(
                (power.instructions(shortest.distances(threads)[0]),), shortest, threads, counted=True
            )
            taken, most = (
                beat.cycles(x.programs[0].instructions, threads)
                for beat, x in ((layout.timing, layout), (shortest, plain))
            )
            assert taken <= most * 1.05
            if program.name.startswith("window"):
                assert layout.distance == 1 and layout.programs[0].instructions == power.products
    alone = power_layout([Exponentiation(ladder(), c, 64)], shortest, 1)
    assert alone.distance > 1 and alone.programs[0].instructions > alone.programs[0].products


def test_threads_are_as_many_as_fit_the_memory():
    """A window of 6 bits takes 66 slots a thread: of the threads that would keep the multiplier busy not all fit."""
    busy = engine("montgomery-array", width=160, bits=40, window=3).layout.threads
    core = engine("montgomery-array", width=160, bits=40, window=6)
    assert busy > core.layout.threads == (1024 - core.layout.constants) // core.layout.slots
    one_instruction = core.layout.timing.issue_cycles * core.layout.threads
    assert (
        one_instruction * core.layout.distance
        >= core.contract.timing.latency
        > (core.layout.distance - 1) * one_instruction
    )


def test_what_does_not_fit_is_refused():
    c = contract(4093)
    beat = MachineTiming(c, 0)
    window, power = Exponentiation(fixed_window(3), c, 10), Exponentiation(left_to_right(17), c, 5)
    instructions = window.instructions()
    for make, why in [
        (lambda: power_layout([window], beat, 0), "at least 1 thread, got 0"),
        (lambda: power_layout([window], beat, 1, 65), "16 to 64 bits, not 65"),
        (lambda: power_layout([window], beat, 1, 8), "16 to 64 bits, not 8"),
        (
            lambda: power_layout([Exponentiation(fixed_window(8), c, 10)], beat, 4),
            "258 slots of 4 threads and 2 constants do not fit 1024",
        ),
        (
            lambda: MicrocodeLayout((replace(instructions, passes=4499),), beat, 60, counted=True),
            "digits of 60 threads fill 67560 words; 16384 are available",
        ),
        (
            lambda: MicrocodeLayout((replace(instructions, passes=70000),), beat, 1),
            "70000 passes; at most 65535 are possible",
        ),
        (lambda: power_layout([window, power], beat, 2).power_job(0, [(1, 1)]), "does 2 runs at once, not 1"),
        (lambda: power_layout([window, power], beat, 1).power_job(0, [(1, 1)], 11), "at most 10 bits, got 11"),
        (lambda: power_layout([window], beat, 1).job(0, [([0] * 3, (1,))], 0), "does 3 passes, not 0"),
        (lambda: engine("sor-2m", width=61), "sor-2m has its modulus built in"),
        (lambda: engine("montgomery-array", width=64, method="sliding").layout, "one of window, ladder, not 'sliding'"),
        (lambda: engine("montgomery-array", width=64).at(2**64 + 1), "2\\^64"),
    ]:
        with pytest.raises(UnsupportedError, match=why):
            make()


def test_a_modulus_that_needs_more_subtractions_is_refused():
    layout = toy_layout(fixed_window(3), 1)
    assert layout.subtractions == 1
    bound = Fraction(20005, 10000)
    plain = Contract(**{f.name: getattr(contract(4093), f.name) for f in fields(Contract)})
    loose = replace(plain, gain=Fraction(0), result_bound=bound, operand_bound=bound, product_bound=bound**2)
    with pytest.raises(UnsupportedError, match="needs 2 subtractions of p at the end; the engine has 1"):
        layout.setup(loose)


def test_the_rtl_depends_on_the_width_of_the_modulus_only():
    texts = set()
    for p in (2**61 - 1, 2**60 + 33):
        core = engine("montgomery-array", p, settings={"loadable": True}, threads=1)
        texts.add(core.verilog)
    assert len(texts) == 1
    assert design("montgomery-array").fit(2**61 - 1, loadable=True).load is not None
