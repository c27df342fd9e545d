# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The network of a product modulo p: columns of the product, folds, and the last sum.

    D_u = x_u y_u;  P_(i,j) = (x_i + x_j) (y_i + y_j),  i < j
    x y = sum of P_(i,j) 2^(w (i+j)) + sum of 2 D_u 2^(2 w u) - sum of S_k 2^(w k), 0 <= k < 2 d
    S_k = sum of e_i over k - d < i <= k,  e_i = D_i mod 2^w + floor(D_(i-1) / 2^w)

A term that is subtracted enters as its inverted bits: -s = (2^n - 1 - s) - (2^n - 1). The constants are added up modulo
p, so all numbers are nonnegative and congruent to the product, but may exceed it: T >= 0, T = x y (mod p).
A fold replaces the part of T above 2^k, k bits of p. If few signed digits of 2^j mod p are set, its two rows are moved
there (shifts). Else segments of both rows are added, and tables have i 2^j mod p for indices i of a few bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby

from modmill.designs.parallel.network import Kind, Network, Piece, Row, clipped
from modmill.designs.parallel.sums import added, paired, prefixes, reduced
from modmill.numbers.rns.residues import signed_digits

SEGMENT = 20
"""About the number of bits of a segment, with its carry."""
CANDIDATES = 8
"""With canonical results, folds are repeated while the sum is not below this multiple of p, if they lower it."""
FOLDS = ("auto", "tables", "shifts")


@dataclass(frozen=True)
class Options:
    """``w``: bits of a digit; ``index``: bits of an index; ``fold``: of FOLDS; ``canonical``: results below p."""

    w: int
    index: int
    fold: str
    canonical: bool


@dataclass(frozen=True)
class Sum:
    """Two rows, and the exclusive bound of their sum."""

    rows: tuple[Row, Row]
    bound: int


@dataclass(frozen=True)
class Shape:
    """A network for operands below 2^``width``. ``sums``: T and the sum after each fold; ``ways``: how each was folded;
    ``result``: where the result is; ``bound``: its exclusive bound."""

    width: int
    network: Network
    sums: tuple[Sum, ...]
    ways: tuple[str, ...]
    result: Piece
    bound: int

    @property
    def tiles(self) -> int:
        """Number of DSP blocks."""
        return sum(op.kind is Kind.PRODUCT for op in self.network.operations)

    @property
    def table_bits(self) -> int:
        """Bits of all tables."""
        return sum(len(op.table) * op.widths[0] for op in self.network.operations)


def digits(word: int, width: int, w: int) -> list[Piece]:
    """The digits of an operand of ``width`` bits, at place 0."""
    return [Piece(word, at, min(w, width - at), 0) for at in range(0, width, w)]


def product(net: Network, width: int, p: int, w: int) -> Sum:
    """T."""
    x, y = (digits(word, width, w) for word in (0, 1))
    d = len(x)
    most = [(1 << piece.width) - 1 for piece in x]
    squares = [net.product([(a,), (b,)], 2 * a.width) for a, b in zip(x, y, strict=True)]
    if d == 1:
        return Sum(((squares[0],), ()), most[0] ** 2 + 1)
    pieces = [replace(square, place=2 * w * u + 1) for u, square in enumerate(squares)]
    total = sum(2 * v * v << 2 * w * u for u, v in enumerate(most))
    for i in range(d):
        for j in range(i + 1, d):
            largest = most[i] + most[j]
            bits = largest.bit_length()
            sums = [net.sum(Kind.SUM, [(one[i],), (one[j],)], bits) for one in (x, y)]
            pair = net.product([(s,) for s in sums], (largest**2).bit_length())
            pieces.append(pair.moved(w * (i + j)))
            total += largest**2 << w * (i + j)
    less = list(subtracted(net, squares, most, w))
    pieces += [replace(piece, inverted=True) for piece in less]
    constant = sum(((1 << piece.width) - 1) << piece.place for piece in less)
    total += constant
    constant = -constant % p
    bound = total + constant + 1
    rows = [*((piece,) for piece in pieces), net.constant(constant)]
    return Sum(reduced(net, rows, (bound - 1).bit_length()), bound)


def subtracted(net: Network, squares: Sequence[Piece], most: Sequence[int], w: int) -> Iterator[Piece]:
    """S_k at place w k, for all k."""
    d = len(squares)
    terms: list[tuple[Row, int]] = []  # e_i and its largest value
    for i in range(d + 1):
        low = clipped((squares[i],), 0, w) if i < d else ()
        high = clipped((squares[i - 1],), w, 2 * w) if i else ()
        high = tuple(piece.moved(-w) for piece in high)
        largest = (min((1 << w) - 1, most[i] ** 2) if i < d else 0) + (most[i - 1] ** 2 >> w if i else 0)
        row = (net.sum(Kind.PREFIX, [low, high], largest.bit_length()),) if low and high else low or high
        terms.append((row, largest))

    def add(one: tuple[Row, int], other: tuple[Row, int]) -> tuple[Row, int]:
        largest = one[1] + other[1]
        if not one[0] or not other[0]:
            return one[0] or other[0], largest
        return (net.sum(Kind.PREFIX, [one[0], other[0]], largest.bit_length()),), largest

    columns = [*prefixes(terms[:d], add), *reversed(prefixes(terms[:0:-1], add))]
    for k, (row, _) in enumerate(columns):
        yield from (piece.moved(w * k) for piece in row)


@lru_cache(1 << 14)
def places(j: int, p: int) -> tuple[tuple[int, int], ...]:
    """Fewest signed digits (place - j, sign) of a number that is 2^j modulo p."""
    r = pow(2, j, p)
    positive, negative = signed_digits(r), [(k, -sign) for k, sign in signed_digits(p - r)]
    return tuple((k - j, sign) for k, sign in min(positive, negative, key=len))


def by_shifts(net: Network, rows: Sequence[Row], top: int, p: int) -> tuple[list[Row], int]:
    """Rows congruent to the bits of ``rows`` from 2^k to 2^``top``, and their largest sum."""
    k = p.bit_length()
    pieces: list[Piece] = []
    constant = total = 0
    for moves, run in groupby(range(k, top), lambda j: places(j, p)):
        inside = list(run)
        for piece in (piece for row in rows for piece in clipped(row, inside[0], inside[-1] + 1)):
            for by, sign in moves:
                made = piece.moved(by, inverted=sign < 0)
                ones = ((1 << made.width) - 1) << made.place
                pieces.append(made)
                constant -= ones * (sign < 0)
                total += ones
    constant %= p
    return [*((piece,) for piece in pieces), net.constant(constant)], total + constant


def by_tables(net: Network, rows: Sequence[Row], bound: int, p: int, index: int) -> tuple[list[Row], int]:
    """Rows congruent to the part above 2^k of a sum of two rows below ``bound``, and their largest sum."""
    k, top = p.bit_length(), (bound - 1).bit_length()
    length = max(1, SEGMENT // index) * index - 1
    made: list[Row] = []
    total = 0
    for low in range(k, top, length):
        parts = [clipped(row, low, low + length) for row in rows]
        largest = min(sum(sum(((1 << q.width) - 1) << q.place - low for q in part) for part in parts), bound - 1 >> low)
        if not largest:
            continue
        segment = net.sum(Kind.SEGMENT, parts, largest.bit_length(), low)
        for at in range(0, segment.width, index):
            bits = min(index, segment.width - at)
            entries = [(i << low + at) % p for i in range(min(1 << bits, (largest >> at) + 1))]
            if any(entries):
                made.append((net.table((Piece(segment.word, at, bits, 0),), entries),))
                total += max(entries)
    return paired(net, made), total


def shifted_bits(rows: Sequence[Row], top: int, p: int) -> int:
    """Bits of the rows of `by_shifts`."""
    k = p.bit_length()
    return sum(
        len(places(j, p)) for row in rows for piece in clipped(row, k, top) for j in range(piece.place, piece.end)
    )


def fold(net: Network, before: Sum, p: int, options: Options) -> tuple[Sum, str]:
    """The sum after a fold, and how it was folded."""
    k, top = p.bit_length(), (before.bound - 1).bit_length()
    low = [clipped(row, 0, k) for row in before.rows]
    below = min(sum(sum(((1 << q.width) - 1) << q.place for q in row) for row in low), before.bound - 1)
    way = options.fold
    if way == "auto":
        shifts = shifted_bits(before.rows, top, p)
        way = "shifts" if shifts <= k * -(-(top - k) // options.index) else "tables"
    rows, largest = (
        by_shifts(net, before.rows, top, p)
        if way == "shifts"
        else by_tables(net, before.rows, before.bound, p, options.index)
    )
    bound = below + largest + 1
    return Sum(reduced(net, [*low, *rows], (bound - 1).bit_length()), bound), way


def shaped(p: int, width: int, options: Options) -> Shape:
    """The network for operands of ``width`` bits."""
    net = Network([width, width], [0, 0])
    sums = [product(net, width, p, options.w)]
    ways: list[str] = []
    while sums[-1].bound > 1 << p.bit_length() and (
        not ways or (options.canonical and sums[-1].bound > CANDIDATES * p)
    ):
        after, way = fold(net, sums[-1], p, options)
        if after.bound >= sums[-1].bound:
            break
        sums.append(after)
        ways.append(way)
    if options.canonical:
        result, bound = subtract(net, sums[-1], p), p
    else:
        bound = sums[-1].bound
        result = added(net, Kind.RESULT, sums[-1].rows, (bound - 1).bit_length())
    return Shape(width, net, tuple(sums), tuple(ways), result, bound)


def subtract(net: Network, v: Sum, p: int) -> Piece:
    """v mod p, chosen from all v - j p."""
    bits = (v.bound - 1).bit_length() + 1
    k = p.bit_length()
    if v.bound <= p:
        return added(net, Kind.RESULT, v.rows, k)
    candidates = [added(net, Kind.CHOICE, v.rows, bits)]
    for j in range(1, -(-v.bound // p)):
        rows = reduced(net, [*v.rows, net.constant(-j * p % (1 << bits))], bits)
        candidates.append(added(net, Kind.CHOICE, rows, bits))
    signs = tuple(Piece(c.word, bits - 1, 1, j) for j, c in enumerate(candidates[1:]))
    return net.choice(Kind.RESULT, [*((replace(c, width=k),) for c in candidates), signs], k)
