# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The search for q, Delta and T of a sum of residues over one base: what each value costs, and what it is worth.

Source:  M. A. Mehrabi: Improved Sum of Residues Modular Multiplication Algorithm. Cryptography 3(2):14, 2019, Section
         2.2 (q, Delta) and equations (23), (24) (T). The paper gives the values that a program found, without a rule.
Formula: as in `sum_of_residues`. With gamma uniform and independent, and the fraction of kappa's sum uniform, the mean
         of floor(a) - floor(b) is that of a - b; it is the probability that the two differ if a - b < 1.
Range:   exact rationals. Bounds hold for every operand; means hold for random operands with X Y far below M.

Rules that give the printed values:
    q   the least with E(q) <= Delta. For the base of Table 1 and Delta = 1/16: E(7) is just above 1/16, so q = 8
    T   n + 2 log2 N. Each c_i lacks less than 2^-T, so the sum of (24) lacks less than N 2^n / 2^T <= 1/N. For n = 66
        and N = 8: T = 72, which drops the W - T = 184 low bits of <M_i>_p for secp256k1. The printed T = 71 for 2^255 -
        19 drops as many; the sum then lacks up to 1/4
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, factorial, log2

from modmill.numbers.rns.cox import Cox
from modmill.numbers.rns.residues import Base
from modmill.numbers.rns.sum_of_residues import SumOfResidues

DELTA = Fraction(1, 16)
"""Delta of Section 2.2."""


@dataclass(frozen=True)
class AlphaRow:
    """One q: E, the largest truncation error of the sum of gamma_i / m_i; the least offset d that is exact, in units of
    2^-q; the exclusive bound of Z (0: none); whether that serves the operands."""

    q: int
    error: Fraction
    offset: int
    limit: int
    serves: bool


@dataclass(frozen=True)
class KappaRow:
    """One T with these ``constants``."""

    constants: SumOfResidues

    @property
    def T(self) -> int:
        """Fraction bits of the c_i."""
        return self.constants.T

    @property
    def dropped(self) -> int:
        """W - T, the low bits of <M_i>_p that the paper's constants lack."""
        return self.constants.p.bit_length() - self.T

    @cached_property
    def _lacks(self) -> list[tuple[int, Fraction]]:
        """(m_i, what c_i 2^-T of the paper lacks of r_i / 2^W)."""
        k = self.constants
        W = k.p.bit_length()
        return [
            (m, Fraction((r << self.T) % (1 << W), 1 << W + self.T)) for m, r in zip(k.base.moduli, k.r, strict=True)
        ]

    @property
    def lost(self) -> Fraction:
        """Mean of (23) - (24)."""
        return sum((Fraction(m - 1, 2) * lack for m, lack in self._lacks), Fraction(0))

    @property
    def most_lost(self) -> Fraction:
        """Bound of the difference of the sums in (23) and (24); below 1, `lost` is the share of products for which the
        two differ."""
        return sum(((m - 1) * lack for m, lack in self._lacks), Fraction(0))

    @property
    def above(self) -> Fraction:
        """Mean of floor(z / p) for random operands below p; the share of results that are not below p if beta <= 2."""
        k, scale = self.constants, self.constants.p << self.T
        hidden = sum(
            Fraction(m - 1, 2) * ((r << self.T) - c * k.p) for m, r, c in zip(k.base.moduli, k.r, k.c, strict=True)
        )
        weights = _weights(k.base.n)
        by_alpha = sum(
            weight * ((k.v[alpha] << self.T) - k.e[alpha] * k.p) for alpha, weight in enumerate(weights) if weight
        )
        return Fraction(hidden + by_alpha) / scale


def _weights(n: int) -> list[Fraction]:
    """The probability of alpha = 0 ... n for random Z far below M: that of the sum of n uniform fractions to be alpha,
    if it is a whole number. These are Eulerian numbers over (n - 1)!."""
    row = [1]
    for k in range(2, n):
        row = [(j + 1) * (row[j] if j < len(row) else 0) + (k - j) * (row[j - 1] if j else 0) for j in range(k)]
    return [Fraction(0), *(Fraction(a, factorial(n - 1)) for a in row), *([Fraction(0)] if n > 1 else [])]


def alpha_rows(chosen: SumOfResidues, need: int, most: int = 10) -> list[AlphaRow]:
    """q = 1 ... ``most``, and up to the q of ``chosen``. ``need``: largest product that must be served."""
    rows = []
    for q in range(1, min(chosen.base.w, max(most, chosen.q)) + 1):
        cox = Cox(chosen.base, q, lazy=chosen.lazy)
        d = cox.offset
        if chosen.negative and d < 1 << q:
            d = (1 << q) - 1
        limit = 0
        if d < 1 << q:
            limit = replace(chosen, q=q, d=d).product_limit
        rows.append(AlphaRow(q, cox.error, cox.offset, limit, need < limit))
    return rows


def kappa_rows(chosen: SumOfResidues) -> list[KappaRow]:
    """T from the least with which results can be operands again to a few bits above that of ``chosen`` and of the
    rule, with the other constants of ``chosen``."""
    last = max(chosen.T, rule_T(chosen.base)) + 8
    first = last
    while first > 1 and replace(chosen, T=first - 1).closed:
        first -= 1
    return [KappaRow(replace(chosen, T=T)) for T in range(first, last + 1)]


def rule_T(base: Base) -> int:
    """T = n + 2 log2 N, rounded up, with which the sum of (24) lacks at most 1/N."""
    return base.w + ceil(2 * log2(base.n))


def rule_q(rows: Sequence[AlphaRow], delta: Fraction = DELTA) -> int | None:
    """The least q with E(q) <= ``delta``; None if no row has it."""
    return next((row.q for row in rows if row.error <= delta), None)
