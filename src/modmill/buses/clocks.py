# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Whether every path from one clock to another goes through a synchroniser: a check of the netlist of a front.

The netlist is that of Yosys, with the device as a black box. For the input of every register the check finds the
registers, memories and ports on which it depends. Of another clock only these are accepted:

    stage0 of a chain     directly behind a register, without logic between but a reset of stage0 by its own clock; of
                          several bits only behind a counter in Gray code: the exclusive or of a sum with itself
                          shifted, where the sum is that counter plus 0 or 1
    an asynchronous set   of the registers of a chain for resets, directly behind a register or the port of the reset
    the words of a queue  in the register behind its memory

Chains and queues are known by the names that they have in `crossing`. What is not checked: that a queue's memory is
read only when its word is there, which follows from the two places, and that a counter in Gray code does not go further
than to the next number while a reset sets it, which is when both sides are in reset.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from modmill.buses.crossing import ALARM_CHAIN, ASYNCHRONOUS, CHAINS, QUEUES
from modmill.flow import tools
from modmill.flow.modules import module_ports

Bit = int | str
"""A net of one bit; a constant is text."""
_SCRIPT = (
    "read_verilog front.v; hierarchy -top {top}; proc; flatten; memory_collect; wreduce; opt_clean; "
    "write_json front.json"
)
_REGISTER = re.compile(r"\$(?:a|s|al)?dffs?r?e?$")
_FIRST, _STAGE = "stage0", re.compile(r"stage\d+$")
_WORDS = "storage"
_WAYS = "input", "output"
_MODULE = re.compile(r"^module (\w+).*?^endmodule\n", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class _Source:
    """Something that keeps its value between the edges of ``clock``: a register, a memory, a pin, by its name."""

    clock: Bit
    name: str


class _Netlist:
    """A netlist of Yosys' JSON. ``clock``: the port of the clock of all ports but those in ``foreign``, which has the
    port of theirs. ``boxes``: the pin of the clock of each black box, by its type."""

    def __init__(
        self, module: Mapping[str, Any], clock: str, boxes: Mapping[str, str], foreign: Mapping[str, str]
    ) -> None:
        self.cells: dict[str, Mapping[str, Any]] = module["cells"]
        self.boxes = boxes
        ports = {way: {n: p["bits"] for n, p in module["ports"].items() if p["direction"] == way} for way in _WAYS}
        self.clocks = {name: ports["input"][foreign.get(name, clock)][0] for way in _WAYS for name in ports[way]}
        self.ports = {bit: _Source(self.clocks[name], name) for name, bits in ports["input"].items() for bit in bits}
        self.outputs: dict[str, list[Bit]] = ports["output"]
        nets = defaultdict(list)
        for name, net in module["netnames"].items():
            if not net.get("hide_name"):
                nets[tuple(net["bits"])].append(name)
        self._registers = {
            cell["connections"]["Q"][0]: self._register(key, nets[tuple(cell["connections"]["Q"])])
            for key, cell in self.cells.items() if _REGISTER.match(cell["type"])
        }  # fmt: skip

    @staticmethod
    def _register(cell: str, names: Sequence[str]) -> str:
        """The name of a register with its place in the hierarchy, which the name of its cell begins with."""
        place = cell.removeprefix("$flatten").replace("\\", "").split("$")[0]
        own = (n for n in names if n.startswith(place) and "." not in n[len(place) :])
        return next(own, f"{place}a register")

    def registers(self) -> Iterator[tuple[str, Mapping[str, Sequence[Bit]]]]:
        """Name and pins of every register."""
        for cell in self.cells.values():
            if _REGISTER.match(cell["type"]):
                yield self._registers[cell["connections"]["Q"][0]], cell["connections"]

    def box_pins(self) -> Iterator[tuple[str, Bit, Sequence[Bit]]]:
        """Name, clock and bits of every input of a black box, without its clock."""
        for cell in self.cells.values():
            if (clock := self.boxes.get(cell["type"])) is not None:
                for pin, bits in cell["connections"].items():
                    if pin != clock and cell["port_directions"][pin] == "input":
                        yield f"pin {pin} of {cell['type']}", cell["connections"][clock][0], bits

    @cached_property
    def driver(self) -> dict[Bit, tuple[str, Mapping[str, Any]]]:
        """The pin and the cell that drive a bit."""
        return {
            bit: (pin, cell) for cell in self.cells.values() for pin, bits in cell["connections"].items()
            if cell["port_directions"][pin] == "output" for bit in bits
        }  # fmt: skip

    @cached_property
    def _found(self) -> dict[Bit, frozenset[_Source]]:
        return {}

    def source(self, bit: Bit) -> _Source | None:
        """What keeps a value and drives this bit directly; None for logic and constants."""
        if bit in self.ports:
            return self.ports[bit]
        if bit not in self.driver:
            return None
        _, cell = self.driver[bit]
        pins = cell["connections"]
        if _REGISTER.match(cell["type"]):
            return _Source(pins["CLK"][0], self._registers[pins["Q"][0]])
        if cell["type"] in self.boxes:
            return _Source(pins[self.boxes[cell["type"]]][0], cell["type"])
        return None

    def sources(self, bit: Bit) -> frozenset[_Source]:
        """Everything that keeps a value and on which a bit depends, through logic."""
        waiting = [bit]
        while waiting:
            at = waiting[-1]
            direct = self.source(at)
            if at in self._found:
                waiting.pop()
            elif direct or at not in self.driver:
                self._found[at] = frozenset({direct} if direct else ())
            else:
                _, cell = self.driver[at]
                pins, memory = cell["connections"], cell["type"].startswith("$mem")
                needs = {
                    b for pin, bits in pins.items() for b in bits
                    if cell["port_directions"][pin] == "input" and not (memory and pin.startswith("WR"))
                }  # fmt: skip
                if missing := [b for b in needs if b not in self._found]:
                    waiting += missing
                    continue
                own = {_Source(pins["WR_CLK"][0], cell["parameters"]["MEMID"].lstrip("\\"))} if memory else set()
                self._found[at] = frozenset(own).union(*(self._found[b] for b in needs))
        return self._found[bit]

    def leaves(self, bits: Sequence[Bit]) -> Iterator[tuple[Bit, ...]]:
        """The values that a multiplexer in front of a register can choose."""
        pin, cell = self.driver.get(bits[0], ("", {"type": ""}))
        if cell["type"] == "$mux" and list(cell["connections"][pin]) == list(bits):
            for side in ("A", "B"):
                yield from self.leaves(cell["connections"][side])
        else:
            yield tuple(bits)

    def is_direct(self, bit: Bit, others: set[_Source]) -> bool:
        """Whether a bit comes from another clock without logic, but for a reset to a constant by its own clock."""
        if (source := self.source(bit)) is not None or bit not in self.driver:
            return source in others
        pins = self.driver[bit][1]["connections"]
        if self.driver[bit][1]["type"] != "$mux" or self.sources(pins["S"][0]) & others:
            return False
        place = list(pins["Y"]).index(bit)
        given = [x for x in (pins["A"][place], pins["B"][place]) if x not in ("0", "1")]
        return len(given) == 1 and self.is_direct(given[0], others)

    def is_gray(self, bits: Sequence[Bit]) -> bool:
        """Whether the register with these bits is a counter in Gray code, apart from what a reset sets."""
        counts = False
        for value in self.leaves(self.driver[bits[0]][1]["connections"]["D"]):
            pin, cell = self.driver.get(value[0], ("", {"type": ""}))
            pins = cell.get("connections", {})
            if cell["type"] == "$xor" and list(pins[pin]) == list(value):
                number, shifted = sorted((list(pins["A"]), list(pins["B"])), key=len, reverse=True)
                if [*shifted, "0"][: len(number)] != [*number[1:], "0"] or not self._next(number):
                    return False
                counts = True
            elif any(bit not in ("0", "1") and not self._of_chain(bit) for bit in value):
                return False
        return counts

    def _next(self, number: Sequence[Bit]) -> bool:
        """Whether a number is a register plus one bit, and what that register takes."""
        pin, cell = self.driver.get(number[0], ("", {"type": ""}))
        if cell["type"] != "$add" or list(cell["connections"][pin])[: len(number)] != list(number):
            return False
        register, step = list(cell["connections"]["A"])[: len(number)], cell["connections"]["B"]
        _, keeper = self.driver.get(register[0], ("", {"type": ""}))
        taken = keeper["connections"]["D"] if _REGISTER.match(keeper["type"]) else ()
        return set(step[1:]) <= {"0"} and tuple(number) in set(self.leaves(taken or ["0"]))

    def _of_chain(self, bit: Bit) -> bool:
        found = self.source(bit)
        return found is not None and bool(_STAGE.search(found.name)) and _part(found.name, (*CHAINS, ALARM_CHAIN))


def _part(name: str, of: Sequence[str]) -> bool:
    """Whether a register's name has one of these parts."""
    return bool(set(name.split(".")) & set(of))


def _netlist(
    verilog: str, top: str, front: str, clock: str, boxes: Mapping[str, str], foreign: Mapping[str, str]
) -> _Netlist:
    texts = [x[0] for x in _MODULE.finditer(verilog) if x[1] == top or x[1].startswith(front)]
    for box in boxes:
        ports = module_ports(verilog, box) or {}
        declared = ", ".join(f"{p['direction']}put [{p['width'] - 1}:0] {name}" for name, p in ports.items())
        texts.append(f"(* blackbox *) module {box}({declared});\nendmodule\n")
    with tempfile.TemporaryDirectory(prefix="modmill-clocks-") as name:
        folder = Path(name)
        (folder / "front.v").write_text("\n".join(texts))
        tools.run(tools.yosys("-q", "-p", _SCRIPT.format(top=top)), name="yosys", cwd=folder)
        module = json.loads((folder / "front.json").read_text())["modules"][top]
    return _Netlist(module, clock, boxes, foreign)


def clock_faults(
    verilog: str, top: str, front: str, clock: str, boxes: Mapping[str, str], foreign: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yield a line for each place of a bus.v at which a path leads from one clock to another without a synchroniser.

    ``top``: the module with the front, whose modules' names begin with ``front``. ``clock``: the port of the clock of
    its other ports, except those in ``foreign``, which has the port of their clock by their names. ``boxes``: black
    boxes, the pin of the clock by the module. Raises ToolError if Yosys refuses it.
    """
    netlist = _netlist(verilog, top, front, clock, boxes, foreign or {})
    crossings = 0
    for name, pins in netlist.registers():
        for pin, bits in pins.items():
            for bit in bits if pin not in ("CLK", "Q") else ():
                others = {s for s in netlist.sources(bit) if s.clock != pins["CLK"][0]}
                crossings += bool(others)
                if why := _refused(netlist, name, pin, bit, bits, others):
                    yield f"a path between clocks, from {min(s.name for s in others)} to {name}, {why}"
                    break
    ends = [*netlist.box_pins(), *((f"port {n}", netlist.clocks[n], bits) for n, bits in netlist.outputs.items())]
    for name, own, bits in ends:
        if others := {s for bit in bits for s in netlist.sources(bit) if s.clock != own}:
            yield f"a path between clocks, from {min(s.name for s in others)} to {name}, ends in no synchroniser"
    if not crossings:
        yield "no path leads from one clock to the other"


def _refused(netlist: _Netlist, name: str, pin: str, bit: Bit, bits: Sequence[Bit], others: set[_Source]) -> str:
    """Why paths from ``others`` to a pin of a register are not accepted; empty if they are, or if there are none."""
    if not others:
        return ""
    if pin == "ARST":
        if not (_STAGE.search(name) and _part(name, ASYNCHRONOUS)):
            return "sets it asynchronously, and it is in no chain for resets"
        return "" if netlist.source(bit) in others else "sets it asynchronously behind logic"
    if all(s.name.split(".")[-1] == _WORDS and _part(s.name, QUEUES) for s in others) and pin == "D":
        return ""
    if pin != "D" or not (name.endswith(f".{_FIRST}") and _part(name, (*CHAINS, ALARM_CHAIN))):
        return "ends in no synchroniser"
    if not netlist.is_direct(bit, others):
        return "reaches its synchroniser behind logic"
    if len(bits) > 1 and not netlist.is_gray(bits):
        return "has several bits that are no counter in Gray code"
    return ""
