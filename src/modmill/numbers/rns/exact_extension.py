# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Base extensions that are exact for every x < A, over any coprime moduli, without a cox.

    MixedRadix         N. S. Szabo, R. I. Tanaka: Residue Arithmetic and Its Applications to Computer Technology.
                       McGraw-Hill, 1967, Chapter 4
    ShenoyKumaresan    A. P. Shenoy, R. Kumaresan: Fast Base Extension Using a Redundant Modulus in RNS. IEEE
                       Transactions on Computers, 1989

    mixed radix        v_1 = x_1; v_i = (... ((x_i - v_1) a_1^-1 - v_2) a_2^-1 ...) a_(i-1)^-1 mod a_i
                       x = v_1 + a_1 (v_2 + a_2 (v_3 + ...))
    redundant modulus  x^_i = |x A_i^-1|;  h = |(sum x^_i A_i - x_r) A^-1| modulo m_r;  x = sum x^_i A_i - h A

with A_i = A / a_i. Cost: `formula` of each class.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from modmill.numbers.rns.conditions import Condition
from modmill.numbers.rns.counting import Count, Formula, Tally
from modmill.numbers.rns.extension import Exact, Extension
from modmill.numbers.rns.residues import Base


class _WithoutCox(Extension):
    """Base class of both: the result equals x for every x < A."""

    a: Base

    @property
    def source(self) -> Base:
        return self.a

    @property
    def exact(self) -> Exact:
        return Exact(self.source.M, Fraction(1), "x < A")

    @property
    def bound(self) -> Fraction:
        return Fraction(1)

    @property
    def never_below(self) -> bool:
        return True


@dataclass(frozen=True)
class MixedRadix(_WithoutCox):
    """x = v_1 + v_2 a_1 + v_3 a_1 a_2 + ...; exact for every x < A and any moduli. Cost: n (n - 1) / 2 + n_B (n - 1) MM
    and the same number of ADD, in about 2 n dependent steps."""

    a: Base
    target: tuple[int, ...]

    @property
    def formula(self) -> Formula:
        n = self.source.n
        wide, narrow = self._wide_and_narrow(self.target)
        steps = n * (n - 1) // 2
        return Formula(
            "n (n - 1) / 2 + n_B (n - 1) MM",
            Count(mm=steps + wide * (n - 1), add=steps + wide * (n - 1), small=2 * narrow * (n - 1)),
        )

    def digits(self, residues: Sequence[int], tally: Tally | None = None) -> list[int]:
        """The mixed-radix digits v_i, 0 <= v_i < a_i, from least residues."""
        tally = tally or self.tally()
        a = self.source.moduli
        v = list(residues)
        for k in range(len(a)):
            for i in range(k + 1, len(a)):
                v[i] = tally.mm(tally.add(v[i], -v[k], a[i]), pow(a[k], -1, a[i]), a[i])
        return v

    def extend(self, residues: Sequence[int], tally: Tally | None = None) -> list[int]:
        """Least residues over ``target`` of x < A, from its least residues over A."""
        tally = tally or self.tally()
        v = self.digits(residues, tally)
        out = []
        for b in self.target:
            s = v[-1] % b
            for v_i, a_i in zip(v[-2::-1], self.source.moduli[-2::-1], strict=True):
                s = tally.add(tally.mm(s, a_i % b, b), v_i, b)
            out.append(s)
        return out


@dataclass(frozen=True)
class ShenoyKumaresan(_WithoutCox):
    """h from the residue modulo a redundant ``m_r`` >= n, coprime to A, the last one in `extend`. Exact for x < A.

    Also exact for larger x if the true h, in sum x^_i A / a_i = x + h A, is in [0, m_r).
    Cost: n + n (n_B + 1) + 1 MM; the n + 1 modulo m_r are small if m_r has fewer than w bits.
    """

    a: Base
    target: tuple[int, ...]
    m_r: int

    def conditions(self) -> list[Condition]:
        """Conditions of the base class; then those on m_r."""
        n, m_r = self.source.n, self.m_r
        return [
            *super().conditions(),
            Condition(m_r >= n, "m_r >= n", f"m_r = {m_r}, n = {n}"),
            Condition(gcd(m_r, self.source.M) == 1, "gcd(A, m_r) = 1", f"m_r = {m_r} shares a factor with A"),
            Condition(m_r <= 1 << self.source.w, "m_r <= 2^w", f"m_r = {m_r}, w = {self.source.w}"),
        ]

    @property
    def reads(self) -> tuple[int, ...]:
        """The moduli of A, then m_r."""
        return (*self.source.moduli, self.m_r)

    @property
    def formula(self) -> Formula:
        n = self.source.n
        (wide, narrow), (r_wide, r_narrow) = self._wide_and_narrow(self.target), self._wide_and_narrow([self.m_r])
        return Formula(
            "n + n (n_B + 1) + 1 MM, those modulo m_r small when it has fewer than w bits",
            Count(
                mm=n + n * wide + (n + 1) * r_wide,
                add=n * wide + wide + (n + 1) * r_wide,
                small=len(self.target) + (2 * n + 1) * narrow + (2 * n + 2) * r_narrow,
            ),
        )

    def extend(self, residues: Sequence[int], tally: Tally | None = None) -> list[int]:
        """Least residues over ``target``, from the least residues over A and modulo m_r."""
        tally = tally or self.tally()
        base, m_r = self.source, self.m_r
        xhat = [tally.mm(x, T, a) for x, T, a in zip(residues[:-1], base.inverses, base.moduli, strict=True)]
        total = _sum_of_products(tally, xhat, base.cofactors, m_r)
        h = tally.mm(tally.add(total, -residues[-1], m_r), pow(base.M, -1, m_r), m_r)
        out = []
        for b in self.target:
            total = _sum_of_products(tally, xhat, base.cofactors, b)
            out.append(tally.add(total, -tally.small(h * (base.M % b)), b))
        return out


def _sum_of_products(tally: Tally, x: Sequence[int], constants: Sequence[int], m: int) -> int:
    total = 0
    for v, k in zip(x, constants, strict=True):
        total = tally.add(total, tally.mm(v, k % m, m), m)
    return total
