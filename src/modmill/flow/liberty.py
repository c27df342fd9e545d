# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The cells of a Liberty library: area, and the function of cells with one output.

Only what the gate equivalent and the drive of inputs need is read: groups ``cell`` and ``pin``, attributes ``area``,
``direction`` and ``function`` (Liberty User Guide, volume 1). Tables and timing groups are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

_COMMENT = re.compile(r"/\*.*?\*/|\\\n", re.DOTALL)
_TOKEN = re.compile(r'"[^"]*"|[{}();:,]|[^\s{}();:,"]+')
_STATES = ("ff", "latch", "ff_bank", "latch_bank", "statetable")
_WORD = re.compile(r"[A-Za-z_]\w*|[!'^*&+|()]|[01]")

Table = Mapping[tuple[bool, ...], bool]
"""A truth table: output by inputs."""


@dataclass(frozen=True)
class Cell:
    """A cell: area in the library's unit, functions by output pin (None if it states none), names of the input pins,
    and whether it is a flip-flop or a latch."""

    name: str
    area: Fraction
    functions: Mapping[str, str | None]
    inputs: tuple[str, ...]
    state: bool

    def computes(self, table: Table) -> bool:
        """Whether it has one output, and this truth table."""
        if len(self.functions) != 1 or len(self.inputs) != len(next(iter(table))):
            return False
        (function,) = self.functions.values()
        if function is None or set(re.findall(r"[A-Za-z_]\w*", function)) != set(self.inputs):
            return False
        try:
            return all(_value(function, dict(zip(self.inputs, row, strict=True))) == out for row, out in table.items())
        except IndexError:  # the function's text ends too early
            return False


NAND2: Table = {row: not all(row) for row in product((False, True), repeat=2)}
NOT: Table = {(False,): True, (True,): False}
BUFFER: Table = {(False,): False, (True,): True}


def cells(text: str) -> list[Cell]:
    """The cells of a library. Raises ValueError if the text is no Liberty library, or has no cells with an area."""
    tokens = list(_TOKEN.findall(_COMMENT.sub(" ", text)))
    if tokens[:1] != ["library"]:
        raise ValueError("not a Liberty library: it does not begin with `library`")
    found = []
    for name, body in _groups(tokens, "cell"):
        area = _attribute(body, "area")
        try:
            size = Fraction(area or "")
        except ValueError:
            continue
        outputs: dict[str, str | None] = {}
        inputs = []
        for pin, inside in _groups(body, "pin"):
            way = _attribute(inside, "direction")
            if way == "input":
                inputs.append(pin)
            elif way == "output":
                outputs[pin] = _attribute(inside, "function")
        state = any(body[at + 1 : at + 2] == ["("] for at, word in enumerate(body) if word in _STATES)
        found.append(Cell(name, size, outputs, tuple(inputs), state))
    if not found:
        raise ValueError("the Liberty library has no cell with an area")
    return found


def smallest(found: list[Cell], table: Table, words: str) -> Cell:
    """The smallest cell with this truth table. Raises ValueError, with ``words`` for the cell, if there is none."""
    some = [cell for cell in found if cell.area > 0 and cell.computes(table)]
    if not some:
        raise ValueError(f"the Liberty library has no {words}")
    return min(some, key=lambda cell: (cell.area, cell.name))


def _groups(tokens: list[str], kind: str) -> Iterator[tuple[str, list[str]]]:
    """(name, tokens inside) of each group of this kind, ``kind (name) { ... }``."""
    at = 0
    while at < len(tokens) - 4:
        if tokens[at] == kind and tokens[at + 1] == "(" and tokens[at + 3 : at + 5] == [")", "{"]:
            end, depth = at + 5, 1
            while depth and end < len(tokens):
                depth += {"{": 1, "}": -1}.get(tokens[end], 0)
                end += 1
            yield tokens[at + 2].strip('"'), tokens[at + 5 : end - 1]
            at = end
        else:
            at += 1


def _attribute(tokens: list[str], name: str) -> str | None:
    """The value of a simple attribute of the group itself, ``name : value ;``."""
    depth = 0
    for at, token in enumerate(tokens):
        depth += {"{": 1, "}": -1}.get(token, 0)
        if depth == 0 and token == name and tokens[at + 1 : at + 2] == [":"]:
            return tokens[at + 2].strip('"')
    return None


def _value(function: str, pins: Mapping[str, bool]) -> bool:
    """A Liberty function's value. ``!`` and ``'`` invert, ``^`` binds before ``*``, ``&`` and a space, these before
    ``+`` and ``|``."""
    words = _WORD.findall(function)

    def either() -> bool:
        value = both()
        while words and words[0] in "+|":
            words.pop(0)
            value = both() | value
        return value

    def both() -> bool:
        value = odd()
        while words and words[0] not in "+|)":
            if words[0] in "*&":
                words.pop(0)
            value = odd() & value
        return value

    def odd() -> bool:
        value = one()
        while words and words[0] == "^":
            words.pop(0)
            value = one() ^ value
        return value

    def one() -> bool:
        word = words.pop(0)
        if word == "!":
            return not one()
        if word == "(":
            value = either()
            words.pop(0)
        else:
            value = pins.get(word, word == "1")
        while words and words[0] == "'":
            words.pop(0)
            value = not value
        return value

    return either()
