# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A recoding of scalars as a circuit does it bit by bit: a constant is added, and each digit is bits of the sum.

sum = k + even  or  k + odd, by the parity of k        most recodings have one constant for both
sum = k xor 2 k                                        with ``gray``
digit d = the bits of the sum at the places of d       the lowest bit first; a place may be none, whose bit is 0
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Serial:
    """A recoding in bits. ``even``, ``odd``: the constant for an even and for an odd scalar. ``gray``: the sum is
    k xor 2 k. ``places``: for each digit, in order of use, the places of its bits in the sum; None: the bit is 0."""

    places: tuple[tuple[int | None, ...], ...]
    even: int = 0
    odd: int = 0
    gray: bool = False

    @property
    def length(self) -> int:
        """Number of the lowest bits of the sum that digits have."""
        return 1 + max(place for digit in self.places for place in digit if place is not None)

    def digits(self, k: int) -> tuple[int, ...]:
        """The digits of a scalar."""
        total = k ^ k << 1 if self.gray else k + (self.odd if k % 2 else self.even)
        return tuple(
            sum((total >> place & 1) << bit for bit, place in enumerate(digit) if place is not None)
            for digit in self.places
        )
