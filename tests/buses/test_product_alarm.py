# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A multiplier with an alarm behind a bus: its alarm is STATUS.alarm."""

import re

import pytest

from marks import long
from modmill.buses.adapters import find_bus
from modmill.buses.front import whole
from modmill.buses.simulate import BusFault, BusSimulator, driver_of
from modmill.cores.behind_bus import bus_faults, product
from modmill.cores.multiplier.build import build
from modmill.cores.multiplier.operands import judged, randoms
from modmill.flow.emit import without_initial_values


@pytest.mark.parametrize(("bus", "clock"), [("apb", "same"), long("axi-stream", "separate")])
def test_a_checked_multiplier_behind_a_bus(bus, clock):
    """Right products raise no alarm. A constant with a wrong bit does, and then no result leaves."""
    core, way = build("kbe", 29, bus=bus, bus_clock=clock, n=1, w=12, check=True), find_bus(bus)
    assert core.device.alarm
    products = judged(core.contract, randoms(core.contract, 4, 1))
    exchanges = [product(core.contract, each.a, each.b, each.value) for each in products]
    text = whole(core.device, way, core.verilog)
    assert list(bus_faults(text, core.device, way, exchanges)) == []

    last = [at.start(1) for at in re.finditer(r"\.INIT\(\d+'h[0-9a-f]+([0-9a-f])\)", text)]
    refused = 0
    for at in last:
        wrong = f"{text[:at]}{int(text[at], 16) ^ 1:x}{text[at + 1 :]}"
        driver = driver_of(core.device, way, BusSimulator(without_initial_values(wrong), core.device, way))
        driver.ready()
        try:
            for each in exchanges:
                assert each.right(driver.run(each.command, each.words, each.count))
        except BusFault as fault:
            assert "alarm" in str(fault).lower()
            refused += 1
    assert refused == 1, "the other constant is one that the rower of the check has no use for"
