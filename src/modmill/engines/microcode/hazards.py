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
from modmill.engines.microcode.program import ENTRY, PAIR, PARTS, DatapathSpec, Instruction, Program, Task

KINDS = ("mul", "add", "sub", "select")


class Hazard(UnsupportedError):
    """The unit cannot execute an instruction, or a result would depend on the unit's timing."""


def check_hazards(program: Program, unit: DatapathSpec) -> None:
    """Raise Hazard, with the instruction and the slot, for the first fault of a program on a unit."""
    if len(dict(program.shared)) != len(program.shared):
        raise Hazard(f"{program.name}: a shared slot holds two constants")
    if bool(program.passes) != bool(program.loop):
        raise Hazard(f"{program.name}: {program.passes} passes of a loop of {len(program.loop)} instructions")
    check_tasks(program, unit)
    readable = {(False, slot): 0 for slot, _ in program.inputs} | {(True, slot): 0 for slot, _ in program.shared}
    steps = list(_steps(program, unit))
    for time, (where, instruction) in enumerate(steps):
        _replay(instruction, time, readable, unit, f"{program.name}, {where}")
    for slot, _ in program.answers:
        if readable.get((False, slot), len(steps) + 1) > len(steps):
            raise Hazard(f"{program.name}: the result in slot {slot} is not there at the end")


def check_tasks(program: Program, unit: DatapathSpec) -> None:
    """Raise Hazard for the first instruction that the unit cannot execute at any time."""
    for part, instructions in zip(PARTS, program.parts, strict=True):
        for k, instruction in enumerate(instructions):
            where = f"{program.name}, {part} instruction {k}"
            if len(instruction.sums) > unit.sums:
                raise Hazard(f"{where}: {len(instruction.sums)} sums, the unit does {unit.sums}")
            if instruction.product is not None and instruction.product.kind != "mul":
                raise Hazard(f"{where}: a product of kind {instruction.product.kind}")
            if any(task.kind == "mul" for task in instruction.sums):
                raise Hazard(f"{where}: a second product")
            for task in instruction.tasks:
                _check_task(task, 1 << program.window, unit, where)


def _steps(program: Program, unit: DatapathSpec) -> Iterator[tuple[str, Instruction]]:
    """Instructions in order, with their description: two passes more than those in which a write can be pending."""
    far = max(unit.product_distance, unit.sum_distance)
    passes = min(program.passes, 2 + -(-far // max(1, len(program.loop))))
    for part, instructions, times in zip(PARTS, program.parts, (1, passes, 1), strict=True):
        for number in range(times):
            for k, instruction in enumerate(instructions):
                yield f"{part} instruction {k}{f' of pass {number}' if part == 'loop' else ''}", instruction


def _check_task(task: Task, digits: int, unit: DatapathSpec, where: str) -> None:
    if task.kind not in KINDS or (task.c is None) != (task.e is None):
        raise Hazard(f"{where}: no such task: {task}")
    if task.c is not None and not (unit.added and task.kind == "mul"):
        raise Hazard(f"{where}: the unit does not add two products")
    if task.kind == "select" and (unit.added or not 0 <= task.bit < (digits - 1).bit_length()):
        raise Hazard(f"{where}: a selection by bit {task.bit}")
    if task.kind in ("add", "sub") and not unit.adders:
        raise Hazard(f"{where}: the unit has no adders")
    if task.conditional_subtract and not unit.conditional_subtracts:
        raise Hazard(f"{where}: the unit does not subtract multiples of p from sums")
    subtract, offset = task.conditional_subtract, task.offset_multiple
    if min(subtract, offset) < 0 or (task.kind in ("mul", "select") and subtract + offset):
        raise Hazard(f"{where}: conditional subtract {subtract} and offset multiple {offset} of a {task.kind}")
    if task.destination.shared or task.destination.pick == ENTRY:
        raise Hazard(f"{where}: writes a shared slot or a whole table")
    for address in (task.destination, *task.reads):
        room, size = unit.shared_room if address.shared else unit.room, address.size
        if address.pick == ENTRY and (size < 1 or size & (size - 1) or address.number % size):
            raise Hazard(f"{where}: a table of {size} entries begins at slot {address.number}")
        if address.pick == PAIR and address.shared:
            raise Hazard(f"{where}: a pair of shared slots")
        if address.pick == ENTRY and size > digits:
            raise Hazard(f"{where}: a table of {size} entries, digits have {digits.bit_length() - 1} bits")
        if not address.all or not 0 <= max(number for _, number in address.all) < room:
            raise Hazard(f"{where}: slot {address.number} of {room}")


def _replay(
    instruction: Instruction, time: int, readable: dict[tuple[bool, int], int], unit: DatapathSpec, where: str
) -> None:
    """Execute instruction number ``time``. ``readable``: for each slot the first instruction that can read it."""
    writes: dict[tuple[bool, int], Task] = {}
    for task in instruction.tasks:
        for slot in task.destination.all:
            if slot in writes:
                raise Hazard(f"{where}: slot {slot[1]} is written twice")
            writes[slot] = task
    for task in instruction.tasks:
        for slot in {slot for address in task.reads for slot in address.all}:
            name = f"{'shared ' if slot[0] else ''}slot {slot[1]}"
            if slot not in readable:
                raise Hazard(f"{where}: {name} is read before it is written")
            if readable[slot] > time:
                raise Hazard(f"{where}: {name} is read {readable[slot] - time} instructions too early")
            if writes.get(slot, task) is not task:
                raise Hazard(f"{where}: {name} is read and written by two tasks")
    for slot, task in writes.items():
        if readable.get(slot, 0) > time:
            raise Hazard(f"{where}: slot {slot[1]} is written while a write is pending")
        distance = unit.product_distance if task.kind == "mul" else unit.sum_distance
        readable[slot] = time + distance
