# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Curves of even cofactor and curves for pairings: right for every scalar and every point of the group, in the
instructions on
integers; refused where they are not asked for, and where a point lies outside the group."""

import random
from dataclasses import replace
from functools import lru_cache

import pytest
from small_curves import points

from modmill.contract import UnsupportedError
from modmill.cores.ecc.machine import ecc
from modmill.cores.ecc.page import describe, restored
from modmill.designs import design
from modmill.engines.ecc.blinding import Ecc, ReferenceEngine, require_weierstrass
from modmill.engines.ecc.order_engine import order_operations
from modmill.engines.ecc.point_engine import MicrocodePointEngine, Shape
from modmill.engines.microcode.program import DatapathSpec
from modmill.numbers.curves.affine import Weierstrass
from modmill.numbers.curves.named import CURVES, PAIRING_CURVES, find_curve
from modmill.numbers.curves.text import parse_curve
from modmill.numbers.primes import is_prime

UNIT = DatapathSpec(3, 1, 1, 1024, 1024)
KINDS = ("0", "minus 3", "other", "b = 0")


@lru_cache
def even(p, kind, least=5):
    """The first curve over p of even cofactor and that kind of constants, with an odd prime order from ``least`` on."""
    for a in {"0": (0,), "minus 3": (p - 3,), "other": range(1, p - 3), "b = 0": range(1, p)}[kind]:
        for b in (0,) if kind == "b = 0" else range(1, p):
            curve = Weierstrass(p, (0, 0), 1, a=a, b=b)
            if (4 * a**3 + 27 * b * b) % p == 0:
                continue
            found = points(curve)
            n = max((q for q in range(least, len(found)) if len(found) % q == 0 and is_prime(q)), default=0)
            if n and len(found) // n % 2 == 0 and n != p:
                base = next(P for P in found if P and curve.multiply(n, P) is None)
                return replace(curve, base=base, n=n, h=len(found) // n, arithmetic=True)
    raise ValueError(f"no such curve over {p}")


SMALL = Shape(3, 2, 2)


def instructions(curve, shape=SMALL):
    return MicrocodePointEngine(curve, design("montgomery-array").fit(curve.p).contract("native"), UNIT, shape)


@pytest.mark.parametrize("kind", KINDS)
def test_even_cofactor_is_right_for_every_scalar_and_point_of_the_group(kind):
    curve = even(43, kind)
    group = [curve.multiply(k, curve.base) for k in range(curve.n)]
    assert any(P and P[1] == 0 for P in points(curve)), "the curve has points of order two"
    engine, bits = instructions(curve), curve.n.bit_length()
    scalars = range(1 << bits)
    for P in group[1:]:
        found = engine.multiply(list(scalars), [P] * len(scalars), bits, [1 + k % 42 for k in scalars])
        assert found == [curve.multiply(k, P) for k in scalars]
    if curve.n > 8:  # else no tables of constants without O
        assert engine.multiply_base(list(scalars), bits, [1] * len(scalars)) == [group[k % curve.n] for k in scalars]


def test_sums_of_two_multiples_on_a_curve_of_even_cofactor():
    curve = even(101, "minus 3")
    engine, rnd = instructions(curve), random.Random(4)
    for _ in range(60):
        u1, u2, k = rnd.randrange(curve.n), rnd.randrange(curve.n), rnd.randrange(1, curve.n)
        P = curve.multiply(k, curve.base)
        assert engine.multiply_two([(u1, u2)], [P]) == [curve.multiply(u1 + u2 * k, curve.base)]


def test_a_point_outside_the_group_is_refused_because_its_multiples_would_be_wrong():
    curve = even(43, "minus 3")
    engine = instructions(curve)
    outside = [P for P in points(curve) if P and curve.multiply(curve.n, P) != curve.zero]
    scalars = list(range(curve.n + 1))
    bits = curve.n.bit_length()
    ones = [1] * len(scalars)
    right = {P: [curve.multiply(k, P) for k in scalars] for P in outside}
    wrong = [P for P in outside if engine.multiply(scalars, [P] * len(scalars), bits, ones) != right[P]]
    assert wrong, "sums of points of even order have exceptions"
    for call in (lambda on, P: on.multiply([3], [P]), lambda on, P: on.multiply_two([(1, 1)], [P])):
        with pytest.raises(UnsupportedError, match="not in the group of the base point"):
            call(Ecc(engine), wrong[0])
    assert Ecc(engine).multiply([3], [curve.base]) == [curve.multiply(3, curve.base)]


@pytest.mark.parametrize("curve", PAIRING_CURVES, ids=lambda curve: curve.name)
def test_curves_for_pairings_in_rows(curve):
    curve.validate(pairing=True)
    engine, reference = instructions(curve, Shape(4, 4, 2)), ReferenceEngine(curve)
    bits, k = curve.n.bit_length(), random.Random(curve.name).randrange(curve.n)
    scalars = [k, curve.n - 1, curve.n]
    P = curve.multiply(5, curve.base)
    assert engine.multiply(scalars, [P] * 3, bits, [7, 1, 1]) == reference.multiply(scalars, [P] * 3, bits, [1] * 3)
    assert engine.multiply_base(scalars, bits, [7, 1, 1]) == reference.multiply_base(scalars, bits, [1] * 3)
    assert engine.multiply_two([(k, 3)], [P]) == reference.multiply_two([(k, 3)], [P])


@pytest.mark.parametrize("name", ["BN254", "alt_bn128", "BLS12-381", "bls12_381_g1"])
def test_a_curve_for_pairings_is_given_only_where_it_is_asked_for(name):
    with pytest.raises(ValueError, match=r"embedding degree is 12.*--allow-pairing"):
        parse_curve(name)
    curve = parse_curve(name, pairing=True)
    assert curve in PAIRING_CURVES
    x, y = curve.base
    text = f"weierstrass p={curve.p} a=0 b={curve.b} x={x} y={y} n={curve.n} h={curve.h}"
    assert parse_curve(text, pairing=True) is curve
    with pytest.raises(ValueError, match="--allow-pairing"):
        parse_curve(text)
    with pytest.raises(UnsupportedError, match="arithmetic only, not for ECDH and ECDSA: its embedding degree is 12"):
        require_weierstrass(curve)
    assert order_operations(curve) == ()


def test_ordinary_curves_stay_what_they_are():
    assert all(parse_curve(curve.name, pairing=True) is curve and not curve.arithmetic for curve in CURVES)
    assert not any(curve.unsuited() for curve in CURVES)
    curves = (Weierstrass(43, (0, 0), 43, a=a, b=b) for a in range(1, 43) for b in range(1, 43))
    anomalous = next(curve for curve in curves if (4 * curve.a**3 + 27 * curve.b**2) % 43 and len(points(curve)) == 43)
    with pytest.raises(ValueError, match="anomalous"):
        replace(anomalous, base=points(anomalous)[0]).validate(pairing=True)


def test_a_coprocessor_and_its_record():
    with pytest.raises(ValueError, match="--allow-pairing"):
        ecc("BN254", "montgomery-array")
    core = ecc("BN254", "montgomery-array", allow_pairing=True, operations=("multiply-base",), threads=1)
    assert core.jobs == ("multiply-base",) and core.curve.arithmetic
    small = even(251, "minus 3", 64)
    own = ecc(replace(small, arithmetic=False), "montgomery-array", allow_pairing=True)
    assert own.curve == small
    for curve in (core.curve, own.curve, find_curve("P-256")):
        assert restored(describe(curve)) == curve
    with pytest.raises(UnsupportedError, match="no signature"):
        ecc("BN254", "montgomery-array", allow_pairing=True, order=True)
