# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Constant time of several machines behind a router: the module that connects them.

`engine_proof` shows of each machine and of the router that their handshakes depend on no words but heads and headers,
if all that comes to them besides words does not either. Here is shown that only such nets come to them, that each word
comes as it is from one module or from outside, and that no gates make a loop. So by induction over the cycles, and in a
cycle over the order of the gates, the handshake of the whole depends on no other words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from modmill.proofs.handshake.constant_time import HANDSHAKE, ConstantTime, require_clock
from modmill.proofs.netlist import REGISTERS, Bit, Netlist, through_gates

_TELLING = ("_data", "_alarm")
"""Ends of the names of ports that may depend on data."""
_Port = tuple[str, str]
"""A cell, empty for the module itself, and one of its ports."""


def cluster_time(net: Netlist, modules: Mapping[str, Netlist]) -> ConstantTime:
    """Prove it of a netlist in which the ``modules`` are cells, of which it is proved. Raises ValueError if a cell has
    another clock than port clk."""
    require_clock(net)
    handshake = tuple(n for n in HANDSHAKE if n in net.module["ports"])
    data = tuple(n for n in ("i_data", "random_data") if n in net.module["ports"])
    return ConstantTime(data, handshake, (), (), next(_faults(net, modules), ""))


def _faults(net: Netlist, modules: Mapping[str, Netlist]) -> Iterator[str]:
    parts = {name: cell for name, cell in net.cells.items() if cell["type"] in modules}
    others = {cell["type"] for name, cell in net.cells.items() if name not in parts and cell["type"][0] != "$"}
    if others or any(cell["type"] in REGISTERS for cell in net.cells.values()):
        yield f"there is more than {', '.join(modules)} and gates"
        return
    ports = net.module["ports"]
    given: dict[Bit, _Port] = {b: ("", n) for n, p in ports.items() if p["direction"] == "input" for b in p["bits"]}
    words = [p["bits"] for n, p in ports.items() if p["direction"] == "input"]
    taken = {("", n): p["bits"] for n, p in ports.items() if n in HANDSHAKE}
    waits: dict[_Port, set[_Port]] = {}
    for name, cell in parts.items():
        inside = _through(modules[cell["type"]])
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "output":
                waits[name, port] = {(name, p) for p in inside[port]}
                given |= dict.fromkeys(bits, (name, port))
                words.append(bits)
            elif port != "clk":
                taken[name, port] = bits
            elif bits != ports["clk"]["bits"]:
                raise ValueError(f"{name} has another clock than clk")
    for (name, port), bits in taken.items():
        waits[name, port] = waits.get((name, port), set()) | {given[b] for b in through_gates(net, bits, given)}
        told = [x for x in waits[name, port] if x[1].endswith(_TELLING)]
        if port.endswith("_data") and bits not in words:
            yield f"{_text((name, port))} is not a word of one module"
        elif told and not port.endswith(_TELLING):
            yield f"{_text((name, port))} depends on {_text(told[0])}"
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        yield f"a loop of gates through {' and '.join(_text(x) for x in error.args[1][1:])}"


def _text(port: _Port) -> str:
    return ".".join(filter(None, port))


def _through(net: Netlist) -> dict[str, set[str]]:
    """For each output of a module the inputs on which it depends in the same cycle."""
    ports = net.module["ports"]
    given = {b: n for n, p in ports.items() if p["direction"] == "input" for b in p["bits"]}
    return {
        name: {given[b] for b in through_gates(net, port["bits"], given)}
        for name, port in ports.items() if port["direction"] == "output"
    }  # fmt: skip
