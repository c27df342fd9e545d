# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Pairs of bases: minima against a solver, the exact cox exhaustively on toys, the papers' numbers and errors."""

import itertools
import random
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from math import gcd, isqrt, prod

import pytest

from modmill.numbers import base_pairs
from modmill.numbers.base_pairs import (
    BasePair,
    Choice,
    Inequality,
    Sufficiency,
    approximate,
    base_pair,
    choose_moduli,
    deal,
    hpr_primes,
    kawamura_condition,
    sufficiency,
)
from modmill.numbers.cox import Cox, Loop, first_bound
from modmill.numbers.moduli import parse_modulus
from modmill.numbers.primes import is_prime
from modmill.numbers.rns import Base, pseudo_mersenne, signed_digits

P256 = parse_modulus("secp256k1").value
P384 = parse_modulus("P-384").value
P2048 = (1 << 2048) - 1942289
COUNTEREXAMPLE = Base(7, (128, 127, 125, 123, 121, 119))

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


def greedy(w, count):
    return tuple(islice(pseudo_mersenne(w, even=True), count))


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


def fits(w, count, largest):
    """Whether z3 finds `count` numbers 2^w - u, u <= largest, of which each prime divides at most one."""
    import z3

    take = {u: z3.Bool(f"u{u}") for u in range(largest + 1) if is_candidate(u, w, True, None)}
    solver = z3.Solver()
    for q in range(3, largest // 2 + 1, 2):  # both are odd: a common factor divides half their difference
        if all(q % k for k in range(2, isqrt(q) + 1)):
            multiples = [x for u, x in take.items() if ((1 << w) - u) % q == 0]
            if len(multiples) > 1:
                solver.add(z3.AtMost(*multiples, 1))
    solver.add(z3.PbGe([(x, 1) for x in take.values()], count))
    found = solver.check()
    assert found != z3.unknown
    return found == z3.sat


@pytest.mark.parametrize(("w", "count"), [*LARGEST_U, (14, 20), (20, 28)])
def test_minima_agree_with_a_solver(w, count):
    least = choose_moduli(w, count).u[-1]
    assert fits(w, count, least) and not fits(w, count, least - 2)


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
        found = base_pairs._largest_independent(conflicts, (1 << size) - 1, base_pairs._Effort(1000))
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
    pairs = zip(cox.xi(x), cox.base.moduli, strict=True)
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
                largest[True] = max(largest[True], Fraction(total, base.M) - cox.h(hats))
                largest[False] = max(largest[False], Fraction(total, base.M))
        assert 1 < largest[True] <= first_bound(cox, base)
        assert base.n - 1 < largest[False] <= first_bound(None, base, columns)
        assert first_bound(cox, base) <= 1 + cox.error
    one = Base(5, (31,))  # the sum of the largest x / m is below 1 + E here
    assert [first_bound(Cox(one, 1, lazy=lazy), one) for lazy in (True, False)] == [1, Fraction(30, 31)]


# ---- the HBE paper's condition for rows of several moduli


def test_counterexample_to_the_papers_condition_for_rows():
    """n (e + d) < 1/2 with t = 6: rows of one are exact, rows of three (one or two bits more) give X + A."""
    x = 16099609826
    assert x < COUNTEREXAMPLE.M // 2
    assert round(float(kawamura_condition(COUNTEREXAMPLE, 6)), 4) == 0.4723
    for t, columns in ((6, 1), (7, 3), (8, 3)):
        cox = Cox(COUNTEREXAMPLE, t, columns, lazy=False)
        hats = cox.hats(cox.xi(x))
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


# ---- pairs


def test_deal():
    pair = deal(greedy(17, 32), 4)
    assert (pair.n, pair.r, pair.w, pair.largest_u) == (16, 4, 17, 145)
    assert pair.a.u == (0, 3, 7, 13, 19, 25, 33, 49, 61, 69, 85, 93, 103, 111, 133, 141)
    assert pair.b.u == (1, 5, 9, 15, 21, 31, 43, 55, 63, 75, 91, 99, 105, 115, 135, 145)
    assert [c.base for c in pair.cox(5)] == [pair.a, pair.b]
    assert pair.cox(5)[1].rows[0] == pair.b.moduli[:4]


def test_pairs_that_are_none():
    with pytest.raises(ValueError, match="31 moduli cannot be dealt"):
        deal(greedy(17, 31))
    with pytest.raises(ValueError, match="16 moduli do not fill rows of 3"):
        deal(greedy(17, 32), 3)
    with pytest.raises(ValueError, match="moduli 15 and 9 share the factor 3"):
        deal((15, 13, 9, 11))
    with pytest.raises(ValueError, match="share the factor 5"):
        BasePair(Base(5, (31, 25)), Base(5, (29, 20)))
    with pytest.raises(ValueError, match="A has 1 moduli of 5 bits, B 2 of 5"):
        BasePair(Base(5, (31,)), Base(5, (29, 27)))


# modulus, w, n: least t for rows of one and of two
LEAST_T = [
    (P256, 17, 16, 5, 4),
    (P256, 20, 14, 4, 3),
    (P256, 24, 12, 4, 3),
    (P256, 28, 10, 4, 3),
    (P384, 17, 24, 5, 4),
    (P384, 20, 20, 5, 4),
    (P384, 24, 18, 5, 4),
    (P384, 28, 14, 4, 3),
]


@pytest.mark.parametrize("first_cox", [False, True])
@pytest.mark.parametrize("row", LEAST_T, ids=lambda row: f"{row[0].bit_length()}w{row[1]}")
def test_least_t(row, first_cox):
    p, w, n, *ts = row
    for columns, t in zip((1, 2), ts, strict=True):
        pair = deal(greedy(w, 2 * n), columns)
        found = sufficiency(pair, p, first_cox=first_cox)
        assert (found.t, found.offset, found.holds) == (t, n // columns, True)
        assert not sufficiency(pair, p, first_cox=first_cox, t=t - 1).holds


def test_the_rule_by_bits_is_not_sufficient():
    """384 bits in 16 moduli of 24 bits: n w = 384, yet even the product of the largest 16 is smaller than p."""
    assert round(prod(greedy(24, 16)) / P384, 5) == 0.99997
    pair = deal(greedy(24, 32))
    assert pair.n * pair.w >= P384.bit_length() and pair.a.M < P384
    assert not sufficiency(pair, P384).holds
    with pytest.raises(ValueError, match=r"16 \+ 16 moduli of 24 bits .* range of A, .* ~64.0\d+ > ~0.9999"):
        base_pair(P384, 24, 2, n=16)
    pair, proof = base_pair(P384, 24, 2)
    assert pair.n == 18 and proof.holds and pair.proved
    assert base_pair(P384, 24)[0].n == 17  # one row more is enough where rows have one modulus
    assert base_pair(P384, 24, n=18)[1].holds


@pytest.mark.parametrize(("n", "w"), [(16, 17), (20, 14), (24, 15), (32, 16), (40, 17), (48, 17), (62, 18)])
def test_widths_by_the_rule_of_a_quarter(n, w):
    """Smallest w with n e_m < 1/4 and A, B >= 4 p for a 256-bit modulus; the exact conditions need no more bits."""

    def fit(width):
        try:
            pair = deal(choose_moduli(width, 2 * n).moduli)
        except ValueError:
            return False
        return n * Fraction(pair.largest_u, 1 << width) < Fraction(1, 4) and min(pair.a.M, pair.b.M) >= 4 * P256

    assert next(width for width in range(4, 20) if fit(width)) == w
    assert base_pair(P256, w, n=n)[1].holds


def test_2048_bits_in_17_bit_channels():
    """Kawamura's n e_m exceeds 1; the exact error does not, for t = 17, nor does it forbid a loop."""
    pair = deal(greedy(17, 242))
    assert float(kawamura_condition(pair.b, 17)) == pytest.approx(1.958, abs=1e-3)
    error = {t: float(pair.cox(t, lazy=False)[1].error) for t in (9, 17)}
    assert error == {9: pytest.approx(1.128, abs=1e-3), 17: pytest.approx(0.893, abs=1e-3)}
    assert sufficiency(pair, P2048, first_cox=True).holds
    assert not sufficiency(pair, P2048, first_cox=True, t=9).holds
    found, proof = base_pair(P2048, 17, first_cox=True)
    assert (found.n, found.largest_u, proof.t) == (121, 2071, 10)  # the best choice of moduli needs fewer bits
    assert proof.holds and proof.gain < 2
    with pytest.raises(ValueError, match=r"121 .* range of A"):
        base_pair(P2048, 17, n=121)  # without the first cox, Q reaches 121 A
    assert base_pair(P2048, 17)[0].n == 122


@pytest.mark.parametrize("w", [17, 34, 64, 66])
def test_128_channels(w):
    pair, proof = base_pair(P256, w, n=128)
    assert (pair.n, proof.holds, pair.proved) == (128, True, True)


def test_128_channels_of_14_bits_have_no_exact_cox():
    with pytest.raises(ValueError, match=r"offset, floor\(2\^t E_B\) / 2\^t < 1, fails with ~8"):
        base_pair(P256, 14, n=128)


@pytest.mark.parametrize(("w", "n"), [(14, 19), (34, 8), (64, 5), (66, 4)])
def test_least_number_of_channels(w, n):
    pair, proof = base_pair(P256, w)
    assert (pair.n, proof.holds) == (n, True)
    with pytest.raises(ValueError, match=f"{n - 1} \\+ {n - 1} moduli"):
        base_pair(P256, w, n=n - 1)


def test_no_channel_more_than_needed():
    """A just above 4 g p: 60 bits in all for a modulus of 58."""
    p = 3 * 2**56 + 5
    pair, proof = base_pair(p, 10, first_cox=True)
    assert (pair.n, proof.holds) == (6, True)
    assert 16 * p > pair.a.M


def test_a_modulus_that_shares_factors_with_moduli():
    p = ((1 << 17) - 1) * ((1 << 127) - 1)
    pair, proof = base_pair(p, 17)
    assert proof.holds and not {1} & {*pair.a.u, *pair.b.u}


def montgomery(proof, pairs):
    """The bases' Montgomery product of a sum of G products; residues lazy at random, the two coxes as in hardware."""
    rnd = random.Random(7)
    a, b, p, t = proof.pair.a, proof.pair.b, proof.p, proof.t

    def lazily(residues, base):
        return [r + m * rnd.randrange(((1 << base.w) - 1 - r) // m + 1) for r, m in zip(residues, base.moduli)]  # noqa: B905

    first, second = proof.coxes
    total = sum(x * y for x, y in pairs)
    xi = lazily(a.gammas(-total * pow(p, -1, a.M)), a)
    hats = first.hats(xi)
    q = sum(h * (a.M // row) for h, row in zip(hats, first.products, strict=True))
    q -= first.h(hats) * a.M if proof.first_cox else 0
    s = [(total + q * p) * pow(a.M, -1, m) % m for m in b.moduli]
    zeta = lazily([r * k % m for r, k, m in zip(s, b.inverses, b.moduli, strict=True)], b)
    hats = second.hats(zeta)
    value = sum(h * (b.M // row) for h, row in zip(hats, second.products, strict=True))
    assert t == second.t
    return value - second.h(hats, proof.offset) * b.M


@pytest.mark.parametrize("first_cox", [False, True])
@pytest.mark.parametrize(
    ("w", "n", "columns", "p"), [(5, 2, 1, 37), (6, 4, 1, 8191), (9, 4, 2, 2**27 - 39), (10, 6, 3, 2**41 - 21)]
)
def test_results_are_operands_again(w, n, columns, p, first_cox):
    proof = base_pair(p, w, columns, n=n, first_cox=first_cox)[1]
    proof = replace(proof, products=min(2, proof.largest_products))
    assert proof.holds
    inverse = pow(proof.pair.a.M, -1, p)
    largest = -(-(proof.operand * p).numerator // (proof.operand * p).denominator) - 1
    rnd = random.Random(1)
    for start in (largest, largest - 1, p, 1, 0):
        x = y = start
        for _ in range(60):
            operands = [(x, y)] * proof.products
            z = montgomery(proof, operands)
            assert z % p == proof.products * x * y * inverse % p
            assert 0 <= z < proof.result * p and z <= largest
            x, y = z, rnd.choice((z, largest, rnd.randrange(largest)))


def test_a_loop_beyond_the_bounds_breaks():
    """The planted fault: A below 4 G g p, or operands above lambda p, and results leave the exact range."""
    proof = base_pair(37, 5, n=2)[1]
    large = replace(proof, p=next(q for q in range(proof.pair.a.M, 3, -1) if is_prime(q)))
    assert not large.holds
    largest = large.limit - 1
    inverse = pow(large.pair.a.M, -1, large.p)
    assert any(montgomery(large, [(x, x)]) % large.p != x * x * inverse % large.p for x in range(largest - 50, largest))
    beyond = range(proof.pair.b.M * 3, proof.pair.b.M * 3 + 200)
    inverse = pow(proof.pair.a.M, -1, 37)
    assert any(montgomery(proof, [(x, x)]) % 37 != x * x * inverse % 37 for x in beyond)


def test_largest_number_of_products():
    for p, w, columns in ((P256, 17, 1), (P256, 17, 4), (P384, 24, 2), (P256, 66, 1), (8191, 6, 1)):
        for first_cox in (False, True):
            proof = base_pair(p, w, columns, first_cox=first_cox)[1]
            most = proof.largest_products
            assert most >= 1
            assert replace(proof, products=most).holds
            more = replace(proof, products=most + 1)
            assert {row.name for row in more.inequalities if not row.holds} == {"range of A", "closed loop"}
    assert base_pair(P256, 17, products=2000)[0].n > base_pair(P256, 17)[0].n


def test_every_inequality_can_fail():
    pair = deal(greedy(17, 32))
    good = sufficiency(pair, P256)
    assert good.holds and good.refusal == "" and good.require() is good
    plant = {
        "coprime to p": replace(good, p=pair.b.moduli[3] * 3),
        "offset": replace(good, t=4),
        "range of A": replace(good, p=pair.a.M // 3 | 1),
        "closed loop": replace(good, wanted=good.gain),
        "exact result": replace(good, wanted=Fraction(good.limit, P256) + Fraction(1, P256)),
    }
    wrong = Base(17, pair.a.moduli)
    object.__setattr__(wrong, "moduli", (1 << 16, *wrong.moduli[1:-1], (1 << 17) + 1))
    both = replace(good)
    object.__setattr__(both, "pair", replace(pair))
    object.__setattr__(both.pair, "a", wrong)
    failing = [row.name for row in both.inequalities if not row.holds]
    assert failing[:2] == ["smallest modulus", "largest modulus"]
    names = [row.name for row in good.inequalities]
    assert names == ["smallest modulus", "largest modulus", *plant]
    for name, bad in plant.items():
        row = next(row for row in bad.inequalities if row.name == name)
        assert not row.holds
        assert not bad.holds
        with pytest.raises(ValueError, match="16 moduli of 17 bits do not suffice for a modulus of"):
            bad.require()
    assert [row.name for row in plant["exact result"].inequalities if not row.holds] == ["exact result"]
    assert [row.name for row in plant["closed loop"].inequalities if not row.holds] == ["closed loop"]
    barely = replace(good, wanted=Fraction(good.limit, P256))
    assert barely.holds
    swapped = sufficiency(BasePair(pair.b, pair.a), P256)  # 2^17 in B: the limit is a whole number
    assert replace(swapped, wanted=Fraction(swapped.limit, P256)).holds
    assert not replace(swapped, wanted=Fraction(swapped.limit + 1, P256)).holds


def test_a_loop_with_little_room_in_B():
    """Where B holds less than 2 g p, lambda is what B holds; no loop is claimed when that is too little."""
    a, b = Base(8, (256, 255, 253)), Base(8, (223, 217, 211))
    seen = set()
    for p in (q for q in range(500_009, 8_000_000, 10_002) if gcd(q, a.M * b.M) == 1):
        proof = Sufficiency(BasePair(a, b), p, 8, first_cox=True)
        held = Fraction(proof.limit, p)
        # is there a lambda? try many between what B holds and nothing
        tries = [held * k / 1000 for k in range(1, 1001)]
        closed = any(lam**2 * p / a.M + proof.gain <= lam for lam in tries)
        assert proof.holds == closed
        assert proof.operand <= held
        assert (proof.largest_products >= 1) == closed
        seen.add((proof.holds, held < 2 * proof.gain))
        if not closed:
            assert "closed loop" in [row.name for row in proof.inequalities if not row.holds]
    assert seen == {(True, False), (True, True), (False, True)}


def test_fewer_bits_can_leave_more_room():
    """In a single row floor(2^t E) / 2^t need not fall as t grows: no t may be skipped, and the best is reported."""
    pair = deal((55, 51, 64, 61), 2)
    assert [pair.cox(t)[1].limit() * 2 >= pair.b.M for t in range(1, 13)] == [True] + [False] * 11
    found = {p: sufficiency(pair, p) for p in range(301, 420, 2) if gcd(p, pair.a.M * pair.b.M) == 1}
    assert any(proof.holds and not replace(proof, t=12).holds for proof in found.values())
    failed = [proof for proof in found.values() if not proof.holds and proof.gain * 4 * proof.p <= pair.a.M]
    assert failed and {proof.t for proof in failed} == {1}


def test_lazy_residues_cost_more_than_least_ones():
    pair = deal(greedy(17, 32))
    lazy, least = (sufficiency(pair, P256, lazy=lazy, t=5) for lazy in (True, False))
    assert lazy.coxes[1].error > least.coxes[1].error and lazy.gain > least.gain


def test_refusals():
    for arguments, message in (
        ((2, 17), "at least 3, got 2"),
        ((P256, 17, 0), "got 0 and 1"),
        ((P256, 17, 5, 16), "multiple of 5 in 1 ... 1024, got 16"),
        ((P256, 17, 1, 1025), "got 1025"),
        ((P256, 1), "at least 2 bits, got w = 1"),
        ((P256, 8), "fewer than 66 pairwise coprime moduli"),
    ):
        with pytest.raises(ValueError, match=message):
            base_pair(*arguments[:3], n=arguments[3] if len(arguments) > 3 else None)
    with pytest.raises(ValueError, match=r"1 ... 2048, got 0"):
        choose_moduli(17, 0)
    with pytest.raises(ValueError, match="got digits = 0"):
        choose_moduli(17, 4, digits=0)
    with pytest.raises(ValueError, match=r"t must be in 1 \.\.\. 17, got 18"):
        Sufficiency(deal(greedy(17, 32)), P256, 18)
    with pytest.raises(ValueError, match="products at least 1"):
        Sufficiency(deal(greedy(17, 32)), P256, 5, 0)


@pytest.mark.parametrize(
    ("x", "text"),
    [(3, "3"), (Fraction(1, 2), "0.5"), (Fraction(1, 3), "~0.333333"), (1 << 2048, "~2^2048.000"),
     (-(1 << 30), "-~2^30.000"), (Fraction(10**7, 3), "~2^21.669"), (999999, "999999"), (0, "0")],
)  # fmt: skip
def test_numbers_to_read(x, text):
    assert approximate(x) == text


def test_an_inequality_shows_the_sign_that_is_true():
    one, third = Fraction(1), Fraction(1, 3)
    assert Inequality("", "", one, third).numbers == "1 > ~0.333333"
    assert Inequality("", "", one, one).holds and not Inequality("", "", one, one, strict=True).holds
    assert Inequality("", "", one, one).numbers == "1 = 1"


def test_loop_without_room_has_no_operand():
    a = Base(8, (256, 255, 253))
    assert Loop(a.M // 8, a, Fraction(2), a.M).operand() is not None
    assert Loop(a.M // 8 + 1, a, Fraction(2), a.M).operand() is None
    assert Loop(a.M // 9, a, Fraction(2), a.M // 9 * 2).operand() is None


# ---- primes for hybrid position-residue numbers


@pytest.mark.parametrize(("w", "n", "d"), [(34, 8, 2), (17, 16, 4), (24, 6, 3)])
def test_hpr_primes(w, n, d):
    found = list(islice(hpr_primes(w, n, d, seed=3), 4))
    assert len({prime.p for prime in found}) == 4
    for prime in found:
        assert prime.p == prime.a.M**d - prime.beta and is_prime(prime.p)
        assert (prime.a.n, prime.d, prime.beta) == (n // d, d, 2)
    assert list(islice(hpr_primes(w, n, d, seed=3), 4)) == found
    assert list(islice(hpr_primes(w, n, d, seed=4), 4)) != found


def test_hpr_primes_are_all_that_there_are():
    moduli = list(islice(pseudo_mersenne(10), 5))
    drawn = {prime.p for prime in hpr_primes(10, 4, 2, pool=5, betas=(2, 4, 6))}
    products = [a * b for a, b in itertools.combinations(moduli, 2)]
    assert drawn == {M * M - beta for M in products for beta in (2, 4, 6) if is_prime(M * M - beta)}
    assert drawn


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((34, 8, 3), "d = 3, n = 8"), ((34, 8, 1), "d = 1"), ((5, 20, 2), "are wanted, there are")],
)
def test_hpr_refusals(arguments, message):
    with pytest.raises(ValueError, match=message):
        hpr_primes(*arguments)
    with pytest.raises(ValueError, match="even and positive, because M is odd, got 3"):
        hpr_primes(34, 8, 2, betas=(2, 3))
