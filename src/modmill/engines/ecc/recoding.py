# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Recoding of scalars: a number in [0, 2^bits) as a fixed number of digits for a program.

A digit d selects entry d of a table; the recoding determines the value of that entry:

    Unsigned   k = sum d_i 2^(w i)                            value d
    Signed     k = sum (d_i - 2^(w-1)) 2^(w i)                value d - 2^(w-1): the digits of k + 2^(w-1) sum 2^(w i)
    Odd        k = sum (2 d_i + 1 - 2^w) 2^(w i), k odd       value 2 d + 1 - 2^w: the digits of (k + 2^(w m) - 1) / 2
    Comb       k = sum over passes j, columns v: bits of the teeth at b v + a i + j, i = 0 ... t - 1
    Gray       differences of neighbouring bits, for a ladder that swaps its two points by address

``digits(k)`` returns the ``count`` digits in order of use. It raises UnsupportedError for a scalar out of range.

Sources: comb, C. H. Lim, P. J. Lee: More flexible exponentiation with precomputation, CRYPTO '94; odd digits, M. Joye,
M. Tunstall: Exponent recoding and regular exponentiation algorithms, AFRICACRYPT 2009.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from modmill.contract import UnsupportedError
from modmill.engines.ranges import require_range


def _require(k: int, bits: int) -> None:
    require_range([k], 1 << bits, f"a scalar of this program must be in [0, 2^{bits})")


def _split(number: int, window: int, count: int) -> tuple[int, ...]:
    mask = (1 << window) - 1
    return tuple(number >> (window * i) & mask for i in reversed(range(count)))


@dataclass(frozen=True)
class Unsigned:
    """Plain windows of ``window`` bits; ``least``: minimum number of digits."""

    bits: int
    window: int
    least: int = 1

    @property
    def count(self) -> int:
        return max(self.least, -(-self.bits // self.window))

    def digits(self, k: int) -> tuple[int, ...]:
        _require(k, self.bits)
        return _split(k, self.window, self.count)


@dataclass(frozen=True)
class Signed:
    """Windows of digits of value -2^(w-1) ... 2^(w-1) - 1, for 0 <= k < 2^bits; with ``both`` for |k| < 2^bits. Raises
    UnsupportedError for a window of 1 bit, whose digits have the values -1 and 0 only."""

    bits: int
    window: int
    both: bool = False

    def __post_init__(self) -> None:
        if self.window < 2:
            raise UnsupportedError(f"the window of signed digits must have at least 2 bits, got {self.window}")

    @property
    def count(self) -> int:
        """The largest k determines it, because more digits are negative than positive."""
        top = (1 << self.window - 1) - 1
        return next(n for n in itertools.count(1) if top * self._ones(n) >= (1 << self.bits) - 1)

    def _ones(self, count: int) -> int:
        return ((1 << self.window * count) - 1) // ((1 << self.window) - 1)

    def digits(self, k: int) -> tuple[int, ...]:
        _require(abs(k) if self.both else k, self.bits)
        return _split(k + (self._ones(self.count) << self.window - 1), self.window, self.count)


@dataclass(frozen=True)
class Odd:
    """Windows of digits with odd values, for a group of odd order n: an even k is replaced by k - n. The value of every
    proper prefix of the digits is odd and, if 2^(bits - window) + 1 < n, not a multiple of n."""

    bits: int
    window: int
    n: int

    @property
    def count(self) -> int:
        return -(-max(self.bits, self.n.bit_length()) // self.window)

    def digits(self, k: int) -> tuple[int, ...]:
        _require(k, self.bits)
        odd = k if k % 2 else k - self.n
        return _split((odd + (1 << self.window * self.count) - 1) // 2, self.window, self.count)


@dataclass(frozen=True)
class Comb:
    """``teeth`` bits a digit and ``columns`` digits a pass, one after another. a = ceil(bits / teeth) bits between
    teeth, b = ceil(a / columns) passes; the first pass has the highest bits."""

    bits: int
    teeth: int
    columns: int

    @property
    def passes(self) -> int:
        """Number of passes of the loop."""
        return -(-self.apart // self.columns)

    @property
    def apart(self) -> int:
        """Number of bits between two teeth."""
        return -(-self.bits // self.teeth)

    @property
    def count(self) -> int:
        return self.passes * self.columns

    @property
    def factors(self) -> list[list[int]]:
        """Values of all digits of each column in the last pass."""
        found = []
        for column in range(self.columns):
            places = [self._place(tooth, column) for tooth in range(self.teeth)]
            found.append([sum((d >> t & 1) << at for t, at in enumerate(places)) for d in range(1 << self.teeth)])
        return found

    def _place(self, tooth: int, column: int) -> int:
        return self.apart * tooth + self.passes * column

    def digits(self, k: int) -> tuple[int, ...]:
        _require(k, self.bits)
        return tuple(self._digit(k, j, column) for j in reversed(range(self.passes)) for column in range(self.columns))

    def _digit(self, k: int, j: int, column: int) -> int:
        if self.passes * column + j >= self.apart:  # these bits belong to the next tooth
            return 0
        return sum((k >> (self._place(tooth, column) + j) & 1) << tooth for tooth in range(self.teeth))


@dataclass(frozen=True)
class Gray:
    """Digits of a ladder: for each bit whether it differs from the one before; then the last bit."""

    bits: int

    @property
    def count(self) -> int:
        return self.bits + 1

    def digits(self, k: int) -> tuple[int, ...]:
        _require(k, self.bits)
        return _split(k ^ k << 1, 1, self.count)


def together(*strings: tuple[int, ...]) -> tuple[int, ...]:
    """Interleave the digits of several scalars, one of each in turn. Raises ValueError for different lengths."""
    return tuple(d for digits in zip(*strings, strict=True) for d in digits)


@dataclass(frozen=True)
class Both:
    """Digits of u1 (``plain``) and of u2 (``signed``), equal numbers, interleaved; that of u2 is first."""

    plain: Unsigned
    signed: Signed

    def digits(self, u1: int, u2: int) -> tuple[int, ...]:
        return together(self.signed.digits(u2), self.plain.digits(u1))


@dataclass(frozen=True)
class Without:
    """No scalars and no digits: a program without a loop."""

    def digits(self) -> tuple[int, ...]:
        return ()
