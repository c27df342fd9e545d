# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Constant time of machines: proved for small ones, and planted leaks of numbers and digits are found."""

import copy
import json
from itertools import product

import pytest

from marks import long
from modmill.cores.ecc import machine as ecc
from modmill.cores.engine_files import file_differences
from modmill.cores.proofs import proof
from modmill.cores.proofs.engine_proof import circuit_time, machine_time, router_time
from modmill.cores.proofs.engine_theorem import rows_part
from modmill.cores.proofs.sequence import induction
from modmill.cores.rsa import machine as rsa
from modmill.cores.rsa.circuit import circuit_engine
from modmill.engines.machine.cluster import Router
from modmill.engines.machine.layout import PACK
from modmill.engines.machine.program_memory import BANK, ProgramMemory, table_shapes
from modmill.flow.emit import netlist
from modmill.numbers.curves.affine import Weierstrass
from modmill.proofs.netlist import Netlist
from modmill.studies.mutate import ENGINES

CURVE = Weierstrass(11, (2, 4), 13, a=1, b=6)
LEAKS = {
    "a run that ends sooner": ("busy", "number_163.number"),
    "a store that stalls": ("message_store", "number_163.number"),
    "a state that looks at a word": ("message_start", "number_163.i_data"),
    "an instruction chosen by a digit": ("sequencer.base", "sequencer.table_.digits"),
    "a table with slow words": ("sequencer.s_ready", "sequencer.unit.a"),
}
"""A register of control, and the net of data that is added to its next value."""
SLOW = "a store that stalls"


@pytest.fixture(scope="module")
def machine():
    return Netlist.read(ENGINES["ecc"]().verilog, "ecc").module


def planted(module, register, source):
    """The netlist with one bit of data in the next value of a register's lowest bit."""
    net = Netlist(copy.deepcopy(module))
    (q, *_), (bit, *_) = (net.module["netnames"][name]["bits"] for name in (register, source))
    pins = next(c["connections"] for c in net.cells.values() if q in c["connections"].get("Q", ()))
    k = pins["Q"].index(q)
    pins["D"][k] = net.add("$xor", A=[pins["D"][k]], B=[bit])[0]
    return Netlist(net.module)


def test_a_machine_for_a_curve_is_proved(machine):
    found = machine_time(Netlist(copy.deepcopy(machine)))
    assert found.state == "PROVED"
    assert any("slice_0.ram_0" in table.name for table in found.tables)  # digits select slots
    assert not any("places" in table.name for table in found.tables)  # the order of products does not depend on them


@pytest.mark.parametrize("leak", [(long if leak == SLOW else pytest.param)(leak) for leak in LEAKS])
def test_a_planted_leak_is_found_with_its_path(machine, leak):
    found = machine_time(planted(machine, *LEAKS[leak]))
    assert found.state == "OPEN"
    assert len(found.path) > 2 and found.path[-1] in found.handshake


def test_the_rows_in_the_program_memory_are_those_of_the_program(machine):
    layout, net = ENGINES["ecc"]().layout, Netlist(copy.deepcopy(machine))
    cell = next(c for n, c in net.cells.items() if "table_.bank0" in n and c["type"] == "$mem_v2")
    right, width = cell["parameters"]["INIT"], int(cell["parameters"]["WIDTH"], 2)

    def differing(word, bit):
        at = len(right) - 1 - word * width - bit
        cell["parameters"]["INIT"] = right[:at] + "01"[right[at] == "0"] + right[at + 1 :]
        return rows_part(net, layout).remains

    assert rows_part(net, layout).remains == ()
    shapes = list(table_shapes(layout).values())
    sums = [k for k, entry in enumerate(layout.table[0]) if not entry.count]
    products = [k for k, entry in enumerate(layout.table[0]) if entry.active]
    for word, shape in ((products[0], shapes[0]), (products[-1], shapes[0]), (sums[1], shapes[1])):
        assert all(differing(word, bit) for bit in range(shape.size))
    assert "row 0: " in differing(0, 0)[0]


def test_a_program_memory_that_may_be_written_is_found(machine):
    net = Netlist(copy.deepcopy(machine))
    pins = next(c["connections"] for n, c in net.cells.items() if "table_.bank0" in n and c["type"] == "$mem_v2")
    pins["WR_ADDR"] = pins["RD_ADDR"][: len(pins["WR_ADDR"])]
    found = rows_part(Netlist(net.module), ENGINES["ecc"]().layout)
    assert "may be written" in found.remains[0]


def test_words_are_public_in_no_other_state(machine):
    """Without the states of headers, nothing says which words are public."""
    net = Netlist(copy.deepcopy(machine))
    for name in list(net.module["netnames"]):
        if name in ("message_command", "message_passes", "message_count"):
            net.module["netnames"][f"other_{name}"] = net.module["netnames"].pop(name)
    assert machine_time(net).state == "OPEN"


def test_digits_in_the_columns_of_control_are_out_of_reach():
    """In a table so narrow that digits share columns with control, they lie behind all that an address can be."""
    engine = ENGINES["rsa"]()
    net = Netlist.read(engine.verilog, engine.top)
    pins = next(c["connections"] for n, c in net.cells.items() if "table_.bank0" in n and c["type"] == "$mem_v2")
    assert machine_time(net, engine.power_up).state == "PROVED"
    pins["WR_ADDR"] = pins["RD_ADDR"][: len(pins["WR_ADDR"])]
    found = machine_time(Netlist(net.module), engine.power_up)
    assert found.state == "OPEN" and "sequencer.table_.bank0.block.a_first" in found.path


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("width", [64, 256])
def test_ladders_with_few_threads_are_proved(width, threads):
    engine = rsa.engine("montgomery-array", width=width, threads=threads, method="ladder")
    assert machine_time(Netlist.read(engine.verilog, engine.top), engine.power_up).state == "PROVED"


@pytest.mark.long
@pytest.mark.parametrize(
    ("curve", "design", "operation", "options"),
    [
        ("secp256k1", "montgomery-array", "multiply-two", {"threads": 3}), ("P-256", "hbe", "multiply-two", {}),
        ("X25519", "karatsuba", "ladder", {}), ("X25519", "montgomery-array", "ladder", {"threads": 1}),
        ("secp256k1", "kbe", "multiply", {}), ("P-256", "montgomery-array", "multiply", {}),
    ],
)  # fmt: skip
def test_engines_in_which_an_address_of_the_table_may_reach_digits_are_proved(curve, design, operation, options):
    engine = ecc.ecc(curve, design, operations=(operation,), **options)
    layout = engine.layout
    room = 1 << (layout.digit_depth - 1).bit_length()
    rows = len(layout.table[0])
    assert 1 << (rows - 1).bit_length() > -(-rows // room) * room  # an address may be that of a digit
    assert machine_time(Netlist.read(engine.verilog, engine.top), engine.power_up).state == "PROVED"


def test_a_machine_for_powers_is_proved():
    engine = rsa.engine("montgomery-array", width=64, threads=1, bits=32)
    assert machine_time(Netlist.read(engine.verilog, engine.top), engine.power_up).state == "PROVED"


CIRCUIT_LEAKS = {
    "a product for each bit of a secret exponent that is 1": ("multiplying", "bit_"),
    "an answer that comes sooner for small numbers": ("circuit_compare", "N"),
    "words of an exponent that are counted by their contents": ("waiting", "i_data"),
}


@pytest.fixture(scope="module")
def circuit():
    core = circuit_engine("radix64k-mul", p=2**32 - 5, width=32, settings={}, bits=32)
    return Netlist.read(core.verilog, core.top).module


def test_a_circuit_is_proved(circuit):
    assert circuit_time(Netlist(copy.deepcopy(circuit))).state == "PROVED"


@pytest.mark.parametrize("leak", CIRCUIT_LEAKS)
def test_a_planted_leak_of_a_circuit_is_found(circuit, leak):
    assert circuit_time(planted(circuit, *CIRCUIT_LEAKS[leak])).state == "OPEN"


def test_a_public_exponent_is_public_in_its_own_jobs_only(circuit):
    """The bit that may steer a job of variable time may not steer one of constant time."""
    net = Netlist(copy.deepcopy(circuit))
    net.module["netnames"]["other"] = net.module["netnames"].pop("bit_")
    assert circuit_time(net).state == "OPEN"
    with pytest.raises(ValueError, match="no circuit"):
        circuit_time(Netlist.read(netlist(Router(2, 16), "router"), "router"))


def test_a_router_is_proved_and_a_leak_in_it_is_found():
    net = Netlist.read(netlist(Router(2, 16), "router"), "router")
    module = copy.deepcopy(net.module)
    assert router_time(net).state == "PROVED"
    leaking = planted(module, "head.d_valid", "node_0.word" if "node_0.word" in module["netnames"] else "head.word")
    assert router_time(leaking).state == "OPEN"


@pytest.mark.long
def test_a_folder_with_two_machines_is_proved_module_by_module(tmp_path, monkeypatch):
    monkeypatch.setattr(induction, "sequence_faults", lambda _: iter(["a planted fault"]))
    core = ecc.ecc(CURVE, "montgomery-array", {"loadable": False}, threads=1, cores=2)
    core.write(tmp_path / "two", "modmill ecc build")
    found = proof.prove(tmp_path / "two", operations=True)
    assert (found.timing, [*found.found], found.notes) == ("PROVED", ["ecc_core", "ecc_router", "ecc"], ())
    open_parts = [part.name for part in found.operations if part.state == "OPEN"]
    assert (found.state, open_parts) == ("OPEN", ["sequence"])  # the whole is not PROVED while a part is open
    written = json.loads((tmp_path / "two" / "ecc.json").read_text())["proved"]
    assert (written["constant_time"], written["operations"]) == ("PROVED", "OPEN")
    assert "sequence OPEN" in (tmp_path / "two" / "README.md").read_text()
    assert list(file_differences(tmp_path / "two", ecc.EccCore.for_check(tmp_path / "two"))) == []
    assert proof.prove(tmp_path / "two").notes == ()  # what was proved before stays
    assert json.loads((tmp_path / "two" / "ecc.json").read_text())["proved"] == written
    (tmp_path / "two" / "vectors.json").write_text("{}")
    assert "do not take the result" in proof.prove(tmp_path / "two").notes[0]
    with pytest.raises(ValueError, match="SETUP"):
        proof.prove(tmp_path / "two", public_modulus=True)


@pytest.mark.parametrize("method", ["window", "ladder"])
def test_no_address_of_a_narrow_table_is_that_of_digits(method):
    """Digits share columns with control in some of these engines; there no value of the address reaches them."""
    narrow = 0
    for width, threads in product((8, 64, 256), (1, 2, 3, 5)):
        layout = rsa.engine("montgomery-array", width=width, threads=threads, method=method, window=2).layout
        memory = ProgramMemory(layout)
        first = memory.digits_bank * BANK + memory.digits_first
        if min(shape[kind[0]].offset for kind, shape in table_shapes(layout).items()) < PACK:
            narrow += 1
            assert first >= 1 << len(memory.at)
        assert first >= len(memory.words) and first % memory.digits_room == 0
    assert narrow
