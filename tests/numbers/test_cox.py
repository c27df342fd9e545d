# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The exact cox, exhaustively on toys, and the printed condition for its rows refuted."""

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest

from modmill.numbers.rns.base_pairs import kawamura_condition
from modmill.numbers.rns.cox import Cox, Loop
from modmill.numbers.rns.residues import Base

COUNTEREXAMPLE = Base(7, (128, 127, 125, 123, 121, 119))

# ---- the cox, exhaustively

TOYS = [
    Base(5, (32, 31, 29)),
    Base(5, (31, 29, 27, 25)),
    Base(6, (64, 63, 61)),
    Base(6, (61, 55)),
]


def toy_coxes():
    for base in TOYS:
        for columns in (c for c in (1, 2) if base.n % c == 0):
            for lazy in (True, False):
                for t in range(1, columns * base.w + 1):
                    cox = Cox(base, t, columns, lazy)
                    if cox.offset < 1 << t:
                        yield cox


def representatives(cox, x):
    """Every vector of xi of `x` that the cox may see."""
    pairs = zip(cox.base.gammas(x), cox.base.moduli, strict=True)
    return itertools.product(*[range(g, 1 << cox.base.w if cox.lazy else m, m) for g, m in pairs])


def is_exact(cox, x, d):
    for xi in representatives(cox, x):
        hats = cox.hats(xi)
        total = sum(h * (cox.base.M // p) for h, p in zip(hats, cox.products, strict=True))
        if (total - x) % cox.base.M or cox.h(hats, d) != (total - x) // cox.base.M:
            return False
    return True


@pytest.mark.parametrize("base", TOYS, ids=lambda b: f"w{b.w}n{b.n}")
def test_the_cox_is_exact_below_its_limit_and_can_fail_from_there_on(base):
    seen = 0
    for cox in (c for c in toy_coxes() if c.base == base):
        limit = cox.limit()
        step = max(1, limit // 3000)
        below = [*range(0, limit, step), *range(max(0, limit - 50), limit), *range(min(50, limit))]
        assert all(is_exact(cox, x, cox.offset) for x in below)
        beyond = [*range(limit, min(base.M, limit + 3000)), *range(limit, base.M, max(1, base.M // 3000))]
        assert not all(is_exact(cox, x, cox.offset) for x in beyond)
        seen += 1
    assert seen >= 6


@pytest.mark.parametrize("t", [3, 4, 5])
@pytest.mark.parametrize("lazy", [True, False])
def test_exact_for_every_number_of_a_base(t, lazy):
    cox = Cox(Base(5, (32, 31, 29)), t, lazy=lazy)
    limit = cox.limit()
    exact = [is_exact(cox, x, cox.offset) for x in range(cox.base.M)]
    assert all(exact[:limit]) and not exact[limit]  # the very first beyond the limit fails
    assert not all(is_exact(cox, x, cox.offset - 1) for x in range(limit))  # as does a smaller offset


@pytest.mark.parametrize("columns", [1, 2])
def test_first_extension_never_passes_its_bound(columns):
    base = Base(5, (31, 29, 27, 25))
    for t in (2, 4, 6 if columns == 2 else 5):
        cox = Cox(base, t, columns)
        largest = {True: Fraction(0), False: Fraction(0)}
        for x in range(0, base.M, 97):
            for xi in representatives(cox, x):
                hats = cox.hats(xi)
                total = sum(h * (base.M // p) for h, p in zip(hats, cox.products, strict=True))
                assert cox.h(hats) == cox.h(hats, 0)
                largest[True] = max(largest[True], Fraction(total, base.M) - cox.h(hats))
                largest[False] = max(largest[False], Fraction(total, base.M))
        assert 1 < largest[True] <= cox.bound
        assert base.n - 1 < largest[False] <= Cox(base, 1, columns).most
        assert cox.bound <= 1 + cox.error
    one = Base(5, (31,))  # the sum of the largest x / m is below 1 + E here
    assert [Cox(one, 1, lazy=lazy).bound for lazy in (True, False)] == [1, Fraction(30, 31)]


def test_loop_without_room_has_no_operand():
    a = Base(8, (256, 255, 253))
    assert Loop(a.M // 8, a, Fraction(2), a.M).operand() is not None
    assert Loop(a.M // 8 + 1, a, Fraction(2), a.M).operand() is None
    assert Loop(a.M // 9, a, Fraction(2), a.M // 9 * 2).operand() is None


def test_operand_of_the_loop_is_between_the_roots():
    """The middle of the roots, or what the second extension allows where that closes the loop too."""
    a = Base(8, (256, 255, 253))
    p = a.M // 100
    middle = Fraction(a.M, 2 * p)
    for share, closes in ((Fraction(1, 2), True), (Fraction(3, 2), True), (2, False), (5, False)):
        loop = Loop(p, a, Fraction(2), int(share * middle * p))
        assert loop.operand() == (loop.largest_result if closes else middle)
        assert loop.result(loop.operand() ** 2) <= loop.operand()
        assert replace(loop, products=2).operand() == min(middle / 2, loop.largest_result)


# ---- the HBE paper's condition for rows of several moduli


def test_counterexample_to_the_papers_condition_for_rows():
    """n (e + d) < 1/2 with t = 7: rows of one are exact, rows of three give X + A, with any number of bits."""
    x = 16099609826
    assert x < COUNTEREXAMPLE.M // 2
    assert kawamura_condition(COUNTEREXAMPLE, 7) == Fraction("0.421875")
    for t, columns in ((6, 1), (7, 1), *((t, 3) for t in range(6, 22))):
        cox = Cox(COUNTEREXAMPLE, t, columns, lazy=False)
        hats = cox.hats(cox.base.gammas(x))
        total = sum(h * (cox.base.M // p) for h, p in zip(hats, cox.products, strict=True))
        half = 1 << (t - 1)
        assert total - cox.h(hats, half) * cox.base.M == x + (columns == 3) * cox.base.M
        assert (cox.offset <= half) == (columns == 1)  # our exact condition refuses the offset 1/2
        assert cox.limit(half) == (0 if columns == 3 else COUNTEREXAMPLE.M // 2)


def test_kawamura_condition_refuses_what_it_cannot_know():
    base = Base(7, (127, 125))
    assert kawamura_condition(base, 7) == 2 * Fraction(3, 128)
    assert kawamura_condition(base, 5) == 2 * (Fraction(3, 128) + Fraction(3, 125))
    for t in (0, 8):
        with pytest.raises(ValueError, match=r"1 \.\.\. 7"):
            kawamura_condition(base, t)
