# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""`karatsuba` for moduli with a few bits more than an odd number of digits, p = 2^k - c, k = 17 n + e, and for operands
with ``spare`` bits more than p.

    x y  = low half + 2^(17 n) high half                        (`halves`: the bits above n digits in LUTs)
         = L + 2^(17 n) (H + rest)                              L: the n digits of the low half; rest: its carry
    v_1  = L + 2^(17 n) (H mod 2^e) + floor(H / 2^e) c          the first fold, before rest is known
    v_k  = v mod 2^k + floor(v / 2^k) c, v = v_(k-1), for k = 2 with 2^(17 n) rest

A number mod 2^k has n digits, the highest with e bits more. Digits of floor(H / 2^e) are H's by wires: the bits of two
neighbouring digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from modmill.designs.karatsuba import design as karatsuba
from modmill.designs.karatsuba.halves import Halves, carry_most, digits_at, products_latency
from modmill.designs.karatsuba.product import DIGIT
from modmill.designs.pseudo_mersenne.shape import Kind as Folds
from modmill.numbers.folding import fold
from modmill.rtl.delay import DelayLines, later
from modmill.rtl.digit_serial import Control
from modmill.schedule import Operation, Operations, Schedule, Step

MASK = (1 << DIGIT) - 1


class Kind(Operations):
    """The operations between those of the product and the folds, for digit j or k."""

    ABOVE = "above{}"  # a y_j + b x_j
    DIGIT = "x y{}"  # digit k of the low half, or k - n of the high half
    CARRY = "carry{}"  # digit j of rest
    OVER = "o{}"  # digit j of floor(v_1 / 2^(17 n)) + rest


@dataclass(frozen=True)
class ToppedParams(karatsuba.KaratsubaParams):
    """Sizes and times for n = ``digits`` digits, an odd number, and e = `top` bits.

    Operands are below 2^(k + ``spare``), without spare bits below 2^k + 2^(k - 17).
    """

    spare: int

    @property
    def top(self) -> int:
        return max(0, self.k - self.n)

    @property
    def operand_bits(self) -> int:
        return max(self.cut + 1, self.k + self.spare)

    @property
    def limit(self) -> int:
        return 1 << self.operand_bits if self.spare else super().limit

    @property
    def above(self) -> int:
        """Bits of operands above their digits."""
        return self.operand_bits - self.n

    @property
    def merged(self) -> bool:
        return False

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
        whole = (1 << self.n) - 1 + ((1 << self.top) - 1 + carry_most(self.digits) << self.n)
        return (self.limit - 1) ** 2 + 1, whole + (self.highest_half >> self.top) * self.C + 1

    @property
    def high_bits(self) -> int:
        return (self.highest_half >> self.top + DIGIT * (self.digits - 1)).bit_length()

    def product_steps(self) -> Iterator[Step]:
        n = self.digits
        for c in range(n):
            yield Kind.ABOVE(c).on("top bits", self.origin + n + c, products_latency(self.above), busy=1)
        for step in super().product_steps():
            if step.does.kind is karatsuba.Kind.EXACT:
                yield replace(step, reads=(*step.reads, Kind.ABOVE(*step.does.numbers).name))
            elif isinstance(step.does.kind, karatsuba.Kind):
                yield step
        for k in range(2 * n):
            exact, half = karatsuba.Kind.EXACT(k % n), ("low", "high")[k // n]
            yield Kind.DIGIT(k).on(f"{half} carries", self.digit + k % n - 1, 1, [exact])
        for j in range(2):
            yield Kind.CARRY(j).on("low carry", self.digit + n + j - 1, 1, [Kind.DIGIT(n - 1)])

    def schedule_steps(self) -> Iterator[Step]:
        """The steps of one product. An operation does not list carries among its reads."""
        n = self.digits
        yield from self.product_steps()
        low, high = ([Kind.DIGIT(half + j) for j in range(n)] for half in (0, n))
        for k, at, unit in self.placed_folds():
            if k == 2:
                for j in range(n):
                    reads = [high[j], *([Kind.CARRY(j)] if j < 2 else [])]
                    yield Kind.OVER(j).on("rest", at - self.gap(k) + j, 1, reads)
                high = [Kind.OVER(j) for j in range(n)]
            for j in range(n):
                others = [*high[j + 1 : j + 2], *([high[0]] if j == n - 1 else [])] if self.top else []
                reads = dict.fromkeys([low[j], high[j], *others])
                yield Folds.FOLD(k, j).on(f"fold {k}", at + j, unit.latency, reads, busy=1)
            low = high = [Folds.FOLD(k, j) for j in range(n)]
        last = self.folded + n - 1
        yield Folds.RESULT().on("results", last, self.frame.timing.latency - last, low)

    @property
    def schedule(self) -> Schedule:
        return Schedule(tuple(self.schedule_steps()), self.interval)


class ToppedKaratsuba(karatsuba.Karatsuba):
    """The blocks and the folds for one modulus."""

    params: ToppedParams

    @property
    def machine(self) -> type[karatsuba.Machine]:
        return Machine

    def trace(self, a: int, b: int) -> Iterator[tuple[str, Any]]:
        p = self.params
        n = p.digits

        def digits(v: int, *, whole: bool = False) -> list[int]:
            """The n digits of v; with ``whole`` the last has all remaining bits."""
            return [v >> DIGIT * j & (-1 if whole and j == n - 1 else MASK) for j in range(n)]

        x, y, tops = digits(a), digits(b), (a >> p.n, b >> p.n)
        above = [tops[0] * digit + tops[1] * other for digit, other in zip(y, x, strict=True)]
        above[-1] += tops[0] * tops[1] << DIGIT
        yield from ((f"above{c}", value) for c, value in enumerate(above))
        halves = [0, 0]
        for name, value in self.multiplied(x, y):
            if name.startswith("c"):
                c = int(name[1:])
                value = [value[0], value[1] + above[c]]
                halves = [half + (v << DIGIT * c) for half, v in zip(halves, value, strict=True)]
            yield name, value
        low, high = halves
        rest = low >> p.n
        yield from ((f"x y{k}", digit) for k, digit in enumerate([*digits(low), *digits(high, whole=True)]))
        yield from ((f"carry{j}", digit) for j, digit in enumerate((rest & MASK, rest >> DIGIT)))
        v = fold((low & (1 << p.n) - 1) + (high << p.n), p.cut, p.C)
        for k in range(1, p.folds + 1):
            if k == p.folds:
                yield from ((f"v{k}.{j}", [digit]) for j, digit in enumerate(digits(v, whole=True)))
                break
            yield from ((f"v{k}.{j}", list(both)) for j, both in enumerate(zip(digits(v), digits(v >> p.n), strict=True)))
            if k == 1:
                v += rest << p.n
                yield from ((f"o{j}", digit) for j, digit in enumerate(digits(v >> p.n)))
            v = fold(v, p.cut, p.C)
        yield "v", v


class Machine(karatsuba.Machine):
    """The product in two halves and the folds, with the multiplier interface."""

    def product(self, m: Module, control: Control) -> tuple[Value, Value, int]:
        p = self._params
        assert isinstance(p, ToppedParams)
        n = p.digits

        def at(*cycles: int) -> Value:
            return control.any(*(p.origin + c + again for c in cycles for again in range(0, p.interval, n)))

        self._halves = halves = Halves(m, control.x, control.y, n, at, p.above)
        return halves.low, halves.high, 2

    def entering(
        self, m: Module, control: Control, k: int, at: int, low: Value, high: Value
    ) -> tuple[Value, Value]:
        p = self._params
        assert isinstance(p, ToppedParams)
        if k == 2:
            low, high = later(m, low, "low_over"), self._with_rest(m, control, at - p.gap(k), high)
        if not p.top:
            return low, high
        first, last = control.at(at - 1), control.at(at + p.digits - 1)
        low, digit = later(m, low, f"low{k}"), later(m, high, f"high{k}")
        kept = Signal(p.top, name=f"kept{k}", reset_less=True)
        with m.If(first):
            m.d.sync += kept.eq(high)
        over = Cat(digit[p.top : DIGIT], Mux(last, digit[DIGIT:], high[: p.top]))
        return Cat(low, Mux(last, kept, 0)), over

    def _with_rest(self, m: Module, control: Control, at: int, digit: Value) -> Value:
        """The digits of a number and rest, one cycle later. ``digit``: those of the number from cycle ``at`` on."""
        p = self._params
        assert isinstance(p, ToppedParams)
        waits = at - p.digit - p.digits
        rest = DelayLines(m, waits, name="rest").line(self._halves.carry, waits, name="rest_waited")
        carry, sum_ = Signal(name="over_carry", reset_less=True), Signal(DIGIT + 1, name="over_sum")
        m.d.comb += sum_.eq(digit + rest + carry)
        m.d.sync += carry.eq(sum_[DIGIT])
        with m.If(control.at(at + p.digits - 1)):
            m.d.sync += carry.eq(0)
        self._over = later(m, sum_[:DIGIT], "over")
        return self._over

    def product_register(self, operation: Operation) -> Any:
        halves, high = self._halves, operation.numbers[0] >= self.frame.digits
        registers: dict[Any, Any] = {
            karatsuba.Kind.SQUARE: halves.square, karatsuba.Kind.COLUMN: halves.in_order,
            karatsuba.Kind.EXACT: halves.exact, Kind.ABOVE: halves.above, Kind.CARRY: halves.carry,
            Kind.DIGIT: halves.high if high else halves.low, Kind.OVER: getattr(self, "_over", None),
        }  # fmt: skip
        return registers[operation.kind]
