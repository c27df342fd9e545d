# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Formulas on all pairs of points of small curves: no exceptional case, and no product more than stated."""

import pytest
from small_curves import edwards, montgomery, points, weierstrass

from modmill.engines.ecc import edwards as edwards_programs
from modmill.engines.ecc import weierstrass as weierstrass_programs
from modmill.engines.ecc.formulas import (
    AffinePoint,
    Extended,
    Homogeneous,
    Jacobian,
    Prepared,
    early_ladder_step,
    ladder_step,
)
from modmill.engines.microcode.expressions import BasicBlock
from modmill.engines.microcode.field_program import Domain
from modmill.numbers.curves.named import find_curve

CURVES = [weierstrass(23, -3), weierstrass(31, 0, 20), weierstrass(29, 5)]
EDWARDS = [edwards(29, -1), edwards(23, 1), edwards(31, 9)]


def section_of(names, formula):
    """A block that sets r0, r1 ... to what the formula makes of these variables."""
    block = BasicBlock("test")
    for k, value in enumerate(formula(block, *(block.variable(name) for name in names))):
        block.set(f"r{k}", value)
    return block.pruned()


def values(block, p, *numbers):
    """What the block sets when its variables a, b ... have these values."""
    out = block.evaluate(dict(zip("abcdefgh", numbers, strict=False)), p)
    return tuple(out[f"r{k}"] for k in range(len(out)))


def homogeneous(P, z, p):
    return (0, z, 0) if P is None else (P[0] * z % p, P[1] * z % p, z)


def affine(X, Y, Z, p):
    if Z == 0:
        assert X == 0 and Y != 0, "no point"
        return None
    return X * pow(Z, -1, p) % p, Y * pow(Z, -1, p) % p


def form(curve, block):
    return weierstrass_programs.form(curve, Domain(curve.p, 1), block)


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: f"a={c.a},b={c.b},p={c.p}")
def test_complete_sums_of_all_points(curve):
    p = curve.p

    def add(s, *v):
        return vars(form(curve, s).add(Homogeneous(*v[:3]), _second(*v[3:]))).values()

    full, mixed = section_of("abcdef", add), section_of("abcde", add)
    for P in points(curve):
        for Q in points(curve):
            for z in (1, 2, p - 3):
                first = homogeneous(P, z, p)
                assert affine(*values(full, p, *first, *homogeneous(Q, 5, p)), p) == curve.add(P, Q), (P, Q)
                if Q is not None:
                    assert affine(*values(mixed, p, *first, *Q), p) == curve.add(P, Q), (P, Q)


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: f"a={c.a},b={c.b},p={c.p}")
def test_doublings_of_all_points(curve):
    p = curve.p

    def chained(s, *v):
        E = form(curve, s)
        J = E.double_jacobian(E.double_jacobian(E.first_double(Homogeneous(*v))))
        return vars(E.homogeneous(J)).values()

    double = section_of("abc", lambda s, *v: vars(form(curve, s).double(Homogeneous(*v))).values())
    eight = section_of("abc", chained)

    def once(s, *v):
        return _xyz(form(curve, s).double_jacobian(Jacobian(*v, aZ4=_az4(curve, s, v[2]))))

    jacobian = section_of("abc", once)
    for P in points(curve):
        for z in (1, 4, p - 2):
            assert affine(*values(double, p, *homogeneous(P, z, p)), p) == curve.add(P, P)
            if P is not None:
                assert affine(*values(eight, p, *homogeneous(P, z, p)), p) == curve.multiply(8, P)
            X, Y, Z = (z * z, z**3, 0) if P is None else (P[0] * z * z, P[1] * z**3, z)
            X, Y, Z = values(jacobian, p, X, Y, Z)
            if P is None:
                assert Z == 0 and X and Y and (X**3 - Y**2) % p == 0, "O in Jacobian form"
            else:
                i = pow(Z, -1, p)
                assert (X * i * i % p, Y * i**3 % p) == curve.add(P, P)
    assert values(eight, p, 0, 1, 0) == (0, 0, 0), "the conversion into Jacobian form is not for O"


def _second(*v):
    return Homogeneous(*v) if len(v) == 3 else AffinePoint(*v)


def _xyz(P):
    return P.X, P.Y, P.Z


def _az4(curve, block, z):
    return block.constant(curve.a) * (z * z) * (z * z) if curve.a not in (0, curve.p - 3) else None


@pytest.mark.parametrize("curve", EDWARDS, ids=lambda c: f"a={c.a},d={c.d},p={c.p}")
def test_edwards_sums_of_all_points(curve):
    p = curve.p

    def made(s):
        return edwards_programs.form(curve, Domain(p, 1), s)

    def both(s, *v):
        E = made(s)
        S = E.add(Extended(*v[:4]), E.prepared(Extended(*v[4:])))
        return S.X, S.Y, S.Z, S.T

    def double(s, *v):
        D = made(s).double(Homogeneous(*v))
        return D.X, D.Y, D.Z, D.T

    add, twice = section_of("abcdefgh", both), section_of("abc", double)
    for P in points(curve):
        X, Y, Z, T = values(twice, p, P[0] * 3, P[1] * 3, 3)
        assert _extended(X, Y, Z, T, p) == curve.add(P, P)
        for Q in points(curve):
            given = [c % p for R, z in ((P, 3), (Q, p - 5)) for c in (R[0] * z, R[1] * z, z, R[0] * R[1] * z)]
            assert _extended(*values(add, p, *given), p) == curve.add(P, Q), (P, Q)


def _extended(X, Y, Z, T, p):
    assert Z and (X * Y - Z * T) % p == 0, "T = X Y / Z"
    return X * pow(Z, -1, p) % p, Y * pow(Z, -1, p) % p


def ladder_steps(curve):
    """Both forms of a step, each with its constant."""
    yield section_of("abcde", lambda s, *v: ladder_step(*v, s.constant(curve.a24)))
    yield section_of("abcde", lambda s, *v: early_ladder_step(*v, s.constant((curve.A - 2) % curve.p)))


@pytest.mark.parametrize("form", [0, 1])
def test_ladder_step_on_all_pairs_with_a_known_difference(form):
    curve = montgomery(43)
    p = curve.p
    step = list(ladder_steps(curve))[form]
    all_points = [P for P in points(curve) if P]
    for D in all_points:
        if D[0] == 0:
            continue
        for P in all_points:
            Q = curve.add(P, D)
            if Q is None:
                continue
            X2, Z2, X3, Z3 = values(step, p, P[0] * 3, 3, Q[0] * 7, 7, D[0])
            assert _u(X2, Z2, p) == _first(curve.add(P, P))
            assert _u(X3, Z3, p) == _first(curve.add(P, Q))


def _u(X, Z, p):
    return None if Z == 0 else X * pow(Z, -1, p) % p


def _first(P):
    return P and P[0]


def products(name, n, formula):
    """Products of a formula on n variables for a named curve, whose constants are not small unless they are."""
    curve = find_curve(name)
    return section_of("abcdefgh"[:n], lambda s, *v: formula(form(curve, s), *v)).products


@pytest.mark.parametrize(
    ("name", "add", "mixed", "double", "first", "following"),
    [("P-256", 14, 13, 13, 7, 8), ("secp256k1", 12, 11, 8, 7, 7), ("brainpoolP256r1", 17, 16, 16, 9, 7)],
)
def test_products_of_weierstrass_formulas(name, add, mixed, double, first, following):
    def whole(E, *v):
        return vars(E.add(Homogeneous(*v[:3]), _second(*v[3:]))).values()

    assert products(name, 6, whole) == add
    assert products(name, 5, whole) == mixed
    assert products(name, 3, lambda E, *v: vars(E.double(Homogeneous(*v))).values()) == double
    assert products(name, 3, lambda E, *v: _xyz(E.first_double(Homogeneous(*v)))) == first
    aZ4 = name.startswith("brainpool")
    last = products(name, 3 + aZ4, lambda E, *v: _xyz(E.double_jacobian(Jacobian(*v))))
    assert last == following
    assert products(name, 3, lambda E, *v: _xyz(E.homogeneous(Jacobian(*v)))) == 3


@pytest.mark.parametrize(("name", "add", "mixed", "double"), [("Ed25519", 8, 7, 8), ("Ed448", 9, 8, 8)])
def test_products_of_edwards_formulas(name, add, mixed, double):
    curve = find_curve(name)

    def made(n, formula):
        return section_of(
            "abcdefgh"[:n], lambda s, *v: formula(edwards_programs.form(curve, Domain(curve.p, 1), s), *v)
        )

    def whole(E, *v):
        return vars(E.add(Extended(*v[:4]), Prepared(*v[4:]))).values()

    assert made(8, whole).products == add
    assert made(7, whole).products == mixed
    assert made(3, lambda E, *v: vars(E.double(Homogeneous(*v))).values()).products == double
    assert made(3, lambda E, *v: _xyz(E.double(Homogeneous(*v)))).products == double - 1


def test_products_of_the_ladder_step():
    assert [step.products for step in ladder_steps(find_curve("Curve25519"))] == [10, 10]


def test_elements_of_two_sections_do_not_meet():
    one, other = (BasicBlock(name).variable("x") for name in "ab")
    with pytest.raises(ValueError, match="combines elements of block"):
        one * other


@pytest.mark.parametrize("k", [0, 1, 2, 3, 7, 8, 21, 39, -1, -5])
def test_small_multiples_are_sums(k):
    block = section_of("a", lambda _, a: (k * a,))
    assert block.products == 0
    assert values(block, 101, 9) == (9 * k % 101,)
