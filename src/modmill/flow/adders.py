# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Adders with a choice: the modules that add one of two numbers to another.

Such an adder is the Verilog module `mux_add_<W>`: ports `choose`, `a`, `b`, `c` and `total` of W bits,
total = a + (choose ? b : c) modulo 2^W; `mux_sub_<W>` adds ~b in place of b. Yosys maps the choice to LUTs before the
carry chain, one more for each bit.

In an emitted core the adders are behavioural; `ecp5` writes modules of the same names from CCU2C. A half of this cell
adds its carry to a function of four inputs, A ^ (D ? B : C) or A ^ (D ? ~B : C) here, and hands on A as carry where the
function is 0. The cell takes that from the same function at C = D = 0, where it is A.
"""

import re
from dataclasses import dataclass

from modmill.flow.modules import instance, named

_NAME = re.compile(r"(?:\w+?_)?mux_(add|sub)_(\d+)")
_FUNCTIONS = {"add": "16'h665A", "sub": "16'h995A"}  # A ^ (D ? B : C), A ^ (D ? ~B : C); bit 8 D + 4 C + 2 B + A


@dataclass(frozen=True)
class Adder:
    """An adder of ``width`` bits. ``kind``: add, or sub if the chosen number is inverted."""

    width: int
    kind: str = "add"

    @property
    def name(self) -> str:
        """Name of its Verilog module."""
        return f"mux_{self.kind}_{self.width}"

    @property
    def chosen(self) -> str:
        """What is added if ``choose`` is high."""
        return "~b" if self.kind == "sub" else "b"


def parse_name(name: str) -> Adder | None:
    """The adder with this module name, or None for any other module. The name may begin with the core's name
    (`core_mux_add_18`)."""
    match = _NAME.fullmatch(name)
    return Adder(int(match[2]), match[1]) if match else None


def find(verilog: str) -> dict[str, Adder]:
    """The adders defined in a Verilog text, by module name.

    A module with an adder's name but other ports is left out: it stays behavioural.
    """
    return {
        name: adder
        for name, ports in named(verilog, "mux_")
        if (adder := parse_name(name))
        and ports == {"choose": 1, **dict.fromkeys(("a", "b", "c", "total"), adder.width)}
    }


def _header(adder: Adder, name: str | None) -> str:
    width = adder.width
    ports = "".join(f"  input [{width - 1}:0] {port};\n" for port in "abc") + f"  output [{width - 1}:0] total;\n"
    return f"module {name or adder.name}(choose, a, b, c, total);\n  input choose;\n{ports}"


def behavioural(adder: Adder, name: str | None = None) -> str:
    """Verilog-2001 module of an adder."""
    return f"{_header(adder, name)}  assign total = a + (choose ? {adder.chosen} : c);\nendmodule\n"


def ecp5(verilog: str) -> str:
    """Modules that replace the adders of a Verilog text by CCU2C, one for two bits. Empty if there are none."""
    return "\n".join(_ecp5(name, adder) for name, adder in find(verilog).items())


def _ecp5(name: str, adder: Adder) -> str:
    width, function = adder.width, _FUNCTIONS[adder.kind]
    parameters = {"INIT0": function, "INIT1": function, "INJECT1_0": '"NO"', "INJECT1_1": '"NO"'}
    count = -(-width // 2)
    top = 2 * count - 1
    lines = [
        _header(adder, name),
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
        lines.append(instance("CCU2C", parameters, pins, f"bits{k}"))
    return "".join([*lines, "endmodule\n"])
