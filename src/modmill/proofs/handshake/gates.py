# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The part of a netlist on which some nets depend, as gates that are evaluated for two runs at once.

A net is 0, 1, unknown but equal in both runs, or may differ: two planes of bits, value and unknown, with both set for
"may differ". Many states are evaluated at once, one in each bit (lane) of Python's integers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from modmill.proofs.netlist import REGISTERS, Bit, Cell, Netlist, behind

EQUAL, DIFFERS = 2, 3
"""Values of a net besides 0 and 1, as value + 2 unknown."""


@dataclass
class _Read:
    """A read port of a memory: nets of its address and of its data, by column."""

    memory: Memory
    address: list[int]
    data: dict[int, int]


@dataclass
class Memory:
    """A memory: initial words (value, unknown), and the pattern (value, known bits) of the addresses that are
    written. ``writes``: of each port, nets of the address, and of data and enable by column. ``causes``: columns in
    which what is written may differ, each with a net by which it may."""

    name: str
    words: list[tuple[int, int]]
    width: int
    pattern: tuple[int, int] | None
    writes: list[tuple[list[int], dict[int, tuple[int, int]]]] = field(default_factory=list)
    causes: dict[int, int] = field(default_factory=dict)

    def written(self, word: int) -> bool:
        """Whether some write may change this word."""
        return self.pattern is not None and (word ^ self.pattern[0]) & self.pattern[1] == 0


class Gates:
    """The gates on which nets of ports, and some ``more``, depend, and the registers between them.

    ``registers``: for each output bit of a register its next value's net. ``inputs``: nets of ports and constants.
    ``made``: kind, inputs and output of each gate, in the order of evaluation. ``reads``: read ports of memories."""

    def __init__(self, net: Netlist, outputs: Collection[str], more: Iterable[Bit] = ()) -> None:
        self.net = net
        self.index: dict[Bit, int] = {}
        self._code: list[str] = []
        self.made: list[tuple[str, tuple[int, ...], int]] = []
        self._drives: dict[int, tuple[int, ...]] = {}
        self.registers: dict[int, int] = {}
        self.reads: list[_Read] = []
        self.memories: dict[str, Memory] = {}
        self._memory_of: dict[int, tuple[Memory, int]] = {}
        self._inverse: dict[int, int] = {}
        self.count = 0
        self.constants = {bit: self._net() for bit in ("0", "1", "x")}
        self.index.update(self.constants)
        cone = self._cone(
            [*more, *(b for n in outputs if n in net.module["ports"] for b in net.module["ports"][n]["bits"])]
        )
        self.inputs = {self._of(b): b for b in cone if b not in self.net.drivers}
        self.outputs = [self._of(b) for n in outputs for b in net.module["ports"].get(n, {"bits": []})["bits"]]
        self._build(cone)

    # ---- construction

    def _net(self) -> int:
        self.count += 1
        return self.count - 1

    def _of(self, bit: Bit) -> int:
        """Number of a net of the netlist."""
        if bit == "z":
            bit = "x"
        if bit not in self.index:
            self.index[bit] = self._net()
        return self.index[bit]

    def _cone(self, bits: Iterable[Bit]) -> set[Bit]:
        todo = [b for b in bits if isinstance(b, int)]
        seen = set[Bit](todo)
        while todo:
            if driver := self.net.drivers.get(todo.pop()):
                name, port, k = driver
                cell = self.net.cells[name]
                for p, j in behind(cell, port, k):
                    bit = cell["connections"][p][j]
                    if isinstance(bit, int) and bit not in seen:
                        seen.add(bit)
                        todo.append(bit)
        return seen

    def _build(self, cone: set[Bit]) -> None:
        """Add gates in an order in which each comes after those that drive it."""
        cells = dict.fromkeys(self.net.drivers[b][0] for b in sorted(cone, key=str) if b in self.net.drivers)
        done, states = set[str](), []
        for first in cells:
            stack = [first]
            while stack:
                name = stack[-1]
                cell = self.net.cells[name]
                state = cell["type"] in REGISTERS
                if name in done or state:
                    stack.pop()
                    if state and name not in done:
                        done.add(name)
                        states.append(name)
                    continue
                waits = [
                    self.net.drivers[b][0]
                    for port, bits in cell["connections"].items()
                    if cell["port_directions"][port] == "input" and not _only_written(cell, port)
                    for b in bits
                    if b in self.net.drivers and self.net.drivers[b][0] not in done
                ]
                waits = [n for n in waits if self.net.cells[n]["type"] not in REGISTERS]
                if waits:
                    if len(stack) > len(self.net.cells):
                        raise ValueError(f"a loop of gates through {self.net.source(name)[1]}")
                    stack += waits[:1]
                    continue
                stack.pop()
                done.add(name)
                self._cell(name, cell, cone)
        for name in states:
            self._register(self.net.cells[name], cone)
        for memory in self.memories.values():
            self._writes(memory)

    def gate(self, kind: str, *ins: int, out: int | None = None) -> int:
        """Add a gate: not, and, or, xor, mux (a, b, select)."""
        o = self._net() if out is None else out
        self._code.append(_RULES[kind].format(*ins, o=o))
        self._drives[o] = ins
        self.made.append((kind, ins, o))
        return o

    def inverse(self, net: int) -> int:
        """A net that is the inverse of this one; -1 if there is none."""
        return self._inverse.get(net, -1)

    def _any(self, nets: Sequence[int], kind: str = "or") -> int:
        found = list(nets) or [self.constants["0"]]
        while len(found) > 1:
            found = [self.gate(kind, *found[k : k + 2]) if k + 1 < len(found) else found[k]
                     for k in range(0, len(found), 2)]  # fmt: skip
        return found[0]

    def _cell(self, name: str, cell: Cell, cone: set[Bit]) -> None:
        type_, pins = cell["type"], {p: [self._of(b) for b in bits] for p, bits in cell["connections"].items()}
        if type_ == "$mem_v2":
            self._memory(name, cell, cone)
            return
        if set(pins) - {"A", "B", "S", "Y"}:
            raise ValueError(f"cells of type {type_} have no rule")
        y, parameters = pins["Y"], cell["parameters"]
        n = max(len(pins.get(p, ())) for p in ("A", "B", "Y")) if type_ in _BY_WIDTH else 0
        a, b = (_extended(pins.get(p, []), n, self.constants["0"], int(parameters.get(f"{p}_SIGNED", "0"), 2))
                for p in ("A", "B"))  # fmt: skip
        found: list[int]
        if type_ in ("$and", "$or", "$xor"):
            found = [self.gate(type_[1:], *x) for x in zip(a, b, strict=True)]
        elif type_ == "$xnor":
            found = [self.gate("not", self.gate("xor", *x)) for x in zip(a, b, strict=True)]
        elif type_ in ("$not", "$pos"):
            found = [self.gate("not", x) for x in a] if type_ == "$not" else a
            if type_ == "$not":
                self._inverse.update(zip(a, y, strict=False))
        elif type_ == "$mux":
            found = [self.gate("mux", *x, pins["S"][0]) for x in zip(a, b, strict=True)]
        elif type_ == "$pmux":
            found = a
            for k, select in enumerate(pins["S"]):
                part = b[k * len(a) : (k + 1) * len(a)]
                found = [self.gate("mux", *x, select) for x in zip(found, part, strict=True)]
        elif type_ in ("$eq", "$ne"):
            differ = self._any([self.gate("xor", *x) for x in zip(a, b, strict=True)])
            found = [differ if type_ == "$ne" else self.gate("not", differ)]
        elif type_ in ("$reduce_or", "$reduce_bool", "$logic_not"):
            found = [self._any(a)] if type_ != "$logic_not" else [self.gate("not", self._any(a))]
            if type_ == "$logic_not" and len(a) == 1:
                self._inverse[a[0]] = y[0]
        elif type_ in ("$reduce_and", "$reduce_xor"):
            found = [self._any(a, type_.rpartition("_")[2])]
        elif type_ in ("$logic_and", "$logic_or"):
            found = [self.gate(type_[7:], self._any(a), self._any(b))]
        elif type_ in ("$add", "$sub"):
            found = self._sum(a, b, type_ == "$sub")
        elif type_ in _ORDER:
            signed = int(parameters["A_SIGNED"], 2) and int(parameters["B_SIGNED"], 2)
            found = [self._less(a, b, type_, bool(signed))]
        else:  # unknown, equal if all inputs are
            ins = sorted({x for p, nets in pins.items() if p != "Y" for x in nets})
            found = [self.gate("opaque", self._any([self.gate("opaque", x) for x in ins]))] * len(y)
        zero = self.constants["0"]
        for k, out in enumerate(y):
            self._copy(found[k] if k < len(found) else zero, out)

    def _copy(self, net: int, out: int) -> None:
        self.gate("copy", net, out=out)

    def _sum(self, a: Sequence[int], b: Sequence[int], less: bool) -> list[int]:
        carry, out = self.constants["1" if less else "0"], []
        for x, given in zip(a, b, strict=True):
            y = self.gate("not", given) if less else given
            half = self.gate("xor", x, y)
            out.append(self.gate("xor", half, carry))
            carry = self.gate("mux", x, carry, half)
        return out

    def _less(self, a: list[int], b: list[int], type_: str, signed: bool) -> int:
        """Whether a is less than b, or another of the relations of `_ORDER`."""
        swapped, inverted = _ORDER[type_]
        a, b = (b, a) if swapped else (a, b)
        if signed:  # numbers in two's complement are in the order of those with the other highest bit
            a, b = ([*x[:-1], self.gate("not", x[-1])] for x in (a, b))
        less = self.constants["0"]
        for x, y in zip(a, b, strict=True):  # in this form `leaf` meets the higher bits first, which decide
            equal = self.gate("not", self.gate("xor", x, y))
            less = self.gate("or", self.gate("and", less, equal), self.gate("and", y, self.gate("not", x)))
        return self.gate("not", less) if inverted else less

    def _register(self, cell: Cell, cone: set[Bit]) -> None:
        pins, parameters = cell["connections"], cell["parameters"]

        def control(port: str) -> int:
            net = self._of(pins[port][0])
            return net if int(parameters[f"{port}_POLARITY"], 2) else self.gate("not", net)

        enable = control("EN") if "EN" in pins else None
        reset = control("SRST") if "SRST" in pins else None
        value = parameters.get("SRST_VALUE", "")
        for k, bit in enumerate(pins["Q"]):
            if bit not in cone:
                continue
            q, following = self._of(bit), self._of(pins["D"][k])
            if enable is not None and cell["type"] != "$sdffce":
                following = self.gate("mux", q, following, enable)
            if reset is not None:
                following = self.gate("mux", following, self._of(value[-1 - k]), reset)
            if enable is not None and cell["type"] == "$sdffce":
                following = self.gate("mux", q, following, enable)
            self.registers[q] = following

    def _memory(self, name: str, cell: Cell, cone: set[Bit]) -> None:
        pins, parameters = cell["connections"], cell["parameters"]
        width, size, bits = (int(parameters[key], 2) for key in ("WIDTH", "SIZE", "ABITS"))
        if "1" in parameters["RD_CLK_ENABLE"]:
            raise ValueError(f"memory {name} has a register in a read port")
        text = parameters["INIT"]
        words = [text[len(text) - (w + 1) * width : len(text) - w * width] for w in range(size)]
        if len(text) < size * width:
            words = ["x" * width] * size
        known = [(int(w.replace("x", "0"), 2), int("".join("1" if c == "x" else "0" for c in w), 2)) for w in words]
        memory = self.memories[name] = Memory(name, known, width, self._pattern(cell))
        for port in range(int(parameters["RD_PORTS"], 2)):
            data = pins["RD_DATA"][port * width : (port + 1) * width]
            outs = {k: self._of(b) for k, b in enumerate(data) if b in cone}
            if outs:
                address = [self._of(b) for b in pins["RD_ADDR"][port * bits : (port + 1) * bits]]
                self._code.append(f"read({len(self.reads)}, V, U, M)")
                self.reads.append(_Read(memory, address, outs))
                self._drives |= {net: tuple(address) for net in outs.values()}
                self._memory_of |= {net: (memory, k) for k, net in outs.items()}

    def _pattern(self, cell: Cell) -> tuple[int, int] | None:
        """Value and known bits of all addresses at which a memory is written."""
        pins, parameters = cell["connections"], cell["parameters"]
        bits, width, ports = (int(parameters[key], 2) for key in ("ABITS", "WIDTH", "WR_PORTS"))
        found: tuple[int, int] | None = None
        for port in range(ports):
            value = known = 0
            enable = pins["WR_EN"][port * width]
            for k, bit in enumerate(pins["WR_ADDR"][port * bits : (port + 1) * bits]):
                constant = self._while_enabled(bit, enable)
                if constant in ("0", "1"):
                    known |= 1 << k
                    value |= int(constant) << k
            if found is None:
                found = value, known
            else:
                same = found[1] & known & ~(found[0] ^ value)
                found = value & same, same
        return found

    def _while_enabled(self, bit: Bit, enable: Bit) -> Bit:
        """The bit of an address of a write, seen through the multiplexer that gives x while nothing is written."""
        for _ in range(8):
            if bit not in self.net.drivers or enable not in self.net.drivers:
                return bit
            (name, _, k), (other, _, j) = self.net.drivers[bit], self.net.drivers[enable]
            one, two = self.net.cells[name], self.net.cells[other]
            if one["type"] != "$mux" or one["connections"]["A"][k] != "x":
                return bit
            select = one["connections"]["S"][0]
            gated = two["type"] == "$mux" and two["connections"]["S"][0] == select and two["connections"]["A"][j] == "0"
            if select != enable and not gated:
                return bit
            bit = one["connections"]["B"][k]
        return bit

    def _writes(self, memory: Memory) -> None:
        cell = self.net.cells[memory.name]
        pins, parameters = cell["connections"], cell["parameters"]
        bits, width = int(parameters["ABITS"], 2), memory.width
        for port in range(int(parameters["WR_PORTS"], 2)):
            address, data, enable = (
                [self._of(b) for b in pins[p][port * n : (port + 1) * n]]
                for p, n in (("WR_ADDR", bits), ("WR_DATA", width), ("WR_EN", width))
            )
            used = {k for read in self.reads if read.memory is memory for k in read.data}
            known = [n for n in address if n in self._drives or n in self.inputs or n in self.registers]
            memory.writes.append((known, {k: (data[k], enable[k]) for k in sorted(used)}))

    @cached_property
    def _parts(self) -> list[Callable[..., None]]:
        made = []
        for at in range(0, len(self._code), 2000):
            text = "def part(V, U, M, read):\n " + "\n ".join(self._code[at : at + 2000] or ["pass"])
            scope: dict[str, Any] = {}
            exec(compile(text, "gates", "exec"), scope)
            made.append(scope["part"])
        return made

    # ---- evaluation

    def evaluate(self, V: list[int], U: list[int], lanes: int) -> None:
        """Set all nets from registers and inputs, for states in ``lanes`` bits."""
        M = (1 << lanes) - 1
        V[self.constants["0"]] = U[self.constants["0"]] = V[self.constants["x"]] = U[self.constants["1"]] = 0
        V[self.constants["1"]] = U[self.constants["x"]] = M
        for part in self._parts:
            part(V, U, M, self._read)

    def _read(self, number: int, V: list[int], U: list[int], M: int) -> None:
        read, lanes = self.reads[number], M.bit_length()
        words, known = [], dict[tuple[int, ...], tuple[int, int]]()
        for lane in range(lanes):
            address = tuple(sum((p[n] >> lane & 1) << k for k, n in enumerate(read.address)) for p in (V, U))
            if address not in known:
                known[address] = self._word(read.memory, *address)
            words.append(known[address])
        for k, net in read.data.items():
            V[net], U[net] = (plane([word[half] >> k & 1 for word in words]) for half in (0, 1))

    def _word(self, memory: Memory, value: int, unknown: int) -> tuple[int, int]:
        """The word (value, unknown) at an address; the union of the words if the address is unknown."""
        full = (1 << memory.width) - 1
        if value & unknown:
            return full, full
        differing = sum(1 << k for k in memory.causes)
        free = [k for k in range(unknown.bit_length()) if unknown >> k & 1]
        if len(free) > 12:
            free_words: Iterable[int] = (w for w in range(len(memory.words)) if (w ^ value) & ~unknown == 0)
        else:
            free_words = (value | sum((n >> i & 1) << k for i, k in enumerate(free)) for n in range(1 << len(free)))
        ones = zeros = maybe = differ = 0
        for w in free_words:
            if w >= len(memory.words) or memory.written(w):
                differ |= differing
                maybe = full
            else:
                v, u = memory.words[w]
                ones, zeros, maybe = ones | v & ~u, zeros | ~v & ~u & full, maybe | u
            if maybe == full and differ == differing:
                break
        maybe |= ones & zeros
        return (ones & ~maybe) | differ, maybe | differ

    def leaf(self, net: int, lane: int, V: list[int], U: list[int], free: Collection[int]) -> int | None:
        """A net among ``free`` that is unknown but equal in this lane, and on which an unknown net depends."""
        todo, seen = [net], {net}
        while todo:
            n = todo.pop()
            if not U[n] >> lane & 1:
                continue
            if n in free:
                if not V[n] >> lane & 1:
                    return n
                continue
            for m in self._drives.get(n, ()):
                if m not in seen:
                    seen.add(m)
                    todo.append(m)
        return None

    def cause(self, net: int, lane: int, V: list[int], U: list[int]) -> int:
        """A register or input that may differ in this lane, and by which a net may differ."""
        todo, seen = [net], {net}
        while todo:
            n = todo.pop(0)
            if not (V[n] & U[n]) >> lane & 1 or n in self.constants.values():
                continue
            if n in self.registers or n in self.inputs:
                return n
            memory, column = self._memory_of.get(n, (None, 0))
            if memory and column in memory.causes:
                return memory.causes[column]
            todo += [m for m in self._drives.get(n, ()) if m not in seen]
            seen.update(todo)
        return net


_RULES = {
    "copy": "V[{o}] = V[{0}]; U[{o}] = U[{0}]",
    "not": "V[{o}] = M ^ V[{0}] ^ U[{0}]; U[{o}] = U[{0}]",
    "opaque": "V[{o}] = V[{0}] & U[{0}]; U[{o}] = M",
    "and": "a=V[{0}]; b=V[{1}]; c=U[{0}]; d=U[{1}]; n=(a|c)&(b|d); u=(c|d)&n; "
    "U[{o}]=u; V[{o}]=(n^u)|(u&(a&c|b&d))",
    "or": "a=V[{0}]; b=V[{1}]; c=U[{0}]; d=U[{1}]; n=(a&~c)|(b&~d); u=(c|d)&~n; U[{o}]=u; V[{o}]=n|(u&(a&c|b&d))",
    "xor": "a=V[{0}]; b=V[{1}]; c=U[{0}]; d=U[{1}]; u=c|d; U[{o}]=u; V[{o}]=(u&(a&c|b&d))|((a^b)&~u)",
    "mux": "a=V[{0}]; b=V[{1}]; s=V[{2}]; c=U[{0}]; d=U[{1}]; t=U[{2}]; e=M&~(c|d|(a^b)); w=t&~e; k=s&~t; z=M&~(s|t); "
    "U[{o}]=z&c|k&d|w; V[{o}]=z&a|k&b|t&e&a|w&(a&c|b&d|s)",
}  # fmt: skip
"""Value and unknown of each kind of gate. a, b: values; c, d: unknown; in mux: s, t of the select, e: both operands are
the same constant."""
_ORDER = {"$lt": (False, False), "$gt": (True, False), "$ge": (False, True), "$le": (True, True)}
"""Relations as a less than b: with the operands exchanged, and with the result inverted."""
_BY_WIDTH = {"$and", "$or", "$xor", "$xnor", "$not", "$pos", "$eq", "$ne", "$add", "$sub", *_ORDER}


def _extended(nets: list[int], width: int, zero: int, signed: int) -> list[int]:
    return nets + [nets[-1] if signed else zero] * (width - len(nets)) if nets and width else nets


def _only_written(cell: Cell, port: str) -> bool:
    return cell["type"] == "$mem_v2" and port in ("WR_ADDR", "WR_DATA", "WR_EN")


def plane(bits: Iterable[int]) -> int:
    """Bits of lanes as an integer, lane 0 lowest."""
    return sum(bit << lane for lane, bit in enumerate(bits))


def lanes_of(plane: int) -> list[int]:
    """The lanes whose bit is 1."""
    return [lane for lane in range(plane.bit_length()) if plane >> lane & 1]
