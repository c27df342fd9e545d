# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Montgomery multiplication in a residue number system: x y A^-1 mod p over a pair of bases A and B.

    Full         K. C. Posch, R. Posch: Modulo Reduction in Residue Number Systems. IEEE Transactions on Parallel and
                 Distributed Systems, 1995. S. Kawamura, M. Koike, F. Sano, A. Shimbo: Cox-Rower Architecture for Fast
                 Parallel Montgomery Multiplication. EUROCRYPT, 2000. Here as in L. Djath, K. Bigou, A. Tisserand:
                 Hierarchical Approach in RNS Base Extension for Asymmetric Cryptography. ARITH, 2019, Algorithm 3
    Gandino      F. Gandino, F. Lamberti, G. Paravati, J.-C. Bajard, P. Montuschi: An Algorithmic and Architectural
                 Study on Montgomery Exponentiation in RNS. IEEE Transactions on Computers, 2012 (our derivation; the
                 costs agree)
    Guillermin   N. Guillermin: A High Speed Coprocessor for Elliptic Curve Scalar Multiplications over F_p. CHES, 2010
                 (our derivation; the costs agree)

quadratic_residues, double_level and hybrid_position have further methods.

Algorithm 3: Q = X (-p^-1) in A; extended to B as Q + k A; S = (X + (Q + k A) p) A^-1 in B; extended to A exactly.
With operands below lambda p and extensions with results below g A (g = 1 + E with a cox of offset 0):

    S < (p lambda^2 / A + g) p,    closed when p lambda^2 / A + g <= lambda and lambda p <= the exact limit over B

Deviations from the HBE paper: S < 3 p (delta in {0, 1, 2}) holds only for X < A p; A >= 4 g p is needed, n w > log2 p
does not suffice; the second extension must be exact, not the first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd
from typing import Self, TypeVar

from modmill.numbers.rns.conditions import Condition, require
from modmill.numbers.rns.counting import Count, Formula, Tally
from modmill.numbers.rns.cox import Loop
from modmill.numbers.rns.exact_extension import ShenoyKumaresan
from modmill.numbers.rns.extension import HBE, Approximate, CoxExtension, Extension
from modmill.numbers.rns.residues import Base

Made = TypeVar("Made")
Pair = tuple[list[int], list[int]]
"""A number: its residues in A and in B, multiplied by the method's stored factors."""


@dataclass(frozen=True)
class Montgomery(ABC):
    """A multiplier modulo ``p`` with extension ``first`` from A to B and ``second`` back.

    ``operand``: lambda; operands are below lambda p. None takes the largest lambda that closes the loop. Raises
    ValueError with the first of `conditions` that fails.
    """

    p: int
    first: Extension
    second: Extension
    operand: Fraction | None = None

    def __post_init__(self) -> None:
        require(self.conditions())

    @classmethod
    def of(cls, p: int, a: Base, b: Base, t: int | None = None, c: int = 1, operand: Fraction | None = None) -> Self:
        """With KBE (c = 1) or HBE in rows of c, and t bits in the cox; None takes the least t that satisfies
        `conditions`."""
        return least_t(lambda bits: cls(p, *pair_of(a, b, bits, c), operand), a.w * c, t)

    @property
    def a(self) -> Base:
        """Base A, whose product is the Montgomery radix."""
        return self.first.source

    @property
    def b(self) -> Base:
        """Base B."""
        return self.second.source

    @cached_property
    def loop(self) -> Loop:
        """The closed loop of dependent products."""
        return Loop(self.p, self.a, self.first.bound, self.second.exact.limit)

    @cached_property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """Exclusive bounds of operands and of results, as multiples of p."""
        largest = self.operand if self.operand is not None else self.loop.operand() or Fraction(0)
        return largest, self.loop.result(largest**2)

    def conditions(self) -> list[Condition]:
        """All conditions on p, the bases and the extensions."""
        p, a, b = self.p, self.a.M, self.b.M
        (lam, result), g, limit = self.bounds, self.first.bound, self.loop.largest_result
        pairing = self.first.target == self.second.reads and self.second.target == self.first.reads
        ratio, room = f"p / A = {_decimal(Fraction(p, a))}, g = {_decimal(g)}", f"limit / p = {_decimal(limit)}"
        sizes = f"{len(self.first.target)} and {len(self.second.reads)} moduli of B"
        return [
            Condition(p >= 3, "p >= 3", f"p = {p}"),
            Condition(pairing, "the extensions run from A to B and back", sizes),
            Condition(gcd(a, b) == 1, "gcd(A, B) = 1", f"they share {gcd(a, b)}"),
            Condition(gcd(p, a * b) == 1, "gcd(p, A B) = 1", f"they share {gcd(p, a * b)}"),
            Condition(self.first.never_below, "Q from the first extension >= 0", "it needs offset d = 0"),
            Condition(limit > 0, "the second extension is exact", self.second.exact.text),
            Condition(self.operand is not None or 4 * g * p <= a, "A >= 4 g p", ratio),
            Condition(lam > 0, "lambda p <= exact limit over B for some closed lambda", f"{room}, {ratio}"),
            Condition(result <= lam, "p lambda^2 / A + g <= lambda", f"lambda = {_decimal(lam)}, {ratio}"),
            Condition(lam <= limit, "lambda p <= exact limit over B", f"lambda = {_decimal(lam)}, {room}"),
        ]

    @property
    def factor(self) -> int:
        """The factor of the product modulo p: A^-1."""
        return pow(self.a.M, -1, self.p)

    @property
    def u(self) -> tuple[int, ...]:
        """Factors of the residues stored in A."""
        return (1,) * len(self.first.reads)

    @property
    def v(self) -> tuple[int, ...]:
        """Factors of the residues stored in B and modulo a redundant modulus."""
        return (1,) * len(self.second.reads)

    def encode(self, x: int) -> Pair:
        """The stored form of x. Raises ValueError unless 0 <= x < lambda p."""
        if not 0 <= x < self.bounds[0] * self.p:
            largest, given = _decimal(self.bounds[0]), _decimal(Fraction(x, self.p))
            raise ValueError(f"operands are in 0 ... {largest} p, got {given} p")
        return (
            [x * u % m for u, m in zip(self.u, self.first.reads, strict=True)],
            [x * v % m for v, m in zip(self.v, self.second.reads, strict=True)],
        )

    def decode(self, pair: Pair) -> int:
        """The number, below the limit of the second extension. Raises ValueError if the residues in A and B
        disagree."""
        plain = [x * pow(v, -1, m) % m for x, v, m in zip(pair[1], self.v, self.second.reads, strict=True)]
        x = self.b.number(plain[: self.b.n])
        factors, moduli = (*self.u, *self.v), (*self.first.reads, *self.second.reads)
        for value, factor, m in zip((*pair[0], *pair[1]), factors, moduli, strict=True):
            if (value - x * factor) % m:
                raise ValueError(f"residue {value} modulo {m} does not belong to {x}, the number in the other base")
        return x

    def multiply(self, x: Pair, y: Pair, tally: Tally | None = None) -> Pair:
        """The stored form of a number congruent to x y A^-1 mod p, below the result bound."""
        tally = tally or self.tally()
        in_a, in_b = (
            [self._product(s, t, m, tally) for s, t, m in zip(x[side], y[side], moduli, strict=True)]
            for side, moduli in enumerate((self.first.reads, self.second.reads))
        )
        return self.reduce((in_a, in_b), tally)

    def _product(self, x: int, y: int, m: int, tally: Tally) -> int:
        return tally.mm(x, y, m)

    @abstractmethod
    def reduce(self, s: Pair, tally: Tally | None = None) -> Pair:
        """The stored result from ``s``, the channels' products."""

    @property
    @abstractmethod
    def formula(self) -> Formula:
        """The closed formula of the multiplications in one product."""

    def tally(self) -> Tally:
        """A tally for the widths of this multiplier."""
        c = max(e.cox.columns if isinstance(e, CoxExtension) else 1 for e in (self.first, self.second))
        return Tally(self.a.w, c)

    @property
    def count(self) -> Count:
        """Operations of one product, counted in a run."""
        tally = self.tally()
        one = self.encode(1)
        self.multiply(one, one, tally)
        return tally.count


def pair_of(a: Base, b: Base, t: int, c: int = 1, *, lazy: bool = False) -> tuple[CoxExtension, CoxExtension]:
    """KBE (c = 1) or HBE from ``a`` to ``b`` with offset 0, and back with the least exact offset."""
    return HBE.of(a, b.moduli, t, c, 0, lazy=lazy), HBE.of(b, a.moduli, t, c, lazy=lazy)


@dataclass(frozen=True)
class Full(Montgomery):
    """Algorithm 3 with any two extensions. Cost with KBE: 2 n^2 + 7 n MM, of which 2 n for the product."""

    @classmethod
    def without_cox(cls, p: int, a: Base, b: Base, m_r: int, operand: Fraction | None = None) -> Full:
        """Approximate first, redundant modulus ``m_r`` second (see `extension`)."""
        return cls(p, Approximate.of(a, (*b.moduli, m_r)), ShenoyKumaresan(b, a.moduli, m_r), operand)

    @property
    def formula(self) -> Formula:
        """As in the base class, with the operations of the two extensions."""
        n, n_b = self.a.n, len(self.second.reads)
        wide = sum(m > 1 << (self.a.w - 1) for m in self.second.reads)
        own = Count(mm=2 * n + 3 * wide, add=wide, small=4 * (n_b - wide))
        count = own + self.first.formula.count + self.second.formula.count
        columns = {e.cox.columns if isinstance(e, CoxExtension) else 0 for e in (self.first, self.second)}
        if columns == {1}:
            return Formula("2 n^2 + 7 n MM", count)
        if len(columns) == 1 and 0 not in columns:
            return Formula("2 n^2 / c + 7 n MM + 2 n^2 / c MR + 2 n MUL", count)
        return Formula(f"2 n + 3 n_B MM, ({self.first.formula.text}), ({self.second.formula.text})", count)

    def reduce(self, s: Pair, tally: Tally | None = None) -> Pair:
        """Algorithm 3 from the products ``s`` on: Q in A, extended to B; S in B, extended to A."""
        tally = tally or self.tally()
        minus = [tally.mm(x, pow(-self.p, -1, m), m) for x, m in zip(s[0], self.a.moduli, strict=True)]
        q = self.first.extend(minus, tally)
        out = []
        for x, k, m in zip(s[1], q, self.second.reads, strict=True):
            r = tally.add(x, tally.mm(k, self.p % m, m), m)
            out.append(tally.mm(r, pow(self.a.M, -1, m), m))
        return self.second.extend(out, tally), out


@dataclass(frozen=True)
class Merged(Montgomery):
    """Constants merged into stored factors u in A and v in B, and into the extensions. c > 1 for HBE.

        x^_i   = s_i k_i,                           k_i = (-p A_i)^-1 u_i^-2         (s_i = x y u_i^2)
        zeta_j = s_j e_j + sum_i |X^_i| |p A_i^-1 B_j^-1| + h |-p B_j^-1|,    e_j = (A B_j)^-1 v_j^-2
        w v_j  = zeta_j o_j,                        o_j = B_j v_j;        w u_i by the second extension

    A product with k, e or o is free when all of them are 1 or -1 (a sign counts as an addition). The cost in MM is
    2 n_A n_B / c and (1 + 1 + [k] + [e] + [o]) n, in MR 2 n_A n_B / c for c > 1, in MUL 2 n for c > 1.
    """

    first: CoxExtension
    second: CoxExtension

    @cached_property
    def k(self) -> tuple[int, ...]:
        """Constants before the first extension."""
        parts = zip(self.a.cofactors, self.u, self.a.moduli, strict=True)
        return tuple(pow(-self.p * A_i * u * u, -1, m) for A_i, u, m in parts)

    @cached_property
    def e(self) -> tuple[int, ...]:
        """Constants of the products in B."""
        parts = zip(self.b.cofactors, self.v, self.b.moduli, strict=True)
        return tuple(pow(self.a.M * B_j * v * v, -1, m) for B_j, v, m in parts)

    @cached_property
    def o(self) -> tuple[int, ...]:
        """Constants from zeta to the stored residues in B."""
        return tuple(B_j * v % m for B_j, v, m in zip(self.b.cofactors, self.v, self.b.moduli, strict=True))

    @cached_property
    def extensions(self) -> tuple[CoxExtension, CoxExtension]:
        """The two extensions with their results scaled."""
        into = [self.p * pow(self.a.M * B_j, -1, m) % m for B_j, m in zip(self.b.cofactors, self.b.moduli, strict=True)]
        return self.first.scaled(into), self.second.scaled(self.u)

    def reduce(self, s: Pair, tally: Tally | None = None) -> Pair:
        """The formulas above, from the products ``s`` on."""
        tally = tally or self.tally()
        first, second = self.extensions
        hats = first.hats(_times(tally, s[0], self.k, self.a.moduli), tally)
        start = _times(tally, s[1], self.e, self.b.moduli)
        zeta = first.spread(hats, first.h(hats, tally), tally, start)
        hats = second.hats(zeta, tally)
        return second.spread(hats, second.h(hats, tally), tally), _times(tally, zeta, self.o, self.b.moduli)

    _CONSTANTS = (1, 1)
    """Products with constants in each channel of A, and of B."""

    @property
    def formula(self) -> Formula:
        (k, eo), n_a, n_b = self._CONSTANTS, self.a.n, self.b.n
        rows_a, rows_b = n_a // self.first.cox.columns, n_b // self.second.cox.columns
        inner = rows_a * n_b + rows_b * n_a
        mm = inner + (1 + k) * n_a + (1 + eo) * n_b
        if self.first.cox.columns == 1:
            return Formula(f"2 n^2 + {2 + k + eo} n MM", Count(mm=mm))
        return Formula(f"2 n^2 / c + {2 + k + eo} n MM + 2 n^2 / c MR + 2 n MUL", Count(mm, inner, n_a + n_b))


@dataclass(frozen=True)
class Gandino(Merged):
    """B stored as x B_j^-1: o = 1. Cost: 2 n^2 + 4 n MM; with HBE 2 n^2 / c + 4 n MM, 2 n^2 / c MR and 2 n MUL."""

    @property
    def v(self) -> tuple[int, ...]:
        """B_j^-1, the factors of residues stored in B."""
        return self.b.inverses


@dataclass(frozen=True)
class Guillermin(Merged):
    """Plain residues on both sides. Cost: 2 n^2 + 5 n MM."""

    _CONSTANTS = (1, 2)


def least_t(make: Callable[[int], Made], most: int, t: int | None = None) -> Made:
    """``make(t)``; for t None the first of ``make(1)`` ... ``make(most)`` that raises no ValueError. More bits never
    make a cox worse, so the last is made first, and its ValueError is raised."""
    found = make(most if t is None else t)
    for bits in range(1, most) if t is None else ():
        with suppress(ValueError):
            return make(bits)
    return found


def _times(tally: Tally, x: Sequence[int], constants: Sequence[int], moduli: Sequence[int]) -> list[int]:
    """x times constants. If all constants are 1 or -1, only the signs are counted."""
    parts = zip(x, constants, moduli, strict=True)
    if any(k not in (1, m - 1) for k, m in zip(constants, moduli, strict=True)):
        return [tally.mm(s, k, m) for s, k, m in parts]
    return [s if k == 1 else tally.add(0, -s, m) for s, k, m in parts]


def _decimal(x: Fraction) -> str:
    return f"{float(x):.6g}" if x < 1 << 1000 else f"2^{x.numerator.bit_length() - x.denominator.bit_length()}"
