# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Other lists of operations on the cox-rower machine: sQ-RNS and Shenoy-Kumaresan, against the methods on integers."""

from dataclasses import replace
from fractions import Fraction

import pytest

from marks import long
from modmill.contract import UnsupportedError
from modmill.designs import design
from modmill.designs.cox_rower.operations import Kind
from modmill.designs.cox_rower.sq_rns import RootSufficiency, SqRns, root_pair
from modmill.numbers.moduli import parse_modulus
from modmill.numbers.primes import is_prime
from modmill.numbers.rns.exact_extension import ShenoyKumaresan
from modmill.numbers.rns.quadratic_residues import DoubleQ, SingleQ

NAMES = ("sq-rns", "dq-rns", "shenoy-kumaresan")
SECP = parse_modulus("secp256k1").value


@pytest.mark.parametrize(("name", "interval"), [("sq-rns", 36), ("dq-rns", 37), ("shenoy-kumaresan", 39)])
def test_cycles_of_a_product(name, interval):
    f = design(name).fit(SECP)
    n, multiplications = f.params.a.n, {"sq-rns": 4, "dq-rns": 5, "shenoy-kumaresan": 7}[name]
    assert f.schedule.interval == 2 * n + multiplications == interval
    assert f.schedule.utilisation()["multiplier"] == 1


@pytest.mark.parametrize(("name", "source"), [("sq-rns", SingleQ), ("dq-rns", DoubleQ)])
def test_numbers_are_stored_as_the_source_stores_them(name, source):
    f = design(name).fit(SECP)
    method = source.of(SECP, f.params.a, f.params.b)
    form = f.representation
    for x in (0, 1, SECP - 1, 123**30):
        assert form.words(x) == [word for half in method.encode(x) for word in half]
        assert form.decode(form.encode(x)) == x
    x, y = 7**90, 5**110
    assert method.decode(method.multiply(method.encode(x), method.encode(y))) % SECP == f.multiply(x, y) % SECP


def results(fitted):
    """(result, x y A^-1) modulo p, and the result, for each corner."""
    form, p = fitted.representation, fitted.p
    for a, b in fitted.corners():
        *_, (_, port) = fitted.trace(a, b)
        yield form.decode(port), form.decode(a) * form.decode(b) * fitted.factor % p


@pytest.mark.parametrize(("name", "p"), [long("sq-rns", SECP), ("dq-rns", SECP), ("sq-rns", 2**61 - 1)])
def test_a_smaller_constant_at_the_start_of_a_sum_is_found_at_the_edge(name, p):
    """The planted fault: 2 A fewer are added to Q (1 A covers residues between a_i and 2^w)."""
    f = design(name).fit(p)
    proof = f.params.proof
    assert proof.lift == sum(e < 0 for _, e in proof.roots) + 1

    class Less(RootSufficiency):
        lift = proof.lift - 2

    wrong = SqRns(p, replace(f.params, proof=Less(proof.pair, p, proof.t)), f.settings)
    assert all(z % p == expected and z < f.bounds[2] * p for z, expected in results(f))
    ports = f.corners()
    limit = wrong.bounds[2] * p
    seen = [wrong.representation.decode(list(wrong.trace(*pair))[-1][1]) for pair in ports[:2]]
    assert any(z >= limit for z in seen), "no corner has a negative quotient"


def test_results_come_near_both_ends_of_the_quotients():
    f = design("sq-rns").fit(SECP)
    g, first = f.params.proof.gain, [Fraction(z, SECP) for z, _ in results(f)][:2]
    assert min(first) < 2 and g - max(first) < 2


def test_bases_of_roots():
    """Primes 3 mod 4 in A, anything coprime in B; also where u has to have many digits; too few are refused."""
    for w, n, digits in ((17, 16, 3), (12, 11, 3), (34, 40, 3), (12, 60, 7)):
        pair = root_pair(w, n, 3**30 * 5, digits)
        assert all(m % 4 == 3 and m % 3 for m in pair.a.moduli) and pair.b.n == n
    pair = root_pair(17, 16, SECP, 7, double=True)
    assert all(m % 4 == 3 and is_prime(m) for m in pair.a.moduli + pair.b.moduli)
    with pytest.raises(ValueError, match=r"of moduli 2.12 - u with 3 signed digits there are .* and n = 128 of each"):
        root_pair(12, 128, 7, 3)


@pytest.mark.parametrize("name", ["secp256k1", "2^61-1", "97"])
def test_the_redundant_modulus_makes_the_extension_exact(name):
    """v of the last rower is the h of Shenoy and Kumaresan, from 0 to the largest; w is their extension of zeta."""
    f = design("shenoy-kumaresan").fit(parse_modulus(name).value)
    q, n = f.params, f.params.a.n
    extension = ShenoyKumaresan(q.b, q.a.moduli, 1 << q.a.w)
    share = next(op for op in q.shape.operations if op.kind is Kind.SHARE)
    seen = set()
    for pair in f.corners():
        trace = list(f.trace(*pair))
        words = f.representation.unpack(trace[-1][1])
        found, S_r = words[n + 1 :], words[n]
        residues = [x * B % m for x, B, m in zip(found, q.b.cofactors, q.b.moduli, strict=True)]
        lazy = [x % m for x, m in zip(words[:n], q.a.moduli, strict=True)]
        assert lazy == extension.extend([*residues, S_r])
        (h,) = (value for made, value in trace if made == q.shape.shown(share.result))
        seen.add(h)
        assert sum(x * B for x, B in zip(found, q.b.cofactors, strict=True)) == q.b.number(residues) + h * q.b.M
    assert {0, n - 1} <= seen <= set(range(q.shape.h_max + 1)) and len(seen) >= min(n, 10)


@pytest.mark.parametrize("name", NAMES)
def test_refusals(name):
    f = design(name).fit(97)
    with pytest.raises(UnsupportedError, match="the slot machine has the operations of kbe and hbe only"):
        f.slot_machine(4)
    with pytest.raises(UnsupportedError, match="no parameter 'rowers'; it takes w, n, interval, dsp"):
        design(name).fit(97, rowers=1)
    with pytest.raises(UnsupportedError, match="n takes 0 or 16 to 128 for this 256-bit modulus, not 15"):
        design(name).fit(SECP, n=15)
    with pytest.raises(UnsupportedError, match="the modulus of this core is built in"):
        f.at(101)
