# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Block RAMs: the modules that represent memories with two ports and output registers.

A block RAM is the Verilog module `block_ram_<W>x<D>`: D words of W bits, D a power of two. Ports `clk`, `a_address`,
`a_q`, `b_address`, `b_write`, `b_d`, `b_q`; parameter `INIT`, the contents at configuration with word k at bits k * W.
Port A reads, port B reads or writes. The word at the address of cycle t is at `a_q` or `b_q` in cycle t + 2. While port
B writes, its first register keeps its value. Reading on A the word that B writes is undefined. No register has a reset
or an enable. A name that ends in `_r1` means one register: the word is at the output in cycle t + 1.

In an emitted core the block RAMs are behavioural; `ecp5` writes modules of the same names and parameters that
instantiate DP16KD, to be read after the core with `read_verilog -overwrite`. Yosys alone would leave the second
registers outside the block: a counter that reads 18 x 256 bits then routes at 138 to 146 MHz (ecp5-25k, seeds 1 to
3); with the block's own registers it routes at 357 to 359, above the block's documented limit. Yosys infers from the
behavioural module, always with the second registers as flip-flops after the block:

    words       xc7         xcup        gowin       nexus       cyclonev
    18 x 256    1 RAMB18E1  1 RAMB18E2  1 DPX9B     1 DP16K     2 M10K
    36 x 1024   1 RAMB36E1  1 RAMB36E2  2 DPX9B     2 DP16K     8 M10K

Yosys uses an M10K with one port for each direction, so it stores the words twice.

If A reads the word that B writes, the block's output is undefined. The behavioural module gives the old word in Verilog
simulators and has the attribute no_rw_check, so that Yosys adds no logic for this case (18 x 256 bits on ECP5: a second
block and 69 LUTs). The model in Amaranth's simulator gives the inverse of the old word, so that a core that uses it
gives wrong results.
"""

import re
from dataclasses import dataclass

from modmill.flow.modules import instance, named

ATTRIBUTES = ', ram_style = "block", ramstyle = "no_rw_check", syn_ramstyle = "block_ram"'
"""Of the words of a block RAM: AMD, Intel and Lattice or GOWIN tools then take a block, without logic for a word that
is read while it is written."""
_NAME = re.compile(r"(?:\w+?_)?block_ram_(\d+)x(\d+)(_r1)?")
_BLOCK_BITS = 18  # bits of a word in the widest mode of DP16KD with two ports
_BLOCK_DEPTH = 1024
_ADDRESS_BITS = 14  # address pins of DP16KD, of which the lowest four do not address words of 18 bits
_ROW_WORDS = 16  # words of 18 bits in one INITVAL parameter, each in 20 bits of it


@dataclass(frozen=True)
class BlockRam:
    """One block RAM: bits of a word, number of words, registers after each port (1 or 2).

    Raises ValueError for a width below 1 and a depth that is not a power of two.
    """

    width: int
    depth: int
    registers: int = 2

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f"words of a block RAM must have at least 1 bit, not {self.width}")
        if self.depth < 2 or self.depth & (self.depth - 1):
            raise ValueError(f"the depth of a block RAM must be a power of two, not {self.depth}")

    @property
    def name(self) -> str:
        """Name of the block RAM's Verilog module."""
        return f"block_ram_{self.width}x{self.depth}{'_r1' if self.registers == 1 else ''}"

    @property
    def address_bits(self) -> int:
        """Bits of an address."""
        return self.depth.bit_length() - 1

    @property
    def ports(self) -> dict[str, int]:
        """Widths of the ports in bits, in order."""
        address, word = self.address_bits, self.width
        return {
            "clk": 1, "a_address": address, "a_q": word, "b_address": address, "b_write": 1, "b_d": word, "b_q": word,
        }  # fmt: skip


def parse_name(name: str) -> BlockRam | None:
    """The block RAM with this module name, or None for any other module. The name may begin with the core's name
    (`core_block_ram_18x256`)."""
    match = _NAME.fullmatch(name)
    return BlockRam(int(match[1]), int(match[2]), 1 if match[3] else 2) if match else None


def find(verilog: str) -> dict[str, BlockRam]:
    """The block RAMs defined in a Verilog text, by module name.

    A module with a block RAM's name but other ports or parameters is left out: it stays behavioural.
    """
    return {
        name: ram
        for name, ports in named(verilog, "block_ram_")
        if (ram := parse_name(name)) and ports == {**ram.ports, "INIT": ram.width * ram.depth}
    }


def _header(ram: BlockRam, name: str | None = None) -> str:
    bits = ram.width * ram.depth
    lines = [f"module {name or ram.name}({', '.join(ram.ports)});", f"  parameter [{bits - 1}:0] INIT = {bits}'d0;"]
    for port, width in ram.ports.items():
        span = f"[{width - 1}:0] " if port not in ("clk", "b_write") else ""
        lines.append(f"  {'output' if port.endswith('_q') else 'input'} {span}{port};")
    return "\n".join([*lines, ""])


def behavioural(ram: BlockRam, name: str | None = None) -> str:
    """Verilog-2001 module of a block RAM, from which tools can infer a block."""
    width, last = ram.width, ram.depth - 1
    two = ram.registers == 2
    declared = [f"  reg [{width - 1}:0] {port}_{stage};" for port in "ab" for stage in ["first", "second"][: 1 + two]]
    second = {port: f"    {port}_second <= {port}_first;\n" if two else "" for port in "ab"}
    return (
        _header(ram, name)
        + f"""  (* no_rw_check{ATTRIBUTES} *)
  reg [{width - 1}:0] words [0:{last}];  // port A never reads what port B writes
{chr(10).join(declared)}
  integer k;
  initial
    for (k = 0; k <= {last}; k = k + 1)
      words[k] = INIT[k * {width} +: {width}];
  always @(posedge clk) begin
    a_first <= words[a_address];
{second["a"]}  end
  always @(posedge clk) begin
    if (b_write)
      words[b_address] <= b_d;
    else
      b_first <= words[b_address];
{second["b"]}  end
  assign a_q = a_{"second" if two else "first"};
  assign b_q = b_{"second" if two else "first"};
endmodule
"""
    )


def ecp5(verilog: str) -> str:
    """Modules that replace the block RAMs of at most 1024 words in a Verilog text by one DP16KD for every 18 bits of
    a word.

    Empty when there is none. Cost of each: ceil(width / 18) DP16KD, no logic. All registers of a port are the
    block's own.
    """
    return "\n".join(
        _header(ram, name) + "".join(_dp16kd(ram, low) for low in range(0, ram.width, _BLOCK_BITS)) + "endmodule\n"
        for name, ram in find(verilog).items()
        if ram.depth <= _BLOCK_DEPTH
    )


def _dp16kd(ram: BlockRam, low: int) -> str:
    """The DP16KD for the bits of each word from ``low`` on."""
    bits = min(_BLOCK_BITS, ram.width - low)
    parameters = {"GSR": '"DISABLED"', "RESETMODE": '"SYNC"'}
    pins: dict[str, str] = {}
    for port in "AB":
        mode = '"OUTREG"' if ram.registers == 2 else '"NOREG"'
        parameters |= {f"DATA_WIDTH_{port}": str(_BLOCK_BITS), f"REGMODE_{port}": mode}
        parameters |= {f"WRITEMODE_{port}": '"NORMAL"', f"CSDECODE_{port}": '"0b000"'}
        pins |= {f"CLK{port}": "clk", f"CE{port}": "1'b1", f"OCE{port}": "1'b1", f"RST{port}": "1'b0"}
        pins |= {f"CS{port}{k}": "1'b0" for k in range(3)}
        writes, side = port == "B", port.lower()
        pins[f"WE{port}"] = "b_write" if writes else "1'b0"
        for k in range(_ADDRESS_BITS):
            address = f"{side}_address[{k - 4}]" if 4 <= k < 4 + ram.address_bits else "1'b0"
            pins[f"AD{port}{k}"] = "1'b1" if k < 2 else address  # the lowest two enable the bytes that are written
        pins |= {f"DI{port}{k}": f"b_d[{low + k}]" if writes and k < bits else "1'b0" for k in range(_BLOCK_BITS)}
        pins |= {f"DO{port}{k}": f"{side}_q[{low + k}]" for k in range(bits)}
    for row in range(-(-ram.depth // _ROW_WORDS)):
        words = range(row * _ROW_WORDS, min((row + 1) * _ROW_WORDS, ram.depth))
        fields = [f"{20 - bits}'d0, INIT[{k * ram.width + low + bits - 1}:{k * ram.width + low}]" for k in words]
        parameters[f"INITVAL_{row:02X}"] = "{" + ", ".join(reversed(fields)) + "}"
    return instance("DP16KD", parameters, pins, f"block_{low}")
