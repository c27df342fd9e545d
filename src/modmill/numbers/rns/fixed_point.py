# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Base extension with a fixed-point cox, for moduli that are not close to a power of two.

Source: K. C. Posch, R. Posch: Modulo Reduction in Residue Number Systems. IEEE Transactions on Parallel and Distributed
Systems, 1995, for the idea; the bounds are our derivation.

    h = floor((sum (x^_i >> u << u) k_i + d) / 2^s),    k_i = floor(2^s / a_i)

exact when d >= floor(2^s E) and x 2^s < (2^s - d) A, where
E = sum_i max over x^_i of x^_i / a_i - (x^_i >> u << u) k_i / 2^s.
Cost: that of Kawamura's extension and n products with the k_i.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from modmill.numbers.rns.counting import Tally
from modmill.numbers.rns.cox import Cox
from modmill.numbers.rns.extension import CoxExtension
from modmill.numbers.rns.residues import Base


@dataclass(frozen=True)
class FixedPointCox(Cox):
    """A cox for moduli that are not close to 2^w: h' = floor((sum (x^_i >> u << u) k_i + d) / 2^s).

    k_i = floor(2^s / a_i). ``t`` is s, the fraction bits of the k_i; ``dropped`` is u, the number of low bits of x^_i
    that are ignored. Conditions as for Cox, in units of 2^-s. Raises ValueError if s < w (a k_i would be 0), u is out
    of range, or a row has several moduli. Our derivation.
    """

    dropped: int = 0

    def __post_init__(self) -> None:
        if self.columns != 1:
            raise ValueError(f"the fixed-point cox has rows of 1 modulus, got {self.columns}")
        if self.t < self.base.w:
            raise ValueError(f"s must be at least {self.base.w}, got {self.t}")
        if not 0 <= self.dropped < self.base.w:
            raise ValueError(f"u must be in 0 ... {self.base.w - 1}, got {self.dropped}")

    @property
    def drop(self) -> int:
        """u, the number of low bits of x^ that the cox ignores."""
        return self.dropped

    @cached_property
    def k(self) -> tuple[int, ...]:
        """The constants k_i."""
        return tuple((1 << self.t) // a for a in self.base.moduli)

    @cached_property
    def error(self) -> Fraction:
        """E of the module's formula, a maximum over all x^_i, exact."""
        total = Fraction(0)
        for a, k, top in zip(self.base.moduli, self.k, self.tops, strict=True):
            block = top >> self.drop
            candidates = [top, *([(block << self.drop) - 1] if block else [])]
            total += max(Fraction(x, a) - Fraction((x >> self.drop << self.drop) * k, 1 << self.t) for x in candidates)
        return total

    @property
    def total_bits(self) -> int:
        """Bits of the cox's sum, offset included."""
        terms = sum((top >> self.drop << self.drop) * k for top, k in zip(self.tops, self.k, strict=True))
        return (terms + self.offset).bit_length()

    def h(self, hats: Sequence[int], d: int = 0) -> int:
        """The estimate h' for offset ``d``, in units of 2^-s, from x^ of every modulus."""
        return (sum((x >> self.drop << self.drop) * k for x, k in zip(hats, self.k, strict=True)) + d) >> self.t


class FixedPoint(CoxExtension):
    """The extension for arbitrary moduli. Cost: that of KBE and n small products with the k_i."""

    cox: FixedPointCox

    @classmethod
    def of(
        cls, source: Base, target: Sequence[int], s: int, u: int = 0, d: int | None = None, *, lazy: bool = False
    ) -> FixedPoint:
        """Over ``source`` with s fraction bits; u low bits of each x^ are ignored; d defaults to the least exact
        offset."""
        cox = FixedPointCox(source, s, 1, lazy, u)
        return cls(cox, tuple(target), cox.offset if d is None else d)

    @property
    def _cox_operations(self) -> int:
        return 2 * self.source.n

    def _addend(self, i: int, hat: int) -> int:
        return (hat >> self.cox.drop << self.cox.drop) * self.cox.k[i]

    def steps(self, hats: Sequence[int], tally: Tally) -> Iterator[tuple[int, int]]:
        """The cox, modulus by modulus: (2^s sigma, h_i)."""
        for step in super().steps(hats, tally):
            tally.small(0)  # the product with k_i
            yield step
