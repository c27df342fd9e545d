# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Isomorphisms of y^2 = x^3 + a x + b to cheaper constants: (x, y) -> (u^2 x, u^3 y), a' = u^4 a, b' = u^6 b.

If a is neither 0 nor -3, a' = -3 is possible if -3 / a is a fourth power. If a = 0, a small 3 b' replaces products by
few sums. Examples: all Brainpool curves r1 have a' = -3 (RFC 5639, Section 3, lists the images as t1); secp256k1 has
3 b' = 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from modmill.numbers.curves.affine import Weierstrass
from modmill.numbers.primes import square_root

_FEW_SUMS = (1, 2, 4, 3, 8, 5, 6)
"""Values of 3 b' in the order of the cost of multiplying by them and by three times as much."""


@dataclass(frozen=True)
class Isomorphism:
    """The image of a curve and its base point, and u; u = 1 is the identity."""

    image: Weierstrass
    u: int


@lru_cache(maxsize=32)
def isomorphism(curve: Weierstrass) -> Isomorphism:
    """The isomorphism to the cheapest constants; the identity if none is cheaper."""
    p, three_b = curve.p, 3 * curve.b % curve.p
    roots: Iterable[int | None] = ()
    if curve.a == 0 and three_b not in _FEW_SUMS[:2]:
        roots = (_sixth_root(k * pow(three_b, -1, p) % p, p) for k in _FEW_SUMS)
    elif curve.a not in (0, p - 3):
        roots = (_fourth_root(-3 * pow(curve.a, -1, p) % p, p),)
    u = next((u for u in roots if u is not None), 1)
    x, y = curve.base
    base = u * u * x % p, u**3 * y % p
    return Isomorphism(replace(curve, base=base, a=u**4 * curve.a % p, b=u**6 * curve.b % p), u)


def _fourth_root(value: int, p: int) -> int | None:
    root = square_root(value, p)
    if root is None:
        return None
    found = square_root(root, p)
    return found if found is not None else square_root(p - root, p)


def _sixth_root(value: int, p: int) -> int | None:
    """A sixth root; None if there is none, and for p = 1 mod 9."""
    exponent = (2 * p - 1) // 3 if p % 3 == 2 else {4: (2 * p + 1) // 9, 7: (p + 2) // 9}.get(p % 9)
    root = None if exponent is None else pow(value, exponent, p)
    return None if root is None or pow(root, 3, p) != value else square_root(root, p)
