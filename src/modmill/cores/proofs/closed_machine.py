# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A machine of an engine without its multiplier, run on unknown numbers, with some nets cut.

A net that is cut has the value that a proof assumes; what drives it is seen before the cut. A slot memory gives an
unknown word for each unknown address and cycle, and its writes are noted, as are those of the queue of destinations. A
memory that is written in every cycle, at the next address each time, is a delay line: a read that is so many addresses
behind gives the word of so many cycles ago.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from modmill.engines.machine.layout import MicrocodeLayout
from modmill.proofs.arithmetic.integers import Integers
from modmill.proofs.arithmetic.polynomials import Expression
from modmill.proofs.arithmetic.symbolic import Symbolic
from modmill.proofs.arithmetic.word_rules import Bit, Bits, WordCell, Words, constant
from modmill.proofs.netlist import Bit as Net
from modmill.proofs.netlist import Netlist

_CORE = re.compile(r"^\s*(\w+) core \($", re.MULTILINE)
_SLICE = re.compile(r"\bslice_(\d+)\.ram_(\d+)\.")
_BANK = re.compile(r"\btable_?\.(bank|digits)(\d+)\.")
_QUEUE = "sequencer.places"
QUEUE = -1, 0
"""Place of the queue of destinations among parts of slices."""
_RESULT, _PORT = "sequencer.unit.o_r", "o_r"
_HANDSHAKE = ("i_ready", "o_valid", "k_ready")


@dataclass(frozen=True)
class Write:
    """A write: ``where``, slice and part of a slot memory, or `QUEUE`. ``enable`` is 1, or None if it may be."""

    cycle: int
    where: tuple[int, int]
    enable: Bit
    address: Bits
    word: Bits


@dataclass
class _Line:
    """A delay line: nets of its data, of the counter that writes it, and its words, the last one first."""

    data: list[Net]
    counter: list[Net]
    words: deque[Bits]


@dataclass(frozen=True)
class State:
    """Values of all nets, the cells that are to be computed, and the words in delay lines."""

    values: dict[Any, Bit]
    waiting: frozenset[str]
    lines: dict[str, tuple[Bits, ...]]


class _Numbers(Words):
    """Rules of cells in which words are also equal if their numbers are, by the ranges of what they are made of."""

    def _differ(self, a: Bits, b: Bits) -> Bit:
        if None not in a and None not in b:
            apart = self.integers.sum([(1, self.integer(a)), (-1, self.integer(b))])
            if apart.constant == 0:
                return 0
        return super()._differ(a, b)


class ClosedMachine(Symbolic):
    """The machine. ``cycle``: number of this cycle. ``written``: noted writes. ``read``: addresses at the read ports of
    parts of the slot memory, by cycle and part. ``slots``: the parts of each slice, the lowest bits first, and
    ``banks``: memories of rows and digits by kind and number. ``valid``: the net that offers operands,
    ``operands``: nets of both; ``result``: port and place of each bit of the product."""

    def __init__(self, net: Netlist, layout: MicrocodeLayout, cut: Sequence[str], absent: Sequence[str]) -> None:
        """``cut``: names of nets. ``absent``: names that may be missing, because their value never changes."""
        self.make, self._absent = Integers(), absent
        self.valid, self.operands, self.result = _opened(net, layout)
        self._before: dict[str, list[Net]] = {}
        self._cut: dict[str, list[Net]] = {}
        for name in cut:
            self._cut_net(net, name)
        super().__init__(Netlist(net.module), self.make, {})
        self.words = _Numbers(self.make, {})
        self.cycle = 0
        self.written: list[Write] = []
        self.read: dict[tuple[int, tuple[int, int]], list[Bits]] = {}
        self._of_register = {bit for cell in self._registers for bit in cell.output}
        self._values |= dict.fromkeys(self._of_register)  # what they are at power-up does not count
        self._slots = {
            (int(m[1]), int(m[2])): (name, x) for name, x in self._memories.items() if (m := _SLICE.search(name))
        }
        self._noted = {id(x): place for place, (_, x) in self._slots.items()} | {
            id(self._memories[_QUEUE]): QUEUE
        }  # fmt: skip
        self.banks = {(m[1], int(m[2])): name for name in self._memories if (m := _BANK.search(name))}
        self._lines = dict[str, _Line]()
        for name, memory in self._memories.items():
            for read in memory.reads:
                self._model(name, memory, read)
        self.ports = {
            name: (None,) * len(port["bits"]) for name, port in self.net.module["ports"].items()
            if port["direction"] == "input" and name != "clk"
        }  # fmt: skip
        self.ports["rst"] = (0,)

    # ---- construction

    def _cut_net(self, net: Netlist, name: str) -> None:
        bits = [b for b in nets_of(net, name) if b in net.drivers]
        fresh = dict(zip(bits, net.fresh(len(bits)), strict=True))
        for cell in {net.drivers[b][0] for b in bits}:
            pins, ways = net.cells[cell]["connections"], net.cells[cell]["port_directions"]
            for port in (p for p in pins if ways[p] == "output"):
                pins[port] = [fresh.get(b, b) for b in pins[port]]
        self._cut[name], self._before[name] = nets_of(net, name), [fresh.get(b, b) for b in nets_of(net, name)]
        net.module["ports"][f"cut {name}"] = {"direction": "input", "bits": bits}

    def _model(self, name: str, memory: Any, read: WordCell) -> None:
        """Say what a read port shows."""
        if id(memory) in self._noted or name in self.banks.values():
            timed = id(memory) in self._noted and name != _QUEUE
            read.evaluate = lambda words, _, pins: self._word(name, memory.width, pins["A"], timed)
            return
        if not memory.writes:
            return
        if len(memory.writes) != 1 or any(bit != "1" for bit in memory.writes[0][2]):
            read.evaluate = lambda *_: (None,) * memory.width
            return
        address, data, _ = memory.writes[0]
        line = self._lines[name] = _Line(data, address, deque(maxlen=len(memory.words)))
        read.evaluate = lambda _, __, pins: self._delayed(line, memory.width, pins["A"])

    def _word(self, name: str, width: int, address: Bits, timed: bool) -> Bits:
        if None in address:
            return (None,) * width
        return self.words.unknown(width, "word", name, address, self.cycle if timed else None)

    def _delayed(self, line: _Line, width: int, address: Bits) -> Bits:
        now = self.bits(line.counter)
        behind = None
        if None not in address and None not in now:
            apart = self.make.sum([(1, self.words.integer(now)), (-1, self.words.integer(address))])
            behind = self.make.modulo(apart, len(now)).constant
        if behind is None:
            return (None,) * width
        behind = behind % (1 << len(now)) or 1 << len(now)
        return line.words[behind - 1] if behind <= len(line.words) else (None,) * width

    # ---- nets by name

    def named(self, name: str) -> list[Any]:
        """The nets of a name; none if it may be absent and is."""
        try:
            return nets_of(self.net, name)
        except ValueError:
            if name in self._absent:
                return []
            raise

    def seen(self, name: str) -> Bits:
        """The bits of a name; of a cut net those before the cut."""
        return self.bits(self._before.get(name) or self.named(name))

    def put(self, name: str, bits: Bits, first: int = 0) -> None:
        """Set bits of a register, from bit ``first`` on. Raises ValueError if one is no register's."""
        for net, bit in zip(self.named(name)[first:], bits, strict=False):
            if net in self._of_register:
                self._set([net], (bit,))
            elif bit is not None and net != str(bit):
                raise ValueError(f"{name} is no register")

    def forget(self, nets: Sequence[Net]) -> None:
        """Set nets of registers to unknown bits."""
        self._set(nets, (None,) * len(nets))

    def give(self, name: str, bits: Bits) -> None:
        """Give a cut net its value."""
        taken = dict(zip(self._cut[name], bits, strict=False))
        self.ports[f"cut {name}"] = tuple(taken.get(b) for b in self.net.module["ports"][f"cut {name}"]["bits"])

    @property
    def cuts(self) -> frozenset[str]:
        """The nets that are cut, by name."""
        return frozenset(self._cut)

    def is_register(self, net: Net) -> bool:
        """Whether a net is the output of a register."""
        return net in self._of_register

    def count_freely(self) -> None:
        """Set the counters of delay lines to unknown numbers."""
        for line in self._lines.values():
            self._set(line.counter, self.words.unknown(len(line.counter), "counter", tuple(line.counter)))

    def queue(self) -> tuple[Bits, Bits, Bits, Bits, Bits]:
        """Of the queue of destinations: whether it is written, the address and the word, the address that is read, and
        the word there."""
        memory = self._memories[_QUEUE]
        (address, word, enable), (read,) = memory.writes[0], memory.reads
        return (
            self.bits(enable[:1]),
            self.bits(address),
            self.bits(word),
            self.bits(read.inputs["A"]),
            self.bits(read.output),
        )

    def free(self, name: str) -> Bits:
        """An unknown number with the bits of a name."""
        return self.words.unknown(len(self.named(name)), "free", name)

    def registers(self) -> Iterator[tuple[str, list[Any]]]:
        """All registers: a name and the nets."""
        for cell in self._registers:
            yield self.net.name(cell.output[0]) or cell.name, cell.output

    def word_at(self, slice_: int, addresses: Sequence[Bits], cycle: int) -> Bits:
        """What a slice shows at the addresses of its parts in a cycle."""
        found: list[Bit] = []
        for (name, memory), address in zip(self.parts(slice_), addresses, strict=True):
            found += self.words.unknown(memory.width, "word", name, address, cycle)
        return tuple(found)

    def word_of(self, bank: str, address: Bits) -> Bits:
        """The word of a bank of rows or digits at an address."""
        return self.words.unknown(self._memories[bank].width, "word", bank, address, None)

    def addresses(self, memory: str) -> list[Bits]:
        """The addresses at the read ports of a memory."""
        return [self.bits(read.inputs["A"]) for read in self._memories[memory].reads]

    def address_bits(self, memory: str) -> int:
        """Bits of the address at the first read port of a memory."""
        return len(self._memories[memory].reads[0].inputs["A"])

    def parts(self, slice_: int) -> list[tuple[str, Any]]:
        """Name and memory of each part of a slice, the lowest bits first."""
        return [self._slots[place] for place in sorted(self._slots) if place[0] == slice_]

    def equal(self, bits: Bits, wanted: Expression) -> bool:
        """Whether bits are this number, in the bits that they have."""
        if None in bits:
            return False
        found = self.make.sum([(1, self.words.integer(bits)), (-1, wanted)])
        return self.make.modulo(found, len(bits)).constant == 0

    # ---- cycles

    def settle(self) -> None:
        """Compute all nets; what memories show may depend on the cycle."""
        for memory in self._memories.values():
            for read in memory.reads:
                self._mark(read)
        super().settle()

    def step(self) -> None:
        """The edge of the clock, after `settle`."""
        for place, (_, memory) in self._slots.items():
            self.read[self.cycle, place] = [self.bits(read.inputs["A"]) for read in memory.reads]
        new = {name: self.bits(line.data) for name, line in self._lines.items()}
        self.clock()
        for name, word in new.items():
            self._lines[name].words.appendleft(word)
        self.cycle += 1

    def _write(self, memory: Any) -> None:
        where = self._noted.get(id(memory))
        if where is None:
            return
        for port in memory.writes:
            address, word, mask = map(self.bits, port)
            enable = mask[0] if constant(mask) else None  # a word of it that is no constant has bits of a number
            if enable is not None and len(set(mask)) > 1:
                raise ValueError("a part of a word is written")
            if enable != 0:
                self.written.append(Write(self.cycle, where, enable, address, word))

    def state(self) -> State:
        """What is now."""
        return State(
            dict(self._values),
            frozenset(self._waiting),
            {name: tuple(line.words) for name, line in self._lines.items()},
        )

    def hold(self, name: str, bits: Bits) -> bool:
        """Whether a register has this value."""
        return self.bits(self.named(name)) == bits

    def restore(self, state: State, cycle: int) -> None:
        """Begin again with this state, in this cycle."""
        self._values = dict(state.values)
        for cell in state.waiting:
            self._mark(self._combined[cell])
        for name, line in self._lines.items():
            line.words = deque(state.lines[name], maxlen=line.words.maxlen)
        self.cycle, self.written, self.read = cycle, [], {}

    def beyond(self, state: State, but: Sequence[str]) -> tuple[list[str], list[str]]:
        """Registers, and delay lines, with another value than in a state in which they have one, except the registers
        in ``but``. Counters of delay lines may be ahead, all of the same width by the same; words that came before the
        run are unknown."""
        skipped = {net for name in but for net in self.named(name)}
        ahead: dict[int, set[int | None]] = {}
        found = []
        for name, nets in self.registers():
            there, here = tuple(state.values.get(n) for n in nets), self.bits(nets)
            pairs = [(a, b) for n, a, b in zip(nets, there, here, strict=True) if n not in skipped and a is not None]
            if all(a == b for a, b in pairs):
                continue
            if None in there or None in here or constant(there) or len(pairs) < len(nets):
                found.append(name)
                continue
            apart = self.make.sum([(1, self.words.integer(here)), (-1, self.words.integer(there))])
            ahead.setdefault(len(nets), set()).add(self.make.modulo(apart, len(nets)).constant)
        lines = [
            name for name, line in self._lines.items()
            if any(
                a not in (None, b)
                for one, two in zip_longest(state.lines[name], line.words, fillvalue=(None,) * len(line.data))
                for a, b in zip(one, two, strict=True)
            )
        ]  # fmt: skip
        if any(len(by) > 1 or None in by for by in ahead.values()):
            lines.append("a counter of delay lines")
        return found, lines


def with_closed_core(verilog: str, top: str) -> Netlist:
    """The netlist of a machine in which the multiplier is one cell. Raises ValueError if no instance has its name,
    ToolError if Yosys cannot read the Verilog."""
    if (found := _CORE.search(verilog)) is None:
        raise ValueError("the Verilog has no instance of a multiplier with the name core")
    return Netlist.read(verilog, top, found[1])


def show_inverse(net: Netlist, name: str, register: str, bit: int) -> None:
    """Give the inverse of a register's bit a name, if no net has it: what reads the bit then reads the inverse of the
    net with this name."""
    try:
        nets_of(net, name)
    except ValueError:
        held = nets_of(net, register)[bit]
        readers = [(c["connections"], c["port_directions"]) for c in net.cells.values()]
        inverse = net.add("$not", A=[held])
        (again,) = net.add("$not", A=inverse)
        for pins, ways in readers:
            for port in (p for p in pins if ways[p] == "input"):
                pins[port] = [again if b == held else b for b in pins[port]]
        net.module["netnames"][name] = {"hide_name": 0, "bits": inverse, "attributes": {}}


def nets_of(net: Netlist, name: str) -> list[Any]:
    """The nets of a name, also where a keyword of Verilog has a stroke behind it. Raises ValueError if none has it."""
    names = net.module["netnames"]
    for each in (name, f"{name}_", name.replace("table.", "table_.")):
        if each in names:
            found: list[Any] = names[each]["bits"]
            return found
    raise ValueError(f"the netlist has no net {name}")


def _opened(net: Netlist, layout: MicrocodeLayout) -> tuple[list[Net], list[list[Net]], list[tuple[str, int]]]:
    """Take the multiplier out; its outputs become ports of the machine. Returns the net that offers operands, those of
    both operands, and for each bit of the result its port and place. Raises ValueError if it has other ports."""
    name, cell = next((n, c) for n, c in net.cells.items() if not c["type"].startswith("$"))
    del net.cells[name]
    pins: dict[str, list[Any]] = cell["connections"]
    ways, width = cell["port_directions"], layout.contract.operand.width
    unit = {tuple(nn["bits"]): n for n in _HANDSHAKE if (nn := net.module["netnames"].get(f"sequencer.unit.{n}"))}
    # a port that is a register in the Verilog has that register's name; the unit's net then has the name of the port
    for port in [p for p in pins if p not in _HANDSHAKE and tuple(pins[p]) in unit]:
        known = unit[tuple(pins[port])]
        pins[known], ways[known] = pins.pop(port), ways[port]
    given = [p for p in pins if ways[p] == "output"]
    for port in given:
        net.module["ports"][f"core_{port}"] = {"direction": "input", "bits": pins[port]}
    for bit in [b for b, (driver, _, _) in net.drivers.items() if driver == name]:
        del net.drivers[bit]
    of_port = {b: (f"core_{p}", k) for p in given if p not in _HANDSHAKE for k, b in enumerate(pins[p])}
    found = pins[_PORT] if len(pins.get(_PORT, ())) == width else nets_of(net, _RESULT)
    result = [of_port[b] for b in found if b in of_port]
    operands = [pins[p] for p in pins if ways[p] == "input" and len(pins[p]) == width][:2]
    if len(operands) != 2 or len(result) != width:
        raise ValueError("the multiplier has other ports than two operands and a result")
    return pins["i_valid"], operands, result
