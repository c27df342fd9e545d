# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""All registers and memories of a netlist, for simulations that read or change them.

The registers and memories are those of the netlist: Yosys flattens the Verilog, each register and memory gets a name of
its own there, and the simulated text is that netlist. A C++ harness names each of them by the macro MODMILL_STATE, so
it does not compile if the model lacks one.
"""

from __future__ import annotations

import ctypes
import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from modmill.flow import tools
from modmill.proofs.netlist import REGISTERS, Netlist

_STATE, _PORT = "modmill_state_", "modmill_port_"
_WRITE = "read_json named.json; check -assert; write_verilog -noattr named.v"
_DECLARED = re.compile(rf"^(  reg(?: \[[^\]]+\])? {_STATE}\d+(?: \[[^\]]+\])?)( = [^;]+)?;", re.MULTILINE)
_WIRE = re.compile(rf"^(  wire(?: \[[^\]]+\])? (?:{_STATE}|{_PORT})\d+);", re.MULTILINE)
_ANY = re.compile(r"^\s*reg\b", re.MULTILINE)


@dataclass(frozen=True)
class Place:
    """A register (``words`` is 1), a memory, or a net. ``name``: in the source, with the instances that contain it.
    ``low``: index of its lowest bit there: the netlist may have several registers for one of the source. ``constant``:
    a memory that nothing writes. ``ports``: nets of the addresses of its ports, if they are known; ``first``: address
    of its word 0."""

    name: str
    width: int
    words: int = 1
    memory: bool = False
    low: int = 0
    constant: bool = False
    net: bool = False
    ports: tuple[str, ...] = ()
    first: int = 0

    @property
    def bits(self) -> int:
        """Number of its bits."""
        return self.width * self.words


def named(verilog: str, top: str, *, nets: bool = False, ports: bool = False) -> tuple[str, list[Place]]:
    """The flattened netlist of a text as Verilog, in which register or memory k is called ``modmill_state_k``, and the
    places in that order. ``nets``: the outputs of all other cells follow. ``ports``: with the nets of the addresses of
    memories. Raises ToolError if Yosys cannot read the text."""
    netlist = Netlist.read(verilog, top)
    places = list[Place]()
    for name in sorted(netlist.cells):
        cell = netlist.cells[name]
        memory = cell["type"] == "$mem_v2"
        if not memory and cell["type"] not in REGISTERS:
            continue
        label = f"{_STATE}{len(places)}"
        if memory:
            parameters = cell["parameters"]
            source, parameters["MEMID"] = parameters["MEMID"].removeprefix("\\"), f"\\{label}"
            width, words, first, written = (int(parameters[k], 2) for k in ("WIDTH", "SIZE", "OFFSET", "WR_PORTS"))
            addresses = _addresses(netlist, cell, len(places)) if ports else ()
            places.append(Place(source, width, words, True, constant=not written, ports=addresses, first=first))
        else:
            places.append(_register(netlist, name, label))
    registers = len(places)
    for name in sorted(netlist.cells) if nets else ():
        cell = netlist.cells[name]
        if cell["type"] not in (*REGISTERS, "$pos"):
            for port, way in cell["port_directions"].items():
                if way == "output":
                    bits = cell["connections"][port]
                    label = f"{_STATE}{len(places)}"
                    netlist.module["netnames"][label] = {"hide_name": 0, "bits": list(bits), "attributes": {}}
                    places.append(Place(".".join(netlist.source(name)), len(bits), net=True))
    for label, net in netlist.module["netnames"].items():
        if not label.startswith(_STATE):
            net.get("attributes", {}).pop("init", None)
    netlist.legalise()
    with tempfile.TemporaryDirectory(prefix="modmill-faults-") as folder:
        path = Path(folder)
        (path / "named.json").write_text(json.dumps({"creator": "modmill", "modules": {top: netlist.module}}))
        tools.run(tools.yosys("-q", "-p", _WRITE), name="yosys", cwd=path)
        text = (path / "named.v").read_text()
    marked, count = _DECLARED.subn(r"\1 /*verilator public_flat_rd*/\2;", text)
    if not count == registers == len(_ANY.findall(text)):
        whole = len(_ANY.findall(text))
        raise tools.ToolError(f"yosys: the netlist has {whole} registers and memories, the campaign {registers}")
    if nets or ports:
        marked = _WIRE.sub(r"\1 /*verilator public_flat_rd*/;", marked)
    return marked, places


def _register(netlist: Netlist, name: str, label: str) -> Place:
    """The place of a register cell, whose output gets the name ``label``."""
    cell = netlist.cells[name]
    old = cell["connections"]["Q"]
    new = cell["connections"]["Q"] = netlist.fresh(len(old))
    netlist.add("$pos", list(old), len(old), A=list(new))
    init = "".join(netlist.initial.get(bit, "x") for bit in reversed(old))
    attributes = {"init": init} if set(init) != {"x"} else {}
    netlist.module["netnames"][label] = {"hide_name": 0, "bits": list(new), "attributes": attributes}
    base, _, index = (netlist.name(old[0]) or ".".join(netlist.source(name))).partition("[")
    return Place(base, len(old), low=int(index[:-1]) if index[:-1].isdigit() else 0)


def _addresses(netlist: Netlist, cell: dict[str, Any], number: int) -> tuple[str, ...]:
    """Names for the addresses of all ports of memory ``number``; none if some of its ports read or write several words
    at once."""
    parameters, found = cell["parameters"], list[str]()
    size = int(parameters["ABITS"], 2)
    for way in ("RD", "WR"):
        if "1" in parameters[f"{way}_WIDE_CONTINUATION"]:
            return ()
        for k in range(int(parameters[f"{way}_PORTS"], 2)):
            found.append(f"{_PORT}{number}{len(found):02}")
            bits = cell["connections"][f"{way}_ADDR"][k * size : (k + 1) * size]
            netlist.module["netnames"][found[-1]] = {"hide_name": 0, "bits": list(bits), "attributes": {}}
    return tuple(found)


def ports_macro(top: str, places: Sequence[Place]) -> str:
    """The macro MODMILL_PORTS for a harness: PORT(number of the memory, address of its word 0, name) for each port."""
    ports = (f"PORT({k}, {place.first}, {top}__DOT__{port})" for k, place in enumerate(places) for port in place.ports)
    return f"#define MODMILL_PORTS {' '.join(ports)}\n"


def state_macro(top: str, count: int) -> str:
    """The macro MODMILL_STATE for a harness: STATE(name) for each of the ``count`` registers and memories, in order."""
    return f"#define MODMILL_STATE {' '.join(f'STATE({top}__DOT__{_STATE}{k})' for k in range(count))}\n"


class Instance:
    """An instance of a compiled model, for one thread; a context manager."""

    _library: ctypes.CDLL
    _simulation: int

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the instance; nothing can be run any more."""
        self._library.modmill_end(self._simulation)
