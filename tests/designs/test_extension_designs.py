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
    with pytest.raises(UnsupportedError, match="no form with binary operands"):
        fitted.binary_component()


ROWS = [("kbe-extension", {"rowers": r}) for r in (1, 3, 4, 0)]
ROWS += [("hbe-extension", {"rowers": r, "columns": c}) for r, c in ((4, 2), (0, 2), (3, 3), (0, 3), (4, 4), (0, 4))]


@pytest.mark.parametrize(("name", "settings"), ROWS)
@pytest.mark.parametrize("exact", [True, False])
def test_any_number_of_rowers_and_columns(name, settings, exact):
    """The number comes out; h of the machine's table is never larger than its words; DSP blocks are those of the
    rowers."""
    for reduce in ("logic", "dsp"):
        fitted = design(name).fit(2**130 - 5, exact=exact, reduce=reduce, **settings)
        q, s = fitted.params, fitted.params.shape
        assert s.lanes == (settings["rowers"] or q.a.n) and q.a.n % s.lanes == 0 and s.rowers * s.m == q.b.n
        assert fitted.cost.dsp == s.rowers * s.tiles and (reduce == "dsp") == (s.tiles > 1)
        assert s.interval >= s.multiplications
        for x in edge_numbers(q)[::3]:
            trace = dict(fitted.trace(fitted.representation.encode(x)))
            found = fitted.result_form.decode(trace["x"])
            assert found == x if exact else found % q.a.M == x
            assert trace.get("h", 0) <= s.h_max


def test_refusals():
    with pytest.raises(UnsupportedError, match="rowers must be 0 or a multiple of the 3 moduli in a row, got 2"):
        design("hbe-extension").fit(97, columns=3)
    with pytest.raises(UnsupportedError, match="rowers must be 0 or a multiple of the 2 moduli in a row, got 3"):
        design("hbe-extension").fit(97, rowers=3)
    with pytest.raises(UnsupportedError, match="n must be a multiple of 4, got 6"):
        design("kbe-extension").fit(97, n=6, rowers=4)
    with pytest.raises(UnsupportedError, match="w takes a whole number from 12 to 34, not 40"):
        design("kbe-extension").fit(97, w=40)
    with pytest.raises(UnsupportedError, match="even, got 7"):
        design("hbe-extension").fit(97, n=7)
    with pytest.raises(UnsupportedError, match=r"n takes 0 or 6 to 32 .* not 4"):
        design("hbe-extension").fit(97, n=4)
