# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""DATA_OUT shows no word, and a read takes none, while a front zeroises or tests its device by messages of its own."""

import re

import pytest
import stub_engine as stub

from modmill.buses.adapters import find_bus
from modmill.buses.front import whole
from modmill.buses.registers import SELFTEST, ZEROISE, register_map
from modmill.buses.simulate import BusDriver, BusSimulator

BUS = find_bus("apb")
DATA_OUT = register_map(stub.DEVICE)["DATA_OUT"].offset
PERIOD = 10
"""More than the cycles of a read."""
READABLE = r"readable <= (out_settled\[2\]) & ~playing;"
VALUE = r"value_data_out = \(out_settled\[2\] & ~playing\) \?"


@pytest.fixture(scope="module")
def verilog():
    return whole(stub.DEVICE, BUS, stub.VERILOG)


def shown(verilog):
    """The words that DATA_OUT shows during each script, with an unread answer before it, and whether it ends well; the
    reads follow each other at once, and begin at different times."""
    bus = BusSimulator(verilog, stub.DEVICE, BUS)
    driver = BusDriver(stub.DEVICE, bus)
    words, ends = set(), []
    for bit, end in ((SELFTEST, "passed"), (ZEROISE, "zeroised")):
        for cycles in range(PERIOD):
            driver.ready()
            driver.run(stub.KEY, [1, 2, 3], 0)
            driver.send(stub.ONE, [7])
            bus.wait(200)
            assert driver.read("LEVEL", "words") == 1
            driver.write("CONTROL", bit)
            bus.wait(cycles)
            start, count = bus.cycles, 0
            while driver.read("STATUS", "busy"):
                words |= {bus.read(DATA_OUT)[0] for _ in range(64)}
                count += 65
            assert bus.cycles - start < PERIOD * (count + 1)
            ends.append(driver.read("STATUS", end))
            driver.write("IRQ_STATUS", 3)
    return words, ends


def test_nothing_is_shown_or_taken(verilog):
    words, ends = shown(verilog)
    assert words == {0} and all(ends)


def test_a_word_that_is_shown_is_found(verilog):
    text, count = re.subn(VALUE, "value_data_out = out_settled[2] ?", verilog)
    assert count == 1
    assert shown(text)[0] - {0}


@pytest.mark.long
def test_a_word_that_is_taken_is_found(verilog):
    text, count = re.subn(READABLE, "readable <= out_settled[2];", verilog)
    assert count == 1
    words, ends = shown(text)
    assert words == {0} and not all(ends)
