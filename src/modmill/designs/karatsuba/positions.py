# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A Montgomery multiplication modulo a sparse prime, position by position: ranges, schedule and values.

    V = x y + sum of +-Q 2^e over the terms + p R, if it is added;  Q = V mod R,  R = 2^(h q);  v = (V - Q) / R

Position k of V has weight 2^(h k). It is the sum of what the product adds there, of a digit of Q 2^e for each term, of
a digit of p R, and of the carry of position k - 1. Positions k and n + k are added in the same cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from modmill.designs.solinas.sparse_quotient import Term
from modmill.schedule import Operation, Operations, Step

NEAREST = 3
"""Least floor(e / h) of a term: a digit passes the mask, the last addition and the carry."""
DEPTH_MAX = 6
"""Most levels of additions."""


class Kind(Operations):
    """The operations behind those of the product, for position k and digit j."""

    SUM = "T{}"  # position k of V without the carry
    QUOTIENT = "Q{}"
    OUT = "v{}"


def depths(distances: Sequence[int], others: int) -> list[int]:
    """For each term, floor(e / h) being in ``distances``, and then for ``others`` more numbers, how many additions
    before the sum it is added. Raises ValueError if the terms are too near."""
    for levels in range(1, DEPTH_MAX + 1):
        found = [min(a - NEAREST + 1, levels) for a in distances] + [levels] * others
        if sum(1 << levels - depth for depth in found) <= 1 << levels:
            return found
    raise ValueError(f"{len(distances)} terms {', '.join(map(str, distances))} digits away cannot be added in time")


@dataclass(frozen=True)
class Positions:
    """``bits``: h; ``count``: n; ``quotient``: digits of Q, n or n + 1; ``result``: digits of v, the last with all
    remaining bits.

    ``terms``: the signed powers of 2 of p + 1 or p - 1; ``added``: p if p = 1 mod 2^z, else 0. ``most``: the largest
    number that the product adds to each position, 2 n positions; ``streams``: the parts in which it comes.
    """

    bits: int
    count: int
    quotient: int
    result: int
    terms: tuple[Term, ...]
    added: int
    most: tuple[int, ...]
    streams: int

    @property
    def r(self) -> int:
        """r with R = 2^r."""
        return self.bits * self.quotient

    @property
    def waits(self) -> int:
        """Cycles for which digits of v wait: some are behind the others if Q has more than n digits."""
        return self.quotient - self.count

    @property
    def mask(self) -> int:
        """The largest digit."""
        return (1 << self.bits) - 1

    @property
    def entering(self) -> list[int]:
        """`depths` of the terms, of the parts of the product and of p R. Raises ValueError as `depths` does."""
        return depths([term.e // self.bits for term in self.terms], self.streams + (self.added > 0))

    @property
    def levels(self) -> int:
        """Additions before the carry."""
        return self.entering[-1]

    def weights(self, k: int) -> dict[int, int]:
        """The weight of each bit of Q in position k of V; k = 2 n: all positions from there on."""
        found: dict[int, int] = {}
        for term in self.terms:
            first = self.bits * k - term.e
            for i in range(max(first, 0), min(first + self.bits, self.r) if k < 2 * self.count else self.r):
                found[i] = found.get(i, 0) + ((-1 if term.negative else 1) << i - first)
        return found

    def range(self, k: int, carry: tuple[int, int]) -> tuple[int, int]:
        """The range of position k of V for a carry in this range; k = 2 n: of all that is above."""
        low, high = carry
        whole = k == 2 * self.count
        constant = (self.added << self.r) >> self.bits * k & (-1 if whole else self.mask)
        weights = self.weights(k).values()
        most = constant + (0 if whole else self.most[k])
        return low + constant + sum(min(w, 0) for w in weights), high + most + sum(max(w, 0) for w in weights)

    @cached_property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The range of each position of V with the carry into it; the last is that of all that is above."""
        found, carry = [], (0, 0)
        for k in range(2 * self.count + 1):
            found.append(self.range(k, carry))
            carry = (found[-1][0] >> self.bits, found[-1][1] >> self.bits)
        return tuple(found)

    @property
    def carries(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The range of the carries out of the lower n positions, and of those out of the others."""
        n = self.count
        halves = (self.ranges[:n], self.ranges[n : 2 * n])
        low, high = ((min(a for a, _ in half) >> self.bits, max(b for _, b in half) >> self.bits) for half in halves)
        return low, high

    def steps(self, first: int, reads: Callable[[int], Sequence[Operation]]) -> Iterator[Step]:
        """Digits of Q and of v; digit 0 of Q is in its register in cycle ``first``. ``reads``: the operations that give
        what the product adds to a position. An operation does not list carries among its reads."""
        n, end = self.count, self.quotient + self.result
        added = min(self.levels, min(term.e for term in self.terms) // self.bits - 1)
        for k in range(min(2 * n, end)):
            lags = {term.e // self.bits + over for term in self.terms for over in (0, term.e % self.bits > 0)}
            digits = [Kind.QUOTIENT(k - lag) for lag in sorted(lags) if 0 <= k - lag < self.quotient]
            unit = ("low", "high")[k // n] + " sums"
            yield Kind.SUM(k).on(unit, first + k - 1 - added, added, [*reads(k), *digits], busy=1)
            if k < self.quotient:
                yield Kind.QUOTIENT(k).on("v" if k == n else "Q", first + k - 1, 1, [Kind.SUM(k)])
        for k in range(self.quotient, end):
            unit, sum_ = ("v", k) if k < 2 * n else ("highest digit", k - 1)
            yield Kind.OUT(k - self.quotient).on(unit, first + k - 1, 1 + self.waits, [Kind.SUM(sum_)], busy=1)

    def evaluate(self, numbers: Sequence[int]) -> Generator[tuple[str, Any], None, int]:
        """The intermediates for what the product adds to the positions, ``numbers``; returns v."""
        Q = v = carry = 0
        end = self.quotient + self.result

        def added(k: int, mask: int) -> int:
            pieces = (((Q << t.e) >> self.bits * k & mask) * (-1 if t.negative else 1) for t in self.terms)
            return ((self.added << self.r) >> self.bits * k & mask) + sum(pieces)

        for k, number in enumerate([*numbers, 0][:end]):
            highest = k == end - 1
            total = number + added(k, -1 if highest else self.mask)
            if k < 2 * self.count:
                yield f"T{k}", total
            total += carry
            digit = total if highest else total & self.mask
            carry = total >> self.bits
            if k < self.quotient:
                yield f"Q{k}", digit
                Q |= digit << self.bits * k
            else:
                yield f"v{k - self.quotient}", digit
                v += digit << self.bits * (k - self.quotient)
        return v
