# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Multiplication modulo p = 2^k - c: the product by Karatsuba's trick for all pairs of digits, then folds.

Source:  A. A. Karatsuba, Y. P. Ofman: Multiplication of Multidigit Numbers on Automata. Soviet Physics Doklady 7, 1963;
         for pairs of digits A. Weimerskirch, C. Paar: Generalizations of the Karatsuba Algorithm for Efficient
         Implementations. 2003; the reduction as in `pseudo_mersenne`. The array and its order of pairs are ours.
Formula: for n digits, n odd, as in `product`; a few bits above the digits as in `halves`; then folds as in `shape`, the
         first one in the columns for a short C
Range:   x, y < 2^(17 n + s) give v below 2^max(k, 17 n) and a little, v = x y (mod p); with the first fold in the
         columns x, y, v < 2^(17 n) + 2^(17 n - 17): the sum of two digits fits 18 bits

(n + 1) / 2 DSP blocks take a product every n cycles: n (n + 1) / 2 multiplications in place of n^2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from modmill.contract import UnsupportedError
from modmill.design import Cost, Design, Setting, Source
from modmill.designs.karatsuba.halves import Halves
from modmill.designs.karatsuba.product import DIGIT, DIGITS_MIN, LONG, FoldedProduct, blocks
from modmill.designs.karatsuba.shape import (
    ABOVE_MAX,
    FoldedParams,
    HalvesParams,
    KaratsubaParams,
    Kind,
    columns,
    digits_of,
    halves,
    interval,
)  # fmt: skip
from modmill.designs.pseudo_mersenne import design as pseudo_mersenne
from modmill.numbers.folding import fold
from modmill.numbers.rns.residues import signed_digits
from modmill.rtl.delay import DelayLines, later
from modmill.rtl.digit_serial import Control
from modmill.schedule import Operation

MOST = 63
"""Most digits."""
ABOVE_MOST = 10
"""Most bits above the digits that may be allowed: the highest digit of the product fits the sum of a column."""
ROOM = 2 * DIGIT + ABOVE_MOST
"""Most spare bits of operands."""


def cost_of(n: int) -> Cost:
    """The cost of the product of n digits, beside adders."""
    return Cost(dsp=blocks(n), memory_bits=0, multiplications=n * (n + 1) // 2)


def slots(n: int) -> str:
    """The multiplications of the product of n digits, in words."""
    return f"{n} squares and {n * (n - 1) // 2} pairs on {blocks(n)} DSP blocks"


class Karatsuba(pseudo_mersenne.PseudoMersenne):
    """The blocks and the folds for one modulus."""

    params: KaratsubaParams

    @property
    def cost(self) -> Cost:
        """A DSP block for two digits; constants are shifts."""
        return cost_of(self.params.digits)

    def facts(self) -> list[tuple[str, str]]:
        p, n = self.params, self.params.digits
        kept = [fact for fact in super().facts() if fact[0] in ("modulus", "C", "after each fold")]
        above = f" and {p.operand_bits - p.n} above them" if isinstance(p, HalvesParams) else ""
        return [
            *kept,
            ("digits", f"n = {n} of {DIGIT} bits{above}; folds at 2^{p.cut}"),
            ("slots", slots(n)),
            ("operands", f"at most {p.limit - 1:#x}, about {float(self.bounds[0]):.6g} p"),
        ]


class FoldedKaratsuba(Karatsuba):
    """With the first fold in the columns."""

    params: FoldedParams

    @property
    def machine(self) -> type[Machine]:
        return FoldedMachine

    def multiplied(self, x: Sequence[int], y: Sequence[int]) -> Iterator[tuple[str, Any]]:
        d, C = self.params.digits, self.params.C
        yield from ((f"D{u}", a * b) for u, (a, b) in enumerate(zip(x, y, strict=True)))
        made = list(columns(x, y))
        for name, which in (("P", 0), ("c", 1)):
            yield from ((f"{name}{c}", [made[c][which] + C * made[d + c][which]]) for c in range(d))

    def folded(self, a: int, b: int) -> tuple[str, int]:
        d = self.params.digits
        made = list(columns(*(digits_of(number, d) for number in (a, b))))
        low, high = (sum(v << DIGIT * c for c, (_, v) in enumerate(half)) for half in (made[:d], made[d:]))
        return "v1.", low + self.params.C * high


class HalvesKaratsuba(Karatsuba):
    """With all folds behind the two halves of the product."""

    params: HalvesParams

    @property
    def machine(self) -> type[Machine]:
        return HalvesMachine

    def trace(self, a: int, b: int) -> Iterator[tuple[str, Any]]:
        p, n = self.params, self.params.digits
        low, high = yield from halves(p, a, b)
        rest, v = low >> p.n, fold((low & (1 << p.n) - 1) + (high << p.n), p.cut, p.C)
        for k in range(1, p.folds):
            both = zip(digits_of(v, n, whole=False), digits_of(v >> p.n, n), strict=True)
            yield from ((f"v{k}.{j}", list(digits)) for j, digits in enumerate(both))
            if k == 1:
                v += rest << p.n
                yield from ((f"o{j}", digit) for j, digit in enumerate(digits_of(v >> p.n, p.over_digits)))
            v = fold(v, p.cut, p.C)
        yield from ((f"v{p.folds}.{j}", [digit]) for j, digit in enumerate(digits_of(v, n)))
        yield "v", v


class Machine(pseudo_mersenne.Machine):
    """The product and the folds, with the multiplier interface. Both operands pass digit by digit, the lowest first."""

    _params: KaratsubaParams

    def read_in(self, operand: int, bit: int) -> tuple[int, int]:
        return super().read_in(1, bit)

    def _feed(self, m: Module, control: Control) -> None:
        order = range(self.frame.digits)
        for name, port, digit in (("scan_x", self.i_a, control.x), ("scan_y", self.i_b, control.y)):
            m.d.comb += digit.eq(self._scanned(m, control, name, port, order))

    def _strobes(self, control: Control) -> Callable[..., Value]:
        """Strobes in cycles of the product."""
        p = self._params
        again = range(0, p.interval, p.digits)
        strobes = control if p.digits < LONG else control.ring
        return lambda *cycles: strobes.any(*(p.origin + c + more for c in cycles for more in again))


class FoldedMachine(Machine):
    """The product with the first fold in its columns, and the other folds."""

    _params: FoldedParams

    def product(self, m: Module, control: Control) -> tuple[Value, Value]:
        p = self._params
        self._product = FoldedProduct(m, control.x, control.y, p.digits, self._strobes(control), p.C)
        return self._product.low, self._product.high

    def product_register(self, operation: Operation) -> Any:
        registers: dict[Any, Any] = {
            Kind.SQUARE: self._product.square, Kind.COLUMN: self._product.in_order, Kind.EXACT: self._product.exact,
        }  # fmt: skip
        return registers[operation.kind]


class HalvesMachine(Machine):
    """The product in two halves and the folds. The rest of the low half joins before the second fold."""

    _params: HalvesParams

    def product(self, m: Module, control: Control) -> tuple[Value, Value]:
        p = self._params
        self._halves = Halves(m, control.x, control.y, p.digits, self._strobes(control), p.above)
        return self._halves.low, self._halves.high

    def entering(self, m: Module, control: Control, k: int, at: int, low: Value, high: Value) -> tuple[Value, Value]:
        p = self._params
        if k == 2:
            low, high = later(m, low, "low_over"), self._with_rest(m, control, at - p.gap(k), high)
        if not p.top:
            return low, high
        # the digits of floor(high / 2^top), each from two digits; the lowest bits are above the digits of ``low``
        last = control.at(at + p.digits - 1)
        low, digit = later(m, low, f"low{k}"), later(m, high, f"high{k}")
        kept = Signal(p.top, name=f"kept{k}", reset_less=True)
        with m.If(control.at(at - 1)):
            m.d.sync += kept.eq(high)
        return Cat(low, Mux(last, kept, 0)), Cat(digit[p.top : DIGIT], Mux(last, digit[DIGIT:], high[: p.top]))

    def _with_rest(self, m: Module, control: Control, at: int, digit: Value) -> Value:
        """The digits of a number and rest, one cycle later. ``digit``: those of the number from cycle ``at`` on."""
        p = self._params
        waits = at - p.digit - p.digits
        rest = DelayLines(m, waits, name="rest").line(self._halves.carry, waits, name="rest_waited")
        carry, sum_ = Signal(name="over_carry", reset_less=True), Signal(DIGIT + 1, name="over_sum")
        m.d.comb += sum_.eq(digit + rest + carry)
        m.d.sync += carry.eq(sum_[DIGIT])
        with m.If(control.at(at - 1)):
            m.d.sync += carry.eq(0)
        self._over = later(m, sum_[:DIGIT], "over")
        return self._over

    def product_register(self, operation: Operation) -> Any:
        if operation.kind is Kind.OVER:
            return self._over
        product, high = self._halves, operation.numbers[0] >= self._params.digits
        registers: dict[Any, Any] = {
            Kind.SQUARE: product.square, Kind.COLUMN: product.in_order, Kind.EXACT: product.exact,
            Kind.ABOVE: product.above, Kind.CARRY: product.carry, Kind.DIGIT: product.high if high else product.low,
        }  # fmt: skip
        return registers[operation.kind]


def digits_for(bits: int, spare: int, above: int) -> int:
    """Digits of the product, an odd number, for operands with ``spare`` bits more than a modulus of ``bits`` bits: at
    most ``above`` bits are above them."""
    n = -(-bits // DIGIT)
    if n % 2 == 0:
        n += -1 if n > DIGITS_MIN and bits + max(1, spare) - DIGIT * (n - 1) <= above else 1
    return n


def room(p: int, above: int) -> int:
    """Most spare bits of operands modulo p, with at most ``above`` bits above their digits."""
    bits = p.bit_length()
    return DIGIT * digits_for(bits, above, above) + above - bits


def fit(p: int, *, above: int, spare: int) -> Karatsuba:
    """The design for p. ``above``: most bits of operands above their digits; ``spare``: bits of operands above those of
    p at least, for sums. Raises UnsupportedError for a p that is too short or too long, or whose c is too wide or has
    too many signed digits."""
    k = p.bit_length()
    c = (1 << k) - p
    least, most = DIGIT * (DIGITS_MIN - 2) + 1, DIGIT * MOST
    if not least <= k <= most:
        raise UnsupportedError(f"the modulus must have {least} to {most} bits, this one has {k}")
    count = len(signed_digits(c))
    if count > pseudo_mersenne.TERMS_MAX:
        raise UnsupportedError(
            f"c = 2^{k} - p has {count} signed digits, at most {pseudo_mersenne.TERMS_MAX} are accepted"
        )
    n = digits_for(k, spare, above)
    settings = {"above": above, "spare": spare}
    bits = DIGIT * n
    params: KaratsubaParams
    if k + spare <= bits and 1 < c << bits - k < 1 << DIGIT:
        params = FoldedParams(k, c, n, 1, interval(n))
    else:
        params = HalvesParams(k, c, n, 1, interval(n), max(max(k, bits) + 1, k + spare) - bits)
    if params.top_bound > 2 * p:
        raise UnsupportedError(
            f"c = 2^{k} - p has {c.bit_length()} bits: a fold at 2^{k} leaves more than 2 p; c must be narrower"
        )
    if isinstance(params, FoldedParams):
        return FoldedKaratsuba(p, params, settings)
    return HalvesKaratsuba(p, params, settings)


DESIGNS = (
    Design(
        name="karatsuba", page="karatsuba",
        title="Multiplication modulo 2^k - c by Karatsuba's trick for all pairs of digits, folds by shifts",
        source=Source(
            "A. A. Karatsuba, Y. P. Ofman; A. Weimerskirch, C. Paar",
            "Multiplication of Multidigit Numbers on Automata; Generalizations of the Karatsuba Algorithm for "
            "Efficient Implementations",
            "Soviet Physics Doklady 7; report", 1963, "array, order of the pairs and folds are ours",
        ),
        needs="p = 2^k - c with c of few signed digits",
        settings=(
            Setting(
                "above", int, ABOVE_MAX, "most bits of operands above their digits: with more some p take fewer blocks",
                least=1, most=ABOVE_MOST,
            ),
            Setting(
                "spare", int, 0, "bits of operands above those of p at least: room for sums", least=0, most=ROOM,
                depends="room in the digits of p, and above bits more for an odd number of digits from 5 on",
                limits=lambda p, settings: (0, room(p, settings["above"])), room=True,
            ),
        ),
        solve=fit,
    ),
)  # fmt: skip
