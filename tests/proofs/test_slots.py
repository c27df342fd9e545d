# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Pairs in slots of one memory, taken before they are accepted, whose program is a table of a counter."""

import pytest

from modmill.cores.multiplier.build import build
from modmill.proofs.handshake.control import prove_control
from modmill.proofs.handshake.hours import Hours
from modmill.proofs.handshake.monitors import Monitored, Pace
from modmill.proofs.handshake.slots import Slot, numbered
from modmill.proofs.netlist import Netlist

PACE = Pace(16, 4)
CORE = """module core(input clk, rst, i_valid, o_ready, input [3:0] i_a, i_b, output reg i_ready, o_valid,
            output reg [3:0] o_r);
  reg [1:0] phase, slot0, slot1, slot2, next_in, next_out, slot_out;
  reg full0, full1, full2, going;
  reg [2:0] room, waiting;
  reg [3:0] words [0:7];
  wire take = phase == 0 & i_valid & |room;
  wire freed = phase == 1 & |waiting & (~o_valid | o_ready);
  wire [2:0] read = phase == 3 ? {slot2, 1'b0} : {slot_out, 1'b1};
  wire [3:0] word = words[read];
  always @(posedge clk) begin
    phase <= rst ? 0 : phase + 1;
    i_ready <= rst ? 0 : take;
    if (rst) {full0, full1, full2, slot0, slot1, slot2} <= 0;
    else if (phase == 0) begin
      full0 <= take; full1 <= full0; full2 <= full1;
      slot0 <= next_in; slot1 <= slot0; slot2 <= slot1;
    end
    next_in <= rst ? 0 : next_in + take;
    next_out <= rst ? 0 : next_out + freed;
    slot_out <= rst ? 0 : freed ? next_out : slot_out;
    room <= rst ? 4 : room - take + freed;
    waiting <= rst ? 0 : waiting + (phase == 0 & full2) - freed;
    going <= rst ? 0 : phase == 1 ? freed : going;
    o_valid <= rst ? 0 : phase == 2 & going ? 1 : o_valid & ~o_ready;
    if (phase == 2 & going) o_r <= word;
    if (phase == 1 & full0) words[{slot0, 1'b0}] <= i_a ^ i_b;
    if (phase == 3 & full2) words[{slot2, 1'b1}] <= word + 1;
  end
endmodule
"""


def states(text):
    return [part.state for part in prove_control(Netlist.read(text, "core"), PACE).parts]


def test_pairs_in_slots_are_proved():
    parts = prove_control(Netlist.read(CORE, "core"), PACE).parts
    assert [part.state for part in parts] == ["PROVED"] * 3
    assert parts[1].steady and "words" in parts[1].taken


@pytest.mark.parametrize(
    ("old", "new", "state"),
    [
        ("room <= rst ? 4", "room <= rst ? 5", ["PROVED", "OPEN", "OPEN"]),
        ("slot1 <= slot0", "slot1 <= next_in", ["PROVED", "OPEN", "OPEN"]),
        ("slot_out <= rst ? 0 : freed ? next_out", "slot_out <= rst ? 0 : freed ? slot2", ["PROVED", "OPEN", "OPEN"]),
        ("words[{slot0, 1'b0}] <=", "words[{slot1, 1'b0}] <=", ["PROVED", "OPEN", "OPEN"]),
        ("next_in + take;", "next_in + (i_a[0] & take);", ["PROVED", "OPEN", "OPEN"]),
        ("phase == 3 ? {slot2, 1'b0}", "phase == 3 ? {slot_out, 1'b0}", ["PROVED", "PROVED", "OPEN"]),
        ("phase == 1 & full0", "phase == 1", ["PROVED", "PROVED", "PROVED"]),
        ("phase == 3 & full2", "phase == 3", ["PROVED", "PROVED", "OPEN"]),
        ("<= word + 1", "<= word + o_ready", ["PROVED", "PROVED", "OPEN"]),
        ("<= word + 1", "<= word + room[0]", ["PROVED", "PROVED", "OPEN"]),
        ("phase == 3 ?", "phase[0] ?", ["PROVED", "PROVED", "PROVED"]),
    ],
)
def test_a_fault_is_found(old, new, state):
    assert old in CORE
    assert states(CORE.replace(old, new)) == state


def test_a_number_is_compared_alike_before_and_behind_a_register():
    """After the reset; planted: another number."""
    for number, other, answer in ((2, 2, "never"), (2, 3, "perhaps")):
        net = Monitored(Netlist.read(CORE, "core"), PACE, steady=True)
        for name in ("slot0", "slot1", "slot2", "slot_out"):
            word = net.module["netnames"][name]["bits"]
            wrong = net.gate("$xor", [Slot(net, number).has(word)], [net.equal(word, other)])
            assert net.search(wrong, 10).answer == answer


def test_bits_that_are_always_constants_are_no_number():
    net = Netlist.read(CORE, "core")
    (memory,) = (cell for cell in net.cells.values() if cell["type"] == "$mem_v2")
    assert numbered(net, memory["connections"]["RD_ADDR"]) == {1, 2}


def test_hours_are_those_of_the_counter():
    net = Netlist.read(CORE, "core")
    names = {name: net.module["netnames"][name]["bits"] for name in ("word", "phase", "take", "slot_out")}
    (ready,) = net.module["ports"]["o_ready"]["bits"]
    hours = Hours(net, [bit for bits in names.values() for bit in bits], 1)
    last = range(hours.count() - 4, hours.count())
    assert hours.after(last[-1], 1) == last[0]
    taken = [hour for hour in last if hours.may(names["take"][0], hour)]
    assert len(taken) == 1
    three = hours.after(taken[0], 3)
    from_ready = [hour for hour in last if hours.path([(names["word"][0], hour)], ready, [names["take"][0]])]
    assert from_ready == [hour for hour in last if hour != three]
    assert hours.path([(names["word"][0], three)], ready, [])  # through the room, if acceptance counts


@pytest.mark.long
@pytest.mark.parametrize("design", ["kbe", "hbe", "sq-rns", "dq-rns", "shenoy-kumaresan"])
def test_control_of_rowers_is_proved(design):
    core = build(design, 29, "native")
    contract = core.contract.describe()
    pace = Pace(contract["latency"], contract["interval"], contract["power_up_reset"])
    assert [part.state for part in prove_control(Netlist.read(core.verilog, core.top), pace).parts] == ["PROVED"] * 3
