# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The plain form of Montgomery multipliers: a b mod p by two products."""

import itertools
import random
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from amaranth.hdl import Array, Cat, Module, Mux, Signal
from bench import operands, run

from components import run_bench
from marks import long
from modmill import twice
from modmill.contract import Binary, Contract, Timing, UnsupportedError
from modmill.cores.multiplier.build import build
from modmill.cores.multiplier.verify import SHORT, Report, verify
from modmill.designs import DESIGNS, design
from modmill.interface import Multiplier
from modmill.twice import Plan, Twice

P, FACTOR = 13, 7


class Slow(Multiplier):
    """A b 7 mod 13 from a table, with this timing; operands are accepted every ``interval`` cycles, in a period of that
    length if there is a lead."""

    def __init__(self, interval, latency, lead):
        self._timing = interval, latency
        super().__init__(4, 4, 4, period=interval if lead else 1, lead=lead)

    def elaborate(self, _platform):
        m = Module()
        interval, latency = self._timing
        table = Array([a * b * FACTOR % P for b in range(16) for a in range(16)])
        wait = Signal(range(interval + 1))
        phase = Signal(range(interval + 1))
        m.d.sync += [phase.eq(Mux(phase == interval - 1, 0, phase + 1)), wait.eq(Mux(wait != 0, wait - 1, 0))]
        early = Signal(self.lead + 1)  # i_valid of the last cycles
        m.d.comb += early[0].eq(self.i_valid)
        if self.lead:
            m.d.sync += early[1:].eq(early[:-1])
            m.d.comb += self.i_ready.eq((phase == 0) & early[-1])
        else:
            m.d.comb += self.i_ready.eq(wait == 0)
        accept = self.i_valid & self.i_ready
        with m.If(accept):
            m.d.sync += wait.eq(interval - 1)
        value, valid = table[Cat(self.i_a, self.i_b)], accept
        for _ in range(latency):
            r, v = Signal(4), Signal()
            m.d.sync += [r.eq(value), v.eq(valid)]
            value, valid = r, v
        m.d.comb += [self.o_r.eq(value), self.o_valid.eq(valid)]
        return m


def once(interval, latency):
    one, form = Fraction(1), Binary(4)
    timing = Timing(latency, interval, -(-latency // interval))
    return Contract(P, FACTOR, "montgomery", form, form, one, one, one, timing)


TIMINGS = [
    (interval, latency, lead)
    for interval, latency in itertools.product(range(1, 6), range(1, 12))
    for lead in {0, interval - 1}
]


@pytest.mark.parametrize(("interval", "latency", "lead"), TIMINGS)
def test_the_second_product_enters_in_the_middle_of_a_period(interval, latency, lead):
    plan = Plan(interval, latency, lead)
    assert plan.second % plan.period == interval and plan.second > latency + lead
    assert plan.second - plan.period <= latency + lead, "a period earlier is too early"
    arrives = latency + plan.period
    assert plan.waits == (arrives < plan.second), "the next number arrives while this one is used"


@pytest.mark.parametrize(
    ("interval", "latency", "lead"),
    [t if t in TIMINGS[::7] or (t[2] and t[1] in (3, 7)) else long(*t) for t in TIMINGS],
)
def test_any_timing_of_the_multiplier(interval, latency, lead):
    """One product after another, and many at once, with pauses and stalls and without."""
    contract = once(interval, latency)
    plain = twice.plain(contract, lead)
    pairs = [(12, 12), (0, 5), (12, 1), *operands(plain, 3 * interval)]
    make = Twice(Slow(interval, latency, lead), contract)
    for (a, b), (r, _, seen) in zip(pairs, run(make, pairs), strict=True):
        assert (r, seen) == (a * b % P, plain.timing.latency)
    for busy, taking in ((1.0, 1.0), (0.5, 0.5)):
        accepted, taken = stream(Twice(Slow(interval, latency, lead), contract), busy, taking)
        assert [r for r, _ in taken] == [a * b % P for a, b, _ in accepted][: len(taken)]
        if taking == 1:
            assert {out - at for (_, _, at), (_, out) in zip(accepted, taken, strict=False)} == {plain.timing.latency}
            assert {y - x for (_, _, x), (_, _, y) in pairwise(accepted)} == {plain.timing.interval}


def stream(core, busy, taking, cycles=300):
    """(a, b, cycle) of the operands that are accepted, and (result, cycle) of the results that are taken; operands are
    offered, and results taken, with these probabilities in each cycle."""
    rnd = random.Random(1)
    accepted, taken = [], []

    async def bench(ctx):
        offered = None
        for cycle in range(cycles):
            if offered is None and rnd.random() < busy:
                offered = rnd.randrange(P), rnd.randrange(P)
            ctx.set(core.i_valid, offered is not None)
            if offered:
                ctx.set(core.i_a, offered[0])
                ctx.set(core.i_b, offered[1])
            ctx.set(core.o_ready, rnd.random() < taking)
            if offered and ctx.get(core.i_ready):
                accepted.append((*offered, cycle))
                offered = None
            if ctx.get(core.o_valid) and ctx.get(core.o_ready):
                taken.append((ctx.get(core.o_r), cycle))
            await ctx.tick()

    run_bench(core, bench)
    assert len(taken) > 10
    return accepted, taken


def montgomery():
    """Each Montgomery multiplier with its smallest modulus of these, and whether it can load others."""
    found = []
    for d in DESIGNS:
        for p in (29, 2**17 - 1):
            try:
                forms = d.fit(p).forms
            except UnsupportedError:
                continue
            if "montgomery" in forms:
                found.append((d.name, p))
            break
    return found


@pytest.mark.parametrize(("name", "p"), montgomery())
def test_every_montgomery_multiplier(name, p):
    """Check: pauses, starts, resets, moduli that are loaded; all operands below 29."""
    core = build(name, p)
    assert core.io == "plain" and core.contract.factor == 1
    report = Report(core.name)
    verify(core, core.verilog, report, effort=SHORT)
    assert report.failures == []
    assert core.multiply(p - 2, p - 3) == 6 % p


def test_a_wrong_square_is_found(monkeypatch):
    """The planted fault: R in place of R^2."""
    monkeypatch.setattr(twice, "square", lambda c: pow(c.factor, -1, c.p))
    core, report = build("iddmm", 29), Report("core")
    verify(core, core.verilog, report, effort=SHORT)
    assert report.failures


def test_a_design_with_a_factor_of_one_does_not_multiply_twice():
    assert build("sor-1m-p", 97, n=12).contract.timing == design("sor-1m-p").fit(97, n=12).binary_timing()
    fitted = design("iddmm").fit(2**32 - 5)
    assert fitted.factor != 1 and fitted.twice
    fitted = design("iddmm").fit(5)  # 2^32 mod 5 is 1
    assert fitted.factor == 1 and not fitted.twice
    assert fitted.contract("plain") == replace(fitted.contract("montgomery"), io="plain")


def test_forms_that_a_design_lacks_are_refused():
    with pytest.raises(UnsupportedError, match="sor-1m-p has no montgomery form; take --io plain or native"):
        build("sor-1m-p", 97, "montgomery", n=12)
    with pytest.raises(UnsupportedError, match="io must be one of plain, montgomery, native, not 'binary'"):
        build("sor-1m-p", 97, "binary", n=12)
