# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Full adders in a netlist of words: a ^ b ^ c, and the majority (a & b) | (a & c) | (b & c), each as one cell.

As one cell, the sum bits are a + b + c - 2 majority, whatever the majority is: carry-save additions come out as sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from modmill.proofs.netlist import Cell

_Word = tuple[Any, ...]
_GATES = ("$and", "$or", "$xor")


def with_full_adders(cells: Mapping[str, Cell], used: frozenset[Any]) -> dict[str, Cell]:
    """The cells with those of full adders replaced by `$xor3` and `$majority`, of the words A, B and C. ``used``: nets
    that ports need."""
    return _Adders(cells).replaced(used)


class _Adders:
    """The gates of a netlist. Nets of gates, or of choices, that do the same with the same nets are one net here."""

    def __init__(self, cells: Mapping[str, Cell]) -> None:
        self._cells = cells
        self._gates: dict[Any, tuple[Any, ...]] = {}
        plain = [cell for cell in cells.values() if cell["type"] in _GATES and not _signed(cell)]
        for cell in plain:
            places = zip(cell["connections"]["Y"], *_padded(cell), strict=True)
            self._gates |= {bit: (cell["type"], one, other) for bit, one, other in places}
        for pins in (cell["connections"] for cell in cells.values() if cell["type"] == "$mux"):
            choices = zip(pins["Y"], pins["A"], pins["B"], strict=True)
            self._gates |= {bit: ("$mux", zero, one, *pins["S"]) for bit, zero, one in choices}
        self._first: dict[tuple[Any, ...], Any] = {}
        self._names: dict[Any, Any] = {}
        self._drivers = {self._word(cell["connections"]["Y"]): cell for cell in plain}

    def replaced(self, used: frozenset[Any]) -> dict[str, Cell]:
        """As of `with_full_adders`."""
        made = dict(self._cells)
        adders = set[frozenset[_Word]]()
        for name, cell in self._cells.items():
            if cell["type"] == "$or" and (words := self._majority(cell)):
                made[name] = _merged(cell, "$majority", words)
                adders.add(words)
        for name, cell in self._cells.items():
            if cell["type"] == "$xor" and (words := self._sum(cell, adders)):
                made[name] = _merged(cell, "$xor3", words)
        return _needed(made, used)

    def _net(self, bit: Any) -> Any:
        """The first net that is the same as this one; without recursion, since chains of gates may be long. In a loop
        of gates a net is only itself."""
        names, seen, stack = self._names, set[Any](), [bit]
        while stack:
            at = stack[-1]
            type_, *of = self._gates.get(at, ("",))
            before = [net for net in of if net not in names]
            if before and at not in names and at not in seen:
                seen.add(at)
                stack += before
                continue
            stack.pop()
            nets = [names.get(net, net) for net in of]
            key = type_, *(sorted(nets, key=str) if type_ in _GATES else nets)
            names.setdefault(at, self._first.setdefault(key, at) if type_ else at)
        return names[bit]

    def _word(self, bits: Iterable[Any]) -> _Word:
        return tuple(map(self._net, bits))

    def _operands(self, cell: Cell) -> tuple[_Word, _Word]:
        one, other = _padded(cell)
        return self._word(one), self._word(other)

    def _driver(self, word: _Word, type_: str) -> Cell | None:
        cell = self._drivers.get(word)
        return cell if cell is not None and cell["type"] == type_ else None

    def _majority(self, cell: Cell) -> frozenset[_Word] | None:
        """The three words of a majority."""
        for one, other in (self._operands(cell), self._operands(cell)[::-1]):
            both, last = self._driver(one, "$or"), self._driver(other, "$and")
            if both is None or last is None or _signed(cell):
                continue
            pairs = [self._driver(word, "$and") for word in self._operands(both)]
            sets = {frozenset(self._operands(pair)) for pair in (*pairs, last) if pair is not None}
            words = frozenset().union(*sets)
            if len(sets) == len(words) == 3 and all(len(pair) == 2 for pair in sets):
                return words
        return None

    def _sum(self, cell: Cell, adders: set[frozenset[_Word]]) -> frozenset[_Word] | None:
        """The three words of a sum, if their majority is made, too."""
        for one, other in (self._operands(cell), self._operands(cell)[::-1]):
            inner = self._driver(one, "$xor")
            if inner is None or _signed(cell):
                continue
            if (words := frozenset({*self._operands(inner), other})) in adders:
                return words
        return None


def _padded(cell: Cell) -> tuple[_Word, _Word]:
    """Both operands of a gate without sign, as wide as its result."""
    pins, width = cell["connections"], len(cell["connections"]["Y"])
    one, other = ((*pins[port][:width], *["0"] * (width - len(pins[port]))) for port in "AB")
    return one, other


def _signed(cell: Cell) -> bool:
    return all(int(cell["parameters"][f"{port}_SIGNED"], 2) for port in "AB")


def _merged(cell: Cell, type_: str, words: frozenset[_Word]) -> Cell:
    width = f"{len(cell['connections']['Y']):b}"
    pins = dict(zip("ABC", sorted(map(list, words), key=str), strict=True))
    parameters = {f"{port}_{what}": width if what == "WIDTH" else "0" for port in "ABC" for what in ("WIDTH", "SIGNED")}
    return {**cell, "type": type_, "parameters": parameters, "connections": {**pins, "Y": cell["connections"]["Y"]}}


def _needed(cells: dict[str, Cell], used: frozenset[Any]) -> dict[str, Cell]:
    """The cells without gates whose output nobody reads."""
    while True:
        read = used | {bit for cell in cells.values() for bit in _inputs(cell)}
        left = {n: c for n, c in cells.items() if c["type"] not in _GATES or not read.isdisjoint(c["connections"]["Y"])}
        if len(left) == len(cells):
            return left
        cells = left


def _inputs(cell: Cell) -> Iterator[Any]:
    for port, bits in cell["connections"].items():
        if port not in ("Y", "Q", "RD_DATA"):
            yield from bits
