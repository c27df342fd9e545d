# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Find the ports of a module in Verilog text, which need not come from Modmill."""

from __future__ import annotations

import re
from typing import Any

from modmill.flow.lint import COMMENT

_DECLARED = re.compile(
    r"\b(input|output|inout)\s+(?:wire\s+|reg\s+)*(?:\[\s*(\d+)\s*:\s*(\d+)\s*\]\s*)?"
    r"([A-Za-z_]\w*(?:\s*,\s*(?!input\b|output\b|inout\b)[A-Za-z_]\w*)*)"
)


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
