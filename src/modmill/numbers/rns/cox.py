# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The cox: an estimate, from a few top bits, of how often a base's product must be subtracted, with exact bounds.

Base A of n = r c moduli a_(i,j) of w bits in rows of c, A_i the product of row i (c = 1: Kawamura's KBE, every modulus
a row; c > 1: the hierarchical HBE).

    xi_(i,j) = x (A / a_(i,j))^-1 mod a_(i,j)
    Xhat_i   = sum_j xi_(i,j) A_i / a_(i,j)                       (not reduced; c = 1: xi itself)
    x        = sum_i Xhat_i A / A_i - h A
    h'       = floor((sum_i floor(Xhat_i / 2^drop) + d) / 2^t),   drop = c w - t

With E the largest truncation error, an exact rational, summed over the rows:
    h' = h            when d >= floor(2^t E) and x 2^t < (2^t - d) A   (exact)
    h' = h or h - 1   when d = 0 and E < 1                            (the result is x, or x + A when x < E A)
    h - h' < 1 + E    when d = 0, for every E                         (the result is below (1 + E) A)
    without a cox     the result is x + h A, h <= floor(sum of the largest Xhat_i / A_i)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product as every
from math import prod

from modmill.numbers.rns.residues import Base


@dataclass(frozen=True)
class Cox:
    """The cox of ``base`` in rows of ``columns`` moduli, with ``t`` fraction bits; ``lazy`` residues reach 2^w - 1.
    Raises ValueError if the moduli do not fill the rows or t is out of range."""

    base: Base
    t: int
    columns: int = 1
    lazy: bool = True

    def __post_init__(self) -> None:
        if self.columns < 1 or self.base.n % self.columns:
            raise ValueError(f"{self.base.n} moduli do not fill rows of {self.columns}; take a multiple of it")
        if not 1 <= self.t <= self.columns * self.base.w:
            raise ValueError(f"t must be in 1 ... {self.columns * self.base.w}, got {self.t}")

    @property
    def drop(self) -> int:
        """Number of low bits of Xhat that the cox ignores."""
        return self.columns * self.base.w - self.t

    @cached_property
    def rows(self) -> tuple[tuple[int, ...], ...]:
        """Moduli of each row."""
        m, c = self.base.moduli, self.columns
        return tuple(m[i : i + c] for i in range(0, len(m), c))

    @cached_property
    def products(self) -> tuple[int, ...]:
        """A_i, the product of each row."""
        return tuple(prod(row) for row in self.rows)

    @cached_property
    def cofactors(self) -> tuple[int, ...]:
        """A_i / a_(i,j) of every modulus, the factor of its xi in Xhat_i."""
        return tuple(product // a for row, product in zip(self.rows, self.products, strict=True) for a in row)

    @cached_property
    def tops(self) -> tuple[int, ...]:
        """Largest Xhat of each row."""
        top = (1 << self.base.w) - 1
        return tuple(
            sum((top if self.lazy else a - 1) * (product // a) for a in row)
            for row, product in zip(self.rows, self.products, strict=True)
        )

    @cached_property
    def error(self) -> Fraction:
        """E: sum over the rows of an upper bound of Xhat / A_i - `term` / 2^t. For c = 1 the bound is the maximum over
        all xi; for c > 1 over all integers up to the largest Xhat."""
        total = Fraction(0)
        for i, (product, top) in enumerate(zip(self.products, self.tops, strict=True)):
            block = top >> self.drop
            candidates = [top, *([(block << self.drop) - 1] if block else [])]
            total += max(Fraction(x, product) - Fraction(self.term(i, x), 1 << self.t) for x in candidates)
        return total

    @property
    def offset(self) -> int:
        """The smallest d that makes the cox exact, in units of 2^-t."""
        return (self.error.numerator << self.t) // self.error.denominator

    def limit(self, d: int | None = None) -> int:
        """Exclusive bound of x for an exact result with offset ``d`` (default: the smallest); 0 if d is not exact."""
        d = self.offset if d is None else d
        return -(-((1 << self.t) - d) * self.base.M >> self.t) if self.offset <= d < 1 << self.t else 0

    @property
    def most(self) -> Fraction:
        """Sum of the largest Xhat_i / A_i: without a cox the result is at most x + floor(most) A."""
        parts = (Fraction(top, product) for top, product in zip(self.tops, self.products, strict=True))
        return sum(parts, Fraction(0))

    @property
    def bound(self) -> Fraction:
        """Largest result of an extension from [0, A) with offset 0, as a multiple of A."""
        return min(self.most, 1 + self.error)

    def term(self, i: int, hat: int) -> int:
        """The addend of row i to the cox's sum, from its Xhat: floor(Xhat / 2^drop)."""
        return hat >> self.drop

    def hats(self, xi: Sequence[int]) -> list[int]:
        """Xhat of every row; ``xi`` may be any representatives."""
        c = self.columns
        terms = [v * k for v, k in zip(xi, self.cofactors, strict=True)]
        return [sum(terms[i : i + c]) for i in range(0, len(terms), c)]

    def h(self, hats: Iterable[int], d: int = 0) -> int:
        """The estimate h' for offset ``d``, from Xhat of every row."""
        return (sum(self.term(i, x) for i, x in enumerate(hats)) + d) >> self.t


@dataclass(frozen=True)
class EitherCox(Cox):
    """Bounds of the cox for all 2^n bases that take one modulus of each channel: that of ``base``, the smaller one, or
    that of ``others``. Raises ValueError if one of these is smaller.

    ``most`` and ``limit`` are at their worst for ``base``: they fall and grow with every modulus. E is a sum over the
    rows, so its maximum over all bases is the sum of each row's maximum over its own 2^c choices.
    """

    others: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(other < own for own, other in zip(self.base.moduli, self.others, strict=True)):
            raise ValueError("the base must have the smaller modulus of each channel")

    @cached_property
    def error(self) -> Fraction:
        """E: the largest of all bases."""
        w, c = self.base.w, self.columns
        channels = list(zip(self.base.moduli, self.others, strict=True))
        rows = (every(*channels[k : k + c]) for k in range(0, self.base.n, c))
        return sum((max(Cox(Base(w, x), self.t, c, self.lazy).error for x in row) for row in rows), Fraction(0))


@dataclass(frozen=True)
class Loop:
    """The closed loop of RNS Montgomery multiplication modulo ``p`` (condition C4), operands below ``operand`` * p.

    First extension: S = (X Y + Q p) / A with Q <= ``gain`` A, so S < (products operand^2 p / A + gain) p.
    Second extension: exact over ``b`` for S < ``limit``. ``products``: number of products in the sum before a
    reduction.
    """

    p: int
    a: Base
    gain: Fraction
    limit: int
    products: int = 1

    def result(self, product_bound: Fraction) -> Fraction:
        """Bound of S as a multiple of p, for X Y < product_bound * p^2."""
        return product_bound * self.p / self.a.M + self.gain

    @cached_property
    def largest_result(self) -> Fraction:
        """Exclusive bound of S / p for which the second extension is exact."""
        return Fraction(self.limit, self.p)

    def operand(self) -> Fraction | None:
        """A lambda such that operands below lambda p give exact results below lambda p; None if there is none.

        G lambda^2 p / A + gain <= lambda holds between the roots of the quadratic; below the smaller root results
        exceed lambda. Returns the middle of the roots, A / (2 G p); or ``largest_result`` where that is smaller, or
        larger and still between the roots.
        """

        def closed(bound: Fraction) -> bool:
            return self.result(self.products * bound**2) <= bound

        best = min(Fraction(self.a.M, 2 * self.products * self.p), self.largest_result)
        if not closed(best):
            return None
        # grow towards the larger root while the loop stays closed
        while best < self.largest_result and closed(bigger := min(best * 2, self.largest_result)):
            best = bigger
        return best
