# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Curves so small that all their points can be listed, found by counting."""

from collections import defaultdict
from functools import lru_cache

from modmill.numbers.curves.affine import Edwards, Montgomery, Weierstrass
from modmill.numbers.primes import is_prime, square_root


def square(curve, x):
    """The square of y, or of v, of the points with this x, from the curve's equation."""
    if isinstance(curve, Edwards):
        return (1 - curve.a * x * x) * pow(1 - curve.d * x * x, -1, curve.p) % curve.p
    return curve.right(x) * pow(curve.B if isinstance(curve, Montgomery) else 1, -1, curve.p) % curve.p


def points(curve):
    """All points."""
    roots = defaultdict(list)
    for y in range(curve.p):
        roots[y * y % curve.p].append(y)
    affine = [(x, y) for x in range(curve.p) for y in roots[square(curve, x)]]
    assert all(map(curve.contains, affine))
    return [*affine, None] if curve.zero is None else affine


@lru_cache
def weierstrass(p, a, least=0):
    """The first curve over p with this a and a prime number of points, at least so many."""
    for b in range(1, p):
        if (4 * a**3 + 27 * b * b) % p:
            curve = Weierstrass(p, (0, 0), 1, a=a % p, b=b)
            found = points(curve)
            if is_prime(len(found)) and len(found) >= least and len(found) != p:
                return Weierstrass(p, found[0], len(found), a=a % p, b=b)
    raise ValueError(f"no curve over {p} with a = {a} has a prime number of points")


@lru_cache
def edwards(p, a):
    """The first complete curve over p with this a, and the largest prime factor of its number of points."""
    for d in range(2, p):
        if (d - a) % p and square_root(d, p) is None:
            curve = Edwards(p, (0, 1), 1, a=a % p, d=d)
            found = points(curve)
            n = max(q for q in range(2, len(found) + 1) if len(found) % q == 0 and is_prime(q))
            base = next((P for P in found if P != (0, 1) and curve.multiply(n, P) == (0, 1)), None)
            if n > 5 and base:
                return Edwards(p, base, n, len(found) // n, a=a % p, d=d)
    raise ValueError(f"no curve over {p} with a = {a}")


@lru_cache
def montgomery(p):
    """The first curve over p for which A^2 - 4 is no square."""
    for A in range(3, p):
        if (A * A - 4) % p and square_root(A * A - 4, p) is None:
            curve = Montgomery(p, (0, 0), 1, A=A)
            return Montgomery(p, next(P for P in points(curve) if P and P[1]), 1, A=A)
    raise ValueError(f"no curve over {p}")
