# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Products are proved for all operands; with a fault, or a bound that is too small, they are not."""

import json
import re
from collections import Counter
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from marks import long
from modmill.cores.multiplier.build import build
from modmill.cores.proofs.proof import claimed, prove
from modmill.proofs.arithmetic.products import prove_products, starts
from modmill.proofs.checker.recheck import RefusedError
from modmill.proofs.checker.replay import check, check_runs
from modmill.proofs.handshake.control import Pace, prove_control
from modmill.proofs.mutants.mutate import mutate
from modmill.proofs.netlist import Netlist
from modmill.studies.mutate import SHORTLY, Subject

LARGE = [
    ("multistep", "2^127-1", {}), ("multistep", "P-256", {}), ("montgomery-array", "2^31-1", {"loadable": True}),
    ("pseudo-mersenne", "2^255-19", {}), ("pseudo-mersenne", "secp256k1", {}),
    ("montgomery-array", "P-256", {"loadable": False}), ("radix64k-mul", "secp256k1", {}),
    ("orup", "secp256k1", {}), ("iddmm", "P-256", {"loadable": False}), ("mcivor", "2^61-1", {}),
    ("montgomery-array", "2^61-1", {"loadable": False}), ("pseudo-mersenne", "2^61-1", {}), ("orup", "2^61-1", {}),
]  # fmt: skip
SEARCHED = [
    ("montgomery-array", "2^61-1", {"loadable": False}), ("pseudo-mersenne", "2^61-1", {}), ("orup", "2^61-1", {}),
    ("iddmm", "2^61-1", {}), ("solinas", "2^61-1", {}), ("mcivor", "13", {}), ("radix64k-mul", "2^61-1", {}),
    ("multistep", "13", {}),
]  # fmt: skip
CORES = [
    *(case for case in SEARCHED if case not in LARGE), ("montgomery-array", "2^31-1", {"loadable": False}),
    ("orup", "2^31-1", {}), ("tenca-koc", "2^13-1", {}),
    *(long(("mcivor", p, {})) for p in ("2^31-1", "2^35-31")), long(("multistep", "2^31-1", {})),
    *((design, "2^31-1", {"loadable": True}) for design in ("orup", "iddmm", "radix64k-mul")),
    long(("pseudo-mersenne", "2^52-59", {})), ("pseudo-mersenne", "2^64-2^16-977", {}), ("wide", "2^61-1", {}),
    ("karatsuba", "2^61-1", {}), ("karatsuba-solinas", "2^61-1", {}), ("karatsuba-montgomery", "2^61-1", {}),
    *(pytest.param(case, marks=pytest.mark.long) for case in LARGE),
]  # fmt: skip


def claim_of(core):
    return claimed(core.contract.describe(), Path("contract.json"))


@pytest.mark.parametrize("case", CORES, ids=lambda case: "-".join([*case[:2], *case[2]]))
def test_products_are_proved(case):
    design, modulus, settings = case
    core = build(design, modulus, "native", **settings)
    claim, net = claim_of(core), Netlist.read(core.verilog, core.top)
    every = starts(net, claim)
    some, certificate = [every[0], every[-1]], StringIO()
    proof = prove_products(net, claim, certificate=certificate, some=some)
    assert (proof.state, len(proof.outcomes)) == ("PROVED", 2), proof.open
    runs = [(start.phase, start.full) for start in some]
    assert check_runs(net.module, claim.describe(), certificate.getvalue().splitlines(), runs) == 2
    if case not in SEARCHED:  # the search for closer bounds takes longer there
        return
    low = replace(claim, end=claim.end - claim.p // 2)
    (outcome,) = prove_products(net, low, some=some).outcomes
    assert [line.partition(":")[0] for line in outcome.open] == ["range"]
    (outcome,) = prove_products(net, replace(claim, factor=claim.factor + 1), some=some).outcomes
    assert outcome.open[0].startswith("congruence")


SUMS = [
    ("sor-1m-p", "2^17-1", {}, 2), ("sor-1m-p", "2^31-1", {}, 2), ("sor-1m-p", "2^61-1", {}, 2),
    ("sor-1m-p", "P-256", {"n": 256}, 3),
]  # fmt: skip


@pytest.mark.long  # tests/proofs/test_native_sums.py has shorter ones
@pytest.mark.parametrize("case", SUMS, ids=lambda case: "-".join(case[:2]))
def test_products_of_sums_of_residues_are_proved(case):
    """There is a case for each alpha, the number of times that M is subtracted; with another constant for one alpha, or
    without its case in the certificate, nothing is proved."""
    design, modulus, settings, channels = case
    core = build(design, modulus, "plain", **settings)
    claim, net = claim_of(core), Netlist.read(core.verilog, core.top)
    some, certificate = starts(net, claim)[:1], StringIO()
    assert prove_products(net, claim, certificate=certificate, some=some).state == "PROVED"
    lines, runs = certificate.getvalue().splitlines(), [(some[0].phase, False)]
    assert check_runs(net.module, claim.describe(), lines, runs) == 1
    begins = [k for k, line in enumerate(lines) if line.startswith('["run"')]
    assert len(begins) == 2 * (channels + 1)  # each alpha, with and without the last subtraction
    for begin, end in ((begins[1], begins[2]), (begins[-1], len(lines))):
        with pytest.raises(RefusedError):
            check_runs(net.module, claim.describe(), [*lines[:begin], *lines[end:]], runs)
    found = re.search(r"1: al0_of = \d+'h\w*?(\w);", core.verilog)
    at = found.start(1)
    wrong = f"{core.verilog[:at]}{int(found[1], 16) ^ 1:x}{core.verilog[at + 1 :]}"
    (outcome,) = prove_products(Netlist.read(wrong, core.top), claim, some=some).outcomes
    assert outcome.open


@pytest.mark.long
def test_no_smaller_bound_is_proved_where_the_result_is_compared_with_the_modulus():
    """The carry of a sum tells that a number is below p: its bound is p - 1, and no less."""
    core = build("iddmm", "P-256", "native", loadable=False)
    claim, net = claim_of(core), Netlist.read(core.verilog, core.top)
    (outcome,) = prove_products(net, replace(claim, end=claim.end - 1), some=starts(net, claim)[:1]).outcomes
    assert claim.end == claim.p
    assert [line.partition(":")[0] for line in outcome.open] == ["range"]


def is_proved(net, core):
    """Whether products and control are, as `prove` does it."""
    pace = Pace(core.contract.timing.latency, core.contract.timing.interval, core.contract.power_up)
    return prove_products(net, claim_of(core)).state == "PROVED" and prove_control(net, pace).state == "PROVED"


@pytest.mark.parametrize(
    ("count", "design", "modulus", "settings"),
    [
        (4, "orup", "29", {"digit": 3, "delay": 1}), long(4, "iddmm", "2^61-1", {}),
        long(100, "orup", "29", {"digit": 3, "delay": 1}),
    ],
)  # fmt: skip
def test_no_wrong_mutant_is_proved(tmp_path, count, design, modulus, settings):
    core = build(design, modulus, "native", **settings)
    subject = Subject.read(core.write(tmp_path / "core", check=False))
    mutated = mutate(core.verilog, core.top, count, 2)
    check, states = subject.check(mutated.verilog), Counter()
    assert is_proved(mutated.resolved(0), core) and not check(0, SHORTLY)
    for number, mutant in enumerate(mutated.mutants, 1):
        fault, proved = check(number, SHORTLY), is_proved(mutated.resolved(number), core)
        wrong = bool(fault) and "were taken in" not in fault  # when operands are taken is no part of the theorem
        assert not (wrong and proved), mutant.line
        states[wrong, proved] += 1
    assert states.total() == count
    assert states[True, False] > count / 2 - 1


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        long("(S1 & S2) |", "(S1 & ~S2) |"), long("S1 ^ S2 ^ T", "S1 ^ S2 ^ ~T"),
        ("S1_after[0] ^ S2_after[0]", "S1_after[0]"), ("fits ? difference : number", "number"),
        ("S2 <= accept", "S2 <= last"),
    ],
)  # fmt: skip
def test_a_wrong_carry_save_addition_is_not_proved(right, wrong):
    core = build("mcivor", "13", "native")
    assert core.verilog.count(right) == 1
    proof = prove_products(Netlist.read(core.verilog.replace(right, wrong), core.top), claim_of(core))
    assert proof.state == "OPEN"


@pytest.mark.parametrize(
    ("design", "modulus", "right", "wrong"),
    [
        ("wide", "2^61-1", "v_sum + T7[0]", "v_sum"), ("radix64k-mul", "2^61-1", "T1[15:0] + T0[16]", "T1[15:0]"),
        long("pseudo-mersenne", "2^52-59", "{17{total[38]}}", "{17{1'h0}}"),
        ("karatsuba-solinas", "2^61-1", "high_exact + high_carry", "high_exact"),
        long("mcivor", "2^35-31", "v_total_sum + carry", "v_total_sum"),
        long("mcivor", "2^35-31", "difference_total_sum + no_borrow", "difference_total_sum + v_last"),
        long("mcivor", "2^35-31", "fits <= v_valid ? difference_total[32]", "fits <= v_valid ? difference_total[31]"),
    ],
)  # fmt: skip
def test_a_lost_carry_or_sign_is_not_proved(design, modulus, right, wrong):
    core = build(design, modulus, "native")
    assert right in core.verilog
    proof = prove_products(Netlist.read(core.verilog.replace(right, wrong), core.top), claim_of(core))
    assert proof.state == "OPEN"


def test_a_folder_says_what_is_proved(tmp_path):
    folder = build("orup", "2^61-1", "native").write(tmp_path / "core", check=False)
    proof = prove(folder, products=True)
    assert proof.state == "PROVED"
    assert any(line.startswith("PROVED products of core") for line in proof.lines)
    assert proof.describe()["products"]["state"] == "PROVED"
    record = folder / "contract.json"
    contract = json.loads(record.read_text())
    record.write_text(json.dumps({**contract, "result_bound": "1"}))
    proof = prove(folder, products=True)
    assert (proof.timing, proof.state) == ("PROVED", "OPEN")
    assert any("remains" in line and "range" in line for line in proof.lines)
    record.write_text(json.dumps({**contract, "operand": {"kind": "residues"}}))
    with pytest.raises(ValueError, match="'moduli' is missing or malformed"):
        prove(folder, products=True)


@pytest.mark.parametrize("design", ["orup", long("montgomery-array")])
def test_another_loaded_modulus_is_not_proved(design):
    core = build(design, "2^31-1", "native", loadable=True)
    claim, net = claim_of(core), Netlist.read(core.verilog, core.top)
    some = starts(net, claim)[:1]
    for k, word in enumerate(claim.load):
        other = replace(claim, load=(*claim.load[:k], word ^ 2, *claim.load[k + 1 :]))
        assert prove_products(net, other, some=some).state == "OPEN"
    for load in ((*claim.load, 0), claim.load[:-1]):
        (outcome,) = prove_products(net, replace(claim, load=load), some=some).outcomes
        assert outcome.open


def test_phases_with_the_same_state_are_one_run():
    """The machine of `radix64k` waits in one state. Operands wait in all cycles of an interval of `pseudo-mersenne` but
    one, and `iddmm` takes them in six different states."""
    for design, count in (("radix64k-mul", 2), ("multistep", 2), ("pseudo-mersenne", 2), ("iddmm", 12)):
        core = build(design, "2^61-1", "native")
        claim, net, text = claim_of(core), Netlist.read(core.verilog, core.top), StringIO()
        assert len(starts(net, claim)) == count
        if design == "radix64k-mul":
            assert prove_products(net, claim, certificate=text).state == "PROVED"
            lines = text.getvalue().splitlines()
            assert check(net.module, claim.describe(), lines) == count
            last = max(k for k, line in enumerate(lines) if line.startswith('["run"'))
            with pytest.raises(RefusedError, match="no run for"):
                check(net.module, claim.describe(), lines[:last])
