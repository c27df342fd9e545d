# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Verilog modules as text: find the ports of a module, which need not come from Modmill; write an instance."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DECLARED = re.compile(
    r"\b(input|output|inout)\s+(?:wire\s+|reg\s+)*(?:\[\s*(\d+)\s*:\s*(\d+)\s*\]\s*)?"
    r"([A-Za-z_]\w*(?:\s*,\s*(?!input\b|output\b|inout\b)[A-Za-z_]\w*)*)"
)
_WIDTH = re.compile(r"\b(?:input|output|parameter)\s+(?:wire\s+|reg\s+)?(?:\[(\d+):0\]\s*)?(\w+)")


def module_ports(verilog: str, top: str) -> dict[str, dict[str, Any]] | None:
    """Return name -> direction (in, out, inout) and width of each port of module ``top``; None if it is missing."""
    module = re.search(rf"\bmodule\s+{re.escape(top)}\b.*?\bendmodule\b", COMMENT.sub(" ", verilog), re.DOTALL)
    if module is None:
        return None
    found = {}
    for way, high, low, names in _DECLARED.findall(module[0]):
        for name in re.split(r"\s*,\s*", names.strip()):
            found[name] = {"direction": way.removesuffix("put"), "width": int(high or 0) - int(low or 0) + 1}
    return found


def named(verilog: str, part: str) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield the modules whose name contains ``part``: name, and bits of each port and parameter."""
    modules = rf"^module\s+(\w*?{part}\w+)\s*\(([^)]*)\);(.*?)^endmodule"
    for name, header, body in re.findall(modules, verilog, re.MULTILINE | re.DOTALL):
        yield name, {port: int(high or 0) + 1 for high, port in _WIDTH.findall(header + body)}


def instance(cell: str, parameters: Mapping[str, object], pins: Mapping[str, str], name: str = "block") -> str:
    """Return the text of an instance of ``cell`` with these parameters and pins."""
    values, nets = (",\n".join(f"    .{key}({value})" for key, value in of.items()) for of in (parameters, pins))
    return f"  {cell} #(\n{values}\n  ) {name} (\n{nets}\n  );\n"
