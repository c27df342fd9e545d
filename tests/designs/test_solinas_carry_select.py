# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The addition in chunks: all carries between them, and the carry out."""

import random

import pytest
from amaranth.hdl import Module, Signal

from components import run_bench
from modmill.designs.solinas.carry_select import LATENCY, carry_select_sum


@pytest.mark.parametrize("with_out", [False, True])
@pytest.mark.parametrize("carry", [0, 1])
@pytest.mark.parametrize(("width", "chunk"), [(12, 3), (13, 4), (34, 34), (70, 17)])
def test_sums(width, chunk, carry, with_out):
    m = Module()
    a, b = Signal(width), Signal(width)
    total, out = carry_select_sum(m, a, b, carry, chunk, "z", out=with_out)
    rnd = random.Random(width)
    top = (1 << width) - 1
    pairs = [(top, 0), (top, 1), (top - 1, 1), (0, 0), (top, top), (top ^ 1 << chunk - 1, 0), (top ^ 1, 1)]
    pairs += [(x, top - x) for x in (rnd.getrandbits(width) for _ in range(20))]
    pairs += [(rnd.getrandbits(width), rnd.getrandbits(width)) for _ in range(40)]
    found = []

    async def bench(ctx):
        for k, (x, y) in enumerate([*pairs, *[(0, 0)] * LATENCY]):
            ctx.set(a, x)
            ctx.set(b, y)
            if k >= LATENCY:
                found.append((ctx.get(total), ctx.get(out)))
            await ctx.tick()

    run_bench(m, bench)
    assert found == [((x + y + carry) & top, (x + y + carry) >> width if with_out else 0) for x, y in pairs]
