# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Powers with a fixed exponent: a chain of squarings and products that depends only on the exponent.

Several chains of two kinds are computed; the shortest is used:

    windows   sliding windows with odd digits, for exponents without structure
    runs      x_n = x^(2^n - 1) along an addition chain of lengths, x_(m+n) = x_m^(2^n) x_n, for exponents with few
              runs of ones, such as p - 2 for p = 2^255 - 19; each run of ones is composed of lengths in the chain

Sources: T. Itoh, S. Tsujii: A fast algorithm for computing multiplicative inverses in GF(2^m) using normal bases,
Information and Computation 78, 1988 (runs); D. E. Knuth: The Art of Computer Programming 2, 4.6.3 (star chains,
windows).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, reduce
from itertools import count, pairwise
from typing import TypeVar

from modmill.contract import UnsupportedError

Power = TypeVar("Power")
Steps = tuple[tuple[int, int], ...]
"""Products (a, b): value k + 1 is the product of values a and b; value 0 is the base."""

_WINDOWS = range(1, 8)
_STOPS = 7
"""Maximum number of lengths that are tried as intermediate steps of a chain."""


def power(base: Power, exponent: int, multiply: Callable[[Power, Power], Power]) -> Power:
    """base^exponent by `chain`. Raises UnsupportedError for an exponent below 1."""
    held = [base]
    for a, b in chain(exponent):
        held.append(multiply(held[a], held[b]))
    return held[-1]


@lru_cache(maxsize=64)
def chain(exponent: int) -> Steps:
    """Return the shortest chain found for an exponent. Raises UnsupportedError for an exponent below 1."""
    if exponent < 1:
        raise UnsupportedError(f"the exponent of an addition chain must be at least 1, got {exponent}")
    found = [_by_windows(exponent, w) for w in _WINDOWS]
    if len(_runs(exponent)) <= 12:
        found.append(_by_runs(exponent))
    return min(found, key=len)


class _Chain(list[tuple[int, int]]):
    def product(self, a: int, b: int) -> int:
        self.append((a, b))
        return len(self)

    def squarings(self, a: int, count: int) -> int:
        for _ in range(count):
            a = self.product(a, a)
        return a


def _by_windows(exponent: int, window: int) -> Steps:
    made = _Chain()
    pieces = _windows(exponent, window)
    largest = max(digit for _, digit in pieces)
    odd = {1: 0}
    if largest > 1:
        square = made.product(0, 0)
        for digit in range(3, largest + 1, 2):
            odd[digit] = made.product(odd[digit - 2], square)
    held = odd[pieces[0][1]]
    for shift, digit in pieces[1:]:
        held = made.squarings(held, shift)
        if digit:
            held = made.product(held, odd[digit])
    return tuple(made)


def _windows(exponent: int, window: int) -> list[tuple[int, int]]:
    """(squarings before the digit, odd digit); those of the first digit do not count. Trailing squarings: digit 0."""
    pieces = re.findall(rf"(0*)(1[01]{{0,{window - 1}}}(?<=1)|$)", f"{exponent:b}")
    return [(len(zeros + digit), int(digit or "0", 2)) for zeros, digit in pieces if zeros or digit]


def _runs(exponent: int) -> list[tuple[int, int]]:
    """Return (zeros before the run, ones) for each run of ones; trailing zeros as (zeros, 0)."""
    return [(len(z), len(ones)) for z, ones in re.findall("(0*)(1*)", f"{exponent:b}") if z or ones]


def _by_runs(exponent: int) -> Steps:
    """Return the shortest chain whose lengths include a subset of the runs' own lengths and their remainders."""
    runs = _runs(exponent)
    ones = sorted({n for _, n in runs if n})
    stops = list(dict.fromkeys([*ones, *(n % m for n in ones for m in ones if n % m > 1)]))[:_STOPS]
    found = []
    for mask in range(1 << len(stops)):
        through = sorted(n for k, n in enumerate(stops) if mask >> k & 1)
        found.append(_along(runs, reduce(_star, through, (1,))))
    return min(found, key=len)


def _along(runs: list[tuple[int, int]], lengths: tuple[int, ...]) -> Steps:
    made, ones_of = _Chain(), {1: 0}
    for smaller, larger in pairwise(lengths):
        step = larger - smaller
        ones_of[larger] = made.product(made.squarings(ones_of[smaller], step), ones_of[step])
    held = -1
    for zeros, ones in runs:
        held = made.squarings(held, zeros) if held >= 0 else held
        left = ones
        while left:
            piece = max(n for n in lengths if n <= left)
            held = made.product(made.squarings(held, piece), ones_of[piece]) if held >= 0 else ones_of[piece]
            left -= piece
    return tuple(made)


@lru_cache(maxsize=1024)
def _star(lengths: tuple[int, ...], target: int) -> tuple[int, ...]:
    """Extend the chain to ``target`` in the fewest steps; each new length is the last one plus one of the chain."""
    if target in lengths:
        return lengths
    return next(found for depth in count(1) if (found := _search(lengths, target, depth)))


def _search(lengths: tuple[int, ...], target: int, depth: int) -> tuple[int, ...] | None:
    last = lengths[-1]
    if last << depth < target:
        return None
    for n in reversed(lengths):
        if last + n == target:
            return (*lengths, target)
        if depth > 1 and last + n < target:
            found = _search((*lengths, last + n), target, depth - 1)
            if found:
                return found
    return None
