# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Sizes, times and schedule of the products by pairs of digits, and of the folds behind them; the model of both halves.

    folded in the columns   `FoldedParams`: p = 2^k - c of an odd number of digits with a short C (`product`)
    in two halves           `HalvesParams`: any number of digits, and bits above them (`halves`)

The folds of a product in two halves, p = 2^k - c, n digits, m = 17 n; e = max(0, k - m) bits of a number below
2^(m + e) are above its digits; 2^(m + e) = C (mod p):

    x y  = low half + 2^m high half
         = L + 2^m (H + rest)                            L: the digits of the low half; rest: its carry
    v_1  = L + 2^m (H mod 2^e) + floor(H / 2^e) C        the first fold, before rest is known
    v_k  = v mod 2^(m + e) + floor(v / 2^(m + e)) C      v = v_(k - 1), for k = 2 with 2^m rest
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from modmill.designs.karatsuba.halves import carry_most, digits_at, products_latency
from modmill.designs.karatsuba.product import DIGIT, SUM, folded, levels, made, read
from modmill.designs.pseudo_mersenne.serial_fold import SerialFold
from modmill.designs.pseudo_mersenne.shape import Kind as Folds
from modmill.designs.pseudo_mersenne.shape import Params
from modmill.rtl.conditional_subtract import ConditionalSubtract
from modmill.rtl.digit_serial import START, Frame
from modmill.rtl.digits import LANES, Results
from modmill.schedule import Operations, Schedule, Step

MASK = (1 << DIGIT) - 1
ABOVE_MAX = 4
"""Most bits of operands above their digits."""
LANES_MOST = 4
"""Digits of a short result that leave in each cycle."""


class Kind(Operations):
    """The operations of the product, for digit j or k and column c."""

    SQUARE = "D{}"
    COLUMN = "P{}"  # the sums of the P of columns c and n + c, with 2 D
    EXACT = "c{}"  # columns c and n + c
    ABOVE = "above{}"  # a y_j + b x_j, a and b the bits above the digits
    DIGIT = "h{}"  # digit k of the low half, or k - n of the high half
    CARRY = "carry{}"  # digit j of the rest of the low half
    OVER = "o{}"  # digit j of floor(v_1 / 2^m) + rest


def lanes(n: int) -> int:
    """Digits of a result that leave in each cycle, for n digits: more where a result every n cycles asks for it."""
    return next((k for k in (LANES, LANES_MOST) if Results.spacing(n, k) <= n), LANES)


def interval(n: int) -> int:
    """The interval for n digits, the least multiple of n in which results can leave."""
    return -(-Results.spacing(n, lanes(n)) // n) * n


class KaratsubaParams(Params):
    """p = 2^``k`` - ``c`` with an odd number of digits: one product every ``digits`` cycles; with 5 digits every second
    period only, because results take longer to leave."""

    @property
    def starts(self) -> int:
        return 2

    @property
    def lanes(self) -> int:
        return lanes(self.digits)

    @property
    def origin(self) -> int:
        """Cycle after acceptance in which the lowest digits are in the first register of `Pairs`."""
        return 3 - self.digits

    def column_steps(self, late: int = 0) -> Iterator[Step]:
        """The steps up to the columns, which are in order ``late`` cycles after those of `Pairs`."""
        n, squared = self.digits, self.origin + made(self.digits)
        in_order = self.origin + read(n) + 1 + late
        squares = [Kind.SQUARE(u) for u in range(n)]
        for u, square in enumerate(squares):
            yield square.on("squares", squared + u - SUM + 1, SUM - 1, busy=1)
        for c in range(n):
            yield Kind.COLUMN(c).on("pairs", squared + c, in_order - squared, [squares[c // 2]] * (c % 2 == 0), busy=1)
        for c in range(n):
            reads = [Kind.COLUMN(c), *squares[: c + 1]]
            yield Kind.EXACT(c).on("corrections", in_order + c, 1, reads, busy=1)


class FoldedParams(KaratsubaParams):
    """The first fold is in the columns, 1 < C < 2^17."""

    @property
    def limit(self) -> int:
        return (1 << self.n) + (1 << self.n - DIGIT)

    @property
    def before_folds(self) -> tuple[int, ...]:
        low, high = largest_halves(self.digits)
        return (low + self.C * high + 1,)

    @property
    def folding(self) -> int:
        return self.origin + folded(self.digits, self.C)

    def product_steps(self) -> Iterator[Step]:
        late = levels(self.C)
        yield from self.column_steps(late)
        exact = self.origin + read(self.digits) + 2 + late
        for c in range(self.digits):
            begin = exact + c
            yield Folds.FOLD(1, c).on("carries", begin, self.folding + c - begin, [Kind.EXACT(c)], busy=1)


@dataclass(frozen=True)
class HalvesParams(KaratsubaParams):
    """Both halves side by side. ``above``: bits of operands above their n = ``digits`` digits."""

    above: int

    @property
    def top(self) -> int:
        return max(0, self.k - self.n)

    @property
    def operand_bits(self) -> int:
        return self.n + self.above

    @property
    def digit(self) -> int:
        """Cycle after acceptance in which digit 0 of both halves is in its register."""
        return self.origin + digits_at(self.digits)

    @property
    def folding(self) -> int:
        return self.digit

    def gap(self, k: int) -> int:
        return (k == 2) + (self.top > 0)

    @property
    def highest_half(self) -> int:
        """A bound of the high half."""
        return (self.limit - 1) ** 2 >> self.n

    @property
    def first_bounds(self) -> tuple[int, ...]:
        low = (1 << self.n) - 1 + ((1 << self.top) - 1 + carry_most(self.digits) << self.n)
        return (self.limit - 1) ** 2 + 1, low + (self.highest_half >> self.top) * self.C + 1

    @property
    def over_digits(self) -> int:
        """Digits of floor(v_1 / 2^m) + rest."""
        return -(-(self.first_bounds[1] - 1 >> self.n).bit_length() // DIGIT)

    @property
    def high_bits(self) -> int:
        return (self.highest_half >> self.top + DIGIT * (self.digits - 1)).bit_length()

    def product_steps(self) -> Iterator[Step]:
        """The steps up to the digits of both halves. An operation does not list carries among its reads."""
        n = self.digits
        for c in range(n) if self.above else ():
            yield Kind.ABOVE(c).on("top bits", self.origin + n + c, products_latency(self.above), busy=1)
        for step in self.column_steps():
            if step.does.kind is Kind.EXACT and self.above:
                yield replace(step, reads=(*step.reads, Kind.ABOVE(*step.does.numbers).name))
            else:
                yield step
        for k in range(2 * n):
            half = ("low", "high")[k // n]
            yield Kind.DIGIT(k).on(f"{half} carries", self.digit + k % n - 1, 1, [Kind.EXACT(k % n)])
        for j in range(2):
            yield Kind.CARRY(j).on("low carry", self.digit + n + j - 1, 1, [Kind.DIGIT(n - 1)])

    @cached_property
    def schedule(self) -> Schedule:
        return Schedule(tuple(self.steps()), self.interval)

    def steps(self) -> Iterator[Step]:
        """All steps of one product."""
        n = self.digits
        yield from self.product_steps()
        low, high = ([Kind.DIGIT(half + j) for j in range(n)] for half in (0, n))
        for k, at, unit in self.placed_folds():
            if k == 2:
                for j in range(self.over_digits):
                    reads = [high[j], *([Kind.CARRY(j)] if j < 2 else [])]
                    yield Kind.OVER(j).on("rest", at - self.gap(k) + j, 1, reads)
                high = [Kind.OVER(j) for j in range(self.over_digits)]
            for j in range(n):
                others = [*high[j + 1 : j + 2], *high[: j == n - 1]] if self.top else []
                reads = list(dict.fromkeys([low[j], *high[j : j + 1], *others]))
                yield Folds.FOLD(k, j).on(f"fold {k}", at + j, unit.latency, reads, busy=1)
            low = high = [Folds.FOLD(k, j) for j in range(n)]
        last = self.folded + n - 1
        yield Folds.RESULT().on("results", last, self.frame.timing.latency - last, low)


class QuotientParams(HalvesParams):
    """A Montgomery multiplication behind both halves, with R = 2^(17 (n + 1)); abstract. There are no folds."""

    def serial_folds(self) -> list[SerialFold]:
        return []

    @property
    def r(self) -> int:
        """r with R = 2^r."""
        return self.n + DIGIT

    @property
    def result(self) -> int:
        """Cycle in which digit 0 of v is in its register."""
        raise NotImplementedError

    @cached_property
    def frame(self) -> Frame:
        return Frame(
            DIGIT, self.digits, self.operand_bits, 1, self.interval, self.result - START, rising=True, lanes=self.lanes
        )

    @cached_property
    def binary_frame(self) -> Frame:
        more = ConditionalSubtract.latency_of(self.digits)
        return replace(self.frame, latency=self.frame.latency + more)


# ---------------------------------------------------------------------------------------------- model


def digits_of(number: int, d: int, *, whole: bool = True) -> list[int]:
    """The ``d`` digits of ``number``, the lowest first; with ``whole`` the last has all remaining bits."""
    return [number >> DIGIT * j & (-1 if whole and j == d - 1 else MASK) for j in range(d)]


def largest_halves(d: int) -> tuple[int, int]:
    """The largest sums of the lower d columns, and of the higher ones, for digits below 2^DIGIT and a highest one of at
    most that."""
    x = [*[MASK] * (d - 1), 1 << DIGIT]
    columns = [sum(x[i] * x[k - i] for i in range(max(0, k - d + 1), min(k, d - 1) + 1)) for k in range(2 * d)]
    low, high = (sum(v << DIGIT * k for k, v in enumerate(half)) for half in (columns[:d], columns[d:]))
    return low, high


def columns(x: Sequence[int], y: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Each column of the product of the numbers with these digits: with the squares that are in the sums of its pairs,
    and without."""
    d = len(x)
    squares = [a * b for a, b in zip(x, y, strict=True)]
    for k in range(2 * d):
        total = 2 * squares[k // 2] if k % 2 == 0 and k // 2 < d else 0
        indices = range(max(0, k - d + 1), min(k, d - 1) + 1)
        total += sum((x[i] + x[k - i]) * (y[i] + y[k - i]) for i in indices if i < k - i)
        yield total, total - sum(squares[i] for i in indices)


def halves(p: HalvesParams, a: int, b: int) -> Generator[tuple[str, Any], None, tuple[int, int]]:
    """The intermediates of a b up to the digits of both halves, which are returned."""
    n = p.digits
    x, y = (digits_of(number, n, whole=False) for number in (a, b))
    tops = a >> p.n, b >> p.n
    above = [tops[0] * digit + tops[1] * other for digit, other in zip(y, x, strict=True)]
    above[-1] += tops[0] * tops[1] << DIGIT
    if p.above:
        yield from ((f"above{c}", value) for c, value in enumerate(above))
    yield from ((f"D{u}", one * other) for u, (one, other) in enumerate(zip(x, y, strict=True)))
    made = list(columns(x, y))
    yield from ((f"P{c}", [made[c][0], made[n + c][0]]) for c in range(n))
    exact = [(made[c][1], made[n + c][1] + above[c]) for c in range(n)]
    yield from ((f"c{c}", list(both)) for c, both in enumerate(exact))
    low, high = (sum(v << DIGIT * c for c, v in enumerate(half)) for half in zip(*exact, strict=True))
    rest = low >> p.n
    yield from ((f"h{k}", digit) for k, digit in enumerate([*digits_of(low, n, whole=False), *digits_of(high, n)]))
    yield from ((f"carry{j}", digit) for j, digit in enumerate((rest & MASK, rest >> DIGIT)))
    return low, high
