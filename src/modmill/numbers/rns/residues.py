# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Residue number systems: bases, the Chinese remainder theorem, and searches for moduli close to a power of two.

Notation: base m_1 ... m_N of w-bit moduli, M their product, M_i = M / m_i,
gamma_i = x_i * M_i^-1 mod m_i, X = sum gamma_i M_i - alpha M.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod

MERSENNE_66_T = (2, 3, 4, 5, 6, 8, 9, 1, 12, 16, 17, 18, 21, 22, 24, 26, 28, 29, 32)
"""Exponents t of pairwise coprime 2^66 - 2^t - 1 after 2^66 - 1; the first seven are Table 1 of the SOR paper."""


@dataclass(frozen=True)
class Base:
    """Pairwise coprime moduli of exactly ``w`` bits. Raises ValueError, which names the moduli, if two share a factor
    or one has another length; also for no moduli."""

    w: int
    moduli: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.moduli:
            raise ValueError("a base needs at least one modulus")
        for m in self.moduli:
            if not 1 << (self.w - 1) < m <= 1 << self.w:
                raise ValueError(f"modulus {m} is not in (2^{self.w - 1}, 2^{self.w}]")
        running = 1
        for i, m in enumerate(self.moduli):
            if gcd(running, m) != 1:
                other = next(k for k in self.moduli[:i] if gcd(k, m) != 1)
                raise ValueError(f"moduli {other} and {m} share the factor {gcd(other, m)}; they must be coprime")
            running *= m

    @property
    def n(self) -> int:
        """Number of moduli."""
        return len(self.moduli)

    @cached_property
    def M(self) -> int:
        """Dynamic range, the product of the moduli."""
        return prod(self.moduli)

    @cached_property
    def u(self) -> tuple[int, ...]:
        """u_i, the distances to the power of two: m_i = 2^w - u_i."""
        return tuple((1 << self.w) - m for m in self.moduli)

    @cached_property
    def cofactors(self) -> tuple[int, ...]:
        """M_i = M / m_i."""
        return tuple(self.M // m for m in self.moduli)

    @cached_property
    def inverses(self) -> tuple[int, ...]:
        """M_i^-1 mod m_i."""
        return tuple(pow(c, -1, m) for c, m in zip(self.cofactors, self.moduli, strict=True))

    def residues(self, x: int) -> list[int]:
        """The least nonnegative residues of ``x``."""
        return [x % m for m in self.moduli]

    def row(self, x: int, *, scaled: bool = False) -> tuple[int, ...]:
        """x mod m_j in every channel; ``scaled``: x M_j^-1 mod m_j, so that sums of such rows give gamma_j."""
        return tuple(self.gammas(x) if scaled else self.residues(x))

    def gammas(self, x: int) -> list[int]:
        """gamma_i = x * M_i^-1 mod m_i, least residues."""
        return [x * k % m for k, m in zip(self.inverses, self.moduli, strict=True)]

    def number(self, residues: Sequence[int]) -> int:
        """The number in [0, M) with these residues (any representatives). Raises ValueError unless there are n."""
        if len(residues) != self.n:
            raise ValueError(f"{len(residues)} residues for {self.n} moduli; give one for each modulus")
        return self.from_gammas([r * k % m for r, k, m in zip(residues, self.inverses, self.moduli, strict=True)])

    def from_gammas(self, gammas: Iterable[int]) -> int:
        """The number in [0, M) with these gamma_i (any representatives)."""
        return sum(g * c for g, c in zip(gammas, self.cofactors, strict=True)) % self.M


def coprime(candidates: Iterable[int]) -> Iterator[int]:
    """The candidates that are coprime to all previously taken ones, in order (greedy)."""
    running = 1
    for m in candidates:
        if gcd(running, m) == 1:
            running *= m
            yield m


def signed_digits(u: int) -> list[tuple[int, int]]:
    """Non-adjacent form of ``u`` >= 0: pairs (exponent, +1 or -1), largest exponent first; has the fewest digits."""
    digits = []
    k = 0
    while u:
        if u & 1:
            sign = 2 - (u & 3)
            digits.append((k, sign))
            u -= sign
        u >>= 1
        k += 1
    return digits[::-1]


def mersenne_like(w: int) -> Iterator[int]:
    """Pairwise coprime moduli 2^w - 1, then 2^w - 2^t - 1 (greedy in t); for w = 66 in the SOR paper's order."""
    first = MERSENNE_66_T if w == 66 else ()
    ts = (*first, *(t for t in range(1, w - 1) if t not in first))
    return coprime([(1 << w) - 1, *((1 << w) - (1 << t) - 1 for t in ts)])


def pseudo_mersenne(w: int, *, digits: int | None = None, even: bool = False) -> Iterator[int]:
    """Pairwise coprime moduli 2^w - u in ascending u (greedy), u < 2^(w-1). ``digits`` limits the signed digits of u,
    which makes folding cheap; ``even`` also allows u = 0."""
    candidates = ((1 << w) - u for u in range(0 if even else 1, 1 << (w - 1)) if even or u % 2)
    if digits is not None:
        candidates = (m for m in candidates if len(signed_digits((1 << w) - m)) <= digits)
    return coprime(candidates)


def growing_bases(w: int, moduli: Iterator[int], enough: int, *, least: int = 2, count: int = 5) -> Iterator[Base]:
    """The ``count`` shortest prefixes of ``moduli`` with at least ``least`` moduli and a product above ``enough``.
    Raises ValueError if no prefix of the w-bit moduli suffices."""
    taken: list[int] = []
    product = 1
    found = 0
    for m in moduli:
        taken.append(m)
        product *= m
        if product > enough and len(taken) >= least:
            yield Base(w, tuple(taken))
            found += 1
            if found == count:
                return
    if not found:
        raise ValueError(
            f"only {len(taken)} moduli of {w} bits, {product.bit_length()} bits together; "
            f"more than {enough.bit_length()} bits are needed"
        )
