# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Full adders in a netlist of words: a ^ b ^ c, and the majority (a & b) | (a & c) | (b & c), each as one cell.

As one cell, the sum bits are a + b + c - 2 majority, whatever the majority is: carry-save additions come out as sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from modmill.proofs.netlist import Cell

_Word = tuple[Any, ...]
_GATES = ("$and", "$or", "$xor")


def with_full_adders(cells: Mapping[str, Cell], used: frozenset[Any]) -> dict[str, Cell]:
    """The cells with those of full adders replaced by `$xor3` and `$majority`, of the words A, B and C. ``used``: nets
    that ports need."""
    drivers = {tuple(cell["connections"]["Y"]): cell for cell in cells.values() if cell["type"] in _GATES}
    made = dict(cells)
    adders = set[frozenset[_Word]]()
    for name, cell in cells.items():
        if cell["type"] == "$or" and (words := _majority(cell, drivers)):
            made[name] = _merged(cell, "$majority", words)
            adders.add(words)
    for name, cell in cells.items():
        if cell["type"] == "$xor" and (words := _sum(cell, drivers, adders)):
            made[name] = _merged(cell, "$xor3", words)
    return _needed(made, used)


def _operands(cell: Cell) -> tuple[_Word, _Word]:
    """Both operands of a gate without sign, as wide as its result."""
    pins, width = cell["connections"], len(cell["connections"]["Y"])
    one, other = ((*pins[port][:width], *["0"] * (width - len(pins[port]))) for port in "AB")
    return one, other


def _signed(cell: Cell) -> bool:
    return all(int(cell["parameters"][f"{port}_SIGNED"], 2) for port in "AB")


def _driver(word: _Word, type_: str, drivers: Mapping[_Word, Cell]) -> Cell | None:
    cell = drivers.get(word)
    return cell if cell is not None and cell["type"] == type_ and not _signed(cell) else None


def _majority(cell: Cell, drivers: Mapping[_Word, Cell]) -> frozenset[_Word] | None:
    """The three words of a majority."""
    for one, other in (_operands(cell), _operands(cell)[::-1]):
        both, last = _driver(one, "$or", drivers), _driver(other, "$and", drivers)
        if both is None or last is None or _signed(cell):
            continue
        pairs = [_driver(word, "$and", drivers) for word in _operands(both)]
        sets = {frozenset(_operands(pair)) for pair in (*pairs, last) if pair is not None}
        words = frozenset().union(*sets)
        if len(sets) == len(words) == 3 and all(len(pair) == 2 for pair in sets):
            return words
    return None


def _sum(cell: Cell, drivers: Mapping[_Word, Cell], adders: set[frozenset[_Word]]) -> frozenset[_Word] | None:
    """The three words of a sum, if their majority is made, too."""
    for one, other in (_operands(cell), _operands(cell)[::-1]):
        inner = _driver(one, "$xor", drivers)
        if inner is not None and not _signed(cell) and (words := frozenset({*_operands(inner), other})) in adders:
            return words
    return None


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
