# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Point formulas as expressions on elements; brackets give products of two variables, then products by constants.

Weierstrass, y^2 = x^3 + a x + b, homogeneous (X : Y : Z), x = X / Z, y = Y / Z, O = (0 : 1 : 0); with b3 = 3 b

    complete        X = (X1 Y2 + X2 Y1) (Y1 Y2 - S) - (Y1 Z2 + Y2 Z1) M
    addition        Y = (Y1 Y2 + S) (Y1 Y2 - S) + (3 X1 X2 + a Z1 Z2) M
                    Z = (Y1 Z2 + Y2 Z1) (Y1 Y2 + S) + (X1 Y2 + X2 Y1) (3 X1 X2 + a Z1 Z2)
                    S = a (X1 Z2 + X2 Z1) + b3 Z1 Z2,   M = a (X1 X2 - a Z1 Z2) + b3 (X1 Z2 + X2 Z1)

    It is exceptional if and only if P1 - P2 has order two; this does not occur in a group of odd order. J. Renes,
    C. Costello, L. Batina: Complete addition formulas for prime order elliptic curves, EUROCRYPT 2016, Section 3, from
    W. Bosma, H. Lenstra: Complete systems of two addition laws for elliptic curves, J. Number Theory 53, 1995.

Jacobian, x = X / Z^2, y = Y / Z^3. Doubling has no exceptional case. The homogeneous point O = (0 : 1 : 0) has no
Jacobian form (X Z, Y Z^2, Z). A series of doublings takes fewer products in Jacobian form.

    double          w = 3 X^2 + a Z^4, X' = w^2 - 8 X Y^2, Y' = w (4 X Y^2 - X') - 8 Y^4, Z' = 2 Y Z
                    M. Brown, D. Hankerson, J. Lopez, A. Menezes: Software implementation of the NIST elliptic curves
                    over prime fields, CT-RSA 2001, Section 4.1

Edwards, a x^2 + y^2 = 1 + d x^2 y^2, extended (X : Y : Z : T), T = X Y / Z; complete if a is a square and d is not.
H. Hisil, K. Wong, G. Carter, E. Dawson: Twisted Edwards curves revisited, ASIACRYPT 2008, Sections 3.1 to 3.3.

Montgomery, the ladder's step on (X : Z), u = X / Z: RFC 7748, Section 5.
"""

from __future__ import annotations

from dataclasses import dataclass

from modmill.engines.microcode.expressions import Element

SMALL = 64
"""Products by integers up to this are computed by additions instead of a product."""


@dataclass(frozen=True)
class AffinePoint:
    """A point (X : Y : 1)."""

    X: Element
    Y: Element


@dataclass(frozen=True)
class Homogeneous(AffinePoint):
    """A point (X : Y : Z)."""

    Z: Element


@dataclass(frozen=True)
class Jacobian:
    """A point with x = X / Z^2, y = Y / Z^3. ``aZ4``: a Z^4 if a is neither 0 nor -3, else None."""

    X: Element
    Y: Element
    Z: Element
    aZ4: Element | None = None


@dataclass(frozen=True)
class WeierstrassForm:
    """Formulas of a curve y^2 = x^3 + a x + b in a block. ``a``: an integer if it is 0 or -3, else an element.
    ``b3``: 3 b, an integer if it is small, else an element. ``added``: the unit adds up two products."""

    a: Element | int
    b3: Element | int
    added: bool = False

    def add(self, P: Homogeneous, Q: AffinePoint) -> Homogeneous:
        """P + Q for all points, Q affine or homogeneous [12 + 2 b3 + 3 a, one less if Q is affine]."""
        xx, yy = P.X * Q.X, P.Y * Q.Y
        xy = self._cross(P.X, P.Y, Q.X, Q.Y, xx, yy)
        if isinstance(Q, Homogeneous):
            zz = P.Z * Q.Z
            xz, yz = self._cross(P.X, P.Z, Q.X, Q.Z, xx, zz), self._cross(P.Y, P.Z, Q.Y, Q.Z, yy, zz)
        else:
            zz, xz, yz = P.Z, P.X + Q.X * P.Z, P.Y + Q.Y * P.Z
        s = zz * self.b3
        azz = None if isinstance(self.a, int) and self.a == 0 else zz * self.a
        m, three = xz * self.b3, 3 * xx
        if azz is not None:
            s, three = self._plus(s, xz), three + azz
            m = self._plus(m, xx - azz)
        low, high = yy - s, yy + s
        return Homogeneous(xy * low - yz * m, high * low + three * m, yz * high + xy * three)

    def _cross(self, x1: Element, y1: Element, x2: Element, y2: Element, xx: Element, yy: Element) -> Element:
        """x1 y2 + x2 y1; by one product from xx = x1 x2 and yy = y1 y2 unless the unit adds up two products."""
        return x1 * y2 + x2 * y1 if self.added else (x1 + y1) * (x2 + y2) - (xx + yy)

    def _plus(self, x: Element, y: Element) -> Element:
        """x + a y."""
        return x - 3 * y if isinstance(self.a, int) and self.a == -3 else x + y * self.a

    def double(self, P: Homogeneous) -> Homogeneous:
        """2 P for all points [11 + 2 b3 + 3 a; 8 + 1 b3 if a = 0]."""
        yy, zz, yz = P.Y * P.Y, P.Z * P.Z, P.Y * P.Z
        xy = P.X * P.Y
        if isinstance(self.a, int) and self.a == 0:
            s = zz * self.b3
            low = yy - 3 * s
            return Homogeneous((2 * xy) * low, low * (yy + s) + (8 * s) * yy, (2 * yy) * (4 * yz))
        xx, xz = P.X * P.X, 2 * (P.X * P.Z)
        azz = zz * self.a
        s, m = self._plus(zz * self.b3, xz), self._plus(xz * self.b3, xx - azz)
        low, three = yy - s, 3 * xx + azz
        return Homogeneous((2 * xy) * low - (2 * yz) * m, low * (yy + s) + three * m, (4 * yy) * (2 * yz))

    def first_double(self, P: Homogeneous) -> Jacobian:
        """2 P in Jacobian form, for P other than O in homogeneous form [7; for general a 9 and 1 a].

        Z' = 2 Y Z, w = 3 X^2 + a Z^2, X' = w^2 - 8 X Y^2 Z, Y' = w (4 X Y^2 Z - X') - 8 (Y^2 Z)^2.
        """
        yz = P.Y * P.Z
        yyz = P.Y * yz
        azz = None if isinstance(self.a, int) else P.Z * P.Z * self.a
        return self._tangent(self._slope(P.X, P.Z, azz), P.X, yyz, yz, azz)

    def double_jacobian(self, P: Jacobian) -> Jacobian:
        """2 P for all points [8; 7 if a = 0, and for general a if aZ4 of the result is unused]."""
        return self._tangent(self._slope(P.X, P.Z * P.Z, P.aZ4), P.X, P.Y * P.Y, P.Y * P.Z, P.aZ4)

    def _slope(self, x: Element, z: Element, azz: Element | None) -> Element:
        """3 x^2 + a z^2."""
        if isinstance(self.a, int) and self.a == -3:
            return 3 * ((x - z) * (x + z))
        return 3 * (x * x) if azz is None else 3 * (x * x) + azz

    def _tangent(self, w: Element, x: Element, yy: Element, yz: Element, azz: Element | None) -> Jacobian:
        """X = w^2 - 2 S, Y = w (3 S - w^2) - 8 yy^2, Z = 2 yz with S = 4 x yy; small factors are off the critical
        path."""
        if self.added:
            S = (4 * x) * yy
            X = w * w - 2 * S
            return Jacobian(X, w * (S - X) - yy * (8 * yy), 2 * yz, None if azz is None else (16 * yy) * yy * azz)
        S, ww, half = (4 * x) * yy, w * w, (2 * yy) * (2 * yy)
        twice = 2 * S
        y = w * ((S - ww) + twice) - 2 * half
        return Jacobian(ww - twice, y, 2 * yz, None if azz is None else 4 * (half * azz))

    @staticmethod
    def homogeneous(P: Jacobian) -> Homogeneous:
        """The point as (X Z : Y : Z^3) [3]; O stays O if Y is not 0."""
        return Homogeneous(P.X * P.Z, P.Y, P.Z * P.Z * P.Z)


@dataclass(frozen=True)
class Extended(Homogeneous):
    """A point (X : Y : Z : T) of an Edwards curve with T = X Y / Z."""

    T: Element


@dataclass(frozen=True)
class Prepared:
    """The second operand of `EdwardsForm.add`. For a = -1 it is minus = Y - X, plus = Y + X, dT = 2 d T and 2 Z; else
    minus = X, plus = Y, dT = d T and Z. ``Z`` None stands for 1."""

    minus: Element
    plus: Element
    dT: Element
    Z: Element | None = None


@dataclass(frozen=True)
class EdwardsForm:
    """Formulas of a curve a x^2 + y^2 = 1 + d x^2 y^2 in a block. ``a``: 1, -1 or an element. ``d``: an element.
    ``added``: the unit adds up two products."""

    a: Element | int
    d: Element
    added: bool = False

    @property
    def minus_one(self) -> bool:
        """Whether the formulas for a = -1 are used, with products of Y - X and of Y + X."""
        return isinstance(self.a, int) and self.a == -1 and not self.added

    def prepared(self, P: Extended) -> Prepared:
        """P as second operand of `add` [1 d]."""
        dT = P.T * self.d
        if self.minus_one:
            return Prepared(P.Y - P.X, P.Y + P.X, dT + dT, P.Z + P.Z)
        return Prepared(P.X, P.Y, dT, P.Z)

    def add(self, P: Extended, Q: Prepared) -> Extended:
        """P + Q for all points [8 if a = -1, 9 if a = 1, else 9 and 1 a; one less if Q has Z = 1]."""
        c = P.T * Q.dT
        if self.minus_one:
            A, B = (P.Y - P.X) * Q.minus, (P.Y + P.X) * Q.plus
            D = 2 * P.Z if Q.Z is None else P.Z * Q.Z
            E, H = B - A, B + A
        else:
            A, B = P.X * Q.minus, P.Y * Q.plus
            D = P.Z if Q.Z is None else P.Z * Q.Z
            E = P.X * Q.plus + P.Y * Q.minus if self.added else (P.X + P.Y) * (Q.minus + Q.plus) - (A + B)
            H = B - A * self.a
            if self.added:
                G = D + c
                return self._sum(E, 2 * D - G, G, H)
        return self._sum(E, D - c, D + c, H)

    @staticmethod
    def _sum(E: Element, F: Element, G: Element, H: Element) -> Extended:
        return Extended(E * F, G * H, F * G, E * H)

    def double(self, P: Homogeneous) -> Extended:
        """2 P for all points [8, one less if T is unused; and 1 a if a is not 1 or -1]."""
        A, B, C = P.X * P.X, P.Y * P.Y, 2 * (P.Z * P.Z)
        S = (P.X + P.Y) * (P.X + P.Y)
        if self.minus_one:  # E, F, G, H negated; each product has two of them
            H, G = A + B, A - B
            return self._sum(H - S, C + G, G, H)
        D = A * self.a
        E, G = 2 * (P.X * P.Y) if self.added else S - (A + B), D + B
        return self._sum(E, G - C, G, D - B)


def ladder_step(
    X2: Element, Z2: Element, X3: Element, Z3: Element, u: Element, a24: Element
) -> tuple[Element, Element, Element, Element]:
    """2 P2 and P2 + P3 as X2, Z2, X3, Z3; u is the coordinate of P3 - P2 [9 and 1 by a24 = (A - 2) / 4]."""
    A, B, C, D = X2 + Z2, X2 - Z2, X3 + Z3, X3 - Z3
    AA, BB, DA, CB = A * A, B * B, D * A, C * B
    E = AA - BB
    plus, minus = DA + CB, DA - CB
    return AA * BB, E * (AA + E * a24), plus * plus, (minus * minus) * u


def early_ladder_step(
    X2: Element, Z2: Element, X3: Element, Z3: Element, u: Element, a: Element
) -> tuple[Element, Element, Element, Element]:
    """`ladder_step` with fewer dependences on sums [9 and 1 by a = A - 2]. X2 Z2 replaces (X2 - Z2)^2. It needs no sum,
    so that the multiplier has work while the sums of both points are computed."""
    A, B, C, D = X2 + Z2, X2 - Z2, X3 + Z3, X3 - Z3
    XZ, AA, DA, CB = X2 * Z2, A * A, D * A, C * B
    E = 2 * (2 * XZ)
    plus, minus = DA + CB, DA - CB
    return AA * (AA - E), E * (AA + XZ * a), plus * plus, (minus * minus) * u
