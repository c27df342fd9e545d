# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A netlist in which two circuits share what they have in common: what the proofs of `equivalence` are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from modmill.proofs.netlist import Bit, Cell, Netlist, register
from modmill.proofs.states import REGISTER, STARTED

Sides = Callable[[Bit, int], Bit]
"""The net of a bit in the original (0) and in the mutant (1)."""
OUTPUTS = ("Y", "Q", "RD_DATA")
"""Output ports of cells."""
_WORD_BITS = 6
"""Most address bits of a memory with a flag for each word."""


class Miter(Netlist):
    """A netlist, built cell by cell. ``first``: a number below which new nets have none. ``clk``: its clock."""

    def __init__(self, module: dict[str, Any], first: int, clk: list[Bit]) -> None:
        super().__init__(module)
        self._next, self._clk = max(self._next, first), clk

    def gate(self, type_: str, a: Sequence[Bit], b: Sequence[Bit] | None = None) -> Bit:
        """The output of a new cell with one output bit."""
        return (self.add(type_, A=list(a)) if b is None else self.add(type_, A=list(a), B=list(b)))[0]

    def one_of(self, bits: Iterable[Bit]) -> Bit:
        """Whether one of these bits is 1; constants and repeated bits cost nothing."""
        left = [b for b in dict.fromkeys(bits) if b != "0"]
        if "1" in left:
            return "1"
        return self.gate("$reduce_or", left) if len(left) > 1 else (left or ["0"])[0]

    def all_of(self, bits: Iterable[Bit]) -> Bit:
        """Whether all these bits are 1."""
        left = [b for b in dict.fromkeys(bits) if b != "1"]
        if "0" in left:
            return "0"
        return self.gate("$reduce_and", left) if len(left) > 1 else (left or ["1"])[0]

    def inverse(self, bit: Bit) -> Bit:
        """The other value of a bit."""
        return {"0": "1", "1": "0"}[bit] if isinstance(bit, str) else self.gate("$not", [bit])

    def either(self, type_: str, a: Bit, b: Bit) -> Bit:
        """The output of a gate `$and` or `$xor` of two bits."""
        if type_ == "$and":
            return self.all_of([a, b])
        if a == b:
            return "0"
        if isinstance(a, str) or isinstance(b, str):
            known, other = (a, b) if isinstance(a, str) else (b, a)
            return other if known == "0" else self.inverse(other)
        return self.gate("$xor", [a], [b])

    def choice(self, select: Bit, low: Bit, high: Bit) -> Bit:
        """``high`` if ``select`` is 1, else ``low``."""
        if low == high or isinstance(select, str):
            return high if select == "1" else low
        if low == "0" or high == "0":
            return self.all_of([high, select] if low == "0" else [low, self.inverse(select)])
        return self.add("$mux", A=[low], B=[high], S=[select])[0]

    def held(self, bits: list[Bit], found: list[Bit] | None = None, first: str = "0", name: str = "") -> list[Bit]:
        """A word delayed by one cycle; at power-up all its bits are ``first``. ``name``: of the register."""
        found = found or self.fresh(len(bits))
        name = name or f"held${found[0]}"
        self.cells[f"${name}"] = register(self._clk, bits, found)
        init = {"init": first * len(bits)}
        self.module["netnames"][name] = {"hide_name": 0, "bits": found, "attributes": init}
        return found

    def prune(self, output: str) -> None:
        """Keep only what an output depends on."""
        drivers = {b: n for n, c in self.cells.items() for port in OUTPUTS for b in c["connections"].get(port, ())}
        todo, kept, nets = list(self.module["ports"][output]["bits"]), set[str](), set[Bit](self._clk)
        while todo:
            if (bit := todo.pop()) in nets:
                continue
            nets.add(bit)
            if (name := drivers.get(bit)) is not None and name not in kept:
                kept.add(name)
                todo += [
                    b for port, bits in self.cells[name]["connections"].items() if port not in OUTPUTS for b in bits
                ]
        self.module["cells"] = self.cells = {name: cell for name, cell in self.cells.items() if name in kept}
        for port in self.module["ports"].values():
            port["bits"] = [bit for bit in port["bits"] if bit in nets]
        self.module["ports"] = {name: port for name, port in self.module["ports"].items() if port["bits"]}

    def started(self, rst: list[Bit], cycles: int) -> tuple[Bit, Bit]:
        """A bit that is 1 after the first cycle, and the reset, which lasts for ``cycles`` cycles after power-up."""
        bits: list[Bit] = ["1"]
        for k in range(cycles):
            bits += self.held(bits[-1:], name=f"{STARTED}{k}")
        return bits[1], self.gate("$or", rst, [self.gate("$not", bits[-1:])])

    def any_value(self, name: str, bits: list[Bit]) -> None:
        """A new input of the miter: an arbitrary value in each cycle."""
        self.module["ports"][name] = {"direction": "input", "bits": list(dict.fromkeys(bits))}

    def unlike(self, name: str, differs: list[Bit], one: list[Bit], two: list[Bit]) -> None:
        """Make ``two`` equal to ``one``, except for arbitrary values in the bits of ``differs``."""
        other = self.fresh(len(one))
        self.any_value(name, other)
        self.add("$xor", two, A=one, B=self.add("$and", width=len(one), A=differs, B=other))

    def after(self, cell: Cell, pins: Mapping[str, list[Bit]]) -> list[Bit]:
        """The next value of a register."""
        parameters, new = cell["parameters"], pins["D"]

        def chosen(port: str, low: list[Bit], high: list[Bit]) -> list[Bit]:
            if not int(parameters[f"{port}_POLARITY"], 2):
                low, high = high, low
            return self.add("$mux", width=len(new), A=low, B=high, S=pins[port])

        value: list[Bit] = [bit if bit in "01" else "0" for bit in reversed(parameters.get("SRST_VALUE", ""))]
        if cell["type"] == "$sdffce":
            new = chosen("SRST", new, value)
        if "EN" in pins:
            new = chosen("EN", pins["Q"], new)
        if cell["type"] in ("$sdff", "$sdffe"):
            new = chosen("SRST", new, value)
        return new

    def memory(self, name: str, cell: Cell, one: Mapping[str, list[Bit]], two: Mapping[str, list[Bit]]) -> None:
        """Reads give arbitrary values, equal on both sides unless a flag says that the words differ: one flag for each
        word, or one for all words of a large memory."""
        parameters = cell["parameters"]
        width, bits = (int(parameters[key], 2) for key in ("WIDTH", "ABITS"))
        reads, writes = (int(parameters[key], 2) for key in ("RD_PORTS", "WR_PORTS"))

        def part(pins: Mapping[str, list[Bit]], port: str, size: int, k: int) -> list[Bit]:
            return pins[port][k * size : (k + 1) * size]

        words = 1 << bits if bits <= _WORD_BITS else 1
        differs = [self.fresh(1)[0] for _ in range(words)]
        for word in range(words):
            state = differs[word]
            address: list[Bit] = ["1" if word >> k & 1 else "0" for k in range(bits)]
            for k in range(writes):
                enables = [part(pins, "WR_EN", width, k) for pins in (one, two)]
                places = [part(pins, "WR_ADDR", bits, k) for pins in (one, two)]
                if words > 1:
                    here = [[self.gate("$eq", place, address)] * width for place in places]
                    enables = [self.add("$and", width=width, A=e, B=h) for e, h in zip(enables, here, strict=True)]
                data = [part(pins, "WR_DATA", width, k) for pins in (one, two)]
                stored = [self.add("$and", width=width, A=e, B=d) for e, d in zip(enables, data, strict=True)]
                spoilt = [self.gate("$ne", *enables), self.gate("$ne", *stored)]
                if words == 1:
                    spoilt.append(self.gate("$and", [self.gate("$ne", *places)], [self.gate("$reduce_or", enables[0])]))
                whole = "0" if words == 1 else self.gate("$reduce_and", enables[0])
                kept = self.gate("$and", [state], [self.gate("$not", [whole])])
                state = self.gate("$reduce_or", [*spoilt, kept])
            self.held([state], [differs[word]])
        for k in range(reads):
            read, other = (part(pins, "RD_DATA", width, k) for pins in (one, two))
            self.any_value(f"free${name}${k}", read)
            if read == other:
                continue
            places = [part(p, "RD_ADDR", bits, k) for p in (one, two)]
            stale = differs[0] if words == 1 else self.add("$shiftx", A=differs, B=places[0])[0]
            differ = self.gate("$or", [self.gate("$ne", *places)], [stale])
            self.unlike(f"other${name}${k}", [differ] * width, read, other)

    def exact_memory(self, name: str, cell: Cell, sides: Sequence[Mapping[str, list[Bit]]], started: Bit) -> None:
        """A memory with the words of each side in registers; at power-up arbitrary words, equal on both sides."""
        size, width = (int(cell["parameters"][key], 2) for key in ("SIZE", "WIDTH"))
        first = [self.fresh(width) for _ in range(size)]
        for number, word in enumerate(first):
            self.any_value(f"first${name}${number}", word)
        for side, pins in enumerate(sides):
            stored = [self.fresh(width) for _ in first]
            words = [self.add("$mux", width=width, A=a, B=b, S=[started]) for a, b in zip(first, stored, strict=True)]
            for number, (new, held) in enumerate(zip(self._memory(cell, pins, words), stored, strict=True)):
                self.held(new, held, name=f"{REGISTER}{name}${number}${side}")

    def _memory(self, cell: Cell, pins: Mapping[str, list[Bit]], words: Sequence[list[Bit]]) -> list[list[Bit]]:
        """Read from these words what the cell reads, with the nets of one side; returns their next values."""
        for address, data in memory_ports(cell, pins, "RD_ADDR", "RD_DATA"):
            found = list(words)
            for bit in address:
                pairs = zip(found[::2], [*found[1::2], *found[-1:]], strict=False)
                found = [self.add("$mux", width=len(data), A=low, B=high, S=[bit]) for low, high in pairs]
            self.add("$pos", data, A=found[0])
        after = []
        for number, word in enumerate(words):
            new = word
            for address, data, enable in memory_ports(cell, pins, "WR_ADDR", "WR_DATA", "WR_EN"):
                here = self.all_of(b if number >> k & 1 else self.inverse(b) for k, b in enumerate(address))
                on = [self.all_of([e, here]) for e in enable]
                new = [self.choice(*bits) for bits in zip(on, new, data, strict=True)]
            after.append(new)
        return after


def memory_ports(cell: Cell, pins: Mapping[str, list[Bit]], *names: str) -> Iterator[tuple[list[Bit], ...]]:
    """The bits of each port of a memory under these names."""
    count = int(cell["parameters"][f"{names[0][:2]}_PORTS"], 2)
    for k in range(count):
        yield tuple(pins[name][k * len(pins[name]) // count : (k + 1) * len(pins[name]) // count] for name in names)


def outputs(cell: Cell) -> list[Bit]:
    """The output bits of a cell."""
    pins = cell["connections"]
    return next(pins[port] for port in OUTPUTS if port in pins)
