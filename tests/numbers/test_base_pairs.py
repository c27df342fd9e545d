# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Pairs of bases: what a pair must keep for its loop, inequality by inequality; the papers' numbers and errors."""

import itertools
import random
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from math import gcd, prod

import pytest
from moduli_by_greed import greedy

from modmill.numbers.moduli import parse_modulus
from modmill.numbers.primes import is_prime
from modmill.numbers.rns.base_pairs import (
    BasePair,
    Inequality,
    Sufficiency,
    approximate,
    base_pair,
    deal,
    kawamura_condition,
    sufficiency,
)
from modmill.numbers.rns.choice_of_moduli import choose_moduli
from modmill.numbers.rns.cox import Cox
from modmill.numbers.rns.hybrid_position import hpr_primes
from modmill.numbers.rns.residues import Base, pseudo_mersenne

P256 = parse_modulus("secp256k1").value
P384 = parse_modulus("P-384").value
P2048 = (1 << 2048) - 1942289


# ---- pairs


def test_deal():
    pair = deal(greedy(17, 32), 4)
    assert (pair.n, pair.w, pair.largest_u) == (16, 17, 145)
    assert pair.a.u == (0, 3, 7, 13, 19, 25, 33, 49, 61, 69, 85, 93, 103, 111, 133, 141)
    assert pair.b.u == (1, 5, 9, 15, 21, 31, 43, 55, 63, 75, 91, 99, 105, 115, 135, 145)
    coxes = sufficiency(pair, P256).coxes
    assert [c.base for c in coxes] == [pair.a, pair.b]
    assert coxes[1].rows[0] == pair.b.moduli[:4]


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
    error = {t: float(Cox(pair.b, t, pair.columns, False).error) for t in (9, 17)}
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
    assert [Cox(pair.b, t, pair.columns).limit() * 2 >= pair.b.M for t in range(1, 13)] == [True] + [False] * 11
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
    for count, message in ((2049, r"1 \.\.\. 2048, got 2049"), (2048, "fewer than 2048 pairwise coprime moduli")):
        with pytest.raises(ValueError, match=message):
            choose_moduli(5, count)
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
