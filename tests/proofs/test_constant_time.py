# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Operands do not reach the handshake of a design; planted leaks are found with their path."""

import pytest
from leaks import LEAKS, NONE, OF_MODULUS, leaking

from modmill.cores.multiplier.build import build
from modmill.proofs.handshake.constant_time import PUBLIC, constant_time
from modmill.proofs.netlist import Netlist, ahead, behind
from modmill.studies.mutate import SUBJECTS


@pytest.mark.parametrize("leak", LEAKS)
def test_a_planted_leak_is_found(leak):
    found = constant_time(Netlist.read(leaking(*LEAKS[leak]), "core"))
    assert found.state == "OPEN"
    assert found.path[0][:3] in ("i_a", "i_b") and any(name.startswith("count") for name in found.path)


def test_without_leak_it_is_proved_and_the_table_is_listed():
    found = constant_time(Netlist.read(leaking(*NONE), "core"))
    assert (found.state, found.path) == ("PROVED", ())
    (table,) = found.tables
    assert (table.words, table.width, table.written, table.ports) == (4, 5, True, ("i_a",))


def test_a_modulus_leaks_only_if_it_is_secret():
    net = Netlist.read(leaking(*OF_MODULUS), "core")
    assert constant_time(net).path[0].startswith("k_m")
    assert constant_time(net, (*PUBLIC, "k_m")).state == "PROVED"


@pytest.mark.parametrize("case", SUBJECTS, ids=lambda case: case[0])
def test_designs_are_proved(case):
    design, modulus, io, settings = case
    core = build(design, modulus, io, **settings)
    net = Netlist.read(core.verilog, core.top)
    assert constant_time(net).state == "PROVED"
    for cell in net.cells.values():  # both writings of the cells' rules agree
        ways = cell["port_directions"]
        bits = [(port, k) for port, pins in cell["connections"].items() for k in range(len(pins))]
        forward = {(a, b) for a in bits if ways[a[0]] == "input" for b in ahead(cell, *a)}
        assert forward == {(a, b) for b in bits if ways[b[0]] == "output" for a in behind(cell, *b)}
