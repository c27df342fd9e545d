# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Programs for multiples of points: every scalar and every point of small curves, exceptional ones of real curves."""

import random
from dataclasses import replace

import pytest
from small_curves import edwards, montgomery, points, weierstrass

from marks import long
from modmill.contract import UnsupportedError
from modmill.engines.ecc import weierstrass as weierstrass_programs
from modmill.engines.ecc.point_engine import Shape, point_program
from modmill.engines.microcode.field_program import Domain
from modmill.numbers.curves.affine import Montgomery, Weierstrass
from modmill.numbers.curves.named import find_curve
from modmill.numbers.curves.projective import multiple_u, multiples


def affine(curve, P):
    return (0, 0) if P is None else P


def small(curve):
    """The domain of a unit with sums, of one that adds up products instead, whose formulas are other ones, and one with
    R = -1, whose square is 1."""
    p = curve.p
    return [Domain(p, 1), Domain(p, pow(1 << 9, -1, p), added=True), Domain(p, p - 1)]


@pytest.mark.parametrize("window", [2, 3])
@pytest.mark.parametrize("curve", [weierstrass(37, -3, 40), weierstrass(43, 0, 30), weierstrass(37, 7, 40)], ids=str)
def test_every_multiple_on_small_weierstrass_curves(curve, window):
    bits, rnd = curve.n.bit_length(), random.Random(5)
    jacobian = 0
    for domain in small(curve):
        for more in (0, 1, 4):  # with more bits the doublings are the complete ones
            made = point_program("multiply", curve, domain, bits + more, Shape(window))
            jacobian += "Jacobian" in made.field_program.name
            for P in points(curve)[:5]:
                for k in range(1 << bits) if more == 0 else rnd.sample(range(1 << bits + more), 30):
                    given = {"x": P[0], "y": P[1], "blind": rnd.randrange(1, curve.p)}
                    assert made.field_program.evaluate(given, made.digits(k)) == affine(curve, curve.multiply(k, P)), (
                        P,
                        k,
                    )
    assert jacobian, "Jacobian doublings were never tried"


@pytest.mark.parametrize("curve", [weierstrass(79, 0, 60), weierstrass(67, 0, 60), weierstrass(97, 0, 90)], ids=str)
def test_every_multiple_by_the_endomorphism(curve):
    """Every scalar of the length, also from n on, with every window; a few points."""
    bits, rnd = curve.n.bit_length(), random.Random(5)
    for domain, window in zip(small(curve), (2, 3, 1), strict=True):
        for length in (bits, bits - 2):
            made = point_program("multiply", curve, domain, length, Shape(window, endomorphism=True))
            for P in points(curve)[:3]:
                for k in range(1 << length):
                    given = {"x": P[0], "y": P[1], "blind": rnd.randrange(1, curve.p)}
                    assert made.field_program.evaluate(given, made.digits(k)) == affine(curve, curve.multiply(k, P)), k


@pytest.mark.parametrize(("name", "products"), [("secp256k1", 2160), ("BLS12-381-G1", 2347), ("BN254", 2137)])
def test_exceptional_scalars_of_real_curves_with_an_endomorphism(name, products):
    curve = find_curve(name, pairing=True)
    n, p, rnd = curve.n, curve.p, random.Random(name)
    bits = n.bit_length()
    made = point_program("multiply", curve, Domain(p, pow(1 << 600, -1, p)), bits, Shape(endomorphism=True))
    plain = point_program("multiply", curve, Domain(p, pow(1 << 600, -1, p)), bits)
    assert made.field_program.products == products < 0.75 * plain.field_program.products
    split = made.recoding.split
    edges = (0, 1, 2, n - 2, n - 1, n, (1 << bits) - 1, split.eigenvalue, n - split.eigenvalue)
    for k in (*edges, *(rnd.getrandbits(bits) for _ in range(3))):
        P = multiples(curve, [(rnd.randrange(1, n), curve.base)])
        given = {"x": P[0], "y": P[1], "blind": rnd.randrange(1, p)}
        assert made.field_program.evaluate(given, made.digits(k)) == affine(curve, multiples(curve, [(k, P)])), k
    with pytest.raises(UnsupportedError, match=rf"a scalar of this program must be in \[0, 2\^{bits}\)"):
        made.digits(1 << bits)


@pytest.mark.parametrize("curve", [weierstrass(79, -3, 60), weierstrass(79, 0, 60)], ids=str)
def test_every_base_multiple_and_every_pair_on_small_weierstrass_curves(curve):
    bits, rnd = curve.n.bit_length(), random.Random(6)
    for domain in small(curve):
        for shape in (Shape(2, 2, 2), Shape(2, 3, 1)):
            made = point_program("multiply-base", curve, domain, bits, shape)
            for k in range(1 << bits):
                found = made.field_program.evaluate({"blind": rnd.randrange(1, curve.p)}, made.digits(k))
                assert found == affine(curve, curve.multiply(k, curve.base)), k
    made = point_program("multiply-two", curve, domain, bits, Shape(2))
    P = curve.multiply(5, curve.base)
    of = [curve.multiply(k, curve.base) for k in range(curve.n)]
    for u1 in range(0, curve.n, 3):
        for u2 in range(0, curve.n + 1, 2):
            found = made.field_program.evaluate({"x": P[0], "y": P[1]}, made.digits(u1, u2))
            assert found == affine(curve, of[(u1 + 5 * u2) % curve.n]), (u1, u2)


@pytest.mark.parametrize("curve", [edwards(29, -1), edwards(43, 1), edwards(31, 9)], ids=str)
def test_every_multiple_on_small_edwards_curves(curve):
    bits, rnd = 5, random.Random(7)
    for domain in small(curve):
        made = point_program("multiply", curve, domain, bits, Shape(2))
        base = point_program("multiply-base", curve, domain, bits, Shape(2, 2, 2))
        both = point_program("multiply-two", curve, domain, bits, Shape(2))
        for k in range(1 << bits):
            blind = {"blind": rnd.randrange(1, curve.p)}
            assert base.field_program.evaluate(blind, base.digits(k)) == curve.multiply(k, curve.base)
            for P in points(curve):
                given = {"x": P[0], "y": P[1]}
                assert made.field_program.evaluate(given | blind, made.digits(k)) == curve.multiply(k, P), (k, P)
                u1, u2 = rnd.randrange(curve.n), rnd.randrange(curve.n)
                expected = curve.add(curve.multiply(u1, curve.base), curve.multiply(u2, P))
                assert both.field_program.evaluate(given, both.digits(u1, u2)) == expected


def test_every_u_and_every_scalar_of_a_small_ladder():
    curve = montgomery(43)
    for domain in small(curve):
        made = point_program("ladder", curve, domain, 5)
        for u in range(curve.p):
            for k in range(32):
                found = made.field_program.evaluate({"u": u, "blind": 3 + k}, made.digits(k))
                assert found == (multiple_u(curve, k, u),), (u, k)


REAL = {
    "P-256": (3408, 1287, 5501), "secp256k1": (3080, 1057, 2927), "Ed25519": (2607, 816, 3089),
    "P-521": (6890, 2606, 10981), "Ed448": (4643, 1499, 5574), "brainpoolP256r1": (3453, 1330, 5544),
}  # fmt: skip


@pytest.mark.parametrize("name", [long(name) if name in ("P-521", "brainpoolP256r1") else name for name in REAL])
def test_exceptional_scalars_and_products_of_real_curves(name):
    """Products are those of a multiplier with a factor; the same digits are used up for every scalar."""
    curve = find_curve(name)
    n, p, rnd = curve.n, curve.p, random.Random(name)
    bits = n.bit_length()
    domain = Domain(p, pow(1 << 600, -1, p))
    one, base, both = (
        point_program(operation, curve, domain, bits) for operation in ("multiply", "multiply-base", "multiply-two")
    )
    assert (one.field_program.products, base.field_program.products, both.field_program.products) == REAL[name]
    P = multiples(curve, [(rnd.randrange(1, n), curve.base)])
    minus = curve.negate(P)
    for k in (0, 1, 2, n - 2, n - 1, n, (1 << bits) - 1, rnd.randrange(n)):
        blind = {"blind": rnd.randrange(1, p)}
        given = {"x": P[0], "y": P[1]}
        assert one.field_program.evaluate(given | blind, one.digits(k)) == affine(curve, multiples(curve, [(k, P)])), k
        expected = affine(curve, multiples(curve, [(k, curve.base)]))
        assert base.field_program.evaluate(blind, base.digits(k)) == expected, k
        if k <= n:
            for Q, u in ((P, 0), (P, n - 1), (curve.base, (n - k) % n), (curve.base, k % n), (minus, 7)):
                given = {"x": Q[0], "y": Q[1]}
                expected = affine(curve, multiples(curve, [(u, curve.base), (k, Q)]))
                assert both.field_program.evaluate(given, both.digits(u, k)) == expected, (k, u)


def test_points_of_small_order_on_real_edwards_curves():
    for name in ("Ed25519", "Ed448"):
        curve = find_curve(name)
        domain = Domain(curve.p, 1)
        made = point_program("multiply", curve, domain, 8)
        both = point_program("multiply-two", curve, domain, 8)
        for P in ((0, 1), (0, curve.p - 1), *([] if name == "Ed25519" else [(1, 0), (curve.p - 1, 0)])):
            given = {"x": P[0], "y": P[1]}
            for k in (0, 1, 2, 3, 7, 255):
                assert made.field_program.evaluate(given | {"blind": 5}, made.digits(k)) == curve.multiply(k, P)
                expected = curve.add(curve.base, curve.multiply(k, P))
                assert both.field_program.evaluate(given, both.digits(1, k)) == expected


@pytest.mark.parametrize(("name", "products"), [("Curve25519", 2821), ("Curve448", 4945)])
def test_exceptional_coordinates_of_real_ladders(name, products):
    curve = find_curve(name)
    p = curve.p
    made = point_program("ladder", curve, Domain(p, pow(1 << 600, -1, p)), p.bit_length())
    assert made.field_program.products == products
    assert made.field_program.loop.pruned().products == 10
    for u in (0, 1, p - 1, curve.base[0], 2):
        for k in (0, 1, 8, curve.n - 1, curve.n, (1 << p.bit_length()) - 1):
            assert made.field_program.evaluate({"u": u, "blind": 9}, made.digits(k)) == (multiple_u(curve, k, u),)


def test_products_of_other_shapes():
    """The fixed base of Ed25519 and the sum of two of secp256k1, with larger tables."""
    curve = find_curve("Ed25519")
    assert point_program("multiply-base", curve, Domain(curve.p, 1), 253, Shape(4, 6, 2)).field_program.products == 730
    curve = find_curve("secp256k1")
    assert (
        point_program("multiply-two", curve, Domain(curve.p, 1), 256, Shape(joint=True)).field_program.products == 2564
    )


def test_what_cannot_be_made_is_refused():
    even = Weierstrass(23, (0, 0), 7, h=4, a=1, b=1)
    with pytest.raises(UnsupportedError, match=r"has the point \(0, 0\) \(b = 0\), which is reserved"):
        point_program("multiply", Weierstrass(23, (1, 5), 11, a=1, b=0), Domain(23, 1), 5)
    with pytest.raises(UnsupportedError, match="points of order two"):
        point_program("multiply", even, Domain(23, 1), 5)
    split = Shape(endomorphism=True)
    with pytest.raises(UnsupportedError, match=r"P-256 has no endomorphism .* a must be 0"):
        point_program("multiply", find_curve("P-256"), Domain(find_curve("P-256").p, 1), 256, split)
    curve = weierstrass(79, 0, 60)
    with pytest.raises(UnsupportedError, match="modulo n, of 7 bits, so 8 bits would blind nothing"):
        point_program("multiply", curve, Domain(79, 1), 8, split)
    with pytest.raises(UnsupportedError, match=r"a cofactor of 7632.*--allow-pairing"):
        curve = replace(find_curve("BLS12-381-G1", pairing=True), arithmetic=False)
        point_program("multiply", curve, Domain(curve.p, 1), 255, split)
    with pytest.raises(UnsupportedError, match="too few points"):
        weierstrass_programs.base(weierstrass(23, -3), Domain(23, 1), 5, 5, 1)
    with pytest.raises(UnsupportedError, match="no operation 'ladder'"):
        point_program("ladder", even, Domain(23, 1), 5)
    with pytest.raises(UnsupportedError, match="no operation 'multiply'"):
        point_program("multiply", Montgomery(43, (1, 1), 1, A=3), Domain(43, 1), 5)
