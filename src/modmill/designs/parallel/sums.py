# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Sums in a network: trees of carry-save adders, sums of all prefixes, and a carry-select adder.

Source: C. S. Wallace: A Suggestion for a Fast Multiplier. IEEE Transactions on Electronic Computers 13(1), 1964 (tree);
        L. Dadda: Some Schemes for Parallel Multipliers. Alta Frequenza 34, 1965 (heights of columns); J. Sklansky:
        Conditional-Sum Addition Logic. IRE Transactions on Electronic Computers 9(2), 1960 (prefixes).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

from modmill.designs.parallel.network import LUT, Kind, Network, Piece, Row, clipped, span

Term = TypeVar("Term")

BLOCK = 24
"""Bits of a block of the carry-select adder."""
RIPPLE = 40
"""Most bits of a sum with a single carry chain."""


@dataclass(eq=False)
class Bit:
    """Bit ``index`` of ``word``, perhaps inverted, and the level of adders from which it is ready. Before the adder
    that makes the bit has a word, ``index`` is negative and ``word`` a rank."""

    level: int
    word: int
    index: int = -1
    inverted: bool = False


@dataclass
class Adder:
    """A full adder, or a half adder, at ``place``: the bits that it reads and those that it makes."""

    place: int
    reads: list[Bit]
    sum: Bit
    carry: Bit


def reduced(net: Network, rows: Sequence[Row], top: int) -> tuple[Row, Row]:
    """Two rows with the sum of ``rows`` modulo 2^``top``. The bits at places from ``top`` on are dropped: they are zero
    if the sum is below 2^``top``.

    In each level full adders take all bits, and half adders two more where the height of a column would exceed its
    `limits`. Adders of equal level and rank at different places are one operation.
    """
    columns: list[list[Bit]] = [[] for _ in range(top + 1)]
    for row in rows:
        for piece in clipped(row, 0, top):
            level = -(-net.times[piece.word] // LUT)
            for k in range(piece.width):
                columns[piece.place + k].append(Bit(level, piece.word, piece.start + k, piece.inverted))
    most = limits(columns)
    for level in sorted(most)[:-1]:
        ranks: dict[int, list[Adder]] = defaultdict(list)
        before: list[list[Bit]] = []
        for place, bits in enumerate(columns[:top]):
            ready = [bit for bit in bits if bit.level <= level]
            made = [bit for bit in bits if bit.level == level + 1 and bit.index < 0]
            full, rest = divmod(len(ready), 3)
            half = rest == 2 and rest + len(made) + full > most[level + 1]
            before = continued(ready, [3] * full + [2] * half, before)
            for rank, three in enumerate(before):
                adder = Adder(place, three, Bit(level + 1, 2 * rank), Bit(level + 1, 2 * rank + 1))
                ranks[rank].append(adder)
                made.append(adder.sum)
                columns[place + 1].append(adder.carry)
            columns[place] = [*ready, *made, *(b for b in bits if b.level > level and b.index >= 0)]
        for _, group in sorted(ranks.items()):
            operands = [joined((a.place, a.reads[j]) for a in group if len(a.reads) > j) for j in range(3)]
            total, carries = net.count(operands, group[-1].place + 1)
            for adder in group:
                for bit, piece in ((adder.sum, total), (adder.carry, carries)):
                    bit.word, bit.index = piece.word, adder.place - total.place
    return joined(left(columns[:top], 0)), joined(left(columns[:top], 1))


def continued(ready: list[Bit], sizes: Sequence[int], before: Sequence[Sequence[Bit]]) -> list[list[Bit]]:
    """Groups of ``sizes`` taken from ``ready``; bits that follow in a word those of the group at the place ``before``
    are in the same group, in the same order, so that the operands of operations have few pieces."""
    follows = {(b.word, b.index + 1, b.inverted): (j, k) for j, group in enumerate(before) for k, b in enumerate(group)}
    groups: list[list[Bit | None]] = [[None] * size for size in sizes]
    others: list[Bit] = []
    for bit in ready:
        j, k = follows.get((bit.word, bit.index, bit.inverted), (len(sizes), 0))
        if j < len(sizes) and k < sizes[j]:
            groups[j][k] = bit
        else:
            others.append(bit)
    others.reverse()
    filled = [[bit or others.pop() for bit in group] for group in groups]
    ready[:] = others[::-1]
    return filled


def limits(columns: Sequence[Sequence[Bit]]) -> dict[int, int]:
    """For each level, the last included, the largest height of a column of the bits that come from adders of the level
    before, or were there: heights after Dadda, less the bits that come later."""
    arrivals: Counter[int] = Counter()
    for bits in columns:
        for level, count in Counter(bit.level for bit in bits).items():
            arrivals[level] = max(arrivals[level], count)
    first = min(arrivals, default=0)
    last = max(arrivals, default=0)
    while True:
        height, most = 2, {}
        for level in range(last, first - 1, -1):
            most[level] = height - arrivals[level]
            height = most[level] * 3 // 2
            if most[level] < 2 * (level > first):
                break
        else:
            if most[first] >= 0:
                return most
        last += 1


def left(columns: Sequence[Sequence[Bit]], j: int) -> Iterator[tuple[int, Bit]]:
    """Place and bit j of each column that has one."""
    return ((place, bits[j]) for place, bits in enumerate(columns) if len(bits) > j)


def joined(bits: Iterable[tuple[int, Bit]]) -> Row:
    """A row of bits at rising places; neighbours that are neighbours in a word too are one piece."""
    row: list[Piece] = []
    for place, bit in bits:
        last = row[-1] if row else None
        if (
            last
            and (last.word, last.inverted, last.end) == (bit.word, bit.inverted, place)
            and last.start + last.width == bit.index
        ):
            row[-1] = replace(last, width=last.width + 1)
        else:
            row.append(Piece(bit.word, bit.index, 1, place, bit.inverted))
    return tuple(row)


def paired(net: Network, rows: Sequence[Row]) -> list[Row]:
    """Rows with the same sum: two and two are added in segments, each with a carry chain. The carries, at other places
    for each pair, are rows of their own."""
    made: list[Row] = []
    for j, (one, other) in enumerate(zip(rows[::2], rows[1::2], strict=False)):
        low, high = (f(ends) for f, ends in zip((min, max), zip(span(one), span(other), strict=True), strict=True))
        edges = [low, *range(low + 1 + (7 * j) % BLOCK, high, BLOCK), high]
        for first, last in pairwise(edges):
            parts = [clipped(row, first, last) for row in (one, other)]
            made.append((net.sum(Kind.PAIR, parts, last - first + 1, first),) if all(parts) else parts[0] + parts[1])
    return [*made, *rows[len(rows) & ~1 :]]


def prefixes(terms: Sequence[Term], add: Callable[[Term, Term], Term]) -> list[Term]:
    """The sums of the first one, two, ... of ``terms``: at most log2 (their number), rounded up, one after another."""
    if len(terms) == 1:
        return [terms[0]]
    half = (len(terms) + 1) // 2
    low, high = prefixes(terms[:half], add), prefixes(terms[half:], add)
    return [*low, *(add(low[-1], term) for term in high)]


def added(net: Network, kind: Kind, rows: Sequence[Row], width: int) -> Piece:
    """The sum of two rows modulo 2^``width``: blocks without and with a carry, and a choice. ``kind``: of the sum. A
    block in which neither row has a bit is one with the block before it."""
    lows = [k for k in range(0, width, BLOCK) if k == 0 or any(clipped(row, k, k + BLOCK) for row in rows)]
    if width <= RIPPLE or len(lows) == 1:
        return net.sum(kind, rows, width)
    lengths = [end - low for low, end in pairwise([*lows, width])]
    blocks = [
        [
            net.sum(Kind.BLOCK, [clipped(row, at, at + bits) for row in rows], bits + 1, at, carry)
            for at, bits in zip(lows, lengths, strict=True)
        ]
        for carry in (0, 1)
    ]
    out = [
        tuple(Piece(b.word, bits, 1, k) for k, (b, bits) in enumerate(zip(one, lengths, strict=True))) for one in blocks
    ]
    carries = net.carries([row[:-1] for row in out], len(lengths))
    sums = [tuple(Piece(b.word, 0, bits, b.place) for b, bits in zip(one, lengths, strict=True)) for one in blocks]
    return net.choice(kind, [*sums, (carries,)], width, lengths)
