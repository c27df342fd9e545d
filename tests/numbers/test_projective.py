# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Fast multiples against the affine ones: all points and pairs of small curves, a few of every named one."""

import itertools
import random
from dataclasses import replace

import pytest
from test_curves import TOYS, points

from modmill.numbers.curves import projective
from modmill.numbers.curves.affine import Montgomery
from modmill.numbers.curves.named import CURVES, find_curve
from modmill.numbers.curves.projective import multiple_u, multiples

TOY_W, TOY_M, TOY_E = TOYS


@pytest.mark.parametrize("curve", [TOY_W, TOY_E], ids=lambda c: type(c).__name__)
def test_all_multiples_of_small_curves(curve):
    every = points(curve)[:: 1 if curve.p < 100 else 7]
    for P, k in itertools.product(every, (0, 1, 2, 3, 15, 16, 17, 28, 29, 30, 71, 284, 1000)):
        assert multiples(curve, [(k, P)]) == curve.multiply(k, P)
        assert multiples(curve, [(k, curve.base), (k + 3, P), (2, P)]) == curve.add(
            curve.multiply(k, curve.base), curve.multiply(k + 5, P)
        )
    assert multiples(curve, []) == curve.zero


def test_all_u_of_a_small_curve():
    for u, k in itertools.product(range(TOY_M.p + 2), (0, 1, 2, 3, 16, 67, 134, 268, 269)):
        assert multiple_u(TOY_M, k, u) == TOY_M.multiply_u(k, u)


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
def test_named_curves(curve):
    rnd = random.Random(curve.name)
    k, m = rnd.randrange(curve.n), rnd.randrange(curve.n)
    if isinstance(curve, Montgomery):
        for u in (0, 1, curve.p - 1, curve.base[0], rnd.randrange(curve.p)):
            assert multiple_u(curve, k, u) == curve.multiply_u(k, u)
        return
    G, Q = curve.base, curve.multiply(m, curve.base)
    for u1, u2 in ((k, m), (0, 0), (1, curve.n - 1), (curve.n, curve.n + 1), (k, 0), (0, k)):
        expected = curve.add(curve.multiply(u1, G), curve.multiply(u2, Q))
        assert multiples(curve, [(u1, G), (u2, Q)]) == expected
    assert multiples(curve, [(m, G), (curve.n - 1, Q)]) == curve.zero
    assert multiples(curve, [(1, Q), (k, Q)]) == curve.multiply(k + 1, Q)


def test_montgomery_curves_have_their_own():
    with pytest.raises(ValueError, match="multiple_u"):
        multiples(find_curve("X25519"), [(1, find_curve("X25519").base)])


def test_a_wrong_coefficient_is_caught():
    curve = find_curve("brainpoolP192r1")
    planted = replace(curve, a=curve.a + 1)
    assert projective.multiples(planted, [(5, curve.base)]) != curve.multiply(5, curve.base)
