# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Constant time of a machine behind a block for random words (`engines.machine.blinder`), as two parts.

The netlist is cut at the stream of words from the block to the machine. Of each part is proved that its handshakes
depend on no words but header words, if all that comes to it besides words does not either; no gates lead from c_valid
to c_ready. So by induction over the cycles, and in a cycle over the order of the gates, the handshakes of the whole
depend on no other words.

    machine    as `engine_proof` does; a word from the block that it takes in a state of headers is a header word
    block      the word that it takes as the command of a message is a header word, and for powers so is the number of
               words of digits that it keeps; random words may differ in two runs

No test of random words fails: the registers of the block's alarm keep their values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from modmill.cores.proofs.engine_proof import machine_time, outcome, register_bits, register_names
from modmill.proofs.handshake.constant_time import ConstantTime, addresses, require_clock
from modmill.proofs.handshake.gates import Gates
from modmill.proofs.handshake.lockstep import View, explore
from modmill.proofs.netlist import Netlist, through_gates

_BLOCK, _MACHINE = "blinder.", "machine."
"""Instances of both parts."""
_STATE = "blinder_state"
_COMMAND = 0
"""Value of its state after a reset, in which it takes a command."""
_COUNT = "count"
"""Register with the number of words of digits, in blocks for powers."""
_CALM = {"alarm": "0", "calm": "1"}
"""Registers of the alarm, with their values while no test fails."""
_DATA = ("i_data", "random_data")
_HANDSHAKE = ("i_ready", "random_ready", "c_valid")


def is_blinded(net: Netlist) -> bool:
    """Whether a machine has such a block."""
    return _BLOCK + _STATE in net.module["netnames"]


def blinded_time(net: Netlist, power_up: int = 1) -> dict[str, ConstantTime]:
    """Prove it of both parts, by the names of their instances. Raises ValueError if a cell has another clock than port
    clk."""
    require_clock(net)
    stream, ports = _stream(net), _ports(net)
    loops = through_gates(net, stream["c_ready"], stream["c_valid"])
    given = {n: ports[n] for n in ("i_valid", "random_valid", *_DATA)}
    sent = {n: ports[n] for n in ("i_ready", "random_ready")} | {n: stream[n] for n in ("c_valid", "c_data")}
    block = _block_time(_part(_calm(net), {**given, "c_ready": stream["c_ready"]}, sent), power_up)
    if loops:
        block = ConstantTime(block.data, block.handshake, (), block.tables, "gates lead from c_valid to c_ready")
    return {_MACHINE[:-1]: machine_time(machine_part(net), power_up), _BLOCK[:-1]: block}


def machine_part(net: Netlist) -> Netlist:
    """The machine alone, with its own names; words come to it at port i_data."""
    stream, ports = _stream(net), _ports(net)
    found = _part(
        net.module, {"i_valid": stream["c_valid"], "i_data": stream["c_data"], "o_ready": ports["o_ready"]},
        {"i_ready": stream["c_ready"], **{n: ports[n] for n in ("o_valid", "o_last", "o_data")}},
    )  # fmt: skip
    module = found.module
    for names in (module["netnames"], module["cells"]):
        for name in [n for n in names if n.startswith(_MACHINE)]:
            names[name.removeprefix(_MACHINE)] = names.pop(name)
    return Netlist(module)


def _stream(net: Netlist) -> dict[str, list[Any]]:
    """The nets of the stream from the block to the machine."""
    return {n: net.module["netnames"][_BLOCK + n]["bits"] for n in ("c_valid", "c_ready", "c_data")}


def _ports(net: Netlist) -> dict[str, list[Any]]:
    return {name: port["bits"] for name, port in net.module["ports"].items()}


def _block_time(net: Netlist, power_up: int) -> ConstantTime:
    gates = Gates(net, _HANDSHAKE, addresses(net))
    ports = net.module["ports"]
    state, count = (register_bits(gates, _BLOCK + name) for name in (_STATE, _COUNT))
    data = {name: [n for n, bit in gates.inputs.items() if bit in ports[name]["bits"]] for name in _DATA}
    command = [(n, _COMMAND >> k & 1) for k, n in enumerate(state)]
    always: list[tuple[int, int]] = []
    public = [([command], data["i_data"]), ([always], count)]
    view = View([n for nets in data.values() for n in nets], state, public=public)
    return outcome(gates, register_names(gates), explore(gates, view, power_up=power_up), _DATA, _HANDSHAKE)


def _calm(net: Netlist) -> dict[str, Any]:
    """The module, in which all that reads the registers of the alarm gets their values."""
    module: dict[str, Any] = deepcopy(net.module)
    values = {module["netnames"][_BLOCK + name]["bits"][0]: value for name, value in _CALM.items()}
    for cell in module["cells"].values():
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "input":
                cell["connections"][port] = [values.get(bit, bit) for bit in bits]
    return module


def _part(whole: Mapping[str, Any], given: Mapping[str, Sequence[Any]], sent: Mapping[str, Sequence[Any]]) -> Netlist:
    """The part of a module that drives the nets ``sent``, from the nets ``given``; both become its ports."""
    module: dict[str, Any] = deepcopy(dict(whole))
    for name in module["ports"].keys() - {"clk", "rst"}:
        del module["ports"][name]
    for way, nets in (("input", given), ("output", sent)):
        module["ports"] |= {name: {"direction": way, "bits": list(bits)} for name, bits in nets.items()}
    net = Netlist(module)
    cut = {bit for bits in given.values() for bit in bits}
    for cell in module["cells"].values():
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "output" and not cut.isdisjoint(bits):
                cell["connections"][port] = [net.fresh(1)[0] if bit in cut else bit for bit in bits]
    kept = {cell for cell, _, _ in Netlist(module).live()}
    module["cells"] = {name: cell for name, cell in module["cells"].items() if name in kept}
    return Netlist(module)
