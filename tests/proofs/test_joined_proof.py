# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Constant time of what joins engines: two in lockstep, several behind a router; planted leaks are found."""

import copy

import pytest
from test_engine_proof import CURVE, planted

from marks import long
from modmill.cores.ecc import machine as ecc
from modmill.cores.proofs import proof
from modmill.cores.proofs.cluster_proof import cluster_time
from modmill.cores.proofs.locked_proof import locked_time, sent_in_reset
from modmill.cores.rsa import machine as rsa
from modmill.cores.rsa.circuit import circuit_engine
from modmill.engines.ecc.blinding import scalar_bits
from modmill.engines.machine.cluster import Router, joined
from modmill.engines.machine.lockstep import Lockstep, paired
from modmill.flow.emit import netlist
from modmill.proofs.netlist import Netlist

ENGINE = """module {top}(input clk, rst, i_valid, o_ready, input [15:0] i_data, output i_ready, o_valid, o_last{more},
  output [15:0] o_data);
  reg [15:0] word; reg there;
  assign i_ready = {ready}, o_valid = there, o_last = there, o_data = word;
  always @(posedge clk) begin
    if (i_valid & i_ready) word <= i_data;
    {reset} there <= 0; else if (i_valid & i_ready) there <= 1; else if (o_ready) there <= 0;
  end
endmodule
"""
"""An engine that gives back each word."""


def engine(top, ready="~there", reset="if (rst)"):
    return ENGINE.format(top=top, ready=ready, reset=reset, more="")


@pytest.fixture(scope="module")
def pair():
    text = paired(netlist(Lockstep(16), "pair_lockstep"), engine("pair_engine"), top="pair", word=16)
    return Netlist.read(text, "pair", "pair_engine").module


def test_two_engines_in_lockstep_are_proved(pair):
    found = locked_time(Netlist(copy.deepcopy(pair)), "pair_engine")
    assert found.state == "PROVED" and "o_alarm" in found.handshake
    assert locked_time(Netlist(copy.deepcopy(pair)), "pair_engine", 3).state == "PROVED"


LEAKS = {
    "a word that is there or not": ("compare.x_there", "x_data", "the first engine's o_ready may depend"),
    "a word that waits in the second engine": ("compare.y_there", "y_data", "o_valid may depend on words"),
    "another word for the second engine": ("compare.a_data_late", "x_data", "the second engine gets another i_data"),
    "a word that comes or not": ("compare.a_valid_late", "i_data", "the second engine gets another i_valid"),
    "a reset by a word": ("compare.rst_late", "i_data", "the second engine gets another rst"),
    "an answer that waits or not": ("compare.x_ready_late", "i_data", "the second engine gets another o_ready"),
    "an alarm by a word": ("compare.alarm", "x_data", "the first engine gets another i_valid"),
    "a comparison with another word": ("compare.y_word", "i_data", "o_valid may depend on words"),
    "a comparison with an earlier word": (
        "compare.x_data_late",
        "compare.x_word",
        "the first engine gets another i_valid",
    ),
    "the end of an answer": ("compare.o_last", "x_data", "o_valid may depend on words"),
}
"""A register of the block that compares, the net of data that is added to its next value, and what is said."""


@pytest.mark.parametrize("leak", LEAKS)
def test_a_planted_leak_of_lockstep_is_found_with_its_path(pair, leak):
    register, source, said = LEAKS[leak]
    found = locked_time(planted(pair, register, source), "pair_engine")
    assert found.state == "OPEN" and found.remains.startswith(said)
    assert len(found.path) > 1 and ("data" in found.path[0] or "word" in found.path[0])


def test_a_reset_of_the_second_engine_that_begins_later_is_found(pair):
    net = Netlist(copy.deepcopy(pair))
    (late,) = net.module["netnames"]["compare.rst_late"]["bits"]
    net.cells["second"]["connections"]["rst"] = [late]
    assert locked_time(Netlist(net.module), "pair_engine").remains.startswith("the second engine gets another rst")


def test_gates_from_an_engine_to_an_engine_are_found(pair):
    net = Netlist(copy.deepcopy(pair))
    pins = net.cells["first"]["connections"]
    pins["o_ready"] = net.add("$and", A=pins["o_ready"], B=net.add("$not", A=pins["o_valid"]))
    assert "gates lead from an engine" in locked_time(Netlist(net.module), "pair_engine").remains


def test_two_engines_that_are_not_equal_are_refused(pair):
    net = Netlist(copy.deepcopy(pair))
    net.cells["second"]["type"] = "other_engine"
    with pytest.raises(ValueError, match="other modules"):
        locked_time(net, "pair_engine")


def test_a_word_that_is_sent_in_a_reset_is_found():
    assert sent_in_reset(Netlist.read(engine("e"), "e"), 1) == ""
    assert "after 0 cycles" in sent_in_reset(Netlist.read(engine("e"), "e"), 0)
    assert sent_in_reset(Netlist.read(engine("e", reset="if (rst & i_valid)"), "e"), 3)
    assert sent_in_reset(Netlist.read(netlist(Router(2, 16), "router"), "router"), 1) == ""


# ---- several machines


def whole(machine, edit=lambda text: text):
    """The netlist of two machines behind a router, and those of both."""
    router = netlist(Router(2, 16), "two_router")
    text = edit(joined(router, machine, top="two", machines=2, word=16))
    modules = {name: Netlist.read(text, name) for name in ("two_router", "two_core")}
    return Netlist.read(text, "two", "two_router two_core"), modules


def test_machines_behind_a_router_are_proved():
    found = cluster_time(*whole(engine("two_core")))
    assert (found.state, found.remains) == ("PROVED", "")


WIRES = {
    "a word that says whether it is there": (".i_valid(c1_valid)", ".i_valid(c0_data[0])", "core_1.i_valid depends on"),
    "an answer that is waited for": (".o_ready(r0_ready)", ".o_ready(r0_ready & r1_data[3])", "core_0.o_ready depends"),
    "a reset by a word": (".rst(c1_rst)", ".rst(c1_rst | i_data[0])", "core_1.rst depends on i_data"),
    "a word of two machines": (".r0_data(r0_data)", ".r0_data(r0_data ^ r1_data)", "router.r0_data is not a word"),
    "a ready port by a word": (".i_ready(i_ready)", ".i_ready(other)", "i_ready depends on i_data"),
}


@pytest.mark.parametrize("wire", WIRES)
def test_a_planted_wire_between_machines_is_found(wire):
    old, new, said = WIRES[wire]

    def edit(text):
        head, name, router = text.partition("module two_router")
        assert old in head
        more = "  wire other;\n  assign i_ready = other & ~i_data[2];\n" if "other" in new else ""
        return head.replace(old, new, 1).replace("  two_router router", f"{more}  two_router router", 1) + name + router

    found = cluster_time(*whole(engine("two_core"), edit))
    assert found.state == "OPEN" and found.remains.startswith(said)


LOOP = """module one(input i_valid, o_ready, output i_ready, o_valid); assign i_ready = o_ready, o_valid = i_valid;
endmodule
module two(input i_valid, o_ready, output i_ready, o_valid); assign i_ready = o_ready, o_valid = {gates}; endmodule
module both(input clk, i_valid, o_ready, output i_ready, o_valid); wire a, b;
  one first(.i_valid(i_valid), .o_ready(a), .i_ready(i_ready), .o_valid(b));
  two second(.i_valid(b), .o_ready(o_ready), .i_ready(a), .o_valid(o_valid));
endmodule
"""


@pytest.mark.parametrize("loop", [False, True])
def test_a_loop_of_gates_through_modules_is_found(loop):
    text = LOOP.format(gates="i_valid")
    text = text.replace("i_ready = o_ready, o_valid = i_valid", "i_ready = i_valid & o_ready, o_valid = o_ready", 1)
    text = text.replace("assign i_ready = o_ready", "assign i_ready = i_valid") if loop else text
    parts = {name: Netlist.read(text, name) for name in ("one", "two")}
    found = cluster_time(Netlist.read(text, "both", "one two"), parts)
    assert found.remains.startswith("a loop of gates through ") == loop
    assert (found.state == "OPEN") == loop


# ---- folders


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("ecc", {"lockstep": True, "cores": 2}), ("rsa", {"lockstep": True, "bits": 128 + 64}),
        long("ecc", {"lockstep": True, "check_result": True, "bits": scalar_bits(CURVE, 8)}),
        long("circuit", {"lockstep": True}),
        long("ecc", {"cores": 3, "bits": scalar_bits(CURVE, 8)}), long("rsa", {"cores": 2, "lockstep": True}),
    ],
)  # fmt: skip
def test_all_modules_of_a_folder_are_proved(tmp_path, kind, options):
    if kind == "ecc":
        core = ecc.ecc(CURVE, "montgomery-array", {"loadable": False}, threads=1, **options)
    elif kind == "circuit":
        core = circuit_engine("radix64k-mul", p=2**32 - 5, width=32, settings={}, bits=32, **options)
    else:
        core = rsa.engine("montgomery-array", width=128, threads=4, **options)
    core.write(tmp_path / "core", "modmill build")
    found = proof.prove(tmp_path / "core")
    assert found.state == "PROVED" and list(found.found)[-1] == core.top
    assert len(found.found) == (3 if core.cores > 1 else 1) + core.lockstep
    assert any("each reset lasts" in line for line in found.assumed) == core.lockstep
