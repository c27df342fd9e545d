# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Curves: the table proved, small curves counted point by point, every fault of a user's curve, encodings."""

import itertools
from dataclasses import replace

import pytest

from modmill.numbers.curves.affine import Edwards, Montgomery, Weierstrass
from modmill.numbers.curves.encoding import (
    decode_edwards,
    decode_sec1,
    decode_u,
    edwards_size,
    encode_edwards,
    encode_sec1,
    encode_u,
    lift_x,
)
from modmill.numbers.curves.named import (
    CURVE448,
    CURVE25519,
    CURVES,
    ED448,
    ED25519,
    curve_of_oid,
    find_curve,
    same_curve,
)
from modmill.numbers.primes import square_root

P256 = find_curve("P-256")
TOY = Weierstrass(23, (0, 1), 29, a=18, b=1)
"""29 points."""
TOYS = (TOY, Montgomery(257, (4, 70), 67, 4, A=45), Edwards(257, (6, 164), 71, 4, a=1, d=39))


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
def test_every_named_curve_is_valid(curve):
    curve.validate()
    assert curve_of_oid(curve.oid) == curve == same_curve(replace(curve, name="", oid="", source="", aliases=()))
    assert all(find_curve(name.upper()) == curve for name in (curve.name, *curve.aliases))


def points(curve):
    found = [P for P in itertools.product(range(curve.p), repeat=2) if curve.contains(P)]
    return found if curve.zero is not None else [None, *found]


@pytest.mark.parametrize("curve", TOYS, ids=lambda c: type(c).__name__)
def test_small_curves_are_groups(curve):
    every = points(curve)
    curve.validate()
    assert len(every) == curve.n * curve.h
    for P, Q in itertools.product(every, every[:: 1 + len(every) // 30]):
        total = curve.add(P, Q)
        assert curve.contains(total) and total == curve.add(Q, P)
        assert curve.add(total, curve.negate(Q)) == P
    for P, Q, R in itertools.product(every[::9], every[::10], every[::11]):
        assert curve.add(curve.add(P, Q), R) == curve.add(P, curve.add(Q, R))
    generated = {curve.multiply(k, curve.base) for k in range(curve.n)}
    assert len(generated) == curve.n
    assert {P for P in every if curve.multiply(curve.n, P) == curve.zero} == generated


def test_multiples_by_u_agree_on_the_curve_and_its_twist():
    curve = TOYS[1]
    on_curve = set()
    for P in points(curve)[1:]:
        on_curve.add(P[0])
        for k in (*range(9), 66, 67, 68, 134, 268, 269, 1000):
            kP = curve.multiply(k, P)
            assert curve.multiply_u(k, P[0]) == (0 if kP is None else kP[0])
    B = next(x for x in range(2, curve.p) if square_root(x, curve.p) is None)
    twist = replace(curve, B=B)
    assert on_curve | {P[0] for P in points(twist)[1:]} == set(range(curve.p))
    for P in points(twist)[1:]:
        for k in (*range(9), 61, 124, 248, 1000):
            kP = twist.multiply(k, P)
            assert curve.multiply_u(k, P[0]) == (0 if kP is None else kP[0])


@pytest.mark.parametrize(
    ("curve", "changes", "message"),
    [
        (P256, {"p": P256.p + 2}, "needs a prime"),
        (P256, {"p": 3}, "needs a prime"),
        (P256, {"p": 2**1030 - 1}, "1030 bits; at most 1024"),
        (P256, {"a": P256.p}, "a = .* is not in \\[0, p\\)"),
        (P256, {"b": -1}, "b = .* is not in"),
        (P256, {"a": 0, "b": 0}, "singular: 4 a\\^3"),
        (P256, {"a": P256.p - 3, "b": 2}, "singular: 4 a\\^3"),
        (P256, {"base": (P256.base[0], P256.base[1] + 1)}, "not on the curve"),
        (P256, {"base": (P256.base[0] + P256.p, P256.base[1])}, "not on the curve"),
        (P256, {"n": P256.n - 1}, "must be prime"),
        (P256, {"n": P256.n, "h": 2}, "Hasse"),
        (P256, {"h": 0}, "Hasse"),
        (P256, {"n": (1 << 1_000_000) + 1}, "Hasse"),  # no test for a prime of that size
        (P256, {"n": find_curve("secp256k1").n}, "Hasse|not the order"),
        (TOY, {"n": 23}, "not the order"),
        (TOYS[1], {"h": 3}, "Hasse"),
        (CURVE25519, {"A": 2}, "singular: B"),
        (CURVE25519, {"B": 0}, "singular: B"),
        (ED25519, {"d": ED25519.a}, "singular: a d"),
        (ED25519, {"a": 1, "d": 4}, "exceptions"),
        (ED448, {"base": (0, 1)}, r"\(0, 1\) is the neutral element"),
        (Weierstrass(1019, (0, 1), 17, 60, a=0, b=1), {}, "does not fix the cofactor"),
    ],
)
def test_each_fault_is_refused(curve, changes, message):
    with pytest.raises(ValueError, match=message):
        replace(curve, **changes).validate()


@pytest.mark.parametrize(
    ("curve", "message"),
    [
        (Weierstrass(617, (87, 87), 103, 6, a=0, b=1), "p\\^2 = 1 mod n"),
        (Weierstrass(211, (2, 6), 211, a=1, b=26), "anomalous"),
    ],
)
def test_weak_curves_are_refused(curve, message):
    assert len(points(curve)) == curve.n * curve.h
    with pytest.raises(ValueError, match=message):
        curve.validate()


@pytest.mark.parametrize("p", [5, 13, 17, 97, 193, 257, 769, 7, 23])
def test_square_roots(p):
    squares = {x * x % p for x in range(p)}
    for c in range(p):
        root = square_root(c, p)
        assert (root is not None) == (c in squares)
        assert root is None or root * root % p == c


def test_square_roots_modulo_the_prime_of_p224():
    curve = find_curve("P-224")  # p - 1 is a multiple of 2^96
    assert lift_x(curve, curve.base[0], curve.base[1] % 2 == 1) == curve.base
    with pytest.raises(ValueError, match="no point"):
        lift_x(curve, 1 if square_root(curve.right(1), curve.p) is None else 0, False)


def test_sec1():
    for P in points(TOY):
        for compressed in (False, True):
            assert decode_sec1(TOY, encode_sec1(TOY, P, compressed)) == P
    assert encode_sec1(P256, P256.base, True).hex().startswith("036b17d1f2")
    valid = {encode_sec1(TOY, P, c) for P in points(TOY) for c in (False, True)}
    for data in (b"", *map(bytes, itertools.product(range(9), range(30))), *(bytes([4, 1, y]) for y in range(256))):
        if data not in valid:
            with pytest.raises(ValueError, match=r"not a point|no point|not on"):
                decode_sec1(TOY, data)
    for data in (b"\4" + bytes([0, 1 + 23]), b"\4\0", b"\4\0\1\0", b"\6\0\1", b"\0\0", b"\2" + bytes([23])):
        with pytest.raises(ValueError, match=r"not a point|no point|not on"):
            decode_sec1(TOY, data)


def test_u_coordinates():
    for curve in (CURVE25519, CURVE448):
        assert decode_u(curve, encode_u(curve, curve.base[0])) == curve.base[0]
        assert decode_u(curve, encode_u(curve, curve.p + 3)) == 3
        with pytest.raises(ValueError, match=f"has {curve.size} bytes, not {curve.size + 1}"):
            decode_u(curve, bytes(curve.size + 1))
    assert decode_u(CURVE25519, bytes([9, *[0] * 30, 0x80])) == 9


def test_edwards_points():
    toy = TOYS[2]
    valid = {encode_edwards(toy, P): P for P in points(toy)}
    assert len(valid) == len(points(toy))
    for number in (*range(600), *range(1 << 15, (1 << 15) + 600), 0xFFFF):
        data = number.to_bytes(2, "little")
        if data in valid:
            assert decode_edwards(toy, data) == valid[data]
        else:
            with pytest.raises(ValueError, match=r"not a point|not below"):
                decode_edwards(toy, data)
    assert (edwards_size(ED25519), edwards_size(ED448)) == (32, 57)
    assert encode_edwards(ED25519, ED25519.base).hex() == "58" + "66" * 31
    for curve in (ED25519, ED448):
        assert decode_edwards(curve, encode_edwards(curve, curve.base)) == curve.base
        with pytest.raises(ValueError, match="bytes, not"):
            decode_edwards(curve, b"")


def test_names_that_are_none():
    with pytest.raises(ValueError, match="the nearest names are P-256"):
        find_curve("P-265")
    with pytest.raises(ValueError, match=r"object identifier 1.2.3"):
        curve_of_oid("1.2.3")


def test_a_wrong_coefficient_is_caught():
    with pytest.raises(ValueError, match="not on the curve"):
        replace(P256, b=P256.b ^ 1).validate()
