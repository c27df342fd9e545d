# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The full product of two numbers of n digits and a few bits above them; the two halves of its columns side by side.

    x = x' + 2^(17 n) a,  y = y' + 2^(17 n) b
    low half   sum of columns c of x' y', c < n
    high half  sum of columns n + c of x' y', + a y' + b x' + 2^(17 n) a b
    x y = low half + 2^(17 n) high half

Let S_c = D_0 + ... + D_c. Column c is the sum of its P less S_c, and column n + c is the sum of its P + S_c - S_(n-1).
"""

from __future__ import annotations

from collections.abc import Callable

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from modmill.designs.karatsuba.product import DIGIT, Pairs, largest, made, read, tree
from modmill.rtl.delay import DelayLines, later

AT_ONCE = 4
"""Numbers of a few bits that are added in one cycle."""


def digits_at(n: int) -> int:
    """Cycle of the lowest digits of both halves."""
    return read(n) + 3


def carry_most(n: int) -> int:
    """The largest low half without its n digits."""
    most = (1 << DIGIT) - 1
    return sum((c + 1) * most**2 << DIGIT * c for c in range(n)) >> DIGIT * n


class Halves(Pairs):
    """``low``, ``high``: digit c of the low half and of the high half in cycle `digits_at` (n) + c, the highest of the
    high half with all remaining bits; ``carry``: digits of the rest of the low half, digit c in cycle
    `digits_at` (n) + n + c.

    ``x``, ``y``: digits, the highest with ``above`` more bits. Cost beyond `Pairs`: eight adders of a column, and for
    each bit above two adders of a digit.
    """

    def __init__(self, m: Module, x: Value, y: Value, n: int, at: Callable[..., Value], above: int) -> None:
        super().__init__(m, x[:DIGIT], y[:DIGIT], n, at)
        start, waits = read(n), read(n) - n - products_latency(above)
        self._lines = DelayLines(m, max(n, waits), name="columns")
        both = self._ordered(Cat(*self._columns()), 0)
        wide = self._wide
        low, high = both[:wide], both[wide:]
        self.in_order: list[Value] = [low, high]
        """Columns c and n + c in cycle READ + 1 + c, without the corrections."""

        # ---- corrections: S_c in cycle READ - 1 + c
        bits = largest(n)[1].bit_length()
        running, whole = (Signal(bits, name=name, reset_less=True) for name in ("D_running", "D_whole"))
        total = Signal(bits, name="D_total")
        m.d.comb += total.eq(running + self.square)
        m.d.sync += running.eq(total)
        with m.If(at(made(n) + n - 1)):
            m.d.sync += running.eq(0)
        sums = later(m, later(m, total, "D_sum"), "D_sum_later")
        with m.If(at(start - 2)):
            m.d.sync += whole.eq(sums)
        waited = self._lines.line(sums, n, name="D_waited")
        less, more = (Signal(wide, name=name, reset_less=True) for name in ("D_less", "more"))
        m.d.sync += [less.eq(waited - whole), more.eq(less)]
        self.above: Value | None = None
        if above:
            self.above = self._products(x, y, above)
            m.d.sync += more.eq(less + self._lines.line(self.above, waits, name="above_waited"))
        exact = [Signal(wide, name=f"{name}_exact", reset_less=True) for name in ("low", "high")]
        m.d.sync += [exact[0].eq(low - later(m, later(m, waited, "D_later"), "D_last")), exact[1].eq(high + more)]
        self.exact: list[Value] = exact
        """Columns c and n + c, with a y_c + b x_c, in cycle READ + 2 + c."""

        # ---- digits of both halves
        ends = at(start + n + 1)
        rest = Signal(carry_most(n).bit_length(), name="low_rest", reset_less=True)
        digits = []
        for name, value, extra in (("low", exact[0], 0), ("high", exact[1], 2 * above)):
            carry = Signal(wide - DIGIT, name=f"{name}_carry", reset_less=True)
            sum_ = Signal(wide, name=f"{name}_total")
            digit = Signal(DIGIT + extra, name=f"{name}_digit", reset_less=True)
            m.d.comb += sum_.eq(value + carry)
            m.d.sync += [carry.eq(sum_ >> DIGIT), digit.eq(Mux(ends, sum_, sum_[:DIGIT]))]
            with m.If(ends):
                m.d.sync += carry.eq(0)
                if name == "low":
                    m.d.sync += rest.eq(sum_ >> DIGIT)
            digits.append(digit)
        self.low, self.high = digits
        self.carry = Signal(DIGIT, name="low_rest_digit", reset_less=True)
        m.d.sync += self.carry.eq(Mux(at(start + n + 2), rest[:DIGIT], rest[DIGIT:]))
        with m.If(at(*(start + n + 2 + c for c in range(2, n)))):
            m.d.sync += self.carry.eq(0)

    def _products(self, x: Value, y: Value, above: int) -> Value:
        """a y_c + b x_c in cycle n + c + `products_latency`, and for the highest digit also a b 2^17."""
        m, n, at = self._m, self._n, self._at
        kept = [Signal(above, name=f"{name}_above", reset_less=True) for name in "xy"]
        tops = [later(m, digit[DIGIT:], f"{name}_top") for name, digit in (("x", x), ("y", y))]
        with m.If(at(n - 1)):
            m.d.sync += [one.eq(top) for one, top in zip(kept, tops, strict=True)]
        a, b = kept
        parts = [Mux(bit, b, 0) << i for i, bit in enumerate(a)]
        while len(parts) > AT_ONCE:
            groups = [parts[k : k + AT_ONCE] for k in range(0, len(parts), AT_ONCE)]
            parts = [later(m, sum(group, Const(0)), f"above_part{k}") for k, group in enumerate(groups)]
        both = Signal(2 * above, name="above_both", reset_less=True)
        m.d.sync += both.eq(sum(parts, Const(0)))
        leaves = []
        for name, top, line in (("x", a, self.taps[1]), ("y", b, self.taps[0])):
            for i, bit in enumerate(top):
                product = Signal(DIGIT, name=f"{name}_above{i}", reset_less=True)
                m.d.sync += product.eq(line[n])
                with m.If(~bit):  # by the reset of the flip-flops, without a LUT
                    m.d.sync += product.eq(0)
                leaves.append(Cat(Const(0, i), product))
        leaves[0] = Cat(leaves[0], Mux(at(2 * n), both, 0))
        return tree(m, [(value, 1, products_latency(above) - 1) for value in leaves], "above")


def products_latency(above: int) -> int:
    """Cycles from digits c of x and y to a y_c + b x_c, for ``above`` bits of a and b."""
    return 1 + (2 * above - 1).bit_length() if above else 0
