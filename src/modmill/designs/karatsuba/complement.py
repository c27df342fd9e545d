# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Two products by constants in the blocks of one: the low half of one, and the high half of the other.

    low half    columns c < n of a f           digits q: q = a f mod 2^(17 n)
    high half   columns n + c of q g           digits v: v = floor(q g / 2^(17 n)), and numbers that are added

The pairs of digits of `Columns` belong to one half each. So block e multiplies sums of digits of a and f where the pair
belongs to the low half, and of q and g where it belongs to the high one. The digits of q enter `second` (n) cycles
after those of a, while a product that came earlier has its a there. Squares have a block for each half.

The carry out of the low half of q g: the r whose quotient q is has r + q g = 0 (mod 2^(17 n)). Let T_k be the digits of
r, P_k the columns of q g, and c_k the carry into position k of r + q g. Then c_n = (P_(n-1) + T_(n-1) + c_(n-1)) / 2^17
without remainder. So a number less than 2^17 below that sum, divided and rounded up, gives c_n. P_(n-1) is made in a
block of its own; for c_(n-1) the highest bits of the digits in P_(n-2) suffice, and for T_(n-1) its highest bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import mul
from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value

from modmill.designs.karatsuba.product import DIGIT, LONG, TILE, Columns, largest, made, read
from modmill.designs.karatsuba.tables import Table, multiples
from modmill.rtl.delay import DelayLines, later
from modmill.rtl.mux_adder import chosen_sum
from modmill.rtl.product import carry_save, one_tile

MODULUS = "q_square"
"""Name of the product that multiplies each digit of q by that of g, which is the modulus."""


def quotient_at(n: int) -> int:
    """Cycle in which digit 0 of q is in its register."""
    return read(n) + 3


def second(n: int) -> int:
    """Cycles from the digits of a to those of q in the lines."""
    return -(-(quotient_at(n) + 1) // n) * n


def carried_at(n: int) -> int:
    """Cycle in which the carry is in its register, from the digits of q on."""
    return n // 2 + n + 8


def corner_bits(n: int) -> int:
    """Bits of the digits that bound c_(n-1) closely enough."""
    b = 1
    while ((n - 1) << DIGIT + 1 - b) + (1 << DIGIT - 1) + n + 3 + (2 * b > DIGIT) > 1 << DIGIT:
        b += 1
    return b


def aligned(below: Any, b: int) -> Any:
    """floor(``below`` 2^(17 - 2 b)), for a sum of products of the highest ``b`` bits of digits."""
    return below << DIGIT - 2 * b if 2 * b <= DIGIT else below >> 2 * b - DIGIT


def bound_of_sum(q: int, r: int, p: int, n: int) -> int:
    """The bound of P_(n-1) + T_(n-1) + c_(n-1) from below that `Complement` makes, for r + q p = 0 (mod 2^(17 n))."""
    b, digits = corner_bits(n), [[number >> DIGIT * k & (1 << DIGIT) - 1 for k in range(n)] for number in (q, p)]
    corner = sum(map(mul, digits[0], reversed(digits[1])))
    below = sum(map(mul, *([digit >> DIGIT - b for digit in number] for number in (digits[0], digits[1][-2::-1]))))
    return corner + aligned(below, b) + (r >> DIGIT * n - 1 << DIGIT - 1)


def low_cycles(n: int, e: int) -> list[int]:
    """The cycles, from that of the lowest digit on, in which block e has a pair of the low half."""
    return [*range(e), *range(2 * e, e + n // 2 + 1)]


def constants(n: int, f: Sequence[int], g: Sequence[int]) -> Iterator[Table]:
    """The constants of `Complement`, in cycles after that of the lowest digit of a or q."""
    for e in range(1, n // 2 + 1):
        low = low_cycles(n, e)
        chosen = [f if t in low else g for t in range(n)]
        sums = tuple(digits[t - 2 * e] + digits[t] for t, digits in enumerate(chosen))
        yield Table(f"constant_sum{e}", DIGIT + 1, sums, 1)
    at, b = n // 2 + 2, corner_bits(n)
    for name, digits in (("a_square", f), (MODULUS, g), ("corner", g[::-1])):
        yield Table(f"{name}_constant", DIGIT, tuple(digits), at)
    yield Table("below_constant", b, (*(digit >> DIGIT - b for digit in g[-2::-1]), 0), at - (n >= LONG))


class HalfProducts(Elaboratable):
    """The low half of f a, and the high half of g times its digits, for constants f and g."""

    def __init__(self, m: Module, n: int) -> None:
        self._m, self._n = m, n

    @property
    def latency(self) -> int:
        """Cycles from the lowest digit of a to that of the result."""
        return second(self._n) + read(self._n) + 4

    def elaborate(self, _platform: object) -> Module:
        return self._m


class Complement(Columns):
    """``a``: digit u arrives in cycle u - 1. ``table(name)``: a register with one of `constants`; ``above``: bits of g
    above its digits. ``added``: a number for each digit of v, in cycle `second` + READ - 1 + c.

    ``q``: digit c in cycle `quotient_at` + c; ``v``: in cycle `second` + READ + 3 + c, the highest with all remaining
    bits, ``above_v`` more than a digit.
    Cost: (n - 1) / 2 + 3 blocks; an adder with two multiplexers for each pair block.
    """

    def __init__(
        self, m: Module, a: Value, n: int, above: int | Value, added: Value, *,
        above_v: int, table: Callable[[str], Signal], at: Callable[..., Value],
    ) -> None:  # fmt: skip
        super().__init__(m, n, at)
        waits = second(n) - quotient_at(n) - 1
        self._lines = DelayLines(m, max(n, waits, read(n) - 1 - n), name="constants")
        self._table = table
        self.q = Signal(DIGIT, name="q", reset_less=True)
        entering = self._lines.line(self.q, waits, name="q_waited") if waits else self.q
        self._entering = [a, entering]
        self.taps = [self._taps("a", a), self._taps("q_line", entering)]
        self.squares = [self._product("a_square", 0), self._product(MODULUS, 1)]
        both = self._ordered(Cat(*self._columns()), 0)
        self.in_order: list[Value] = [both[: self._wide], both[self._wide :]]
        """Columns c of a f and n + c of q g in cycle READ + 1 + c after a and after q, without the corrections."""
        self.carry = self._carry()
        self.v = self._digits_of(self._exact(added, above), above_v)

    # ---- pairs and squares

    def _sums(self, e: int) -> tuple[Value, Value]:
        m, n, at = self._m, self._n, self._at
        low = low_cycles(n, e)
        low_before, wrapped_before = (at(*(t - 1 for t in cycles)) for cycles in (low, range(2 * e)))
        pairs = zip(self.taps, self._entering, strict=True)
        others = [Mux(wrapped_before, line[n - 1], digit) for line, digit in pairs]
        a, q = self.taps
        other = later(m, Mux(low_before, *others), f"other{e}")
        total = chosen_sum(m, other, at(*low), a[2 * e], q[2 * e], DIGIT + 1, number=e)
        return later(m, total, f"sum{e}"), self._table(f"constant_sum{e}")

    def _product(self, name: str, which: int) -> Signal:
        """The products of the digits of a or q and a table, that of digit u in cycle u + `made`."""
        at = self._n // 2 + 2
        constant = self._table(f"{name}_constant")
        return later(self._m, one_tile(self._m, self.taps[which][at], constant, TILE, name), f"{name}_product")

    def _with_square(self, hold: Value) -> Value:
        n = self._n
        low = self._at(*(made(n) + u for u in range(n // 2 + 1)))
        a, q = (square << 1 for square in self.squares)
        return chosen_sum(self._m, hold, low, a, q, self._wide, number=0)

    # ---- corrections and carries

    def _exact(self, added: Value, above: int | Value) -> list[Value]:
        """Columns c and n + c in cycle READ + 2 + c; the higher ones with what is added."""
        m, n, at, wide = self._m, self._n, self._at, self._wide
        start = read(n)
        bits = largest(n)[1].bit_length()
        waited, sums = [], []
        for name, square in zip("aq", self.squares, strict=True):
            total = Signal(bits, name=f"{name}_D_total")
            running = Signal(bits, name=f"{name}_D_running", reset_less=True)
            m.d.comb += total.eq(running + square)
            m.d.sync += running.eq(total)
            with m.If(at(made(n) + n - 1)):
                m.d.sync += running.eq(0)
            sums.append(later(m, later(m, total, f"{name}_D_sum"), f"{name}_D_sum_later"))
            waited.append(self._lines.line(sums[-1], n, name=f"{name}_D_waited"))
        whole = Signal(bits, name="q_D_whole", reset_less=True)
        with m.If(at(start - 2)):
            m.d.sync += whole.eq(sums[1])
        if not isinstance(above, int) or above:
            q = self._lines.line(self.taps[1][n], start - 1 - n, name="q_above")
            added = sum((value << k for k, value in multiples(q, above)), added)
        less, more = (Signal(wide, name=name, reset_less=True) for name in ("q_D_less", "more"))
        m.d.sync += [less.eq(waited[1] - whole), more.eq(less + later(m, added, "added"))]
        exact = [Signal(wide, name=f"{name}_exact", reset_less=True) for name in ("low", "high")]
        low, high = self.in_order
        m.d.sync += [
            exact[0].eq(low - later(m, later(m, waited[0], "a_D_later"), "a_D_last")),
            exact[1].eq(high + more),
        ]
        return exact

    def _carry(self) -> Signal:
        """c_n, in cycle `carried_at` for n cycles."""
        m, n, at = self._m, self._n, self._at
        b, tap = corner_bits(n), n // 2 + 2
        column = self._summed(self._product("corner", 1), made(n), "corner")
        tops = self._table("below_constant")
        top = self.taps[1][tap - (n >= LONG)][DIGIT - b :]
        rows: list[Value] = [Cat(Const(0, k), top & tops[k].replicate(b)) for k in range(len(tops))]
        if n >= LONG:  # more bits, and a cycle more for them
            parts = (carry_save(m, rows[k : k + 3], 2 * b, f"below_part{k}") for k in range(0, b, 3))
            rows = [later(m, part, f"below_parts{k}") for k, part in enumerate(parts)]
        below = later(m, carry_save(m, rows, 2 * b, "below_rows"), "below")
        bound = later(m, self._summed(below, tap + 1, "below"), "below_later")
        both = later(m, column + aligned(bound, b), "corner_both")
        highest: Value = self.taps[0][0][DIGIT - 1]
        last = made(n) + n - 1
        for k in range(1 + (second(n) + last) // n):  # of T_(n-1), through a register for each period
            kept = Signal(name=f"highest{k}", reset_less=True)
            with m.If(at(last if k else n - 1)):
                m.d.sync += kept.eq(highest)
            highest = kept
        return later(m, (both + Cat(Const((1 << DIGIT - 1) - 1, DIGIT - 1), ~highest, highest))[DIGIT:], "corner_carry")

    def _summed(self, product: Value, first: int, name: str) -> Signal:
        """The sum of ``product`` in the n cycles from ``first`` on; it is there from cycle ``first`` + n on."""
        m, n = self._m, self._n
        width = ((1 << len(product)) * n).bit_length()
        total = Signal(width, name=f"{name}_total")
        running, whole = (Signal(width, name=f"{name}_{word}", reset_less=True) for word in ("running", "whole"))
        m.d.comb += total.eq(running + product)
        m.d.sync += running.eq(total)
        with m.If(self._at(first + n - 1)):
            m.d.sync += [running.eq(0), whole.eq(total)]
        return whole

    def _digits_of(self, exact: Sequence[Value], above_v: int) -> Signal:
        """The digits of q and of v."""
        m, wide = self._m, self._wide
        ends = self._at(read(self._n) + self._n + 1)
        v = Signal(DIGIT + above_v, name="v", reset_less=True)
        for name, value, following in (("low", exact[0], Const(0)), ("high", exact[1], self.carry)):
            carry, sum_ = Signal(wide - DIGIT, name=f"{name}_carry", reset_less=True), Signal(wide, name=f"{name}_sum")
            m.d.comb += sum_.eq(value + carry)
            m.d.sync += carry.eq(Mux(ends, following, sum_ >> DIGIT))
            m.d.sync += self.q.eq(sum_) if name == "low" else v.eq(Mux(ends, sum_, sum_[:DIGIT]))
        return v
