# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Engines with fixed addresses: right results, no address that depends on digits, and planted ones are found."""

import copy
import json
from functools import cache

import pytest
from command import refused
from test_data_path import faults, inverted
from test_engine_proof import planted

from marks import long
from modmill.contract import UnsupportedError
from modmill.cores.ecc.machine import ecc
from modmill.cores.proofs.closed_machine import with_closed_core
from modmill.cores.proofs.engine_proof import machine_time
from modmill.cores.proofs.engine_theorem import machine_parts, rows_part
from modmill.cores.proofs.proof import ADDRESSES, prove, with_addresses
from modmill.cores.rsa.circuit import circuit_engine
from modmill.cores.rsa.machine import engine
from modmill.engines.ecc.point_engine import Shape
from modmill.engines.machine.layout import OWN, SHARED
from modmill.engines.machine.program_memory import ProgramMemory, table_shapes
from modmill.numbers.curves.affine import Montgomery, Weierstrass
from modmill.proofs.netlist import Netlist

TINY = Weierstrass(11, (2, 4), 13, a=1, b=6)
SMALL = Weierstrass(251, (0, 2), 271, a=1, b=4)
TWISTED = Montgomery(0x3E5, (0x203, 0x17), 0x101, 4, A=0x290, B=1)
ENGINES = {
    "window": lambda **given: engine("montgomery-array", 1000003, window=3, bits=20, threads=1, **given),
    "point": lambda **given: ecc(TINY, "montgomery-array", {"loadable": False}, shape=Shape(2), threads=1, **given),
    "wide window": lambda **given: engine("mcivor", 2**40 - 87, window=6, bits=17, threads=2, **given),
    "powers' ladder": lambda **given: engine("montgomery-array", 1000003, method="ladder", bits=20, threads=3, **given),
    "digits": lambda **given: engine("radix64k-mul", 2**40 - 87, window=2, bits=17, threads=2, **given),
    "residues": lambda **given: ecc(SMALL, "sor-ring", threads=2, **given),
    "base point": lambda **given: ecc(SMALL, "multistep", operations=("multiply-base", "multiply"), threads=2, **given),
    "ladder": lambda **given: ecc(TWISTED, "montgomery-array", threads=1, **given),
    "two checked": lambda **given: ecc(
        SMALL, "montgomery-array", operations=("multiply-two",), threads=1, check_result=True, **given
    ),
}
QUICK = ("window", "point")


@cache
def made(kind, fixed_addresses=True, **given):
    return ENGINES[kind](fixed_addresses=fixed_addresses, **given)


@pytest.mark.parametrize("kind", [(pytest.param if kind in QUICK else long)(kind) for kind in ENGINES])
def test_results_are_right_and_addresses_have_no_digit(kind):
    core = made(kind)
    assert {how for name in core.layout.fields for how in core.layout.bases(name)} <= {OWN, SHARED}
    usual = made(kind, fixed_addresses=False).layout
    assert {how for name in usual.fields for how in usual.bases(name)} > {OWN, SHARED}
    assert core.trial().judged == 2 * core.results


def test_record_and_options(tmp_path):
    core = made("point")
    record = json.loads((core.write(tmp_path / "engine", "command") / "ecc.json").read_text())
    assert record["options"]["fixed_addresses"] is True and type(core).of_record(record).verilog == core.verilog
    assert "fixed_addresses" not in made("point", fixed_addresses=False).options


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: engine("kbe", 2**61 - 1, fixed_addresses=True), "slot machine.*omit --fixed-addresses"),
        (lambda: ecc("P-256", "hbe", fixed_addresses=True), "slot machine.*omit --fixed-addresses"),
        (lambda: circuit_engine("radix64k-mul", 0, 64, fixed_addresses=True), "circuit.*omit --fixed-addresses"),
    ],
)
def test_engines_without_the_option_refuse_it(made, said):
    with pytest.raises(UnsupportedError, match=said):
        made()


def test_the_command_refuses_it():
    command = ("rsa", "build", "-m", "2^64-59", "--fixed-addresses", "--multiplier", "hbe", "-o", "never")
    assert "omit --fixed-addresses" in refused(*command)


# ---- proofs


@pytest.fixture(scope="module")
def machine():
    return Netlist.read(made("point").verilog, "ecc").module


def test_no_address_depends_on_data(machine):
    found = machine_time(Netlist(copy.deepcopy(machine)))
    assert not found.tables and with_addresses(found).state == "PROVED"
    assert with_addresses(found).handshake[-1] == ADDRESSES


@pytest.mark.parametrize(
    ("register", "source"), [("sequencer.read", "sequencer.digit"), ("sequencer.base", "sequencer.selecting")]
)
def test_an_address_that_depends_on_a_digit_is_found(machine, register, source):
    found = with_addresses(machine_time(planted(machine, register, source)))
    assert found.state == "OPEN" and found.tables
    assert found.path or "addresses of memory" in found.remains


@pytest.mark.long
def test_digits_between_the_rows_are_found(monkeypatch):
    """Where the address of a row can be that of digits, addresses in the row may be digits."""
    usual = ProgramMemory.__init__

    def between(self, layout):
        usual(self, layout)
        self.digits_bank, self.digits_first = 0, -(-len(self.words) // self.digits_room) * self.digits_room

    monkeypatch.setattr(ProgramMemory, "__init__", between)
    core = ENGINES["point"](fixed_addresses=True)
    table = ProgramMemory(core.layout)
    assert table.digits_first < 1 << (len(table.words) - 1).bit_length()
    assert machine_time(Netlist.read(core.verilog, "ecc")).tables


@pytest.mark.long
def test_a_record_that_claims_fixed_addresses_is_not_believed(tmp_path):
    folder = made("point", fixed_addresses=False).write(tmp_path / "engine", "command")
    assert prove(folder).timing == "PROVED"
    record = json.loads((folder / "ecc.json").read_text())
    record["options"]["fixed_addresses"] = True
    (folder / "ecc.json").write_text(json.dumps(record))
    found = prove(folder)
    assert found.timing == "OPEN" and any("addresses of memory" in line for line in found.lines)
    folder = made("point").write(tmp_path / "other", "command")
    assert any(f"and {ADDRESSES} do not depend on i_data" in line for line in prove(folder).lines)


@pytest.fixture(scope="module", params=["point", long("window")])
def closed(request):
    """A machine with selections, with parity besides."""
    core = made(request.param, parity=True)
    return with_closed_core(core.verilog, core.top).module, core


def test_rows_with_selections_are_executed(closed):
    module, core = closed
    found = machine_parts(lambda: Netlist(copy.deepcopy(module)), core.layout, core.multiplier)
    assert [part.remains for part in found] == [(), ()]


@pytest.mark.parametrize("register", ["sequencer.drop", long("sequencer.selecting"), long("sequencer.unit.slice_0.d")])
def test_a_planted_fault_of_a_selection_is_found(closed, register):
    module, core = closed
    assert list(faults(inverted(module, register), core))


def test_a_selection_by_another_bit_in_the_program_memory_is_found():
    core = made("window")
    net = Netlist.read(core.verilog, core.top)
    assert not rows_part(net, core.layout).remains
    shape = next(s for kind, s in table_shapes(core.layout).items() if "select" in kind)
    cell = next(c for n, c in net.cells.items() if "bank0" in n and c["type"] == "$mem_v2")
    row = next(k for k, entry in enumerate(core.layout.table[0]) if entry.select == 1)
    text, width = cell["parameters"]["INIT"], int(cell["parameters"]["WIDTH"], 2)
    at = len(text) - 1 - row * width - shape["select"].offset - 1
    cell["parameters"]["INIT"] = text[:at] + "01"[text[at] == "0"] + text[at + 1 :]
    assert "another bit" in rows_part(net, core.layout).remains[0]
