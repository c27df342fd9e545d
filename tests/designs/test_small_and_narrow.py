# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Moduli of one digit and settings at their limits, in machines that stand idle: all right, none without operands."""

import random
import re

import pytest
from bench import run_slowly

from marks import long
from modmill.contract import UnsupportedError
from modmill.cores.multiplier.build import build
from modmill.cores.multiplier.operands import binary_corners
from modmill.designs import design
from modmill.flow.lint import lint
from modmill.flow.simulate import Simulator, widths

EXTREMES = {
    "iddmm": (
        [{"digit": d, "stages": s, "subtract": b} for d in (2, 4, 32) for s in (1, 2, 3) for b in (True, False)]
        + [{"digit": 3, "loadable": True}, {"digit": 5, "stages": 2, "subtract": False}, {"digit": 16}]
    ),
    "wide": [{"levels": n, "subtract": b} for n in (0, 1) for b in (True, False)]
    + [{"multipliers": 3}, {"pipelined": False}, {"pipelined": False, "multipliers": 3, "subtract": False}],
    "orup": [{"digit": k, "delay": d} for k in (2, 17) for d in (0, 2, 4)] + [{"digit": 5, "loadable": True}],
    "tenca-koc": (
        [{"w": w, "pes": n, "subtract": b} for w in (1, 2, 3) for n in (1, 2, 4, 7) for b in (True, False)]
        + [{"w": 2, "pes": 3, "loadable": True}]
    ),
    "mcivor": [{"word": w, "subtract": b} for w in (1, 2, 5, 32) for b in (True, False)] + [{"loadable": True}],
    "multistep": [{"s": s, "word": w} for s in (1, 2, 9) for w in (0, 1, 3)] + [{"s": 3, "subtract": False}],
}
"""Settings at their limits and next to them; what a modulus is too small for is refused."""
MODULI = [3, 5, 7, 13, 15, 17, 97, 127, 257, 0x1FF]
"""Two bits; all ones, one and zeros; one digit of EXTREMES, and a bit more."""


def judge_slowly(fitted, count, seed=1):
    """Corner and random products one by one, with pauses before and behind each."""
    contract, rnd = fitted.contract("native"), random.Random(seed)
    top = contract.largest_operand
    numbers = [0, 1, top, *(rnd.randrange(top + 1) for _ in range(count))]
    pairs = [(rnd.choice(numbers), rnd.choice(numbers)) for _ in range(count)] + [(top, top), (0, 0)]
    idle = 2 * (contract.timing.latency + contract.timing.interval)
    results = run_slowly(fitted.component(), pairs, idle=idle, stall=7, load=contract.load)
    for (x, y), r in zip(pairs, results, strict=True):
        assert r % fitted.p == contract.expect(x, y) and r < contract.result_bound * fitted.p


@pytest.mark.parametrize("every", [5, long(3)])
@pytest.mark.parametrize("name", EXTREMES)
def test_machines_that_stand_idle(name, every):
    """In the suite two moduli for each setting, by turns; three or four with the long tests."""
    built = 0
    for k, settings in enumerate(EXTREMES[name]):
        for p in MODULI[k % every :: every]:
            try:
                fitted = design(name).fit(p, **settings)
            except UnsupportedError:
                continue
            judge_slowly(fitted, 3, k)
            built += 1
    assert built >= 8


def test_a_result_without_an_operand_is_found(monkeypatch):
    """The planted fault: digits are counted from reset on, as if a product had been accepted then."""
    judge_slowly(design("iddmm").fit(97, digit=4), 2)
    module = __import__("modmill.designs.iddmm", fromlist=["Signal"])
    signal = module.Signal
    monkeypatch.setattr(module, "Signal", lambda *a, init=0, **named: signal(*a, **named))
    with pytest.raises(AssertionError, match="a result without an operand"):
        judge_slowly(design("iddmm").fit(97, digit=4), 2)


def test_a_result_that_returns_to_the_first_element_stays_out_of_its_words():
    """The lowest bit of the last S comes back after the last pass and moves down by a bit in each element."""
    q = design("tenca-koc").fit(0x15, w=1, pes=2).params
    assert q.returns and (q.period, q.e) == (7, 6)
    judge_slowly(design("tenca-koc").fit(0x15, w=1, pes=2), 20)
    for bits, w, pes, returns in ((256, 16, 16, False), (256, 16, 32, False), (1024, 16, 32, True)):
        assert design("tenca-koc").fit((1 << bits) - 1, w=w, pes=pes).params.returns == returns


def test_words_above_a_result_do_not_push_it_out():
    """n digits of S, but fewer of the result: the next one waits in its words while the one before is not taken."""
    core = build("iddmm", 97, "native", digit=4, subtract=False)
    q = core.fitted.params
    assert q.count < q.n
    pairs = [(x, y) for x in range(0, 190, 21) for y in range(0, 190, 13)]
    results = core.simulate(pairs, stall=0.95)
    assert [r % 97 for r in results] == [core.contract.expect(x, y) for x, y in pairs]


@pytest.mark.parametrize("loadable", [True, False])
def test_additions_of_one_word_compare_nothing_with_zero(loadable):
    assert lint(build("mcivor", 7, "native", loadable=loadable).verilog) == []


@pytest.mark.parametrize("settings", [{"r": 8}, {"r": 8, "loadable": True}, {"redundant": False}])
@pytest.mark.parametrize("io", ["native", "montgomery", "plain"])
def test_loops_of_two_iterations_compare_nothing_with_zero(io, settings):
    core = build("radix64k-mul", 7, io, **settings)
    assert core.fitted.shape.steps == 2
    assert lint(core.verilog) == []


@pytest.mark.parametrize(
    ("name", "modulus", "settings"),
    [("solinas", "P-192", {}), ("wide", "0xc7c1856d", {"dsp": "25x18"}), ("wide", "0xfc000001", {})],
)
def test_constants_of_32_bits_in_verilog(name, modulus, settings):
    """-p in a part of 32 bits, where the difference is longer; and near p / 2 every carry of it."""
    core = build(name, modulus, "montgomery", **settings)
    pairs = binary_corners(core.contract.p)
    assert core.simulate(pairs) == [core.contract.expect(a, b) for a, b in pairs]
    # the planted fault: the constant as a negative number
    bad = re.sub(r"32'd(\d{10})", lambda found: f"-{(1 << 32) - int(found[1])}", core.verilog)
    assert bad != core.verilog
    run = Simulator(bad, widths=widths(core.contract)).run(*map(list, zip(*pairs, strict=True)))
    assert run.results != [core.contract.expect(a, b) for a, b in pairs]
