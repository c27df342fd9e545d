# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Isomorphic curves: the same points under another name, with constants that cost less."""

import pytest
from small_curves import points, weierstrass

from modmill.engines.ecc.isomorphism import isomorphism
from modmill.numbers.curves.affine import Weierstrass
from modmill.numbers.curves.named import CURVES, find_curve


def moved(P, u, p):
    return P and (u * u * P[0] % p, u**3 * P[1] % p)


@pytest.mark.parametrize(("p", "a"), [(43, 0), (79, 0), (31, 0), (67, 0), (37, 7), (43, 7), (61, 7), (79, 7), (73, 7)])
def test_sums_of_all_points_move_with_them(p, a):
    curve = weierstrass(p, a, 20)
    found = isomorphism(curve)
    assert found.image.contains(found.image.base) and found.image.n == curve.n
    for P in points(curve):
        for Q in points(curve)[::3]:
            there = found.image.add(moved(P, found.u, p), moved(Q, found.u, p))
            assert there == moved(curve.add(P, Q), found.u, p)


def test_constants_of_named_curves():
    changed = {}
    for curve in CURVES:
        if isinstance(curve, Weierstrass) and isomorphism(curve).u != 1:
            image = isomorphism(curve).image
            changed[curve.name] = image.a - curve.p if image.a else 3 * image.b % curve.p
    assert all(changed[f"brainpoolP{bits}r1"] == -3 for bits in (160, 192, 224, 256, 320, 384, 512))
    assert {name: k for name, k in changed.items() if not name.startswith("brainpool")} == {
        "secp160k1": 4, "secp192k1": 2, "secp256k1": 1,
    }  # fmt: skip
    assert isomorphism(find_curve("P-256")).u == 1


def test_brainpools_own_images():
    """RFC 5639 gives the images of the r1 curves: up to the choice of the root they are those found here."""
    for bits in (256, 384):
        ours = isomorphism(find_curve(f"brainpoolP{bits}r1")).image
        theirs = find_curve(f"brainpoolP{bits}t1")
        assert ours.a == theirs.a
        assert ours.b in (theirs.b, -theirs.b % theirs.p)
