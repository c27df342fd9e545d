# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The pseudo-Mersenne array as a design: exact bounds of every fold, which moduli are served and which refused."""

import random
from fractions import Fraction

import pytest

from marks import long
from modmill.contract import UnsupportedError
from modmill.cores.multiplier.build import build
from modmill.cores.multiplier.verify import Report, verify
from modmill.designs import design
from modmill.numbers.moduli import parse_modulus

ARRAY = design("pseudo-mersenne")
SERVED = ["Ed25519", "secp256k1", "Ed448", "P-192", "P-224", "P-384", "P-521", "secp160r1", "M127", "Goldilocks"]


@pytest.mark.parametrize("modulus", SERVED)
def test_folds_stay_within_their_bounds(modulus):
    p = parse_modulus(modulus).value
    fitted = ARRAY.fit(p)
    params, contract = fitted.params, fitted.contract("native")
    rnd = random.Random(p)
    assert pow(2, params.n, p) == params.C % p
    assert contract.closed and contract.factor == 1 and contract.operand_bound >= 2**1 * Fraction(1 << params.n, 2 * p)
    ends = [(1 << params.n + 1) - 1, 1 << params.n, (1 << params.n) - 1, 0, 1]
    for bound, after in zip(params.bounds, params.bounds[1:], strict=False):
        h = (bound - 1) >> params.n
        worst = [bound - 1, (h << params.n) - 1 if h else 0, (h << params.n) - params.C, *ends]
        worst += [rnd.randrange(bound) for _ in range(50)]
        for v in worst:
            if 0 <= v < bound:
                assert (v >> params.n) * params.C + v % (1 << params.n) < after
    assert params.bounds[0] == ends[0] ** 2 + 1
    for x, y in [(a, b) for a in ends for b in ends]:
        z = fitted.multiply(x, y)
        assert z % p == x * y % p and z < contract.result_bound * p


@pytest.mark.parametrize("modulus", SERVED)
def test_the_last_fold_leaves_less_than_two_moduli(modulus):
    p = parse_modulus(modulus).value
    params = ARRAY.fit(p).params
    rnd = random.Random(p)
    for v in [params.bounds[-1] - 1, p, 2 * p - 1, *(rnd.randrange(params.bounds[-1]) for _ in range(100))]:
        folded = (v >> params.k) * params.c + v % (1 << params.k)
        assert folded < params.top_bound <= 2 * p and folded % p == v % p


def test_sizes():
    ed25519, secp256k1 = (ARRAY.fit(parse_modulus(name).value) for name in ("Ed25519", "secp256k1"))
    assert (ed25519.cost.dsp, ed25519.contract("native").timing.interval) == (15, 15)
    assert (secp256k1.cost.dsp, secp256k1.contract("native").timing.interval) == (16, 16)
    assert max(ed25519.schedule.utilisation().values()) == 1


@pytest.mark.parametrize(
    "p", [2**52 - 47, long(2**68 - 5), long(2**64 - 2**32 + 1), long(2**64 + 13), long(2**85 - 2**30 + 3)]
)
def test_machine_against_integers(p):
    for io in ("native", "plain"):
        try:
            core = build("pseudo-mersenne", str(p), io)
        except UnsupportedError as refusal:
            assert p == 2**64 + 13, refusal  # c has as many bits as p
            return
        report = Report(core.name)
        verify(core, core.verilog, report, vectors=300)
        assert report.passed, report.failures


@pytest.mark.parametrize(
    ("p", "reason"),
    [
        (2**256 - 2**224 + 2**192 + 2**96 - 1, "c = 2.256 - p has 224 bits: 4 folds at 2.272"),
        (parse_modulus("brainpoolP256r1").value, "c = 2.256 - p has 80 signed digits, at most 16"),
        (97, "at least 52 bits, this one has 7"),
    ],
)
def test_refusals_say_why(p, reason):
    with pytest.raises(UnsupportedError, match=reason):
        ARRAY.fit(p)


def test_wrong_streams_are_refused():
    with pytest.raises(UnsupportedError, match=r"streams takes 0 or 4 to 271 .*, not 3"):
        ARRAY.fit(2**255 - 19, streams=3)
    with pytest.raises(UnsupportedError, match="coprime to 5, not 15"):
        ARRAY.fit(2**255 - 19, streams=5)
