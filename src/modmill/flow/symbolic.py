# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A netlist of words, run cycle by cycle with control in bits 0 and 1 and data in integer expressions.

A bit is 0, 1, None if it may be either in each cycle, or bit k of an expression (in two's complement without end). What
depends on a bit None is None, or a new number of which only the range is known.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modmill.flow.integers import Expression, Integers
from modmill.flow.netlist import REGISTERS, Cell, Netlist

Bit = int | None | tuple[Expression, int]
"""A constant, an unknown bit, or a bit of an expression."""
Bits = tuple[Bit, ...]
_READ = "read"
"""Type of a cell that stands for a read port without a clock."""
_MOST_TERMS = 20_000
"""Terms of an expression above which a word is replaced by a new number."""


@dataclass
class _Port:
    """A read or write port: nets, and for a read port the numbers of the write ports whose data it passes on at once,
    and of those in which it reads nothing known."""

    address: list[Any]
    data: list[Any]
    enable: list[Any]
    clocked: bool = True
    through: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()


@dataclass
class _Memory:
    words: list[Bits]
    width: int
    first: int
    reads: list[_Port]
    writes: list[_Port]


@dataclass
class _Cell:
    name: str
    type: str
    inputs: dict[str, list[Any]]
    output: list[int]
    parameters: Mapping[str, str]
    evaluate: Callable[[Symbolic, _Cell], Bits]
    order: int = 0
    number: dict[str, int] = field(default_factory=dict)


class Symbolic:
    """A core in simulation. ``ports``: bits at the input ports, to be set before `settle`. ``functions``: numbers for
    what has no expression; runs that share them get the same. ``decide``: says of a bit that chooses between words
    which value it has in this run, or None."""

    def __init__(self, net: Netlist, integers: Integers, functions: dict[Hashable, Expression] | None = None) -> None:
        self.net, self.integers = net, integers
        self._functions = {} if functions is None else functions
        self.decide: Callable[[Expression, int], int | None] = lambda _, __: None
        self.ports: dict[str, Bits] = {}
        self._values: dict[Any, Bit] = {"0": 0, "1": 1, "x": None, "z": None}
        self._users: dict[Any, list[_Cell]] = {}
        self._registers: list[_Cell] = []
        self._memories: dict[str, _Memory] = {}
        self._reads: list[tuple[_Memory, int, list[Any], list[Any]]] = []
        self._dirty: list[tuple[int, str]] = []
        self._waiting = set[str]()
        self._combined: dict[str, _Cell] = {}
        self._any_of: dict[Bit, Bits] = {}
        self._build()

    # ---- construction

    def _build(self) -> None:
        for name, cell in self.net.cells.items():
            pins, type_ = cell["connections"], cell["type"]
            if type_ == "$mem_v2":
                self._build_memory(name, cell)
                continue
            out = pins["Q"] if type_ in REGISTERS else pins["Y"]
            made = _Cell(name, type_, pins, out, cell["parameters"], _RULES.get(type_, Symbolic._opaque))
            made.number = _numbers(cell["parameters"])
            if type_ in REGISTERS:
                self._registers.append(made)
                for bit in out:
                    first = self.net.initial.get(bit)
                    self._values[bit] = None if first is None else int(first)
            else:
                self._combined[name] = made
        for made in self._combined.values():
            for port, bits in made.inputs.items():
                if port != "Y":
                    for bit in bits:
                        if not isinstance(bit, str):
                            self._users.setdefault(bit, []).append(made)
        self._sort()
        for made in self._combined.values():
            self._mark(made)

    def _build_memory(self, name: str, cell: Cell) -> None:
        pins, n = cell["connections"], _numbers(cell["parameters"])
        width, bits, reads, writes = n["WIDTH"], n["ABITS"], n["RD_PORTS"], n["WR_PORTS"]
        first = [None if c not in "01" else int(c) for c in reversed(cell["parameters"]["INIT"])]
        first += [None] * (n["SIZE"] * width - len(first))

        def part(port: str, k: int, size: int) -> list[Any]:
            return list(pins[port][k * size : (k + 1) * size])

        def marked(mask: str, k: int) -> frozenset[int]:
            return frozenset(j for j in range(writes) if n.get(mask, 0) >> k * writes + j & 1)

        memory = _Memory(
            [tuple(first[k * width : (k + 1) * width]) for k in range(n["SIZE"])], width, n["OFFSET"], [], []
        )
        for k in range(writes):
            memory.writes.append(_Port(part("WR_ADDR", k, bits), part("WR_DATA", k, width), part("WR_EN", k, width)))
        for k in range(reads):
            port = _Port(
                part("RD_ADDR", k, bits), part("RD_DATA", k, width), part("RD_EN", k, 1),
                bool(n["RD_CLK_ENABLE"] >> k & 1), marked("RD_TRANSPARENCY_MASK", k), marked("RD_COLLISION_X_MASK", k),
            )  # fmt: skip
            memory.reads.append(port)
            if port.clocked:
                self._values.update(dict.fromkeys(port.data))
            else:
                read = _Cell(f"{name}${k}", _READ, {"A": port.address}, port.data, {}, self._reader(memory))
                self._combined[read.name] = read
        self._memories[name] = memory

    def _reader(self, memory: _Memory) -> Callable[[Symbolic, _Cell], Bits]:
        return lambda core, cell: core._word(memory, core._of(cell.inputs["A"]))

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
                        for port, bits in cell.inputs.items() if port != "Y"
                        for b in bits if b in drivers and drivers[b].name not in done
                    ]  # fmt: skip

    def begin(self, values: Mapping[Any, Bit]) -> None:
        """Set nets of registers before the first cycle."""
        for net, bit in values.items():
            self._set((net,), (bit,))

    def fill(self) -> None:
        """Make the bits None of registers and memories numbers, each of its own name."""
        for cell in self._registers:
            bits = self._of(cell.output)
            free = self._unknown(len(bits), "register", cell.name)
            self._set(cell.output, tuple(f if b is None else b for b, f in zip(bits, free, strict=True)))
        for name, memory in self._memories.items():
            for at, bits in enumerate(memory.words):
                free = self._unknown(len(bits), "memory", name, at)
                memory.words[at] = tuple(f if b is None else b for b, f in zip(bits, free, strict=True))
            for k, port in enumerate(memory.reads):
                if port.clocked:
                    self._set(port.data, self._unknown(memory.width, "port", name, k))

    # ---- one cycle

    def _of(self, bits: Sequence[Any]) -> Bits:
        values = self._values
        return tuple(values.get(b) for b in bits)

    def _mark(self, cell: _Cell) -> None:
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
            self._set(cell.output, cell.evaluate(self, cell))

    def output(self, name: str) -> Bits:
        """The bits at a port, after `settle`."""
        return self._of(self.net.module["ports"][name]["bits"])

    def clock(self) -> None:
        """The edge of the clock, after `settle`."""
        found = [(cell.output, self._next(cell)) for cell in self._registers]
        for memory in self._memories.values():
            found += self._clocked(memory)
        for nets, bits in found:
            self._set(nets, bits)

    def _next(self, cell: _Cell) -> Bits:
        now, then = self._of(cell.output), self._of(cell.inputs["D"])
        type_, n = cell.type, cell.number

        def pin(port: str) -> Bit:
            (bit,) = self._of(cell.inputs[port])
            return bit if n[f"{port}_POLARITY"] else self._not(bit)

        enabled = self._choose(pin("EN"), then, now) if "EN" in cell.inputs else then
        if type_ in ("$sdff", "$sdffe", "$sdffce"):
            text = cell.parameters["SRST_VALUE"]
            value: Bits = tuple(int(c) if c in "01" else None for c in reversed(text))
            reset = pin("SRST")
            if type_ == "$sdffce":
                return self._choose(pin("EN"), self._choose(reset, value, then), now)
            return self._choose(reset, value, enabled)
        return enabled

    def _clocked(self, memory: _Memory) -> list[tuple[list[Any], Bits]]:
        """The data of clocked reads; writes come after them."""
        writes: list[tuple[int, Bits, Bits, Bits]] = []
        for k, port in enumerate(memory.writes):
            mask = self._of(port.enable)
            if any(bit != 0 for bit in mask):
                writes.append((k, self._of(port.address), self._of(port.data), mask))
        found = []
        for port in memory.reads:
            if port.clocked:
                (enable,), address = self._of(port.enable), self._of(port.address)
                data = self._word(memory, address)
                for k, where, new, mask in writes:
                    if not _constant(where) or not _constant(address) or (where == address and k in port.lost):
                        data = (None,) * memory.width
                    elif where == address and k in port.through:
                        data = self._written(data, new, mask)
                found.append((port.data, self._choose(enable, data, self._of(port.data))))
        for _, where, new, mask in writes:
            if _constant(where):
                at = _value(where) - memory.first
                if 0 <= at < len(memory.words):
                    memory.words[at] = self._written(memory.words[at], new, mask)
            else:
                memory.words[:] = [(None,) * memory.width] * len(memory.words)
        if writes:
            for cell in self._combined.values():
                if cell.type == _READ:
                    self._mark(cell)
        return found

    def _written(self, old: Bits, new: Bits, mask: Bits) -> Bits:
        return tuple(self._choose(m, (b,), (a,))[0] for a, b, m in zip(old, new, mask, strict=True))

    def _word(self, memory: _Memory, address: Bits) -> Bits:
        """The word at an address."""
        if _constant(address):
            at = _value(address) - memory.first
            return memory.words[at] if 0 <= at < len(memory.words) else (None,) * memory.width
        if None in address:
            return (None,) * memory.width
        return self._unknown(memory.width, _READ, address, tuple(memory.words))

    # ---- words

    def integer(self, bits: Bits, signed: bool = False) -> Expression:
        """The number that the bits are; with ``signed`` in two's complement."""
        parts: list[tuple[int, Expression]] = []
        k, make = 0, self.integers
        while k < len(bits):
            bit = bits[k]
            sign = -1 if signed and k == len(bits) - 1 else 1
            if bit is None:
                end = k + 1
                parts.append((sign << k, make.atom("unknown", 0, 1)))
            elif isinstance(bit, int):
                end = k + 1
                if bit:
                    parts.append((sign << k, make.number(1)))
            else:
                word, at = bit
                end = k + 1
                last = len(bits) - (1 if signed else 0)
                while end < last and bits[end] == (word, at + end - k):
                    end += 1
                parts.append((sign << k, self._slice(word, at, at + end - k)))
            k = end
        return make.sum(parts)

    def _slice(self, word: Expression, low: int, high: int) -> Expression:
        """Bits ``low`` to ``high`` - 1 of a word as a number."""
        make = self.integers
        found = make.sum([(1, make.floor(word, low)), (-(1 << high - low), make.floor(word, high))])
        return make.within(found, 0, (1 << high - low) - 1)

    def word(self, value: Expression, width: int) -> Bits:
        """The low bits of a number."""
        constant = value.constant
        if constant is not None:
            return tuple(constant >> k & 1 for k in range(width))
        if len(value.terms) > _MOST_TERMS:
            return self._unknown(width, "bits", value)
        return tuple((value, k) for k in range(width))

    def _unknown(self, width: int, *of: Hashable) -> Bits:
        """A new number; the same one again for the same function ``of`` the same bits."""
        found = self._functions.get((width, of))
        if found is None:
            found = self._functions[width, of] = self.integers.atom("unknown", 0, (1 << width) - 1)
        return self.word(found, width)

    def _not(self, bit: Bit) -> Bit:
        if bit is None:
            return None
        if isinstance(bit, int):
            return 1 - bit
        word, k = bit
        return self.integers.sum([(-1, word), (-1, self.integers.number(1))]), k

    def _choose(self, select: Bit, one: Bits, zero: Bits) -> Bits:
        """``one`` if ``select`` is 1, else ``zero``."""
        if select == 1 and isinstance(select, int):
            return one
        if select == 0 and isinstance(select, int):
            return zero
        if one == zero:
            return one
        if select is None or None in one or None in zero:
            return tuple(a if a == b else None for a, b in zip(one, zero, strict=True))
        if len(one) > 1 and isinstance(select, tuple) and (chosen := self.decide(*select)) is not None:
            return one if chosen else zero
        make = self.integers
        a, b, s = self.integer(one), self.integer(zero), self.integer((select,))
        return self.word(make.sum([(1, b), (1, make.product(s, make.sum([(1, a), (-1, b)])))]), len(one))

    def _opaque(self, cell: _Cell) -> Bits:
        raise ValueError(f"cell {cell.name} has the type {cell.type}, for which there is no rule")

    # ---- rules of cells

    def _operand(self, cell: _Cell, port: str, width: int) -> Bits:
        """An operand, extended or cut to ``width``."""
        bits = self._of(cell.inputs[port])
        if len(bits) >= width:
            return bits[:width]
        signed = cell.number.get(f"{port}_SIGNED", 0) and cell.number.get("A_SIGNED", 0)
        fill: Bit = bits[-1] if signed and bits else 0
        return (*bits, *(fill,) * (width - len(bits)))

    def _arithmetic(self, cell: _Cell, combine: Callable[[Expression, Expression], Expression]) -> Bits:
        width = len(cell.output)
        signed = bool(cell.number.get("A_SIGNED")) and bool(cell.number.get("B_SIGNED", 1))
        operands = [self._of(cell.inputs[p]) for p in ("A", "B") if p in cell.inputs]
        known = min([width, *(k for bits in operands for k, bit in enumerate(bits[:width]) if bit is None)])
        if known == 0:
            return (None,) * width
        values = [
            self.integer(bits[:width], signed and len(bits) <= width) if known == width else self.integer(bits[:known])
            for bits in operands
        ]
        found = combine(values[0], values[-1])
        found = self.integers.modulo(found, known) if not self._within(found, known) else found
        return (*self.word(found, known), *(None,) * (width - known))

    def _within(self, value: Expression, width: int) -> bool:
        return value.low >= 0 and value.high < 1 << width

    def _add(self, cell: _Cell) -> Bits:
        return self._arithmetic(cell, lambda a, b: self.integers.sum([(1, a), (1, b)]))

    def _sub(self, cell: _Cell) -> Bits:
        return self._arithmetic(cell, lambda a, b: self.integers.sum([(1, a), (-1, b)]))

    def _neg(self, cell: _Cell) -> Bits:
        return self._arithmetic(cell, lambda a, _: self.integers.sum([(-1, a)]))

    def _mul(self, cell: _Cell) -> Bits:
        operands = [self._of(cell.inputs[p]) for p in ("A", "B")]
        if any(all(bit == 0 for bit in bits) for bits in operands):
            return (0,) * len(cell.output)
        return self._arithmetic(cell, self.integers.product)

    def _mux(self, cell: _Cell) -> Bits:
        (select,) = self._of(cell.inputs["S"])
        return self._choose(select, self._of(cell.inputs["B"]), self._of(cell.inputs["A"]))

    def _pmux(self, cell: _Cell) -> Bits:
        found, width = self._of(cell.inputs["A"]), len(cell.output)
        choices, selects = self._of(cell.inputs["B"]), self._of(cell.inputs["S"])
        for k in reversed(range(len(selects))):
            found = self._choose(selects[k], choices[k * width : (k + 1) * width], found)
        return found

    def _bitwise(self, cell: _Cell, rule: Callable[[Bit, Bit], Bit | str]) -> Bits:
        width = len(cell.output)
        a, b = self._operand(cell, "A", width), self._operand(cell, "B", width)
        found: list[Bit] = []
        k = 0
        while k < width:
            simple = rule(a[k], b[k])
            if not isinstance(simple, str):
                found.append(simple)
                k += 1
                continue
            end = k + 1
            while end < width and isinstance(rule(a[end], b[end]), str):
                end += 1
            found += self._both(simple, a[k:end], b[k:end])
            k = end
        return tuple(found)

    def _both(self, what: str, a: Bits, b: Bits) -> Bits:
        """The gate of two words without constants: a product if one of them repeats a bit."""
        make = self.integers
        width = len(a)
        if width == 1 and what != "xor" and not {*a, *b}.isdisjoint(self._any_of):
            return (
                self._truth((*a, *b)) if what == "or" else self._not(self._truth((self._not(a[0]), self._not(b[0])))),
            )
        for x, y in ((a, b), (b, a)):
            if len(set(x)) == 1:
                s, word = self.integer(x[:1]), self.integer(y)
                full = make.number((1 << width) - 1)
                both = make.product(s, word)
                if what == "and":
                    return self.word(both, width)
                every = make.product(s, full)
                factor = 1 if what == "or" else 2
                return self.word(make.sum([(1, every), (1, word), (-factor, both)]), width)
        return self._unknown(width, what, a, b)

    def _and(self, cell: _Cell) -> Bits:
        def rule(a: Bit, b: Bit) -> Bit | str:
            for x, y in ((a, b), (b, a)):
                if isinstance(x, int):
                    return y if x else 0
            return a if a == b or a is None else b if b is None else "and"

        return self._bitwise(cell, rule)

    def _or(self, cell: _Cell) -> Bits:
        def rule(a: Bit, b: Bit) -> Bit | str:
            for x, y in ((a, b), (b, a)):
                if isinstance(x, int):
                    return 1 if x else y
            return a if a == b or a is None else b if b is None else "or"

        return self._bitwise(cell, rule)

    def _xor(self, cell: _Cell) -> Bits:
        def rule(a: Bit, b: Bit) -> Bit | str:
            if a is None or b is None:
                return None
            for x, y in ((a, b), (b, a)):
                if isinstance(x, int):
                    return self._not(y) if x else y
            return 0 if a == b else "xor"

        return self._bitwise(cell, rule)

    def _xnor(self, cell: _Cell) -> Bits:
        return tuple(self._not(bit) for bit in self._xor(cell))

    def _invert(self, cell: _Cell) -> Bits:
        return tuple(self._not(bit) for bit in self._operand(cell, "A", len(cell.output)))

    def _pos(self, cell: _Cell) -> Bits:
        return self._operand(cell, "A", len(cell.output))

    def _one(self, cell: _Cell, bit: Bit) -> Bits:
        return (bit, *(0,) * (len(cell.output) - 1))

    def _truth(self, bits: Bits) -> Bit:
        """Whether a bit is 1."""
        if any(bit == 1 and isinstance(bit, int) for bit in bits):
            return 1
        rest = tuple(bit for bit in bits if bit != 0 or not isinstance(bit, int))
        if not rest:
            return 0
        if None in rest:
            return None
        if len(rest) == 1:
            return rest[0]
        make = self.integers
        parts = {b for bit in rest for b in self._any_of.get(bit, (bit,)) if isinstance(b, tuple)}
        every = sorted(parts, key=lambda b: (b[0].hash, b[1]))
        below = make.floor(make.sum([(1, self.integer(tuple(every))), (-1, make.number(1))]), len(every))
        found = self.word(make.sum([(1, make.number(1)), (1, below)]), 1)[0]
        self._any_of[found] = tuple(every)
        return found

    def _reduce_or(self, cell: _Cell) -> Bits:
        return self._one(cell, self._truth(self._of(cell.inputs["A"])))

    def _logic_not(self, cell: _Cell) -> Bits:
        return self._one(cell, self._not(self._truth(self._of(cell.inputs["A"]))))

    def _reduce_and(self, cell: _Cell) -> Bits:
        return self._one(cell, self._not(self._truth(tuple(map(self._not, self._of(cell.inputs["A"]))))))

    def _reduce_xor(self, cell: _Cell) -> Bits:
        bits = self._of(cell.inputs["A"])
        if _constant(bits):
            return self._one(cell, _value(bits).bit_count() & 1)
        return self._one(cell, None if None in bits else self._unknown(1, "parity", bits)[0])

    def _logic(self, cell: _Cell) -> Bits:
        a, b = (self._truth(self._of(cell.inputs[p])) for p in "AB")
        if cell.type == "$logic_or":
            return self._one(cell, self._truth((a, b)))
        return self._one(cell, self._not(self._truth((self._not(a), self._not(b)))))

    def _compare(self, cell: _Cell) -> Bits:
        width = max(len(cell.inputs["A"]), len(cell.inputs["B"]))
        a, b = self._operand(cell, "A", width), self._operand(cell, "B", width)
        signed = bool(cell.number["A_SIGNED"]) and bool(cell.number["B_SIGNED"])
        type_ = cell.type
        if type_ in ("$eq", "$ne", "$eqx", "$nex"):
            differ: Bit = self._differ(a, b)
            return self._one(cell, differ if type_ in ("$ne", "$nex") else self._not(differ))
        if _constant(a) and _constant(b):
            u, v = _value(a, signed), _value(b, signed)
            return self._one(cell, int({"$lt": u < v, "$le": u <= v, "$gt": u > v, "$ge": u >= v}[type_]))
        if None in a or None in b:
            return self._one(cell, None)
        make = self.integers
        x, y = self.integer(a, signed), self.integer(b, signed)
        if type_ in ("$gt", "$le"):
            x, y = y, x
        less = make.floor(make.sum([(1, x), (-1, y)]), width)  # -1 if x < y, else 0
        bit = self.word(make.sum([(-1, less)]), 1)[0]
        return self._one(cell, bit if type_ in ("$lt", "$gt") else self._not(bit))

    def _differ(self, a: Bits, b: Bits) -> Bit:
        if _constant(a) and _constant(b):
            return int(a != b)
        if any(x != y for x, y in zip(a, b, strict=True) if isinstance(x, int) and isinstance(y, int)):
            return 1
        if a == b and None not in a:
            return 0
        if None in a or None in b:
            return None
        make = self.integers
        apart = make.sum([(1, self.integer(a)), (-1, self.integer(b))])
        if apart.low > 0 or apart.high < 0:
            return 1
        if all(y == 0 for y in b if isinstance(y, int)) and _constant(b):
            return self._truth(a)
        return self._unknown(1, "differ", a, b)[0]

    def _shift(self, cell: _Cell) -> Bits:
        amount = self._of(cell.inputs["B"])
        width = len(cell.output)
        a = self._operand(cell, "A", max(width, len(cell.inputs["A"])))
        if not _constant(amount):
            return (None,) * width if None in amount or None in a else self._unknown(width, cell.type, a, amount)
        by = _value(amount, bool(cell.number.get("B_SIGNED")))
        if cell.type in ("$shl", "$sshl"):
            by = -by
        fill: Bit = a[-1] if cell.type == "$sshr" and cell.number.get("A_SIGNED") else 0
        return tuple(
            a[k + by] if 0 <= k + by < len(a) else 0 if k + by < 0 else fill for k in range(width)
        )  # fmt: skip


def _numbers(parameters: Mapping[str, str]) -> dict[str, int]:
    """The parameters that are binary numbers."""
    return {name: int(text, 2) for name, text in parameters.items() if text and set(text) <= {"0", "1"}}


def _constant(bits: Bits) -> bool:
    return all(isinstance(bit, int) for bit in bits)


def _value(bits: Bits, signed: bool = False) -> int:
    value = sum(bit << k for k, bit in enumerate(bits) if isinstance(bit, int))
    return value - (1 << len(bits)) if signed and bits and bits[-1] else value


_RULES: dict[str, Callable[[Symbolic, _Cell], Bits]] = {
    "$add": Symbolic._add, "$sub": Symbolic._sub, "$neg": Symbolic._neg, "$mul": Symbolic._mul, "$mux": Symbolic._mux,
    "$pmux": Symbolic._pmux, "$and": Symbolic._and, "$or": Symbolic._or, "$xor": Symbolic._xor, "$xnor": Symbolic._xnor,
    "$not": Symbolic._invert, "$pos": Symbolic._pos, "$reduce_or": Symbolic._reduce_or,
    "$reduce_bool": Symbolic._reduce_or, "$reduce_and": Symbolic._reduce_and, "$reduce_xor": Symbolic._reduce_xor,
    "$logic_not": Symbolic._logic_not, "$logic_and": Symbolic._logic, "$logic_or": Symbolic._logic,
    "$shl": Symbolic._shift, "$shr": Symbolic._shift, "$sshl": Symbolic._shift, "$sshr": Symbolic._shift,
    **dict.fromkeys(("$lt", "$le", "$gt", "$ge", "$eq", "$ne", "$eqx", "$nex"), Symbolic._compare),
}  # fmt: skip
