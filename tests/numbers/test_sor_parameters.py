# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The search for q and T: rules against print, means against simulated products."""

import random
from fractions import Fraction
from itertools import pairwise
from math import sqrt

import pytest

from modmill.designs import design
from modmill.numbers.moduli import parse_modulus
from modmill.numbers.rns.residues import Base
from modmill.numbers.rns.sor_parameters import DELTA, KappaRow, alpha_rows, kappa_rows, rule_q, rule_T
from modmill.numbers.rns.sum_of_residues import SumOfResidues, solve

TABLE_1 = Base(66, tuple((1 << 66) - u for u in (1, 5, 9, 17, 33, 65, 257, 513)))
SECP, ED, P192, P256 = (parse_modulus(name).value for name in ("secp256k1", "2^255-19", "P-192", "P-256"))


def chosen(p, **settings):
    return design("sor-1m-p").fit(p, **settings).rns


def test_the_rules_give_what_is_printed():
    """q = 8 for Delta = 1/16; T = 72 for secp256k1, which drops 184 bits, as T = 71 does for 2^255 - 19."""
    for lazy in (False, True):
        rows = alpha_rows(SumOfResidues(SECP, TABLE_1, 8, 16, 72, 0, False, lazy), (2 * SECP) ** 2)
        assert rule_q(rows, DELTA) == 8
        assert next(row.q for row in rows if row.serves) == 4
        seventh = next(row for row in rows if row.q == 7)
        assert Fraction(1, 16) < seventh.error < Fraction(1, 16) + Fraction(1, 10**15)
    assert rule_T(TABLE_1) == 72
    assert [KappaRow(chosen(p)).dropped for p in (SECP, ED)] == [184, 184]
    assert [chosen(p).T for p in (SECP, ED)] == [72, 71]


def test_the_printed_T_does_not_make_24_equal_to_23():
    for p, least, most in ((SECP, "0.0504", "0.0506"), (ED, "0.1249", "0.1251")):
        row = KappaRow(chosen(p))
        assert Fraction(least) < row.lost < Fraction(most) and row.most_lost < 1


@pytest.mark.parametrize("p", [SECP, ED, P192, P256])
def test_rows_of_T(p):
    """Each bit of T costs a bit of the constants at most; the bounds fall; the first row is the least that closes."""
    rows = kappa_rows(chosen(p))
    assert [row.T for row in rows] == list(range(rows[0].T, rows[-1].T + 1))
    assert all(row.constants.closed for row in rows)
    assert not KappaRow(SumOfResidues(**{**vars_of(rows[0].constants), "T": rows[0].T - 1})).constants.closed
    for one, other in pairwise(rows):
        assert 0 <= other.constants.constant_bits - one.constants.constant_bits <= 1
        assert other.constants.beta <= one.constants.beta + Fraction(1, 1 << one.T)  # 1 - 2^-T of it grows
        assert other.lost <= one.lost <= one.most_lost
        assert other.above <= one.above


def vars_of(constants):
    return {name: getattr(constants, name) for name in constants.__dataclass_fields__}


@pytest.mark.parametrize(
    ("p", "settings"),
    [(SECP, {}), (ED, {}), (P256, {}), (P256, {"base": "one-word"}), (P192, {"base": "one-word"}),
     (2**61 - 1, {"n": 20})],
)  # fmt: skip
def test_means_are_those_of_random_products(p, settings):
    rns = chosen(p, **settings)
    row, rnd, count = KappaRow(rns), random.Random(5), 4000
    W, lost, above = p.bit_length(), [], []
    for _ in range(count):
        z = rnd.randrange(p) * rnd.randrange(p)
        g = rns.gammas(z)
        exact = sum(x * r for x, r in zip(g, rns.r, strict=True))
        kappa_24 = sum(x * (r << rns.T >> W) for x, r in zip(g, rns.r, strict=True)) >> rns.T
        lost.append((exact >> W) - kappa_24)
        alpha = rns.alpha(g)
        above.append((exact + rns.v[alpha]) // p - rns.kappa(g, alpha))
    for mean, seen in ((row.lost, lost), (row.above, above)):
        spread = sqrt(sum((x - float(mean)) ** 2 for x in seen) / count / count)
        assert abs(sum(seen) / count - float(mean)) < 4 * spread + 1e-9
    if row.most_lost < 1:
        assert set(lost) <= {0, 1}


def test_a_mean_that_is_wrong_is_found():
    """The planted fault: the mean for T is not that for T + 1; the spread of the test above tells them apart."""
    rows = {row.T: row for row in kappa_rows(chosen(SECP))}
    spread = sqrt(float(rows[72].lost) / 4000)
    assert rows[72].lost - rows[73].lost > 4 * spread and rows[72].above - rows[73].above > 4 * spread


def test_one_modulus():
    rows = kappa_rows(solve(67, Base(17, ((1 << 17) - 1,))))
    assert rows and all(row.above >= 0 for row in rows)
