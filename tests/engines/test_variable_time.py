# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Sums of two multiples in variable time: pairs on small curves, where O comes up too, and a real curve bit by bit."""

import random
from dataclasses import replace

import pytest
from small_curves import weierstrass

from modmill.contract import UnsupportedError
from modmill.designs import design
from modmill.engines.ecc.blinding import ReferenceEngine
from modmill.engines.ecc.variable_time import VariableTimeEngine, Widths, variable_time_two, wnaf
from modmill.engines.microcode.assembly import assemble
from modmill.engines.microcode.field_program import Domain
from modmill.engines.microcode.interpreter import exact
from modmill.engines.microcode.program import DatapathSpec
from modmill.numbers.curves.affine import Weierstrass
from modmill.numbers.curves.named import find_curve
from modmill.numbers.curves.projective import multiples

UNIT = DatapathSpec(3, 1, 1, 1024, 1024)


@pytest.mark.parametrize("width", [2, 3, 5, 7])
def test_the_form_of_every_small_number_and_of_long_ones(width):
    rnd = random.Random(width)
    for k in (*range(600), *(rnd.getrandbits(256) for _ in range(20))):
        digits = wnaf(k, width)
        assert sum(digit << place for place, digit in enumerate(digits)) == k
        assert all(digit == 0 or (digit % 2 and abs(digit) < 1 << width - 1) for digit in digits)
        assert all(sum(map(bool, digits[at : at + width])) <= 1 for at in range(len(digits)))
        assert not digits or digits[-1]
    assert wnaf(0, width) == ()
    for k, bad in ((-1, width), (5, 1)):
        with pytest.raises(UnsupportedError, match="at least 0 and a width of at least 2"):
            wnaf(k, bad)


@pytest.mark.parametrize("curve", [weierstrass(31, -3, 30), weierstrass(31, 0, 30), weierstrass(37, 7, 30)], ids=str)
def test_pairs_on_small_curves_are_right_or_say_that_a_partial_sum_was_neutral(curve):
    P, neutral = curve.multiply(5, curve.base), 0
    for domain in (Domain(curve.p, 1), Domain(curve.p, pow(1 << 9, -1, curve.p), added=True)):
        for u1 in range(0, curve.n, 3):
            for u2 in range(0, curve.n + 1, 2):
                wanted = multiples(curve, [(u1, curve.base), (u2, P)]) or (0, 0)
                field_program = variable_time_two(curve, domain, u1, u2, Widths(3, 4))
                found = field_program.evaluate({"x": P[0], "y": P[1]}) if field_program else (0, 0)
                neutral += found != wanted
                assert found in (wanted, (0, 0)), (u1, u2)
    assert neutral, "no partial sum was ever neutral: the second try is not tested"


def test_an_engine_tries_again_where_a_partial_sum_was_neutral():
    curve = weierstrass(1009, -3, 900)
    fitted = design("montgomery-array").fit(curve.p)
    contract = fitted.contract("native")
    engine = VariableTimeEngine(curve, contract, UNIT, product=lambda _: exact(fitted, contract), widths=Widths(3, 3))
    neutral = []
    for m in range(1, 200):  # m G as the point: 4 G - 4 / m (m G) = O, then a doubling and a sum
        P = curve.multiply(m, curve.base)
        pair = 9, -8 * pow(m, -1, curve.n) % curve.n
        field_program = variable_time_two(curve, engine.domain, *pair, engine.widths)
        if field_program.evaluate({"x": P[0], "y": P[1]}) == (0, 0):
            neutral.append((pair, P))
    some = neutral[:2]
    assert len(some) == 2
    pairs = [*(pair for pair, _ in some), (0, 0), (0, curve.n), (1, 0), (0, 1), (2, curve.n - 1)]
    points = [*(P for _, P in some), *[curve.base] * 5]
    assert engine.multiply_two(pairs, points) == ReferenceEngine(curve).multiply_two(pairs, points)
    assert engine.multiply_two(pairs[:1], points[:1]) == [curve.base]


def test_a_real_curve_bit_by_bit_with_fewer_products_than_in_one_time():
    curve, rnd = find_curve("P-256"), random.Random(1)
    fitted = design("montgomery-array").fit(curve.p)
    contract = fitted.contract("native")
    engine = VariableTimeEngine(curve, contract, UNIT, product=lambda _: exact(fitted, contract))
    pair, P = (rnd.randrange(curve.n), rnd.randrange(curve.n)), curve.multiply(77, curve.base)
    assert engine.multiply_two([pair], [P]) == ReferenceEngine(curve).multiply_two([pair], [P])
    counts = []
    for u1, u2 in (pair, (pair[0] >> 128, pair[1] >> 128)):
        instructions = assemble(variable_time_two(curve, engine.domain, u1, u2), contract, UNIT)
        counts.append(instructions.program.products)
    _, fixed = engine.program("multiply-two", 256)
    assert counts[0] == 3535 and fixed.program.products == 5501
    assert counts[1] < 0.7 * counts[0], "its time shows how long the scalars are"


def test_what_it_refuses():
    curve = find_curve("Ed25519")
    contract = design("montgomery-array").fit(curve.p).contract("native")
    with pytest.raises(UnsupportedError, match="Ed25519 is not a Weierstrass curve"):
        VariableTimeEngine(curve, contract, UNIT).multiply_two([(1, 1)], [curve.base])
    even = replace(weierstrass(23, -3), h=4)
    assert isinstance(even, Weierstrass)
    with pytest.raises(UnsupportedError, match="points of order two"):
        variable_time_two(even, Domain(23, 1), 1, 1)
