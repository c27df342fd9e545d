# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Numbers of slots that control hands on: fewer states for a search.

A core keeps the words of several pairs in one memory, each pair in its slot, and hands the number of the slot on
through registers. For a pair that is marked only its own slot counts. So all pairs are split by the number of their
slot; in each case a register that hands on numbers is replaced by one bit, whether its number is this one. The bit is
exact: a comparison with a constant comes to the same before a register, or a choice, as behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from modmill.proofs.netlist import REGISTERS, Bit, Cell, Netlist

if TYPE_CHECKING:
    from modmill.proofs.handshake.monitors import Monitored

_NONE: Cell = {"type": "", "connections": {}}
COPIES = ("$mux", "$pmux")
"""Gates that hand on one of several words."""


def numbered(drivers: Netlist, address: Sequence[Bit]) -> set[int]:
    """The places of the bits of an address that are not constants, as far as words are handed on."""
    return {k for k, bit in enumerate(address) if _varies(drivers, bit)}


def _varies(net: Netlist, bit: Bit) -> bool:
    todo, seen = [bit], {bit}
    while todo:
        if isinstance(bit := todo.pop(), str):
            continue
        if bit not in net.drivers:
            return True
        name, _, k = net.drivers[bit]
        cell = net.cells[name]
        sources = handed_on(cell, [k])
        if not sources:
            return True
        new = {word[0] for word in sources} - seen
        seen |= new
        todo += new
    return False


def handed_on(cell: Cell, places: Sequence[int]) -> list[list[Bit]]:
    """The words one of which is at these places of the output of a register or choice; none of another cell. The reset
    of a register is not among them."""
    pins = cell["connections"]
    if cell["type"] in REGISTERS:
        return [[pins["D"][k] for k in places]]
    if cell["type"] in COPIES:
        width = len(pins["Y"])
        return [
            [pins["A"][k] for k in places],
            *([pins["B"][k + j * width] for k in places] for j in range(len(pins["S"]))),
        ]
    return []


class Slot:
    """Whether words have one number."""

    def __init__(self, net: Monitored, number: int) -> None:
        self._net, self._number = net, number
        self._drivers = Netlist({**net.module}).drivers
        self._found: dict[tuple[Bit, ...], Bit] = {}

    def has(self, word: Sequence[Bit]) -> Bit:
        """Whether a word has the number."""
        if (key := tuple(word)) not in self._found:
            cell = self._cell(word)
            if all(isinstance(b, str) for b in word):
                self._found[key] = "x" if "x" in word else self._is("".join(map(str, reversed(word))))
            elif cell["type"] in REGISTERS and "x" not in cell["parameters"].get("SRST_VALUE", ""):
                self._register(key, cell)
            elif cell["type"] in COPIES:
                low, *high = map(self.has, handed_on(cell, [self._drivers[b][2] for b in word]))
                for select, bit in zip(cell["connections"]["S"], high, strict=True):
                    low = self._net.choice(select, low, bit)
                self._found[key] = low
            else:
                self._found[key] = self._net.equal(word, self._number)
        return self._found[key]

    def before(self, word: Sequence[Bit]) -> Iterator[tuple[Bit, ...]]:
        """The words in registers from which a word is handed on."""
        todo, seen = [tuple(word)], {tuple(word)}
        while todo:
            key = todo.pop()
            cell = self._cell(key)
            if cell["type"] in REGISTERS:
                yield key
            new = {tuple(each) for each in handed_on(cell, [self._drivers[b][2] for b in key if cell["type"]])}
            todo += new - seen
            seen |= new

    def _cell(self, word: Sequence[Bit]) -> Cell:
        """The one cell that gives all bits of a word; one without a type if there is none."""
        cells = {self._drivers[b][0] if b in self._drivers else "" for b in word}
        return self._net.cells.get(cells.pop(), _NONE) if len(cells) == 1 else _NONE

    def _is(self, digits: str) -> str:
        return str(int(int(digits, 2) == self._number))

    def _register(self, word: tuple[Bit, ...], cell: Cell) -> None:
        (bit,) = self._net.fresh(1)
        self._found[word] = bit
        places = [self._drivers[b][2] for b in word]
        new = self.has(handed_on(cell, places)[0])
        value: str = cell["parameters"].get("SRST_VALUE", "")
        reset = self._is("".join(value[-1 - k] for k in reversed(places))) if value else ""
        alike = {**cell, "parameters": {**cell["parameters"], "SRST_VALUE": reset}}
        self._net.held(self._net.after(alike, {**cell["connections"], "D": [new], "Q": [bit]}), [bit])
