# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The order of rows in a netlist: proved by induction, and planted faults of it are found where they are."""

import copy
from dataclasses import replace

import pytest

from marks import long
from modmill.cores.ecc import machine as ecc
from modmill.cores.proofs.closed_machine import _Numbers, with_closed_core
from modmill.cores.proofs.engine_theorem import machine_parts
from modmill.cores.proofs.sequence.induction import sequence_faults
from modmill.cores.proofs.surroundings import Surroundings
from modmill.cores.rsa import machine as rsa
from modmill.numbers.curves.affine import Weierstrass
from modmill.proofs.arithmetic.integers import Integers
from modmill.proofs.arithmetic.word_rules import Words
from modmill.proofs.netlist import Netlist

CURVE = Weierstrass(11, (2, 4), 13, a=1, b=6)


def closed(engine):
    return with_closed_core(engine.verilog, engine.top).module, engine


@pytest.fixture(scope="module")
def machine():
    return closed(ecc.ecc(CURVE, "montgomery-array", {"loadable": False}, threads=3))


def faults(module, engine):
    around = Surroundings(Netlist(copy.deepcopy(module)), engine.layout, engine.multiplier)
    return sequence_faults(around)


def test_the_order_of_rows_is_proved(machine):
    assert list(faults(*machine)) == []


FAULTS = {
    "the number of threads": ("sequencer.last_context", "steps: thread 0"),
    "the order of threads": ("sequencer.context_", "steps: thread 0"),
    "the first slot of a thread": ("sequencer.slots_at", "steps: thread 0"),
    "the digits of a thread": ("sequencer.digits_at", "steps: thread 0"),
    "a row that is skipped": ("sequencer.next", "steps: digit 0: sequencer.base"),
    "the base of a row": ("sequencer.base", "steps: digit 0: sequencer.base"),
    "the passes that are left": ("sequencer.left", "steps: digit 0: sequencer.left"),
    "when there are more passes": ("sequencer.more_passes", "steps: last pass"),
    "the next digit": ("sequencer.advance", "sequencer.index"),
    "which digit": ("sequencer.digit", "another digit is taken"),
    "the number of sums": ("sequencer.count", "steps: digit 0: sequencer.base"),
    "when a sum begins": ("sequencer.sums", "sequencer.sums"),
    "when operands are offered": ("sequencer.moves", ""),
    "a product that waits": ("sequencer.waiting", ""),
    "a place in the queue": ("sequencer.end_place", "queue"),
    "the head of the queue": ("sequencer.first_place", "taken"),
    "a register of the table": ("sequencer.table_.found", "tables: sequencer.table.found"),
    "the digits' address": ("sequencer.table_.bank0.block.b_first", "tables: sequencer.table.digits"),
    "the end of a run": ("sequencer.last_turn", ""),
    "the length of the drain": ("sequencer.rest", "end: a run"),
    "the time of a slot": ("sequencer.phase", ""),
}
"""A register, whose lowest bit is inverted, and what is said."""
QUICK = ("the order of threads", "a row that is skipped", "the head of the queue")


@pytest.mark.parametrize("fault", [(pytest.param if fault in QUICK else long)(fault) for fault in FAULTS])
def test_a_planted_fault_of_the_order_is_found(machine, fault):
    module, engine = machine
    name, said = FAULTS[fault]
    net = Netlist(copy.deepcopy(module))
    q = net.module["netnames"][name]["bits"][0]
    pins = next(c["connections"] for c in net.cells.values() if q in c["connections"].get("Q", ()))
    k = pins["Q"].index(q)
    pins["D"][k] = net.add("$not", A=[pins["D"][k]])[0]
    try:
        assert any(said in what for what in faults(net.module, engine))
    except ValueError as error:
        assert not said and "settle" in str(error)


def test_another_limit_of_a_counter_is_found(machine):
    """The thread is compared with another number."""
    module, engine = machine
    net = Netlist(copy.deepcopy(module))
    q = net.module["netnames"]["sequencer.last_context"]["bits"][0]
    register = next(c["connections"] for c in net.cells.values() if q in c["connections"].get("Q", ()))
    pins = net.cells[net.drivers[register["D"][register["Q"].index(q)]][0]]["connections"]
    constant = next(port for port in "AB" if "1" in pins[port])
    pins[constant] = ["1" if bit == "0" else bit for bit in pins[constant]]
    assert next(faults(net.module, engine)).startswith(
        "steps: digit 0: sequencer.base"
    )  # the last thread is not the last


@pytest.mark.parametrize(
    ("bit", "said"), [("0", "a part of a word"), ("stored", "slice 0 is written"), ("x", "slice 0")]
)
def test_a_part_of_a_word_that_is_written_is_found(machine, bit, said):
    """One bit of an enable is 0, another number's, or unknown."""
    module, engine = machine
    net = Netlist(copy.deepcopy(module))
    pins = next(c["connections"] for n, c in net.cells.items() if "slice_0.ram_0" in n and c["type"] == "$mem_v2")
    pins["WR_EN"][0] = net.module["netnames"]["sequencer.unit.slice_0.stored"]["bits"][1] if bit == "stored" else bit
    try:
        assert any(said in what for what in faults(net.module, engine))
    except ValueError as error:
        assert bit == "0" and said in str(error)


def test_words_from_before_a_run_are_unknown_in_delay_lines(machine):
    module, engine = machine
    around = Surroundings(Netlist(copy.deepcopy(module)), engine.layout, engine.multiplier)
    m = around.m
    m.restore(around.nothing, 0)
    here = m.state()
    assert here.lines and m.beyond(here, ())[1] == []
    for word, beyond in ((None, False), (1, True)):
        lines = {name: ((word,) * len(m._lines[name].data),) * 2 for name in here.lines}
        assert bool(m.beyond(replace(here, lines=lines), ())[1]) == beyond


@pytest.mark.long
def test_a_machine_for_powers_with_counted_passes_is_proved():
    module, engine = closed(rsa.engine("montgomery-array", width=64, threads=2, bits=32))
    assert engine.layout.counted
    assert [part.state for part in machine_parts(lambda: Netlist(module), engine.layout, engine.multiplier)] == [
        "PROVED"
    ] * 2


@pytest.mark.parametrize(("most", "equal"), [(1, True), (2, False)])
def test_words_are_equal_if_their_numbers_must_be(most, equal):
    """x and floor((2 x + y) / 2) for y of at most 1; one more is a planted fault."""
    words = _Numbers(make := Integers(), {})
    x, y = make.atom("x", 0, 5), make.atom("y", 0, most)
    half = words.word(make.sum([(2, x), (1, y)]), 4)[1:]
    assert (words._differ(words.word(x, 3), half) == 0) == equal
    assert Words(make, {})._differ(words.word(x, 3), half) != 0
