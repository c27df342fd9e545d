# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Files that let other tools take a core or an engine: waivers for Verilator's lint, an IP-XACT component (IEEE
1685-2014), constraints for its clock.

Each stream of a core is an AXI4-Stream: valid and ready mean the same there. Data ports of one stream, such as i_a and
i_b, are TDATA in that order from bit 0 on, without padding to bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modmill.report.sheet import template

WAIVERS, COMPONENT = "lint.vlt", "component.xml"
FILES = (WAIVERS, COMPONENT)
"""Names of the files."""
_LOGICAL = {"valid": "TVALID", "ready": "TREADY", "last": "TLAST"}
_DATA = "TDATA"

Ports = Mapping[str, Mapping[str, Any]]
"""Direction (in, out) and width of every port, by name."""


def files(source: str, top: str, ports: Ports, meanings: Mapping[str, str], **about: str) -> dict[str, str]:
    """The files for the module ``top`` in the file ``source``, by name.

    ``meanings``: of the ports; ``about``: ``name`` (letters, digits, underscores), ``version`` and ``description``.
    """
    shown = {"source": source, "top": top, "ports": ports, "meanings": meanings, "streams": streams(ports), **about}
    return {name: template(f"{name}.j2").render(shown) for name in FILES}


def streams(ports: Ports) -> list[dict[str, Any]]:
    """The streams of a module: name, role (slave, master), and the map of each port to a port of AXI4-Stream with its
    bits."""
    found = []
    for name in dict.fromkeys(port.partition("_")[0] for port in ports if "_" in port):
        maps, bit = [], 0
        for port in (p for p in ports if p.startswith(f"{name}_")):
            logical, width = _LOGICAL.get(port.partition("_")[2], _DATA), ports[port]["width"]
            bits = (bit + width - 1, bit) if logical == _DATA else (None, None)
            bit += width * (logical == _DATA)
            maps.append({"logical": logical, "physical": port, "left": bits[0], "right": bits[1]})
        role = "master" if ports[f"{name}_valid"]["direction"] == "out" else "slave"
        found.append({"name": name, "role": role, "maps": maps})
    return found
