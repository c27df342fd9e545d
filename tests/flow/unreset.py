# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Registers without reset: a proof on the netlist that only data depends on them.

A register is *set* if a reset gives it a value or the text gives it an initial value. Each bit of every other register
is one of two kinds:

- *flushed within n cycles*: it depends, through at most n registers, only on inputs and set registers. No register on
  the way can hold its value, so contents from before the reset are gone after n cycles.
- *data*: it depends on a loop (a register that can keep its value) or on a memory that is written.

No bit of either kind may reach a handshake port or a control register, and no data may reach an address or a write
enable of a memory, unless the path is allowed by name. A control register is a set register that no operand reaches;
other set registers pass on their inputs. The effect of flushed bits on the first products is not analysed here;
simulation from random start states covers it.

The analysis is conservative: each bit of a result depends on every bit that the operation may use (addition and
subtraction: on bits of the same place and below).
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from modmill.flow import tools

HANDSHAKE = ("i_ready", "o_valid", "k_ready")
"""Outputs that must not depend on a register without reset."""

DATA = ("i_a", "i_b", "k_m")
"""Ports of operands and of a loaded modulus."""

_SCRIPT = (
    "read_verilog -nosynthesis core.v; hierarchy -check -top {top}; proc -norom; "
    "setattr -mod -unset keep_hierarchy *; flatten; opt_clean; write_json core.json"
)
_EACH = {"$not", "$and", "$or", "$xor", "$xnor", "$pos"}
_CHAIN = {"$add", "$sub", "$neg", "$alu"}
_REGISTERS = {"$dff", "$dffe", "$sdff", "$sdffe", "$sdffce"}

Node = int | str
"""A net of Yosys's JSON (a number), or a name for a cell's carry, a cell's result or a memory."""


@dataclass(frozen=True)
class Unreset:
    """The registers of a netlist that have neither reset nor initial value.

    ``flushed``: by register, the cycles within which it is flushed. ``data``: the other registers.
    ``faults``: one line for each port, set register, address or write enable with a forbidden dependence.
    ``named``: the allowed dependences, with the reason.
    """

    flushed: Mapping[str, int]
    data: Sequence[str]
    faults: Sequence[str]
    named: Sequence[str] = field(default=())


def unreset(
    verilog: str, top: str = "core", *, known: Mapping[str, str] | None = None, allowed: Mapping[str, str] | None = None
) -> Unreset:
    """Find the registers without reset and initial value, and the logic that depends on them.

    ``known`` and ``allowed`` map regular expressions to reasons: a register or memory whose name matches one of
    ``known`` is treated as set, because it is set before it is read; a fault that matches one of ``allowed`` is listed
    in ``named`` instead. Raises ToolError if Yosys refuses the text.
    """
    with tempfile.TemporaryDirectory(prefix="modmill-unreset-") as name:
        folder = Path(name)
        (folder / "core.v").write_text(verilog)
        tools.run(tools.yosys("-q", "-p", _SCRIPT.format(top=top)), name="yosys", cwd=folder)
        modules = json.loads((folder / "core.json").read_text())["modules"]
    netlist = _Netlist(modules[top], known or {})
    found = netlist.faults()
    reasons = {
        line: reason for line in found for pattern, reason in (allowed or {}).items() if re.search(pattern, line)
    }
    flushed, data = netlist.registers()
    return Unreset(
        flushed,
        data,
        [line for line in found if line not in reasons],
        [f"{line}: {reason}" for line, reason in (netlist.known | reasons).items()],
    )


class _Netlist:
    """A flattened module: the dependences of each net, and the cycles for which it keeps contents from before a
    reset."""

    def __init__(self, module: Mapping[str, Any], known: Mapping[str, str]) -> None:
        self._patterns, self.known = known, dict[str, str]()
        cells = [_Cell(name, cell) for name, cell in module["cells"].items()]
        self._cells = {cell.name: cell for cell in cells if not cell.idle}
        self._ports = module["ports"]
        self._names: dict[Node, str] = {}
        initial: set[Node] = set()
        for name, net in sorted(module["netnames"].items(), key=lambda item: _plainness(item[0])):
            values = str(net.get("attributes", {}).get("init", ""))[::-1]
            for k, bit in enumerate(net["bits"]):
                if not isinstance(bit, int):
                    continue
                self._names.setdefault(bit, name)
                if values[k : k + 1] in ("0", "1"):
                    initial.add(bit)
        self._depends: dict[Node, list[Node]] = {}
        self._registers: dict[Node, Node] = {}  # output -> input
        self._set: set[Node] = set()
        self._drivers: dict[Node, tuple[_Cell, int]] = {}
        for cell in self._cells.values():
            for k, bit in enumerate(cell.output):
                self._drivers[bit] = (cell, k)
        self._writes: dict[str, list[_Cell]] = {}
        for cell in self._cells.values():
            if cell.kind.startswith("$memwr"):
                self._writes.setdefault(cell.parameters["MEMID"], []).append(cell)
        self._reset = {b for port in ("rst",) if port in self._ports for b in self._ports[port]["bits"]}
        self._under_reset: dict[Node, str] = {}
        for cell in self._cells.values():
            self._connect(cell, initial)
        self._ages = _ages(self._depends, self._weights(), self._lines())
        self._operands = self._reached(b for p in DATA if p in self._ports for b in self._ports[p]["bits"])

    # ------------------------------------------------------------------------------------------ graph

    def _connect(self, cell: _Cell, initial: set[Node]) -> None:
        if cell.kind in _REGISTERS:
            for d, q in zip(cell.port("D"), cell.port("Q"), strict=True):
                self._registers[q] = d
                self._depends[q] = [d]
                if q in initial or self._value(d) != "x":
                    self._set.add(q)
                elif self._is_known(self._names[q]):
                    self._set.add(q)
                    self._depends[q] = []
        elif cell.kind.startswith("$memrd"):
            memory = f"memory {cell.parameters['MEMID']}"
            for bit in cell.port("DATA"):
                self._depends[bit] = [*cell.port("ADDR"), memory]
        elif cell.kind.startswith("$memwr"):
            memory = f"memory {cell.parameters['MEMID']}"
            if self._is_known(memory):
                return
            used = [*cell.port("ADDR"), *cell.port("DATA"), *cell.port("EN")]
            self._depends.setdefault(memory, []).extend(used)
        else:
            self._depends.update(cell.dependences())

    def _is_known(self, name: str) -> bool:
        """Whether a register or memory matches ``known``; if so, it is recorded with the reason."""
        for pattern, reason in self._patterns.items():
            if re.search(pattern, name):
                self.known[name.replace("\\", "")] = reason
                return True
        return False

    def _weights(self) -> dict[Node, int]:
        return {q: int(q not in self._set) for q in self._registers}

    def _lines(self) -> dict[Node, int | None]:
        """Cycles for which each written memory keeps its contents: the number of words for a delay line; None for a
        memory that can keep written data, unless only set values are written."""
        found: dict[Node, int | None] = {}
        for memory, writes in self._writes.items():
            depth = None
            if len(writes) == 1 and all(bit == "1" for bit in writes[0].port("EN")):
                address = writes[0].port("ADDR")
                if all(bit in self._set for bit in address) and self._counts(address):
                    depth = 1 << len(address)
            found[f"memory {memory}"] = depth
        return found

    def _counts(self, address: Sequence[Node]) -> bool:
        """Whether these registers are a counter that counts up by one in every cycle."""
        drivers = [self._drivers.get(self._registers[bit]) for bit in address]
        cells = {driver[0].name for driver in drivers if driver}
        if len(cells) != 1 or None in drivers:
            return False
        cell = self._cells[cells.pop()]
        if cell.kind != "$add":
            return False
        used = [cell.port("A"), cell.port("B")]
        one = [[bit for bit in port if bit != "0"] for port in used]
        return ["1"] in one and any(list(port)[: len(address)] == list(address) for port in used)

    def _value(self, bit: Node) -> str:
        """``bit`` during a reset, for arbitrary register contents: 0, 1 or x."""
        stack = [bit]
        while stack:
            top = stack[-1]
            if top in self._under_reset:
                stack.pop()
                continue
            if isinstance(top, str):
                self._under_reset[top] = top if top in "01" else "x"
            elif top in self._reset:
                self._under_reset[top] = "1"
            elif (driver := self._drivers.get(top)) is None or driver[0].kind not in _VALUES:
                self._under_reset[top] = "x"
            else:
                cell, k = driver
                needed = [b for b in cell.needed(k) if b not in self._under_reset]
                if needed:
                    stack.extend(needed)
                    continue
                self._under_reset[top] = _VALUES[cell.kind](cell, k, self._under_reset)
        return self._under_reset[bit]

    def _reached(self, starts: Iterable[Node]) -> set[Node]:
        """All nets that depend on ``starts``, through any number of registers and memories."""
        after: dict[Node, list[Node]] = {}
        for node, before in self._depends.items():
            for bit in before:
                after.setdefault(bit, []).append(node)
        found = set(starts)
        stack = list(found)
        while stack:
            new = [node for node in after.get(stack.pop(), ()) if node not in found]
            found.update(new)
            stack.extend(new)
        return found

    # ------------------------------------------------------------------------------------------ findings

    def registers(self) -> tuple[dict[str, int], list[str]]:
        """Registers that are not set: flushed ones with their cycles, and data."""
        flushed: dict[str, int] = {}
        data: set[str] = set()
        for q in self._registers:
            if q in self._set:
                continue
            name, age = self._names[q], self._ages.get(q)
            if age is None:
                data.add(name)
            else:
                flushed[name] = max(age, flushed.get(name, 0))
        return {name: n for name, n in sorted(flushed.items()) if name not in data}, sorted(data)

    def faults(self) -> list[str]:
        """Forbidden dependences on registers that are not set, with the registers from which they come."""
        lines = []
        for port in HANDSHAKE:
            if port in self._ports and (line := self._fault(f"port {port}", self._ports[port]["bits"], flushed=False)):
                lines.append(line)
        groups: dict[str, list[Node]] = {}
        data = {self._names[q] for q in self._set & self._operands}
        for q in self._set:
            groups.setdefault(self._names[q], []).append(self._registers[q])
        for name, inputs in sorted(groups.items()):
            if name not in data and (line := self._fault(f"register {name}", inputs, flushed=False)):
                lines.append(line)
        for cell in self._cells.values():
            if cell.kind.startswith(("$memrd", "$memwr")):
                memory = str(cell.parameters["MEMID"]).lstrip("\\")
                way = "read" if cell.kind.startswith("$memrd") else "write"
                sinks = {f"{way} address of {memory}": cell.port("ADDR")}
                if way == "write":
                    sinks[f"write enable of {memory}"] = cell.port("EN")
                for what, bits in sinks.items():
                    if line := self._fault(what, bits, flushed=True):
                        lines.append(line)
        return sorted(set(lines))

    def _fault(self, sink: str, bits: Iterable[Node], *, flushed: bool) -> str:
        """A line if one of the bits is data; if ``flushed``, also for a flushed bit."""
        bad = [b for b in bits if (age := self._ages.get(b, 0)) is None or (age and not flushed)]
        if not bad:
            return ""
        return f"{sink} depends on {', '.join(sorted(self._sources(bad, flushed=flushed)))}"

    def _sources(self, bits: Sequence[Node], *, flushed: bool) -> set[str]:
        """The nearest registers and memories that make these bits data or flushed."""
        found: set[str] = set()
        seen: set[Node] = set(bits)
        stack = list(bits)
        while stack:
            bit = stack.pop()
            if bit in self._registers and bit not in self._set:
                found.add(self._names[bit])
                continue
            if isinstance(bit, str) and bit.startswith("memory "):
                found.add(bit.replace("\\", ""))
                continue
            for before in self._depends.get(bit, ()):
                age = self._ages.get(before, 0)
                if before not in seen and (age is None or (age and not flushed)):
                    seen.add(before)
                    stack.append(before)
        return found


def _plainness(name: str) -> tuple[bool, bool, int, int, str]:
    """Sort key of a net's names, the plainest first: in the highest module, without a number at the end."""
    last = name.rsplit(".", 1)[-1]
    return name.startswith("$"), bool(re.search(r"^_|\$|_\d+$", last)), name.count("."), len(name), name


class _Cell:
    """A cell of Yosys's JSON."""

    def __init__(self, name: str, cell: Mapping[str, Any]) -> None:
        self.name, self.kind = name, str(cell["type"])
        self._connections = cell["connections"]
        self.parameters: Mapping[str, Any] = cell["parameters"]

    @property
    def idle(self) -> bool:
        """Whether the cell is a write port that never writes."""
        return self.kind.startswith("$memwr") and set(self.port("EN")) == {"0"}

    def port(self, name: str) -> list[Node]:
        """Nets of a port, lowest bit first."""
        return list(self._connections.get(name, ()))

    @property
    def output(self) -> list[Node]:
        """Nets that the cell drives."""
        return [b for name in ("Y", "Q", "DATA") if self.kind[:6] != "$memwr" for b in self.port(name)]

    def needed(self, k: int) -> list[Node]:
        """Nets that bit ``k`` of the output may use."""
        if self.kind in _EACH:
            return [self._at(name, k) for name in ("A", "B") if name in self._connections]
        if self.kind == "$mux":
            return [self._at("A", k), self._at("B", k), self.port("S")[0]]
        if self.kind == "$pmux":
            width = len(self.port("Y"))
            return [self._at("A", k), *self.port("B")[k::width], *self.port("S")]
        return [b for name, bits in self._connections.items() if name not in ("Y", "CO", "X") for b in bits]

    def _at(self, name: str, k: int) -> Node:
        bits = self.port(name)
        if k < len(bits):
            return bits[k]
        signed = int(str(self.parameters.get(f"{name}_SIGNED", "0")), 2)
        return bits[-1] if signed else "0"

    def dependences(self) -> Iterator[tuple[Node, list[Node]]]:
        """For each net that the cell drives, and each name of an intermediate, the nodes on which it depends."""
        out = self.port("Y")
        if self.kind in _EACH or self.kind in ("$mux", "$pmux"):
            yield from ((bit, self.needed(k)) for k, bit in enumerate(out))
        elif self.kind in _CHAIN:
            carry: list[Node] = []
            for k, bit in enumerate(out):
                here = [self._at(name, k) for name in ("A", "B") if name in self._connections]
                name = f"carry {k} of {self.name}"
                yield name, [*here, *carry]
                yield bit, [name]
                carry = [name]
        elif out:
            name = f"result of {self.name}"
            yield name, self.needed(0)
            for bit in out:
                yield bit, [name]


def _mux(cell: _Cell, k: int, values: Mapping[Node, str]) -> str:
    a, b, s = (values[bit] for bit in cell.needed(k))
    if s == "x":
        return a if a == b else "x"
    return b if s == "1" else a


def _any(cell: _Cell, k: int, values: Mapping[Node, str]) -> str:
    found = {values[bit] for bit in cell.needed(k)}
    return "1" if "1" in found else "0" if found == {"0"} else "x"


def _all(cell: _Cell, k: int, values: Mapping[Node, str]) -> str:
    found = {values[bit] for bit in cell.needed(k)}
    return "0" if "0" in found else "1" if found == {"1"} else "x"


def _inverse(cell: _Cell, k: int, values: Mapping[Node, str]) -> str:
    return {"0": "1", "1": "0", "x": "x"}[_any(cell, k, values)]


_VALUES = {
    "$mux": _mux, "$or": _any, "$reduce_or": _any, "$reduce_bool": _any, "$logic_or": _any, "$and": _all,
    "$reduce_and": _all, "$not": _inverse, "$logic_not": _inverse,
}  # fmt: skip
"""Cells whose value during a reset is evaluated; the logic operations only for operands of one bit."""


def _ages(
    depends: Mapping[Node, Sequence[Node]], weights: Mapping[Node, int], lines: Mapping[Node, int | None]
) -> dict[Node, int | None]:
    """For each net, the cycles within which it is flushed; 0: independent of earlier contents; None: it may keep them.

    ``weights``: cycles that a net adds, 0 for set registers. ``lines``: the same for memories; None for a memory that
    can keep contents from before a reset.
    """
    ages: dict[Node, int | None] = {}
    for component in _components(depends):
        inside = set(component)
        outside = [ages.get(b, 0) for node in component for b in depends.get(node, ()) if b not in inside]
        loop = len(component) > 1 or component[0] in depends.get(component[0], ())
        worst: int | None = None if None in outside else max((age or 0 for age in outside), default=0)
        if loop and (worst or any(weights.get(node) for node in component)):
            worst = None
        for node in component:
            ages[node] = _older(worst, node, weights, lines)
    return ages


def _older(age: int | None, node: Node, weights: Mapping[Node, int], lines: Mapping[Node, int | None]) -> int | None:
    if age is None or node not in lines:
        return None if age is None else age + weights.get(node, 0)
    if age == 0:
        return 0
    depth = lines[node]
    return None if depth is None else age + depth


def _components(depends: Mapping[Node, Sequence[Node]]) -> Iterator[list[Node]]:
    """Strongly connected components in topological order, dependences first.

    Source: R. Tarjan: Depth-First Search and Linear Graph Algorithms. SIAM Journal on Computing, 1972; not recursive.
    """
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    open_: set[Node] = set()
    path: list[Node] = []
    for root in depends:
        if root in index:
            continue
        work: list[tuple[Node, Iterator[Node]]] = [(root, iter(depends[root]))]
        index[root] = low[root] = len(index)
        path.append(root)
        open_.add(root)
        while work:
            node, rest = work[-1]
            for before in rest:
                if before not in index:
                    index[before] = low[before] = len(index)
                    path.append(before)
                    open_.add(before)
                    work.append((before, iter(depends.get(before, ()))))
                    break
                if before in open_:
                    low[node] = min(low[node], index[before])
            else:
                work.pop()
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[node])
                if low[node] == index[node]:
                    component: list[Node] = []
                    while not component or component[-1] != node:
                        component.append(path.pop())
                        open_.discard(component[-1])
                    yield component
