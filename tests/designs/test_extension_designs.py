# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The base extensions: the contract holds in the algorithm, up to its edge and not beyond."""

import random

import pytest

from modmill.contract import UnsupportedError
from modmill.designs import design
from modmill.designs.extension import edge_numbers
from modmill.numbers.moduli import MODULI, parse_modulus

NAMES = ["kbe-extension", "hbe-extension"]


def extend(fitted, x):
    *_, (_, port) = fitted.trace(fitted.representation.encode(x))
    return fitted.result_form.decode(port)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("modulus", [m.name for m in MODULI])
def test_the_same_number_comes_out_for_every_named_modulus(name, modulus):
    p = parse_modulus(modulus).value
    fitted = design(name).fit(p)
    rnd = random.Random(p)
    assert fitted.params.limit >= p
    for x in [*edge_numbers(fitted.params)[::9], *(rnd.randrange(p) for _ in range(3))]:
        assert extend(fitted, x) == x


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("w", [12, 17, 20, 24, 28, 34])
def test_widths(name, w):
    fitted = design(name).fit(2**130 - 5, w=w)
    assert all(extend(fitted, x) == x for x in edge_numbers(fitted.params))


@pytest.mark.parametrize("name", NAMES)
def test_without_a_cox_the_result_is_congruent_and_below_its_bound(name):
    fitted = design(name).fit(2**130 - 5, exact=False)
    A = fitted.params.a.M
    assert fitted.bounds[0] == 1
    seen = [divmod(extend(fitted, x) - x, A) for x in edge_numbers(fitted.params)]
    assert all(rest == 0 for _, rest in seen)
    assert 0 < max(h for h, _ in seen) < fitted.bounds[2] <= fitted.params.b.M / A


@pytest.mark.parametrize("name", NAMES)
def test_an_offset_one_too_small_fails_at_the_edge(name):
    fitted = design(name).fit(2**130 - 5)
    q = fitted.params
    hats = [q.cox.hats(q.cox.base.gammas(x)) for x in edge_numbers(q)]
    assert all(
        q.cox.h(h, q.offset) * q.a.M <= sum(v * (q.a.M // r) for v, r in zip(h, q.cox.products, strict=True))
        for h in hats
    )
    assert any(q.cox.h(h, q.offset) != q.cox.h(h, q.offset - 1) for h in hats)


@pytest.mark.parametrize("name", NAMES)
def test_contract_has_one_operand_and_two_forms(name):
    fitted = design(name).fit(97)
    contract = fitted.contract("native")
    assert contract.operands == 1 and contract.p == fitted.params.a.M and not contract.closed
    assert contract.operand.base == fitted.params.a and contract.result.base == fitted.params.b
    assert "i_b" not in contract.describe()["ports"]
    assert contract.describe()["statement"] == "o_r = i_a * factor (mod modulus)"
    with pytest.raises(UnsupportedError, match="no binary form"):
        fitted.binary_component()


def test_refusals():
    with pytest.raises(UnsupportedError, match="w takes a whole number from 12 to 34, not 40"):
        design("kbe-extension").fit(97, w=40)
    with pytest.raises(UnsupportedError, match="even, got 7"):
        design("hbe-extension").fit(97, n=7)
    with pytest.raises(UnsupportedError, match=r"n takes 0 or 6 to 32 .* not 4"):
        design("hbe-extension").fit(97, n=4)
