# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The full product by pairs of digits, in Amaranth's simulator."""

import random

import pytest
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from components import run_bench
from modmill.designs.karatsuba.product import (
    DIGIT,
    DIGITS_MIN,
    HIGHEST,
    FoldedProduct,
    KaratsubaProduct,
    folded,
    out,
    strobes,
)  # fmt: skip


class Block(wiring.Component):
    """The product with a phase of its own: digit u is at the ports in phase u."""

    def __init__(self, n, C=0):
        self._n, self._C = n, C
        super().__init__({
            "x": In(HIGHEST), "y": In(HIGHEST), "low": Out(DIGIT), "high": Out(HIGHEST), "phase": Out(range(n)),
        })  # fmt: skip

    def elaborate(self, _platform):
        m = Module()
        phase = Signal(range(self._n))
        m.d.sync += phase.eq(Mux(phase == self._n - 1, 0, phase + 1))
        at = strobes(m, phase, self._n, -1)
        if self._C:
            product = FoldedProduct(m, self.x, self.y, self._n, at, self._C)
        else:
            product = KaratsubaProduct(m, self.x, self.y, self._n, at)
        m.d.comb += [self.low.eq(product.low), self.high.eq(product.high), self.phase.eq(phase)]
        return m


def digits(x, n):
    return [x >> DIGIT * j & ((1 << DIGIT) - 1 if j < n - 1 else -1) for j in range(n)]


def halves(x, y, n):
    """The sums of the lower columns, and of the higher ones."""
    a, b = digits(x, n), digits(y, n)
    columns = [sum(a[i] * b[k - i] for i in range(max(0, k - n + 1), min(k, n - 1) + 1)) for k in range(2 * n)]
    return (sum(v << DIGIT * k for k, v in enumerate(part)) for part in (columns[:n], columns[n:]))


@pytest.mark.parametrize(
    ("n", "C"),
    [*((n, 0) for n in (5, 7, 9, 15, 17, 31)), (5, 2), (7, 64), (15, 19), (11, 3), (31, 2**17 - 1), (9, 0x5555)],
)
def test_products(n, C):
    rnd = random.Random(n)
    top = (1 << DIGIT * n) + (1 << DIGIT * (n - 1)) - 1
    special = [0, 1, top, (1 << DIGIT * n) - 1, int("01" * (DIGIT * n // 2), 2), 1 << DIGIT * (n - 1)]
    pairs = [(x, y) for x in special for y in special[:3]] + [
        (rnd.randrange(top), rnd.randrange(top)) for _ in range(6)
    ]
    found = []

    async def bench(ctx):
        low, high = [], []
        start = folded(n, C) if C else out(n)
        for t in range(n * len(pairs) + start + n):
            number, u = divmod(t, n)
            assert ctx.get(block.phase) == u
            x, y = pairs[number] if number < len(pairs) else (0, 0)
            ctx.set(block.x, digits(x, n)[u])
            ctx.set(block.y, digits(y, n)[u])
            if t >= start + 1:
                low.append(ctx.get(block.low))
                high.append(ctx.get(block.high))
                if len(low) == n:
                    found.append(sum(d << DIGIT * j for j, d in enumerate(low + high)))
                    low.clear()
                    high.clear()
            await ctx.tick()

    block = Block(n, C)
    run_bench(block, bench)
    for (x, y), value in zip(pairs, found, strict=False):
        low, high = halves(x, y, n)
        assert value == (low + C * high if C else x * y)
    assert len(found) >= len(pairs)


@pytest.mark.parametrize("n", [DIGITS_MIN - 2, DIGITS_MIN + 1])
def test_refusals(n):
    with pytest.raises(ValueError, match=f"odd and at least {DIGITS_MIN}, not {n}"):
        KaratsubaProduct(Module(), Signal(17), Signal(17), n, None)
