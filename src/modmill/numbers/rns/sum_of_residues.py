# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Exact bounds for reduction by a sum of residues, for any modulus p.

    V     = sum gamma_i r_i + v_alpha,     r_i = M_i mod p,   v_alpha = -alpha M mod p
    alpha = floor((sum floor(gamma_i / 2^(w-q)) + d) / 2^q)
    kappa = floor((sum floor(gamma_i / 2^s) 2^s c_i + e_alpha) / 2^T)
            c_i = floor(r_i 2^T / p),      e_alpha = floor(v_alpha 2^T / p) or 0 ("without offset")
    z     = V - kappa p

alpha is exact for Z < Zmax if d = floor(2^q E) and Zmax 2^q <= (2^q - d) M, where E is the largest truncation error. z
is never negative and always below beta p; beta is exact. (The SOR paper assumes z < p, divides by 2^W instead of p, and
omits e_alpha; therefore its condition (22) excludes many primes.) Every bound is computed for the given modulus as an
exact rational; lazy residues reach 2^w - 1.

With ``negative`` -M_i takes the place of M_i, which is a choice of ours: gamma_i = Z (-M_i)^-1 mod m_i, r_i = -M_i mod
p, and v_alpha = alpha M mod p. Then sum gamma_i / m_i = alpha - Z / M, and alpha is exact for Z 2^q < (d + 1 - 2^q E)
M. Where M_i mod p is just below p, -M_i mod p is small, and so is kappa.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, isqrt
from typing import Any

from modmill.numbers.rns.cox import Cox
from modmill.numbers.rns.residues import Base


def alpha_offset(base: Base, q: int, lazy: bool) -> int:
    """Smallest offset d for which alpha is never too small."""
    return Cox(base, q, lazy=lazy).offset


def alpha_limit(base: Base, q: int, d: int) -> int:
    """Exclusive bound of Z for which alpha with offset d is never too large."""
    return -(-((1 << q) - d) * base.M >> q) if d < 1 << q else 0


def negative_alpha_limit(cox: Cox, d: int) -> int:
    """Exclusive bound of Z for which alpha with offset d < 2^q is exact if -M_i takes the place of M_i."""
    return max(0, ceil((d + 1 - (cox.error * (1 << cox.t))) * cox.base.M / (1 << cox.t)))


@dataclass(frozen=True)
class SumOfResidues:
    """All constants of the reduction modulo ``p`` over ``base``, with their exact bounds.

    ``q``, ``d``: bits of gamma in alpha, and the offset in units of 2^-q. ``T``: fraction bits of kappa's constants.
    ``s``: low bits of gamma that kappa ignores. ``offset``: whether kappa includes e_alpha. ``lazy``: residues may have
    any value below 2^w. ``multiplied``: v_alpha is alpha * v_1, a product instead of a table of least residues.
    ``negative``: -M_i in place of M_i. Raises ValueError if d does not make alpha exact, and for T < 1.
    """

    p: int
    base: Base
    q: int
    d: int
    T: int
    s: int = 0
    offset: bool = True
    lazy: bool = True
    multiplied: bool = False
    negative: bool = False

    def __post_init__(self) -> None:
        least = self.cox.offset
        if not least <= self.d < 1 << self.q:
            raise ValueError(
                f"alpha with q = {self.q} needs an offset of at least {least} and below {1 << self.q}, got {self.d}"
            )
        if self.T < 1:
            raise ValueError(f"kappa needs T >= 1, got T = {self.T}")

    @cached_property
    def cox(self) -> Cox:
        """The cox that estimates alpha."""
        return Cox(self.base, self.q, lazy=self.lazy)

    @cached_property
    def r(self) -> tuple[int, ...]:
        """r_i = M_i mod p; -M_i mod p if ``negative``."""
        return tuple((-c if self.negative else c) % self.p for c in self.base.cofactors)

    @cached_property
    def inverses(self) -> tuple[int, ...]:
        """M_i^-1 mod m_i; (-M_i)^-1 mod m_i if ``negative``."""
        inverses, moduli = self.base.inverses, self.base.moduli
        return tuple(m - k if self.negative else k for k, m in zip(inverses, moduli, strict=True))

    def gammas(self, z: int) -> list[int]:
        """The least gamma_i of ``z``."""
        return [z * k % m for k, m in zip(self.inverses, self.base.moduli, strict=True)]

    def from_gammas(self, gammas: Iterable[int]) -> int:
        """The number in [0, M) with these gamma_i (any representatives)."""
        number = self.base.from_gammas(gammas)
        return -number % self.base.M if self.negative else number

    @cached_property
    def alpha_max(self) -> int:
        """Largest alpha that can occur."""
        return self.cox.h(self.cox.tops, self.d) if self.negative else floor(self.cox.most)

    @cached_property
    def v(self) -> tuple[int, ...]:
        """v_alpha = -alpha M mod p for alpha = 0 ... alpha_max (alpha times -M mod p when ``multiplied``); alpha M
        mod p if ``negative``."""
        v_1 = (self.base.M if self.negative else -self.base.M) % self.p
        return tuple(alpha * v_1 if self.multiplied else alpha * v_1 % self.p for alpha in range(self.alpha_max + 1))

    @cached_property
    def c(self) -> tuple[int, ...]:
        """Constants of kappa, c_i = floor(r_i 2^T / p)."""
        return tuple((r << self.T) // self.p for r in self.r)

    @cached_property
    def e(self) -> tuple[int, ...]:
        """Kappa's offset e_alpha for each alpha; all 0 without offset."""
        return tuple((v << self.T) // self.p if self.offset else 0 for v in self.v)

    @property
    def constant_bits(self) -> int:
        """Bits of the widest c_i."""
        return max(max(c.bit_length() for c in self.c), 1)

    @property
    def kappa_max(self) -> int:
        """Largest kappa (bound, inclusive)."""
        return (self._cut_sum(self.cox.tops) + max(self.e)) >> self.T

    @property
    def kappa_bits(self) -> int:
        """Bits of kappa."""
        return max(1, self.kappa_max.bit_length())

    @property
    def v_max(self) -> int:
        """Bound (inclusive) of V, the result of the original method without kappa."""
        return sum(t * r for t, r in zip(self.cox.tops, self.r, strict=True)) + max(self.v)

    @cached_property
    def _most(self) -> Fraction:
        """Largest z: p (1 - 2^-T) plus the largest truncation errors of r_i / p, gamma_i and v_alpha / p."""
        hidden = sum(t * ((r << self.T) - c * self.p) for t, r, c in zip(self.cox.tops, self.r, self.c, strict=True))
        hidden += ((1 << self.s) - 1) * sum(self.c) * self.p
        hidden += max((v << self.T) - e * self.p for v, e in zip(self.v, self.e, strict=True))
        return Fraction((self.p << self.T) - self.p + hidden, 1 << self.T)

    @cached_property
    def beta(self) -> Fraction:
        """z < beta p, exact. If ``_most`` is an integer, z may reach it, and beta p is ``_most`` + 1."""
        return (self._most + (self._most.denominator == 1)) / self.p

    @property
    def z_max(self) -> int:
        """Largest z that beta allows."""
        return int(self._most)

    @property
    def product_limit(self) -> int:
        """Exclusive bound of the product of two operands."""
        return negative_alpha_limit(self.cox, self.d) if self.negative else alpha_limit(self.base, self.q, self.d)

    @property
    def closed(self) -> bool:
        """Whether results can be operands again, any number of times."""
        return self.z_max**2 < self.product_limit

    @property
    def operand_limit(self) -> int:
        """Largest value that both operands may have (inclusive)."""
        return isqrt(self.product_limit - 1)

    def alpha(self, gammas: Iterable[int]) -> int:
        """alpha from the q most significant bits of each gamma."""
        return self.cox.h(gammas, self.d)

    def kappa(self, gammas: Iterable[int], alpha: int) -> int:
        """kappa from the constants c_i."""
        return (self._cut_sum(gammas) + self.e[alpha]) >> self.T

    def _cut_sum(self, gammas: Iterable[int]) -> int:
        return sum((g >> self.s << self.s) * c for g, c in zip(gammas, self.c, strict=True))


def _limit(base: Base, q: int, d: int, lazy: bool, negative: bool) -> int:
    """Exclusive bound of Z for which alpha is exact."""
    return negative_alpha_limit(Cox(base, q, lazy=lazy), d) if negative else alpha_limit(base, q, d)


def _best_offset(base: Base, q: int, lazy: bool, negative: bool) -> int:
    """The offset with the largest limit: the least one, or 2^q - 1 if ``negative``."""
    return (1 << q) - 1 if negative else alpha_offset(base, q, lazy)


def _least_q(base: Base, need: int, lazy: bool, negative: bool) -> int:
    """The least q for which alpha is exact up to ``need``. Raises ValueError when no q up to the channel's width is."""
    for q in range(1, base.w + 1):
        if need < _limit(base, q, _best_offset(base, q, lazy, negative), lazy, negative):
            return q
    raise ValueError(
        f"the base cannot close the loop: no q up to {base.w} separates alpha, "
        f"range {base.M.bit_length()} bits, largest product {need.bit_length()} bits"
    )


def solve(
    p: int,
    base: Base,
    *,
    lazy: bool = True,
    q: int | None = None,
    d: int | None = None,
    T: int | None = None,
    s: int = 0,
    offset: bool | None = None,
    multiplied: bool = False,
    negative: bool = False,
    operand: Fraction = Fraction(2),
    beta: Fraction = Fraction(2),
) -> SumOfResidues:
    """The cheapest constants: least q, then d, then least T with z <= ``beta`` p, without offset if that suffices.

    ``operand``: operands below this multiple of p must be accepted (results always are). ``negative``: see
    `SumOfResidues`; the offset is then 2^q - 1, which serves the largest Z.
    Raises ValueError, with the condition that fails and its numbers, if the base is too small.
    """
    largest = max(operand, beta)
    need = (ceil(largest * p) - 1) ** 2
    if need >= base.M:
        raise ValueError(
            f"the base cannot close the loop: its range has {base.M.bit_length()} bits, "
            f"products of operands below {largest} p need more than {need.bit_length()} bits"
        )
    if q is None:
        q = _least_q(base, need, lazy, negative)
    if d is None:
        d = _best_offset(base, q, lazy, negative)
    limit = _limit(base, q, d, lazy, negative)
    if not need < limit:
        raise ValueError(
            f"the base cannot close the loop: with q = {q} and offset {d} products must stay below "
            f"{limit.bit_length()} bits, operands below {largest} p give {need.bit_length()} bits"
        )

    def constants(T: int, offset: bool) -> SumOfResidues:
        return SumOfResidues(p, base, q, d, T, s, offset, lazy, multiplied, negative)

    def least_T(offset: bool) -> int:
        """By bisection: beta falls as T grows, because each truncation error halves."""
        found = range(1, base.w + base.n.bit_length() + s + 8)
        return 1 + bisect_left(found, True, key=lambda T: constants(T, offset).beta <= beta)

    choices = (False, True) if offset is None else (offset,)
    tried = [constants(least_T(o) if T is None else T, o) for o in choices]
    good = [k for k in tried if k.beta <= beta and k.closed]
    if not good:
        best = min(tried, key=lambda k: k.beta)
        raise ValueError(
            f"no kappa keeps the result below {beta} p: the best, T = {best.T}, keeps it below {float(best.beta):.6g} p"
        )
    return min(good, key=lambda k: (k.T, k.offset))


def solve_over(bases: Iterable[Base], p: int, **options: Any) -> SumOfResidues:
    """``solve`` over the first base that serves. Raises ValueError, with the reason for the last base, if none does."""
    reason = ValueError("there is no base to try; give at least one")
    for base in bases:
        try:
            return solve(p, base, **options)
        except ValueError as error:
            reason = error
    raise reason
