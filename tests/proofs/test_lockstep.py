# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Values of gates for two runs: each rule against Python's integers, and no difference between runs is missed."""

import random

import pytest

from modmill.proofs.handshake.gates import DIFFERS, EQUAL, Gates
from modmill.proofs.handshake.lockstep import View, explore
from modmill.proofs.netlist import Netlist

OPERATIONS = {
    "a & b": lambda a, b, c: a & b, "a | b": lambda a, b, c: a | b, "a ^ b": lambda a, b, c: a ^ b,
    "a ~^ b": lambda a, b, c: a ^ b ^ 15, "~a": lambda a, b, c: a ^ 15, "a + b": lambda a, b, c: a + b & 31,
    "a - b": lambda a, b, c: a - b & 31, "c ? a : b": lambda a, b, c: a if c else b, "a == b": lambda a, b, c: a == b,
    "a != b": lambda a, b, c: a != b, "|a": lambda a, b, c: a != 0, "&a": lambda a, b, c: a == 15,
    "^a": lambda a, b, c: a.bit_count() % 2, "!a": lambda a, b, c: a == 0, "a && b": lambda a, b, c: a != 0 and b != 0,
    "a || b": lambda a, b, c: a != 0 or b != 0, "$signed(a) + $signed(b)": lambda a, b, c: (a ^ 8) + (b ^ 8) - 16 & 31,
    "a < b": lambda a, b, c: a < b, "a <= b": lambda a, b, c: a <= b, "a > b": lambda a, b, c: a > b,
    "a >= b": lambda a, b, c: a >= b, "$signed(a) < $signed(b)": lambda a, b, c: (a ^ 8) < (b ^ 8),
    "$signed(a) >= $signed(b)": lambda a, b, c: (a ^ 8) >= (b ^ 8), "t[a]": lambda a, b, c: a * 7 + 3 & 31,
}  # fmt: skip
"""Expressions over a and b (4 bits) and c, with their values in 5 bits."""
ABSTRACT = {"a % b", "a * b", "a >> b"}
"""Expressions whose value is never known, only whether it may differ."""
WIDTHS = {"a": 4, "b": 4, "c": 1}


def module(expressions):
    lines = [f"assign y{k} = {e};" for k, e in enumerate(expressions)]
    lines = [line.replace("~", "5'hf & ~") if "~a" in line or "~^" in line else line for line in lines]
    lines = [line.replace("a 5'hf & ~^ b", "5'hf & (a ~^ b)") for line in lines]
    outs = ", ".join(f"y{k}" for k in range(len(expressions)))
    fill = "".join(f"t[{k}] = {k * 7 + 3 & 31};" for k in range(16))
    return f"""module core(input clk, input [3:0] a, b, input c, output [4:0] {outs});
  reg [4:0] t [15:0]; initial begin {fill} end
  {chr(10).join(lines)}
endmodule"""


def evaluated(gates, lanes):
    """The values of the outputs for a list of values of (a, b, c), each bit 0, 1, EQUAL or DIFFERS."""
    V, U = [0] * gates.count, [0] * gates.count
    ports = gates.net.module["ports"]
    for lane, values in enumerate(lanes):
        for name, bits in zip(WIDTHS, values, strict=True):
            for net, bit in zip(ports[name]["bits"], bits, strict=True):
                V[gates.index[net]] |= (bit & 1) << lane
                U[gates.index[net]] |= (bit >> 1) << lane
    gates.evaluate(V, U, len(lanes))
    outs = [n for n in ports if n.startswith("y")]
    nets = [[gates.index[b] for b in ports[n]["bits"]] for n in outs]
    return [[[(V[n] >> k & 1) + 2 * (U[n] >> k & 1) for n in bits] for bits in nets] for k in range(len(lanes))]


@pytest.fixture(scope="module")
def gates():
    net = Netlist.read(module([*OPERATIONS, *sorted(ABSTRACT)]), "core")
    return Gates(net, [n for n in net.module["ports"] if n.startswith("y")])


def bits_of(value, width):
    return [value >> k & 1 for k in range(width)]


def test_known_values_are_those_of_integers(gates):
    cases = [(a, b, c) for a in range(16) for b in range(16) for c in (0, 1)]
    found = evaluated(gates, [[bits_of(x, w) for x, w in zip(case, WIDTHS.values(), strict=True)] for case in cases])
    for case, outs in zip(cases, found, strict=True):
        for (text, rule), bits in zip(OPERATIONS.items(), outs, strict=False):
            assert bits == bits_of(int(rule(*case)), 5), (text, case)


def test_values_of_two_runs_contain_all_pairs_of_runs(gates):
    rnd = random.Random(1)
    for _ in range(300):
        given = [[rnd.choice((0, 1, EQUAL, DIFFERS)) for _ in range(w)] for w in WIDTHS.values()]
        (outs,) = evaluated(gates, [given])
        for _ in range(8):
            first = [[bit if bit < EQUAL else rnd.randrange(2) for bit in bits] for bits in given]
            second = [
                [rnd.randrange(2) if bit == DIFFERS else one for bit, one in zip(bits, ones, strict=True)]
                for bits, ones in zip(given, first, strict=True)
            ]
            runs = [[sum(bit << k for k, bit in enumerate(bits)) for bits in run] for run in (first, second)]
            for rule, bits in zip(OPERATIONS.values(), outs, strict=False):
                values = [bits_of(int(rule(*run)), 5) for run in runs]
                for bit, one, two in zip(bits, *values, strict=True):
                    assert bit == DIFFERS or (one == two and bit in (EQUAL, one))
            for bits in outs[len(OPERATIONS) :]:
                assert max(bits) < DIFFERS or any(DIFFERS in x for x in given)


COUNTER = """
module core(input clk, rst, i_valid, input i_data, output i_ready, o_valid);
  reg [1:0] state; reg word; reg [1:0] kept;
  assign i_ready = state == 0; assign o_valid = state == 3;
  always @(posedge clk) begin
    if (state == 0) word <= i_data;
    if (state == 1) kept[0] <= word; else if (state == 2) kept[1] <= word;
    if (rst) state <= 0; else case (state)
      0: if (i_valid) state <= 1;
      1: state <= 2;
      2: state <= {leak} ? 0 : 3;
      3: state <= 0;
    endcase
  end
endmodule
"""


@pytest.mark.parametrize(("leak", "path"), [("1'b0", ()), ("kept[0]", ("i_data", "word", "kept", "state"))])
def test_a_state_is_followed_and_a_leak_has_its_path(leak, path):
    net = Netlist.read(COUNTER.replace("{leak}", leak), "core")
    gates = Gates(net, ("i_ready", "o_valid"))
    nets = {
        name: [gates.index[b] for b in found["bits"] if b in gates.index]
        for name, found in net.module["netnames"].items()
    }
    found = explore(gates, View(nets["i_data"], nets["state"]))
    differing = [n for n in gates.outputs if n in found.differing]
    assert bool(differing) == bool(path)
    if path:
        names = [
            next(x for x in ("i_data", "word", "kept", "state") if n in nets[x]) for n in found.path(differing[0])[:-1]
        ]
        assert tuple(dict.fromkeys(names)) == path
    public = [([[(nets["state"][0], 0), (nets["state"][1], 0)]], nets["i_data"])]
    declared = explore(gates, View(nets["i_data"], nets["state"], public=public))
    assert not any(n in declared.differing for n in gates.outputs)


SHARED = """
module core(input clk, rst, i_valid, input [1:0] i_data, output i_ready, o_valid);
  reg [3:0] rows [7:0]; reg [2:0] at; reg [3:0] word; reg [1:0] place; reg taken;
  initial begin rows[0] = 5; rows[1] = 9; rows[2] = 0; rows[3] = 12; rows[4] = 8; end
  assign i_ready = 1; assign o_valid = {shown};
  always @(posedge clk) begin
    word <= rows[at]; taken <= i_valid; place <= place + 1;
    if ({enable}) rows[{address}] <= {data};
    if (rst) at <= 0; else at <= at + 1;
  end
endmodule
"""
"""Rows and, behind them, what is stored of the data in the lowest columns. The address may reach all of it."""
RIGHT = {"shown": "word[3]", "enable": "taken", "address": "{1'b1, place}", "data": "{2'b0, i_data}"}


@pytest.mark.parametrize(
    ("other", "leak"),
    [
        ({}, False), ({"shown": "word[1]"}, True), ({"data": "{i_data, i_data}"}, True),
        ({"address": "{1'b1, i_data}"}, True), ({"enable": "taken & i_data[0]"}, True),
    ],
)  # fmt: skip
def test_what_is_written_beside_rows_differs_in_its_own_columns(other, leak):
    text = SHARED
    for name, value in (RIGHT | other).items():
        text = text.replace(f"{{{name}}}", value)
    net = Netlist.read(text, "core")
    gates = Gates(net, ("i_ready", "o_valid"))
    data = [gates.index[bit] for bit in net.module["ports"]["i_data"]["bits"] if bit in gates.index]
    assert any(n in explore(gates, View(data, [])).differing for n in gates.outputs) == leak
