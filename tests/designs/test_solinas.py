# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Montgomery multiplication for sparse primes: exact bounds, a quotient without a multiplier, refusals, the machine."""

import random

import pytest
from bench import first_difference, operands, run

from marks import long
from modmill.contract import UnsupportedError
from modmill.cores.multiplier.build import build
from modmill.cores.multiplier.verify import Report, verify
from modmill.designs import design
from modmill.designs.solinas.product_columns import overflow
from modmill.designs.solinas.sparse_quotient import Term, carry_most
from modmill.numbers.moduli import parse_modulus
from modmill.proofs.handshake.constant_time import constant_time
from modmill.proofs.netlist import Netlist

SOLINAS = design("solinas")
SERVED = [
    ("M127", 1), ("P-192", 1), ("P-192", 2), ("P-224", 1), ("P-224", 2), ("P-256", 1), ("P-256", 2), ("P-256", 3),
    ("P-384", 1), ("P-384", 2), ("P-521", 1), ("P-521", 8), ("SM2", 1), ("SM2", 2), ("Ed448", 3), ("Goldilocks", 1),
]  # fmt: skip


def fit(modulus, **settings):
    return SOLINAS.fit(parse_modulus(modulus).value, **settings)


@pytest.mark.parametrize(("modulus", "rows"), SERVED)
def test_the_terms_are_the_modulus(modulus, rows):
    fitted = fit(modulus, rows=rows)
    q = fitted.params
    near = sum(-(1 << t.e) if t.negative else 1 << t.e for t in q.terms)
    assert near - 1 == fitted.p if not q.added else near + 1 == 2 - q.added
    assert min(t.e for t in q.terms) >= 2 * q.word and max(t.e for t in q.terms) < q.n


@pytest.mark.parametrize(("modulus", "rows"), SERVED)
def test_intermediates_stay_within_their_bounds(modulus, rows):
    """Columns and carries as wide as they are made; q as defined; the result at most one p above x y / R."""
    fitted = fit(modulus, rows=rows)
    q, p, contract = fitted.params, fitted.p, fitted.contract("native")
    assert contract.closed and contract.operand_bound >= 2
    most = overflow(rows) << q.r | (1 << q.r) - 1
    digits_most = sum(overflow(rows) << q.r * (k + 1) for k in range(rows))
    reached = 0
    for x, y in operands(contract, 20) + fitted.corners():
        trace = dict(fitted.trace(x, y))
        words = [trace[f"Q{i}"] for i in range(q.steps)]
        for i in range(q.steps):
            assert max(trace[f"T{i}"]) <= overflow(rows) << q.r <= most
            assert sum(t << q.r * k for k, t in enumerate(trace[f"T{i}"][:rows])) <= digits_most
        Q = sum(word << q.word * i for i, word in enumerate(words))
        v = x * y - Q * p if q.added else x * y + Q * p
        assert v % fitted.R == 0
        assert max(trace["h"]) < 1 << q.r + 1 and trace["h"][-1] < 1 << q.r
        z = trace["z"]
        assert z == v // fitted.R + q.added < contract.result_bound * p
        assert z % p == x * y * fitted.factor % p
        reached = max(reached, z)
    assert reached > contract.result_bound * p * 9 / 10, "the bound is not approached"


def test_carries_reach_their_bound():
    """All digits and terms at their largest, in every word: the carry that the bound allows, and no more."""
    terms = (Term(40, False), Term(50, True), Term(60, False))
    for word, digits_most in ((16, 3 << 16), (17, 3 << 17), (34, (5 << 17) + (5 << 34))):
        most, carry = carry_most(digits_most, terms, word), 1
        for _ in range(10):
            carry = (digits_most + 3 * ((1 << word) - 1) + carry) >> word
            assert carry <= most
        assert carry == most


SIMULATED = {("P-192", 2), ("P-224", 1), ("P-256", 3), ("SM2", 1), ("Goldilocks", 1)}
"""One, two and three rows, p = 1 and p = -1 modulo a power of two."""


@pytest.mark.parametrize(
    ("modulus", "rows"),
    [(pytest.param if s in SIMULATED else long)(*s) for s in SERVED if s[0] not in ("P-521", "Ed448")],
)
def test_machine_with_its_intermediates(modulus, rows):
    fitted = fit(modulus, rows=rows)
    for io in ("native", "montgomery", "plain"):
        contract, core = fitted.contract(io), fitted.core(io)
        p = fitted.p
        pairs = [*operands(contract, 3), (0, 0), (p - 1, p - 1), (1, p - 1), (contract.largest_operand,) * 2]
        pairs += fitted.corners()[40:60:4] if io == "native" else []
        for (x, y), (r, seen, latency) in zip(pairs, run(core, pairs), strict=True):
            if io == "native":
                trace = list(fitted.trace(x, y))
                assert first_difference(trace, seen) == "" and r == trace[-1][1]
                assert {f"T{fitted.params.steps - 1}", f"Q{fitted.params.steps - 1}", "h", "f"} <= seen.keys()
            assert r % p == contract.expect(x, y) and r < contract.result_bound * p
            assert latency == contract.timing.latency


@pytest.mark.parametrize(
    ("modulus", "settings"),
    [
        ("P-192", {}),
        long("P-256", {}),
        long("P-256", {"rows": 2, "interval": 11}),
        long("P-224", {"rows": 2}),
        long("P-384", {}),
        long("P-521", {"rows": 8}),
    ],
)
def test_built_cores_pass_the_check(modulus, settings):
    for io in ("native", "montgomery", "plain"):
        core = build("solinas", modulus, io, **settings)
        report = Report(core.name)
        verify(core, core.verilog, report, vectors=300)
        assert report.passed, report.failures


def test_a_quotient_that_is_not_reset_between_products_is_caught():
    """The planted fault: words of the product before this one count as words of this one."""
    core = build("solinas", "P-192", "native")
    fault = core.verilog.replace("1'h0 : reached_3_1", "1'h1 : reached_3_1")
    assert fault != core.verilog, "the fault was not planted"
    bad = Report("bad")
    verify(core, fault, bad, vectors=40)
    assert not bad.passed


def test_timing_depends_on_no_operand():
    for rows in (1, 2):
        core = build("solinas", "P-192", "native", rows=rows)
        assert constant_time(Netlist.read(core.verilog, core.top)).path == ()


def test_sizes():
    one, two = fit("P-256"), fit("P-256", rows=2)
    assert [f.cost.dsp for f in (one, two)] == [16, 32]
    assert [f.contract("native").timing.interval for f in (one, two)] == [16, 8]
    for fitted in (one, two):
        assert fitted.schedule.latency == fitted.contract("native").timing.latency
        assert max(fitted.schedule.utilisation().values()) == 1
    assert fit("P-256", spare=3).representation.width == 259


@pytest.mark.parametrize(
    ("modulus", "settings", "reason"),
    [
        ("secp256k1", {}, r"p = -1 mod 2\^4; 1 digits of at least 8 bits .* mod 2\^16"),
        ("2^255-19", {}, r"p = 1 mod 2\^2; "),
        ("P-256", {"rows": 7}, "rows takes 1 to 6 for this 256-bit modulus, not 7: p = 1 or -1"),
        ("P-256", {"interval": 15}, "interval takes 0 or 16 to .* not 15: at least the cycles of a product"),
        ("P-256", {"rows": 0}, "takes a whole number from 1 to [0-9]+, not 0"),
        ("P-256", {"spare": 0}, "takes a whole number from 1 to [0-9]+, not 0"),
    ],
)
def test_refusals_say_why(modulus, settings, reason):
    with pytest.raises(UnsupportedError, match=reason):
        fit(modulus, **settings)


def test_dense_moduli_are_refused():
    rnd = random.Random(3)
    p = rnd.getrandbits(64) | 1 << 64
    p = (p << 64) - 1
    with pytest.raises(UnsupportedError, match=r"p \+ 1 has \d+ signed digits, at most 6"):
        SOLINAS.fit(p)


@pytest.mark.parametrize(("p", "rows"), [(2**17 - 1, 1), (2**127 - 1, 2), (2**224 - 2**96 + 1, 1)])
def test_no_carry_leaves_the_highest_column(p, rows):
    fitted = design("solinas").fit(p, rows=rows)
    for a, b in fitted.corners():
        for value, columns in fitted.trace(a, b):
            if value[0] == "T" and "." not in value:
                assert columns[-1] < 1 << fitted.params.r
