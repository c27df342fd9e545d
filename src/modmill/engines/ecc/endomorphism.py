# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Curves y^2 = x^3 + b with an efficient endomorphism: (x, y) -> (beta x, y) is the multiplication by lambda.

    beta^3 = 1 mod p, lambda^2 + lambda + 1 = 0 mod n,    k = k1 + k2 lambda mod n with |k1|, |k2| about sqrt(n),
    so k P = k1 P + k2 (lambda P) needs half the doublings

Source: R. Gallant, R. Lambert, S. Vanstone: Faster point multiplication on elliptic curves with efficient
endomorphisms, CRYPTO 2001, Sections 2 and 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from modmill.numbers.curves.affine import Weierstrass
from modmill.numbers.curves.projective import multiples
from modmill.numbers.primes import square_root


@dataclass(frozen=True)
class Endomorphism:
    """beta, lambda (``eigenvalue``), and two short vectors (x, y) with x + y lambda = 0 mod n, n the order of G."""

    n: int
    beta: int
    eigenvalue: int
    vectors: tuple[tuple[int, int], tuple[int, int]]

    def split(self, k: int) -> tuple[int, int]:
        """(k1, k2) with k = k1 + k2 lambda mod n; both are short and may be negative."""
        (a1, b1), (a2, b2) = self.vectors
        determinant = a1 * b2 - a2 * b1
        c1, c2 = _round(b2 * k, determinant), _round(-b1 * k, determinant)
        return k - c1 * a1 - c2 * a2, -c1 * b1 - c2 * b2

    @cached_property
    def bits(self) -> int:
        """Maximum length of |k1| and |k2| in bits: half the sum of the vectors' coordinates, plus 1 for rounding."""
        (a1, b1), (a2, b2) = self.vectors
        return max((abs(a1) + abs(a2)) // 2 + 1, (abs(b1) + abs(b2)) // 2 + 1).bit_length()


def _round(x: int, y: int) -> int:
    """The integer nearest to x / y."""
    return (2 * x + y) // (2 * y) if y > 0 else (-2 * x - y) // (-2 * y)


@lru_cache(maxsize=16)
def endomorphism(curve: Weierstrass) -> Endomorphism | None:
    """The endomorphism of a curve with a = 0, on the group of the base point; None if there is none."""
    p, n = curve.p, curve.n
    if curve.a != 0 or p % 3 != 1 or n % 3 != 1:
        return None
    root_p, root_n = square_root(-3 % p, p), square_root(-3 % n, n)
    if root_p is None or root_n is None:
        return None
    beta = (root_p - 1) * pow(2, -1, p) % p
    x, y = curve.base
    for root in (root_n, -root_n):
        eigenvalue = (root - 1) * pow(2, -1, n) % n
        if multiples(curve, [(eigenvalue, curve.base)]) == (beta * x % p, y):
            return Endomorphism(n, beta, eigenvalue, _short(n, eigenvalue))
    return None


def _short(n: int, eigenvalue: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Two short independent vectors (x, y) with x + y lambda = 0 mod n, by Euclid's algorithm on n and lambda."""
    rows = [(n, 0), (eigenvalue, -1)]  # (r, -t) with r = t lambda mod n
    while rows[-1][0]:
        (r0, t0), (r1, t1) = rows[-2:]
        rows.append((r0 - r0 // r1 * r1, t0 - r0 // r1 * t1))
    last = max(k for k, (r, _) in enumerate(rows) if r * r >= n)
    return rows[last + 1], min(rows[last], rows[last + 2], key=lambda v: v[0] ** 2 + v[1] ** 2)
