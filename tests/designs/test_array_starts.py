# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Arrays from random start states: whatever is under way before a reset, the first operands after it are right."""

import random

import pytest

from modmill.cores.multiplier.build import build
from modmill.flow.emit import without_initial_values
from modmill.flow.library import Start
from modmill.flow.simulate import Simulator, widths
from modmill.rtl.digit_serial import Frame

MODULUS = (1 << 201) - 45
"""Twelve digits, a product every 12 cycles: the first scan begins with the end of the reset."""


def wrong_starts():
    """The (reset, first cycle, noise) of runs whose results are not the products."""
    core = build("montgomery-array", MODULUS, "native", loadable=False)
    c = core.contract
    simulator = Simulator(without_initial_values(core.verilog), widths=widths(c))
    rnd = random.Random(5)
    a, b = ([rnd.getrandbits(c.operand.width) for _ in range(3)] for _ in "ab")
    wanted = [x * y * c.factor % c.p for x, y in zip(a, b, strict=True)]
    found = []
    for reset in (1, 3, 40):
        for first in range(2 * c.timing.interval):
            for noise in (False, True):
                run = simulator.run(a, b, seed=first, start=Start(reset, first, noise))
                if run.violations or [r % c.p for r in run.results] != wanted:
                    found.append((reset, first, noise))
    return found


@pytest.mark.parametrize("meets", [True, False])
def test_first_operands_after_a_reset(meets, monkeypatch):
    """Planted: the core permits operands at once, though their scan meets what was scanned before the reset."""
    if not meets:
        monkeypatch.setattr(Frame, "starts", 1)
    found = wrong_starts()
    assert bool(found) != meets
    assert all(first <= 1 for _, first, _ in found)
