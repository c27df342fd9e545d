# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Base extension: from the residues of x over a base A to its residues over other moduli, with exact conditions.

    KBE           S. Kawamura, M. Koike, F. Sano, A. Shimbo: Cox-Rower Architecture for Fast Parallel Montgomery
                  Multiplication. EUROCRYPT, 2000. Here as in Algorithm 1 of the HBE paper
    HBE           L. Djath, K. Bigou, A. Tisserand: Hierarchical Approach in RNS Base Extension for Asymmetric
                  Cryptography. ARITH, 2019, Algorithm 2
    Approximate   J.-C. Bajard, L.-S. Didier, P. Kornerup: Modular Multiplication and Base Extensions in Residue Number
                  Systems. ARITH, 2001

exact_extension and fixed_point have the other methods.

Letters of the HBE paper: A = a_(1,1) ... a_(r,c), A_i the product of row i, T_(i,j) = (A / a_(i,j))^-1 mod a_(i,j),
x^_(i,j) = |x T_(i,j)|, X^_i = sum_j x^_(i,j) A_i / a_(i,j), sigma, h_i; drop = c w - t.

The result, for 0 <= x < A, offset d = 2^t sigma and the truncation error e at the X^_i of x
(0 <= e <= E, see modmill.numbers.rns.cox):

    x + k A,   k = -floor(x / A + d / 2^t - e)

so with sigma = 0 and E < 1 it is x + A if and only if x / A < e, else x.
Deviations from the HBE paper: sum h_i is h or h - 1 for sigma = 0 (printed: h - 1), and the result is x + A for small x
(printed: x close to A). t counts from the top of c w bits; X^ has ceil(log2 c) more bits, so the paper's t' is
t + ceil(log2 c). "No additional constraint" (IV-B) is wrong; condition C2 with the exact E of the rows is needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import gcd
from typing import ClassVar

from modmill.numbers.rns.conditions import Condition, require
from modmill.numbers.rns.counting import Count, Formula, Tally
from modmill.numbers.rns.cox import Cox
from modmill.numbers.rns.residues import Base


@dataclass(frozen=True)
class Exact:
    """The range of exactness: 0 <= x < ``limit``, which is ``bound`` * A rounded up; ``text`` is the formula."""

    limit: int
    bound: Fraction
    text: str


class Extension(ABC):
    """An extension from ``source`` to the moduli ``target``, on least residues. Raises ValueError with the first of
    `conditions` that fails."""

    target: tuple[int, ...]

    def __post_init__(self) -> None:
        require(self.conditions())

    @property
    @abstractmethod
    def source(self) -> Base:
        """Base A."""

    def conditions(self) -> list[Condition]:
        """All conditions on the parameters."""
        shared = next((b for b in self.target if gcd(b, self.source.M) != 1), 0)
        return [Condition(not shared, "gcd(A, b) = 1", f"{shared} shares {gcd(shared, self.source.M)} with A")]

    @property
    def reads(self) -> tuple[int, ...]:
        """The moduli of the residues that `extend` takes."""
        return self.source.moduli

    @property
    @abstractmethod
    def exact(self) -> Exact:
        """The range of x for which the result is x."""

    @property
    @abstractmethod
    def bound(self) -> Fraction:
        """Exclusive bound of the results for 0 <= x < A, as a multiple of A."""

    @property
    @abstractmethod
    def never_below(self) -> bool:
        """Whether the result is at least x for every 0 <= x < A."""

    @property
    @abstractmethod
    def formula(self) -> Formula:
        """The closed formula of the operation count."""

    @abstractmethod
    def extend(self, residues: Sequence[int], tally: Tally | None = None) -> list[int]:
        """Least residues over ``target`` of the result, from the least residues of x over `reads`."""

    @property
    def count(self) -> Count:
        """Operations of one extension, counted in a run."""
        tally = self.tally()
        self.extend([0] * len(self.reads), tally)
        return tally.count

    def tally(self) -> Tally:
        """A tally for the widths of this extension."""
        return Tally(self.source.w)

    def _wide_and_narrow(self, moduli: Sequence[int]) -> tuple[int, int]:
        """The numbers of ``moduli`` with w bits and with fewer bits."""
        wide = sum(m > 1 << (self.source.w - 1) for m in moduli)
        return wide, len(moduli) - wide


@dataclass(frozen=True)
class CoxExtension(Extension):
    """Extension by the Chinese remainder theorem with the estimate h' of ``cox``; offset ``d``, sigma = d / 2^t.

    ``scale``: factors of the results in the target channels, at no cost, because they are merged into the constants
    (empty: 1). `hats` takes any representatives x^ that the cox allows. The module's formula gives the result.
    Abstract; instantiate KBE, HBE, Approximate or FixedPoint.
    """

    cox: Cox
    target: tuple[int, ...]
    d: int = 0
    scale: tuple[int, ...] = ()
    _COX_OPERATIONS: ClassVar[int] = 1
    """Small operations in the cox for each row: an addition."""

    @property
    def source(self) -> Base:
        """Base A."""
        return self.cox.base

    def scaled(self, scale: Sequence[int]) -> CoxExtension:
        """The same extension with results multiplied by ``scale``."""
        return replace(self, scale=tuple(scale))

    @property
    def factors(self) -> tuple[int, ...]:
        """The scale factor of every target channel."""
        return self.scale or (1,) * len(self.target)

    def conditions(self) -> list[Condition]:
        """Conditions of the base class; then those on d and on the scale."""
        d, t, scales, targets = self.d, self.cox.t, len(self.factors), len(self.target)
        return [
            *super().conditions(),
            Condition(0 <= d < 1 << t, "0 <= d < 2^t", f"d = {d}, t = {t}, E = {float(self.cox.error):.6g}"),
            Condition(scales == targets, "one scale for each target", f"{scales} scales, {targets} targets"),
        ]

    @property
    def exact(self) -> Exact:
        least, part = self.cox.offset, 1 - Fraction(self.d, 1 << self.cox.t)
        text = f"x 2^t < (2^t - d) A with d = {self.d} >= floor(2^t E) = {least}"
        return Exact(self.cox.limit(self.d), part if self.d >= least else Fraction(0), text)

    @property
    def bound(self) -> Fraction:
        """1 + E - d / 2^t."""
        return 1 + self.cox.error - Fraction(self.d, 1 << self.cox.t)

    @property
    def never_below(self) -> bool:
        return self.d == 0

    @property
    def formula(self) -> Formula:
        n, c = self.source.n, self.cox.columns
        rows = n // c
        wide, narrow = self._wide_and_narrow(self.target)
        mm, add, small = n + rows * wide, 2 * rows * wide, rows * (self._COX_OPERATIONS + 3 * narrow)
        if c == 1:
            return Formula("n + n n_B MM", Count(mm=mm, add=add, small=small))
        return Formula(
            "n + n n_B / c MM + n n_B / c MR + n MUL",
            Count(mm=mm, mr=rows * wide, mul=n, add=add, wide=n, small=small + rows * narrow),
        )

    @cached_property
    def weights(self) -> tuple[tuple[int, ...], ...]:
        """|A / A_i| (times the scale) for each target and row."""
        return tuple(
            tuple(self.source.M // product * f % b for product in self.cox.products)
            for b, f in zip(self.target, self.factors, strict=True)
        )

    @cached_property
    def minus(self) -> tuple[int, ...]:
        """|-A| (times the scale) for each target."""
        return tuple(-self.source.M * f % b for b, f in zip(self.target, self.factors, strict=True))

    def tally(self) -> Tally:
        return Tally(self.source.w, self.cox.columns)

    def xhat(self, residues: Sequence[int], tally: Tally) -> list[int]:
        """Lines 1-3: x^_(i,j) = |x T_(i,j)|."""
        a = self.source
        return [tally.mm(x, T, m) for x, T, m in zip(residues, a.inverses, a.moduli, strict=True)]

    def hats(self, xhat: Sequence[int], tally: Tally) -> list[int]:
        """Lines 4-7 of Algorithm 2: X^_i; for c = 1 the x^_i themselves."""
        c = self.cox.columns
        if c == 1:
            return list(xhat)
        out = [0] * (len(xhat) // c)
        for i, (x, factor) in enumerate(zip(xhat, self.cox.cofactors, strict=True)):
            out[i // c] = tally.wide(out[i // c], tally.mul(x, factor))
        return out

    def h(self, hats: Sequence[int], tally: Tally) -> list[int]:
        """The cox, row by row (lines 6-8 of Algorithm 1, 9-11 of Algorithm 2): all h_i."""
        sigma, out = self.d, []
        for i, hat in enumerate(hats):
            sigma = tally.small(sigma + self.cox.term(i, hat))
            out.append(sigma >> self.cox.t)
            sigma -= out[-1] << self.cox.t
        return out

    def spread(
        self, hats: Sequence[int], h: Sequence[int], tally: Tally, start: Sequence[int] | None = None
    ) -> list[int]:
        """Lines 9-11 of Algorithm 1, 12-15 of Algorithm 2, with sums that begin at ``start``."""
        out = list(start) if start is not None else [0] * len(self.target)
        for i, (hat, h_i) in enumerate(zip(hats, h, strict=True)):
            for k, b in enumerate(self.target):
                x = tally.mr(hat, b) if self.cox.columns > 1 else hat
                term = tally.add(out[k], tally.mm(x, self.weights[k][i], b), b)
                out[k] = tally.add(term, h_i * self.minus[k] % b, b)
        return out

    def extend(self, residues: Sequence[int], tally: Tally | None = None) -> list[int]:
        """Algorithm 1 or 2."""
        tally = tally or self.tally()
        hats = self.hats(self.xhat(residues, tally), tally)
        return self.spread(hats, self.h(hats, tally), tally)


class KBE(CoxExtension):
    """Algorithm 1: every modulus a row. sigma = 0 or 0.5 in the paper is d = 0 or 2^(t-1). Cost: n + n n_B MM, 2 n n_B
    ADD, n small additions in the cox."""

    @classmethod
    def of(cls, source: Base, target: Sequence[int], t: int, d: int | None = None, *, lazy: bool = False) -> KBE:
        """Over ``source`` with t cox bits; d defaults to the least exact offset."""
        cox = Cox(source, t, 1, lazy)
        return cls(cox, tuple(target), cox.offset if d is None else d)


class HBE(CoxExtension):
    """Algorithm 2: rows of c moduli; h_i in 0 ... c, X^_i of c w + ceil(log2 c) bits. Cost: n + n n_B / c MM, n n_B / c
    MR, n MUL, 2 n n_B / c ADD, n wide ADD, n / c small additions in the cox."""

    @classmethod
    def of(
        cls, source: Base, target: Sequence[int], t: int, c: int = 2, d: int | None = None, *, lazy: bool = False
    ) -> HBE:
        """Over ``source`` in rows of c with t cox bits; d defaults to the least exact offset."""
        cox = Cox(source, t, c, lazy)
        return cls(cox, tuple(target), cox.offset if d is None else d)


class Approximate(CoxExtension):
    """No cox: h = 0, the result is sum X^_i A / A_i = x + k A with k <= n - 1 for least residues; no x is certain to be
    returned unchanged. Cost: that of KBE or HBE without the cox."""

    _COX_OPERATIONS = 0

    @classmethod
    def of(cls, source: Base, target: Sequence[int], c: int = 1, *, lazy: bool = False) -> Approximate:
        """Over ``source`` in rows of c."""
        return cls(Cox(source, 1, c, lazy), tuple(target))

    @property
    def exact(self) -> Exact:
        return Exact(0, Fraction(0), "no x is certain to be returned unchanged")

    @property
    def bound(self) -> Fraction:
        return self.cox.most + Fraction(1, self.source.M)  # the largest value occurs

    def h(self, hats: Sequence[int], tally: Tally) -> list[int]:
        return [0] * len(hats)
