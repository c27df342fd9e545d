# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Counts of the operations in the channels of a residue number system, made while they are executed.

Source: L. Djath, K. Bigou, A. Tisserand: Hierarchical Approach in RNS Base Extension for Asymmetric Cryptography.
ARITH, 2019, Sections II and IV-C, for the kinds of operation and the widths of their operands:

    MM    w x w bits, modulo a channel's modulus        MUL   w x (c-1)w bits, not reduced
    MR    c w + ceil(log2 c) bits to w bits             ADD   w + w bits modulo; wide: c w + c w bits, not reduced

Deviation: operations modulo a number of w - 1 bits or fewer (a redundant modulus, a side modulus 2^g), in the cox, or
with a factor of a few bits count as "small", a kind that the paper neglects.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields
from fractions import Fraction


@dataclass(frozen=True)
class Count:
    """Number of operations of each kind. Counts can be added."""

    mm: int = 0
    mr: int = 0
    mul: int = 0
    add: int = 0
    wide: int = 0
    small: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(*(x + y for x, y in zip(astuple(self), astuple(other), strict=True)))

    @property
    def multiplications(self) -> Count:
        """MM, MR and MUL only, the kinds in the cost formulas of the literature."""
        return Count(self.mm, self.mr, self.mul)

    def cmm(self, r: Fraction | int, mul: Fraction | int = 1) -> Fraction:
        """The cost in units of an MM: an MR costs 1/r, a MUL ``mul`` (1 in the paper), the other kinds nothing. Raises
        ValueError unless r is positive."""
        if r <= 0:
            raise ValueError(f"the ratio CMM/CMR must be positive, got {r}")
        return self.mm + self.mr / Fraction(r) + self.mul * Fraction(mul)


@dataclass(frozen=True)
class Formula:
    """A closed formula of an operation count: as text, and its value for the given parameters."""

    text: str
    count: Count


class Tally:
    """Executes and counts the operations of channels of ``w`` bits in rows of ``c``. Each operation raises ValueError
    for an operand that is negative or wider than the operator."""

    def __init__(self, w: int, c: int = 1) -> None:
        self.w, self.c = w, c
        self.hat_bits = c * w + (c - 1).bit_length()
        self._counted = {kind.name: 0 for kind in fields(Count)}

    @property
    def count(self) -> Count:
        """Operations executed so far."""
        return Count(**self._counted)

    def mm(self, x: int, y: int, m: int) -> int:
        """MM: x y mod m."""
        _fits("MM", x, self.w)
        _fits("MM", y, self.w)
        self._note("mm", m)
        return x * y % m

    def mac(self, total: int, x: int, y: int) -> int:
        """total + x y, counted as an MM; the sum is reduced once, at its end."""
        _fits("MM", x, self.w)
        _fits("MM", y, self.w)
        self._note("mm")
        return total + x * y

    def mr(self, x: int, m: int) -> int:
        """MR: x mod m, x of c w + ceil(log2 c) bits."""
        _fits("MR", x, self.hat_bits)
        self._note("mr", m)
        return x % m

    def mul(self, x: int, y: int) -> int:
        """MUL: x y, y of (c - 1) w bits (or the power of two itself, a shift)."""
        _fits("MUL", x, self.w)
        if y != 1 << (self.c - 1) * self.w:
            _fits("MUL", y, (self.c - 1) * self.w)
        self._note("mul")
        return x * y

    def add(self, x: int, y: int, m: int) -> int:
        """ADD: x + y mod m, also for a negative y."""
        self._note("add", m)
        return (x + y) % m

    def wide(self, x: int, y: int) -> int:
        """The wide ADD: x + y, not reduced."""
        self._note("wide")
        return x + y

    def small(self, value: int) -> int:
        """Count one operation on a few bits and return its result, ``value``."""
        self._note("small")
        return value

    def _note(self, kind: str, m: int | None = None) -> None:
        self._counted["small" if m is not None and m <= 1 << (self.w - 1) else kind] += 1


def _fits(kind: str, x: int, bits: int) -> None:
    if not 0 <= x < 1 << bits:
        raise ValueError(f"{kind} takes {bits} bits, got {x} of {x.bit_length()} bits")
