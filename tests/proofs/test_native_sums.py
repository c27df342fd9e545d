# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Products of sums of residues in their native form are proved; with a fault, or with another claim, they are not."""

import json
import re
from dataclasses import replace
from io import StringIO

import pytest

from marks import long
from modmill.proofs.arithmetic.products import prove_products, starts
from modmill.proofs.checker.recheck import RefusedError
from modmill.proofs.checker.replay import check, check_runs
from modmill.proofs.mutants.mutate import mutate
from modmill.proofs.netlist import Netlist
from modmill.studies.mutate import SHORTLY, Subject

from test_residue_products import read  # isort: skip

SMALL, RING = ("sor-1m-p", "2^31-1", {}), ("sor-ring", "29", {})
CORES = [
    (SMALL, 2), (RING, 4), *(long(case) for case in (
        (("sor-1m-n", "2^31-1", {}), 2), (("sor-2m", "2^61-1", {"n": 34}), 4), (("sor-nm", "2^61-1", {"n": 34}), 4),
        (("mm-pa-n", "2^31-1", {}), 7), (("mm-pa-p", "2^31-1", {}), 7), (("mm-spa", "2^31-1", {}), 7),
        (("sor-1m-p", "2^61-1", {}), 2), (("sor-ring", "2^61-1", {}), 8), (("sor-1m-p", "P-256", {"n": 256}), 3),
    )),
]  # fmt: skip


def proved(case):
    """The claim, the netlist, the first run, and the lines of its certificate."""
    _, claim, net = read(*case)
    some, certificate = starts(net, claim)[:1], StringIO()
    proof = prove_products(net, claim, certificate=certificate, some=some)
    assert proof.state == "PROVED", proof.open
    return claim, net, some, certificate.getvalue().splitlines()


def refused(net, claim, lines, some):
    """Whether the checker refuses a certificate of these runs."""
    try:
        check_runs(net.module, claim.describe(), lines, [(start.phase, start.full) for start in some])
    except RefusedError:
        return True
    return False


@pytest.mark.parametrize("case", CORES, ids=lambda case: "-".join(case[0][:2]))
def test_products_are_proved(case):
    """There is a case for each alpha, the number of times that M is subtracted."""
    core, channels = case
    claim, net, some, lines = proved(core)
    assert not refused(net, claim, lines, some)
    assert sum(line.startswith('["run"') for line in lines) == channels + 1


def test_a_changed_certificate_is_refused():
    """Without one of the cases, with other numbers at the end, and if a name is said to be less than its word."""
    claim, net, some, lines = proved(SMALL)
    begins = [k for k, line in enumerate(lines) if line.startswith('["run"')]
    for begin, end in ((begins[1], begins[2]), (begins[-1], len(lines))):
        assert refused(net, claim, [*lines[:begin], *lines[end:]], some)
    last = json.loads(lines[-1])
    for k in (1, 2, 3):
        other = [*last[:k], last[k] + 1, *last[k + 1 :]]
        assert refused(net, claim, [*lines[:-1], json.dumps(other)], some)
    k = max(k for k, line in enumerate(lines) if line.startswith('["given"') and line.endswith(",0]"))
    assert refused(net, claim, [*lines[:k], lines[k].replace(",0]", ",-1]"), *lines[k + 1 :]], some)


@pytest.mark.parametrize(
    ("other", "open_"),
    [
        (lambda claim: {"end": claim.end // 2}, "range"), (lambda claim: {"largest": 4 * claim.largest}, "range"),
        (lambda claim: {"factor": claim.factor + 1}, "congruence"),
    ],
)  # fmt: skip
def test_another_claim_is_not_proved(other, open_):
    """Half of the bound, operands for which M is too small, and another factor."""
    _, claim, net = read(*SMALL)
    (outcome,) = prove_products(net, replace(claim, **other(claim)), some=starts(net, claim)[:1]).outcomes
    assert [line.partition(":")[0] for line in outcome.open] == [open_]


@pytest.mark.parametrize(
    ("case", "right", "wrong"),
    [
        (SMALL, r"(al0_of = 66'h7fffff5)a", r"\g<1>b"), (SMALL, r"alpha_sum_sum = 2'h2", "alpha_sum_sum = 2'h1"),
        (SMALL, r"alpha_sum\[3:2\]", "alpha_sum[2:1]"), (RING, r"alpha_first \? 6'h04", "alpha_first ? 6'h03"),
        *(long(SMALL, *pair) for pair in (
            (r"(3'h2: mul1_b1_of = 66'h)b", r"\g<1>a"), (r"(3'h1: mul1_b0_of = 66'h)2", r"\g<1>1"),
            (r"gamma1\[65:64\]", "gamma1[64:63]"), (r"mul1_c1_fold2\[66\] \? 3'h5", "mul1_c1_fold2[66] ? 3'h3"),
            (r"(mul1_a1_of = \{26'h0000000, k_sum)\[101:62\]", r"\1[100:61]"),
        )),
        *(long(RING, *pair) for pair in (
            (r"(constants\[6\] = 17'h0001)2", r"\g<1>3"),
            (r"alpha_sum\[5:3\]", "alpha_sum[4:2]"), (r"tap0\[16:14\]", "tap0[15:13]"),
            (r"entry\[16:0\] \+ \{1'h0, entry\[34:17\], 2'h0\}", "entry[16:0] + {1'h0, entry[34:17], 1'h0}"),
            (r"k_total\[35:18\]", "k_total[34:17]"),
        )),
    ],
)  # fmt: skip
def test_a_fault_is_not_proved(case, right, wrong):
    """An entry of the table of alpha, a constant of M_i and of its inverse, the offset of alpha, its bits, bits of
    gamma, a modulus, and the bits of kappa."""
    core, claim, net = read(*case)
    other, count = re.subn(right, wrong, core.verilog)
    assert count == 1
    assert other != core.verilog
    (outcome,) = prove_products(Netlist.read(other, core.top), claim, some=starts(net, claim)[:1]).outcomes
    assert outcome.open


@pytest.mark.long
@pytest.mark.parametrize("case", [SMALL, RING], ids=lambda case: case[0])
def test_all_runs_are_proved(case):
    _, claim, net = read(*case)
    certificate = StringIO()
    assert prove_products(net, claim, certificate=certificate).state == "PROVED"
    assert check(net.module, claim.describe(), certificate.getvalue().splitlines()) == len(starts(net, claim))


@pytest.mark.long
def test_no_wrong_mutant_is_proved(tmp_path):
    core, claim, _ = read("sor-1m-p", "29", {"n": 12})
    mutated = mutate(core.verilog, core.top, 14, 2)
    check = Subject.read(core.write(tmp_path / "core", check=False)).check(mutated.verilog)
    assert prove_products(mutated.resolved(0), claim).state == "PROVED"
    wrong = [number for number in range(1, 15) if check(number, SHORTLY)]
    assert len(wrong) > 8
    assert {prove_products(mutated.resolved(number), claim).state for number in wrong} == {"OPEN"}
