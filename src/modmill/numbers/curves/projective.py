# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Multiples of points in projective coordinates: the reference for thousands of vectors.

    Weierstrass   x = X / Z^2, y = Y / Z^3 (Jacobian coordinates); exceptional cases are detected and handled
    Edwards       x = X / Z, y = Y / Z, T = X Y / Z (extended coordinates); complete
    Montgomery    through x = (u + A / 3) / B, y = v / B, which is Weierstrass with a = (3 - A^2) / (3 B^2)

A sum of multiples scans all scalars together, four bits at a time. Source: E. G. Straus: Addition Chains of Vectors.
American Mathematical Monthly, 1964. For the base point, multiples by 2^(4 i) are stored. Tests compare every form with
the affine arithmetic of `numbers.curves`. No function here is constant in time.
"""

from collections.abc import Sequence
from functools import cache

from modmill.numbers.curves.affine import Curve, Edwards, Montgomery, Point, Weierstrass

Coordinates = tuple[int, ...]
_DIGIT = 4


class _Jacobian:
    """(X, Y, Z) of y^2 = x^3 + a x + b; Z = 0 is the point at infinity. `lift` sets the denominator 1, `affine` divides
    by it."""

    zero: Coordinates = (1, 1, 0)

    def __init__(self, p: int, a: int) -> None:
        self.p, self.a = p, a

    def lift(self, P: Point) -> Coordinates:
        return self.zero if P is None else (*P, 1)

    def affine(self, P: Coordinates) -> Point:
        X, Y, Z = P
        if Z == 0:
            return None
        p, r = self.p, pow(Z, -1, self.p)
        rr = r * r % p
        return X * rr % p, Y * rr * r % p

    def double(self, P: Coordinates) -> Coordinates:
        p, (X, Y, Z) = self.p, P
        YY, ZZ = Y * Y % p, Z * Z % p
        S = 4 * X * YY % p
        M = (3 * X * X + self.a * ZZ * ZZ) % p
        X3 = (M * M - 2 * S) % p
        return X3, (M * (S - X3) - 8 * YY * YY) % p, 2 * Y * Z % p

    def add(self, P: Coordinates, Q: Coordinates) -> Coordinates:
        p, (X1, Y1, Z1), (X2, Y2, Z2) = self.p, P, Q
        if Z1 == 0 or Z2 == 0:
            return Q if Z1 == 0 else P
        z1, z2 = Z1 * Z1 % p, Z2 * Z2 % p
        U1, S1 = X1 * z2 % p, Y1 * z2 * Z2 % p
        H, R = (X2 * z1 - U1) % p, (Y2 * z1 * Z1 - S1) % p
        if H == 0:
            return self.double(P) if R == 0 else self.zero
        HH = H * H % p
        HHH, V = H * HH % p, U1 * HH % p
        X3 = (R * R - HHH - 2 * V) % p
        return X3, (R * (V - X3) - S1 * HHH) % p, Z1 * Z2 * H % p


class _Extended:
    """(X, Y, Z, T) of a x^2 + y^2 = 1 + d x^2 y^2, complete because a is a square and d a non-square."""

    zero: Coordinates = (0, 1, 1, 0)

    def __init__(self, curve: Edwards) -> None:
        self.p, self.a, self.d = curve.p, curve.a, curve.d

    def lift(self, P: Point) -> Coordinates:
        if P is None:
            raise ValueError("an Edwards curve has no point at infinity; its neutral element is (0, 1)")
        return *P, 1, P[0] * P[1] % self.p

    def affine(self, P: Coordinates) -> Point:
        r = pow(P[2], -1, self.p)
        return P[0] * r % self.p, P[1] * r % self.p

    def double(self, P: Coordinates) -> Coordinates:
        return self.add(P, P)

    def add(self, P: Coordinates, Q: Coordinates) -> Coordinates:
        p, (X1, Y1, Z1, T1), (X2, Y2, Z2, T2) = self.p, P, Q
        A, B, C, D = X1 * X2, Y1 * Y2, self.d * T1 % p * T2, Z1 * Z2
        E, F, G, H = (X1 * Y2 + Y1 * X2) % p, (D - C) % p, (D + C) % p, (B - self.a * A) % p
        return E * F % p, G * H % p, F * G % p, E * H % p


_Group = _Jacobian | _Extended


def multiples(curve: Curve, terms: Sequence[tuple[int, Point]]) -> Point:
    """The sum of k P over the pairs (k, P), k >= 0, P on the curve. Raises ValueError for a Montgomery curve."""
    group = _group(curve)
    total = _table_sum(curve, sum(k for k, P in terms if curve.base == P) % curve.n)
    others = [(k, group.lift(P)) for k, P in terms if curve.base != P]
    return group.affine(group.add(total, _straus(group, others)))


def multiple_u(curve: Montgomery, k: int, u: int) -> int:
    """The u-coordinate of k times a point of the curve or its twist, as `Montgomery.multiply_u`; 0: neutral element."""
    p = curve.p
    u %= p
    B = curve.right(u)
    if B == 0:
        return u if k % 2 else 0
    third, b = curve.A * pow(3, -1, p) % p, pow(B, -1, p)
    group = _Jacobian(p, (3 - curve.A**2) * pow(3, -1, p) * b * b % p)
    P = group.affine(_straus(group, [(k, group.lift(((u + third) * b % p, b)))]))
    return 0 if P is None else (P[0] * B - third) % p


def _row(group: _Group, P: Coordinates) -> list[Coordinates]:
    """j P for j below 16."""
    row = [group.zero, P]
    while len(row) < 1 << _DIGIT:
        row.append(group.add(row[-1], P))
    return row


def _straus(group: _Group, terms: Sequence[tuple[int, Coordinates]]) -> Coordinates:
    rows = [_row(group, P) for _, P in terms]
    total = group.zero
    top = max((-(-k.bit_length() // _DIGIT) for k, _ in terms), default=0)
    for shift in range(_DIGIT * (top - 1), -1, -_DIGIT):
        if total != group.zero:
            for _ in range(_DIGIT):
                total = group.double(total)
        for (k, _), row in zip(terms, rows, strict=True):
            if digit := k >> shift & (1 << _DIGIT) - 1:
                total = group.add(total, row[digit])
    return total


@cache
def _group(curve: Curve) -> _Group:
    if isinstance(curve, Weierstrass):
        return _Jacobian(curve.p, curve.a)
    if isinstance(curve, Edwards):
        return _Extended(curve)
    raise ValueError("multiples of points need a Weierstrass or an Edwards curve; a Montgomery curve has multiple_u")


@cache
def _base_table(curve: Curve) -> list[list[Coordinates]]:
    """j 2^(4 i) G for j below 16, one row for each i."""
    group = _group(curve)
    P, rows = group.lift(curve.base), []
    for _ in range(-(-curve.n.bit_length() // _DIGIT)):
        rows.append(row := _row(group, P))
        P = group.add(row[-1], P)
    return rows


def _table_sum(curve: Curve, k: int) -> Coordinates:
    group = _group(curve)
    total = group.zero
    if k:
        for i, row in enumerate(_base_table(curve)):
            if digit := k >> _DIGIT * i & (1 << _DIGIT) - 1:
                total = group.add(total, row[digit])
    return total
