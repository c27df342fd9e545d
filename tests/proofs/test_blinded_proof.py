# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Machines behind a block for random words: constant time and operations are proved, planted leaks are found."""

import copy
from dataclasses import replace

import pytest
from test_engine_proof import CURVE, planted

from marks import long
from modmill.cores.ecc import machine as ecc
from modmill.cores.proofs import proof
from modmill.cores.proofs.blinded_proof import blinded_time, is_blinded
from modmill.cores.rsa import machine as rsa
from modmill.designs import design
from modmill.engines.ecc.point_engine import Shape
from modmill.engines.rsa.exponentiation import Exponentiation, blinded_window, checked
from modmill.engines.theorem.power_programs import PowerProof
from modmill.proofs.netlist import Netlist

PORT = {"threads": 1, "random_blind": 16}


def made(kind, **options):
    if kind == "rsa":
        return rsa.engine("montgomery-array", width=17, **{**PORT, "window": 2, "blind_messages": True, **options})
    return ecc.ecc(
        CURVE,
        "montgomery-array",
        {"loadable": False},
        operations=("multiply", "multiply-two"),
        shape=Shape(2, 2, 1),
        **{**PORT, **options},
    )


@pytest.fixture(scope="module", params=["ecc", "rsa"])
def machine(request):
    core = made(request.param)
    return Netlist.read(core.verilog, core.top).module


def test_both_parts_are_proved(machine):
    net = Netlist(copy.deepcopy(machine))
    assert is_blinded(net)
    found = blinded_time(net)
    assert {name: part.state for name, part in found.items()} == {"machine": "PROVED", "blinder": "PROVED"}
    assert found["blinder"].handshake == ("i_ready", "random_ready", "c_valid") and not found["blinder"].tables
    assert any("slice_0.ram_0" in table.name for table in found["machine"].tables)


LEAKS = {
    "a random word that ends a state": ("blinder.blinder_state", "random_data", "blinder"),
    "a secret word that ends a state": ("blinder.left", "i_data", "blinder"),
    "a program chosen by a random word": ("blinder.program_", "random_data", "blinder"),
    "a thread chosen by a bit of the sum": ("blinder.thread", "blinder.carry", "blinder"),
    "a state of the machine by a word of the block": ("machine.message_start", "blinder.gathered", "machine"),
    "an instruction by a digit": ("machine.sequencer.base", "machine.sequencer.table_.digits", "machine"),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_planted_leak_is_found_with_its_path(machine, leak):
    register, source, part = LEAKS[leak]
    found = blinded_time(planted(machine, register, source))[part]
    assert found.state == "OPEN" and len(found.path) > 1 and found.path[-1] in (*found.handshake, "c_ready")


def test_a_number_of_words_is_public_in_blocks_for_powers_only(machine):
    """Without the name of its register it is a secret word, and steers the block."""
    counted = "blinder.count" in machine["netnames"]
    net = Netlist(copy.deepcopy(machine))
    if counted:
        del net.module["netnames"]["blinder.count"]
        assert blinded_time(net)["blinder"].state == "OPEN"


def test_a_loop_of_gates_is_found(machine):
    """c_ready that depends on c_valid in the same cycle."""
    net = Netlist(copy.deepcopy(machine))
    (valid,), (ready,) = (net.module["netnames"][f"blinder.c_{name}"]["bits"] for name in ("valid", "ready"))
    users = [(c, p) for c in net.cells.values() for p in c["connections"] if c["port_directions"][p] == "input"]
    (mixed,) = net.add("$and", A=[ready], B=[valid])
    for cell, port in users:
        cell["connections"][port] = [mixed if bit == ready else bit for bit in cell["connections"][port]]
    net.module["netnames"]["blinder.c_ready"]["bits"] = [mixed]
    assert blinded_time(Netlist(net.module))["blinder"].remains == "gates lead from c_valid to c_ready"


@pytest.mark.parametrize(("kind", "options"), [
    ("ecc", {"cores": 2}), long("rsa", {"cores": 2, "public_exponent": 3, "check_result": True}),
    long("rsa", {"lockstep": True, "fixed_addresses": True}),
    long("ecc", {"lockstep": True, "cores": 2, "parity": True}),
])  # fmt: skip
def test_folders_are_proved(kind, options, tmp_path):
    """With all parts of what they compute; the record and the data sheet say so."""
    folder = made(kind, **options).write(tmp_path / "core", "made for a test")
    found = proof.prove(folder, operations=True)
    assert found.state == "PROVED" and not found.notes
    told = {port for each in found.found.values() for port in each.handshake}
    assert {"random_ready", "c_valid"} <= told
    assert any("block for random words" in line for line in found.assumed)
    assert "constant time PROVED" in (folder / "README.md").read_text()


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize(("name", "p"), [("montgomery-array", 2**64 - 59), ("pseudo-mersenne", 2**61 - 1)])
def test_programs_that_blind_messages_are_proved(name, p, window):
    """And another exponent of the factor, or another check, is not."""
    fitted = design(name).fit(p)
    contract = fitted.contract("native")
    program = checked(blinded_window(window, 17, fitted.factor != 1), 17)

    def remains(made):
        power = Exponentiation(made, contract, 66)
        parts = [part for n in (1, 3) for part in PowerProof(power, power.instructions(n)).parts()]
        return {part.name.partition(" ")[0] for part in parts if part.remains}

    assert remains(program) == set()
    assert remains(replace(program, factor_exponent=5)) == {"table"}
    assert remains(replace(program, check_exponent=5)) == {"check"}
    assert "pass" in remains(replace(program, loop=program.loop[:-1]))
