# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The formulas of `ecc.formulas` are the group law of a curve, for all points: polynomial identities modulo p.

The formulas are executed on polynomials, with the curve's own constants. What is compared is chord and tangent:

    P1 + P2 = (N^2 / D^2 - x1 - x2, ...)     N = y1 - y2, D = x1 - x2     and for P1 = P2: N = 3 x^2 + a, D = 2 y

Weierstrass. The complete sum has bidegree (2, 2), so that affine points are enough, and O by itself. Besides

    Z3 = c D^3 y(P1 - P2), c constant              so Z3 = 0 only if P1 - P2 has order two (D != 0)
    at P1 = P2: Z3 = c (2 y)^3                     not 0 without points of order two
    at P1 = -P2: (0 : c (2 y)^3 y(2 P) : 0)        O, unless 2 P has order two
    at P2 = O: Y1 (X1 : Y1 : Z1)                   P1

In a group of odd order nothing is left out. Jacobian doublings have Z' = c Z^4 2 y, so none is left out but that of O.

Edwards. Z3 = c (1 + e) (1 - e) with e = d x1 x2 y1 y2. If e were 1 or -1, then, with a = alpha^2, from

    (alpha x1 + e y1)^2 - d x1^2 y1^2 (alpha x2 + y2)^2 = C1 - d x1^2 y1^2 C2 + (1 - e^2) + 2 alpha x1 y1 (e' - e)

(C1, C2: the equations of the points; e' the value of e) d would be a square, for one of the two roots alpha.

Montgomery. (u^2 - 1)^2 / (4 u (u^2 + A u + 1)) is the tangent's; u(P3 + P2) u(P3 - P2) (u2 - u3)^2 = (u2 u3 - 1)^2.
Both results of a step are (0 : 0) for no pair of points with P3 - P2 = +-P and u(P) != 0, as A^2 != 4. For u(P) = 0 all
points of the ladder have X Z = 0, which gives 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from modmill.engines.ecc import formulas
from modmill.engines.ecc.formulas import EdwardsForm, WeierstrassForm
from modmill.engines.theorem.polynomials import Polynomial, Rules, faults, variables
from modmill.numbers.curves.affine import Curve, Edwards, Montgomery, Weierstrass
from modmill.numbers.primes import is_prime

Step = Callable[..., tuple[Polynomial, ...]]
_ANY: Any = formulas  # the formulas are written for elements of a block, and run on any ring


def prime_faults(curve: Curve) -> list[str]:
    """Why the field is none, if it is none."""
    return [] if curve.p > 3 and is_prime(curve.p) else [f"p of {curve.p.bit_length()} bits is not a prime above 3"]


def _third(x1: Polynomial, y1: Polynomial, x2: Polynomial, N: Polynomial, D: Polynomial) -> tuple[Polynomial, ...]:
    """(X, Y) with P3 = (X / D^2, Y / D^3), for the line with slope N / D through P1, and x2."""
    X = N * N - (x1 + x2) * D * D
    return X, N * (x1 * D * D - X) - y1 * D * D * D


def weierstrass_faults(curve: Weierstrass, make: Callable[[Polynomial], WeierstrassForm]) -> list[str]:
    """What is false of the formulas on a curve, as lines; ``make``: the form, from the constant 1 of a ring."""
    found = prime_faults(curve)
    if (4 * curve.a**3 + 27 * curve.b**2) % curve.p == 0:
        found.append("the curve is singular")
    found += _sum_faults(curve, make) + _bidegree(curve.p, make)
    return found + _equal_faults(curve, make) + _jacobian_faults(curve, make)


def _sum_faults(curve: Weierstrass, make: Callable[[Polynomial], Any]) -> list[str]:
    """Sums of two affine points with different x, and sums with O, in which x2 is Z1."""
    x1, y1, x2, y2, one = variables(curve.p, 4)
    rules: Rules = {(0, 2, 0, 0): _cubic(curve, x1, one), (0, 0, 0, 2): _cubic(curve, x2, one)}
    E = make(one)
    R = E.add(_ANY.Homogeneous(x1, y1, one), _ANY.Homogeneous(x2, y2, one))
    D = x1 - x2
    X, Y = _third(x1, y1, x2, y1 - y2, D)
    _, difference = _third(x1, y1, x2, y1 + y2, D)
    found = faults((
        ("chord, x", R.X * D * D - X * R.Z), ("chord, y", R.Y * D**3 - Y * R.Z),
    ), rules)  # fmt: skip
    found += _multiple("chord, Z3", R.Z, difference, rules)
    P, O = _ANY.Homogeneous(x1, y1, x2), _ANY.Homogeneous(one * 0, one, one * 0)
    for name, S in (("P2 = O", E.add(P, O)), ("P1 = O", E.add(O, P))):
        found += faults((name, got - y1 * of) for got, of in zip((S.X, S.Y, S.Z), (x1, y1, x2), strict=True))
    return found


class _Tangent:
    """A point (``x``, ``y``), the tangent's slope ``N`` / ``D`` in it, and the coordinates of its double."""

    def __init__(self, curve: Weierstrass) -> None:
        self.x, self.y, self.z, self.one = x, y, _, one = variables(curve.p, 3)
        self.rules: Rules = {(0, 2, 0): _cubic(curve, x, one)}
        self.N, self.D = 3 * x * x + curve.a * one, 2 * y
        self.X, self.Y = _third(x, y, x, self.N, self.D)

    def same(self, name: str, X: Polynomial, Y: Polynomial, X_by: Polynomial, Y_by: Polynomial) -> list[str]:
        """Lines unless X / X_by and Y / Y_by are the double."""
        D = self.D
        checks = ((f"{name}, x", X * D * D - self.X * X_by), (f"{name}, y", Y * D**3 - self.Y * Y_by))
        return faults(checks, self.rules)


def _equal_faults(curve: Weierstrass, make: Callable[[Polynomial], Any]) -> list[str]:
    """Sums of equal and of opposite points, and complete doublings."""
    t = _Tangent(curve)
    E, P = make(t.one), _ANY.Homogeneous(t.x, t.y, t.one)
    R = E.add(P, P)
    found = t.same("P1 = P2", R.X, R.Y, R.Z, R.Z) + _multiple("P1 = P2, Z", R.Z, t.D**3, t.rules)
    R = E.add(P, _ANY.Homogeneous(t.x, -t.y, t.one))
    found += faults((("P1 = -P2, x", R.X), ("P1 = -P2, z", R.Z)), t.rules)
    found += _multiple("P1 = -P2, y", R.Y, t.Y, t.rules)
    R = E.double(P)
    found += t.same("double", R.X, R.Y, R.Z, R.Z) + _multiple("double, Z", R.Z, t.D**3, t.rules)
    R, general = (E.double(_ANY.Homogeneous(*c)) for c in ((t.one * 0, t.one, t.one * 0), (t.x, t.y, t.z)))
    if R.X.terms or R.Z.terms or not R.Y.terms:
        found.append("double: 2 O is not O")
    return found + _degrees("double", general, (4, 4, 4))


def _jacobian_faults(curve: Weierstrass, make: Callable[[Polynomial], Any]) -> list[str]:
    """Doublings to and in Jacobian form, and the way back."""
    t = _Tangent(curve)
    x, y, z = t.x, t.y, t.z
    E = make(t.one)
    found = _degrees("first doubling", E.first_double(_ANY.Homogeneous(x, y, z)), (4, 6, 2))
    at_z = _ANY.Jacobian(x * z * z, y * z**3, z, None if isinstance(E.a, int) else curve.a * z**4)
    for name, J, Z in (
        ("first doubling", E.first_double(_ANY.Homogeneous(x, y, t.one)), t.D),
        ("Jacobian doubling", E.double_jacobian(at_z), t.D * z**4),
    ):
        found += t.same(name, J.X, J.Y, J.Z * J.Z, J.Z**3) + _multiple(f"{name}, Z", J.Z, Z, t.rules)
        if J.aZ4 is not None:
            found += faults([(f"{name}, a Z^4", J.aZ4 - curve.a * J.Z**4)], t.rules)
    H = E.homogeneous(at_z)
    found += faults((("to homogeneous, x", H.X - x * H.Z), ("to homogeneous, y", H.Y - y * H.Z)))
    return found + _multiple("to homogeneous, Z", H.Z, z**3, {})


def _cubic(curve: Weierstrass, x: Polynomial, one: Polynomial) -> Polynomial:
    return x**3 + curve.a * x + curve.b * one


def _degrees(name: str, P: Any, degrees: tuple[int, int, int]) -> list[str]:
    """A line unless the coordinates are homogeneous of these degrees."""
    if any(c.degrees((1, 1, 1)) - {k} for c, k in zip((P.X, P.Y, P.Z), degrees, strict=True)):
        return [f"{name}: not homogeneous of the degrees {degrees}"]
    return []


def _bidegree(p: int, make: Callable[[Polynomial], WeierstrassForm]) -> list[str]:
    """Each coordinate of a sum has degree 2 in each of both points; the sum with an affine point is that with Z = 1."""
    X1, Y1, Z1, X2, Y2, Z2, one = variables(p, 6)
    E: Any = make(one)
    P = _ANY.Homogeneous(X1, Y1, Z1)
    R, S = E.add(P, _ANY.Homogeneous(X2, Y2, Z2)), E.add(P, _ANY.AffinePoint(X2, Y2))
    found = []
    if any(c.degrees(w) - {2} for c in (R.X, R.Y, R.Z) for w in ((1, 1, 1, 0, 0, 0), (0, 0, 0, 1, 1, 1))):
        found.append("sum: not of bidegree (2, 2)")
    at_one: Rules = {(0, 0, 0, 0, 0, 1): one}
    pairs = zip("XYZ", (R.X, R.Y, R.Z), (S.X, S.Y, S.Z), strict=True)
    return found + faults(((f"sum with an affine point, {c}", r - s) for c, r, s in pairs), at_one)


def _multiple(name: str, found: Polynomial, of: Polynomial, rules: Rules) -> list[str]:
    if found.remainder(rules).over(of.remainder(rules)) is None:
        return [f"{name}: no constant multiple of what it must be"]
    return []


def edwards_faults(curve: Edwards, make: Callable[[Polynomial], EdwardsForm], root: int | None) -> list[str]:
    """What is false of the formulas on an Edwards curve; ``root``: a square root of a."""
    p, a, d = curve.p, curve.a, curve.d
    found = prime_faults(curve)
    if root is None or (root * root - a) % p or a % p == 0:
        return [*found, "a is no square other than 0"]
    if pow(d, (p - 1) // 2, p) != p - 1:
        found.append("d is a square")
    x1, y1, z1, x2, y2, z2, one = variables(p, 6)
    E: Any = make(one)
    for name, plain in (("sum", False), ("sum with Z = 1", True)):
        z = one if plain else z2
        second = E.prepared(_ANY.Extended(x2 * z, y2 * z, z, x2 * y2 * z))
        if plain:
            second = type(second)(second.minus, second.plus, second.dT)
        R = E.add(_ANY.Extended(x1 * z1, y1 * z1, z1, x1 * y1 * z1), second)
        e = d * x1 * x2 * y1 * y2
        found += faults((
            (f"{name}, x", R.X * (one + e) - (x1 * y2 + x2 * y1) * R.Z),
            (f"{name}, y", R.Y * (one - e) - (y1 * y2 - a * x1 * x2) * R.Z),
            (f"{name}, T", R.T * R.Z - R.X * R.Y),
        ))  # fmt: skip
        found += _multiple(f"{name}, Z", R.Z, (one - e * e) * z1 * z1 * z * z, {})
    C1, C2 = (a * x * x + y * y - one - d * x * x * y * y for x, y in ((x1, y1), (x2, y2)))
    for alpha in (root, -root):
        for sign in (1, -1):
            left = alpha * x1 + sign * y1
            right = alpha * x2 + y2
            known = C1 - d * x1 * x1 * y1 * y1 * C2 + (sign * one - e) * (sign * one + e + 2 * alpha * x1 * y1)
            found += faults([("completeness", left * left - d * x1 * x1 * y1 * y1 * right * right - known)])
    x, y, z, one = variables(p, 3)
    E = make(one)
    R = E.double(_ANY.Homogeneous(x * z, y * z, z))
    inverse = pow(d, -1, p)
    rules: Rules = {(2, 2, 0): (a * x * x + y * y - one) * inverse}
    e = d * x * x * y * y
    found += faults((
        ("double, x", R.X * (one + e) - 2 * x * y * R.Z), ("double, y", R.Y * (one - e) - (y * y - a * x * x) * R.Z),
        ("double, T", R.T * R.Z - R.X * R.Y),
    ), rules)  # fmt: skip
    return found + _multiple("double, Z", R.Z, (one - e * e) * z**4, rules)


def ladder_faults(curve: Montgomery, step: Step, factor: int) -> list[str]:
    """What is false of a ladder's step with a constant ``factor`` on a Montgomery curve and its twist."""
    p, A = curve.p, curve.A
    found = prime_faults(curve)
    if (A * A - 4) % p == 0:
        found.append("A^2 = 4: the curve is singular")
    X2, Z2, X3, Z3, u, one = variables(p, 5)
    X, Z, S, T = step(X2, Z2, X3, Z3, u, factor * one)
    for name, got, of in (
        ("double, X", X, (X2 * X2 - Z2 * Z2) ** 2),
        ("double, Z", Z, 4 * X2 * Z2 * (X2 * X2 + A * X2 * Z2 + Z2 * Z2)),
        ("sum, X", S, 4 * (X2 * X3 - Z2 * Z3) ** 2),
        ("sum, Z", T, 4 * u * (X3 * Z2 - X2 * Z3) ** 2),
    ):
        found += faults([(name, got - of)])
    # ---- the two fractions are the tangent's and the chord's, w = B v^2
    u2, u3, one = variables(p, 2)
    w2, w3 = (x**3 + A * x * x + x for x in (u2, u3))
    K, E2 = A * one + u2 + u3, (u3 - u2) ** 2
    return found + faults((
        ("tangent", (3 * u2 * u2 + 2 * A * u2 + one) ** 2 - 4 * w2 * (A * one + 2 * u2) - (u2 * u2 - one) ** 2),
        ("chord", (w3 - w2) ** 2 - 2 * (w2 + w3) * K * E2 + (K * E2) ** 2 - E2 * (u2 * u3 - one) ** 2),
    ))  # fmt: skip


def ladder_steps(curve: Montgomery) -> Iterator[tuple[Step, int]]:
    """The steps that a program may use, each with its constant."""
    yield _ANY.ladder_step, curve.a24
    yield _ANY.early_ladder_step, (curve.A - 2) % curve.p
