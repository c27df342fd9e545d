# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Multi-step Montgomery multiplication: all operands of small moduli, the paper's clocks, and its errors."""

import pytest
from bench import judge_all

from modmill.contract import UnsupportedError
from modmill.cores.multiplier.build import build
from modmill.cores.multiplier.verify import Report, verify
from modmill.designs import design
from modmill.designs.multistep.design import PRINTED_CLOCKS, step
from modmill.numbers.moduli import parse_modulus
from modmill.proofs.handshake.constant_time import constant_time
from modmill.proofs.netlist import Netlist

SECP256K1 = parse_modulus("secp256k1").value


def fit(p, **settings):
    return design("multistep").fit(p, **settings)


@pytest.mark.parametrize("subtract", [True, False])
@pytest.mark.parametrize(("p", "s"), [(3, 1), (5, 2), (7, 3), (9, 16), (13, 1), (15, 3), (17, 2)])
def test_all_operands_in_the_machine(p, s, subtract):
    fitted = fit(p, s=s, subtract=subtract)
    judge_all(fitted, 1 if subtract else 3)


@pytest.mark.parametrize("m", [3, 5, 7, 9, 11, 13, 15])
def test_p_is_below_m_plus_y_at_every_step(m):
    k, reached = m.bit_length(), 0
    for x in range(1 << k):
        for y in range(1 << k):
            s = c = 0
            for i in range(k):
                s, c = step(s, c, y if x >> i & 1 else 0, m)
                assert s + c < m + y or s + c == y == 0
                reached = max(reached, s + c - y)
    assert reached == m - 1, "the bound is not attained"


def test_clocks_of_the_loop():
    assert fit(SECP256K1).params.loop == PRINTED_CLOCKS
    for s in (1, 2, 3, 5, 7, 16, 100, 256):
        q = fit(SECP256K1, s=s).params
        assert q.s * (q.loop - 1) < q.k <= q.s * q.loop


def test_the_final_addition_hides_behind_the_loop():
    """The interval is the loop; the addition, the subtraction and the choice are in the latency."""
    for s in (1, 2, 4, 8, 16, 32):
        fitted = fit(SECP256K1, s=s)
        plan, q = fitted.schedule, fitted.params
        assert plan.interval == q.loop
        assert plan.latency == 1 + q.loop + q.words + 2
    narrow = fit(SECP256K1, s=64, word=16)
    assert narrow.schedule.interval > narrow.params.loop


def test_refusals():
    with pytest.raises(UnsupportedError, match="s takes a whole number from 1 to 8194, not 0"):
        fit(97, s=0)
    with pytest.raises(UnsupportedError, match="odd and at least 3, got 96"):
        fit(96)
    with pytest.raises(UnsupportedError, match="built in"):
        fit(97).at(95)
    with pytest.raises(UnsupportedError, match=r"odd, at least 3 and below 2\^7, got 96"):
        fit(97, loadable=True).at(96)
    with pytest.raises(UnsupportedError, match="got 129"):
        fit(97, loadable=True).at(129)


def test_rtl_of_a_loadable_core_depends_on_the_width_only():
    one, other = (build("multistep", str(p), "native", s=3, loadable=True) for p in (97, 127))
    assert one.verilog == other.verilog
    assert build("multistep", "97", "native", s=3).verilog != build("multistep", "127", "native", s=3).verilog


def test_a_core_that_takes_operands_while_a_modulus_is_offered_is_caught():
    core = build("multistep", "97", "native", s=3, loadable=True)
    good = Report("good")
    verify(core, core.verilog, good, vectors=40)
    assert good.passed and good.counts["loaded"]
    assert "~k_valid" in core.verilog
    bad = Report("bad")
    verify(core, core.verilog.replace("~k_valid", "1'h1"), bad, vectors=40)
    assert not bad.passed


@pytest.mark.parametrize("name", ["multistep", "tenca-koc", "mcivor", "iddmm", "orup", "wide"])
def test_timing_depends_on_no_operand_and_no_modulus(name):
    settings = {} if name == "wide" else {"loadable": True}
    core = build(name, "2^61-1", "native", **settings)
    assert constant_time(Netlist.read(core.verilog, core.top)).path == ()
