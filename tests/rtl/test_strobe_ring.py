# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Strobes from a ring of registers are high in their cycles, from the reset on."""

import random

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal

from components import run_bench
from modmill.rtl.strobe_ring import StrobeRing

INTERVAL = 11


def test_strobes_are_high_in_their_cycles():
    rnd = random.Random(3)
    sets = [range(INTERVAL), [4], [0], [-1, 0], [10, 11, 12], [3, 5, 7], [0, 1, 2, 3, 7, 8, 10]]
    sets += [rnd.sample(range(-20, 40), rnd.randrange(1, 10)) for _ in range(40)]
    m, rst = Module(), Signal()
    phase, first = Signal(range(INTERVAL)), Signal(init=1)
    m.d.sync += [phase.eq(Mux(phase == INTERVAL - 1, 0, phase + 1)), first.eq(phase == INTERVAL - 1)]
    ring = StrobeRing(m, INTERVAL, first)
    found = Cat(*(ring.any(*cycles) for cycles in sets))
    seen = []

    async def bench(ctx):
        for cycle in range(300):
            ctx.set(rst, cycle > 100 and rnd.randrange(20) == 0)
            seen.append((ctx.get(phase), ctx.get(found)))
            await ctx.tick()

    run_bench(ResetInserter(rst)(m), bench)
    for at, strobes in seen:
        wanted = [at in {cycle % INTERVAL for cycle in cycles} for cycles in sets]
        assert [strobes >> k & 1 == 1 for k in range(len(sets))] == wanted
    assert len({at for at, _ in seen}) == INTERVAL
