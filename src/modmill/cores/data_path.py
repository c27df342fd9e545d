# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Rows executed by the netlist of a machine on unknown numbers, at unknown addresses.

The multiplier is cut out; it is what its contract says: it accepts operands in its period and gives a number of its own
for each product. The program memory holds a row of each kind that the programs have, with unknown numbers in all fields
of addresses, and unknown digits. The slot memory returns an unknown word, the same one for the same address, and its
writes are noted. For each row and thread is compared

    reads     both operands of each task, at number + base, in the cycles of `timing`
    product   the operands at the multiplier's port, from the first to the last cycle in which it reads them
    writes    at number + base, in the cycle of `timing`: the product, or a + b + L, or a - b + L, of all slices
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from modmill.contract import Binary
from modmill.cores.carries import Carries
from modmill.engines.machine.layout import (
    DOWN,
    OWN,
    OWN_ENTRY,
    SHARED,
    SHARED_ENTRY,
    UP,
    Entry,
    MicrocodeLayout,
)
from modmill.engines.machine.program_memory import table_shapes
from modmill.engines.machine.timing import FIRST, MachineTiming
from modmill.engines.microcode.program import Instruction
from modmill.engines.theorem.parts import Part
from modmill.flow.integers import Integers
from modmill.flow.netlist import Netlist
from modmill.flow.polynomials import Expression
from modmill.flow.symbolic import Symbolic
from modmill.flow.word_rules import Bits, Pins, WordCell, Words, constant, value_of
from modmill.interface import Multiplier

THEOREM = (
    "a row of each kind, at any addresses, with any digits and slots: the netlist reads, adds, multiplies and writes "
    "as the row says, in the cycles that the distances assume"
)
_CORE = re.compile(r"^\s*(\w+) core \($", re.MULTILINE)
_SLICE = re.compile(r"\bslice_(\d+)\.")
_SETTLING = 40
"""Cycles after the reset until registers without reset have forgotten what they held."""


@dataclass(frozen=True)
class _Write:
    cycle: int
    slice: int
    address: Bits
    word: Bits


class _Machine(Symbolic):
    """A machine without its multiplier. From ``begin`` on reads and writes of slots are noted: ``cycle``, ``written``,
    and ``read``: addresses at the ports by cycle and slice."""

    def __init__(self, net: Netlist, integers: Integers) -> None:
        super().__init__(net, integers, {})
        self.cycle = -1
        self.written: list[_Write] = []
        self.read: dict[tuple[int, int], list[Bits]] = {}
        self.slices = {int(m[1]): (name, x) for name, x in self._memories.items() if (m := _SLICE.search(name))}
        self._slice_of = {id(x): k for k, (_, x) in self.slices.items()}
        for name, x in self.slices.values():
            x.words[:] = [self.words.unknown(x.width, "slot", name, at) for at in range(len(x.words))]
            for read in x.reads:
                read.evaluate = self._reader(name, x)

    def _reader(self, name: str, memory: Any) -> Any:
        def evaluate(words: Words, _cell: WordCell | None, pins: Pins) -> Bits:
            address = pins["A"]
            if None in address:
                return (None,) * int(memory.width)
            if constant(address):
                return tuple(memory.words[value_of(address)])
            return words.unknown(memory.width, "read", name, address)

        return evaluate

    def word_at(self, k: int, address: Bits) -> Bits:
        """What slice k shows at an address."""
        name, memory = self.slices[k]
        found: Bits = self._reader(name, memory)(self.words, None, {"A": address})
        return found

    def _write(self, memory: Any) -> None:
        k = self._slice_of.get(id(memory))
        if k is None:
            super()._write(memory)
            return
        for port in memory.writes:
            where, new, mask = map(self.bits, port)
            if self.cycle >= 0 and any(bit != 0 for bit in mask):
                if any(bit != 1 for bit in mask):
                    raise ValueError("whether a slot is written depends on something unknown")
                self.written.append(_Write(self.cycle, k, where, new))

    def step(self) -> None:
        """One cycle."""
        if self.cycle >= 0:
            for k, (_, memory) in self.slices.items():
                self.read[self.cycle, k] = [self.bits(read.inputs["A"]) for read in memory.reads]
        self.clock()
        self.cycle += self.cycle >= 0

    def named(self, name: str) -> list[Any]:
        """The nets of a name."""
        found: list[Any] = self.net.module["netnames"][name]["bits"]
        return found

    def put(self, name: str, bits: Bits) -> None:
        """Set registers by their name."""
        self._set(self.named(name), bits)

    def clear(self) -> None:
        """Give numbers to registers that are unknown after the reset: 0 to those of control, which count freely."""
        for cell in self._registers:
            bits = self.bits(cell.output)
            if None in bits:
                data = ".slice_" in self.net.name(cell.output[0])
                free = self.words.unknown(len(bits), "register", cell.name) if data else (0,) * len(bits)
                self._set(cell.output, tuple(f if b is None else b for b, f in zip(bits, free, strict=True)))
        for name, memory in self._memories.items():
            if id(memory) not in self._slice_of and "table" not in name:
                memory.words[:] = [
                    self.words.unknown(memory.width, "memory", name, at) for at in range(len(memory.words))
                ]

    def banks(self) -> dict[str, Any]:
        """The memories of program and digits, by name."""
        return {name: x for name, x in self._memories.items() if re.search(r"sequencer\.table_?\.", name)}

    def refresh(self) -> None:
        """Read all memories again, after their words were set."""
        for memory in self._memories.values():
            for read in memory.reads:
                self._mark(read)


def with_closed_core(verilog: str, top: str) -> Netlist:
    """The netlist of a machine in which the multiplier is one cell. Raises ValueError if no instance has its name,
    ToolError if Yosys cannot read the Verilog."""
    if (found := _CORE.search(verilog)) is None:
        raise ValueError("the Verilog has no instance of a multiplier with the name core")
    return Netlist.read(verilog, top, found[1])


def data_path_part(read: Callable[[], Netlist], layout: MicrocodeLayout, core: Multiplier) -> Part:
    """The statement `THEOREM` for a machine. ``read``: returns its netlist as `with_closed_core`, called if it is
    needed; ``core``: its multiplier."""
    timing = layout.timing
    if not isinstance(timing, MachineTiming) or not isinstance(timing.contract.operand, Binary):
        return Part("data path", THEOREM, ("only machines with binary numbers are followed",))
    if layout.conditional_subtracts:
        return Part("data path", THEOREM, ("conditional subtractions are not followed",))
    try:
        found = list(_Rows(read(), layout, core).faults())
    except (ValueError, KeyError, IndexError, StopIteration) as error:
        found = [f"not followed: {type(error).__name__} {error}"]
    return Part("data path", THEOREM, tuple(found[:5]))


def kinds(layout: MicrocodeLayout) -> list[tuple[int, Instruction]]:
    """A row of each kind, with the number of its program: rows that differ in more than numbers of slots."""
    found: dict[Any, tuple[int, Instruction]] = {}
    for number, program in enumerate(layout.programs):
        for row in program.written:
            kind = tuple(
                (task.kind, task.offset_multiple, *((x.pick, x.shared, x.number % 2 if x.pick == "pair" else 0)
                                                    for x in (task.destination, *task.reads)))
                for task in row.tasks
            )  # fmt: skip
            found.setdefault((row.product is None, kind), (number, replace(row, advance=False)))
    return list(found.values())


class _Rows:
    """One run of a machine over a row of each kind."""

    def __init__(self, net: Netlist, layout: MicrocodeLayout, core: Multiplier) -> None:
        assert isinstance(layout.timing, MachineTiming)
        self._layout, self._timing, self._core = layout, layout.timing, core
        name, cell = next((n, c) for n, c in net.cells.items() if not c["type"].startswith("$"))
        del net.cells[name]
        self._pins: dict[str, list[Any]] = cell["connections"]
        ways = cell["port_directions"]
        for port in (p for p in self._pins if ways[p] == "output"):
            net.module["ports"][f"core_{port}"] = {"direction": "input", "bits": self._pins[port]}
        width = layout.contract.operand.width
        self._operands = [p for p in self._pins if ways[p] == "input" and len(self._pins[p]) == width][:2]
        handshake = ("i_ready", "o_valid", "k_ready")
        self._result = [b for p in self._pins if ways[p] == "output" and p not in handshake for b in self._pins[p]]
        if len(self._operands) != 2 or len(self._result) != width:
            raise ValueError("the multiplier has other ports than two operands and a result")
        self._make = Integers()
        self._machine = _Machine(Netlist(net.module), self._make)
        self._rows = kinds(layout)
        self._fields: dict[tuple[int, int, str], Bits] = {}
        self._entries: list[list[Entry]] = []
        self._digit: Bits = ()
        self._accepted: list[int] = []
        self._products: list[Bits] = []
        self._ports: list[list[Bits]] = []
        self._carries = Carries(self._make)

    # ---- the run

    def _prepare(self) -> None:
        machine = self._machine
        ports = machine.net.module["ports"]
        machine.ports = {
            name: (0,) * len(port["bits"]) for name, port in ports.items()
            if port["direction"] == "input" and name != "clk"
        }  # fmt: skip
        machine.ports |= {"rst": (1,), "core_i_ready": (1,)}
        for cycle in range(2 * _SETTLING):
            machine.ports["rst"] = (int(cycle < _SETTLING),)
            machine.settle()
            machine.step()
        machine.clear()
        self._fill()
        machine.put("message_command", (0,))
        machine.put("message_start", (1,))
        machine.cycle = 0

    def _fill(self) -> None:
        """Put the rows and the digits into their memories."""
        lay, machine, words = self._layout, self._machine, self._machine.words
        product, of_sum = table_shapes(lay).values()
        banks = machine.banks()
        program = next(x for name, x in sorted(banks.items()) if ".bank0." in name)
        for name, memory in banks.items():
            free = words.unknown(16, "digits")
            pad: Bits = (0,) * max(0, memory.width - 16)
            end = len(lay.table[0])
            for at in range(len(memory.words)):
                if ".digits" in name or int(re.findall(r"bank(\d+)\.", name)[0]) * 1024 + at >= end:
                    memory.words[at] = (*free, *pad)[: memory.width]
        self._digit = words.unknown(16, "digits")[: lay.digit_bits]
        at = 0
        for k, (number, row) in enumerate(self._rows):
            made = list(lay.entries(number, row, again=False, last=k == len(self._rows) - 1))
            self._entries.append(made)
            for j, entry in enumerate(made):
                shape = of_sum if j else product
                bits: list[Any] = [0] * program.width
                for name, (_, how) in zip(lay.fields, entry.addresses, strict=True):
                    self._place(bits, shape[name], self._field(k, j, name, shape[name].width))
                    code = lay.bases(name).index(how)
                    self._place(bits, shape[f"{name}_add"], tuple(code >> i & 1 for i in range(8)))
                for name in [name for name, _ in shape if hasattr(entry, name)]:
                    self._place(bits, shape[name], tuple(int(getattr(entry, name)) >> i & 1 for i in range(8)))
                program.words[at] = tuple(bits)
                at += 1
        if at > len(program.words):
            raise ValueError(f"{at} entries of rows of all kinds do not fit a bank")
        machine.refresh()

    @staticmethod
    def _place(bits: list[Any], field: Any, values: Bits) -> None:
        bits[field.offset : field.offset + field.width] = values[: field.width]

    def _field(self, k: int, j: int, name: str, width: int) -> Bits:
        made = self._fields[k, j, name] = self._machine.words.unknown(width, "field", k, j, name)
        return made

    def _run(self) -> None:
        machine, timing, core = self._machine, self._timing, self._core
        latency = timing.contract.timing.latency
        slots = (len(self._rows) * self._layout.threads + 3) * timing.issue_cycles
        offered: list[bool] = []
        due: dict[int, Bits] = {}
        width = len(self._result)
        at = {bit: k for k, bit in enumerate(self._result)}
        results = [p for p in machine.ports if p.startswith("core_") and p not in ("core_i_ready", "core_o_valid")]
        for cycle in range(timing.alignment + timing.run_up + slots + timing.drain + latency):
            lasts = [
                next((due[c][b] for c in range(cycle, cycle - 1 - core.stands(b), -1) if c in due), None)
                for b in range(width)
            ]
            for name in results:
                nets = machine.net.module["ports"][name]["bits"]
                machine.ports[name] = tuple(lasts[at[bit]] if bit in at else 1 for bit in nets)
            early = core.lead == 0 or (cycle >= core.lead and offered[cycle - core.lead])
            machine.ports["core_i_ready"] = (int(cycle % core.period == 0 and early),)
            machine.ports["core_o_valid"] = (int(cycle in due),)
            machine.settle()
            (valid,) = machine.bits(self._pins["i_valid"])
            if valid not in (0, 1):
                raise ValueError("whether operands are offered depends on something unknown")
            offered.append(valid == 1)
            self._ports.append([machine.bits(self._pins[p]) for p in self._operands])
            if valid == 1 and machine.ports["core_i_ready"] == (1,):
                self._products.append(machine.words.unknown(width, "product", len(self._accepted)))
                due[cycle + latency] = self._products[-1]
                self._accepted.append(cycle)
            machine.step()

    # ---- the comparison

    def faults(self) -> Iterator[str]:
        """What differs, as lines."""
        self._prepare()
        self._run()
        threads, timing = self._layout.threads, self._timing
        begin = self._accepted[0] + timing.run_up
        done, writes = 1, 0
        for slot in range(len(self._rows) * threads):
            k, thread = divmod(slot, threads)
            for j, entry in enumerate(self._entries[k]):
                if j == 0 and not entry.active:
                    continue
                product = done if j == 0 else None
                done += j == 0
                writes += len(timing.slices)
                if what := self._task(begin + slot * timing.issue_cycles, k, j, thread, entry, product):
                    yield f"row {k} of another kind, task {j}, thread {thread}: {what}"
        noted = sum(w.cycle >= begin + FIRST for w in self._machine.written)
        if noted != writes or done != len(self._accepted):
            yield f"{noted} writes of slices and {len(self._accepted) - 1} products, not {writes} and {done - 1}"

    def _task(self, begin: int, k: int, j: int, thread: int, entry: Entry, product: int | None) -> str:
        """What is other than the entry says; empty if nothing is."""
        lay, timing, words = self._layout, self._timing, self._machine.words
        hows = dict(zip(lay.fields, (how for _, how in entry.addresses), strict=True))
        wanted = {name: self._address(self._fields[k, j, name], hows[name], thread) for name in hows}
        whole: dict[str, Bits] = {}
        for name, late in (("b", 0), ("a", 1)):
            word: list[Any] = []
            for s in range(len(timing.slices)):
                cycle = begin + FIRST + 2 * j + late + s * timing.chained
                read = next((a for a in self._machine.read[cycle, s] if self._equal(a, wanted[name])), None)
                if read is None:
                    return f"operand {name} is not read in cycle {cycle - begin}"
                word += self._machine.word_at(s, read)
            whole[name] = tuple(word)
        if product is not None:
            accepted = self._accepted[product] if product < len(self._accepted) else -1
            if accepted != begin + timing.accept or not self._offered(accepted, whole):
                return "other operands arrive at the multiplier"
            value, cycle = words.integer(self._products[product]), begin + timing.write
        else:
            lift = [
                (1 << sum(timing.slices[:s]), words.integer(memory.words[lay.offset_base + entry.lift]))
                for s, (_, memory) in sorted(self._machine.slices.items())
            ]
            a, b = words.integer(whole["a"]), words.integer(whole["b"])
            value = self._make.sum([(1, a), (-1 if entry.invert else 1, b), *lift])
            cycle = begin + FIRST + 2 * j + timing.delay
        return self._stored(cycle, wanted["destination"], value)

    def _address(self, number: Bits, how: int, thread: int) -> Expression:
        """The number of an entry plus its base."""
        make, words, lay = self._make, self._machine.words, self._layout
        own, shared = thread * lay.slots, lay.shared_base
        odd, digit = words.integer(self._digit[:1]), words.integer(self._digit)
        base, factor, moved = {
            OWN: (own, 0, digit), OWN_ENTRY: (own, 1, digit), UP: (own, 1, odd), DOWN: (own, -1, odd),
            SHARED: (shared, 0, digit), SHARED_ENTRY: (shared, 1, digit),
        }[how]  # fmt: skip
        return make.sum([(1, words.integer(number)), (base, make.number(1)), (factor, moved)])

    def _equal(self, address: Bits, wanted: Expression) -> bool:
        """Whether an address is this number, in the bits that it has."""
        if None in address:
            return False
        found = self._make.sum([(1, self._machine.words.integer(address)), (-1, wanted)])
        return self._make.modulo(found, len(address)).constant == 0

    def _offered(self, accepted: int, whole: dict[str, Bits]) -> bool:
        """Whether the operands are at the multiplier's port whenever it reads them, in one of both orders."""
        for order in (("a", "b"), ("b", "a")):
            if all(
                self._ports[accepted + late][operand][bit] == whole[name][bit]
                for operand, name in enumerate(order)
                for bit in range(len(whole[name]))
                for late in range(self._core.read_in(operand, bit)[0], self._core.read_in(operand, bit)[1] + 1)
            ):
                return True
        return False

    def _stored(self, cycle: int, address: Expression, value: Expression) -> str:
        """What is other in the writes of this value into all slices, the lowest in this cycle."""
        timing, words = self._timing, self._machine.words
        bits, first = words.word(value, sum(timing.slices)), 0
        for s, width in enumerate(timing.slices):
            here = [w for w in self._machine.written if w.slice == s and w.cycle == cycle + s * timing.chained]
            if len(here) != 1 or not self._equal(here[0].address, address):
                return f"slice {s} does not write the destination"
            wanted = words.integer(bits[first : first + width])
            if None in here[0].word or not self._carries.same(words.integer(here[0].word), wanted):
                return f"slice {s} writes another value"
            first += width
        return ""
