# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Multiplication modulo p = 2^k - c: the product by Karatsuba's trick for all pairs of digits, then folds.

Source:  A. A. Karatsuba, Y. P. Ofman: Multiplication of Multidigit Numbers on Automata. Soviet Physics Doklady 7, 1963;
         for pairs of digits A. Weimerskirch, C. Paar: Generalizations of the Karatsuba Algorithm for Efficient
         Implementations. 2003; the reduction as in `pseudo_mersenne`. The array and its order of pairs are ours.
Formula: as in `product`, with one digit more, which is zero, if their number d is even;  then the folds of
         `pseudo_mersenne`, n = 17 d; for odd d and a short C the first one in the columns: column c + C column (d + c)
Range:   x, y < 2^n + 2^(n - 17), so that the sum of two digits fits 18 bits, give v below that bound, v = x y (mod p)

For odd d, (d + 1) / 2 DSP blocks take a product every d cycles: d (d + 1) / 2 multiplications in place of d^2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Value

from modmill.contract import UnsupportedError
from modmill.design import Cost, Design, Setting, Source
from modmill.designs.karatsuba.product import (
    DIGIT,
    DIGITS_MIN,
    HIGHEST,
    SUM,
    FoldedProduct,
    KaratsubaProduct,
    blocks,
    folded,
    levels,
    made,
    out,
    read,
)  # fmt: skip
from modmill.designs.pseudo_mersenne import design as pseudo_mersenne
from modmill.designs.pseudo_mersenne.shape import Kind as Folds
from modmill.designs.pseudo_mersenne.shape import Params
from modmill.numbers.rns.residues import signed_digits
from modmill.rtl.delay import later
from modmill.rtl.digit_serial import Control
from modmill.rtl.digits import Results
from modmill.schedule import Operation, Operations, Step

ABOVE_MAX = 4
"""Most bits of operands above their digits."""
ROOM = DIGIT - 1 + ABOVE_MAX
"""Most spare bits of operands."""
FEWEST, MOST = 4, 63
"""Fewest and most digits."""


class Kind(Operations):
    """The operations of the product, for digit u and column c."""

    SQUARE = "D{}"
    COLUMN = "P{}"  # the sums of the P of columns c and d + c, with 2 D
    EXACT = "c{}"  # columns c and d + c


def digits_of(number: int, d: int) -> list[int]:
    """The ``d`` digits of ``number``, the lowest first; the last has all remaining bits."""
    return [number >> DIGIT * j & ((1 << DIGIT) - 1 if j < d - 1 else -1) for j in range(d)]


def largest_halves(d: int) -> tuple[int, int]:
    """The largest sums of the lower d columns, and of the higher ones, for digits below 2^DIGIT and a highest one of at
    most that."""
    x = [*[(1 << DIGIT) - 1] * (d - 1), 1 << DIGIT]
    columns = [sum(x[i] * x[k - i] for i in range(max(0, k - d + 1), min(k, d - 1) + 1)) for k in range(2 * d)]
    low, high = (sum(v << DIGIT * k for k, v in enumerate(half)) for half in (columns[:d], columns[d:]))
    return low, high


class KaratsubaParams(Params):
    """p = 2^``k`` - ``c``: one product every `slots` cycles; below 11 digits every second period only, because results
    take longer to leave."""

    @property
    def slots(self) -> int:
        """Digits of the product's operands, an odd number: one more, which is zero, if the number of digits is even."""
        return self.digits | 1

    @property
    def limit(self) -> int:
        return (1 << self.cut) + (1 << self.cut - DIGIT)

    @property
    def origin(self) -> int:
        """Cycle after acceptance in which the lowest digits are in the first register of `KaratsubaProduct`."""
        return 3 - self.digits

    @property
    def merged(self) -> bool:
        """Whether the product includes the first fold, column by column."""
        return 1 < self.C < 1 << DIGIT and self.slots == self.digits

    @property
    def before_folds(self) -> tuple[int, ...]:
        if not self.merged:
            return ()
        low, high = largest_halves(self.digits)
        return (low + self.C * high + 1,)

    @property
    def folding(self) -> int:
        return self.origin + (folded(self.slots, self.C) if self.merged else out(self.slots))

    def product_steps(self) -> Iterator[Step]:
        n, start = self.slots, self.origin
        squared = start + made(n)
        in_order = start + read(n) + 1 + (levels(self.C) if self.merged else 0)
        squares = [Kind.SQUARE(u) for u in range(n)]
        for u, square in enumerate(squares):
            yield square.on("squares", squared + u - SUM + 1, SUM - 1, busy=1)
        for c in range(n):
            yield Kind.COLUMN(c).on("pairs", squared + c, in_order - squared, [squares[c // 2]] * (c % 2 == 0), busy=1)
        for c in range(n):
            reads = [Kind.COLUMN(c), *squares[: c + 1]]
            yield Kind.EXACT(c).on("corrections", in_order + c, 1, reads, busy=1)
        for c in range(self.digits):
            begin = in_order + 1 + c
            done = Folds.FOLD(1, c) if self.merged else Folds.READ(c)
            yield done.on("carries", begin, self.folding + c - begin, [Kind.EXACT(c)], busy=1)


class Karatsuba(pseudo_mersenne.PseudoMersenne):
    """The blocks and the folds for one modulus."""

    params: KaratsubaParams

    @property
    def machine(self) -> type[Machine]:
        return Machine

    @property
    def cost(self) -> Cost:
        """A DSP block for two digits; constants are shifts."""
        n = self.params.slots
        return Cost(dsp=blocks(n), memory_bits=0, multiplications=n * (n + 1) // 2)

    def multiplied(self, x: Sequence[int], y: Sequence[int]) -> Iterator[tuple[str, Any]]:
        d, C = self.params.slots, self.params.C
        x, y = ([*digits, 0][:d] for digits in (x, y))
        squares = [a * b for a, b in zip(x, y, strict=True)]

        def column(k: int) -> tuple[int, int]:
            """Column k with the squares in its sums of pairs, and the column itself."""
            total = 2 * squares[k // 2] if k % 2 == 0 and k // 2 < d else 0
            indices = range(max(0, k - d + 1), min(k, d - 1) + 1)
            total += sum((x[i] + x[k - i]) * (y[i] + y[k - i]) for i in indices if i < k - i)
            return total, total - sum(squares[i] for i in indices)

        columns = [[column(c), column(d + c)] for c in range(d)]
        if self.params.merged:
            columns = [[(low[0] + C * high[0], low[1] + C * high[1])] for low, high in columns]
        yield from ((f"D{u}", square) for u, square in enumerate(squares))
        yield from ((f"P{c}", [one[0] for one in both]) for c, both in enumerate(columns))
        yield from ((f"c{c}", [one[1] for one in both]) for c, both in enumerate(columns))

    def folded(self, a: int, b: int) -> tuple[str, int]:
        if not self.params.merged:
            return super().folded(a, b)
        d = self.params.digits
        x, y = (digits_of(number, d) for number in (a, b))
        high = sum(sum(x[i] * y[k - i] for i in range(k - d + 1, d)) << DIGIT * (k - d) for k in range(d, 2 * d - 1))
        return "v1.", a * b - (high << self.params.n) + self.params.C * high

    def facts(self) -> list[tuple[str, str]]:
        p = self.params
        kept = [fact for fact in super().facts() if fact[0] in ("modulus", "C", "after each fold")]
        return [
            *kept,
            ("digits", f"d = {p.digits} of {DIGIT} bits; folds at 2^{p.cut}"),
            ("slots", f"{p.slots} squares and {p.slots * (p.slots - 1) // 2} pairs on {blocks(p.slots)} DSP blocks"),
            ("operands", f"below 2^{p.cut} + 2^{p.cut - DIGIT}, about {float(self.bounds[0]):.6g} p"),
        ]


class Machine(pseudo_mersenne.Machine):
    """The product and the folds, with the multiplier interface. Both operands pass digit by digit, the lowest first."""

    def read_in(self, operand: int, bit: int) -> tuple[int, int]:
        return super().read_in(1, bit)

    def _feed(self, m: Module, control: Control) -> None:
        order = range(self.frame.digits)
        for name, port, digit in (("scan_x", self.i_a, control.x), ("scan_y", self.i_b, control.y)):
            m.d.comb += digit.eq(self._scanned(m, control, name, port, order))

    def product(self, m: Module, control: Control) -> tuple[Value, Value, int]:
        p = self._params
        assert isinstance(p, KaratsubaParams)

        def at(*cycles: int) -> Value:
            return control.any(*(p.origin + c + again for c in cycles for again in range(0, p.interval, p.slots)))

        operands = control.x, control.y, p.slots, at
        self._product: FoldedProduct | KaratsubaProduct
        if p.merged:
            self._product = FoldedProduct(m, *operands, p.C)
            return self._product.low, self._product.high, 2
        self._product = KaratsubaProduct(m, *operands)
        if p.slots == p.digits:
            return self._product.low, self._product.high, 2
        # the higher half begins with the highest digit of the lower one, which comes first
        following = Mux(at(out(p.slots) - 1), self._product.early, self._product.high)
        top = Mux(at(out(p.slots) + p.digits - 1), following[: HIGHEST - DIGIT], 0)
        return self._product.low, Cat(later(m, following[:DIGIT], "high_digit"), top), 2

    def product_register(self, operation: Operation) -> Any:
        registers: dict[Any, Any] = {
            Kind.SQUARE: self._product.square, Kind.COLUMN: self._product.in_order, Kind.EXACT: self._product.exact,
        }  # fmt: skip
        return registers[operation.kind]


def room(p: int) -> int:
    """Most spare bits of operands modulo p."""
    d = -(-p.bit_length() // DIGIT)
    return DIGIT * d - p.bit_length() + (ABOVE_MAX if d % 2 and d >= DIGITS_MIN else 0)


def fit(p: int, *, spare: int) -> Karatsuba:
    """The design for p. ``spare``: bits of operands above those of p, for sums. Raises UnsupportedError for a p that is too short or too long, or whose c is too wide or has
    too many signed digits."""
    k = p.bit_length()
    c = (1 << k) - p
    d = -(-k // DIGIT)
    if not FEWEST <= d <= MOST:
        raise UnsupportedError(
            f"the modulus must have {DIGIT * (FEWEST - 1) + 1} to {DIGIT * MOST} bits, this one has {k}"
        )
    count = len(signed_digits(c))
    if count > pseudo_mersenne.TERMS_MAX:
        raise UnsupportedError(
            f"c = 2^{k} - p has {count} signed digits, at most {pseudo_mersenne.TERMS_MAX} are accepted"
        )
    from modmill.designs.karatsuba.topped import ToppedKaratsuba, ToppedParams

    n = d if d % 2 else d - 1
    above = k + max(spare, n < d) - DIGIT * n
    topped = n >= DIGITS_MIN and 0 < above <= ABOVE_MAX
    n = n if topped else d
    interval = -(-Results.spacing(n) // (n | 1)) * (n | 1)
    params = ToppedParams(k, c, n, 1, interval, spare) if topped else KaratsubaParams(k, c, n, 1, interval)
    if params.top_bound > 2 * p:
        raise UnsupportedError(
            f"c = 2^{k} - p has {c.bit_length()} bits: a fold at 2^{k} leaves more than 2 p; c must be narrower"
        )
    return (ToppedKaratsuba if topped else Karatsuba)(p, params, {"spare": spare})


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
                "spare", int, 0, "bits of operands above those of p at least: room for sums", least=0, most=ROOM,
                depends=f"room in the digits of p, and {ABOVE_MAX} bits more for an odd number of digits from 5 on",
                limits=lambda p, settings: (0, room(p)),
            ),
        ),
        solve=fit,
    ),
)  # fmt: skip
