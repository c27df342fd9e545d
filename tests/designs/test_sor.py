# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What the SOR paper prints about its architectures."""

import random

import pytest
from bench import judge, operands, run

from modmill.contract import UnsupportedError
from modmill.designs import design
from modmill.designs.sor.family import Constants
from modmill.numbers.moduli import parse_modulus
from modmill.numbers.rns.residues import signed_digits
from modmill.numbers.rns.sum_of_residues import alpha_offset
from modmill.studies.papers.sor import TABLE_2

SECP = parse_modulus("secp256k1").value
ED = parse_modulus("2^255-19").value


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("sor-1m-n", lambda n: 3 * n + 7),
        ("sor-1m-p", lambda n: 2 * (n + 4)),
        ("sor-2m", lambda n: 2 * (-(-n // 2) + 5)),
        ("sor-nm", lambda n: 12),
    ],
)
@pytest.mark.parametrize("modulus", ["secp256k1", "2^255-19", "P-192", "P-384", "P-521", "secp160k1"])
def test_cycles(name, formula, modulus):
    fitted = design(name).fit(parse_modulus(modulus).value)
    extra = 2 * (fitted.params.words - 1) if fitted.params.k == 1 else 0  # kappa in two words, one multiplier set
    assert fitted.schedule.latency == formula(fitted.params.base.n) + extra
    if modulus in ("secp256k1", "2^255-19"):
        assert extra == 0


@pytest.mark.parametrize("modulus", [name for _, _, name, _, _ in TABLE_2] + ["P-256", "SM2"])
def test_a_base_with_which_kappa_fits_one_channel(modulus):
    """For each modulus of Table 2, and for P-256 and SM2, a base of 66-bit moduli serves without a second word."""
    p = parse_modulus(modulus).value
    fitted, usual = (design("sor-1m-p").fit(p, base=base) for base in ("one-word", "auto"))
    n = fitted.params.base.n
    assert n == usual.params.base.n and sum(fitted.rns.r) < p
    assert fitted.params.words == 1 and fitted.rns.kappa_bits <= 66
    assert fitted.schedule.latency == 2 * (n + 4) == usual.schedule.latency - 2 * (usual.params.words - 1)
    assert fitted.contract("native").closed
    for a, b in [*fitted.corners(), *operands(fitted.contract("native"), 20)]:
        x, y = map(fitted.representation.decode, (a, b))
        z = fitted.representation.decode(list(fitted.trace(a, b))[-1][1])
        assert z % p == x * y % p and z <= fitted.rns.z_max
    said = dict(fitted.facts())["kappa"], dict(usual.facts())["kappa"]
    assert "one word of 66 bits" in said[0]
    assert ("two words of 66 bits, which costs 2 cycles" in said[1]) == (usual.params.words == 2)


def test_half_of_table_2_needs_two_words_over_the_usual_base():
    words = [design("sor-1m-p").fit(parse_modulus(name).value).params.words for _, _, name, _, _ in TABLE_2]
    assert words == [1, 1, 1, 1, 2, 2, 2, 1, 2, 2]


def test_a_search_for_one_word():
    """A modulus without a form: eight of twenty moduli. For one of 384 bits no base is known, which is an error."""
    fitted = design("sor-1m-p").fit(parse_modulus("brainpoolP256r1").value, base="one-word")
    assert fitted.params.words == 1 and sum(fitted.rns.r) < fitted.p
    with pytest.raises(UnsupportedError, match=r"at most 66 bits: .*; the least .* is [2-9]\.\d+ p"):
        design("sor-1m-p").fit(parse_modulus("brainpoolP384r1").value, base="one-word")


@pytest.mark.parametrize("name", ["sor-1m-n", "sor-1m-p", "sor-2m"])
@pytest.mark.parametrize(("p", "n"), [(65537, 12), (2**31 - 1, 12), (97, 14)])
def test_machine_with_minus_M_i(name, p, n):
    fitted = design(name).fit(p, base="one-word", n=n)
    assert fitted.rns.negative
    judge(fitted, [*fitted.corners()[::7], *operands(fitted.contract("native"), 4)])
    contract, pairs = fitted.contract("plain"), [(p - 1, p - 1), (p - 2, p - 1), (0, 1)]
    for (a, b), (r, _, latency) in zip(pairs, run(fitted.core("plain"), pairs), strict=True):
        assert r == contract.expect(a, b) and latency == contract.timing.latency


def test_printed_cycles():
    lengths = [design(n).fit(SECP).schedule.latency for n in ("sor-1m-n", "sor-1m-p", "sor-2m", "sor-nm")]
    assert lengths == [31, 24, 18, 12]


@pytest.mark.parametrize("sets", [1, 2, 3, 4, 5, 8])
def test_any_number_of_sets(sets):
    fitted = design("sor-1m-p").fit(SECP, sets=sets)
    n = fitted.params.base.n
    assert fitted.schedule.latency == (2 * (n + 4) if sets == 1 else 2 * (-(-n // sets) + 5))
    assert fitted.multiply(SECP - 1, SECP - 1) % SECP == 1


def test_multipliers_and_memory():
    assert design("sor-1m-p").fit(SECP, dsp="25x18").cost.dsp == 128 + 12
    assert design("sor-2m").fit(SECP, dsp="25x18").cost.dsp == 280
    assert design("sor-1m-p").fit(SECP).cost.memory_bits == 9944
    assert design("sor-1m-p").fit(ED).cost.memory_bits == 9856


@pytest.mark.parametrize("name", ["sor-1m-p", "sor-2m", "sor-ring", "mm-spa"])
@pytest.mark.parametrize("modulus", ["secp256k1", "P-256", "P-521"])
def test_memory_formula_counts_the_tables(name, modulus):
    """The closed formula of ``cost`` equals the tables that the machine is built from, counted."""
    fitted = design(name).fit(parse_modulus(modulus).value)
    p, base = fitted.params, fitted.params.base
    constants = Constants.of(p, scaled=False)
    alpha = constants.al if p.rns.multiplied else constants.al[1:]
    tables = [constants.inverses, *constants.rows, *alpha, *([] if name == "mm-spa" else constants.minus_p)]
    bits = sum(map(len, tables)) * base.w + (0 if name == "mm-spa" else base.n * p.rns.constant_bits)
    assert fitted.cost.memory_bits == bits


def test_erratum_memory_rows_of_alpha():
    """N((2N + 2)n + n') counts N rows of alpha; with alpha = 1 ... N - 1 as listed it would be one row less.

    Lazy residues need the row alpha = N, so the printed totals are the right ones for this machine.
    """
    p = design("sor-1m-p").fit(SECP).params
    assert p.rns.alpha_max == p.base.n == 8
    assert 8 * ((2 * 8 + 2) * 66 + 55) == 9944
    assert 8 * ((2 * 8 + 1) * 66 + 55) == 9416


def test_corners_reach_the_edges():
    """Corner operands reach alpha = 0 and the largest, results above p, and the largest truncation error of alpha."""
    fitted = design("sor-1m-p").fit(SECP)
    rns = fitted.params.rns
    alphas, above, slack = set(), 0, []
    for a, b in fitted.corners():
        trace = dict(fitted.trace(a, b))
        alphas.add(trace["alpha"])
        z = fitted.representation.decode(trace["z"])
        above += z >= SECP
        slack.append((sum(g >> rns.base.w - rns.q for g in trace["G"]) + rns.d) % (1 << rns.q))
    assert 0 in alphas and max(alphas) >= 7
    assert above > 0
    assert min(slack) == rns.d - alpha_offset(rns.base, rns.q, rns.lazy)
    assert max(slack) >= (1 << rns.q) - 2


def test_corner_of_alpha_fails_with_a_smaller_offset():
    """The planted fault: with one unit less in the offset than needed some corner gets a wrong alpha."""
    fitted = design("sor-1m-p").fit(SECP, q=5)
    rns, base = fitted.params.rns, fitted.params.base
    wrong = 0
    for a, b in fitted.corners():
        g = dict(fitted.trace(a, b))["G"]
        z = fitted.representation.decode(a) * fitted.representation.decode(b)
        alpha = (sum(x * c for x, c in zip(g, base.cofactors, strict=True)) - z) // base.M
        assert rns.alpha(g) == alpha
        wrong += (sum(x >> base.w - rns.q for x in g) + rns.d - 1) >> rns.q != alpha
    assert wrong > 0


def test_bounds_are_just_above_the_largest_numbers():
    fitted = design("sor-1m-n").fit(SECP)
    rns, p = fitted.rns, fitted.p
    assert [bound * p for bound in (fitted.bounds[0], fitted.bounds[2])] == [rns.operand_limit + 1, rns.z_max + 1]
    assert dict(fitted.facts())["operands"] == f"below {(rns.operand_limit + 1) / p:.6g} p each"


def test_ring_keeps_its_multipliers_busy():
    ring, paper = design("sor-ring").fit(SECP), design("sor-1m-p").fit(SECP)
    assert ring.schedule.utilisation()["mul"] > 0.95
    per_dsp = ring.cost.dsp * ring.schedule.interval
    assert 2 * per_dsp < paper.cost.dsp * paper.schedule.interval / 1.2  # at least twice the products, at equal clocks


def test_original_sor_closes_the_loop_with_forty_channels():
    """Erratum: the SOR paper says that two products in a row are not possible with the original method."""
    fitted = design("mm-spa").fit(SECP)
    assert fitted.params.base.n == 40 and fitted.params.base.w == 14
    assert fitted.contract("native").closed
    assert fitted.schedule.latency == 13 and fitted.schedule.interval == 10
    rnd = random.Random(2)
    form = fitted.representation
    x = form.encode(rnd.randrange(SECP))
    number = form.decode(x)
    for _ in range(20):
        *_, (_, x) = fitted.trace(x, x)
        number = number * number % SECP
        assert form.decode(x) % SECP == number


def test_ring_folds_by_every_negative_digit():
    """In some channels u has three negative digits and one positive one: more than the positive terms of the fold."""
    fitted = design("sor-ring").fit(2**83 - 1, w=13, digits=4)
    assert [-1, -1, -1, 1] in [sorted(sign for _, sign in signed_digits(u)) for u in fitted.params.base.u]
    form, pairs = fitted.representation, operands(fitted.contract("native"), 4)
    for (a, b), (r, _, _) in zip(pairs, run(fitted.component(), pairs), strict=True):
        assert r == list(fitted.trace(a, b))[-1][1]
        assert (form.decode(r) - form.decode(a) * form.decode(b)) % fitted.p == 0
