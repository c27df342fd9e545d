# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Algorithm 3 of the HBE paper as a core: delta 0, 1 and 2 occur in simulation, larger ones without the first cox."""

from dataclasses import replace

import pytest
from bench import judge, run

from marks import long
from modmill.contract import UnsupportedError
from modmill.designs import design
from modmill.designs.reduction import choose, edge_operands, tables
from modmill.numbers.moduli import parse_modulus
from modmill.rtl.passes import Passes

NAMES = ["kbe-reduction", "hbe-reduction"]
SMALL = {"w": 12, "n": 4}


def with_delta(fitted):
    """{delta: operand}, one operand for each delta that the edges reach."""
    found = {}
    for x in edge_operands(fitted.params):
        found.setdefault(fitted.delta(x), x)
    return found


@pytest.mark.parametrize("name", [NAMES[0], long(NAMES[1])])
@pytest.mark.parametrize("cox", [True, long(False)])
def test_each_delta_is_seen_in_simulation(name, cox):
    fitted = design(name).fit(8191, cox=cox, **SMALL)
    found = with_delta(fitted)
    assert set(found) == {0, 1, 2} if cox else set(found) > {0, 1, 2}
    form = fitted.representation
    judge(fitted, [(form.encode(x), 0) for x in found.values()])
    for (delta, x), (port, _, _) in zip(
        found.items(), run(fitted.component(), [(form.encode(x), 0) for x in found.values()]), strict=True
    ):
        assert form.decode(port) == x * fitted.factor % fitted.p + delta * fitted.p


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("modulus", "settings"),
    [("secp256k1", {}), ("P-384", {"w": 24}), ("Ed25519", {"cox": False}), ("97", {"w": 12}), ("97", {"rowers": 4})],
)
def test_the_algorithm_keeps_its_bound(name, modulus, settings):
    fitted = design(name).fit(parse_modulus(modulus).value, **settings)
    q = fitted.params
    assert not q.failure() and (q.most_delta <= 2) == settings.get("cox", True)
    seen = set()
    for x in edge_operands(q):
        s = fitted.multiply(x, 1)
        assert s < q.result * q.p and s % q.p == x * fitted.factor % q.p
        seen.add(s // q.p)
    assert max(seen) <= q.most_delta and {0, 1, 2} <= seen


@pytest.mark.parametrize("columns", [1, 2, 3, 4])
def test_one_modulus_less_or_one_bit_less_does_not_suffice(columns):
    p = parse_modulus("secp256k1").value
    q = choose(p, columns, 17, 0, 0, True)
    assert replace(q, t=q.t - 1).failure() if q.t > 1 else q.t == 1
    with pytest.raises(ValueError, match=r"do not suffice|fails|exact below"):
        choose(p, columns, 17, q.a.n - columns, 0, True)


def test_faults_are_caught():
    """Planted: p in place of -p in the correction by h, constants of other channels, no offset in the second cox."""
    fitted = design("kbe-reduction").fit(8191, **SMALL)
    q, form = fitted.params, fitted.representation
    pairs = [(form.encode(x), 0) for x in with_delta(fitted).values()]
    first, second = tables(q)

    def wrong(one, other, shape=fitted.shape):
        found = run(Passes(shape, [one, other], [q.b.moduli, q.a.moduli]), pairs)
        return sum(port != list(fitted.trace(a))[-1][1] for (a, _), (port, _, _) in zip(pairs, found, strict=True))

    assert wrong(first, second) == 0
    assert wrong(replace(first, minus=q.b.residues(q.p)), second)
    assert wrong(replace(first, start=[*first.start[1:], first.start[0]]), second)
    one, other = fitted.shape.passes
    assert wrong(first, second, replace(fitted.shape, passes=(one, replace(other, offset=0))))


def test_refusals():
    with pytest.raises(UnsupportedError, match="rowers must be 0 or a multiple of the 2 moduli in a row, got 3"):
        design("hbe-reduction").fit(97, n=6, rowers=3)
    with pytest.raises(UnsupportedError, match="n must be a multiple of 3, got 8"):
        design("hbe-reduction").fit(97, n=8, columns=3)
    with pytest.raises(UnsupportedError, match="rowers takes a whole number from 0 to 32, not 33"):
        design("kbe-reduction").fit(97, rowers=33)
    with pytest.raises(UnsupportedError, match="no form with binary operands"):
        design("kbe-reduction").fit(97).binary_component()
