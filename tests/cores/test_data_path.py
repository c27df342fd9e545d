# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Rows executed by a netlist on unknown numbers: each kind is right, and planted faults of the data path are found."""

import copy

import pytest

from marks import long
from modmill.cores import data_path
from modmill.cores.carries import Carries
from modmill.cores.data_path import data_path_part, kinds, with_closed_core
from modmill.cores.rsa import machine as rsa
from modmill.flow.integers import Integers
from modmill.flow.netlist import Netlist
from modmill.studies.mutate import ENGINES


@pytest.fixture(scope="module")
def machine():
    engine = ENGINES["ecc"]()
    return with_closed_core(engine.verilog, engine.top).module, engine


def part(module, engine):
    return data_path_part(lambda: Netlist(copy.deepcopy(module)), engine.layout, engine.multiplier)


@pytest.fixture
def few(monkeypatch):
    """Two kinds of rows with sums and differences only."""
    monkeypatch.setattr(data_path, "kinds", lambda layout: [kinds(layout)[k] for k in (0, 5)])


@pytest.mark.long
def test_all_kinds_of_rows_are_executed_by_the_netlist(machine):
    assert part(*machine).remains == ()


def test_rows_are_executed_by_the_netlist(machine, few):
    assert part(*machine).remains == ()


FAULTS = {
    "a destination": "sequencer.destination",
    "an operand's address": "sequencer.read",
    "the time of a write": "sequencer.sums",
    "a carry": "sequencer.unit.slice_0.plus_one",
    "an operand of the multiplier": "sequencer.unit.slice_1.kept_a",
    "the multiple of p": "sequencer.lift",
    "a sum": "sequencer.unit.slice_1.s",
    "what is stored": "sequencer.unit.slice_0.stored",
    "a difference": "sequencer.unit.slice_0.invert_here",
}
QUICK = ("a destination", "a carry", "an operand of the multiplier")


@pytest.mark.parametrize("fault", [(pytest.param if fault in QUICK else long)(fault) for fault in FAULTS])
def test_a_planted_fault_of_the_data_path_is_found(machine, few, fault):
    module, engine = machine
    net = Netlist(copy.deepcopy(module))
    q = net.module["netnames"][FAULTS[fault]]["bits"][0]
    pins = next(c["connections"] for c in net.cells.values() if q in c["connections"].get("Q", ()))
    k = pins["Q"].index(q)
    pins["D"][k] = net.add("$not", A=[pins["D"][k]])[0]
    assert part(net.module, engine).remains


@pytest.mark.long
def test_a_machine_for_powers_has_products_only():
    engine = rsa.engine("montgomery-array", width=64, threads=2, bits=32)
    net = with_closed_core(engine.verilog, engine.top)
    assert part(net.module, engine).remains == ()


def test_sums_in_slices_are_the_sum():
    """Two slices of 8 bits with a carry each in both additions, against one sum; without the second carry it is not."""
    make = Integers()
    low = [make.atom("low", 0, 255) for _ in range(3)]
    high = [make.atom("high", 0, 255) for _ in range(3)]

    def cut(terms, k):
        return make.floor(make.sum(terms), k)

    d_carry = cut([(1, low[0]), (1, low[1])], 8)
    rest = [(1, low[0]), (1, low[1]), (-256, d_carry)]
    s_carry = cut([*rest, (1, low[2])], 8)
    whole = cut([(1, x) for x in low], 8)
    upper = [(1, x) for x in high]
    right = make.sum([*upper, (1, d_carry), (1, cut([(2, make.number(1)), (-1, make.number(1)), (1, s_carry)], 1))])
    carries = Carries(make)
    assert carries.same(right, make.sum([*upper, (1, whole)]))
    assert not carries.same(make.sum([*upper, (1, d_carry)]), make.sum([*upper, (1, whole)]))
