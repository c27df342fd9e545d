# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Moduli of a base: proven minima of the largest u, against a solver and against all subsets."""

import itertools
import random
from dataclasses import replace
from math import gcd, isqrt, prod

import pytest
from moduli_by_greed import greedy
from ortools.sat.python import cp_model

from modmill.numbers.rns import choice_of_moduli
from modmill.numbers.rns.base_pairs import BasePair
from modmill.numbers.rns.choice_of_moduli import Choice, choose_moduli
from modmill.numbers.rns.residues import Base, signed_digits

# (w, number of moduli): (least possible largest u, the greedy choice's)
LARGEST_U = {
    (17, 32): (135, 145),
    (24, 24): (107, 125),
    (28, 20): (77, 95),
    (28, 28): (123, 153),
    (34, 16): (53, 57),
    (34, 24): (95, 111),
    (66, 8): (17, 21),
    (66, 12): (33, 35),
}

# fmt: off
GREEDY_LISTS = {
    (17, 32): [0, 1, 3, 5, 7, 9, 13, 15, 19, 21, 25, 31, 33, 43, 49, 55, 61, 63, 69, 75, 85, 91, 93, 99, 103, 105, 111,
               115, 133, 135, 141, 145],
    (20, 28): [0, 1, 3, 5, 9, 15, 17, 27, 29, 33, 39, 47, 57, 59, 65, 69, 77, 93, 99, 105, 117, 119, 129, 143, 147, 149,
               153, 159],
    (24, 24): [0, 1, 3, 5, 9, 17, 23, 33, 39, 45, 47, 59, 63, 65, 75, 77, 87, 89, 95, 107, 117, 119, 123, 125],
    (28, 20): [0, 1, 3, 5, 9, 15, 17, 27, 33, 35, 39, 45, 53, 57, 63, 75, 77, 83, 89, 95],
    (17, 48): [0, 1, 3, 5, 7, 9, 13, 15, 19, 21, 25, 31, 33, 43, 49, 55, 61, 63, 69, 75, 85, 91, 93, 99, 103, 105, 111,
               115, 133, 135, 141, 145, 153, 159, 163, 169, 171, 199, 211, 213, 229, 231, 243, 255, 259, 261, 265, 273],
    (20, 40): [0, 1, 3, 5, 9, 15, 17, 27, 29, 33, 39, 47, 57, 59, 65, 69, 77, 93, 99, 105, 117, 119, 129, 143, 147, 149,
               153, 159, 173, 185, 189, 195, 197, 209, 215, 219, 225, 233, 239, 245],
    (24, 36): [0, 1, 3, 5, 9, 17, 23, 33, 39, 45, 47, 59, 63, 65, 75, 77, 87, 89, 95, 107, 117, 119, 123, 125, 129, 135,
               143, 147, 149, 153, 167, 173, 177, 179, 185, 189],
    (28, 28): [0, 1, 3, 5, 9, 15, 17, 27, 33, 35, 39, 45, 53, 57, 63, 75, 77, 83, 89, 95, 99, 105, 119, 123, 125, 129,
               143, 153],
}
# fmt: on


def is_candidate(u, w, even, digits):
    return (
        0 <= u < 1 << (w - 1)
        and (u % 2 == 1 or (even and u == 0))
        and (digits is None or len(signed_digits(u)) <= digits)
    )


def faults(choice, w, count, even, digits=None):
    """What is wrong with a choice of moduli, one word each."""
    if len(choice.u) != count:
        yield "count"
    if any(gcd(a, b) != 1 for a, b in itertools.combinations(choice.moduli, 2)):
        yield "coprime"
    if list(choice.u) != sorted(choice.u):
        yield "order"
    if not all(is_candidate(u, w, even, digits) for u in choice.u):
        yield "form"


# ---- choosing moduli


@pytest.mark.parametrize(("w", "count"), LARGEST_U)
def test_proven_minima(w, count):
    choice = choose_moduli(w, count)
    least, by_greed = LARGEST_U[w, count]
    assert (choice.u[-1], choice.proved) == (least, True)
    assert list(faults(choice, w, count, True)) == []
    assert (1 << w) - greedy(w, count)[-1] == by_greed
    fallback = choose_moduli(w, count, effort=0)
    assert (fallback.moduli, fallback.proved) == (greedy(w, count), False)


@pytest.mark.parametrize(("w", "count"), GREEDY_LISTS)
def test_lists_of_greedy_bases(w, count):
    assert [(1 << w) - m for m in greedy(w, count)] == GREEDY_LISTS[w, count]


def most(w, largest, digits=None):
    """How many numbers 2^w - u, u <= largest, CP-SAT finds at most of which each prime divides at most one."""
    model = cp_model.CpModel()
    take = {u: model.new_bool_var(f"u{u}") for u in range(largest + 1) if is_candidate(u, w, True, digits)}
    for q in range(3, largest // 2 + 1, 2):  # both are odd: a common factor divides half their difference
        if all(q % k for k in range(3, isqrt(q) + 1, 2)):
            model.add_at_most_one(x for u, x in take.items() if ((1 << w) - u) % q == 0)
    model.maximize(sum(take.values()))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return round(solver.objective_value)


@pytest.mark.parametrize(
    ("w", "count", "digits"),
    [*((*row, None) for row in LARGEST_U), (14, 20, None), (20, 28, None), (20, 36, None), (17, 242, None),
     (14, 256, None), (64, 256, None), (17, 32, 3), (66, 12, 2), (66, 64, 3)],
)  # fmt: skip
def test_minima_agree_with_a_solver(w, count, digits):
    """Only the minimum: the solver's own set of moduli is often another one."""
    least = choose_moduli(w, count, digits=digits).u[-1]
    assert most(w, least, digits) >= count > most(w, least - 2, digits)


@pytest.mark.parametrize("w", [4, 5, 6])
@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("digits", [None, 2])
def test_choices_against_all_subsets(w, even, digits):
    """Every count that is possible is found with the least u; the next is refused."""
    us = [u for u in range(1 << w) if is_candidate(u, w, even, digits)]
    best = {}
    for members in range(1, 1 << len(us)):
        chosen = [u for i, u in enumerate(us) if members >> i & 1]
        product = 1
        for u in chosen:
            if gcd(product, (1 << w) - u) != 1:
                break
            product *= (1 << w) - u
        else:
            best[len(chosen)] = min(best.get(len(chosen), 1 << w), chosen[-1])
    for count, largest in best.items():
        choice = choose_moduli(w, count, even=even, digits=digits)
        assert list(faults(choice, w, count, even, digits)) == []
        assert (choice.u[-1], choice.proved) == (largest, True)
    with pytest.raises(ValueError, match=f"there are fewer than {max(best) + 1} pairwise coprime moduli"):
        choose_moduli(w, max(best) + 1, even=even, digits=digits)


def graphs():
    """Random graphs, and one in which the vertex with the most conflicts belongs to every largest set."""
    yield 7, [(0, 2), (0, 3), (0, 6), (1, 2), (1, 3), (1, 4), (1, 6), (2, 4), (2, 6), (3, 4), (3, 5), (5, 6)]
    rnd = random.Random(5)
    for _ in range(300):
        size = rnd.randrange(1, 11)
        yield size, [edge for edge in itertools.combinations(range(size), 2) if rnd.random() < 0.4]


def test_the_search_against_all_subsets_of_a_graph():
    for size, edges in graphs():
        conflicts = [0] * size
        for a, b in edges:
            conflicts[a] |= 1 << b
            conflicts[b] |= 1 << a
        free = [s for s in range(1 << size) if not any(s >> v & 1 and s & conflicts[v] for v in range(size))]
        found = choice_of_moduli._largest_independent(conflicts, (1 << size) - 1, choice_of_moduli._Effort(1000))
        assert found in free
        assert found.bit_count() == max(map(int.bit_count, free))


def test_planted_faults_in_a_choice_are_caught():
    good = choose_moduli(8, 6)
    assert list(faults(good, 8, 6, True)) == []
    assert list(faults(replace(good, u=good.u[:5]), 8, 6, True)) == ["count"]
    assert list(faults(Choice(8, (0, 1, 3, 5, 7, 16), True), 8, 6, True)) == ["coprime", "form"]
    assert list(faults(replace(good, u=good.u[::-1]), 8, 6, True)) == ["order"]
    assert list(faults(good, 8, 6, False)) == ["form"]
    assert list(faults(Choice(8, (11,), True), 8, 1, True, 2)) == ["form"]


@pytest.mark.parametrize("w", [14, 17, 34, 64, 66])
def test_256_moduli(w):
    choice = choose_moduli(w, 256)
    assert choice.proved
    assert choice.u[-1] < (1 << w) - greedy(w, 256)[-1]
    BasePair(Base(w, choice.moduli[:128]), Base(w, choice.moduli[128:]))


@pytest.mark.parametrize(
    ("w", "count", "digits", "largest"),
    [(17, 32, 3, 481), (34, 24, 2, (1 << 25) + 1), (66, 12, 2, 257), (66, 64, 3, 7167), (34, 256, 4, 8177)],
)
def test_few_signed_digits(w, count, digits, largest):
    choice = choose_moduli(w, count, digits=digits)
    assert max(len(signed_digits(u)) for u in choice.u) <= digits
    assert choice.u[-1] == largest and choice.proved
    Base(w, choice.moduli)


def test_moduli_avoid_the_factors_of_a_number():
    plain, odd = choose_moduli(10, 6), choose_moduli(10, 6, avoid=1023 * 1021)
    assert {1, 3} < set(plain.u) and not {1, 3} & set(odd.u)
    assert gcd(prod(odd.moduli), 1023 * 1021) == 1
