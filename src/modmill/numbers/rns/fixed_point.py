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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from modmill.numbers.rns.counting import Tally
from modmill.numbers.rns.cox import Cox
from modmill.numbers.rns.extension import CoxExtension
from modmill.numbers.rns.residues import Base


@dataclass(frozen=True)
class FixedPointCox(Cox):
    """The cox of the module's formula. ``t`` is s, the fraction bits of the k_i; ``dropped`` is u, the number of low
    bits of x^_i that are ignored. Conditions as for Cox, in units of 2^-s; E is the exact maximum over all x^_i.

    Raises ValueError if s < w (a k_i would be 0), u is out of range, or a row has several moduli.
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
        return self.dropped

    @cached_property
    def k(self) -> tuple[int, ...]:
        """The constants k_i."""
        return tuple((1 << self.t) // a for a in self.base.moduli)

    def term(self, i: int, hat: int) -> int:
        """(x^_i >> u << u) k_i."""
        return (hat >> self.drop << self.drop) * self.k[i]


class FixedPoint(CoxExtension):
    """The extension for arbitrary moduli. Cost: that of KBE and n small products with the k_i."""

    cox: FixedPointCox
    _COX_OPERATIONS = 2

    @classmethod
    def of(
        cls, source: Base, target: Sequence[int], s: int, u: int = 0, d: int | None = None, *, lazy: bool = False
    ) -> FixedPoint:
        """Over ``source`` with s fraction bits; u low bits of each x^ are ignored; d defaults to the least exact
        offset."""
        cox = FixedPointCox(source, s, 1, lazy, u)
        return cls(cox, tuple(target), cox.offset if d is None else d)

    def h(self, hats: Sequence[int], tally: Tally) -> list[int]:
        for _ in hats:
            tally.small(0)  # the product with k_i
        return super().h(hats, tally)
