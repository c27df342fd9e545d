# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Assemble a field program for a unit and a multiplier: legalise it, schedule it, assign slots.

Slots of a thread: first its tables, each at a multiple of its size; then pairs at even numbers; then variables; then
temporary values of the basic blocks, by lifetime. A temporary value may also use the slot of a variable that is dead,
and the slot of an output until the block writes it. Shared slots: tables of constants, then single constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil
from typing import Any

from modmill.contract import Contract, UnsupportedError
from modmill.engines.microcode.bounds import LegalProgram, legalise, program_bounds
from modmill.engines.microcode.expressions import MUL, READ, Name
from modmill.engines.microcode.field_program import FieldProgram
from modmill.engines.microcode.fusing import fused
from modmill.engines.microcode.hazards import check_hazards
from modmill.engines.microcode.program import ENTRY, DatapathSpec, Instruction, OperandAddress, Program, Task
from modmill.engines.microcode.scheduling import Placed, join, ready_to_place

_ALWAYS = 1 << 40
"""Later than every instruction."""


@dataclass(frozen=True)
class Assembled:
    """A program of instructions and its origin: the legalised field program, its scheduled blocks, the unit.

    ``named``: slot of each variable and table entry of a thread; ``tables``: address of each table."""

    program: Program
    legal: LegalProgram
    parts: tuple[Placed, ...]
    unit: DatapathSpec
    named: Mapping[Name, int]
    tables: Mapping[str, OperandAddress]

    @property
    def field_program(self) -> FieldProgram:
        """The field program that is executed, with inserted reductions."""
        return self.legal.field_program

    def facts(self) -> list[tuple[str, str]]:
        """Key figures for a report, as (name, value)."""
        program, legal = self.program, self.legal
        inserted = len(legal.reductions)
        return [
            ("instructions", str(program.instructions)),
            ("products", str(program.products)),
            ("table instructions", str(len(program.written))),
            ("digits", f"{program.digits} of {program.window} bits"),
            ("slots of a thread", str(program.slots)),
            ("shared slots", str(program.shared_slots)),
            ("conditional subtractions", str(legal.subtract_count)),
            ("reductions inserted", f"{inserted} ({', '.join(sorted(set(legal.reductions)))})" if inserted else "0"),
        ]


def assemble(field_program: FieldProgram, contract: Contract, unit: DatapathSpec) -> Assembled:
    """Instructions for a field program. They have passed `check_hazards` and `program_bounds`, which share no code with
    the scheduler and the allocation of slots.

    Raises UnsupportedError if the program was written for another domain, numbers could overflow, the unit cannot do an
    operation, or it has too few slots.
    """
    if field_program.domain.p != contract.p or (field_program.domain.factor - contract.factor) % contract.p:
        raise UnsupportedError(f"{field_program.name} was written for another domain than the multiplier's")
    one = field_program.domain.one
    blocks = tuple(block.pruned() for block in field_program.blocks)
    if unit.added:
        blocks = tuple(fused(block, one, contract.p).pruned() for block in blocks)
    blocks = tuple(ready_to_place(block, field_program.groups, unit, one) for block in blocks)
    legal = legalise(field_program.with_blocks(blocks), contract, unit)
    field_program = legal.field_program
    loop = len(field_program.before) if field_program.loop else -1
    parts = join(field_program.blocks, loop, field_program.groups, unit)
    slots = _Slots(field_program, parts)
    instructions = [_instructions(part, slots, legal, k) for k, part in enumerate(parts)]
    bounds = zip(field_program.answers, legal.results, strict=True)
    results = tuple((slots.named[name], ceil(bound) - 1) for name, bound in bounds)
    count = len(field_program.results)
    program = Program(
        name=field_program.name,
        inputs=tuple((slots.named[name], name) for name in field_program.inputs),
        shared=tuple(slots.constants),
        before=tuple(chain.from_iterable(instructions[: len(field_program.before)])),
        loop=instructions[loop] if field_program.loop else (),
        after=instructions[-1],
        passes=field_program.passes if field_program.loop else 0,
        results=results[:count],
        window=field_program.window,
        checks=results[count:],
    )
    assert program.digits == field_program.digits
    if program.slots > unit.room or program.shared_slots > unit.shared_room:
        raise UnsupportedError(
            f"{field_program.name} needs {program.slots} slots for each thread and {program.shared_slots} shared ones; "
            f"the unit has {unit.room} and {unit.shared_room}"
        )
    check_hazards(program, unit)
    program_bounds(program, contract)
    return Assembled(program, legal, tuple(parts), unit, slots.named, slots.tables)


class _Slots:
    """Allocation of slots.

    ``named``: slot of each variable and table entry. ``tables``: address of each table. ``shared``: slot of each single
    constant. ``constants``: (shared slot, value) of all constants. ``own``: for each block the slot of each operation's
    result.
    """

    def __init__(self, field_program: FieldProgram, parts: list[Placed]) -> None:
        self._field_program = field_program
        self.named: dict[Name, int] = {}
        self.tables: dict[str, OperandAddress] = {}
        self.shared: dict[int, int] = {}
        self.constants: list[tuple[int, int]] = []
        end = self._variables(self._groups())
        self._constants(parts)
        self.own: list[dict[int, int]] = []
        live = self._live(parts)
        for number, part in enumerate(parts):
            dead = {slot: _ALWAYS for name, slot in self.named.items() if name not in live[number]}
            self.own.append(self._allocate(part, self._unwritten(number, parts) | dead, end))

    def _groups(self) -> int:
        """Allocate tables and pairs; return the first free slot."""
        end = 0
        for name, entries in sorted(self._field_program.groups.tables, key=lambda table: -table[1]):
            size = 1 << (entries - 1).bit_length()
            end = -(-end // size) * size
            self.tables[name] = OperandAddress(end, ENTRY, size=size)
            self.named.update({(name, k): end + k for k in range(entries)})
            end += entries
        for a, b in self._field_program.groups.pairs:
            end += end % 2
            self.named |= {a: end, b: end + 1}
            end += 2
        return end

    def _variables(self, end: int) -> int:
        """Allocate inputs and other variables from slot ``end`` on; return the first free slot."""
        outputs = (name for block in self._field_program.blocks for name in block.outputs)
        for name in (*self._field_program.inputs, *outputs):
            if isinstance(name, str) and name not in self.named:
                self.named[name] = end
                end += 1
        return end

    def _constants(self, parts: list[Placed]) -> None:
        """Allocate the shared slots."""
        end = 0
        for name, table in sorted(self._field_program.shared.items(), key=lambda item: -len(item[1])):
            size = 1 << (len(table) - 1).bit_length()
            end = -(-end // size) * size
            self.tables[name] = OperandAddress(end, ENTRY, shared=True, size=size)
            self.constants += [(end + k, table[k] if k < len(table) else 0) for k in range(size)]
            end += size
        for part in parts:
            for node in part.block.nodes:
                if node.source and not node.source.name and node.source.value not in self.shared:
                    self.shared[node.source.value] = end
                    self.constants.append((end, node.source.value))
                    end += 1

    def _live(self, parts: list[Placed]) -> list[set[Name]]:
        """For each block the live variables and table entries, whose slots temporary values must not use."""
        live: list[set[Name]] = []
        after: set[Name] = set(self._field_program.answers)
        for part in reversed(parts):
            read = self._read(part)
            live.insert(0, after | read | set(part.block.outputs))
            loop = part.block is self._field_program.loop
            after = live[0] if loop else (after - set(part.block.outputs)) | read
        return live

    def _read(self, part: Placed) -> set[Name]:
        """Variables and table entries of the thread that a block reads."""
        groups = self._field_program.groups
        return {name for k in range(len(part.block.nodes)) for name in groups.touched(part.block, k)}

    def _unwritten(self, number: int, parts: list[Placed]) -> dict[int, int]:
        """Slots of outputs that hold no value before the block writes them, and the instruction of that write."""
        part = parts[number]
        taken = {*self._field_program.inputs, *(n for p in parts if p is not part for n in p.block.outputs)}
        taken |= self._read(part)
        outputs = part.block.outputs.items()
        return {self.named[name]: part.instructions[node] for name, node in outputs if name not in taken}

    def _allocate(self, part: Placed, free: dict[int, int], end: int) -> dict[int, int]:
        """Slot of each operation's result: outputs in their own slots, temporary values from operation to last read.

        ``free``: slots for temporary values, each with the instruction before which its last read must be. ``end``:
        first unused slot.
        """
        block = part.block
        fixed = {node: self.named[name] for name, node in block.outputs.items()}
        found: dict[int, int] = dict(fixed)
        waiting = sorted(
            (k for k, node in enumerate(block.nodes) if node.kind != READ and k not in fixed),
            key=lambda k: part.instructions[k],
        )
        until = dict(free)
        ready = set(free)
        busy: list[tuple[int, int, int]] = []  # (instruction of the last read, its only reader or -1, slot)
        for k in waiting:
            instruction = part.instructions[k]
            ready.update(slot for last, _, slot in busy if last < instruction)
            busy = [item for item in busy if item[0] >= instruction]
            readers = block.users[k]
            last = max(part.instructions[r] for r in readers)
            own = [item for item in busy if item[:2] == (instruction, k) and until[item[2]] > last]
            fitting = [slot for slot in ready if until[slot] > last]
            if own:  # an operation may overwrite a value of which it is the last and only reader
                busy.remove(own[0])
                slot = own[0][2]
            elif fitting:
                slot = min(fitting, key=lambda s: (until[s], s))
                ready.remove(slot)
            else:
                slot, end = end, end + 1
                until[slot] = _ALWAYS
            found[k] = slot
            ends = [r for r in readers if part.instructions[r] == last]
            busy.append((last, ends[0] if len(ends) == 1 else -1, slot))
        return found


def _instructions(part: Placed, slots: _Slots, legal: LegalProgram, number: int) -> tuple[Instruction, ...]:
    """The instructions of block ``number``."""
    block, own = part.block, slots.own[number]
    offset_multiples, conditional_subtracts = legal.offset_multiples[number], legal.conditional_subtracts[number]
    instructions = [Instruction(advance=instruction in part.advances) for instruction in range(part.length)]

    def address(k: int) -> OperandAddress:
        source = block.nodes[k].source
        if source is None:
            return OperandAddress(own[k])
        if not source.name:
            return OperandAddress(slots.shared[source.value], shared=True)
        if source.pick == ENTRY:
            return slots.tables[str(source.name)]
        if isinstance(source.name, tuple) and slots.tables[source.name[0]].shared:
            table, entry = source.name
            return OperandAddress(slots.tables[table].number + entry, shared=True)
        return OperandAddress(slots.named[source.name], source.pick)

    for k, node in enumerate(block.nodes):
        if node.kind == READ:
            continue
        at = part.instructions[k]
        operands: list[Any] = [address(argument) for argument in node.args]
        task = Task(
            node.kind, OperandAddress(own[k]), *operands,
            offset_multiple=offset_multiples.get(k, 0), conditional_subtract=conditional_subtracts.get(k, 0),
            bit=node.bit,
        )  # fmt: skip
        if node.kind == MUL:
            instructions[at] = replace(instructions[at], product=task)
        else:
            instructions[at] = replace(instructions[at], sums=(*instructions[at].sums, task))
    return tuple(instructions)
