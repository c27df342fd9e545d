# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Where a mutant's data may differ from the original's: one bit for each net, without the data.

Control, which no operand, product or word of a written memory reaches, is exact and may differ too. A cell's output may
differ if an input that counts may differ: a multiplexer with exact control counts its selected input only, an AND with
exact control at 0 none. Registers and words of memories hold a flag: whether the last value stored may have differed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from graphlib import TopologicalSorter

from modmill.proofs.miter import Miter, Sides, memory_ports, outputs
from modmill.proofs.netlist import REGISTERS, Bit, Cell
from modmill.proofs.states import FLAG

_MOST_WORDS = 512
"""Most words of a memory with a flag for each word; a larger one has one flag."""
_MOST_PARTS = 64
"""Most words of a register with a flag for each word."""
_PREFIX = {"$add", "$sub", "$mul", "$neg"}
"""Cells whose bits depend on no higher bit of their inputs."""
_BITWISE = {"$not", "$pos", "$xor", "$xnor", "$and", "$or"}


class Taint:
    """The flags of the data nets ``touched`` by a mutation. ``data``: cells that are not exact. ``zone``: gates of
    data that the mutation reaches in the same cycle; both sides have them, and only what differs counts, unless their
    inputs may differ too. ``first``: a register whose contents at power-up differ.
    Registers have one flag each, shift registers one for each word."""

    def __init__(
        self, net: Miter, sides: Sides, data: Mapping[str, Cell], touched: Set[Bit], zone: Set[str], *,
        first: str = "",
    ) -> None:  # fmt: skip
        self._net, self._sides, self._touched = net, sides, touched
        self._zone = {b for name in zone for b in outputs(data[name])}
        self._seen: dict[Bit, Bit] = {}
        self._inexact = {b for cell in data.values() for b in outputs(cell)}
        self._flags: dict[Bit, Bit] = {}
        registers = {n: c for n, c in data.items() if c["type"] in REGISTERS and self._is_touched(c)}
        memories = {n: c for n, c in data.items() if c["type"] == "$mem_v2" and self._is_touched(c)}
        drivers = {b: c for c in data.values() if c["type"] in {"$mux", *_BITWISE} for b in outputs(c)}
        parts = {name: _words(cell, drivers) for name, cell in registers.items()}
        for bits in parts.values():
            for word in bits:
                self._flags.update(dict.fromkeys(word, net.fresh(1)[0]))
        words = {name: self._words(cell) for name, cell in memories.items()}
        for name in self._order({n: c for n, c in data.items() if n not in registers and self._is_touched(c)}):
            cell = data[name]
            if name in zone:
                found = self._zone_gate(cell["connections"])
            else:
                found = self._read(cell, words[name]) if name in memories else self._gate(cell)
            self._flags.update(zip(outputs(cell), found, strict=True))
        for name, cell in registers.items():
            q = cell["connections"]["Q"]
            new = dict(zip(q, self._after(cell, [self._flags[b] for b in q]), strict=True))
            for k, word in enumerate(parts[name]):
                flag = self.any(new[b] for b in word)
                net.held([flag], [self._flags[word[0]]], "1" if name == first else "0", f"{FLAG}{name}${k}")
        for name, cell in memories.items():
            self._write(name, cell, words[name])

    def of(self, bit: Bit) -> Bit:
        """Whether a bit may differ."""
        if bit not in self._seen:
            self._seen[bit] = self.any([self._outer(bit), self._exact(bit)])
        return self._seen[bit]

    def _outer(self, bit: Bit) -> Bit:
        """Whether a bit of data may differ because of flags."""
        return self._flags.get(bit, "0")

    def _exact(self, bit: Bit) -> Bit:
        """Whether a bit of control or of the zone differs without flags."""
        if bit in self._inexact and bit not in self._zone:
            return "0"
        return self._net.either("$xor", self._sides(bit, 0), self._sides(bit, 1))

    def any(self, bits: Iterable[Bit]) -> Bit:
        """Whether one of these flags is 1."""
        return self._net.one_of(bits)

    def _is_touched(self, cell: Cell) -> bool:
        return not self._touched.isdisjoint(outputs(cell))

    def _order(self, cells: Mapping[str, Cell]) -> Iterator[str]:
        """Cells, each after those that drive it."""
        drivers = {b: n for n, c in cells.items() for b in outputs(c)}
        return iter(TopologicalSorter({
            n: {drivers[b] for p, bits in c["connections"].items() if p not in ("Y", "Q", "RD_DATA") and p[:2] != "WR"
                for b in bits if b in drivers} for n, c in cells.items()
        }).static_order())  # fmt: skip

    def _chosen(self, select: Bit, low: Bit, high: Bit) -> Bit:
        """The flag behind a multiplexer."""
        if select in self._inexact:
            return self.any([self.of(select), low, high])
        return self.any([self.of(select), self._net.choice(self._sides(select, 0), low, high)])

    def _gate(self, cell: Cell) -> list[Bit]:
        pins, type_ = cell["connections"], cell["type"]
        a, b = pins.get("A", []), pins.get("B", [])
        width = len(pins["Y"])
        if type_ == "$mux":
            return [self._chosen(pins["S"][0], self.of(a[k]), self.of(b[k])) for k in range(width)]
        if type_ == "$pmux":
            return [self._one_hot(pins, k, width) for k in range(width)]
        if type_ in _BITWISE:
            return [self._bitwise(type_, *(p[min(k, len(p) - 1)] for p in (a, b) if p)) for k in range(width)]
        if type_ in _PREFIX:
            sums: list[Bit] = ["0"]
            for k in range(width):
                sums.append(self.any([sums[-1], *(self.of(p[k]) for p in (a, b) if k < len(p))]))
            return sums[1:]
        return [self.any(self.of(x) for p, bits in pins.items() if p != "Y" for x in bits)] * width

    def _zone_gate(self, pins: Mapping[str, list[Bit]]) -> list[Bit]:
        """The flags behind a gate of which both sides are there: a multiplexer with exact control passes on the flag of
        the input that one of the sides selects."""
        select, (low, high) = pins.get("S", []), (pins.get(port, []) for port in "AB")
        if len(select) == 1 and select[0] not in self._inexact:
            values = [self._sides(select[0], side) for side in (0, 1)]
            pairs = [(self._outer(a), self._outer(b)) for a, b in zip(low, high, strict=True)]
            return [self.any(self._net.choice(value, *pair) for value in values) for pair in pairs]
        flags = [self._outer(b) for port, bits in pins.items() if port != "Y" for b in bits]
        return [self.any(flags)] * len(pins["Y"])

    def _one_hot(self, pins: Mapping[str, list[Bit]], k: int, width: int) -> Bit:
        selects, high = pins["S"], pins["B"][k::width]
        if any(s in self._inexact for s in selects):
            return self.any(self.of(b) for b in (*selects, pins["A"][k], *high))
        values = [self._sides(s, 0) for s in selects]
        chosen = [self._net.either("$and", v, self.of(h)) for v, h in zip(values, high, strict=True)]
        default = self._net.choice(self._net.one_of(values), self.of(pins["A"][k]), "0")
        return self.any([*map(self.of, selects), *chosen, default])

    def _bitwise(self, type_: str, a: Bit, b: Bit | None = None) -> Bit:
        """An exact input of an AND or OR may make the other one irrelevant."""
        if b is None:
            return self.of(a)
        if type_ in ("$and", "$or") and (a in self._inexact) != (b in self._inexact):
            exact, other = (b, a) if a in self._inexact else (a, b)
            flag, value = self.of(other), self._sides(exact, 0)
            counts = self._net.choice(value, *(("0", flag) if type_ == "$and" else (flag, "0")))
            return self.any([self.of(exact), counts])
        return self.any([self.of(a), self.of(b)])

    def _after(self, cell: Cell, held: Sequence[Bit]) -> list[Bit]:
        """The flags of a register's next value; the order of enable and reset as in `Miter.after`."""
        pins, parameters, new = cell["connections"], cell["parameters"], [self.of(b) for b in cell["connections"]["D"]]

        def chosen(port: str, low: Sequence[Bit], high: Sequence[Bit]) -> list[Bit]:
            if not int(parameters[f"{port}_POLARITY"], 2):
                low, high = high, low
            return [self._chosen(pins[port][0], *pair) for pair in zip(low, high, strict=True)]

        clear: list[Bit] = ["0"] * len(new)
        if cell["type"] == "$sdffce":
            new = chosen("SRST", new, clear)
        if "EN" in pins:
            new = chosen("EN", held, new)
        if cell["type"] in ("$sdff", "$sdffe"):
            new = chosen("SRST", new, clear)
        return new

    # ---- memories: a flag for each word

    def _words(self, cell: Cell) -> list[Bit]:
        size = int(cell["parameters"]["SIZE"], 2)
        return self._net.fresh(size if size <= _MOST_WORDS else 1)

    def _here(self, address: Sequence[Bit], word: int, side: int = 0) -> Bit:
        """Whether an exact address is that of a word."""
        net = self._net
        bits = [self._sides(b, side) for b in address]
        return net.all_of(b if word >> k & 1 else net.inverse(b) for k, b in enumerate(bits))

    def _read(self, cell: Cell, words: Sequence[Bit]) -> list[Bit]:
        found = list[Bit]()
        for address, data in memory_ports(cell, cell["connections"], "RD_ADDR", "RD_DATA"):
            if len(words) == 1 or any(b in self._inexact for b in address):
                stale = self.any(words)
            else:
                stale = self.any(self._net.either("$and", self._here(address, k), w) for k, w in enumerate(words))
            found += [self.any([*map(self.of, address), stale])] * len(data)
        return found

    def _write(self, name: str, cell: Cell, words: Sequence[Bit]) -> None:
        """The next flag of each word; bits that are not written, or only perhaps, keep it."""
        net, ports = self._net, list(memory_ports(cell, cell["connections"], "WR_ADDR", "WR_DATA", "WR_EN"))
        exact = len(words) > 1 and not any(b in self._inexact for place, _, enable in ports for b in (*place, *enable))
        for number, word in enumerate(words):
            state = word
            for place, data, enable in ports:
                if not exact:
                    state = self.any([state, *map(self.of, (*place, *enable, *data))])
                    continue
                here = [self._here(place, number, side) for side in (0, 1)]
                ons = [[net.either("$and", here[side], self._sides(e, side)) for e in enable] for side in (0, 1)]
                spoilt = [net.either("$xor", *pair) for pair in dict.fromkeys(zip(*ons, strict=True))]
                stored = [net.either("$and", on, self.of(d)) for on, d in zip(ons[0], data, strict=True)]
                kept = net.either("$and", state, net.inverse(net.all_of(ons[0])))
                state = self.any([kept, *spoilt, *stored])
            net.held([state], [word], name=f"{FLAG}{name}${number}")


def _words(cell: Cell, drivers: Mapping[Bit, Cell]) -> list[list[Bit]]:
    """The words of a register: more than one if words move to the places of others. ``drivers``: multiplexers and gates
    that work bit by bit."""
    q = cell["connections"]["Q"]
    places, moves = {b: k for k, b in enumerate(q)}, set[int]()
    for k, bit in enumerate(cell["connections"]["D"]):
        todo, seen = [bit], set[Bit]()
        while todo:
            if (b := todo.pop()) in places:
                moves.add(abs(places[b] - k))
            elif b in drivers and b not in seen:
                seen.add(b)
                pins = drivers[b]["connections"]
                at = pins["Y"].index(b)
                todo += [pins[port][at] for port in "AB" if at < len(pins.get(port, ()))]
    step = min(moves - {0}, default=len(q))
    step = step if len(q) <= step * _MOST_PARTS else len(q)
    return [q[k : k + step] for k in range(0, len(q), step)]
