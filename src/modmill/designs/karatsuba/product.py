# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The full product of two numbers of n digits, n odd, by Karatsuba's trick for every pair of digits.

    D_u = x_u y_u;  P_(i,j) = (x_i + x_j) (y_i + y_j) = x_i y_j + x_j y_i + D_i + D_j
    column k of x y = sum of P_(i,j) over i < j, i + j = k;  + 2 D_(k/2) if k is even;  - sum of D_i over 0 <= i, k - i < n

That are n squares D and n (n - 1) / 2 pairs: (n + 1) / 2 DSP blocks, each busy in every cycle, take a product every n
cycles. Block e multiplies the digits u - e and u + e modulo n, for all u, and block 0 the squares. All of them belong to
column 2 u modulo n: to the lower one, 2 u mod n, or to the higher one, n above it. The indices of block e wrap around
unless e <= min(u, n - 1 - u). Up to this block the sums belong to one of the two columns, from there on to the other.

    cycle u                  digit u is in the first register of a line through which both operands pass
    cycle u + e              sums of two digits in the input register of block e; for u < e they are those of the
                             product before, because u - e + n and u + e are its digits
    cycle u + e + 5          their product is added to the chain, one register a block
    cycle END + u            both parts of column 2 u
    cycle READ + c           columns c and n + c, through a memory that puts them in order
    cycle OUT + c            digits c and n + c of x y
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.memory import Memory

from modmill.rtl.delay import DelayLines, later
from modmill.rtl.free_running import free_running
from modmill.rtl.product import one_tile

DIGIT = 17
"""Bits of a digit; the sum of two digits fits an operand of a DSP block."""
HIGHEST = DIGIT + 1
"""Bits of the highest digit, which is at most 2^DIGIT."""
DIGITS_MIN = 5
"""Fewest digits."""
TILE = 3
"""Registers of a DSP block."""
SUM = 2 + TILE
"""Cycles from a digit's last register to its product at the chain: the sum, the block, a register behind it."""


def blocks(n: int) -> int:
    """DSP blocks for n digits."""
    return (n + 1) // 2


def end(n: int) -> int:
    """END."""
    return n // 2 + SUM + 2


def read(n: int) -> int:
    """READ."""
    return end(n) + n + 2


def out(n: int) -> int:
    """OUT."""
    return read(n) + n + 3


def made(n: int) -> int:
    """Cycle in which the square of digit 0 is in its register."""
    return n // 2 + SUM + 1


def largest(n: int) -> tuple[int, int]:
    """The largest sum of the P of a column together with 2 D, and the largest sum of all D."""
    top = 1 << DIGIT
    return (n // 2) * (2 * top - 1) ** 2 + 2 * top**2, n * top**2


class KaratsubaProduct:
    """The product of the digits at ``x`` and ``y``, where digit u arrives in cycle u - 1, and all others in between.

    ``at``: returns a registered strobe of the given cycles, modulo n. ``low``, ``high``: digits c and n + c of the
    product in cycle `out` (n) + c. The highest digit of each operand is at most 2^DIGIT, so the highest digit of the
    product has at most HIGHEST bits.
    Cost: `blocks` (n), about 130 LUTs and 200 flip-flops for each.
    """

    def __init__(self, m: Module, x: Value, y: Value, n: int, at: Callable[..., Value]) -> None:
        if n < DIGITS_MIN or n % 2 == 0:
            raise ValueError(f"the number of digits must be odd and at least {DIGITS_MIN}, not {n}")
        self._m, self._n, self._at = m, n, at
        self._lines = DelayLines(m, n + 3, name="columns")
        self.taps = [self._taps(name, digit) for name, digit in (("x", x), ("y", y))]
        wide = largest(n)[0].bit_length()
        self.square = later(m, one_tile(m, self._tap(0, n // 2 + 2), self._tap(1, n // 2 + 2), TILE, "squares"), "D")
        first, rest = self._chain(wide)
        low, high = self._columns(first, rest, wide)
        self._digits(low, high)

    def _taps(self, name: str, digit: Value) -> list[Value]:
        """Register k has the digit of k cycles ago."""
        line: list[Value] = [later(self._m, digit, f"{name}0")]
        for k in range(1, self._n + 1):
            line.append(later(self._m, line[-1], f"{name}{k}"))
        return line

    def _tap(self, operand: int, k: int) -> Value:
        return self.taps[operand][k]

    def _chain(self, wide: int) -> tuple[Value, Value]:
        """Both parts of column 2 u in cycle END + u: with the square, and the rest."""
        m, n, at = self._m, self._n, self._at
        acc: Value = Const(0)
        hold: Value = Const(0)
        for e in range(1, n // 2 + 1):
            wrapped = at(*range(2 * e))
            sums = []
            for name, line in zip("xy", self.taps, strict=True):
                total = Signal(DIGIT + 1, name=f"{name}_sum{e}", reset_less=True)
                m.d.sync += total.eq(Mux(wrapped, line[n], line[0]) + line[2 * e])
                sums.append(total)
            product = later(m, one_tile(m, sums[0], sums[1], TILE, f"pairs{e}"), f"P{e}")
            total = Signal(wide, name=f"total{e}")
            m.d.comb += total.eq(acc + product)
            acc, before = Signal(wide, name=f"acc{e}", reset_less=True), hold
            hold = Signal(wide, name=f"hold{e}", reset_less=True)
            complete = at(2 * e + SUM, n - 1 + SUM)  # of u = e and u = n - 1 - e
            m.d.sync += [acc.eq(Mux(complete, 0, total)), hold.eq(Mux(complete, total, before))]
            if e == 1:  # u = 0 and u = n - 1 have only their square; the others are complete later
                m.d.sync += hold.eq(Mux(at(1 + SUM, n + SUM), 0, total))
        first = Signal(wide, name="first_part", reset_less=True)
        m.d.sync += first.eq(hold + (self.square << 1))
        return first, later(m, acc, "rest_part")

    def _columns(self, first: Value, rest: Value, wide: int) -> tuple[Value, Value]:
        """Columns c and n + c in cycle READ + 1 + c, without the corrections.

        Column 2 u with u <= n / 2: its first part is the lower column of this product, and its rest the higher column
        of the product before.
        """
        m, n, at = self._m, self._n, self._at
        half = n // 2
        lower_first = at(*(end(n) + u for u in range(half + 1)))
        waited = self._lines.line(first, n, name="first_waited")
        low, high = (Signal(wide, name=f"{name}_column", reset_less=True) for name in ("low", "high"))
        m.d.sync += [low.eq(Mux(lower_first, waited, rest)), high.eq(Mux(lower_first, rest, first))]
        m.submodules.order = order = Memory(shape=2 * wide, depth=n, init=[])
        write, port = order.write_port(), order.read_port(domain="comb")
        written, reading = (free_running(range(n), name=name) for name in ("column_written", "column_read"))
        m.d.sync += [
            written.eq(Mux(at(end(n) + half + 1), 1, Mux(written == n - 2, 0, written + 2))),
            reading.eq(Mux(at(read(n) - 1), 0, reading + 1)),
        ]
        m.d.comb += [
            write.addr.eq(written), write.data.eq(Cat(low, high)), write.en.eq(1), port.addr.eq(reading),
        ]  # fmt: skip
        both = later(m, port.data, "columns_in_order")
        self.in_order = [both[:wide], both[wide:]]
        """Columns c and n + c in cycle READ + 1 + c, without the corrections."""
        return both[:wide], both[wide:]

    def _digits(self, low: Value, high: Value) -> None:
        """Subtract the squares, and resolve the carries: ``low`` and ``high``."""
        m, n, at = self._m, self._n, self._at
        squares = largest(n)[1].bit_length()
        total, whole = (Signal(squares, name=name, reset_less=True) for name in ("D_total", "D_whole"))
        m.d.sync += total.eq(Mux(at(made(n)), 0, total) + self.square)
        with m.If(at(made(n) + n)):
            m.d.sync += whole.eq(total)
        square = self._lines.line(self.square, read(n) - made(n), name="D_waited")  # D_c in cycle READ + c
        starts = at(read(n))
        below, above = (Signal(squares, name=name, reset_less=True) for name in ("D_below", "D_above"))
        m.d.sync += [below.eq(Mux(starts, 0, below) + square), above.eq(Mux(starts, whole, above) - square)]
        exact = [Signal(len(low), name=f"{name}_exact", reset_less=True) for name in ("low", "high")]
        m.d.sync += [exact[0].eq(low - below), exact[1].eq(high - above)]
        self.exact = exact
        """Columns c and n + c in cycle READ + 2 + c."""
        waited = self._lines.line(exact[1], n, name="high_waited")
        begins, ends = at(read(n) + 2), at(read(n) + n + 1)
        carries = [Signal(len(low) - DIGIT + 1, name=f"{name}_carry", reset_less=True) for name in ("low", "high")]
        sums = [Signal(len(low) + 1, name=f"{name}_total") for name in ("low", "high")]
        m.d.comb += [
            sums[0].eq(exact[0] + Mux(begins, 0, carries[0])),
            sums[1].eq(waited + Mux(begins, carries[0], carries[1])),  # the high digits follow the low ones
        ]
        digit = Signal(DIGIT, name="low_digit", reset_less=True)
        self.high = Signal(HIGHEST, name="high_digit", reset_less=True)
        m.d.sync += [
            *(carry.eq(one >> DIGIT) for carry, one in zip(carries, sums, strict=True)),
            digit.eq(sums[0]), self.high.eq(Mux(ends, sums[1], sums[1][:DIGIT])),
        ]  # fmt: skip
        self.low = self._lines.line(digit, n, name="low_waited")


def strobes(m: Module, phase: Signal, n: int, offset: int) -> Callable[..., Value]:
    """A function that returns the registered strobe of given cycles. ``phase`` counts the cycles modulo n, and is 0 in
    cycle ``offset``."""

    @cache
    def strobe(hit: frozenset[int]) -> Value:
        made = Signal(name="at_" + "_".join(map(str, sorted(hit))), init=int(0 in hit))
        m.d.sync += made.eq(Cat(*(phase == (c - 1 - offset) % n for c in sorted(hit))).any())
        return made

    return lambda *cycles: strobe(frozenset(c % n for c in cycles))
