# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Constant time of a multiplier, proved on its netlist: no operand bit reaches the handshake in any cycle.

A bit depends on all bits that may influence it, also through selects, enables, resets, addresses, registers and
memories. Assumed: Yosys' reading of the Verilog, and one clock.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from modmill.flow.netlist import Bit, Netlist, behind

PUBLIC = ("clk", "rst", "i_valid", "o_ready", "k_valid")
"""Input ports that carry no data."""
HANDSHAKE = ("i_ready", "o_valid", "k_ready", "o_last")
"""Output ports whose timing must not depend on data."""


@dataclass(frozen=True)
class ConstantTime:
    """The result. ``path``: names of nets from a data port to the handshake, by the fewest cells; empty if proved.
    ``tables``: memories with an address that depends on data; a read takes the same time for any address."""

    path: tuple[str, ...]
    tables: tuple[str, ...]

    @property
    def state(self) -> str:
        """PROVED or REFUTED. A refutation shows dependence of nets, not two operands with different times."""
        return "REFUTED" if self.path else "PROVED"


def constant_time(net: Netlist) -> ConstantTime:
    """Search all bits that depend on data ports. Raises ValueError if a cell has another clock than port clk, or if
    there are no data ports or no handshake."""
    ports = net.module["ports"]
    data = [n for n, p in ports.items() if p["direction"] == "input" and n not in PUBLIC]
    shaken = [b for n in HANDSHAKE for b in ports.get(n, {"bits": []})["bits"]]
    if not data or not shaken:
        raise ValueError(f"a module with data ports and one of {', '.join(HANDSHAKE)} is needed")
    _require_clock(net)
    before: dict[Bit, Bit | None] = {b: None for n in data for b in ports[n]["bits"]}
    users = _users(net)
    level = list(before)
    while level:
        found: list[Bit] = []
        for bit in level:
            for out in users[bit]:
                if out not in before:
                    before[out] = bit
                    found.append(out)
        level = found
    reached = next((b for b in before if b in shaken), None)
    path: list[str] = []
    while reached is not None:
        name = net.name(reached)
        path += [name] if name and name not in path[-1:] else []
        reached = before[reached]
    tables = tuple(sorted(
        name for name, cell in net.cells.items() if cell["type"] == "$mem_v2"
        and any(b in before for port in ("RD_ADDR", "WR_ADDR") for b in cell["connections"][port])
    ))  # fmt: skip
    return ConstantTime(tuple(reversed(path)), tables)


def _users(net: Netlist) -> dict[Bit, list[Bit]]:
    """For each net the nets that it may influence through one cell."""
    users = defaultdict[Bit, list[Bit]](list)
    for cell in net.cells.values():
        pins = cell["connections"]
        for port, bits in pins.items():
            if cell["port_directions"][port] == "output":
                for k, out in enumerate(bits):
                    for place, j in behind(cell, port, k):
                        if isinstance(pins[place][j], int):
                            users[pins[place][j]].append(out)
    return users


def _require_clock(net: Netlist) -> None:
    clock = net.module["ports"].get("clk", {"bits": []})["bits"]
    for name, cell in net.cells.items():
        for port in ("CLK", "RD_CLK", "WR_CLK"):
            if any(isinstance(b, int) and b not in clock for b in cell["connections"].get(port, ())):
                raise ValueError(f"cell {name} has another clock than clk")
