# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A netlist of words, run cycle by cycle with control in bits 0 and 1 and data in integer expressions.

A bit is 0, 1, None if it may be either in each cycle, or bit k of an expression (`word_rules`). A memory is read
and written at addresses in bits 0 and 1; at another address any of its words is read, and all are lost.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from modmill.proofs.arithmetic.full_adders import with_full_adders
from modmill.proofs.arithmetic.integers import Integers
from modmill.proofs.arithmetic.polynomials import Expression
from modmill.proofs.arithmetic.word_rules import RULES, Bit, Bits, Pins, WordCell, Words, constant, numbers, value_of
from modmill.proofs.handshake.constant_time import dependent, users_of
from modmill.proofs.netlist import REGISTERS, Cell, Netlist

OPERANDS = ("i_a", "i_b")
"""Ports of operands."""
_READ = "read"
"""Type of a cell that stands for a read port without a clock."""


@dataclass
class _Memory:
    """``number``: its place among those of the netlist. ``first``: lowest address. ``writes``: nets of address, data
    and enable of each write port."""

    number: int
    words: list[Bits]
    width: int
    first: int
    writes: list[tuple[list[Any], list[Any], list[Any]]]
    reads: list[WordCell]


class Symbolic:
    """A core in simulation. ``ports``: bits at the input ports, to be set before `settle`. ``words``: what cells make
    of bits; runs that share ``functions`` get the same numbers for what has no expression. Raises ValueError for a cell
    without a rule."""

    def __init__(self, net: Netlist, integers: Integers, functions: dict[Hashable, Expression] | None = None) -> None:
        self.net, self.words = net, Words(integers, functions)
        self.ports: dict[str, Bits] = {}
        self.stored = set[int]()
        """Unknown numbers that stand for words of memories."""
        self.longest = 0
        """Most bits of words of memories that get names."""
        self._values: dict[Any, Bit] = {"0": 0, "1": 1, "x": None, "z": None}
        self._users: dict[Any, list[WordCell]] = {}
        self._registers: list[WordCell] = []
        self._memories: dict[str, _Memory] = {}
        self._dirty: list[tuple[int, str]] = []
        self._waiting = set[str]()
        self._combined: dict[str, WordCell] = {}
        self._build()

    # ---- construction

    def _build(self) -> None:
        for name, cell in _cells(self.net).items():
            pins, type_ = cell["connections"], cell["type"]
            if type_ == "$mem_v2":
                self._build_memory(name, cell)
                continue
            if type_ not in RULES and type_ not in REGISTERS:
                raise ValueError(f"cell {name} has the type {type_}, for which there is no rule")
            ends = {"Y", "Q", "CLK"}
            inputs = {port: bits for port, bits in pins.items() if port not in ends}
            out = pins["Q"] if type_ in REGISTERS else pins["Y"]
            made = WordCell(name, type_, inputs, out, cell["parameters"], RULES.get(type_, _held))
            if type_ in REGISTERS:
                self._registers.append(made)
                for bit in out:
                    first = self.net.initial.get(bit)
                    self._values[bit] = None if first is None else int(first)
            else:
                self._combined[name] = made
        for made in self._combined.values():
            for bit in (b for bits in made.inputs.values() for b in bits if not isinstance(b, str)):
                self._users.setdefault(bit, []).append(made)
        self._sort()
        for made in self._combined.values():
            self._mark(made)

    def _build_memory(self, name: str, cell: Cell) -> None:
        pins, n = cell["connections"], numbers(cell["parameters"])
        width, bits = n["WIDTH"], n["ABITS"]
        if n["RD_CLK_ENABLE"]:
            raise ValueError(f"memory {name} has a read port with a register, for which there is no rule")
        first = [None if c not in "01" else int(c) for c in reversed(cell["parameters"]["INIT"])]
        first += [None] * (n["SIZE"] * width - len(first))

        def part(port: str, k: int, size: int) -> list[Any]:
            return list(pins[port][k * size : (k + 1) * size])

        words: list[Bits] = [tuple(first[k * width : (k + 1) * width]) for k in range(n["SIZE"])]
        writes = [
            (part("WR_ADDR", k, bits), part("WR_DATA", k, width), part("WR_EN", k, width)) for k in range(n["WR_PORTS"])
        ]
        memory = self._memories[name] = _Memory(len(self._memories), words, width, n["OFFSET"], writes, [])
        for k in range(n["RD_PORTS"]):
            address, data = part("RD_ADDR", k, bits), part("RD_DATA", k, width)
            read = WordCell(f"{name}${k}", _READ, {"A": address}, data, {}, partial(_stored, memory))
            self._combined[read.name] = read
            memory.reads.append(read)

    def _sort(self) -> None:
        """Number the cells so that each comes after those that drive it."""
        drivers = {bit: cell for cell in self._combined.values() for bit in cell.output}
        done = set[str]()
        count = 0
        for first in self._combined.values():
            stack = [(first, False)]
            while stack:
                cell, ready = stack.pop()
                if ready:
                    cell.order = count
                    count += 1
                elif cell.name not in done:
                    done.add(cell.name)
                    stack.append((cell, True))
                    stack += [
                        (drivers[b], False)
                        for bits in cell.inputs.values() for b in bits if b in drivers and drivers[b].name not in done
                    ]  # fmt: skip

    def order(self) -> list[WordCell]:
        """The cells between registers, each after those that drive it."""
        return sorted(self._combined.values(), key=lambda cell: cell.order)

    def begin(self, rnd: random.Random) -> list[int]:
        """Give random bits to the registers of control, those that no operand reaches; returns them."""
        found = [rnd.getrandbits(1) for _ in control(self.net)]
        self._set(control(self.net), tuple(found))
        return found

    def fill(self) -> None:
        """Make the bits None of registers and memories numbers, each of its own name."""
        for cell in self._registers:
            bits = self.bits(cell.output)
            free = self.words.unknown(len(bits), "register", cell.name)
            self._set(cell.output, tuple(f if b is None else b for b, f in zip(bits, free, strict=True)))
        for name, memory in self._memories.items():
            for at, bits in enumerate(memory.words):
                free = self.words.unknown(len(bits), "memory", name, at)
                memory.words[at] = tuple(f if b is None else b for b, f in zip(bits, free, strict=True))

    # ---- one cycle

    def bits(self, nets: Sequence[Any]) -> Bits:
        """The bits of nets."""
        values = self._values
        return tuple(values.get(b) for b in nets)

    def contents(self) -> tuple[Bits, Bits]:
        """What registers of control have, then what all registers and memories have."""
        every = [self.bits(cell.output) for cell in self._registers]
        every += [word for memory in self._memories.values() for word in memory.words]
        return self.bits(control(self.net)), tuple(bit for bits in every for bit in bits)

    def put_back(self, bits: Bits) -> None:
        """Give registers and memories what they had: the second of `contents`."""
        at = 0
        for cell in self._registers:
            self._set(cell.output, bits[at : at + len(cell.output)])
            at += len(cell.output)
        for memory in self._memories.values():
            for k in range(len(memory.words)):
                memory.words[k] = bits[at : at + memory.width]
                at += memory.width
            for read in memory.reads:
                self._mark(read)

    def _mark(self, cell: WordCell) -> None:
        if cell.name not in self._waiting:
            self._waiting.add(cell.name)
            heapq.heappush(self._dirty, (cell.order, cell.name))

    def _set(self, nets: Sequence[Any], bits: Bits) -> None:
        values = self._values
        for net, bit in zip(nets, bits, strict=True):
            if values.get(net, "") != bit:
                values[net] = bit
                for cell in self._users.get(net, ()):
                    self._mark(cell)

    def settle(self) -> None:
        """Compute all nets from the ports and the registers."""
        for name, bits in self.ports.items():
            self._set(self.net.module["ports"][name]["bits"], bits)
        while self._dirty:
            _, name = heapq.heappop(self._dirty)
            self._waiting.discard(name)
            cell = self._combined[name]
            self._set(cell.output, cell.evaluate(self.words, cell, {n: self.bits(b) for n, b in cell.inputs.items()}))

    def output(self, name: str) -> Bits:
        """The bits at a port, after `settle`."""
        return self.bits(self.net.module["ports"][name]["bits"])

    def clock(self) -> None:
        """The edge of the clock, after `settle`."""
        found = [(cell.output, self._next(cell)) for cell in self._registers]
        for memory in self._memories.values():
            self._write(memory)
        for nets, bits in found:
            self._set(nets, bits)

    def _next(self, cell: WordCell) -> Bits:
        now, then = self.bits(cell.output), self.bits(cell.inputs["D"])
        type_, n = cell.type, cell.number

        def pin(port: str) -> Bit:
            (bit,) = self.bits(cell.inputs[port])
            return bit if n[f"{port}_POLARITY"] else self.words.invert(bit)

        enabled = self.words.choose(pin("EN"), then, now) if "EN" in cell.inputs else then
        if type_ in ("$sdff", "$sdffe", "$sdffce"):
            text = cell.parameters["SRST_VALUE"]
            value: Bits = tuple(int(c) if c in "01" else None for c in reversed(text))
            reset = pin("SRST")
            if type_ == "$sdffce":
                return self.words.choose(pin("EN"), self.words.choose(reset, value, then), now)
            return self.words.choose(reset, value, enabled)
        return enabled

    def _write(self, memory: _Memory) -> None:
        """Write what the ports of a memory have before the edge; of two writes to a word the later port counts."""
        for port in memory.writes:
            where, new, mask = map(self.bits, port)
            if all(bit == 0 for bit in mask):
                continue
            if constant(where):
                at = value_of(where) - memory.first
                if 0 <= at < len(memory.words):
                    new = self._stored(new) if {*mask} == {1} and memory.width <= self.longest else new
                    memory.words[at] = self._written(memory.words[at], new, mask)
            else:
                memory.words[:] = [(None,) * memory.width] * len(memory.words)
            for read in memory.reads:
                self._mark(read)

    def _stored(self, word: Bits) -> Bits:
        """A word, or an unknown number in its place."""
        found = self.words.name(word, 1)
        if found != word and isinstance(bit := found[0], tuple):
            self.stored |= {a for m in bit[0].terms for a in m}
        return found

    def _written(self, old: Bits, new: Bits, mask: Bits) -> Bits:
        return tuple(self.words.choose(m, (b,), (a,))[0] for a, b, m in zip(old, new, mask, strict=True))


@lru_cache(maxsize=4)
def _cells(net: Netlist) -> dict[str, Cell]:
    """The cells of a netlist, with full adders."""
    ports = net.module["ports"].values()
    return with_full_adders(net.cells, frozenset(b for p in ports if p["direction"] == "output" for b in p["bits"]))


@lru_cache(maxsize=4)
def control(net: Netlist) -> list[Any]:
    """Nets of the registers that no operand reaches, but for those with a stated value at power-up."""
    ports = net.module["ports"]
    reached = dependent(net, users_of(net), [b for n in OPERANDS if n in ports for b in ports[n]["bits"]])
    registers = (cell["connections"]["Q"] for cell in net.cells.values() if cell["type"] in REGISTERS)
    return [b for bits in registers for b in bits if b not in reached and b not in net.initial]


def _held(_words: Words, cell: WordCell, _pins: Pins) -> Bits:
    raise AssertionError(f"{cell.name} is a register")


def _stored(memory: _Memory, words: Words, _cell: WordCell, pins: Pins) -> Bits:
    """The word that a read port shows."""
    address = pins["A"]
    if words.named is not None and words.is_short(address) and None not in address:
        address = words.case_of(address)
    if constant(address):
        at = value_of(address) - memory.first
        return memory.words[at] if 0 <= at < len(memory.words) else (None,) * memory.width
    if None in address:
        return (None,) * memory.width
    return words.looked_up(memory.number, address, memory.words, memory.first)
