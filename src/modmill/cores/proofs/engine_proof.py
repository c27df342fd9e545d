# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Constant time of a machine for powers or curves, proved on its netlist.

Numbers, digits of exponents and scalars, and the words of a header come on the same port i_data. The machine's states
tell them apart: a word that it takes in one of the states `HEADERS` is a word of a header. Two runs are compared that
have the same pauses, resets and header words, and any other words; `handshake.lockstep` follows the machine's states.

The circuit for powers has states of its own, and jobs of variable time. In these the current bit of the exponent counts
as a header word too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from modmill.proofs.handshake.constant_time import (
    HANDSHAKE,
    ConstantTime,
    addresses,
    constant_time,
    require_clock,
    tables,
)
from modmill.proofs.handshake.gates import Gates
from modmill.proofs.handshake.lockstep import Explored, View, explore
from modmill.proofs.netlist import Bit, Netlist

HEADERS = ("message_command", "message_passes", "message_count")
"""States in which the machine takes the command of a message, the passes of a loop, the number of words of digits."""
_STATE = "message_"
_WAITING = "waiting"
_KEPT = "setup"
"""Register that says whether the word is the command of SETUP."""
CIRCUIT_HEADERS = ("circuit_command", "circuit_count")
"""States in which a circuit for powers takes the command of a message and the number of bits of an exponent."""
_CIRCUIT_STATE = "circuit_"
_VARIABLE = "variable"
"""Register that is 1 in a job of variable time."""
_CIRCUIT_BIT = "bit"
"""Register with the bit of the exponent."""
# Registers of which each value is followed; words of which only is followed whether they are equal in both runs.
_CIRCUIT_FOLLOWED = (_VARIABLE, "second", "converting", "squaring", "multiplying", "leaving")
_CIRCUIT_WORDS = ("setup", "left", "waiting")
_PACKET = "packet_state"
_PACKET_HEADERS = (0, 1, 2)
"""Values of the router's state in which it takes the words of a packet's head."""


def machine_time(net: Netlist, power_up: int = 1) -> ConstantTime:
    """Prove that the handshake of one machine depends on no other words than those of headers; on no words at all if it
    has no states of messages, so that it is not known which words are headers.

    Raises ValueError if a cell has another clock than port clk."""
    require_clock(net)
    ports = net.module["ports"]
    gates = Gates(net, HANDSHAKE, addresses(net))
    names = register_names(gates)
    states = [n for n in gates.registers if any(x.startswith(_STATE) for x in names[n])]
    waiting = [n for n in gates.registers if _WAITING in names[n]]
    headers = [n for n in states if set(HEADERS) & set(names[n])]
    data = [n for n, bit in gates.inputs.items() if bit in ports["i_data"]["bits"]]
    words = _held(gates, data, waiting)
    if not headers or not words:
        return constant_time(net)
    kept = [*words, *(n for n in gates.registers if _KEPT in names[n])]
    public = [([((n, 1), (waiting[0], 1)) for n in headers], words)]
    view = View(data, [*states, *waiting, *kept], kept, public=public)
    return outcome(gates, names, explore(gates, view, power_up=power_up), ("i_data",), _present(ports))


def circuit_time(net: Netlist, power_up: int = 1) -> ConstantTime:
    """Prove the same of a circuit for powers, except on the bits of the exponent of a job of variable time.

    Raises ValueError if a cell has another clock than port clk, or if the circuit's registers have other names."""
    require_clock(net)
    ports = net.module["ports"]
    gates = Gates(net, HANDSHAKE)
    names = register_names(gates)
    states = {x: n for n in gates.registers for x in names[n] if x.startswith(_CIRCUIT_STATE)}
    followed, words = ([register_bits(gates, name) for name in which] for which in (_CIRCUIT_FOLLOWED, _CIRCUIT_WORDS))
    if not all((*followed, *words, *(header in states for header in CIRCUIT_HEADERS))):
        raise ValueError("the netlist has no circuit for powers")
    data, offered = ([n for n, bit in gates.inputs.items() if bit in ports[x]["bits"]] for x in ("i_data", "i_valid"))
    conditions = [[(states[header], 1), *((n, 1) for n in offered)] for header in CIRCUIT_HEADERS]
    public = [(conditions, data), ([[(followed[0][0], 1)]], register_bits(gates, _CIRCUIT_BIT))]
    kept = [n for nets in words for n in nets]
    tracked = [*states.values(), *(n for nets in followed for n in nets), *kept]
    view = View(data, tracked, words=kept, public=public, inputs=offered)
    return outcome(gates, names, explore(gates, view, power_up=power_up), ("i_data",), _present(ports))


def register_bits(gates: Gates, name: str) -> list[int]:
    """The bits of a register by its name in the source, also where a keyword of Verilog has a stroke behind it."""
    nets = gates.net.module["netnames"]
    found: list[Bit] = next((nets[x]["bits"] for x in (name, f"{name}_") if x in nets), [])
    return [gates.index[bit] for bit in found if gates.index.get(bit) in gates.registers]


def router_time(net: Netlist) -> ConstantTime:
    """Prove the same of the router of several machines: its handshakes depend on the heads of packets only."""
    require_clock(net)
    ports = net.module["ports"]
    handshake = tuple(n for n, p in ports.items() if p["direction"] == "output" and not n.endswith("_data"))
    gates = Gates(net, handshake)
    names = register_names(gates)
    data = [
        n for n, bit in gates.inputs.items() if any(bit in p["bits"] for x, p in ports.items() if x.endswith("_data"))
    ]
    found = [nn["bits"] for name, nn in net.module["netnames"].items() if name.rpartition(".")[2] == _PACKET]
    states = [[gates.index.get(bit, -1) for bit in bits] for bits in found]
    tracked = next((nets for nets in states if set(nets) <= gates.registers.keys()), [])
    if not tracked:
        raise ValueError("the router has no state of packets, so it is not known which words are heads")
    i_data = [n for n in data if gates.inputs[n] in ports["i_data"]["bits"]]
    offered = [(n, 1) for n, bit in gates.inputs.items() if bit in ports["i_valid"]["bits"]]
    conditions = [[*offered, *((n, value >> k & 1) for k, n in enumerate(tracked))] for value in _PACKET_HEADERS]
    view = View(data, tracked, public=[(conditions, i_data)], inputs=[n for n, _ in offered])
    told = tuple(x for x, p in ports.items() if p["direction"] == "input" and x.endswith("_data"))
    return outcome(gates, names, explore(gates, view), told, handshake)


def _present(ports: Collection[str]) -> tuple[str, ...]:
    return tuple(n for n in HANDSHAKE if n in ports)


def _held(gates: Gates, data: Collection[int], waiting: Sequence[int]) -> list[int]:
    """The bits of the register that takes words from ``data`` unless one is ``waiting``; empty if there is none."""
    found = []
    for cell in gates.net.cells.values():
        pins, parameters = cell["connections"], cell["parameters"]
        if cell["type"] == "$dffe" and all(gates.index.get(bit) in data for bit in pins["D"]):
            enable = gates.index.get(pins["EN"][0], -1)
            free = waiting if not int(parameters["EN_POLARITY"], 2) else [gates.inverse(n) for n in waiting]
            if enable in free:
                found += [gates.index[bit] for bit in pins["Q"]]
    return [n for n in found if n in gates.registers]


def register_names(gates: Gates) -> dict[int, list[str]]:
    """The names of registers and ports in the source, the shortest first."""
    found: dict[int, list[str]] = {n: [] for n in (*gates.registers, *gates.inputs, *gates.outputs)}
    for name, net in gates.net.module["netnames"].items():
        if not net["hide_name"]:
            for bit in net["bits"]:
                if gates.index.get(bit) in found:
                    found[gates.index[bit]].append(name)
    return {n: sorted(texts, key=len) for n, texts in found.items()}


def outcome(
    gates: Gates, names: dict[int, list[str]], found: Explored, data: tuple[str, ...], handshake: tuple[str, ...]
) -> ConstantTime:
    """The result of `explore` for a module with these ports."""
    reached = next((n for n in gates.outputs if n in found.differing), None)
    nets = found.path(reached) if reached is not None else []
    path = tuple(dict.fromkeys((names.get(n) or [f"net {n}"])[0] for n in nets))
    bits = {n: bit for bit, n in gates.index.items()}
    equal = {bits[n] for n in gates.registers if n not in found.differing}
    return ConstantTime(data, handshake, path, tables(gates.net, data, equal))
