# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The wide multiplier: all operands of small moduli, three slots that never meet, and the printed tiles."""

import pytest
from bench import judge_all

from modmill.contract import UnsupportedError
from modmill.cores.multiplier.build import build
from modmill.designs import design
from modmill.numbers.moduli import parse_modulus
from modmill.schedule import Schedule, ScheduleError


def fit(p, **settings):
    return design("wide").fit(p, **settings)


@pytest.mark.parametrize("pipelined", [True, False])
@pytest.mark.parametrize("multipliers", [1, 3])
@pytest.mark.parametrize(("p", "subtract"), [(3, True), (5, True), (7, False), (9, True), (13, True), (15, False)])
def test_all_operands_in_the_machine(p, subtract, multipliers, pipelined):
    judge_all(fit(p, subtract=subtract, multipliers=multipliers, pipelined=pipelined), step=1 if subtract else 5)


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_a_product_without_pipelining_takes_three_clocks(levels):
    """[15] of Zhang and Dong: 3 clocks, here for x y, q and q m; acceptance, addition and subtraction come on top."""
    p = 2**61 - 1
    fitted = fit(p, levels=levels, pipelined=False)
    starts = [step.start for step in fitted.schedule.steps[:3]]
    assert (fitted.schedule.interval, starts) == (3, [1, 2, 3])
    assert fit(p, levels=levels, pipelined=False, multipliers=3).schedule.interval == 1
    core = build("wide", p, "native", levels=levels, pipelined=False)
    pairs = [(x, y) for x, y in fitted.corners() if x < p and y < p]
    assert core.simulate(pairs) == [fitted.multiply(x, y) for x, y in pairs]


def test_without_pipelining_the_text_does_not_repeat_itself():
    """Each sum has a name; without it Amaranth writes the sum wherever it is used, and each level triples the text."""
    p = parse_modulus("P-192").value
    texts = [build("wide", p, "native", levels=3, pipelined=pipelined).verilog for pipelined in (True, False)]
    assert len(texts[1]) < len(texts[0])


def test_printed_tiles():
    p = parse_modulus("secp256k1").value
    assert fit(p).cost.dsp == 81
    assert fit(p, levels=0).cost.dsp == 256


@pytest.mark.parametrize(
    ("p", "levels"),
    [(97, 0), (97, 4), *((p, levels) for p in (2**61 - 1, 2**127 - 1, 2**256 - 189) for levels in (0, 1, 4))],
)
def test_the_three_products_never_meet(p, levels):
    schedule = fit(p, levels=levels).schedule
    assert schedule.interval in (3, 4)
    if schedule.interval == 4:
        with pytest.raises(ScheduleError, match="multiplier is taken twice"):
            Schedule(schedule.steps, 3)


def test_three_multipliers_take_operands_every_cycle():
    one, three = (fit(2**61 - 1, multipliers=n) for n in (1, 3))
    assert (one.schedule.interval, three.schedule.interval) == (3, 1)
    assert one.schedule.latency == three.schedule.latency
    assert three.cost.dsp == 3 * one.cost.dsp
    core = build("wide", 2**61 - 1, "native", multipliers=3)
    pairs = [(x, y) for x, y in three.corners() if x < three.p and y < three.p]
    assert core.simulate(pairs) == [one.multiply(x, y) for x, y in pairs]
    with pytest.raises(UnsupportedError, match="multipliers takes one of 1, 3, not 2"):
        fit(97, multipliers=2)


def test_low_halves_add_up_to_r_or_are_both_zero():
    p = 13
    fitted = fit(p)
    for x in range(p):
        for y in range(p):
            values = dict(fitted.trace(x, y))
            low = values["T"] % fitted.R
            assert (low + values["q m"]) % fitted.R == 0
            assert values["v"] == values["T"] // fitted.R + values["q m"] // fitted.R + (low > 0)


def test_refusals():
    with pytest.raises(UnsupportedError, match="levels takes a whole number from 0 to 9, not -1"):
        fit(97, levels=-1)
    with pytest.raises(UnsupportedError, match="got 98"):
        fit(98)
    with pytest.raises(UnsupportedError, match="no parameter 'loadable'"):
        fit(97, loadable=True)
    with pytest.raises(UnsupportedError, match="built in"):
        fit(97).at(95)
