# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A netlist of word-level cells: Yosys reads it from Verilog, methods question and change it."""

from __future__ import annotations

import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from modmill.flow import tools

Bit = int | str
"""A bit of a netlist: the number of a net, or a constant "0", "1", "x"."""
Cell = dict[str, Any]

UNWRITTEN = "modmill_unwritten_"
"""Prefix of the registers that are 1 while a word of a memory is unwritten."""

_READ = (
    "read_verilog core.v; hierarchy -check -top {top}; {closed}proc -norom; flatten; opt_expr; opt_dff -simple-dffe; "
    "opt_expr; opt_clean; memory_collect; check -assert; write_json core.json"
)
_BITWISE = {"$and", "$or", "$xor", "$xnor", "$not", "$pos", "$mux"}
CARRYING = {"$add", "$sub", "$mul", "$neg"}
"""Types of cells whose output bits depend on no higher bit of an input."""
REGISTERS = {"$dff", "$dffe", "$sdff", "$sdffe", "$sdffce"}
"""Types of registers in a core with one clock and synchronous resets."""
_NUMBERED = re.compile(r"(^|\.)_\d+_(\[|$)")


class Netlist:
    """A module of word-level cells in Yosys's JSON format, with methods to change it."""

    def __init__(self, module: dict[str, Any]) -> None:
        self.module = module
        self.cells: dict[str, Cell] = {
            name: cell for name, cell in module["cells"].items() if cell["type"] != "$scopeinfo"
        }
        module["cells"] = self.cells
        nets = [b for cell in self.cells.values() for bits in cell["connections"].values() for b in bits]
        nets += [b for port in module["ports"].values() for b in port["bits"]]
        self._next = 1 + max((b for b in nets if isinstance(b, int)), default=1)
        self._names, self.initial = self._named()
        self._feeds = self._fanout()
        self.drivers = {
            bit: (name, port, k)
            for name, cell in self.cells.items()
            for port, bits in cell["connections"].items()
            if cell["port_directions"][port] == "output"
            for k, bit in enumerate(bits)
        }
        self._reset_values: dict[str, list[Bit]] = {}

    @classmethod
    def read(cls, verilog: str, top: str, closed: str = "") -> Netlist:
        """The netlist of a text; the modules ``closed``, with a blank between, stay cells. Raises ToolError if Yosys
        cannot read it or a cell has an unknown type."""
        script = _READ.format(top=top, closed=closed and f"blackbox {closed}; ")
        with tempfile.TemporaryDirectory(prefix="modmill-mutate-") as name:
            folder = Path(name)
            (folder / "core.v").write_text(re.sub(r"\(\* keep_hierarchy \*\)\n", "", verilog))
            tools.run(tools.yosys("-q", "-p", script), name="yosys", cwd=folder)
            module = json.loads((folder / "core.json").read_text())["modules"][top]
        return cls(module)

    # ---- queries

    def _named(self) -> tuple[dict[Bit, str], dict[Bit, str]]:
        """The names of the nets that have one in the source, the longest path first; initial values by net."""
        names: dict[Bit, str] = {}
        initial: dict[Bit, str] = {}
        for name, net in self.module["netnames"].items():
            value = net.get("attributes", {}).get("init", "")
            for k, bit in enumerate(net["bits"]):
                if value and k < len(value) and value[-1 - k] in "01":
                    initial[bit] = value[-1 - k]
                if not net["hide_name"] and not _NUMBERED.search(name):
                    known = names.get(bit)
                    index = f"[{k}]" if len(net["bits"]) > 1 else ""
                    if known is None or name.count(".") > known.count("."):
                        names[bit] = name + index
        return names, initial

    def _fanout(self) -> dict[Bit, list[str]]:
        found: dict[Bit, list[str]] = defaultdict(list)
        for name, cell in self.cells.items():
            for port, bits in cell["connections"].items():
                if cell["port_directions"][port] == "input":
                    for bit in bits:
                        found[bit].append(name)
        return found

    def outputs(self, cell: Cell) -> list[Bit]:
        """All output bits of a cell."""
        return [
            b for port, bits in cell["connections"].items() if cell["port_directions"][port] == "output" for b in bits
        ]

    def source(self, name: str) -> tuple[str, str]:
        """The instances that contain a cell, and the wire that it drives or the nearest named one after it."""
        seen, level = {name}, [name]
        while level:
            for each in level:
                for bit in self.outputs(self.cells[each]):
                    if bit in self._names:
                        path, _, wire = self._names[bit].rpartition(".")
                        return path, wire if each == name else f"-> {wire}"
            behind = [c for each in level for bit in self.outputs(self.cells[each]) for c in self._feeds[bit]]
            level = [c for c in dict.fromkeys(behind) if c not in seen]
            seen.update(level)
        return "", name

    def name(self, bit: Bit) -> str:
        """The name of a net in the source; empty if it has none."""
        return self._names.get(bit, "")

    def live(self) -> set[tuple[str, str, int]]:
        """Input bits of cells (cell, port, place) with a path to an output of the module."""
        todo = [bit for port in self.module["ports"].values() if port["direction"] == "output" for bit in port["bits"]]
        seen, found = set(todo), set[tuple[str, str, int]]()
        while todo:
            if (driver := self.drivers.get(todo.pop())) is None:
                continue
            name, port, k = driver
            cell = self.cells[name]
            for place in behind(cell, port, k):
                found.add((name, *place))
                bit = cell["connections"][place[0]][place[1]]
                if bit not in seen:
                    seen.add(bit)
                    todo.append(bit)
        return found

    def of_reset(self, bit: Bit, resets: set[Bit]) -> bool:
        """Whether a register's reset input is `rst`, or one gate of `rst` and other nets."""
        if bit in resets or bit not in self.drivers:
            return bit in resets
        pins = self.cells[self.drivers[bit][0]]["connections"]
        return any(b in resets for port in ("A", "B", "S") for b in pins.get(port, ()))

    def reset_registers(self) -> Iterator[str]:
        """Names of the registers that `rst` sets."""
        resets = set(self.module["ports"].get("rst", {"bits": []})["bits"])
        for name, cell in self.cells.items():
            if "SRST" in cell["connections"] and self.of_reset(cell["connections"]["SRST"][0], resets):
                yield name

    # ---- changes

    def legalise(self) -> None:
        """Replace unknown constants by 0, because Verilator refuses some of them."""
        for cell in self.cells.values():
            for port, bits in cell["connections"].items():
                cell["connections"][port] = ["0" if bit in ("x", "z") else bit for bit in bits]

    def add_input(self, name: str, bits: int) -> list[Bit]:
        """A new input port."""
        nets: list[Bit] = list(range(self._next, self._next + bits))
        self._next += bits
        self.module["ports"][name] = {"direction": "input", "bits": nets}
        self.module["netnames"][name] = {"hide_name": 0, "bits": nets, "attributes": {}}
        return nets

    def fresh(self, bits: int) -> list[Bit]:
        """New nets."""
        nets: list[Bit] = list(range(self._next, self._next + bits))
        self._next += bits
        return nets

    def add(self, type_: str, y: list[Bit] | None = None, width: int = 1, **inputs: list[Bit]) -> list[Bit]:
        """Add a cell with unsigned inputs; returns its output."""
        out = self.fresh(width) if y is None else y
        parameters = {}
        if type_ == "$mux":
            parameters["WIDTH"] = _number(len(out))
        else:
            for port, bits in inputs.items():
                parameters[f"{port}_WIDTH"], parameters[f"{port}_SIGNED"] = _number(len(bits)), _number(0)
            parameters["Y_WIDTH"] = _number(len(out))
        self._put(type_, parameters, {**inputs, "Y": out})
        return out

    def _put(self, type_: str, parameters: dict[str, str], connections: dict[str, list[Bit]]) -> None:
        ways = {port: "output" if port == "Y" else "input" for port in connections}
        self.cells[f"$modmill${len(self.cells)}"] = {
            "hide_name": 1, "type": type_, "parameters": parameters, "attributes": {}, "port_directions": ways,
            "connections": connections,
        }  # fmt: skip

    def copy(self, cell: Cell, type_: str) -> list[Bit]:
        """Add a cell of type ``type_`` with the inputs of another cell; returns its output."""
        out = self.fresh(len(cell["connections"]["Y"]))
        parameters = dict(cell["parameters"])
        if type_ == "$pos":
            parameters = {k: v for k, v in parameters.items() if k[0] in "AY"}
        self._put(type_, parameters, {**cell["connections"], "Y": out})
        return out

    def move_initial(self, old: Bit, new: Bit) -> None:
        """Move the initial value of a net to another net."""
        for net in self.module["netnames"].values():
            value = net.get("attributes", {}).get("init", "")
            if value and old in net["bits"]:
                k = len(net["bits"]) - 1 - net["bits"].index(old)
                net["attributes"]["init"] = value[:k] + "x" + value[k + 1 :] if k < len(value) else value
        self.module["netnames"][f"modmill_initial_{new}"] = {
            "hide_name": 1,
            "bits": [new],
            "attributes": {"init": self.initial[old]},
        }

    def unwritten(self, memory: str, word: int, k: int) -> list[Bit]:
        """A register that is 1 until bit ``k`` of a word of a memory is written; constant 1 if nothing writes it."""
        pins, parameters = self.cells[memory]["connections"], self.cells[memory]["parameters"]
        width, bits = int(parameters["WIDTH"], 2), int(parameters["ABITS"], 2)
        ports = range(int(parameters["WR_PORTS"], 2))
        if not ports:
            return ["1"]
        at: list[Bit] = [str(word >> j & 1) for j in range(bits)]
        held, writes = self.fresh(1), list[Bit]()
        for port in ports:
            here = self.add("$eq", A=pins["WR_ADDR"][port * bits : (port + 1) * bits], B=at)
            writes += self.add("$and", A=here, B=[pins["WR_EN"][port * width + k]])
        later = self.add("$and", A=held, B=self.add("$logic_not", A=writes))
        name = f"{UNWRITTEN}{len(self.cells)}"
        self.cells[f"${name}"] = register(self.module["ports"]["clk"]["bits"], later, held)
        self.module["netnames"][name] = {"hide_name": 0, "bits": held, "attributes": {"init": "1"}}
        return held

    def plain(self, name: str, flipped: int | None = None, enable: Bit = "0") -> Cell:
        """A register whose reset is replaced by multiplexers before it; bit ``flipped`` of the reset value is
        flipped."""
        cell = self.cells[name]
        pins, parameters = cell["connections"], cell["parameters"]
        value = self._reset_values.setdefault(name, list(reversed(parameters.get("SRST_VALUE", ""))))
        if flipped is not None:
            value[flipped] = self.add("$xor", A=[value[flipped]], B=[enable])[0]
        if "SRST" not in pins:
            return cell
        reset = pins.pop("SRST")
        if not int(parameters["SRST_POLARITY"], 2):
            reset = self.add("$not", A=reset)
        pins["D"] = self.add("$mux", self.fresh(len(pins["D"])), A=pins["D"], B=value, S=reset)
        if cell["type"] == "$sdffe" and int(parameters["EN_POLARITY"], 2):
            pins["EN"] = self.add("$or", A=pins["EN"], B=reset)
        elif cell["type"] == "$sdffe":
            pins["EN"] = self.add("$and", A=pins["EN"], B=self.add("$not", A=reset))
        cell["type"] = "$dff" if cell["type"] == "$sdff" else "$dffe"
        del parameters["SRST_POLARITY"], parameters["SRST_VALUE"], cell["port_directions"]["SRST"]
        return cell


def register(clk: list[Bit], d: list[Bit], q: list[Bit]) -> Cell:
    """A register cell without reset."""
    return {
        "hide_name": 1, "type": "$dff", "attributes": {}, "connections": {"CLK": clk, "D": d, "Q": q},
        "parameters": {"WIDTH": _number(len(d)), "CLK_POLARITY": "1"},
        "port_directions": {"CLK": "input", "D": "input", "Q": "output"},
    }  # fmt: skip


def _number(value: int) -> str:
    return f"{value:032b}"


def behind(cell: Cell, port: str, k: int) -> Iterable[tuple[str, int]]:
    """Input bits of a cell on which bit ``k`` of an output depends."""
    pins, type_ = cell["connections"], cell["type"]
    inputs = [p for p in pins if cell["port_directions"][p] == "input" and p not in ("CLK", "RD_CLK", "WR_CLK")]
    for p in inputs:
        bits = range(len(pins[p]))
        if p in ("A", "B") and type_ in _BITWISE:
            yield from ((p, j) for j in bits if j == min(k, len(pins[p]) - 1) or j == k)
        elif p in ("A", "B") and type_ == "$pmux":
            yield from ((p, j) for j in bits if j % len(pins["Y"]) == k)
        elif p in ("A", "B") and type_ in CARRYING:
            yield from ((p, j) for j in bits if j <= k)
        elif p == "D" and type_ in REGISTERS:
            yield p, k
        elif type_ == "$mem_v2":
            width = int(cell["parameters"]["WIDTH"], 2)
            yield from ((p, j) for j in bits if p not in ("WR_DATA", "WR_EN") or j % width == k % width)
        else:
            yield from ((p, j) for j in bits)


def through_gates(net: Netlist, bits: Sequence[Bit], ends: Collection[Bit]) -> set[Bit]:
    """The nets among ``ends`` from which gates lead to some nets, without a register between."""
    found, seen, todo = set[Bit](), set(bits), list(bits)
    while todo:
        bit = todo.pop()
        if bit in ends:
            found.add(bit)
            continue
        name, port, k = net.drivers.get(bit, ("", "", 0))
        if not name or (cell := net.cells[name])["type"] in REGISTERS:
            continue
        pins = behind(cell, port, k)
        for p, j in ((p, j) for p, j in pins if cell["type"] != "$mem_v2" or p == "RD_ADDR"):
            if (other := cell["connections"][p][j]) not in seen:
                seen.add(other)
                todo.append(other)
    return found


def ahead(cell: Cell, port: str, j: int) -> Iterable[tuple[str, int]]:
    """Output bits of a cell that depend on bit ``j`` of an input: the inverse of `behind`."""
    pins, type_ = cell["connections"], cell["type"]
    if port in ("CLK", "RD_CLK", "WR_CLK"):
        return
    for out in (p for p in pins if cell["port_directions"][p] == "output"):
        bits = len(pins[out])
        if port in ("A", "B") and type_ == "$pmux":
            yield out, j % bits
        elif port in ("A", "B") and type_ in _BITWISE:
            end = bits if j == len(pins[port]) - 1 else j + 1  # the highest bit of an operand is extended
            yield from ((out, k) for k in range(j, min(end, bits)))
        elif port in ("A", "B") and type_ in CARRYING:
            yield from ((out, k) for k in range(j, bits))
        elif port == "D" and type_ in REGISTERS:
            yield out, j
        elif type_ == "$mem_v2" and port in ("WR_DATA", "WR_EN"):
            width = int(cell["parameters"]["WIDTH"], 2)
            yield from ((out, k) for k in range(j % width, bits, width))
        else:
            yield from ((out, k) for k in range(bits))
