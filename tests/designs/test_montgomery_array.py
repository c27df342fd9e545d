# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The Montgomery array as a design: exact bounds, one RTL for all moduli of a width, small moduli exhaustively."""

import random
import re
from fractions import Fraction

import pytest
from bench import judge

from marks import long
from modmill.contract import UnsupportedError
from modmill.cores.multiplier.build import build
from modmill.cores.multiplier.verify import Report, verify
from modmill.designs import design
from modmill.numbers.moduli import parse_modulus

ARRAY = design("montgomery-array")
DIGIT = 17


@pytest.mark.parametrize("bits", [2, 17, 66, 67, 253, 256, 1024, 4096])
def test_bounds_hold_at_their_ends_and_close(bits):
    rnd = random.Random(bits)
    for p in ((1 << bits) - 1, (1 << bits - 1) + 1, rnd.getrandbits(bits) | 1 | 1 << bits - 1):
        fitted = ARRAY.fit(p)
        contract = fitted.contract("native")
        R = fitted.params.R
        assert 4 * p <= R and contract.operand_bound >= 2 and contract.closed
        assert fitted.factor * R % p == 1 % p
        top = contract.largest_operand
        assert (top + p).bit_length() <= DIGIT * fitted.params.digits, "S must fit its digits in every iteration"
        for x, y in [(top, top), (top, 1), (2 * p - 1, 2 * p - 1), *fitted.corners()[::7]]:
            s = fitted.multiply(x, y)
            assert s * R % p == x * y % p
            assert s < contract.product(Fraction(x + 1, p), Fraction(y + 1, p)) * p
        assert fitted.multiply(2 * p - 1, 2 * p - 1) < 2 * p


def test_sizes_for_256_bits():
    fitted = ARRAY.fit(parse_modulus("secp256k1").value)
    timing = fitted.contract("native").timing
    assert (fitted.cost.dsp, timing.interval, fitted.params.digits, fitted.params.streams) == (33, 16, 16, 15)
    assert max(fitted.schedule.utilisation().values()) == 1


@pytest.mark.parametrize("bits", [61, 192, 256, 384, 512, 1024, 2048, 4096])
def test_a_product_takes_as_many_cycles_as_digits(bits):
    params = ARRAY.fit((1 << bits) - 1).params
    assert params.interval == max(params.digits, params.digits // 2 + params.digits % 2 + 5)
    assert params.frame.timing.in_flight < params.frame.numbers


def test_one_rtl_for_all_moduli_of_a_width():
    texts = {build("montgomery-array", str(p), "native").verilog for p in (2**61 - 1, 2**60 + 33, 3**38)}
    assert len(texts) == 1
    fixed = {build("montgomery-array", str(p), "native", loadable=False).verilog for p in (2**61 - 1, 2**60 + 33)}
    assert len(fixed) == 2


@pytest.mark.parametrize(("p", "loadable"), [(3, True), (7, False), (13, True), (31, True)])
def test_small_moduli_exhaustively(p, loadable):
    core = build("montgomery-array", str(p), "montgomery", loadable=loadable)
    report = Report(core.name)
    verify(core, core.verilog, report, vectors=2 * p * p)
    assert report.passed, report.failures
    assert report.counts["random"] == 3 * p * p


@pytest.mark.parametrize(
    ("columns", "dsp", "interval"), [(8, 19, 33), (6, 15, 49), (4, 11, 65), (3, 9, 97), (2, 7, 129), (1, 5, 257)]
)
def test_fewer_columns_take_more_cycles(columns, dsp, interval):
    fitted = ARRAY.fit(2**256 - 189, columns=columns)
    assert (fitted.cost.dsp, fitted.contract("native").timing.interval) == (dsp, interval)
    assert fitted.forms == ("plain", "montgomery", "native")
    full = ARRAY.fit(2**256 - 189)
    x, y = full.corners()[-1]
    one, other = dict(fitted.trace(x, y)), dict(full.trace(x, y))
    names = {f"{letter}{i}" for letter in ("xy", "t", "q", "z") for i in range(full.params.digits)} | {"S"}
    assert {name: one[name] for name in names} == {name: other[name] for name in names}


@pytest.mark.parametrize(("p", "columns"), [(2**61 - 1, 1), (2**80 - 65, 2)])
@pytest.mark.parametrize("loadable", [False, True])
def test_folded_machine_against_integers(p, columns, loadable):
    core = build("montgomery-array", str(p), "native", columns=columns, loadable=loadable)
    report = Report(core.name)
    verify(core, core.verilog, report, vectors=100)
    assert report.passed, report.failures


def test_folded_machine_intermediate_by_intermediate():
    fitted = ARRAY.fit(2**66 - 5, columns=2)
    for seen in judge(fitted, fitted.corners()[::9]):
        assert seen.keys() == {step.name for step in fitted.schedule.steps}


@pytest.mark.parametrize("p", [3, 2**61 - 1, 2**255 + 95, 2**256 - 189, 2**1023 + 1])
def test_a_product_in_one_step_is_that_of_the_digits(p):
    fitted, rnd = ARRAY.fit(p), random.Random(p)
    top = fitted.contract("native").largest_operand
    for a, b in [*fitted.corners(), *((rnd.randrange(top), rnd.randrange(top)) for _ in range(50))]:
        *_, (_, s) = fitted.trace(a, b)
        assert fitted.multiply(a, b) == s


def test_dsp_blocks_for_time_over_a_factor_of_26():
    few, many = ARRAY.fit(2**256 - 189, columns=1), ARRAY.fit(2**256 - 189, lanes=4)
    assert (few.cost.dsp, few.contract("native").timing.interval) == (5, 257)
    assert (many.cost.dsp, many.contract("native").timing.interval) == (132, 4)
    assert ARRAY.fit(2**256 - 189, lanes=3).contract("native").timing.interval == 6  # of 18
    with pytest.raises(UnsupportedError, match=r"no number of streams from \d+ to \d+ suits 2 lanes"):
        ARRAY.fit(2**256 - 189, lanes=2, columns=8)


@pytest.mark.parametrize(
    ("lanes", "io", "loadable", "p"),
    [
        (2, "native", True, 2**61 - 1), (2, "native", False, 2**61 - 1), (3, "native", False, 2**127 - 1),
        long(4, "montgomery", True, 2**61 - 1), long(7, "native", False, 2**61 - 1),
    ],
)  # fmt: skip
def test_lanes_against_integers(lanes, io, loadable, p):
    """Every lane has the modulus before a pair is taken; gaps and stalls let pairs pass over lanes. A lane alone takes
    its first operands in slot 1 at 2^61 - 1, in slot 2 at 2^127 - 1."""
    core = build("montgomery-array", str(p), io, lanes=lanes, loadable=loadable)
    report = Report(core.name)
    verify(core, core.verilog, report, vectors=300)
    assert report.passed, report.failures


def test_a_lane_that_loses_its_turn_is_found():
    core = build("montgomery-array", str(2**61 - 1), "native", lanes=2, loadable=False)
    text = re.sub(r"assign w_data = may1 .*;", "assign w_data = 1'd0;", core.verilog)
    assert text != core.verilog
    report = Report(core.name)
    verify(core, text, report, vectors=300)
    assert any("not congruent" in line or "results of" in line for line in report.failures), report.failures


def test_refusals():
    for even, shown in ((4, "4"), (2**256, r"0x1000000000000000\.\.\.00000000 \(257 bits\)")):
        with pytest.raises(UnsupportedError, match=f"must be odd and at least 3, got {shown}$"):
            ARRAY.fit(even)
    with pytest.raises(UnsupportedError, match="at most 4096 bits, this one has 4097"):
        ARRAY.fit(2**4096 + 1)
    with pytest.raises(UnsupportedError, match="digits takes 0 or 16 to 256 for this 256-bit modulus, not 15"):
        ARRAY.fit(2**256 - 1, digits=15)
    with pytest.raises(UnsupportedError, match=r"streams takes 0 or 15 to 271 .*, not 14"):
        ARRAY.fit(2**256 - 1, streams=14)
    with pytest.raises(UnsupportedError, match="coprime to 16, not 16"):
        ARRAY.fit(2**256 - 1, streams=16)
    loaded = ARRAY.fit(2**31 - 1)
    for p in (2**31 + 1, 4, 1):
        with pytest.raises(UnsupportedError, match=f"odd, at least 3 and below 2\\^31, got {p}"):
            loaded.at(p)
    with pytest.raises(UnsupportedError, match="built in"):
        ARRAY.fit(97, loadable=False).at(95)
