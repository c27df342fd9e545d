# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The netlist that the checker runs: its cells in an order that is checked, and its full adders, which are tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from modmill.proofs.checker.recheck import require

_OUT = {"Y", "Q", "RD_DATA"}
_CLOCKS = {"CLK", "RD_CLK", "WR_CLK"}
_REGISTERS = {"$dff", "$dffe", "$sdff", "$sdffe", "$sdffce"}
_GATES: dict[str, Callable[[int, int], int]] = {"$and": int.__and__, "$or": int.__or__, "$xor": int.__xor__}


class Circuit:
    """A netlist. ``order``: names of the cells between registers, which is checked; ``adders``: sums and majorities of
    three words that cells make, which is checked; ``control``: nets of registers that begin with given bits."""

    def __init__(
        self, module: Mapping[str, Any], order: Sequence[str], adders: Sequence[Any], control: Sequence[int]
    ) -> None:  # fmt: skip
        self.ports: dict[str, list[Any]] = {name: port["bits"] for name, port in module["ports"].items()}
        cells = {n: c for n, c in module["cells"].items() if c["type"] != "$scopeinfo"}
        self.registers = {n: c for n, c in cells.items() if c["type"] in _REGISTERS}
        self.memories = {n: c for n, c in cells.items() if c["type"] == "$mem_v2"}
        self.numbers = {name: parameters(cell) for name, cell in cells.items()}
        self._require_clock()
        self.initial = _initial(module)
        self.control = control
        held = {b for c in self.registers.values() for b in c["connections"]["Q"]}
        require(held.issuperset(control) and not self.initial.keys() & set(control), "control is no register")
        require(len(set(control)) == len(control), "control twice")
        gates = _Gates(cells)
        self.cells: list[tuple[str, str, dict[str, list[Any]], list[Any]]] = []
        merged = {name: (type_, words) for name, type_, *words in adders}
        known = {
            *held,
            *(b for n, bits in self.ports.items() if module["ports"][n]["direction"] == "input" for b in bits),
        }
        for name in order:
            made = self._cell(name, cells, merged, gates)
            require(
                known.issuperset(b for w in made[2].values() for b in w if isinstance(b, int)), f"{name} is too early"
            )
            known.update(made[3])
            self.cells.append(made)
        self.users: dict[Any, list[int]] = {}
        for k, (_, _, inputs, _) in enumerate(self.cells):
            for bit in {b for bits in inputs.values() for b in bits}:
                self.users.setdefault(bit, []).append(k)
        needed = [b for n, bits in self.ports.items() for b in bits]
        needed += [
            b for c in (*self.registers.values(), *self.memories.values())
            for p, bits in c["connections"].items() if p not in _OUT | _CLOCKS for b in bits
        ]  # fmt: skip
        require(known.issuperset(b for b in needed if isinstance(b, int)), "a cell is missing")

    def _require_clock(self) -> None:
        """Everything is clocked by the rising edge of port clk."""
        for name, cell in self.registers.items():
            rising = self.numbers[name]["CLK_POLARITY"] == 1
            require(rising and cell["connections"]["CLK"] == self.ports["clk"], f"{name} has another clock")
        for name, cell in self.memories.items():
            n = self.numbers[name]
            every = (1 << n["WR_PORTS"]) - 1
            rising = not every or n["WR_CLK_POLARITY"] == n["WR_CLK_ENABLE"] == every
            require(rising and not {*cell["connections"]["WR_CLK"]} - {*self.ports["clk"]}, f"{name} has another clock")
            wide = n.get("RD_WIDE_CONTINUATION", 0) or n.get("WR_WIDE_CONTINUATION", 0)
            require(not wide and not n["RD_CLK_ENABLE"], f"{name} has a port without a rule")

    def _cell(
        self, name: str, cells: Mapping[str, Any], merged: Mapping[str, Any], gates: _Gates
    ) -> tuple[str, str, dict[str, list[Any]], list[Any]]:  # fmt: skip
        if name not in cells:  # a port of a memory
            memory, _, port = name.rpartition("$")
            pins, n = self.memories[memory]["connections"], self.numbers[memory]
            k, bits, width = int(port), n["ABITS"], n["WIDTH"]
            require(0 <= k < n["RD_PORTS"], f"{memory} has no port {k}")
            data = pins["RD_DATA"][k * width : (k + 1) * width]
            return name, memory, {"A": pins["RD_ADDR"][k * bits : (k + 1) * bits]}, data
        cell = cells[name]
        out = cell["connections"]["Y"]
        if name not in merged:
            return name, cell["type"], {p: w for p, w in cell["connections"].items() if p != "Y"}, out
        type_, words = merged[name]
        require(type_ in ("$xor3", "$majority"), f"{name} is no full adder")
        for bit, *places in zip(out, *words, strict=True):
            for values in product((0, 1), repeat=3):
                given: dict[Any, int] = {}
                named = *zip(map(gates.first, places), values, strict=True), ("0", 0), ("1", 1)
                if all(given.setdefault(p, v) == v for p, v in named):
                    wanted = sum(values) & 1 if type_ == "$xor3" else sum(values) >> 1
                    require(gates.value(bit, given) == wanted, f"{name} is no full adder")
        return name, type_, dict(zip("ABC", words, strict=True)), out


class _Gates:
    """Gates of bits. Nets of gates, or of choices, that do the same with the same nets are one net."""

    def __init__(self, cells: Mapping[str, Any]) -> None:
        self._of: dict[Any, tuple[Any, ...]] = {}
        for cell in cells.values():
            pins, n = cell["connections"], parameters(cell)
            if cell["type"] == "$mux" or (cell["type"] in _GATES and not n["A_SIGNED"] & n["B_SIGNED"]):
                for k, bit in enumerate(pins["Y"]):
                    self._of[bit] = (
                        cell["type"],
                        *((pins[p][k : k + 1] or ["0"])[0] for p in "AB"),
                        *pins.get("S", []),
                    )
        self._alike: dict[Any, Any] = {}
        self._first: dict[Any, Any] = {}

    def first(self, net: Any) -> Any:
        """The net that stands for this one; in a loop it is itself."""
        stack, begun = [net], set[Any]()
        while stack:
            at = stack.pop()
            if at in self._first:
                continue
            type_, *of = self._of.get(at, ("",))
            todo = [b for b in of if b not in self._first]
            if todo and at not in begun:
                begun.add(at)
                stack += [at, *todo]
                continue
            nets = [self._first.get(b, b) for b in of]
            key = type_, *(nets if type_ == "$mux" else sorted(nets, key=str))
            self._first[at] = self._alike.setdefault(key, at) if type_ else at
        return self._first[net]

    def value(self, net: Any, given: dict[Any, int], depth: int = 4) -> int:
        """The value of a net, made of ``given`` ones."""
        net = self.first(net)
        if net not in given:
            require(depth, "no full adder")
            type_, a, b = self._of[net]  # no choice
            given[net] = _GATES[type_](self.value(a, given, depth - 1), self.value(b, given, depth - 1))
        return given[net]


def parameters(cell: Mapping[str, Any]) -> dict[str, int]:
    """The parameters of a cell that are numbers."""
    return {name: int(text, 2) for name, text in cell["parameters"].items() if text and not set(text) - {"0", "1"}}


def _initial(module: Mapping[str, Any]) -> dict[Any, int]:
    """Values at power-up, by net."""
    found = {}
    for net in module["netnames"].values():
        text = net.get("attributes", {}).get("init", "")
        found.update({b: int(c) for b, c in zip(net["bits"], reversed(text), strict=False) if c in "01"})
    return found
