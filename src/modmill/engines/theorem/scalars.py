# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Recodings executed on an unknown integer: what their digits are worth, for all scalars of a length.

Python's own code of a recoding runs on a `Scalar`, c n + d with an unknown integer n in a range. Bits of a number N
from 0 to below 2^L are atoms, and N = sum 2^i bit_i for i < L. So a digit is a sum of bits, the value of its table
entry is another one, and the value of all digits is a sum of bits again. If the weights of the bits of N are alpha 2^i,
it is alpha N. This is the induction on digits: each one adds its part of N.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from modmill.contract import UnsupportedError

Atom = tuple[str, tuple[Any, ...], int]
"""The unknown integer: its name, (), -1. Bit i of a number: (name of the unknown, (factor, offset, length), i)."""


class Scalar:
    """The sum of ``terms`` and ``offset``, known to be from ``low`` to ``high``. ``odd``: whether it is odd, if
    known."""

    def __init__(self, terms: Mapping[Atom, int], offset: int, low: int, high: int, odd: bool | None = None) -> None:
        self.terms = {a: c for a, c in terms.items() if c}
        self.offset, self.low, self.high, self.odd = offset, low, high, odd

    @classmethod
    def unknown(cls, name: str, low: int, high: int, odd: bool | None = None) -> Scalar:
        """An integer; with ``odd`` twice another one, and 1 if it is true."""
        return cls({(name, (), -1): 1 if odd is None else 2}, int(bool(odd)), low, high, odd)

    def __add__(self, other: Scalar | int) -> Scalar:
        if isinstance(other, int):
            return Scalar(self.terms, self.offset + other, self.low + other, self.high + other)
        terms = dict(self.terms)
        for a, c in other.terms.items():
            terms[a] = terms.get(a, 0) + c
        return Scalar(terms, self.offset + other.offset, self.low + other.low, self.high + other.high)

    __radd__ = __add__

    def __mul__(self, k: int) -> Scalar:
        low, high = sorted((self.low * k, self.high * k))
        return Scalar({a: c * k for a, c in self.terms.items()}, self.offset * k, low, high)

    __rmul__ = __mul__

    def __neg__(self) -> Scalar:
        return self * -1

    def __sub__(self, other: Scalar | int) -> Scalar:
        return self + -other

    def __lshift__(self, j: int) -> Scalar:
        return self * (1 << j)

    def __rshift__(self, j: int) -> _Cut:
        return _Cut(self, j)

    def __xor__(self, other: Scalar) -> _Differing:
        return _Differing(self, other)

    def __and__(self, mask: int) -> Scalar:
        return _Cut(self, 0) & mask

    def __mod__(self, k: int) -> int:
        if k != 2 or self.odd is None:
            raise UnsupportedError("a remainder of the scalar is not followed")
        return int(self.odd)

    def __floordiv__(self, k: int) -> Scalar:
        if self.offset % k or any(c % k for c in self.terms.values()):
            raise UnsupportedError(f"a division of the scalar by {k} is not exact")
        return Scalar({a: c // k for a, c in self.terms.items()}, self.offset // k, self.low // k, self.high // k)

    def __abs__(self) -> Scalar:
        return Scalar({}, 0, 0, max(abs(self.low), abs(self.high)))  # to compare it only

    def bit_length(self) -> int:
        """Maximum length."""
        return max(abs(self.low), abs(self.high)).bit_length()

    def __ge__(self, k: int) -> bool:
        return self._decided(yes=self.low >= k, no=self.high < k)

    def __lt__(self, k: int) -> bool:
        return self._decided(yes=self.high < k, no=self.low >= k)

    @staticmethod
    def _decided(*, yes: bool, no: bool) -> bool:
        if yes == no:
            raise UnsupportedError("a comparison depends on the scalar")
        return yes

    def bit(self, i: int) -> Scalar:
        """Bit i of the number. Raises UnsupportedError if it may be negative or is no multiple of one unknown."""
        if self.low < 0 or len(self.terms) > 1 or any(a[2] >= 0 for a in self.terms):
            raise UnsupportedError("bits of this number are not followed")
        if not self.terms:
            return Scalar({}, self.offset >> i & 1, 0, 1)
        ((atom, factor),) = self.terms.items()
        low_zeros = min((x & -x).bit_length() - 1 for x in (factor, self.offset) if x)
        i, length = i - low_zeros, self.high.bit_length() - low_zeros
        if not 0 <= i < length:
            return Scalar({}, 0, 0, 0)
        return Scalar({(atom[0], (factor >> low_zeros, self.offset >> low_zeros, length), i): 1}, 0, 0, 1)

    def whole(self) -> Scalar:
        """The same number, with numbers instead of their bits. Raises ValueError if its bits do not make numbers."""
        found = Scalar({a: c for a, c in self.terms.items() if a[2] < 0}, self.offset, 0, 0)
        weights: dict[tuple[str, tuple[Any, ...]], dict[int, int]] = {}
        for (name, number, i), c in self.terms.items():
            if i >= 0:
                weights.setdefault((name, number), {})[i] = c
        for (name, (factor, offset, length)), of in weights.items():
            alpha = of.get(0, 0)
            wrong = next((i for i in range(length) if of.get(i, 0) != alpha << i), None)
            if wrong is not None:
                raise ValueError(f"bit {wrong} of the scalar has the weight {of.get(wrong, 0)}, not {alpha << wrong}")
            found = found + Scalar({(name, (), -1): factor * alpha}, offset * alpha, 0, 0)
        return found

    def same(self, other: Scalar) -> bool:
        """Whether both are the same sum."""
        return self.terms == other.terms and self.offset == other.offset


class _Cut:
    """A number without its lowest ``j`` bits."""

    def __init__(self, number: Scalar, j: int) -> None:
        self._number, self._j = number, j

    def __and__(self, mask: int) -> Scalar:
        w = mask.bit_length()
        if mask != (1 << w) - 1:
            raise UnsupportedError(f"a mask of {mask:#b} is not followed")
        total = Scalar({}, 0, 0, 0)
        for t in range(w):
            total = total + self._number.bit(self._j + t) * (1 << t)
        return total


class _Differing:
    """The bits in which two numbers differ, without the lowest ``j``."""

    def __init__(self, one: Scalar, two: Scalar, j: int = 0) -> None:
        self._one, self._two, self._j = one, two, j

    def __rshift__(self, j: int) -> _Differing:
        return _Differing(self._one, self._two, self._j + j)

    def __and__(self, mask: int) -> tuple[Scalar, Scalar]:
        """The two bits of which a digit of one bit says whether they differ."""
        if mask != 1:
            raise UnsupportedError("only single bits of an exclusive or are followed")
        return self._one.bit(self._j), self._two.bit(self._j)


def of_table(digit: Scalar | int, table: Sequence[int]) -> Scalar:
    """The value of a digit's entry in a table. Raises ValueError for a digit beyond its end, and for a table that is
    not a sum of one value for each bit."""
    if isinstance(digit, int):
        digit = Scalar({}, digit, digit, digit)
    first = table[0]
    weights = [table[1 << t] - first for t in range((len(table) - 1).bit_length())]
    for d, value in enumerate(table):
        if value != first + sum(w for t, w in enumerate(weights) if d >> t & 1):
            raise ValueError(f"entry {d} of a table is not the sum of those of its bits")
    total = Scalar({}, first, 0, 0)
    for bits in ([(a, c) for a, c in digit.terms.items()], [(None, digit.offset)]):
        for atom, c in bits:
            for t in range(c.bit_length()):
                if c >> t & 1:
                    if t >= len(weights):
                        raise ValueError(f"a digit may be {1 << t} or more, and its table has {len(table)} entries")
                    one = Scalar({atom: 1}, 0, 0, 1) if atom else Scalar({}, 1, 1, 1)
                    total = total + one * weights[t]
            if c < 0:
                raise ValueError("a digit may be negative")
    return total


def digits_worth(digits: Sequence[Scalar | int], tables: Sequence[Sequence[int]], scale: int) -> list[Scalar]:
    """For each table the value of its digits: table 0 has the first digit, then every len(tables)-th. Each digit counts
    ``scale`` times as much as the next of its table. Raises ValueError as `of_table` and `Scalar.whole`."""
    found = [Scalar({}, 0, 0, 0) for _ in tables]
    for at, digit in enumerate(digits):
        column = at % len(tables)
        found[column] = found[column] * scale + of_table(digit, tables[column])
    return found


def ladder_faults(digits: Sequence[Any], k: Scalar, bits: int) -> list[str]:
    """What is false of: digit i, counted from the end, says whether bits i and i - 1 differ, for i from ``bits`` down;
    bits ``bits`` and -1 are 0. So from the highest on each digit tells the next bit, and the last one is bit 0."""
    if len(digits) != bits + 1:
        return [f"{len(digits)} digits of a ladder for {bits} bits"]
    found = []
    for i, digit in zip(reversed(range(bits + 1)), digits, strict=True):
        wanted = [k.bit(j) if 0 <= j < bits else Scalar({}, 0, 0, 0) for j in (i, i - 1)]
        if not (isinstance(digit, tuple) and all(a.same(b) for a, b in zip(digit, wanted, strict=True))):
            found.append(f"digit {i} from the end does not say whether bits {i} and {i - 1} differ")
    return found
