# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Checks of results: 1 for every scalar and point of small curves, not 1 off the curve or for other points."""

import random
from itertools import product

import pytest
from small_curves import edwards, montgomery, points, weierstrass

from modmill.engines.ecc.isomorphism import isomorphism
from modmill.engines.ecc.point_engine import Shape, point_program
from modmill.engines.ecc.result_checks import coherence
from modmill.engines.microcode.expressions import BasicBlock
from modmill.engines.microcode.field_program import Domain
from modmill.numbers.curves.affine import Edwards
from modmill.numbers.curves.projective import multiple_u

CURVES = [weierstrass(37, -3, 40), weierstrass(43, 0, 30), weierstrass(37, 7, 40), edwards(29, -1), edwards(31, 9)]
SHAPE = Shape(2, 2, 2)


def made(operation, curve, domain, bits):
    return point_program(operation, curve, domain, bits, SHAPE, check_result=True)


def domains(p):
    return [Domain(p, 1), Domain(p, pow(1 << 9, -1, p))]


def found(program, digits, **given):
    """(results, check) of a run."""
    *results, check = program.evaluate(given, digits)
    return tuple(results), check


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_a_check_is_1_for_every_scalar_and_point(curve):
    bits, rnd = curve.n.bit_length(), random.Random(5)
    for domain in domains(curve.p):
        for operation in ("multiply", "multiply-base", "multiply-two"):
            plain = point_program(operation, curve, domain, bits, SHAPE)
            checked = made(operation, curve, domain, bits)
            assert plain.field_program.checks == ()
            inputs = [{}] if operation == "multiply-base" else [{"x": P[0], "y": P[1]} for P in points(curve)[:3] if P]
            blind = {} if operation == "multiply-two" else {"blind": rnd.randrange(1, curve.p)}
            for k, given in product(range(0, curve.n, 1 if domain.plain else 5), inputs):
                digits = checked.digits(*((k, rnd.randrange(curve.n)) if operation == "multiply-two" else (k,)))
                results, check = found(checked.field_program, digits, **given, **blind)
                assert check == 1 and results == plain.field_program.evaluate(given | blind, digits), (operation, k)


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_every_input_off_the_curve_is_seen(curve):
    for domain in domains(curve.p):
        first = made("multiply", curve, domain, curve.n.bit_length()).field_program.before[0]
        for x, y in product(range(curve.p), range(0, curve.p, 1 if domain.plain else 5)):
            found = first.evaluate({"x": x, "y": y, "blind": 3}, curve.p, factor=domain.factor)
            assert (found["check"] == 0) == curve.contains((x, y)), (x, y)


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_every_result_off_the_curve_is_seen(curve):
    """The last block alone, from every point (X : Y : Z), also from those that no run has; and after a wrong input."""
    p = curve.p
    image = curve if isinstance(curve, Edwards) else isomorphism(curve).image  # on which the program computes
    for domain in domains(p):
        after = made("multiply", curve, domain, curve.n.bit_length()).field_program.after
        for X, Y, Z in product(range(p), range(0, p, 1 if domain.plain else 5), (0, 5)):
            values = {name: domain.value(c) for name, c in (("X", X), ("Y", Y), ("Z", Z))}
            point = (X * pow(Z, -1, p) % p, Y * pow(Z, -1, p) % p) if Z else None
            right = image.contains(point) if Z else not isinstance(curve, Edwards) and X == 0
            for wrong in (0, 1 + (X + Y) % (p - 1)):
                held = values | {"check": domain.value(wrong)}
                check = after.evaluate(held, p, factor=domain.factor)["check"]
                assert (check == 1) == (right and not wrong), (X, Y, Z, wrong)


def test_a_ladder_is_coherent_for_every_u_and_scalar():
    curve = montgomery(43)
    for domain in domains(curve.p):
        checked = made("ladder", curve, domain, 6)
        for u, k in product(range(curve.p), range(0, 64, 3 if domain.plain else 11)):
            assert found(checked.field_program, checked.digits(k), u=u, blind=3 + k % 40) == (
                (multiple_u(curve, k, u),), 1,
            ), (u, k)  # fmt: skip


def test_pairs_that_do_not_belong_together_are_seen():
    """Of all pairs of points (x, x'), for a given u, only those with the sum O, or with a negative of one of them."""
    curve, p = montgomery(43), 43
    affine = {x: [P for P in points(curve) if P and P[0] == x] for x in range(p)}
    block, domain = BasicBlock("pair"), Domain(p, 1)
    names = ("u", "x", "Z", "X3", "Z3")
    block.set("check", coherence(curve, domain, block, *map(block.variable, names)))
    judged = 0
    for u, x, x3 in product(range(1, p, 3), range(p), range(p)):
        if not (affine[u] and affine[x] and affine[x3]):
            continue
        sums = [curve.add(affine[u][0], Q) for Q in affine[x]]
        values = dict(zip(names, (u, x, 1, x3 * 7, 7), strict=True))
        right = any(P is not None and P[0] == x3 for P in sums)
        judged += right
        assert (block.evaluate(values, p)["check"] == 0) == right, (u, x, x3)
    assert judged > 130
