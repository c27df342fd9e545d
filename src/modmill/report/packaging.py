# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Files that let other tools take a core or an engine: waivers for Verilator's lint, an IP-XACT component (IEEE
1685-2014), FuseSoC's core file.

Each stream of a core is an AXI4-Stream: valid and ready mean the same there. Data ports of one stream, such as i_a and
i_b, are TDATA in that order from bit 0 on, without padding to bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modmill.contract import ALARM
from modmill.report.sheet import identifier, packaging_name, template

WAIVERS, COMPONENT = "lint.vlt", "component.xml"
FILES = (WAIVERS, COMPONENT)
"""Names of the files."""
_LOGICAL = {"valid": "TVALID", "ready": "TREADY", "last": "TLAST"}
_DATA = "TDATA"

Ports = Mapping[str, Mapping[str, Any]]
"""Direction (in, out) and width of every port, by name."""


@dataclass(frozen=True)
class Package:
    """What the files say about the module ``top`` in the file ``source``.

    ``name``: any text, of which letters and digits are kept; ``bench``: name of the cocotb bench without its suffix,
    which reads the files ``data``; ``meanings``: of the ports, in words.
    """

    source: str
    top: str
    ports: Ports
    meanings: Mapping[str, str]
    bench: str
    data: Sequence[str]
    name: str
    version: str
    description: str

    def files(self, core_file: str = "") -> dict[str, str]:
        """The text of each file, by name; ``core_file``: name of FuseSoC's file, by default made from ``name``."""
        name = identifier(self.name)
        shown = {
            **vars(self), "data": list(self.data), "name": name, "streams": streams(self.ports),
            "vlnv": packaging_name(name, self.version),
        }  # fmt: skip
        return {
            core_file or f"modmill_{name}.core": template("fusesoc.core.j2").render(shown),
            **{file: template(f"{file}.j2").render(shown) for file in FILES},
        }


def streams(ports: Ports) -> list[dict[str, Any]]:
    """The streams of a module: name, role (slave, master), and the map of each port to a port of AXI4-Stream with its
    bits. An alarm belongs to none."""
    found = []
    for name in dict.fromkeys(port.partition("_")[0] for port in ports if "_" in port):
        maps, bit = [], 0
        for port in (p for p in ports if p.startswith(f"{name}_") and p != ALARM):
            logical, width = _LOGICAL.get(port.partition("_")[2], _DATA), ports[port]["width"]
            bits = (bit + width - 1, bit) if logical == _DATA else (None, None)
            bit += width * (logical == _DATA)
            maps.append({"logical": logical, "physical": port, "left": bits[0], "right": bits[1]})
        role = "master" if ports[f"{name}_valid"]["direction"] == "out" else "slave"
        found.append({"name": name, "role": role, "maps": maps})
    return found
