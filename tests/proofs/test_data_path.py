# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Entries of rows executed by a netlist on unknown numbers: each kind is right, and planted faults of the data path are
found."""

import copy

import pytest

from marks import long
from modmill.cores.ecc import machine as ecc
from modmill.cores.proofs.closed_machine import show_inverse, with_closed_core
from modmill.cores.proofs.data_path import data_path_faults
from modmill.cores.proofs.engine_theorem import machine_parts
from modmill.cores.proofs.surroundings import BELOW, Surroundings
from modmill.numbers.curves.affine import Weierstrass
from modmill.proofs.arithmetic.integers import Integers
from modmill.proofs.arithmetic.symbolic import Symbolic
from modmill.proofs.netlist import Netlist
from modmill.studies.mutate import ENGINES


@pytest.fixture(scope="module")
def machine():
    engine = ENGINES["ecc"]()
    return with_closed_core(engine.verilog, engine.top).module, engine


def faults(module, engine):
    around = Surroundings(Netlist(copy.deepcopy(module)), engine.layout, engine.multiplier)
    return data_path_faults(around)


def test_entries_of_all_kinds_are_executed_by_the_netlist_in_their_order(machine):
    module, engine = machine
    found = machine_parts(lambda: Netlist(copy.deepcopy(module)), engine.layout, engine.multiplier)
    assert [(part.name, part.remains) for part in found] == [("data path", ()), ("sequence", ())]


@pytest.mark.long
def test_a_unit_of_one_slice_is_followed():
    """Its wires to the multiplier have no names of their own, and the multiplier's i_ready is a register's name."""
    engine = ecc.ecc(Weierstrass(11, (2, 4), 13, a=1, b=6), "wide", threads=1)

    def net():
        return with_closed_core(engine.verilog, engine.top)

    assert "sequencer.unit.o_r" not in net().module["netnames"]
    found = machine_parts(net, engine.layout, engine.multiplier)
    assert [(part.name, part.remains) for part in found] == [("data path", ()), ("sequence", ())]
    around = Surroundings(Netlist(inverted(net().module, "sequencer.destination")), engine.layout, engine.multiplier)
    assert "another destination" in next(data_path_faults(around))


FAULTS = {
    "a destination": ("sequencer.destination", "another destination"),
    "an operand's address": ("sequencer.read", "is not read"),
    "a carry": ("sequencer.unit.slice_0.plus_one", "another value"),
    "a carry to the next slice": ("sequencer.unit.slice_0.carries_out", "another value"),
    "an operand of the multiplier": ("sequencer.unit.slice_1.kept_a", "other operands"),
    "the multiple of p": ("sequencer.lift", "multiple of p"),
    "a sum": ("sequencer.unit.slice_1.s", "another value"),
    "what is stored": ("sequencer.unit.slice_0.stored", "another value"),
    "a difference": ("sequencer.unit.slice_0.invert_here", "another value"),
}
QUICK = ("a destination", "a carry to the next slice", "an operand of the multiplier")


@pytest.mark.parametrize("fault", [(pytest.param if fault in QUICK else long)(fault) for fault in FAULTS])
def test_a_planted_fault_of_the_data_path_is_found(machine, fault):
    module, engine = machine
    name, said = FAULTS[fault]
    assert said in next(faults(inverted(module, name), engine))


def inverted(module, name, bit=0):
    """The netlist with a bit of a register's next value inverted."""
    net = Netlist(copy.deepcopy(module))
    q = net.module["netnames"][name]["bits"][bit]
    pins = next(c["connections"] for c in net.cells.values() if q in c["connections"].get("Q", ()))
    k = pins["Q"].index(q)
    pins["D"][k] = net.add("$not", A=[pins["D"][k]])[0]
    return net.module


@pytest.fixture(scope="module")
def trimming():
    """A machine with conditional subtractions, two threads and a loop."""
    engine = ecc.ecc("X25519", "pseudo-mersenne", threads=2)
    assert engine.layout.conditional_subtracts
    return with_closed_core(engine.verilog, engine.top).module, engine


@pytest.mark.long
def test_conditional_subtractions_are_executed(trimming):
    assert list(faults(*trimming)) == []


@pytest.fixture(scope="module")
def direct():
    """A machine in which the comparison with the multiple is not delayed, and its net `below` has no name."""
    engine = ecc.ecc("secp160k1", "karatsuba-two-level", threads=3)
    return with_closed_core(engine.verilog, engine.top).module, engine


@pytest.mark.long
def test_a_machine_whose_comparison_has_no_name_is_proved(direct):
    module, engine = direct
    assert BELOW not in module["netnames"]
    found = machine_parts(lambda: Netlist(copy.deepcopy(module)), engine.layout, engine.multiplier)
    assert [(part.name, part.remains) for part in found] == [("data path", ()), ("sequence", ())]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "bit"),
    [
        ("slice_2.carries_out", 2), ("slice_1.carries_out", 1), ("slice_2.t", 0), ("slice_0.carries_out", 2),
        ("slice_1.s", 2),
    ],
)  # fmt: skip
def test_a_planted_fault_of_a_comparison_without_a_name_is_found(direct, name, bit):
    module, engine = direct
    assert list(faults(inverted(module, f"sequencer.unit.{name}", bit), engine))


def test_a_net_without_a_name_is_shown_and_nothing_else_changes():
    text = """module core(input clk, input [1:0] a, output [1:0] y, output z); reg [1:0] r; assign y = r, z = ~r[1];
      always @(posedge clk) r <= a; endmodule"""
    net = Netlist.read(text, "core")
    show_inverse(net, "shown", "r", 1)
    show_inverse(net, "shown", "r", 0)  # it has its name now
    run = Symbolic(Netlist(net.module), Integers())
    for value in range(4):
        run.ports["a"] = (value & 1, value >> 1)
        run.settle()
        run.clock()
        run.settle()
        shown = run.bits(net.module["netnames"]["shown"]["bits"])
        assert (shown, run.output("z")) == ((1 - (value >> 1),), (1 - (value >> 1),))


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["sequencer.below", "sequencer.unit.slice_0.t", "sequencer.trims", "sequencer.unit.slice_0.begun_4"]
)
def test_a_planted_fault_of_a_conditional_subtraction_is_found(trimming, name):
    module, engine = trimming
    assert list(faults(inverted(module, name), engine))
