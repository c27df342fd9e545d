# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The cost models against the printed tables and against operations counted while algorithms run."""

import itertools
from collections import Counter
from fractions import Fraction

import pytest

from modmill.designs import design
from modmill.designs.cox_rower.schedule import jobs
from modmill.numbers.moduli import parse_modulus
from modmill.numbers.rns import rns_costs as costs
from modmill.numbers.rns.extension import HBE, KBE
from modmill.numbers.rns.hybrid_position import HybridPosition
from modmill.numbers.rns.residues import Base, pseudo_mersenne
from modmill.numbers.rns.rns_costs import (
    BE_MM,
    HPR_2,
    HPR_4,
    RATIOS,
    TABLE_II,
    asymptote,
    extension_ratio,
    figure,
    first_faster,
    first_saving,
    hbe,
    kbe,
    product,
    product_ratio,
)
from modmill.numbers.rns.rns_montgomery import Gandino

# (n^2, n) terms of Table II as printed: KBE, HBE with r = 2, HBE with r = 4
PRINTED = {
    "BE MM": ((2, 4), (Fraction(3, 2), 6), (Fraction(5, 4), 6)),
    "HPR d = 2": ((1, 8), (Fraction(3, 4), 10), (Fraction(5, 8), 10)),
    "HPR d = 4": ((Fraction(1, 2), 12), (Fraction(3, 8), 14), (Fraction(5, 16), 14)),
}


def bases(w, n_a, n_b):
    moduli = tuple(itertools.islice(pseudo_mersenne(w), n_a + n_b))
    return Base(w, moduli[:n_a]), Base(w, moduli[n_a:])


@pytest.mark.parametrize("algorithm", TABLE_II, ids=lambda a: a.name)
def test_table_ii(algorithm):
    for r, (square, linear) in zip((None, 2, 4), PRINTED[algorithm.name], strict=True):
        for n in (4, 8, 16, 32):
            assert product(algorithm, n, r) == square * n * n + linear * n
    assert {a.name for a in TABLE_II} == set(PRINTED)


def test_section_iv_c():
    """KBE n^2 + n; HBE n^2 / 2 CMM + n^2 / 2 CMR + 2 n CMM."""
    for n in (6, 16, 32):
        assert kbe(n) == n * n + n
        for r in RATIOS:
            assert hbe(n, r) == Fraction(n * n, 2) + Fraction(n * n, 2) / r + 2 * n


@pytest.mark.parametrize("n", [8, 16, 24])
@pytest.mark.parametrize("r", [2, 4, Fraction(13, 4)])
def test_models_equal_counted_operations(n, r):
    """Extensions and BE MM as they run; a MUL counts c - 1 MM."""
    a, b = bases(20, n, n)
    assert KBE.of(a, b.moduli, 6).count.cmm(r) == kbe(n)
    assert Gandino.of(65537, a, b).count.cmm(r) == product(BE_MM, n)
    for c in (2, 4):
        assert HBE.of(a, b.moduli, 6, c).count.cmm(r, c - 1) == hbe(n, r, c)
        assert Gandino.of(65537, a, b, c=c).count.cmm(r, c - 1) == product(BE_MM, n, r, c)


class AnyBases(HybridPosition):
    """Counts operations where B has only as many moduli as A: a range too small to be right, but Table II's cost."""

    def conditions(self):
        return []


@pytest.mark.parametrize(("algorithm", "n"), [(HPR_2, 8), (HPR_2, 16), (HPR_4, 16), (HPR_4, 32)])
def test_hpr_models_equal_counted_operations(algorithm, n):
    d = algorithm.d
    a, b = bases(20, n // d, n // d)
    assert AnyBases(d, 2, a, b, 6).count.cmm(1) == product(algorithm, n)
    for c, r in itertools.product((2, 4), (2, 4)):
        assert AnyBases(d, 2, a, b, 6, c).count.cmm(r, c - 1) == product(algorithm, n, r, c)
    # one more modulus, which B needs for its range, is not in Table II
    right = HybridPosition.of(d, 2, *bases(20, n // d, n // d + 1))
    assert right.count.cmm(1) == product(algorithm, n) + d * d + 2 * n + 2 * d


def test_figures():
    """Curves of r = 2, 3, 4; each falls to its asymptote, and a larger r saves more."""
    for algorithm in (None, *TABLE_II):
        curves = figure(algorithm, range(4, 200, 2))
        assert set(curves) == set(RATIOS)
        for r, points in curves.items():
            values = [value for _, value in points]
            assert values == sorted(values, reverse=True) and values[-1] > asymptote(r)
            assert values[0] == (extension_ratio(4, r) if algorithm is None else product_ratio(algorithm, 4, r))
        assert all(x > y for (_, x), (_, y) in zip(curves[RATIOS[0]], curves[RATIOS[2]], strict=True))


def percent(ratio):
    return f"{float(100 * (1 - ratio)):.1f}"


def test_claims_about_the_figures():
    """17 to 32 % (BE MM), 8 to 17 % and 15 to 25 % (HPR d = 2), 8 to 15 % (d = 4, n = 32: 7.1 to 14.3 %)."""
    assert (percent(product_ratio(BE_MM, 16, 2)), percent(product_ratio(BE_MM, 32, 4))) == ("16.7", "32.4")
    assert [percent(product_ratio(HPR_2, n, r)) for n in (16, 32) for r in (2, 4)] == ["8.3", "16.7", "15.0", "25.0"]
    assert [percent(product_ratio(HPR_4, 32, r)) for r in (2, 4)] == ["7.1", "14.3"]


def test_erratum_35_percent():
    """Printed for n = 6 ... 32: at n = 32 it is 33.3 %, 35 % needs n >= 54, and 37.5 % is the limit."""
    assert percent(extension_ratio(32, 4)) == "33.3"
    assert first_saving(Fraction(35, 100), 4) == 54
    assert extension_ratio(54, 4) == Fraction(65, 100) < extension_ratio(53, 4)
    assert asymptote(4) == Fraction(5, 8) and first_saving(Fraction(3, 8), 4) is None
    assert first_saving(Fraction(35, 100), 2) is None


@pytest.mark.parametrize("algorithm", [None, *TABLE_II])
@pytest.mark.parametrize("c", [2, 3, 4])
def test_first_saving_is_the_first(algorithm, c):
    for r, saving in itertools.product((2, 3, 4), (Fraction(0), Fraction(1, 10), Fraction(1, 5), Fraction(6, 25))):
        n = first_saving(saving, r, c, algorithm)

        def ratio(n, r=r):
            return extension_ratio(n, r, c) if algorithm is None else product_ratio(algorithm, n, r, c)

        assert n is not None and ratio(n) <= 1 - saving
        assert n == 1 or ratio(n - 1) > 1 - saving


def test_erratum_where_hpr_with_d_4_wins():
    """Printed: at least 16 moduli. By Table II from n = 9 (KBE), 11 (r = 2), 13 (r = 4) on."""
    assert [first_faster(HPR_4, HPR_2, r) for r in (None, 2, 4)] == [9, 11, 13]
    for r, n in ((None, 9), (2, 11), (4, 13)):
        assert product(HPR_4, n, r) < product(HPR_2, n, r) and product(HPR_4, n - 1, r) >= product(HPR_2, n - 1, r)
    assert first_faster(HPR_2, BE_MM) == 5 and first_faster(BE_MM, HPR_2) is None
    assert first_faster(BE_MM, BE_MM) is None


def test_refusals():
    for call, message in (
        (lambda: kbe(0), "number of moduli must be at least 1, got 0"),
        (lambda: hbe(8, 0), "ratio CMM/CMR must be positive, got 0"),
        (lambda: hbe(8, 2, 1), "at least 2 columns, got 1"),
        (lambda: product(BE_MM, -2, 2), "at least 1, got -2"),
        (lambda: asymptote(-1), "must be positive, got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def busy(shape):
    """Cycles of each unit of a rower with one product, counted in the schedule's jobs."""
    found = Counter()
    for job in jobs(shape):
        for unit, _, cycles in job.uses:
            found[unit] += cycles
    return found


@pytest.mark.parametrize(
    ("name", "modulus", "settings"),
    [
        *((name, m, {}) for name in ("kbe", "hbe") for m in ("2^61-1", "secp256k1", "P-384")),
        *((name, "secp256k1", {"rowers": rowers}) for name in ("kbe", "hbe") for rowers in (4, 8)),
        *(("hbe", "secp256k1", {"columns": c, "w": w}) for c in (3, 4) for w in (17, 34)),
        ("kbe", "secp256k1", {"w": 34}), ("hbe", "secp256k1", {"w": 34}),
    ],
)  # fmt: skip
def test_the_units_of_a_rower_are_those_of_the_schedule(name, modulus, settings):
    shape = design(name).fit(parse_modulus(modulus).value, **settings).params.shape
    rower, counted = costs.Rower(shape.n, shape.columns, shape.channels_per_rower), busy(shape)
    assert (rower.multiplier, rower.memory) == (counted["multiplier"], counted["memory"])
    if shape.columns > 1:
        assert rower.reduction == counted["fold"]
    assert rower.interval == max(counted["multiplier"], counted["fold"], counted["memory"])


def test_a_pipelined_rower_pays_nothing_for_reductions():
    never = Fraction(10**9)
    for algorithm in (None, *costs.TABLE_II):
        for n in (6, 16, 32, 62):
            found = costs.pipelined_ratio(algorithm, n)
            printed = [
                costs.extension_ratio(n, r) if algorithm is None else costs.product_ratio(algorithm, n, r)
                for r in (4, never)
            ]
            assert 0 < printed[1] - found < Fraction(1, 10**8) and found < printed[0]
    assert costs.pipelined_ratio(None, 16) == Fraction(160, 272)
    assert costs.pipelined_ratio(costs.BE_MM, 10**6) - Fraction(1, 2) < Fraction(1, 10**5)
