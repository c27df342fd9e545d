# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""RNS Montgomery multiplication with square roots as stored factors, which save constant products.

Source: S. Kawamura, Y. Komano, H. Shimizu, T. Yonemura: RNS Montgomery Reduction Algorithms Using Quadratic
Residuosity. Journal of Cryptographic Engineering, 2019 (our derivation; the costs agree).

    A stored as x K_i,  K_i^2 = +-(-p A_i)^-1 mod a_i:   x^_i = +- the product of two stored residues
    SingleQ: B stored as x B_j^-1                        DoubleQ: B stored as x C_j,  C_j^2 = +-(A B_j)^-1 mod b_j

Deviation: the sign. The source needs a quadratic residue in every channel, so its bases depend on p and need a search.
Modulo a prime that is 3 mod 4 either c or -c has a root, so every base of such primes serves every p. A prime modulus
that is 1 mod 4 is accepted if c has a root; composite moduli are refused.
Cost: 2 n^2 + 3 n MM (2 n^2 / c + 3 n MM, 2 n^2 / c MR, 2 n MUL with HBE) and up to n sign changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from modmill.numbers.primes import is_prime, square_root
from modmill.numbers.rns.conditions import Condition
from modmill.numbers.rns.residues import Base
from modmill.numbers.rns.rns_montgomery import Merged


def root(c: int, m: int) -> int | None:
    """K with K^2 = c or -c modulo an odd prime m; None if neither is a square (m = 1 mod 4)."""
    found = square_root(c, m)
    return square_root(-c, m) if found is None else found


def _roots(base: Base, values: Sequence[int]) -> tuple[int, ...]:
    """Roots of the inverses of ``values``; 1 for a missing root, which `conditions` refuses."""
    return tuple((is_prime(m) and root(pow(v, -1, m), m)) or 1 for v, m in zip(values, base.moduli, strict=True))


def _squares(base: Base, values: Sequence[int], roots: Sequence[int], name: str) -> list[Condition]:
    """The condition that K_i^2 is plus or minus the value's inverse, for every channel."""
    return [
        Condition(
            K * K * v % m in (1, m - 1),
            f"{name}^2 = +-c mod m has a solution",
            f"m = {m}, {'prime' if is_prime(m) else 'composite'}, {m % 4} mod 4, c = {v}^-1",
        )
        for K, v, m in zip(roots, values, base.moduli, strict=True)
    ]


@dataclass(frozen=True)
class SingleQ(Merged):
    """sQ-RNS: roots in A. u = K, v = B_j^-1, so k = +-1 and o = 1."""

    _CONSTANTS = (0, 1)

    @property
    def _in_a(self) -> list[int]:
        return [-self.p * A_i % m for A_i, m in zip(self.a.cofactors, self.a.moduli, strict=True)]

    @cached_property
    def u(self) -> tuple[int, ...]:
        """K_i, the factors of residues stored in A."""
        return _roots(self.a, self._in_a)

    @property
    def v(self) -> tuple[int, ...]:
        """B_j^-1, the factors of residues stored in B."""
        return self.b.inverses

    def conditions(self) -> list[Condition]:
        """Conditions of the base class; then that every K_i exists."""
        earlier = super().conditions()
        if not all(c.holds for c in earlier):
            return earlier
        return [*earlier, *_squares(self.a, self._in_a, self.u, "K")]


@dataclass(frozen=True)
class DoubleQ(SingleQ):
    """dQ-RNS: roots in A and B. u = K, v = C, so k and e are +-1; the sum is multiplied by the constant o = B_j C_j."""

    @property
    def _in_b(self) -> list[int]:
        return [self.a.M * B_j % m for B_j, m in zip(self.b.cofactors, self.b.moduli, strict=True)]

    @cached_property
    def v(self) -> tuple[int, ...]:
        """C_j, the factors of residues stored in B."""
        return _roots(self.b, self._in_b)

    def conditions(self) -> list[Condition]:
        """Conditions of sQ-RNS; then that every C_j exists."""
        earlier = super().conditions()
        if not all(c.holds for c in earlier):
            return earlier
        return [*earlier, *_squares(self.b, self._in_b, self.v, "C")]
