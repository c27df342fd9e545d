# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Places of a ring have all their turn; a serial counter counts, one bit after another."""

import random

import pytest
from amaranth.hdl import Const, Module, Signal

from components import run_bench, waveform
from modmill.rtl.counting import SerialCounter, following


@pytest.mark.parametrize("bits", range(2, 12))
def test_each_place_has_its_turn(bits):
    m, place = Module(), Signal(bits)
    m.d.sync += place.eq(following(place))
    seen = waveform(m, [()] * (2 << bits), place)
    assert sorted(seen[: 1 << bits]) == list(range(1 << bits)) and seen[: 1 << bits] == seen[1 << bits :]


def counted(bits, pauses):
    """The values of a counter after each of its counts, and the longest time for which it was busy."""
    m = Module()
    counter = SerialCounter(m, bits, "jobs")
    values, times = [], []

    async def bench(ctx):
        for pause in pauses:
            ctx.set(counter.count, 1)
            await ctx.tick()
            ctx.set(counter.count, 0)
            values.append(ctx.get(counter.value))
            times.append(0)
            while ctx.get(counter.busy):
                await ctx.tick()
                times[-1] += 1
                assert ctx.get(counter.value) == values[-1]
            for _ in range(pause):
                await ctx.tick()

    run_bench(m, bench)
    return values, max(times)


@pytest.mark.parametrize("bits", [4, 8, 32])
def test_it_counts(bits):
    rnd = random.Random(bits)
    values, most = counted(bits, [rnd.choice([0, 0, 1, 7]) for _ in range(300)])
    assert values == [k % (1 << bits) for k in range(1, 301)] and most == bits


def test_a_carry_that_is_lost_is_noticed(monkeypatch):
    monkeypatch.setattr("modmill.rtl.counting.Mux", lambda *_: Const(1))
    assert counted(8, [0] * 20)[0] != list(range(1, 21))


def test_other_widths_are_refused():
    with pytest.raises(ValueError, match="not 12"):
        SerialCounter(Module(), 12, "jobs")
