# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A part of a program, executed on normal forms: each value stands for slot * factor, so products are plain.

A product of the multiplier is a b f modulo p; (a b f) f = (a f) (b f). Multiples of p that differences add and sums
subtract are 0 modulo p. That a slot holds what the last task wrote in it, and that no number overflows, are the proofs
of `microcode.hazards` and `microcode.bounds`.
"""

from __future__ import annotations

from collections.abc import Iterable

from modmill.engines.microcode.bounds import Slot
from modmill.engines.microcode.program import FIXED, Instruction, OperandAddress, Program
from modmill.engines.theorem.normal_forms import Form, Forms


def inputs(program: Program, forms: Forms, factor: int) -> dict[Slot, Form]:
    """The slots before a run: constants, and the inputs as atoms with their names."""
    held: dict[Slot, Form] = {(True, slot): forms.constant(value * factor) for slot, value in program.shared}
    return held | {(False, slot): forms.atom(name) * factor for slot, name in program.inputs}


def execute(instructions: Iterable[Instruction], held: dict[Slot, Form], forms: Forms) -> int:
    """Execute instructions on ``held``, in place; returns the number of digits that they use.

    Raises ValueError if a slot is read before it is written, or a digit selects a destination."""
    digit = 0

    def read(address: OperandAddress) -> Form:
        if missing := [n for its, n in address.all if (its, n) not in held]:
            raise ValueError(f"slot {missing[0]} is read before it is written")
        if address.pick == FIXED:
            return held[address.all[0]]
        return forms.selected(digit, [held[slot] for slot in address.all])

    for instruction in instructions:
        made = []
        for task in instruction.tasks:
            a = [read(address) for address in task.reads]
            match task.kind:
                case "mul":
                    value = sum((a[k] * a[k + 1] for k in range(2, len(a), 2)), start=a[0] * a[1])
                case "add":
                    value = a[0] + a[1]
                case "select":
                    value = forms.chosen(digit, task.bit, a[0], a[1])
                case _:
                    value = a[0] - a[1]
            if task.destination.pick != FIXED:
                raise ValueError(f"a digit selects the destination {task.destination.number}")
            made.append((task.destination.all[0], value))
        held.update(made)
        digit += instruction.advance
    return digit
