# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Products of numbers as residues are proved; with a fault, or a bound that is too small, they are not."""

import json
import re
from dataclasses import replace
from functools import cache
from io import StringIO
from math import prod

import pytest

from marks import long
from modmill.cores.multiplier.build import build
from modmill.proofs.arithmetic.products import _kept, prove_products, starts
from modmill.proofs.checker.recheck import RefusedError
from modmill.proofs.checker.replay import check, check_runs
from modmill.proofs.netlist import Netlist

from test_products import claim_of  # isort: skip

CORES = [
    ("kbe", "29", {}), ("hbe", "29", {}), ("dq-rns", "29", {}), ("shenoy-kumaresan", "29", {}),
    *(long(case) for case in (
        ("sq-rns", "29", {}), ("kbe", "29", {"check": True}), ("kbe", "29", {"loadable": True}),
        ("kbe", "29", {"w": 34}), ("kbe", "2^31-1", {"n": 4, "rowers": 2}), ("kbe", "2^61-1", {"moduli": "light"}),
        ("kbe", "2^61-1", {"moduli": "short"}), ("hbe", "2^127-1", {"columns": 4}), ("hbe", "2^127-1", {"rowers": 4}),
        ("hbe", "2^61-1", {"check": True}), ("hbe", "2^61-1", {"loadable": True}), ("sq-rns", "2^61-1", {}),
        ("dq-rns", "2^61-1", {}), ("shenoy-kumaresan", "2^61-1", {}),
    )),
]  # fmt: skip


def read(design, modulus, settings):
    """A core, its claim, and its netlist."""
    return _read(design, modulus, json.dumps(settings))


@cache
def _read(design, modulus, text):
    settings = json.loads(text)
    core = build(design, modulus, "native", **settings)
    return core, claim_of(core), Netlist.read(core.verilog, core.top)


@pytest.mark.parametrize("case", CORES, ids=lambda case: "-".join([*case[:2], *case[2]]))
def test_products_are_proved(case):
    """With another factor, or with an end below the bound of the contract, they are not."""
    _, claim, net = read(*case)
    some, certificate = [(every := starts(net, claim))[0], every[-1]], StringIO()
    proof = prove_products(net, claim, certificate=certificate, some=some)
    assert (proof.state, len(proof.outcomes)) == ("PROVED", 2), proof.open
    runs = [(start.phase, start.full) for start in some]
    assert check_runs(net.module, claim.describe(), certificate.getvalue().splitlines(), runs) == 2
    low = replace(claim, end=claim.end // 2)
    (outcome,) = prove_products(net, low, some=some).outcomes
    assert [line.partition(":")[0] for line in outcome.open] == ["range"]
    (outcome,) = prove_products(net, replace(claim, factor=claim.factor + 1), some=some).outcomes
    assert outcome.open[0].startswith("congruence")


@pytest.mark.long
@pytest.mark.parametrize("design", ["kbe", "hbe", "sq-rns", "dq-rns", "shenoy-kumaresan"])
def test_all_runs_are_proved_at_256_bits(design):
    _, claim, net = read(design, "P-256", {})
    certificate = StringIO()
    assert prove_products(net, claim, certificate=certificate).state == "PROVED"
    assert check(net.module, claim.describe(), certificate.getvalue().splitlines()) == 4


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (r"assign h_sum = cox0_0 \+ 1'h1", "assign h_sum = cox0_0"),
        (r"cox_0 <= ring_(\w+)\[16\]", r"cox_0 <= ring_\1[15]"),
        (r"now \? h_sum\[1\] : h", "now ? 1'h0 : h"), (r"now \? h_sum\[1\] : h", "now ? h_sum[0] : h"),
        (r"out_w, load, 2'h0, wait_, base", "out_w, load, 2'h0, wait_, ~base"),
        (r"17'h0{5} : c_out_w \? b_q : w_out", "17'h00000 : c_out_w ? zeta_out : w_out"),
    ],
)  # fmt: skip
def test_a_wrong_cox_or_control_word_is_not_proved(right, wrong):
    """A cox without its offset, with another bit of zeta, or with another h; the other modulus of a rower; another word
    of the result."""
    core, claim, net = read("kbe", "29", {})
    other, count = re.subn(right, wrong, core.verilog)
    assert count == 1
    assert other != core.verilog
    (outcome,) = prove_products(Netlist.read(other, core.top), claim, some=starts(net, claim)[:1]).outcomes
    assert outcome.open


def test_a_wrong_constant_is_not_proved():
    """One bit of each of the four constants in the block RAM of `kbe` for one modulus in each base."""
    core, claim, net = read("kbe", "29", {})
    some, contents = starts(net, claim)[:1], re.search(r"INIT\(4352'h(\w+)\)", core.verilog)
    for word in range(4):
        wrong = f"{int(contents[1], 16) ^ 1 << 17 * word:x}"
        other = core.verilog.replace(contents[1], wrong.zfill(len(contents[1])))
        (outcome,) = prove_products(Netlist.read(other, core.top), claim, some=some).outcomes
        assert outcome.open, word


def test_the_end_of_a_certificate_is_checked():
    """R, Q, the divisor, the facts, moduli, scales and bounds of the claim."""
    _, claim, net = read("kbe", "29", {})
    some, certificate = starts(net, claim)[:1], StringIO()
    prove_products(net, claim, certificate=certificate, some=some)
    *lines, last = certificate.getvalue().splitlines()
    said, runs = claim.describe(), [(some[0].phase, False)]

    def refused(last, claim):
        head = json.loads(lines[0])
        text = [json.dumps([*head[:3], claim, *head[4:]]), *lines[1:], json.dumps(last)]
        try:
            check_runs(net.module, claim, text, runs)
        except RefusedError as error:
            return str(error)
        return ""

    end = json.loads(last)
    kind, number, quotient, divisor, facts = end
    assert (kind, refused(end, said)) == ("end", "")
    assert "word" in refused([kind, quotient, number, divisor, facts], said)
    for other in (divisor + 1, -divisor, 0):
        assert "divisor" in refused([kind, number, quotient, other, facts], said)
    assert refused([kind, number, quotient, divisor + said["p"], facts], said)
    for k in range(6):
        assert refused([kind, number, quotient, divisor, [*facts[:k], facts[k - 1], *facts[k + 1 :]]], said)
    form = said["result"]
    wrong = [
        {**form, "moduli": form["moduli"][::-1]}, {**form, "scales": [s + 1 for s in form["scales"]]},
        {**form, "moduli": [form["moduli"][0]] * 2}, {**form, "moduli": form["moduli"][:1], "scales": [1]},
        {**form, "moduli": [1, 1]},
    ]  # fmt: skip
    for other in wrong:
        assert refused(end, {**said, "operand": other, "result": other})
    assert "other forms" in refused(end, {**said, "operand": wrong[1]})
    assert "too large" in refused(end, {**said, "end": said["end"] // 2})
    assert "may differ" in refused(end, {**said, "largest": prod(form["moduli"])})


@pytest.mark.parametrize(
    ("first", "waits", "kept"),
    [
        ([0, 1, 2, 3, 0], [False] * 4, [0, 1, 2, 3]),
        ([0, 1, 2, 3, 0], [True, True, False, True], [2]),
        ([0, 1, 2, 3, 4], [True, True, False, True], [2, 3]),
        ([0, 1, 0, 1, 0], [False, True, False, True], [0]),
        ([0, 1, 2, 3, 0], [True] * 4, [0, 1, 2, 3]),
        ([0, 0, 0, 0, 0], [True] * 4, [0]),
    ],
)
def test_phases_that_need_a_run(first, waits, kept):
    """A phase whose operands wait needs none, but one of those which wait for each other does."""
    assert _kept(first, waits) == kept


def test_operands_that_wait_are_those_of_a_later_phase():
    """Of the 19 cycles of an interval two are different: that of the decision on acceptance, and the last one. The
    checker finds the same ones: it refuses a certificate without a run for one of them."""
    _, claim, net = read("kbe", "29", {})
    certificate, every = StringIO(), starts(net, claim)
    assert [(start.phase, start.full) for start in every] == [(9, False), (18, False), (9, True), (18, True)]
    prove_products(net, claim, certificate=certificate)
    lines = certificate.getvalue().splitlines()
    assert check(net.module, claim.describe(), lines) == 4
    last = max(k for k, line in enumerate(lines) if line.startswith('["run"'))
    with pytest.raises(RefusedError, match="no run for"):
        check(net.module, claim.describe(), lines[:last])
