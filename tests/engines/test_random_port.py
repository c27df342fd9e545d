# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Health tests of random words: their cutoffs against fractions, and their circuit on good and bad sources."""

import random
from fractions import Fraction
from math import comb

import pytest
from amaranth.hdl import ClockDomain, Module

from components import run_bench
from modmill.contract import UnsupportedError
from modmill.engines.machine import random_port
from modmill.engines.machine.random_port import ENTROPY, FALSE_ALARM, WAIT, WINDOW, HealthTests, RandomPort

ALARMS = ("repeated", "frequent", "missing", "torn")


def chance(count, entropy):
    """The probability that ``count`` words of a window, or more, are equal to its first one."""
    p, others = Fraction(1, 2**entropy), WINDOW - 1
    return sum(comb(others, k) * p**k * (1 - p) ** (others - k) for k in range(count - 1, others + 1))


@pytest.mark.parametrize("entropy", [1, 7, 16])
def test_cutoffs_are_the_least_with_the_stated_probability(entropy):
    tests, most = HealthTests(entropy), Fraction(1, 2**FALSE_ALARM)
    assert chance(tests.proportion, entropy) <= most < chance(tests.proportion - 1, entropy)
    row = Fraction(1, 2**entropy) ** (tests.repetition - 1)
    assert row <= most < row * 2**entropy


def test_cutoffs_are_those_of_the_standard_or_one_more():
    """SP 800-90B, Section 4.4.2: 1 + critbinom(W, 2^-H, 1 - alpha)."""
    for entropy in (*ENTROPY[:8], 16, ENTROPY[-1]):
        values, tail, critical = 2**entropy, 0, WINDOW  # the tail times values^WINDOW
        while (
            tail := tail + comb(WINDOW, critical) * (values - 1) ** (WINDOW - critical)
        ) << FALSE_ALARM <= values**WINDOW:
            critical -= 1
        assert HealthTests(entropy).proportion - (1 + critical) in (0, 1)


@pytest.mark.parametrize("entropy", [0, 33])
def test_another_entropy_is_refused(entropy):
    with pytest.raises(UnsupportedError, match=f"1 to 32 bits of entropy, not {entropy}"):
        HealthTests(entropy)


def alarms(words, entropy):
    """For each alarm the number of words that were taken before it, None if it never rises; all words are taken."""
    dut, found = RandomPort(HealthTests(entropy)), dict.fromkeys(ALARMS)

    async def bench(ctx):
        ctx.set(dut.take, 1)
        for taken, word in enumerate([*words, None, None, None]):
            ctx.set(dut.random_valid, word is not None)
            ctx.set(dut.random_data, word or 0)
            await ctx.tick()
            for name in ALARMS:
                if found[name] is None and ctx.get(getattr(dut, name)):
                    found[name] = taken  # a test fails two cycles after the word, so the next one is taken

    run_bench(dut, bench)
    return found


def fresh(count, seed=1):
    rnd = random.Random(seed)
    return [rnd.getrandbits(32) for _ in range(count)]


NONE = dict.fromkeys(ALARMS)


@pytest.mark.parametrize("entropy", [1, 4, 32])
def test_a_stuck_source_raises_both_tests_at_their_cutoffs(entropy):
    """The row begins behind good words, the count of equal words with a window."""
    tests, before = HealthTests(entropy), fresh(WINDOW)
    found = alarms([*before, *[7] * (tests.proportion + 4)], entropy)
    assert found == {**NONE, "repeated": WINDOW + tests.repetition, "frequent": WINDOW + tests.proportion}


def test_a_biased_source_raises_the_proportion_alone():
    """Three words of four are equal, or every second one: no row is long enough."""
    often = [7 if k % 4 < 3 else word for k, word in enumerate(fresh(WINDOW))]
    found = alarms(often, 1)
    assert found["repeated"] is None and found["frequent"] == 1 + (HealthTests(1).proportion - 1) * 4 // 3
    second = [7 if k % 2 == 0 else word for k, word in enumerate(fresh(20))]
    assert alarms(second, 32) == {**NONE, "frequent": 5}


def test_a_good_source_raises_nothing():
    """Neither do rows and counts that are one short of the cutoffs, nor equal words in different windows."""
    assert alarms(fresh(3 * WINDOW), 32) == NONE
    tests = HealthTests(4)
    row = [7] * (tests.repetition - 1)
    short = [*row, 8, *row, 9, *fresh(WINDOW)]
    assert alarms(short, 4) == NONE
    tests = HealthTests(32)
    part = [7, *fresh(WINDOW - 2), 7]
    assert tests.proportion == 3 and alarms([*part, *part[1:], 7, *fresh(9, 2)], 32) == NONE


def test_a_missing_source_raises_the_alarm_after_the_stated_cycles(monkeypatch):
    assert WAIT == 1 << 16
    monkeypatch.setattr(random_port, "WAIT", 40)
    dut, high = RandomPort(HealthTests(32)), []

    async def bench(ctx):
        ctx.set(dut.take, 1)
        for cycle in range(120):
            ctx.set(dut.random_valid, cycle == 30)
            ctx.set(dut.random_data, cycle)
            high.append(ctx.get(dut.missing))
            await ctx.tick()

    run_bench(dut, bench)
    assert high.index(1) == 30 + 1 + 40 + 1 and all(high[high.index(1) :])


def test_a_reset_does_not_end_a_row_or_a_window():
    """A front resets the machine at an abort."""
    m, domain, dut = Module(), ClockDomain("sync"), RandomPort(HealthTests(32))
    m.domains += domain
    m.submodules += dut
    high = []

    async def bench(ctx):
        ctx.set(dut.take, 1)
        for word in (5, 7, 1, None, 5, None, 2, 5, 0, None, 4, 4, None, 4, 0):
            ctx.set(domain.rst, word is None)
            ctx.set(dut.random_valid, word is not None)
            ctx.set(dut.random_data, word or 0)
            await ctx.tick()
            high.append([name for name in ALARMS if ctx.get(getattr(dut, name))])

    run_bench(m, bench)
    assert high[:8] == [[]] * 8 and high[8] == ["frequent"]
    assert high[9:14] == [[]] * 5 and high[14] == ["repeated"]


def test_no_word_is_taken_when_it_is_not_wanted_or_after_an_alarm():
    dut = RandomPort(HealthTests(32))

    async def bench(ctx):
        ctx.set(dut.random_valid, 1)
        for take, stop, ready in ((0, 0, 0), (1, 0, 1), (1, 1, 0), (0, 1, 0)):
            ctx.set(dut.take, take)
            ctx.set(dut.stop, stop)
            assert (ctx.get(dut.random_ready), ctx.get(dut.there)) == (ready, ready)
            await ctx.tick()

    run_bench(dut, bench)
