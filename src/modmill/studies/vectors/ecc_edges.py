# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Exceptional multiples that published vectors lack, with results from the affine arithmetic of `numbers.curves`.

Scalars 0, 1, 2, 3, n - 2, n - 1, n; the neutral element, G, -G and points of small order; u = 0, 1, p - 1 and on the
twist.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from modmill.numbers.curves.affine import Affine, Curve, Edwards, Montgomery, Point
from modmill.numbers.curves.encoding import decode_edwards, encode_edwards
from modmill.numbers.primes import square_root
from modmill.studies.vectors.ecc_cases import Case


@cache
def small_order_points(curve: Edwards) -> Sequence[Point]:
    """Return all points of an Edwards curve whose order divides the cofactor."""
    found: set[Affine] = {curve.zero}
    for y in range(2, 40):
        try:
            candidate = decode_edwards(curve, encode_edwards(curve, (0, y)))
        except ValueError:
            continue
        P = curve.multiply(curve.n, candidate)
        found |= {multiple for i in range(curve.h) if (multiple := curve.multiply(i, P)) is not None}
    return sorted(found)


def edge_points(curve: Curve) -> list[Point]:
    """Return exceptional points: neutral, of small order, G, -G, 2 G; and another multiple of G."""
    points = [curve.zero, curve.base, curve.negate(curve.base), *(curve.multiply(k, curve.base) for k in (2, 12345))]
    return points + (list(small_order_points(curve)[1:]) if isinstance(curve, Edwards) else [])


@cache
def edge_multiples(curve: Curve) -> list[tuple[int, Point, Point]]:
    """(k, P, k P) for exceptional k and P of a Weierstrass or an Edwards curve."""
    n = curve.n
    scalars = (0, 1, 2, 3, n - 2, n - 1, n)
    return [(k, P, curve.multiply(k, P)) for P in edge_points(curve) for k in scalars]


@cache
def edge_sums(curve: Curve) -> list[tuple[tuple[int, int], Point, Point]]:
    """((u1, u2), P, u1 G + u2 P) for exceptional scalars below n and P that is not at infinity."""
    n, G = curve.n, curve.base
    pairs = ((0, 0), (0, 1), (1, 0), (1, 1), (1, n - 1), (n - 1, 1), (n - 1, n - 1), (2, n - 2), (5, 7))
    return [
        (pair, P, curve.add(curve.multiply(pair[0], G), curve.multiply(pair[1], P)))
        for P in edge_points(curve)
        if P is not None
        for pair in pairs
    ]


@cache
def edge_ladders(curve: Montgomery) -> list[tuple[int, int, int]]:
    """(k, u, u of k P) for u of small order, next to p, of G, on the twist, and scalars around the orders."""
    p, n = curve.p, curve.n
    square = square_root(curve.A**2 - 4, p)
    small = [] if square is None else [(s - curve.A) * pow(2, -1, p) % p for s in (square, -square)]
    twist = next(u for u in range(2, p) if square_root(curve.right(u) * curve.B, p) is None)
    scalars = (0, 1, 2, 3, n - 1, n, n + 1, n * curve.h, (1 << curve.bits) - 1)
    return [
        (k, u, curve.multiply_u(k, u)) for u in (0, 1, p - 1, curve.base[0], twist, 2 * 3 * 5, *small) for k in scalars
    ]


def exceptional(curve: Curve) -> list[Case]:
    """Return all of these as cases, flagged by scalar and point; scalars longer than the curve's are left out."""
    name, n = curve.name, curve.n
    if isinstance(curve, Montgomery):
        return [
            _case(name, "ladder", (k, u), ku, (_scalar(k, n), f"u{place // 9}"))
            for place, (k, u, ku) in enumerate(edge_ladders(curve))
            if k.bit_length() <= curve.bits
        ]
    points = edge_points(curve)
    found = [
        _case(name, "multiply", (k, P), kP, (_scalar(k, n), f"P{points.index(P)}"))
        for k, P, kP in edge_multiples(curve)
    ]
    found += [
        _case(name, "multiply-base", (k,), kG, (_scalar(k, n),))
        for k, P, kG in edge_multiples(curve)
        if curve.base == P
    ]
    return found + [
        _case(name, "multiply-two", (pair, P), R, (*(_scalar(u, n) for u in pair), f"P{points.index(P)}"))
        for pair, P, R in edge_sums(curve)
    ]


def _case(curve: str, operation: str, item: tuple[object, ...], expected: object, flags: Iterable[str]) -> Case:
    flags = tuple(flags)
    return Case(
        f"exceptional {curve} {operation} {' '.join(flags)}", operation, curve, item, "valid", expected, flags=flags
    )


def _scalar(k: int, n: int) -> str:
    """Name of a scalar: a small number, or its offset from n."""
    return str(k) if k < 100 else f"n{k - n:+d}" if abs(k - n) < 100 else "long"
