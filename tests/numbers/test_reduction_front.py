# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The front of the cheapest reductions against all subsets, and the designs' light moduli against the front."""

import itertools
from dataclasses import replace
from math import gcd

import pytest

from modmill.numbers.folding import fold_bounds
from modmill.numbers.rns.choice_of_moduli import choose_moduli, light_moduli, signed_digits_of
from modmill.numbers.rns.reduction_front import Front
from modmill.numbers.rns.residues import signed_digits


def coprime(w, us):
    return all(gcd((1 << w) - a, (1 << w) - b) == 1 for a, b in itertools.combinations(us, 2))


def by_subsets(w, count, candidates):
    """The front by trying all subsets."""
    found = {}
    for us in itertools.combinations(candidates, count):
        if coprime(w, us):
            found[us[-1]] = min(found.get(us[-1], 99), signed_digits_of(us))
    front = []
    for largest in sorted(found):
        if not front or found[largest] < front[-1][1]:
            front.append((largest, found[largest]))
    return front


def faults(front, points):
    """What is wrong with points of a front."""
    for p in points:
        if len(p.u) != front.count or not coprime(p.w, p.u) or any(gcd((1 << p.w) - u, front.avoid) > 1 for u in p.u):
            yield f"{p}: not as many coprime moduli"
        if p.weight != sum(len(signed_digits(u)) for u in p.u) or not p.proved:
            yield f"{p}: another number of digits"
    for a, b in itertools.pairwise(points):
        if not (a.largest_u < b.largest_u and a.weight > b.weight):
            yield f"{a}, {b}: one is better in both"


@pytest.mark.parametrize(
    ("w", "count", "avoid"), [(6, 3, 1), (7, 4, 1), (8, 4, 255), (8, 5, 1), (9, 4, 7 * 73), (10, 4, 1)]
)
def test_the_front_against_all_subsets(w, count, avoid):
    front = Front(w, count, avoid)
    points = front.points()
    assert list(faults(front, points)) == []
    assert [(p.largest_u, p.weight) for p in points] == by_subsets(w, count, front.candidates)
    assert points[0].largest_u == choose_moduli(w, count, even=False, avoid=avoid).u[-1]


def test_planted_faults_are_found():
    front = Front(8, 4)
    points = front.points()
    for wrong in (
        [replace(points[0], u=points[0].u[:-1])], [replace(points[0], u=(3, 7, 13, 41))],
        [replace(points[0], weight=3)], [replace(points[0], proved=False)], [points[0], points[0]],
    ):  # fmt: skip
        assert list(faults(front, wrong)), wrong


@pytest.mark.parametrize(("w", "count"), [(17, 8), (24, 16), (28, 16), (34, 8), (34, 16)])
def test_light_moduli_reach_the_front(w, count):
    light, near = light_moduli(w, count), choose_moduli(w, count, even=False, digits=3)
    front = Front(w, count)
    at = [p for p in front.points() if p.largest_u <= light.u[-1]][-1]
    assert coprime(w, light.u) and len(light.u) == count
    assert signed_digits_of(light.u) == at.weight <= signed_digits_of(near.u)
    product = count // 2 * ((1 << w) - 1) ** 2 + 1
    assert len(fold_bounds(product, w, light.u[-1])) == len(fold_bounds(product, w, near.u[-1]))


def test_light_moduli_need_room():
    with pytest.raises(ValueError, match="u of more than 9 bits"):
        light_moduli(17, 32)
    with pytest.raises(ValueError, match="fewer than 2048"):
        light_moduli(12, 2048)
    assert all(gcd((1 << 24) - u, 3 * 5 * 7) == 1 for u in light_moduli(24, 10, avoid=105).u)
