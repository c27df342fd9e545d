# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Parity of the memories of an engine: each flip of a bit of a word that is used later is an alarm, in time; a check
that is removed, or whose parity is computed from the word that was read, is noticed."""

import pytest
from amaranth.hdl import Const
from test_engine_proof import planted

from marks import long
from modmill.buses.adapters import find_bus
from modmill.buses.files import bus_texts
from modmill.contract import ALARM, UnsupportedError
from modmill.cores.behind_bus import bus_faults
from modmill.cores.ecc.check import check_ecc
from modmill.cores.ecc.machine import EccCore, ecc
from modmill.cores.proofs.engine_proof import machine_time
from modmill.cores.rsa.check import check_engine
from modmill.cores.rsa.circuit import circuit_engine
from modmill.cores.rsa.machine import engine
from modmill.engines.machine import datapath, program_memory
from modmill.engines.machine.program_memory import ProgramMemory
from modmill.engines.machine.timing import BLOCK, SLICE, _cut
from modmill.numbers.curves.affine import Weierstrass
from modmill.proofs.netlist import Netlist
from modmill.rtl.memory import even, with_parity
from modmill.studies.attack.faults import Fault
from modmill.studies.attack.operation import read as operation

CURVE = Weierstrass(11, (2, 4), 13, a=1, b=6)
LAST = 110
"""Cycles at the end of an operation in which results are read and leave."""


def made(design="multistep", settings=None, **options):
    return ecc(CURVE, design, settings or {}, **{"threads": 1, "parity": True, **options})


def powers(**options):
    return engine("multistep", **{"width": 14, "bits": 5, "window": 2, "threads": 2, "parity": True, **options})


KINDS = {
    "points": made,
    "powers": powers,
    "residues": lambda: made("mm-pa-n"),
    "two slices, results subtracted from": lambda: made("montgomery-array", {"loadable": False}),
}


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """The operation of an engine, compiled for faults."""

    def compiled(core):
        return operation(core.write(tmp_path_factory.mktemp("engine") / "x", "x")).attacked()

    return compiled


def flips(attacked, name, words, cycles):
    """The outcomes of flips of some bits of these words of the memories of this name, by memory, word and cycle: all
    bits of narrow words, nine and the parity of others."""
    chosen = [(k, place) for k, place in enumerate(attacked.places) if place.memory and place.name.startswith(name)]
    with attacked.runner() as runner:
        return {
            (place.name, word, cycle): runner.run([
                Fault("flip", k, word, bit, cycle)
                for bit in {*range(0, place.width, -(-place.width // 9)), place.width - 1}
            ])
            for k, place in chosen if "words" in place.name for word in words for cycle in cycles
        }  # fmt: skip


def seen(found):
    """Memory, word and cycle of the flips that were detected. All bits of a word have the same outcome."""
    for where, outcomes in found.items():
        assert set(outcomes) in ({"no effect"}, {"detected"}), (where, outcomes)
    return {where for where, outcomes in found.items() if "detected" in outcomes}


@pytest.mark.parametrize("kind", ["points", "powers", *map(long, [*KINDS][2:])])
def test_a_flip_in_a_word_that_is_used_later_is_seen(kind, attacked):
    """Numbers, entries and digits, in the middle of an operation; no other bit of them has an effect."""
    core = KINDS[kind]()
    target, memory, lay = attacked(core), ProgramMemory(core.layout), core.layout
    middle = target.cycles // 2
    numbers = seen(flips(target, "sequencer.unit.slice_", range(lay.used), (middle,)))
    assert len({name for name, _, _ in numbers}) == len(core.timing.slices)
    assert {word for _, word, _ in numbers} & {*range(lay.shared_base)}, "no number of a thread is used later"
    digits = {memory.digits_first + k for k in range(lay.digit_depth)}
    entries = range(0, len(memory.words), 1 + len(memory.words) // 12)
    steps = {word for _, word, _ in seen(flips(target, "sequencer.table_.", [*entries, *digits], (middle,)))}
    assert steps & digits and steps - digits


@pytest.mark.parametrize("kind", ["points", "powers", *map(long, [*KINDS][2:])])
def test_a_flip_in_a_result_is_seen_before_it_leaves(kind, attacked):
    """In each of the last cycles: then it is read, or it was."""
    core = KINDS[kind]()
    target = attacked(core)
    program = core.layout.programs[0]
    slots = {slot + k * core.layout.slots for slot, _ in program.answers for k in range(core.layout.threads)}
    step = 1 + 10 * core.layout.rounds  # results that are subtracted from leave later
    last = range(target.cycles - LAST * step, target.cycles, step)
    found = seen(flips(target, "sequencer.unit.slice_", slots, last))
    assert {word for _, word, _ in found} == slots


PLANTED = {
    "removed": lambda word: Const(0, 1),
    "computed from the word that was read": lambda word: even(with_parity(word[:-1])),
}


@pytest.mark.parametrize("plant", ["removed", long("computed from the word that was read")])
def test_a_check_that_does_not_check_is_noticed(plant, attacked, monkeypatch):
    """What it releases is all detected by the check."""
    given = "sequencer.unit.slice_", range(0, made().layout.used, 3), (1500,)
    right = seen(flips(attacked(made()), *given))
    for room in (datapath, program_memory):
        monkeypatch.setattr(room, "even", PLANTED[plant])
    found = flips(attacked(made()), *given)
    assert not any("detected" in outcomes for outcomes in found.values())
    released = {where for where, outcomes in found.items() if "released" in outcomes}
    assert len(released) > 3 and released <= right


@pytest.mark.long
def test_digits_in_memories_of_their_own(tmp_path):
    """More than 1,024 words of digits: one in the second memory is used in the second half of an exponent."""
    core = powers(bits=2100, window=1, threads=8)
    assert ProgramMemory(core.layout).digits_banks == 2
    assert core.trial().judged == 2 * core.results
    target = operation(core.write(tmp_path / "x", "x"), exponent_bits=2100).attacked()
    middle = target.cycles // 2
    found = flips(target, "sequencer.table_.digits1", [5], (middle, target.cycles - LAST))
    assert [cycle for _, _, cycle in seen(found)] == [middle]


@pytest.mark.parametrize("width", [1, 17, 18, 35, 36, 53, 54, 67, 256, 257, 512, 1024])
def test_slices_leave_a_bit_of_their_block_rams(width):
    found = _cut(width, True)
    assert sum(found) == width and min(found) > 0 and max(found) < SLICE
    blocks = sum(-(-(part + 1) // BLOCK) for part in found)
    assert blocks == -(-(width + len(found)) // BLOCK)
    assert all((part + 1) % BLOCK == 0 for part in found[:-1])


def test_the_first_words_at_power_up_raise_no_alarm(tmp_path):
    """Random contents of all memories, resets of all lengths."""
    for folder, core, check in (("points", made(), check_ecc), ("powers", powers(), check_engine)):
        assert check(core.write(tmp_path / folder, "x")).failures == []


@pytest.mark.long
def test_the_handshake_tells_nothing_of_an_alarm():
    core = made()
    module = Netlist.read(core.verilog, core.top).module
    assert machine_time(Netlist(module)).state == "PROVED"
    assert machine_time(planted(module, "message_taken", "alarm")).state == "OPEN"


@pytest.mark.long
@pytest.mark.parametrize(("bus", "cores", "lockstep"), [("axi4-lite", 2, False), ("axi-stream", 2, True)])
def test_behind_a_bus(bus, cores, lockstep, monkeypatch):
    """The check passes, zeroise included; zeroise that begins with digits, before any constant, is an alarm."""
    core = made(cores=cores, bus=bus, lockstep=lockstep)
    text = bus_texts(core.device, find_bus(bus), core.verilog)["bus.v"]
    assert list(bus_faults(text, core.device, find_bus(bus), list(core.exchanges()))) == []


def test_the_record_says_what_is_on():
    core = made()
    assert core.record()["options"]["parity"] is True and ALARM in core.record()["ports"]
    assert EccCore.of_record(core.record()).options == core.options
    assert "parity" not in made(parity=False).options


def test_what_has_no_parity_is_refused():
    with pytest.raises(UnsupportedError, match="keeps its numbers in a slot machine, which has no parity: omit"):
        ecc("P-256", "hbe", threads=1, parity=True)
    with pytest.raises(UnsupportedError, match="the circuit has no parity in its memories: omit"):
        circuit_engine("radix64k-mul", p=2**64 - 59, parity=True)
