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

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
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


class _Chain:
    def __init__(self) -> None:
        self.steps: list[tuple[int, int]] = []

    def product(self, a: int, b: int) -> int:
        self.steps.append((a, b))
        return len(self.steps)

    def squarings(self, a: int, count: int) -> int:
        for _ in range(count):
            a = self.product(a, a)
        return a


def _by_windows(exponent: int, window: int) -> Steps:
    made = _Chain()
    pieces = list(_windows(exponent, window))
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
    return tuple(made.steps)


def _windows(exponent: int, window: int) -> Iterator[tuple[int, int]]:
    """Yield (squarings before the digit, odd digit); the first has no squarings. Trailing squarings have digit 0."""
    bits = bin(exponent)[2:]
    at, waiting = 0, 0
    first = True
    while at < len(bits):
        if bits[at] == "0":
            waiting, at = waiting + 1, at + 1
            continue
        piece = bits[at : at + window].rstrip("0")
        yield (0 if first else waiting + len(piece)), int(piece, 2)
        first, waiting, at = False, 0, at + len(piece)
    if waiting:
        yield waiting, 0


def _runs(exponent: int) -> list[tuple[int, int]]:
    """Return (zeros before the run, ones) for each run of ones; trailing zeros as (zeros, 0)."""
    found: list[tuple[int, int]] = []
    zeros = ones = 0
    for bit in bin(exponent)[2:]:
        if bit == "1":
            ones += 1
        elif ones:
            found.append((zeros, ones))
            zeros, ones = 1, 0
        else:
            zeros += 1
    return [*found, (zeros, ones)]


def _by_runs(exponent: int) -> Steps:
    """Return the shortest chain whose lengths include a subset of the runs' own lengths and their remainders."""
    runs = _runs(exponent)
    ones = sorted({n for _, n in runs if n})
    stops = dict.fromkeys([*ones, *(n % m for n in ones for m in ones if n % m > 1)])
    found = []
    for through in _subsets(list(stops)[:_STOPS]):
        lengths: tuple[int, ...] = (1,)
        for target in sorted(through):
            lengths = _star(lengths, target)
        found.append(_along(runs, lengths))
    return min(found, key=len)


def _along(runs: list[tuple[int, int]], lengths: tuple[int, ...]) -> Steps:
    made = _Chain()
    ones_of = {1: 0}
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
    return tuple(made.steps)


def _subsets(numbers: list[int]) -> Iterator[list[int]]:
    for mask in range(1 << len(numbers)):
        yield [n for k, n in enumerate(numbers) if mask >> k & 1]


@lru_cache(maxsize=1024)
def _star(lengths: tuple[int, ...], target: int) -> tuple[int, ...]:
    """Extend the chain to ``target`` in the fewest steps; each new length is the last one plus one of the chain."""
    if target in lengths:
        return lengths
    depth = 1
    while (found := _search(lengths, target, depth)) is None:
        depth += 1
    return found


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
