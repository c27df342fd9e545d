# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The full product by pairs of digits, in Amaranth's simulator."""

import random
from functools import cache

import pytest
from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from components import run_bench
from modmill.contract import UnsupportedError
from modmill.designs import design
from modmill.designs.karatsuba.design import ABOVE_MOST
from modmill.designs.karatsuba.halves import Halves, digits_at
from modmill.designs.karatsuba.product import DIGIT, DIGITS_MIN, FoldedProduct, folded, largest


class Block(wiring.Component):
    """The product with a phase of its own: digit u is at the ports in phase u. With C folded, else in two halves, for
    operands with ``above`` bits above their digits."""

    def __init__(self, n, C=0, above=1):
        self._n, self._C, self._above = n, C, above
        super().__init__({
            "x": In(DIGIT + above), "y": In(DIGIT + above), "phase": Out(range(n)), "low": Out(DIGIT),
            "high": Out(DIGIT + 2 * above), "carry": Out(DIGIT),
        })  # fmt: skip

    def elaborate(self, _platform):
        m = Module()
        phase = Signal(range(self._n))
        m.d.sync += phase.eq(Mux(phase == self._n - 1, 0, phase + 1))

        @cache
        def strobe(hit):
            """Registered; digit 0 is in its first register in cycle 0, which is phase 1."""
            made = Signal(init=int(-1 % self._n in hit))
            m.d.sync += made.eq(Cat(*(phase == c for c in sorted(hit))).any())
            return made

        def at(*cycles):
            return strobe(frozenset(c % self._n for c in cycles))

        if self._C:
            product = FoldedProduct(m, self.x, self.y, self._n, at, self._C)
        else:
            product = Halves(m, self.x, self.y, self._n, at, self._above)
            m.d.comb += self.carry.eq(product.carry)
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
    ("n", "C", "above"),
    [
        *((n, 0, above) for n, above in ((5, 1), (7, 4), (9, 0), (15, 2), (17, 3), (31, 1), (5, ABOVE_MOST), (7, 9))),
        *((n, C, 1) for n, C in ((5, 2), (7, 64), (15, 19), (11, 3), (31, 2**17 - 1), (9, 0x5555))),
    ],
)
def test_products(n, C, above):
    """With C: low + C high; else both halves, with the rest of the low one n cycles later."""
    rnd = random.Random(n)
    top = (1 << DIGIT * n) + (1 << DIGIT * (n - 1)) - 1 if C else (1 << DIGIT * n + above) - 1
    special = [0, 1, top, (1 << DIGIT * n) - 1, int("01" * (DIGIT * n // 2), 2), 1 << DIGIT * (n - 1)]
    pairs = [(x, y) for x in special for y in special[:3]] + [
        (rnd.randrange(top), rnd.randrange(top)) for _ in range(6)
    ]
    seen = []

    async def bench(ctx):
        start = folded(n, C) if C else digits_at(n)
        for t in range(n * (len(pairs) + 1) + start + n):
            number, u = divmod(t, n)
            assert ctx.get(block.phase) == u
            x, y = pairs[number] if number < len(pairs) else (0, 0)
            ctx.set(block.x, digits(x, n)[u])
            ctx.set(block.y, digits(y, n)[u])
            if t >= start + 1:
                seen.append([ctx.get(port) for port in (block.low, block.high, block.carry)])
            await ctx.tick()

    block = Block(n, C, above)
    run_bench(block, bench)

    def number(product, port, count=n, later=0):
        return sum(one[port] << DIGIT * j for j, one in enumerate(seen[n * (product + later) :][:count]))

    for k, (x, y) in enumerate(pairs):
        low, high = halves(x, y, n)
        if C:
            assert number(k, 0) + (number(k, 1) << DIGIT * n) == low + C * high
        else:
            whole = number(k, 0) + (number(k, 2, 2, later=1) << DIGIT * n)
            assert whole == next(iter(halves(*(v % (1 << DIGIT * n) for v in (x, y)), n)))
            assert whole + (number(k, 1) << DIGIT * n) == x * y


@pytest.mark.parametrize("n", [DIGITS_MIN - 2, DIGITS_MIN + 1])
def test_refusals(n):
    with pytest.raises(ValueError, match=f"odd and at least {DIGITS_MIN}, not {n}"):
        Halves(Module(), Signal(17), Signal(17), n, None, 0)


@pytest.mark.parametrize(
    ("p", "settings", "dsp", "interval"),
    [
        (2**61 - 1, {}, 3, 10), (2**107 - 1, {}, 4, 7), (2**127 - 1, {}, 5, 9), (2**127 - 1, {"above": 8}, 5, 9),
        (2**127 - 1, {"above": 9}, 4, 7), (2**127 - 1, {"above": 10, "spare": 2}, 4, 7),
        (2**127 - 1, {"above": 9, "spare": 10}, 5, 9), (2**128 - 159, {"above": 10}, 4, 7), (2**255 - 19, {}, 8, 15),
    ],
)  # fmt: skip
def test_every_slot_is_used_from_seven_digits_on(p, settings, dsp, interval):
    """Few digits leave in rows of four; with more bits above its digits a number has two digits less."""
    fitted = design("karatsuba").fit(p, **settings)
    assert (fitted.cost.dsp, fitted.schedule.interval) == (dsp, interval)
    assert fitted.params.operand_bits >= p.bit_length() + settings.get("spare", 0)
    top = fitted.params.limit - 1
    assert dict(fitted.trace(top, top))["v"] % p == top * top % p


def test_the_most_bits_above_the_digits_fit_a_column():
    assert DIGIT + 2 * ABOVE_MOST < largest(DIGITS_MIN)[0].bit_length() <= DIGIT + 2 * (ABOVE_MOST + 1)
    with pytest.raises(UnsupportedError, match=f"above takes .* {ABOVE_MOST}, not {ABOVE_MOST + 1}"):
        design("karatsuba").fit(2**127 - 1, above=ABOVE_MOST + 1)
