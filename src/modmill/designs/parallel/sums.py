# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Sums in a network: rows from pieces, trees of carry-save adders, sums of all prefixes, and a carry-select adder.

Source: C. S. Wallace: A Suggestion for a Fast Multiplier. IEEE Transactions on Electronic Computers 13(1), 1964 (tree);
        V. G. Oklobdzija, D. Villeger, S. S. Liu: A Method for Speed Optimized Partial Product Reduction. IEEE
        Transactions on Computers 45(3), 1996 (the three rows that are ready first are added first); J. Sklansky:
        Conditional-Sum Addition Logic. IRE Transactions on Electronic Computers 9(2), 1960 (prefixes).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TypeVar

from modmill.designs.parallel.network import Kind, Network, Piece, Row, clipped, span

Term = TypeVar("Term")

BLOCK = 24
"""Bits of a block of the carry-select adder."""
RIPPLE = 40
"""Most bits of a sum with a single carry chain."""


def packed(net: Network, pieces: Sequence[Piece]) -> list[Row]:
    """The pieces in few rows, each of pieces that are ready in the same time."""
    rows: list[Row] = []
    for _, group in groupby(sorted(pieces, key=lambda p: (net.times[p.word], p.place)), lambda p: net.times[p.word]):
        fresh: list[list[Piece]] = []
        for piece in group:
            free = next((row for row in fresh if row[-1].end <= piece.place), None)
            if free is None:
                fresh.append(free := [])
            free.append(piece)
        rows += map(tuple, fresh)
    return rows


def reduced(net: Network, rows: Sequence[Row], top: int) -> tuple[Row, Row]:
    """Two rows with the sum of ``rows`` modulo 2^``top``. The bits at places from ``top`` on are dropped: they are zero
    if the sum is below 2^``top``."""

    def early(row: Row) -> tuple[int, int, int]:
        return net.time(row), sum(piece.width for piece in row), span(row)[0]

    left = sorted((row for row in (clipped(row, 0, top) for row in rows) if row), key=early)
    while len(left) > 2:
        one, two = net.count(left[:3], top)
        left = sorted([*left[3:], *(row for row in (one, two) if row)], key=early)
    first, second = [*left, (), ()][:2]
    return first, second


def prefixes(terms: Sequence[Term], add: Callable[[Term, Term], Term]) -> list[Term]:
    """The sums of the first one, two, ... of ``terms``: at most log2 (their number), rounded up, one after another."""
    if len(terms) == 1:
        return [terms[0]]
    half = (len(terms) + 1) // 2
    low, high = prefixes(terms[:half], add), prefixes(terms[half:], add)
    return [*low, *(add(low[-1], term) for term in high)]


def added(net: Network, kind: Kind, rows: Sequence[Row], width: int) -> Piece:
    """The sum of two rows modulo 2^``width``: blocks without and with a carry, and a choice. ``kind``: of the result."""
    if width <= RIPPLE:
        return net.sum(kind, rows, width)
    lengths = [min(BLOCK, width - low) for low in range(0, width, BLOCK)]
    blocks = [
        [
            net.sum(Kind.BLOCK, [clipped(row, at, at + bits) for row in rows], bits + 1, at, carry)
            for at, bits in zip(range(0, width, BLOCK), lengths, strict=True)
        ]
        for carry in (0, 1)
    ]
    out = [tuple(Piece(b.word, bits, 1, k) for k, (b, bits) in enumerate(zip(one, lengths, strict=True))) for one in blocks]
    carries = net.carries([row[:-1] for row in out], len(lengths))
    sums = [tuple(Piece(b.word, 0, bits, b.place) for b, bits in zip(one, lengths, strict=True)) for one in blocks]
    return net.choice(kind, [*sums, (carries,)], width, lengths)
