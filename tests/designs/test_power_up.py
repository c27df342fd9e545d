# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""How long the first reset after power-up must last, where registers may hold anything and memories their contents."""

import pytest

import modmill
from modmill.cores.multiplier import judge, operands
from modmill.flow.emit import without_initial_values
from modmill.flow.library import Start
from modmill.flow.simulate import Simulator, widths

SEEDS = range(150)


def faulty(core, power_up):
    """Of so many power-ups, those after which products are wrong."""
    contract = core.contract
    simulator = Simulator(without_initial_values(core.verilog), widths=widths(contract), power_up=power_up)
    products = operands.judged(contract, operands.randoms(contract, 3, 1))
    pairs = [p.a for p in products], [p.b for p in products]
    runs = (simulator.run(*pairs, seed=seed, start=Start(noise=False, first=seed % 7), timeout=2000) for seed in SEEDS)
    return sum(any(judge.values(contract, products, run)) for run in runs)


@pytest.mark.parametrize("design", ["kbe", "hbe", "sq-rns", "dq-rns", "shenoy-kumaresan"])
def test_constants_survive_a_reset_of_the_length_that_the_contract_says(design, tmp_path):
    core = modmill.build(design, 97, "native")
    assert core.contract.power_up == 3
    assert faulty(core, 3) == 0
    assert faulty(core, 1) > 0
    text = (core.write(tmp_path / "core") / "README.md").read_text()
    assert "over at least one rising edge of `clk`, and over 3 after power-up" in text


def test_other_designs_need_one_cycle():
    core = modmill.build("sor-1m-p", 97, "native", n=12)
    assert core.contract.describe()["power_up_reset"] == 1
    assert faulty(core, 1) == 0
