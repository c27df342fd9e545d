# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The SOR solver: exhaustive on toys, the paper's numbers, the paper's errors."""

import itertools
import random
from fractions import Fraction
from itertools import islice

import pytest

from marks import long
from modmill.numbers.moduli import parse_modulus
from modmill.numbers.rns.edges import edge_operands
from modmill.numbers.rns.residues import Base, growing_bases, mersenne_like, pseudo_mersenne
from modmill.numbers.rns.sum_of_residues import SumOfResidues, alpha_limit, alpha_offset, solve

SECP = parse_modulus("secp256k1").value
ED = parse_modulus("2^255-19").value
TABLE_1 = Base(66, tuple((1 << 66) - u for u in (1, 5, 9, 17, 33, 65, 257, 513)))
MANY = Base(17, tuple(islice(pseudo_mersenne(17), 17)))
TOY = Base(5, (31, 29, 27))


def printed(p, T, lazy=False):
    """The paper's parameters: q = 8, Delta = 1/16, kappa without offset."""
    return SumOfResidues(p, TABLE_1, 8, 16, T, 0, False, lazy)


def representatives(base, z):
    """Every vector of lazy gammas of ``z``."""
    return itertools.product(*[range(g, 1 << base.w, m) for g, m in zip(base.gammas(z), base.moduli, strict=False)])


@pytest.mark.parametrize("q", [3, 4, 5])
@pytest.mark.parametrize("lazy", [False, True])
def test_alpha_is_exact_exhaustively(q, lazy):
    d = alpha_offset(TOY, q, lazy)
    limit = alpha_limit(TOY, q, d)
    rns = SumOfResidues(7, TOY, q, d, 4, lazy=lazy)
    for z in range(limit):
        for g in representatives(TOY, z) if lazy else [TOY.gammas(z)]:
            alpha = (sum(x * c for x, c in zip(g, TOY.cofactors, strict=False)) - z) // TOY.M
            assert rns.alpha(g) == alpha


@pytest.mark.parametrize("q", [3, 4, 5])
def test_the_offset_and_the_limit_are_needed(q):
    """Planted faults: one less in the offset, or Z above the limit, and alpha is wrong somewhere."""
    d = alpha_offset(TOY, q, True)
    limit = alpha_limit(TOY, q, d)

    def wrong(offset, numbers):
        shift = TOY.w - q
        return any(
            (sum(x >> shift for x in g) + offset >> q) * TOY.M
            != sum(x * c for x, c in zip(g, TOY.cofactors, strict=False)) - z
            for z in numbers
            for g in representatives(TOY, z)
        )

    assert not wrong(d, range(limit))
    assert d == 0 or wrong(d - 1, range(limit))
    assert wrong(d, range(limit, TOY.M))
    assert alpha_limit(TOY, q, 1 << q) == 0  # alpha is then at least 1


def negative_representatives(rns, z):
    """Every vector of lazy gammas of ``z`` for -M_i."""
    base = rns.base
    return itertools.product(*[range(g, 1 << base.w, m) for g, m in zip(rns.gammas(z), base.moduli, strict=True)])


@pytest.mark.parametrize("q", [3, 4, long(5)])
def test_alpha_of_minus_M_i_is_exact_exhaustively(q):
    """For each offset: exact below the limit for every representative, and no longer just above it."""
    wrong = 0
    for d in range(alpha_offset(TOY, q, True), 1 << q):
        rns = SumOfResidues(7, TOY, q, d, 4, negative=True)
        for z in range(min(rns.product_limit + TOY.M // 8, TOY.M)):
            for g in negative_representatives(rns, z):
                alpha, rest = divmod(sum(x * c for x, c in zip(g, TOY.cofactors, strict=True)) + z, TOY.M)
                assert rest == 0 and rns.from_gammas(g) == z
                if z < rns.product_limit:
                    assert rns.alpha(g) == alpha <= rns.alpha_max
                else:
                    wrong += rns.alpha(g) != alpha
    assert wrong > 0


@pytest.mark.parametrize("p", [5, 7, 11, 19, 27, 31])
@pytest.mark.parametrize("offset", [True, False])
def test_beta_of_minus_M_i_exhaustively(p, offset):
    for T in (3, 5, 8):
        rns = SumOfResidues(p, TOY, 4, 15, T, offset=offset, negative=True)
        worst = 0
        for z in range(0, rns.product_limit, 3):
            for g in negative_representatives(rns, z):
                alpha = rns.alpha(g)
                kappa = rns.kappa(g, alpha)
                result = sum(x * r for x, r in zip(g, rns.r, strict=True)) + rns.v[alpha] - kappa * p
                assert kappa <= rns.kappa_max and 0 <= result <= rns.z_max and (result - z) % p == 0
                worst = max(worst, result)
        assert worst * 3 >= rns.z_max, "the bound is far from what occurs"


@pytest.mark.parametrize("p", [5, long(7), 11, long(19), 27, 31])
@pytest.mark.parametrize(("offset", "multiplied"), [(True, False), (False, False), (True, True)])
@pytest.mark.parametrize("s", [0, 1])
def test_beta_exhaustively(p, offset, multiplied, s):
    q = 4
    d = alpha_offset(TOY, q, True)
    for T in (3, 5, 8):
        rns = SumOfResidues(p, TOY, q, d, T, s, offset, True, multiplied)
        worst = 0
        for z in range(0, rns.product_limit, 3):
            for g in representatives(TOY, z):
                alpha = rns.alpha(g)
                v = sum(x * r for x, r in zip(g, rns.r, strict=False)) + rns.v[alpha]
                kappa = rns.kappa(g, alpha)
                result = v - kappa * p
                assert v <= rns.v_max and kappa <= rns.kappa_max
                assert 0 <= result <= rns.z_max and (result - z) % p == 0
                worst = max(worst, result)
        assert worst * 3 >= rns.z_max, "the bound is far from what occurs"


def test_a_modulus_of_the_base_is_reached():
    """r_i = 0 in all channels but one, whose residue 2^w - 1 is p: nothing is hidden, and z = p = _most occurs."""
    p = (1 << 66) - 1
    rns = solve(p, Base(66, (p, p - 4, p - 8)))
    g = ((1 << 66) - 1, 0, 0)
    alpha = rns.alpha(g)
    z = sum(x * r for x, r in zip(g, rns.r, strict=True)) + rns.v[alpha] - rns.kappa(g, alpha) * p
    assert z == p == rns.z_max
    assert p < rns.beta * p


def test_constants_of_the_paper():
    for p, T, bits, kappa, v in ((SECP, 72, 55, 52, 308), (ED, 71, 44, 41, 296)):
        rns = printed(p, T)
        assert (rns.constant_bits, rns.kappa_bits, rns.v_max.bit_length()) == (bits, kappa, v)
        assert rns.closed


def test_primes_that_condition_22_excludes_are_served():
    """Constants that divide by p close the loop for P-256, SM2, Brainpool, BN254 and BLS12-381 (erratum 3) too."""
    served = {"secp256k1": 8, "2^255-19": 8, "P-192": 6, "P-224": 7, "P-384": 12, "P-521": 16}
    excluded = {"P-256": 8, "SM2": 8, "brainpoolP256r1": 8, "BN254-p": 8, "BLS12-381-p": 12, "BLS12-381-r": 8}
    for name, N in (served | excluded).items():
        p = parse_modulus(name).value
        assert solve(p, Base(66, tuple(itertools.islice(mersenne_like(66), N)))).closed


@pytest.mark.parametrize(
    ("name", "n_channels", "T", "bits"),
    [
        ("secp256k1", 8, 62, 45), ("2^255-19", 8, 61, 34), ("P-256", 8, 58, 58), ("SM2", 8, 58, 58),
        ("brainpoolP256r1", 8, 60, 60), ("BN254-p", 8, 59, 59), ("BLS12-381-p", 12, 54, 54), ("BLS12-381-r", 8, 60, 60),
        ("P-384", 12, 57, 57), ("brainpoolP384r1", 12, 56, 56), ("Ed448", 14, 55, 55), ("brainpoolP512r1", 16, 53, 53),
    ],
)  # fmt: skip
def test_least_T_with_a_closed_loop(name, n_channels, T, bits):
    p = parse_modulus(name).value
    moduli = tuple(itertools.islice(mersenne_like(66), n_channels))
    base = Base(66, moduli)
    d = alpha_offset(base, 8, False)
    tried = (SumOfResidues(p, base, 8, d, T, 0, True, False) for T in itertools.count(1))
    found = next(constants for constants in tried if constants.closed)
    assert (found.T, found.constant_bits) == (T, bits)


def test_solver_for_any_modulus():
    rnd = random.Random(3)
    for bits in (3, 8, 64, 200, 256, 384, 521, 1024, 4096):
        p = rnd.getrandbits(bits) | 1 | 1 << (bits - 1)
        moduli = mersenne_like(66) if bits < 1100 else pseudo_mersenne(66)
        base = next(growing_bases(66, moduli, 16 * p * p, least=1))
        rns = solve(p, base, operand=Fraction(2))
        assert rns.beta <= 2 and rns.closed
        x, y = rns.z_max, rns.z_max
        g = base.gammas(x * y)
        alpha = rns.alpha(g)
        z = sum(gi * r for gi, r in zip(g, rns.r, strict=False)) + rns.v[alpha] - rns.kappa(g, alpha) * p
        assert 0 <= z <= rns.z_max and (z - x * y) % p == 0


def test_kappa_has_an_offset_where_the_bound_needs_one():
    beta = 1 + Fraction(max(solve(SECP, TABLE_1).v), 2 * SECP)  # without an offset, v_alpha alone exceeds it
    tight = solve(SECP, TABLE_1, beta=beta)
    assert tight.offset and tight.beta <= beta
    with pytest.raises(ValueError, match="no kappa keeps the result below"):
        solve(SECP, TABLE_1, beta=beta, offset=False)


def test_a_kappa_that_is_always_zero_has_a_bit():
    rns = SumOfResidues(67, Base(5, (31, 29)), 5, alpha_offset(Base(5, (31, 29)), 5, True), 1, offset=False)
    assert (rns.kappa_max, rns.kappa_bits, rns.constant_bits) == (0, 1, 1)


def test_solver_tries_q_up_to_w():
    assert solve(65, TOY).q == TOY.w
    with pytest.raises(ValueError, match="no q up to 5 separates alpha"):
        solve(77, TOY)


@pytest.mark.parametrize(("p", "base"), [(SECP, TABLE_1), (2**127 - 1, MANY)])
@pytest.mark.parametrize("negative", [False, True])
def test_edge_operands_reach_what_they_promise(p, base, negative):
    """The ends of every channel, and of alpha: with one unit less in the offset, or one more, some alpha is wrong."""
    rns = solve(p, base, lazy=False, negative=negative)
    pairs = edge_operands(rns)
    numbers = [base.number(x) * base.number(y) for x, y in pairs]
    assert all(0 <= r < 1 << base.w for x, y in pairs for r in (*x, *y))
    assert max(numbers) == rns.product_limit - 1
    for i, m in enumerate(base.moduli):
        assert {0, 1, m - 1, m} <= {x[i] for x, _ in pairs}
    slack = [(sum(g >> base.w - rns.q for g in rns.gammas(z)) + rns.d) % (1 << rns.q) for z in numbers]
    assert min(slack) == 0 and max(slack) == (1 << rns.q) - 1


def test_solver_says_why():
    small = Base(66, TABLE_1.moduli[:7])
    with pytest.raises(ValueError, match=r"462 bits.*more than 51\d bits"):
        solve(SECP, small)
    with pytest.raises(ValueError, match="offset of at least 8"):
        SumOfResidues(SECP, TABLE_1, 8, 7, 72, lazy=False)
    with pytest.raises(ValueError, match="no kappa keeps the result below"):
        solve(SECP, TABLE_1, T=20)
