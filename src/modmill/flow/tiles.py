# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Multiplier tiles: the modules that represent one DSP block each.

A tile is the Verilog module `dsp_mul_<A>x<B>_r<R>`: ports `clk`, `a` (A bits), `b` (B bits), `p` (A + B bits), all
unsigned, p = a * b after R clock edges. In `dsp_mul_s<A>x<B>_r<R>` they are two's complements.

    R   registers                            latency
    0   none                                 0
    1   output                               1
    2   operands, output                     2
    3   operands, product, output            3

No register has a reset or an enable. In an emitted core the tiles are behavioural. The functions of the table write
modules of the same names that instantiate a DSP block, to be read after the core with `read_verilog -overwrite`.
Yosys alone would not pack registers into the blocks, and it would replace a multiplication by a constant by adders.

    function  block          largest tile             signed
    ecp5      MULT18X18D     18 x 18                  18 x 18
    nexus     MULT18X18      18 x 18                  18 x 18    the product's register is outside the block
    gw2a      MULT18X18      18 x 18                  18 x 18
    gw5a      MULTALU27X18   26 x 18, by its adder    27 x 18
    ice40     SB_MAC16       16 x 16                  16 x 16
    xc7       DSP48E1        24 x 17                  25 x 18
    xcup      DSP48E2        26 x 17                  27 x 18
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from modmill.flow.modules import instance, named

STAGES_MAX = 3
_NAME = re.compile(r"(?:\w+?_)?dsp_mul_(s?)(\d+)x(\d+)_r([0-3])(?:_\d+)?")


@dataclass(frozen=True)
class Tile:
    """One multiplier tile: operand widths in bits (at least 1), number of register stages (0 to 3), and whether the
    numbers are two's complements.

    Raises ValueError for other numbers.
    """

    a_bits: int
    b_bits: int
    stages: int
    signed: bool = False

    def __post_init__(self) -> None:
        if self.a_bits < 1 or self.b_bits < 1:
            raise ValueError(f"operand widths must be at least 1 bit, not {self.a_bits} and {self.b_bits}")
        if not 0 <= self.stages <= STAGES_MAX:
            raise ValueError(f"a tile has 0 to {STAGES_MAX} register stages, not {self.stages}")

    @property
    def name(self) -> str:
        """Name of the tile's Verilog module."""
        return f"dsp_mul_{'s' * self.signed}{self.a_bits}x{self.b_bits}_r{self.stages}"


ATTRIBUTES = '(* use_dsp = "yes", multstyle = "dsp", syn_multstyle = "block_mult" *)\n'
"""Before the module of a tile: AMD, Intel and Lattice or GOWIN tools then take a DSP block."""


def parse_name(name: str) -> Tile | None:
    """The tile with this module name, or None for any other module. The name may begin with the core's name and end in
    a number (`core_dsp_mul_17x17_r3_1`)."""
    match = _NAME.fullmatch(name)
    if not match:
        return None
    signed, a_bits, b_bits, stages = match.groups()
    return Tile(int(a_bits), int(b_bits), int(stages), bool(signed))


def find(verilog: str) -> dict[str, Tile]:
    """The tiles defined in a Verilog text, by module name.

    A module with a tile's name but other ports is left out: it stays behavioural.
    """
    found = {}
    for name, ports in named(verilog, "dsp_mul_"):
        if tile := parse_name(name):
            ports.pop("rst", None)
            if tile.stages == 0:
                ports.setdefault("clk", 1)
            if ports == {"clk": 1, "a": tile.a_bits, "b": tile.b_bits, "p": tile.a_bits + tile.b_bits}:
                found[name] = tile
    return found


def _header(tile: Tile, name: str | None = None) -> str:
    return f"""module {name or tile.name}(clk, a, b, p);
  input clk;
  input [{tile.a_bits - 1}:0] a;
  input [{tile.b_bits - 1}:0] b;
  output [{tile.a_bits + tile.b_bits - 1}:0] p;
"""


def behavioural(tile: Tile, name: str | None = None) -> str:
    """Verilog-2001 module of a tile as plain arithmetic."""
    declare, clocked = [], []
    operands = ["$signed({})"] * 2 if tile.signed else ["{}"] * 2
    product = " * ".join(operands)
    product, later = product.format("a", "b"), product.format("a_q", "b_q")
    if tile.stages >= 2:
        declare += [f"  reg [{tile.a_bits - 1}:0] a_q;", f"  reg [{tile.b_bits - 1}:0] b_q;"]
        clocked += ["    a_q <= a;", "    b_q <= b;"]
        product = later
    for register in {0: (), 1: ("p_q",), 2: ("p_q",), 3: ("m_q", "p_q")}[tile.stages]:
        declare.append(f"  reg [{tile.a_bits + tile.b_bits - 1}:0] {register};")
        clocked.append(f"    {register} <= {product};")
        product = register
    always = ["  always @(posedge clk) begin", *clocked, "  end"] if clocked else []
    return (
        ATTRIBUTES + _header(tile, name) + "\n".join([*declare, *always, f"  assign p = {product};", "endmodule", ""])
    )


def ecp5(verilog: str) -> str:
    """Modules that replace the tiles of at most 18 x 18 bits in a Verilog text by one MULT18X18D each.

    Empty if there are none. Cost of each: one MULT18X18D, no logic.
    """
    return _overrides(verilog, 18, 18, _ecp5_body)


def nexus(verilog: str) -> str:
    """Modules that replace the tiles of at most 18 x 18 bits in a Verilog text by one MULT18X18 each.

    Empty if there are none. Cost of each: one MULT18X18; with three stages a flip-flop for each bit of the product,
    because the block has no register between multiplier and output.
    """
    return _overrides(verilog, 18, 18, _nexus_body)


def gw2a(verilog: str) -> str:
    """As `nexus`, for Gowin's MULT18X18 of GW1N and GW2A, which has all three registers: no logic."""
    return _overrides(verilog, 18, 18, _gw2a_body)


def gw5a(verilog: str) -> str:
    """Modules that replace the tiles of at most 26 x 18 bits in a Verilog text by one MULTALU27X18 each.

    Empty if there are none. The multiplier is signed. The top bit of an unsigned operand of 18 bits therefore selects
    whether the block's adder adds the other operand, times 2^17. Cost of each: one MULTALU27X18, and for a tile with 18
    unsigned bits a LUT for each bit of the other operand.
    """
    return _overrides(verilog, 26, 17, _gw5a_body, spare=1)


def ice40(verilog: str) -> str:
    """Modules that replace the tiles of at most 16 x 16 bits in a Verilog text by one SB_MAC16 each.

    Empty if there are none. Cost of each: one SB_MAC16, no logic.
    """
    return _overrides(verilog, 16, 16, _ice40_body)


def xc7(verilog: str) -> str:
    """Modules that replace the tiles of at most 24 x 17 (or 17 x 24) bits in a Verilog text by one DSP48E1 each.

    Empty if there are none. Signed operands may have a bit more. Cost of each: one DSP48E1, no logic. The modules have
    `keep_hierarchy`, because Yosys' pass for DSP48E1 would pack neighbouring adders and registers into the blocks.
    """
    return _overrides(verilog, 24, 17, _dsp48e1_body, "(* keep_hierarchy *)\n")


def xcup(verilog: str) -> str:
    """As `xc7`, for tiles of at most 26 x 17 bits and DSP48E2. Yosys has no simulation model of that block."""
    return _overrides(verilog, 26, 17, _dsp48e2_body, "(* keep_hierarchy *)\n")


def _overrides(
    verilog: str, long: int, short: int, body: Callable[[Tile], str], attribute: str = "", *, spare: int = 0
) -> str:
    """``spare``: bits of the shorter operand that the block's adder multiplies."""
    modules = []
    for name, tile in find(verilog).items():
        more = tile.signed and long != short  # the blocks with sides of two lengths are signed
        least = short + (more or spare)
        if max(tile.a_bits, tile.b_bits) <= long + more and min(tile.a_bits, tile.b_bits) <= least:
            modules.append(attribute + _header(tile, name) + body(tile) + "endmodule\n")
    return "\n".join(modules)


def _padded(name: str, bits: int, width: int, signed: bool) -> str:
    """The operand ``name`` of ``bits`` bits, extended to ``width``."""
    if bits == width:
        return name
    return f"{{{{{width - bits}{{{name}[{bits - 1}]}}}}, {name}}}" if signed else f"{{{width - bits}'d0, {name}}}"


def _ecp5_body(tile: Tile) -> str:
    parameters = {"SOURCEB_MODE": "B_SHIFT", "GSR": "DISABLED", "RESETMODE": "SYNC"}
    for register, least in {"INPUTA": 2, "INPUTB": 2, "PIPELINE": 3, "OUTPUT": 1}.items():
        parameters[f"REG_{register}_CLK"] = "CLK0" if tile.stages >= least else "NONE"
        parameters |= {f"REG_{register}_CE": "CE0", f"REG_{register}_RST": "RST0"}
    pins = {f"{port}{k}": f"{port.lower()}_w[{k}]" for port in "AB" for k in range(18)}
    pins |= dict.fromkeys(("SIGNEDA", "SIGNEDB"), f"1'b{int(tile.signed)}") | dict.fromkeys(
        ("SOURCEA", "SOURCEB"), "1'b0"
    )
    for k in range(4):
        pins |= {f"CLK{k}": "clk" if k == 0 else "1'b0", f"CE{k}": "1'b1", f"RST{k}": "1'b0"}
    pins |= {f"P{k}": f"p_w[{k}]" for k in range(36)}
    return f"""  wire [17:0] a_w = {_padded("a", tile.a_bits, 18, tile.signed)};
  wire [17:0] b_w = {_padded("b", tile.b_bits, 18, tile.signed)};
  wire [35:0] p_w;
  assign p = p_w[{tile.a_bits + tile.b_bits - 1}:0];
""" + instance("MULT18X18D", {name: f'"{value}"' for name, value in parameters.items()}, pins)


def _nexus_body(tile: Tile) -> str:
    registers = {"REGINPUTA": 2, "REGINPUTB": 2, "REGOUTPUT": 1}
    parameters = {name: '"REGISTER"' if tile.stages >= least else '"BYPASS"' for name, least in registers.items()}
    parameters |= {"GSR": '"DISABLED"', "RESETMODE": '"SYNC"'}
    pins = {port: _padded(port.lower(), bits, 18, tile.signed) for port, bits in _sides(tile)} | {"Z": "p_w"}
    pins |= {"CLK": "clk", **dict.fromkeys(("SIGNEDA", "SIGNEDB"), f"1'b{int(tile.signed)}")}
    pins |= {f"CE{name}": "1'b1" for name in ("A", "B", "OUT")} | {f"RST{name}": "1'b0" for name in ("A", "B", "OUT")}
    block = instance("MULT18X18", parameters, pins)
    if tile.stages < STAGES_MAX:
        return _product(tile, 36) + block
    p_bits = tile.a_bits + tile.b_bits
    return f"""  wire [35:0] p_w;
  reg [{p_bits - 1}:0] p_q;
  always @(posedge clk)
    p_q <= p_w[{p_bits - 1}:0];
  assign p = p_q;
{block}"""


def _gw2a_body(tile: Tile) -> str:
    parameters = {
        name: f"1'b{int(tile.stages >= least)}"
        for name, least in {"AREG": 2, "BREG": 2, "PIPE_REG": 3, "OUT_REG": 1}.items()
    }
    pins = {port: _padded(port.lower(), bits, 18, tile.signed) for port, bits in _sides(tile)}
    pins |= dict.fromkeys(("SIA", "SIB"), "18'd0") | dict.fromkeys(("ASEL", "BSEL", "RESET"), "1'b0")
    pins |= dict.fromkeys(("ASIGN", "BSIGN"), f"1'b{int(tile.signed)}")
    return _product(tile, 36) + instance("MULT18X18", parameters, pins | {"CE": "1'b1", "CLK": "clk", "DOUT": "p_w"})


def _gw5a_body(tile: Tile) -> str:
    (short_bits, short), (long_bits, long) = sorted([(tile.b_bits, "b"), (tile.a_bits, "a")], key=lambda x: x[0])
    adds = short_bits == 18 and not tile.signed
    stages = {"AREG": 2, "BREG": 2, "PREG": 3, "OREG": 1} | ({"C_IREG": 2, "C_PREG": 3} if adds else {})
    parameters = {f"{name}_CLK": '"CLK0"' for name, least in stages.items() if tile.stages >= least}
    parameters |= {"C_SEL": f"1'b{int(adds)}", "ACC_SEL": "1'b0", "CASI_SEL": "1'b0"}
    chosen = f"{{{48 - 17 - long_bits}'d0, {long} & {{{long_bits}{{{short}[17]}}}}, 17'd0}}" if adds else "48'd0"
    low = f"{{1'b0, {short}[16:0]}}" if adds else _padded(short, short_bits, 18, tile.signed)
    pins = {
        "A": _padded(long, long_bits, 27, tile.signed), "B": low, "C": chosen, "D": "26'd0", "SIA": "27'd0",
        "CASI": "48'd0", "ADDSUB": "2'd0", "CLK": "{1'b0, clk}", "CE": "2'b01", "RESET": "2'b00", "DOUT": "p_w",
    }  # fmt: skip
    pins |= dict.fromkeys(("ACCSEL", "PSEL", "ASEL", "PADDSUB", "CSEL", "CASISEL"), "1'b0")
    return _product(tile, 48) + instance("MULTALU27X18", parameters, pins)


def _ice40_body(tile: Tile) -> str:
    product = int(tile.stages == STAGES_MAX)
    parameters = {f"{name}_REG": f"1'b{int(tile.stages >= 2)}" for name in "AB"}
    parameters |= {f"{half}_8x8_MULT_REG": f"1'b{product}" for half in ("TOP", "BOT")}
    parameters["PIPELINE_16x16_MULT_REG1"] = f"1'b{product}"
    # H is the register behind the adder of the four products, which selection 3 puts at the output.
    parameters["PIPELINE_16x16_MULT_REG2"] = f"1'b{int(tile.stages >= 1)}"
    parameters |= {f"{half}OUTPUT_SELECT": "2'b11" for half in ("TOP", "BOT")}
    parameters |= {f"{name}_SIGNED": f"1'b{int(tile.signed)}" for name in "AB"}
    pins = {port: _padded(port.lower(), bits, 16, tile.signed) for port, bits in _sides(tile)}
    pins |= dict.fromkeys("CD", "16'd0") | {"CLK": "clk", "CE": "1'b1", "O": "p_w"}
    zero = [f"{x}HOLD" for x in "ABCD"] + [f"{x}{half}" for half in ("TOP", "BOT") for x in
            ("IRST", "ORST", "OLOAD", "ADDSUB", "OHOLD")]  # fmt: skip
    pins |= dict.fromkeys([*zero, "CI", "ACCUMCI", "SIGNEXTIN"], "1'b0")
    return _product(tile, 32) + instance("SB_MAC16", parameters, pins)


def _sides(tile: Tile) -> tuple[tuple[str, int], ...]:
    return ("A", tile.a_bits), ("B", tile.b_bits)


def _product(tile: Tile, width: int) -> str:
    return f"  wire [{width - 1}:0] p_w;\n  assign p = p_w[{tile.a_bits + tile.b_bits - 1}:0];\n"


def _dsp48e1_body(tile: Tile) -> str:
    # The multiplier is 25 x 18 bits signed, so 24 x 17 unsigned; its long side is port A.
    return _dsp48_body(tile, "DSP48E1", d_bits=25, opmode="7'b0000101")


def _dsp48e2_body(tile: Tile) -> str:
    # The multiplier is 27 x 18 bits signed, so 26 x 17 unsigned.
    return _dsp48_body(tile, "DSP48E2", d_bits=27, opmode="9'b000000101")


def _dsp48_body(tile: Tile, cell: str, *, d_bits: int, opmode: str) -> str:
    (short_bits, short), (long_bits, long) = sorted([(tile.b_bits, "b"), (tile.a_bits, "a")], key=lambda x: x[0])
    operands, product, output = int(tile.stages >= 2), int(tile.stages == 3), int(tile.stages >= 1)
    parameters = {"AREG": operands, "ACASCREG": operands, "BREG": operands, "BCASCREG": operands}
    parameters |= {"MREG": product, "PREG": output}
    unused = ("CREG", "DREG", "ADREG", "ALUMODEREG", "CARRYINREG", "CARRYINSELREG", "INMODEREG", "OPMODEREG")
    parameters |= dict.fromkeys(unused, 0)
    pins = {
        "A": _padded(long, long_bits, 30, tile.signed), "B": _padded(short, short_bits, 18, tile.signed),
        "C": "48'd0", "D": f"{d_bits}'d0",
        "P": "p_w", "CLK": "clk",
        "OPMODE": opmode,  # X and Y select the product, Z is 0
        "ALUMODE": "4'b0000",  # Z + X + Y
        "INMODE": "5'b00000", "CARRYIN": "1'b0", "CARRYINSEL": "3'b000", "ACIN": "30'd0", "BCIN": "18'd0",
        "PCIN": "48'd0", "CARRYCASCIN": "1'b0", "MULTSIGNIN": "1'b0",
    }  # fmt: skip
    pins |= {f"CE{name}": "1'b1" for name in ("A2", "B2", "M", "P")}
    pins |= {f"CE{name}": "1'b0" for name in ("A1", "B1", "C", "D", "AD", "ALUMODE", "CARRYIN", "CTRL", "INMODE")}
    resets = ("A", "B", "C", "D", "M", "P", "ALUMODE", "ALLCARRYIN", "CTRL", "INMODE")
    pins |= {f"RST{name}": "1'b0" for name in resets}
    return _product(tile, 48) + instance(cell, parameters, pins)
