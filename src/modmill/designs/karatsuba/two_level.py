# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Multiplication modulo p = 2^k - c of at most 256 bits: the product by Karatsuba's trick on two levels, then folds.

Source:  A. A. Karatsuba, Y. P. Ofman: Multiplication of Multidigit Numbers on Automata. Soviet Physics Doklady 7, 1963;
         for pairs of digits A. Weimerskirch, C. Paar: Generalizations of the Karatsuba Algorithm for Efficient
         Implementations. 2003; the reduction as in `pseudo_mersenne`. The array and its order of pairs are ours.
Formula: x y as in `two_level_product`, with 16 digits of b = ceil(k / 16) bits, at least 5, n = 16 b;
         C = 2^(n - k) c, 2^n = C (mod p);
         v_1 = x y mod 2^n + floor(x y / 2^n) C, v = v_1 mod 2^n + floor(v_1 / 2^n) C
Range:   x, y, v < 2^n + 2^(n - b): the highest digit is at most 2^b; with s bits above the digits (`top_bits`)
         x, y < 2^(n + s), v < 2^n and a little; C < 2^(7 b), so two folds suffice

Ten DSP blocks take a product every ten cycles: 100 multiplications of digits in place of 256.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product as pairs_of
from typing import Any

from amaranth.hdl import Module, Value

from modmill.contract import Timing, UnsupportedError
from modmill.design import Cost, Design, DesignInstance, Setting, Source
from modmill.designs.karatsuba.two_level_product import (
    COLUMNS,
    COUNT,
    DIGIT_MAX,
    DIGIT_MIN,
    INTERVAL,
    LANES,
    PAIR,
    PAIRS,
    SQUARE,
    TILE,
    WORD,
    TwoLevelProduct,
    TwoLevelWords,
    belongs,
    folding,
    halved,
    outer,
    read_at,
)  # fmt: skip
from modmill.designs.pseudo_mersenne import design as pseudo_mersenne
from modmill.designs.pseudo_mersenne.serial_fold import SerialFold
from modmill.designs.pseudo_mersenne.shape import Kind as Folds
from modmill.designs.pseudo_mersenne.shape import Params
from modmill.interface import Multiplier
from modmill.numbers.folding import fold
from modmill.numbers.rns.residues import signed_digits
from modmill.rtl.digit_serial import Control
from modmill.schedule import Operation, Operations, Schedule, Step

HALVES = 2 * COUNT
"""Halves of the words of a number: the digits of the folds."""
BITS_MIN, BITS_MAX = 2 * DIGIT_MIN * (HALVES - 2) + 1, DIGIT_MAX * COUNT**2
"""Fewest and most bits of p; with fewer, two halves of p are zero."""
ABOVE_MOST = 3
"""Most bits of operands above their digits."""


class Kind(Operations):
    """The operations of the product, for outer square or pair u, column K of lane k, and word j."""

    SQUARES = "D{}"  # the products of digits
    PAIRS = "M{}"  # the products of differences of digits
    COLUMN = "z{}"
    WORD = "h{}"  # both halves of word K
    HALF = "d{}"  # half j of the lower words, and of the higher ones
    ABOVE = "e{}"  # half j of e
    SUM = "s{}"  # half j of the lower words, and of the higher ones with e


@dataclass(frozen=True)
class TwoLevelParams(Params):
    """p = 2^``k`` - ``c``; numbers of four words. ``above``: bits of operands above them."""

    above: int

    @property
    def digit(self) -> int:
        """Bits of a digit."""
        return digit_bits(self.k)

    @property
    def bits(self) -> int:
        return 2 * self.digit

    @property
    def c_bits(self) -> int:
        """Most bits of C: after two folds numbers are operands again."""
        return 7 * self.digit

    @property
    def starts(self) -> int:
        return 1

    @property
    def limit(self) -> int:
        return 1 << self.operand_bits if self.above else (1 << self.n) + (1 << self.n - self.digit)

    @property
    def operand_bits(self) -> int:
        return self.n + max(1, self.above)

    @property
    def start(self) -> int:
        """Cycle after acceptance in which the words of outer square 0 are in their registers: the last words are read
        in cycle 0."""
        return 2 - INTERVAL

    @property
    def halved(self) -> int:
        """Cycle in which half 0 of the lower words and of the higher ones is in its register."""
        return self.start + halved()

    @property
    def folding(self) -> int:
        return self.start + folding(self.above)

    @property
    def high_bits(self) -> int:
        return (self.bounds[0] - 1 >> self.n + self.bits * (HALVES - 1)).bit_length()

    def over_bits(self, k: int) -> int:
        """Bits of the highest half of what is above 2^n after fold k."""
        return min(self.bits, (self.bounds[k] - 1 >> self.n).bit_length())

    def serial_folds(self) -> list[SerialFold]:
        # no gaps: what enters the first fold is zero behind a number, and so is what is above 2^n behind its halves
        return [
            SerialFold(
                HALVES, self.bits, self.C, self.over_bits(k) if k else self.high_bits, final=k == self.folds - 1,
                gaps=False,
            )
            for k in range(self.folds)
        ]  # fmt: skip

    def word_steps(self) -> Iterator[Step]:
        """The steps up to the words. The digits of outer pair u are multiplied in the cycles of `Kind.SQUARES`."""
        for u in range(INTERVAL):
            for kind, unit, end in ((Kind.SQUARES, "squares", SQUARE), (Kind.PAIRS, "pairs", PAIR)):
                yield kind(u).on(unit, self.start + end + u - TILE - 1, TILE + 1, busy=1)
        for K, at in enumerate(COLUMNS):
            for k in range(COUNT):
                own = {K, K - (k < COUNT - 1)}
                found = [u for u in range(INTERVAL) if not own.isdisjoint(belongs(u))]
                reads = [kind(u) for u in found for kind in (Kind.SQUARES, Kind.PAIRS)]
                yield Kind.COLUMN(K, k).on(f"lane {k}", self.start + LANES[k] + at - 1, 1, reads, busy=1)
            reads = [Kind.COLUMN(K, k) for k in range(COUNT)]
            yield Kind.WORD(K).on("carries", self.start + WORD + at - 2, 2, reads, busy=1)

    def product_steps(self) -> Iterator[Step]:
        yield from self.word_steps()
        for j in range(HALVES):
            reads = [Kind.WORD(j // 2), Kind.WORD(COUNT + j // 2)]
            yield Kind.HALF(j).on("memories", self.halved + j - 1, 1, reads)
        for j in range(HALVES) if self.above else ():
            yield Kind.ABOVE(j).on("top bits", self.halved + j - 1, 1)
            yield Kind.SUM(j).on("sums", self.halved + j, 1, [Kind.HALF(j), Kind.ABOVE(j)])

    @cached_property
    def schedule(self) -> Schedule:
        return Schedule(tuple(self.steps()), self.interval)

    def steps(self) -> Iterator[Step]:
        """All steps of one product."""
        yield from self.product_steps()
        before = [(Kind.SUM if self.above else Kind.HALF)(j) for j in range(HALVES)]
        for k, at, unit in self.placed_folds():
            for j in range(HALVES):
                yield Folds.FOLD(k, j).on(f"fold {k}", at + j, unit.latency, [before[j]], busy=1)
            before = [Folds.FOLD(k, j) for j in range(HALVES)]
        last = self.folded + HALVES - 1
        yield Folds.RESULT().on("results", last, self.frame.timing.latency - last, before)


# ---------------------------------------------------------------------------------------------- model


def split(number: int, bits: int, count: int) -> list[int]:
    """``count`` digits of ``bits`` bits, the lowest first; the last has all remaining bits."""
    return [number >> bits * j & (-1 if j == count - 1 else (1 << bits) - 1) for j in range(count)]


def join(digits: Iterable[int], bits: int) -> int:
    """The number with these digits of ``bits`` bits, the lowest first."""
    return sum(digit << bits * j for j, digit in enumerate(digits))


def multiplied(x: Sequence[int], y: Sequence[int]) -> tuple[list[int], list[int]]:
    """The squares and the pairs of two numbers of COUNT digits, or of words at X."""
    squares = [a * b for a, b in zip(x, y, strict=True)]
    return squares, [(x[i] - x[j]) * (y[i] - y[j]) for i, j in PAIRS]


def coefficients(squares: Sequence[int], pairs: Sequence[int]) -> list[int]:
    """The coefficients of a product from its squares and pairs, and a zero."""
    found = [sum(squares[max(0, c - COUNT + 1) : c + 1]) for c in range(2 * COUNT)]
    for (i, j), value in zip(PAIRS, pairs, strict=True):
        found[i + j] -= value
    return found


def word_of(digits: Sequence[int], u: int) -> list[int]:
    """The digits of the word of outer square or pair u, of a number with these digits."""
    one, two = ([0] * COUNT if word is None else digits[COUNT * word :][:COUNT] for word in outer(u))
    return [a - b for a, b in zip(one, two, strict=True)]


def words(p: TwoLevelParams, a: int, b: int) -> Generator[tuple[str, Any], None, int]:
    """The intermediates up to the words of the product, which is returned, without the bits above the words."""
    digit, bits = p.digit, p.bits
    whole = (1 << p.n) - 1 if p.above else -1
    numbers = [split(number & whole, digit, COUNT**2) for number in (a, b)]
    inner = []
    for u in range(INTERVAL):
        products = multiplied(*(word_of(digits, u) for digits in numbers))
        yield from zip((f"D{u}", f"M{u}"), products, strict=True)
        inner.append(coefficients(*products))
    outer_ = [coefficients(w[:COUNT], w[COUNT:]) for w in zip(*inner, strict=True)]
    columns = [[outer_[k][K] + (outer_[COUNT + k][K - 1] if K else 0) for k in range(COUNT)] for K in range(2 * COUNT)]
    yield from ((f"z{K}.{k}", column) for K, four in enumerate(columns) for k, column in enumerate(four))
    v = join((join(four, digit) for four in columns), 2 * bits)
    halves = split(v, bits, 2 * HALVES)
    yield from ((f"h{K}", halves[2 * K : 2 * K + 2]) for K in range(2 * COUNT))
    return v


def top_halves(p: TwoLevelParams, x: int, y: int) -> list[int]:
    """The halves of e, what the bits above the words add."""
    a, b = x >> p.n, y >> p.n
    both = (split(number % (1 << p.n), p.bits, HALVES) for number in (y, x))
    e = [a * one + b * other for one, other in zip(*both, strict=True)]
    e[-1] += a * b << p.bits
    return e


def sizes(p: TwoLevelParams) -> str:
    """The digits of operands, in words."""
    above = f" and {p.above} above them" if p.above else ""
    return f"{COUNT} words of {COUNT} digits of {p.digit} bits{above}"


SLOTS = f"{COUNT} squares and {len(PAIRS)} pairs of words and of digits, on {INTERVAL} DSP blocks"
"""The multiplications of the product, in words."""


def corners(p: TwoLevelParams) -> list[tuple[int, int]]:
    """The largest and the least differences of digits and of words."""
    n, b, above, whole = p.n, p.digit, p.above, p.limit == 1 << p.n + p.above
    mask, steps = (1 << b) - 1, ((1, 0, 0, 0), (0, 0, 0, 1), (0, 1, 0, 1), (0, 0, 1, 1))
    edges = []
    for words, digits in pairs_of(steps, repeat=2):
        low = join((mask * (one ^ two) for one in words for two in digits), b)
        # with all bits above the digits, or with the highest digit that is one more
        edges += [low, ((1 << above) - 1 << n) + low if whole else (1 << n) + low % (1 << n - b)]
    return [*zip(edges, edges, strict=True), *zip(edges, edges[::-1], strict=True)]


class OnTwoLevels(DesignInstance):
    """The blocks for one modulus; abstract."""

    params: TwoLevelParams

    @property
    def cost(self) -> Cost:
        """A DSP block for each square and pair of digits; constants are shifts."""
        return Cost(dsp=INTERVAL, memory_bits=0, multiplications=INTERVAL**2)

    @property
    @abstractmethod
    def machine(self) -> type[WordsMachine]:
        """The class of the machine."""

    @property
    def _below(self) -> TwoLevelParams:
        """For operands below p: they have no bits above the digits."""
        return replace(self.params, above=0)

    def binary_timing(self) -> Timing:
        return self._below.binary_frame.timing

    def binary_component(self) -> Multiplier:
        return self.machine(self._below, binary=True)


class TwoLevel(OnTwoLevels, pseudo_mersenne.PseudoMersenne):
    """The blocks and the folds for one modulus."""

    params: TwoLevelParams

    @property
    def machine(self) -> type[Machine]:
        return Machine

    def trace(self, a: int, b: int) -> Iterator[tuple[str, Any]]:
        p, bits = self.params, self.params.bits
        v = yield from words(p, a, b)
        halves = split(v, bits, 2 * HALVES)
        yield from ((f"d{j}", [halves[j], halves[HALVES + j]]) for j in range(HALVES))
        if p.above:
            v = yield from self._with_top_bits(a, b, v)
        for k in range(1, p.folds + 1):
            v = fold(v, p.n, p.C)
            if k < p.folds:
                both = (split(half, bits, HALVES) for half in (v % (1 << p.n), v >> p.n))
                yield from ((f"v{k}.{j}", list(pair)) for j, pair in enumerate(zip(*both, strict=True)))
        yield from ((f"v{p.folds}.{j}", [half]) for j, half in enumerate(split(v, bits, HALVES)))
        yield "v", v

    def _with_top_bits(self, x: int, y: int, v: int) -> Generator[tuple[str, Any], None, int]:
        """The halves of e, and those of the product with it; ``v``: the product without it."""
        n, bits = self.params.n, self.params.bits
        e = top_halves(self.params, x, y)
        yield from ((f"e{j}", half) for j, half in enumerate(e))
        v += join(e, bits) << n
        halves = split(v, bits, 2 * HALVES)
        yield from ((f"s{j}", [halves[j], halves[HALVES + j]]) for j in range(HALVES))
        return v

    def facts(self) -> list[tuple[str, str]]:
        kept = [fact for fact in super().facts() if fact[0] in ("modulus", "C", "after each fold")]
        return [
            *kept,
            ("digits", f"{sizes(self.params)}; folds at 2^{self.params.n}"),
            ("slots", SLOTS),
            ("operands", f"at most {self.params.limit - 1:#x}, about {float(self.bounds[0]):.6g} p"),
        ]

    def corners(self) -> list[tuple[int, int]]:
        """Those of the folds and of the product."""
        return list(dict.fromkeys([*super().corners(), *corners(self.params)]))


class WordsMachine(pseudo_mersenne.Machine):
    """The product on two levels, with the multiplier interface; abstract. The words are read from the ports."""

    _params: TwoLevelParams
    _product: TwoLevelWords

    def read_in(self, operand: int, bit: int) -> tuple[int, int]:
        if self._params.above and bit >= self._params.n:
            return self._params.start - 1, self._params.start - 1
        cycles = [self._params.start + u - 1 for u in read_at(min(bit // (2 * self._params.bits), COUNT - 1))]
        return min(cycles), max(cycles)

    def _feed(self, m: Module, control: Control) -> None:
        """The product reads the ports."""

    def product_register(self, operation: Operation) -> Any:
        made = self._product
        match operation:
            case Operation(Kind.SQUARES):
                return made.squares
            case Operation(Kind.PAIRS):
                return list(made.pairs.values())
            case Operation(Kind.COLUMN, (_, k)):
                return made.columns[k]
            case Operation(Kind.WORD):
                return made.word
            case Operation(Kind.ABOVE):
                return made.above
        raise AssertionError(operation)


class Machine(WordsMachine):
    """The product and the folds."""

    _product: TwoLevelProduct

    def product(self, m: Module, control: Control) -> tuple[Value, Value]:
        strobes: Callable[..., Value] = control.any
        p = self._params
        self._product = TwoLevelProduct(m, self.i_a, self.i_b, p.digit, strobes, p.start, p.above)
        return self._product.low, self._product.high

    def product_register(self, operation: Operation) -> Any:
        match operation:
            case Operation(Kind.HALF):
                return self._product.halves
            case Operation(Kind.SUM):
                return [self._product.low, self._product.high]
        return super().product_register(operation)


def digit_bits(k: int) -> int:
    """Bits of a digit for a p of ``k`` bits."""
    return max(DIGIT_MIN, -(-k // COUNT**2))


def room(p: int) -> int:
    """Most spare bits of operands modulo p."""
    k = p.bit_length()
    return COUNT**2 * digit_bits(k) + ABOVE_MOST - k


def fit(p: int, *, spare: int) -> TwoLevel:
    """The design for p. ``spare``: bits of operands above those of p at least, for sums. Raises UnsupportedError for a
    p that is too short or too long, or whose c is too wide or has too many signed digits."""
    k = p.bit_length()
    if not BITS_MIN <= k <= BITS_MAX:
        raise UnsupportedError(f"the modulus must have {BITS_MIN} to {BITS_MAX} bits, this one has {k}")
    above = max(0, k + spare - COUNT**2 * digit_bits(k))
    params = TwoLevelParams(k, (1 << k) - p, HALVES, 1, INTERVAL, above)
    if params.C >> params.c_bits:
        raise UnsupportedError(
            f"2^{params.n} mod p = 2^{params.n - k} c has {params.C.bit_length()} bits, at most {params.c_bits} are "
            "accepted"
        )
    count = len(signed_digits(params.C))
    if count > pseudo_mersenne.TERMS_MAX:
        raise UnsupportedError(
            f"c = 2^{k} - p has {count} signed digits, at most {pseudo_mersenne.TERMS_MAX} are accepted"
        )
    return TwoLevel(p, params, {"spare": spare})


SPARE = Setting(
    "spare", int, 0, "bits of operands above those of p at least: room for sums", least=0,
    most=COUNT**2 * DIGIT_MIN + ABOVE_MOST - BITS_MIN,
    depends=f"room in the digits of p, and {ABOVE_MOST} bits more", limits=lambda p, _: (0, room(p)), room=True,
)  # fmt: skip
"""The setting of designs with the product on two levels."""
DESIGNS = (
    Design(
        name="karatsuba-two-level", page="karatsuba-two-level",
        title="Multiplication modulo 2^k - c by Karatsuba's trick on two levels, folds by shifts",
        source=Source(
            "A. A. Karatsuba, Y. P. Ofman; A. Weimerskirch, C. Paar",
            "Multiplication of Multidigit Numbers on Automata; Generalizations of the Karatsuba Algorithm for "
            "Efficient Implementations",
            "Soviet Physics Doklady 7; report", 1963, "array, order of the pairs and folds are ours",
        ),
        needs=f"p = 2^k - c of {BITS_MIN} to {BITS_MAX} bits with c of less than about 7/16 of them, few signed digits",
        settings=(SPARE,),
        solve=fit,
    ),
)  # fmt: skip
