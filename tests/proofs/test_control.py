# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Each pair of operands has one result, in order, for every history; planted faults are found with their schedule."""

import pytest

from cores import (
    EXTRA_RESULT,
    FULL_NOT_RESET,
    GOOD,
    NO_RESET,
    READY_IGNORED,
    SLOW_RESET,
    VALID_DROPPED,
    VALID_WAITS_FOR_READY,
)
from modmill.cli.prove import prove as command
from modmill.cores.multiplier.build import build
from modmill.cores.proofs.proof import prove
from modmill.proofs.handshake.control import prove_control
from modmill.proofs.handshake.monitors import Monitored, Pace, replayed
from modmill.proofs.netlist import Netlist

STATES = ("PROVED", "PROVED", "PROVED")
WITHOUT, WITHDRAWN, LOST = "is valid though no pair", "withdrawn before it is taken", "and no result is valid for"


def proved(text, latency, interval=1, reset=1, top="core"):
    return prove_control(Netlist.read(text, top), Pace(latency, interval, reset))


def states(proof):
    return tuple(part.state for part in proof.parts)


def test_a_core_is_proved():
    proof = proved(GOOD, 2)
    assert (states(proof), proof.state) == (STATES, "PROVED")
    assert proof.parts[1].made == ("product in cycle 0",) or "in cycle" in proof.parts[1].made[0]


@pytest.mark.parametrize(
    ("text", "remains"),
    [
        (VALID_DROPPED, WITHDRAWN), (READY_IGNORED, LOST), (NO_RESET, WITHOUT), (FULL_NOT_RESET, WITHOUT),
        (VALID_WAITS_FOR_READY, LOST), (SLOW_RESET, WITHOUT),
    ],
    ids=["dropped", "overwritten", "no reset", "no reset of a stage", "waits for ready", "slow reset"],
)  # fmt: skip
def test_a_fault_of_a_core_is_refuted_with_a_schedule(text, remains):
    tokens, order, stalls = proved(text, 2).parts
    assert (tokens.state, order.state, stalls.state) == ("REFUTED", "OPEN", "OPEN")
    assert remains in tokens.remains and tokens.schedule


def test_a_reset_may_need_two_cycles():
    assert states(proved(SLOW_RESET, 2, reset=2)) == STATES


def test_a_handshake_that_depends_on_data_stays_open():
    proof = proved(EXTRA_RESULT, 2)
    assert states(proof) == ("OPEN", "OPEN", "OPEN") and "may depend on data" in proof.parts[0].remains


QUEUE = {
    "a room too many": ("room <= rst ? 3'h6", "room <= rst ? 3'h7", LOST),
    "a token dropped in a stall": ("i_valid & i_ready};", "i_valid & i_ready & (o_ready | ~o_valid)};", LOST),
    "a token twice in a stall": (".w_en(valid[3])", ".w_en(valid[3] | (valid[2] & o_valid & ~o_ready))", WITHOUT),
    "tokens not reset": ("valid <= rst ? 4'h0 : ", "valid <= ", WITHOUT),
    "a token of a reset": ("valid <= rst ? 4'h0", "valid <= rst ? 4'h1", WITHOUT),
    "a level that is not reset": ("level <= rst ? 3'h0 : ", "level <= ", WITHOUT),
    "results swapped": ("storage[r_port__addr];", "storage[level == 3'h3 ? r_port__addr_choice : r_port__addr];", ""),
    "a write address that is not reset": ("w_port__addr <= rst ? 3'h0 : ", "w_port__addr <= ", ""),
    "a result one cycle later": (".w_port__data(fold3_sum)", ".w_port__data(o_ready ? fold3_sum : fold3_later)", ""),
}
"""Planted: text, its replacement, and what remains of the tokens; nothing if only the order is wrong."""


@pytest.fixture(scope="module")
def channel():
    return build("channel-reduce", "2^61-1", "native")


@pytest.mark.parametrize("fault", QUEUE)
def test_a_fault_of_a_queue_is_found(channel, fault):
    old, new, remains = QUEUE[fault]
    assert channel.verilog.count(old) == 1
    text = channel.verilog.replace(old, new)
    if "fold3_later" in new:
        later = "  reg [60:0] fold3_later; always @(posedge clk) fold3_later <= fold3_sum;\n  reg [2:0] room;"
        text = text.replace("  reg [2:0] room;", later, 1)
    proof = proved(text, channel.contract.timing.latency)
    assert states(proof)[::2] == ("REFUTED" if remains else "PROVED", "OPEN")
    part = next(part for part in proof.parts if part.state != "PROVED")
    assert (remains or {"results swapped": "whose turn it is", "a result one cycle later": "r_en"}.get(fault, "")) in (
        part.remains
    )


OPEN = {"kbe": 1, "radix64k-mul": 1}
"""The first statement that stays open, for some designs."""
NAMES = (
    "channel-multiply", "hbe-extension", "hbe-reduction", "iddmm", "kbe-extension", "kbe-reduction",
    "karatsuba-montgomery", "karatsuba-two-level", "karatsuba-two-level-solinas", "mcivor", "mm-pa-n", "mm-spa",
    "montgomery-array", "multistep", "orup", "parallel", "pseudo-mersenne", "wide",
    "solinas", "sor-1m-n", "sor-1m-p", "sor-2m", "sor-ring", "tenca-koc",
)  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("design", [*NAMES, *OPEN])
def test_designs_are_proved(design):
    core = build(design, "2^61-1", "native")
    at = core.contract.timing
    pace = Pace(at.latency, at.interval, core.contract.power_up)
    proof = prove_control(Netlist.read(core.verilog, core.top), pace, 3 if design in OPEN else 60)
    first = OPEN.get(design, len(STATES))
    assert states(proof) == (*STATES[:first], *["OPEN"] * (len(STATES) - first)), proof.parts


def test_what_is_made_is_named(channel):
    proof = proved(channel.verilog, channel.contract.timing.latency)
    assert states(proof) == STATES
    assert proof.parts[1].made == ("queue.storage in cycle 4",)


@pytest.mark.parametrize(
    ("old", "new", "remains"),
    [
        ("digit <= rst ? 2'h3", "digit <= rst ? 2'h0", WITHOUT),  # digits are counted from reset on
        (" & (index != 2'h2)", "", ""),  # words above a result push the waiting one out
    ],
)
def test_faults_of_the_past_are_found(old, new, remains):
    core = build("iddmm", 97, "native", digit=4, subtract=False)
    at = core.contract.timing
    assert core.verilog.count(old) == 1
    assert states(proved(core.verilog, at.latency, at.interval)) == STATES
    proof = proved(core.verilog.replace(old, new), at.latency, at.interval)
    assert proof.state != "PROVED"
    assert not remains or (remains in proof.parts[0].remains and proof.state == "REFUTED")


def test_a_schedule_happens_in_the_netlist():
    """The graph that is searched and the gates that replay it agree; what happens depends on a register's contents."""
    net = Monitored(Netlist.read(NO_RESET, "core"), Pace(2, 1), steady=False)
    wrong = net.all_of([net.o_valid, net.empty])
    found = net.search(wrong, 10)
    assert found.answer == "perhaps" and replayed(net, [net.empty, wrong], found.trace) == [0, 1]
    assert replayed(net, [wrong], [*found.trace, *[{"o_ready": 1}] * 4]) == []
    assert net.search(net.all_of([wrong, net.i_valid, net.inverse(net.i_valid)]), 10).answer == "never"


def test_a_folder_says_what_is_proved(channel, tmp_path, capsys):
    folder = channel.write(tmp_path / "core", check=False)
    proof = prove(folder, control=True)
    assert proof.state == "PROVED" and "PROVED control of core" in proof.lines
    assert proof.describe()["control"]["parts"][1]["made"] == ["queue.storage in cycle 4"]
    command(folder, control=True)
    assert "PROVED tokens: each accepted pair" in capsys.readouterr().out
    source = folder / "core.v"
    source.write_text(source.read_text().replace("room <= rst ? 3'h6", "room <= rst ? 3'h7"))
    proof = prove(folder, control=True)
    assert (proof.timing, proof.state) == ("PROVED", "REFUTED")
    assert any("it happens" in line for line in proof.lines) and any("i_valid 1" in line for line in proof.lines)
