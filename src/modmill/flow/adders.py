# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Adders with a choice: the modules that add one of two numbers to another.

Such an adder is the Verilog module `mux_add_<W>`: ports `choose`, `a`, `b`, `c` and `total` of W bits,
total = a + (choose ? b : c) modulo 2^W. Yosys maps the choice to LUTs before the carry chain, one more for each bit.

In an emitted core the adders are behavioural; `ecp5` writes modules of the same names from CCU2C. A half of this cell
adds its carry to a function of four inputs, A ^ (D ? B : C) here, and hands on A as carry where the function is 0. The
cell takes that from the same function at C = D = 0, where it is A.
"""

import re

from modmill.flow.modules import instance, named

_NAME = re.compile(r"(?:\w+?_)?mux_add_(\d+)")
_FUNCTION = "16'h665A"  # A ^ (D ? B : C), bit 8 D + 4 C + 2 B + A
_PARAMETERS = {"INIT0": _FUNCTION, "INIT1": _FUNCTION, "INJECT1_0": '"NO"', "INJECT1_1": '"NO"'}


def parse_name(name: str) -> int | None:
    """Bits of the adder with this module name, or None for any other module. The name may begin with the core's name
    (`core_mux_add_18`)."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def find(verilog: str) -> dict[str, int]:
    """Names and bits of the adders defined in a Verilog text.

    A module with an adder's name but other ports is left out: it stays behavioural.
    """
    return {
        name: width
        for name, ports in named(verilog, "mux_add_")
        if (width := parse_name(name)) and ports == {"choose": 1, **dict.fromkeys(("a", "b", "c", "total"), width)}
    }


def _header(width: int, name: str | None) -> str:
    ports = "".join(f"  input [{width - 1}:0] {port};\n" for port in "abc") + f"  output [{width - 1}:0] total;\n"
    return f"module {name or f'mux_add_{width}'}(choose, a, b, c, total);\n  input choose;\n{ports}"


def behavioural(width: int, name: str | None = None) -> str:
    """Verilog-2001 module of an adder."""
    return f"{_header(width, name)}  assign total = a + (choose ? b : c);\nendmodule\n"


def ecp5(verilog: str) -> str:
    """Modules that replace the adders of a Verilog text by CCU2C, one for two bits. Empty if there are none."""
    return "\n".join(_ecp5(name, width) for name, width in find(verilog).items())


def _ecp5(name: str, width: int) -> str:
    count = -(-width // 2)
    top = 2 * count - 1
    lines = [
        _header(width, name),
        *(f"  wire [{top}:0] {port}_w = {port};\n" for port in "abc"),
        f"  wire [{top}:0] total_w;\n  wire [{count}:0] carry;\n",
        f"  assign carry[0] = 1'b0;\n  assign total = total_w[{width - 1}:0];\n",
    ]
    for k in range(count):
        pins = {"CIN": f"carry[{k}]", "COUT": f"carry[{k + 1}]"}
        for half in (0, 1):
            bit = 2 * k + half
            pins |= {f"{pin}{half}": f"{port}_w[{bit}]" for pin, port in zip("ABC", "abc", strict=True)}
            pins |= {f"D{half}": "choose", f"S{half}": f"total_w[{bit}]"}
        lines.append(instance("CCU2C", _PARAMETERS, pins, f"bits{k}"))
    return "".join([*lines, "endmodule\n"])
