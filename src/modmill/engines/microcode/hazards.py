# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Check a program for hazards: replay its instructions with the unit's distances, tracking only when slots are written.

A task of instruction t reads in instruction t; its result can be read from instruction t + distance on, and the slot is
undefined until then. A slot must not be read or written during a pending write, nor read by one task and written by
another task of the same instruction. An operand that a digit selects counts as all slots that it may be. A loop is run
until its passes repeat each other.
"""

from __future__ import annotations

from collections.abc import Iterator

from modmill.contract import UnsupportedError
from modmill.engines.microcode.program import ENTRY, PAIR, DatapathSpec, Instruction, Program, Task

KINDS = ("mul", "add", "sub")


class Hazard(UnsupportedError):
    """The unit cannot execute an instruction, or a result would depend on the unit's timing."""


def check_hazards(program: Program, unit: DatapathSpec) -> None:
    """Raise Hazard, with the instruction and the slot, for the first fault of a program on a unit."""
    _Replay(program, unit).run()


def _times(program: Program, unit: DatapathSpec) -> Iterator[tuple[str, Instruction]]:
    """Instructions in order, with their description: two passes more than those in which a write can be pending."""
    far = max(unit.product_distance, unit.sum_distance)
    passes = min(program.passes, 2 + -(-far // max(1, len(program.loop))))
    for k, instruction in enumerate(program.before):
        yield f"before instruction {k}", instruction
    for number in range(passes):
        for k, instruction in enumerate(program.loop):
            yield f"loop instruction {k} of pass {number}", instruction
    for k, instruction in enumerate(program.after):
        yield f"after instruction {k}", instruction


class _Replay:
    """State of a run: for each slot (shared, number) the first instruction that can read it."""

    def __init__(self, program: Program, unit: DatapathSpec) -> None:
        self._program, self._unit = program, unit
        self._readable: dict[tuple[bool, int], int] = {(False, slot): 0 for slot, _ in program.inputs}
        self._readable |= {(True, slot): 0 for slot, _ in program.shared}
        self._constants = {slot for slot, _ in program.shared}
        if len(self._constants) != len(program.shared):
            raise Hazard(f"{program.name}: a shared slot holds two constants")
        if bool(program.passes) != bool(program.loop):
            raise Hazard(f"{program.name}: {program.passes} passes of a loop of {len(program.loop)} instructions")

    def run(self) -> None:
        time = 0
        for where, instruction in _times(self._program, self._unit):
            self._shape(instruction, f"{self._program.name}, {where}")
            self._instruction(instruction, time, f"{self._program.name}, {where}")
            time += 1
        digits = [sum(instruction.advance for instruction in part) for part in self._parts]
        if digits != [self._program.first, self._program.each, self._program.last]:
            raise Hazard(
                f"{self._program.name}: instructions use {digits} digits before, in a pass and after the loop, not "
                f"{[self._program.first, self._program.each, self._program.last]}"
            )
        for slot, _ in self._program.results:
            if self._readable.get((False, slot), time + 1) > time:
                raise Hazard(f"{self._program.name}: the result in slot {slot} is not there at the end")

    @property
    def _parts(self) -> tuple[tuple[Instruction, ...], ...]:
        p = self._program
        return p.before, p.loop, p.after

    def _shape(self, instruction: Instruction, where: str) -> None:
        unit = self._unit
        if len(instruction.sums) > unit.sums:
            raise Hazard(f"{where}: {len(instruction.sums)} sums, the unit does {unit.sums}")
        if instruction.product is not None and instruction.product.kind != "mul":
            raise Hazard(f"{where}: a product of kind {instruction.product.kind}")
        for task in instruction.tasks:
            self._task(task, where)
        if any(task.kind == "mul" for task in instruction.sums):
            raise Hazard(f"{where}: a second product")

    def _task(self, task: Task, where: str) -> None:
        unit = self._unit
        if task.kind not in KINDS or (task.c is None) != (task.e is None):
            raise Hazard(f"{where}: no such task: {task}")
        if task.c is not None and not (unit.added and task.kind == "mul"):
            raise Hazard(f"{where}: the unit does not add two products")
        if task.conditional_subtract and not unit.conditional_subtracts:
            raise Hazard(f"{where}: the unit does not subtract multiples of p from sums")
        subtract, offset = task.conditional_subtract, task.offset_multiple
        if min(subtract, offset) < 0 or (task.kind == "mul" and subtract + offset):
            raise Hazard(f"{where}: conditional subtract {subtract} and offset multiple {offset} of a {task.kind}")
        if task.destination.shared or task.destination.pick == ENTRY:
            raise Hazard(f"{where}: writes a shared slot or a whole table")
        for address in (task.destination, *task.reads):
            room, size = unit.shared_room if address.shared else unit.room, address.size
            if address.pick == ENTRY and (size < 1 or size & (size - 1) or address.number % size):
                raise Hazard(f"{where}: a table of {size} entries begins at slot {address.number}")
            if address.pick == PAIR and address.shared:
                raise Hazard(f"{where}: a pair of shared slots")
            if address.pick == ENTRY and size > 1 << self._program.window:
                raise Hazard(f"{where}: a table of {size} entries, digits have {self._program.window} bits")
            if not address.all or not 0 <= max(number for _, number in address.all) < room:
                raise Hazard(f"{where}: slot {address.number} of {room}")

    def _instruction(self, instruction: Instruction, time: int, where: str) -> None:
        writes: dict[tuple[bool, int], Task] = {}
        for task in instruction.tasks:
            for slot in task.destination.all:
                if slot in writes:
                    raise Hazard(f"{where}: slot {slot[1]} is written twice")
                writes[slot] = task
        for task in instruction.tasks:
            for slot in {slot for address in task.reads for slot in address.all}:
                name = f"{'shared ' if slot[0] else ''}slot {slot[1]}"
                if slot not in self._readable:
                    raise Hazard(f"{where}: {name} is read before it is written")
                if self._readable[slot] > time:
                    raise Hazard(f"{where}: {name} is read {self._readable[slot] - time} instructions too early")
                if writes.get(slot, task) is not task:
                    raise Hazard(f"{where}: {name} is read and written by two tasks")
        for slot, task in writes.items():
            if self._readable.get(slot, 0) > time:
                raise Hazard(f"{where}: slot {slot[1]} is written while a write is pending")
            distance = self._unit.product_distance if task.kind == "mul" else self._unit.sum_distance
            self._readable[slot] = time + distance
