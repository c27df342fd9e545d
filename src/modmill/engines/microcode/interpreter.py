# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Interpret programs with the unit's timing: a slot holds its old value until the distance of the write has passed.

Products are computed by a design's bit-exact algorithm, by integers modulo p, or as the largest numbers that the bounds
allow, which is a second test of the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil

from modmill.contract import Contract, Fault, UnsupportedError
from modmill.design import DesignInstance
from modmill.engines.microcode.bounds import Slot, program_bounds
from modmill.engines.microcode.program import ENTRY, DatapathSpec, OperandAddress, Program, Task

Where = tuple[int, int, int]
"""Part, instruction and task, as in `Limits`."""
Product = Callable[[Where, Sequence[int]], int]
"""Function that returns the result of a product task for its two operands, or four for a sum of two products."""


def plain(contract: Contract) -> Product:
    """Products as integers modulo p, in [0, p)."""

    def product(_where: Where, x: Sequence[int]) -> int:
        return sum(x[k] * x[k + 1] for k in range(0, len(x), 2)) * contract.factor % contract.p

    return product


def exact(fitted: DesignInstance, contract: Contract) -> Product:
    """Products by the design's own algorithm; in [0, p) unless the form is native. The function raises UnsupportedError
    for a sum of two products if the design has none."""
    form = fitted.representation
    combine: Callable[..., int] | None = getattr(fitted, "combine", None)

    def product(_where: Where, x: Sequence[int]) -> int:
        if len(x) == 2:
            result = fitted.multiply(x[0], x[1])
        elif combine is None:
            raise UnsupportedError("this design does not add two products")
        else:
            result = form.decode(combine(*(form.encode(v) for v in x)))
        return result % contract.p if contract.io != "native" else result

    return product


def largest(program: Program, contract: Contract) -> Product:
    """Products as the largest number of the right residue below the bound of `program_bounds`. Raises UnsupportedError
    as `program_bounds` does."""
    tops = {where: ceil(bound * contract.p) - 1 for where, bound in program_bounds(program, contract).tasks.items()}

    def product(where: Where, x: Sequence[int]) -> int:
        total = sum(x[k] * x[k + 1] for k in range(0, len(x), 2)) * contract.factor
        return tops[where] - (tops[where] - total) % contract.p

    return product


def run(
    program: Program,
    unit: DatapathSpec,
    contract: Contract,
    inputs: Mapping[str, int],
    digits: Sequence[int],
    product: Product | None = None,
    seen: Callable[[Where, int], None] | None = None,
) -> tuple[int, ...]:
    """Run a program for one thread; return its results in [0, p), all 0 if a check is not 1. Arguments and errors as of
    `answers`."""
    checks, results = answers(program, unit, contract, inputs, digits, product, seen)
    return results if program.right(checks, inputs) else (0,) * len(results)


def answers(
    program: Program,
    unit: DatapathSpec,
    contract: Contract,
    inputs: Mapping[str, int],
    digits: Sequence[int],
    product: Product | None = None,
    seen: Callable[[Where, int], None] | None = None,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Run a program for one thread; return its checks and its results, in [0, p).

    ``product``: computes products, integers modulo p by default. ``seen``: called with each task's result. Raises
    UnsupportedError for a wrong number of digits, a digit out of range and an input outside [0, p), Fault if a slot is
    read before it is written, or a number or a result breaks its bounds.
    """
    p = contract.p
    if len(digits) != program.digits:
        raise UnsupportedError(f"{program.name} uses {program.digits} digits, not {len(digits)}")
    if any(not 0 <= digit < 1 << program.window for digit in digits):
        raise UnsupportedError(f"{program.name}: digits have {program.window} bits")
    multiply = product or plain(contract)
    held: dict[Slot, int] = {(True, slot): value for slot, value in program.shared}
    for slot, name in program.inputs:
        if not 0 <= inputs[name] < p:
            raise UnsupportedError(f"{name} must be below the modulus of {p.bit_length()} bits")
        held[False, slot] = inputs[name]
    end = contract.operand.end
    coming: dict[int, list[tuple[Slot, int]]] = {}
    following = iter((*digits, 0))
    digit = next(following)
    for time, (part, number, instruction) in enumerate(program.executed()):
        held.update(coming.pop(time, ()))
        for k, task in enumerate(instruction.tasks):
            where = part, number, k
            try:
                values = [held[_slot(address, digit, program)] for address in task.reads]
            except KeyError as missing:
                raise Fault(f"{program.name}: slot {missing.args[0][1]} is read before it is written") from None
            result = multiply(where, values) if task.kind == "mul" else _sum(task, values, digit, p)
            if result < 0 or result >= end:
                raise Fault(f"{program.name}, part {part}, instruction {number}: a number breaks its bounds")
            if seen:
                seen(where, result)
            distance = unit.product_distance if task.kind == "mul" else unit.sum_distance
            coming.setdefault(time + distance, []).append((task.destination.at(digit), result))
        if instruction.advance:
            digit = next(following)
    for at in sorted(t for t in coming if t <= program.instructions):
        held.update(coming[at])
    checks, results = (
        tuple(_least(held[False, slot], times, p) for slot, times in which)
        for which in (program.checks, program.results)
    )
    return checks, results


def _slot(address: OperandAddress, digit: int, program: Program) -> Slot:
    if address.pick == ENTRY and digit >= address.size:
        raise UnsupportedError(f"{program.name}: digit {digit} selects from a table of {address.size} entries")
    return address.at(digit)


def _sum(task: Task, values: Sequence[int], digit: int, p: int) -> int:
    if task.kind == "select":
        return values[0] if digit >> task.bit & 1 else values[1]
    result = values[0] + values[1] if task.kind == "add" else values[0] - values[1] + task.offset_multiple * p
    return result - task.conditional_subtract * p if result >= task.conditional_subtract * p else result


def _least(number: int, subtractions: int, p: int) -> int:
    if number // p > subtractions:
        raise Fault(f"a result needs {number // p} subtractions, not {subtractions}")
    return number % p
