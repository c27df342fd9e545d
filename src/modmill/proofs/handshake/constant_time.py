# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Constant time, proved on a netlist: no bit of data reaches the handshake in any cycle.

A bit depends on all bits that may influence it, also through selects, enables, resets, addresses, registers and
memories (`netlist.ahead`). All bits that depend on data in this way are found. If no bit of the handshake is among
them, two runs that differ only in data, and in the contents of registers that depend on it, have the same handshake in
every cycle. If one is, the bits on a shortest path are a reason to look: the path may be one that no values take.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from modmill.proofs.netlist import CARRYING, Bit, Netlist, ahead

PUBLIC = ("clk", "rst", "i_valid", "o_ready", "k_valid")
"""Input ports that carry no data."""
HANDSHAKE = ("i_ready", "o_valid", "k_ready", "o_last", "random_ready")
"""Output ports whose timing must not depend on data."""


@dataclass(frozen=True)
class Table:
    """A memory with an address that depends on data. ``ports``: the data ports on which its addresses depend;
    ``written``: whether the core writes it."""

    name: str
    words: int
    width: int
    written: bool
    ports: tuple[str, ...]

    @property
    def kind(self) -> str:
        """All but the name, in words."""
        kind = "written" if self.written else "read only"
        return f"{self.words} words of {self.width} bits, {kind}; addresses from {', '.join(self.ports)}"


@dataclass(frozen=True)
class ConstantTime:
    """The result. ``data``, ``handshake``: the ports. ``path``: names of nets from a data port to the handshake, by the
    fewest cells; empty if there is none. ``tables``: memories with an address that depends on data. ``remains``: what
    is not seen, in words, if it is known."""

    data: tuple[str, ...]
    handshake: tuple[str, ...]
    path: tuple[str, ...]
    tables: tuple[Table, ...]
    remains: str = ""

    @property
    def state(self) -> str:
        """PROVED or OPEN. A path shows that nets are connected, not that two operands have different times."""
        return "OPEN" if self.path or self.remains else "PROVED"


def constant_time(net: Netlist, public: Collection[str] = PUBLIC) -> ConstantTime:
    """Search all bits that depend on data: on the input ports outside ``public``.

    Raises ValueError if a cell has another clock than port clk, or if there are no data ports or no handshake."""
    ports = net.module["ports"]
    data = [n for n, p in ports.items() if p["direction"] == "input" and n not in public]
    handshake = [n for n in HANDSHAKE if n in ports]
    if not data or not handshake:
        raise ValueError(f"a module with data ports and one of {', '.join(HANDSHAKE)} is needed")
    require_clock(net)
    users = users_of(net)
    before = dependent(net, users, [b for n in data for b in ports[n]["bits"]])
    shaken = {b for n in handshake for b in ports[n]["bits"]}
    path = path_to(net, before, next((b for b in before if b in shaken), None))
    addressed = any(b in before for b in addresses(net))
    return ConstantTime(tuple(data), tuple(handshake), path, tables(net, data) if addressed else ())


def addresses(net: Netlist) -> Iterator[Bit]:
    """The nets of the addresses of all memories."""
    for cell in net.cells.values():
        if cell["type"] == "$mem_v2":
            yield from (bit for port in ("RD_ADDR", "WR_ADDR") for bit in cell["connections"][port])


Users = dict[Bit, list[tuple[str, str, int]]]
"""For each net the inputs of cells (cell, port, place) that it drives."""


def users_of(net: Netlist) -> Users:
    """The inputs that each net drives."""
    users = defaultdict[Bit, list[tuple[str, str, int]]](list)
    for name, cell in net.cells.items():
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "input":
                for j, bit in enumerate(bits):
                    if isinstance(bit, int):
                        users[bit].append((name, port, j))
    return users


def dependent(net: Netlist, users: Users, first: Sequence[Bit], barrier: Collection[Bit] = ()) -> dict[Bit, Bit | None]:
    """All nets that depend on nets ``first``, the nearest first, each with the net before it (None for the first).
    ``barrier``: nets that are known not to depend on them."""
    before: dict[Bit, Bit | None] = dict.fromkeys((b for b in first if isinstance(b, int)), None)
    done: set[tuple[str, str]] = set()  # inputs of cells all of whose outputs are reached
    sizes = {name: len(net.outputs(cell)) for name, cell in net.cells.items()}
    lowest: dict[str, int] = {}  # of the inputs of a sum that are reached
    level = list(before)
    while level:
        found: list[Bit] = []
        for bit in level:
            for name, port, j in users.get(bit, ()):
                cell, reached = net.cells[name], 0
                if (name, port) in done or (cell["type"] in CARRYING and j >= lowest.get(name, j + 1)):
                    continue
                lowest[name] = j
                for out, k in ahead(cell, port, j):
                    reached += 1
                    net_of = cell["connections"][out][k]
                    if net_of not in before and net_of not in barrier:
                        before[net_of] = bit
                        found.append(net_of)
                if reached == sizes[name]:
                    done.add((name, port))
        level = found
    return before


def path_to(net: Netlist, before: dict[Bit, Bit | None], bit: Bit | None) -> tuple[str, ...]:
    """The names of the nets on the path to a net, in order; unnamed nets are left out."""
    path: list[str] = []
    while bit is not None:
        name = net.name(bit)
        path += [name] if name and name not in path[-1:] else []
        bit = before[bit]
    return tuple(reversed(path))


def tables(net: Netlist, data: Sequence[str], barrier: Collection[Bit] = ()) -> tuple[Table, ...]:
    """Memories with an address that depends on ports ``data``; ``barrier`` as in `dependent`."""
    users = users_of(net)
    cones = {n: dependent(net, users, net.module["ports"][n]["bits"], barrier) for n in data}
    found = []
    for name, cell in sorted(net.cells.items()):
        if cell["type"] == "$mem_v2":
            parameters = cell["parameters"]
            bits = [b for port in ("RD_ADDR", "WR_ADDR") for b in cell["connections"][port]]
            ports = tuple(n for n, cone in cones.items() if any(b in cone for b in bits))
            size, width, writes = (int(parameters[key], 2) for key in ("SIZE", "WIDTH", "WR_PORTS"))
            found += [Table(name, size, width, writes > 0, ports)] if ports else []
    return tuple(found)


def require_clock(net: Netlist) -> None:
    """Raise ValueError if a cell has another clock than port clk."""
    clock = net.module["ports"].get("clk", {"bits": []})["bits"]
    for name, cell in net.cells.items():
        for port in ("CLK", "RD_CLK", "WR_CLK"):
            if any(isinstance(b, int) and b not in clock for b in cell["connections"].get(port, ())):
                raise ValueError(f"cell {name} has another clock than clk")
