# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Run programs on exact bounds: exclusive upper bounds in multiples of p, valid for all digits and all passes.

A loop is run until no bound grows; the bounds then hold in every pass. If a digit selects an operand, the largest bound
counts. `legalise` runs a field program before it is scheduled. It finds the multiple of p that each difference adds.
Where a number would be too large, it adds a conditional subtraction to a sum if the unit has one, or else inserts a
product by the domain's 1. `program_bounds` runs finished instructions, without knowledge of field programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil
from typing import Any

from modmill.contract import Contract, UnsupportedError
from modmill.engines.microcode.expressions import MUL, SELECT, SUB, Name, Node
from modmill.engines.microcode.field_program import FieldProgram
from modmill.engines.microcode.program import PARTS, DatapathSpec, Program

_ROUNDING = 1 << 40
"""Bounds of products are rounded up to multiples of 1 / this."""
_ATTEMPTS = 100
"""Maximum number of changes to a field program until it is legal."""

Slot = tuple[bool, int]
"""(shared, number)."""


def sum_bound(p: int, a: Fraction, b: Fraction) -> Fraction:
    """Bound of a sum of numbers below a p and b p: (a + b) p, less 1 if a p or b p is an integer."""
    return a + b - (Fraction(1, p) if (a * p).denominator == 1 or (b * p).denominator == 1 else 0)


def subtracted_bound(bound: Fraction, multiple: int) -> Fraction:
    """Bound of x - multiple p if x >= multiple p, else of x, for x below bound p; a multiple of 0 leaves x as it is."""
    return min(bound, max(Fraction(multiple), bound - multiple)) if multiple else bound


def _shown(operand: Slot | Name) -> str:
    if isinstance(operand, str):
        return operand
    kind, number = operand
    return f"{kind}[{number}]" if isinstance(kind, str) else f"{'shared ' * kind}slot {number}"


class _Bounds:
    """Run operations on bounds. ``held``: bound of each slot or variable, in multiples of p."""

    def __init__(self, contract: Contract, held: dict[Any, Fraction]) -> None:
        self.contract, self.held = contract, held
        self.room = Fraction(contract.operand.end, contract.p)  # bound of the numbers that a slot can hold

    def read(self, operands: Sequence[Slot | Name], where: str) -> Fraction:
        """The largest bound of these slots or variables. Raises UnsupportedError if one is not written yet."""
        for operand in operands:
            if operand not in self.held:
                raise UnsupportedError(f"{where}: {_shown(operand)} is read before it is written")
        return max(self.held[operand] for operand in operands)

    def before_subtract(self, kind: str, a: Sequence[Fraction], offset_multiple: int) -> Fraction:
        """Bound of a sum, or of a difference plus ``offset_multiple`` p, before a conditional subtraction."""
        return a[0] + offset_multiple if kind == SUB else sum_bound(self.contract.p, a[0], a[1])

    def result(self, kind: str, a: Sequence[Fraction], offset_multiple: int, conditional_subtract: int) -> Fraction:
        """Bound of the result for operands with the bounds ``a``: two, or four for a sum of two products.

        A product's bound is rounded up to a multiple of 2^-40, which keeps the fractions short over thousands of
        products. Raises UnsupportedError, with the bounds, for a product outside the contract, a difference that could
        be negative and a sum that does not fit a slot.
        """
        if kind == SELECT:
            return max(a)
        if kind == MUL:
            factors = a if len(a) == 2 else (a[0] * a[1] + a[2] * a[3], Fraction(1))
            bound = self.contract.product(*factors)
            return min(self.contract.result_bound, Fraction(ceil(bound * _ROUNDING), _ROUNDING))
        if kind == SUB and a[1] > offset_multiple:
            raise UnsupportedError(f"{offset_multiple} p is added, but what is subtracted is below {float(a[1]):.6g} p")
        bound = subtracted_bound(self.before_subtract(kind, a, offset_multiple), conditional_subtract)
        if bound > self.room:
            raise UnsupportedError(
                f"a sum below {float(bound):.6g} p, a slot holds numbers below {float(self.room):.6g} p"
            )
        return bound

    def loop(self, passes: int, run: Callable[[], None]) -> bool:
        """Run a loop for all its passes or until no bound grows; return whether it stopped for that reason."""
        for _ in range(passes):
            old = dict(self.held)
            run()
            self.held.update({operand: max(bound, self.held[operand]) for operand, bound in old.items()})
            if self.held == old:
                return True
        return False


@dataclass(frozen=True)
class LegalProgram:
    """A field program in which no number overflows.

    ``offset_multiples``: for each block and difference the multiple of p that it adds. ``conditional_subtracts``: for
    each block and node with a conditional subtraction the multiple of p. ``reductions``: for each inserted product by 1
    the name of its block. ``results``: bounds of the results and checks, in multiples of p.
    """

    field_program: FieldProgram
    offset_multiples: tuple[Mapping[int, int], ...]
    conditional_subtracts: tuple[Mapping[int, int], ...]
    reductions: tuple[str, ...]
    results: tuple[Fraction, ...]

    @property
    def subtract_count(self) -> int:
        """Number of sums and differences with a conditional subtraction."""
        return sum(map(len, self.conditional_subtracts))


class _TooLarge(Exception):
    """The value of a node must be reduced before it is used. Arguments: number of the block, node, reason."""


def legalise(field_program: FieldProgram, contract: Contract, unit: DatapathSpec) -> LegalProgram:
    """Make a field program legal: choose offset multiples, conditional subtractions and reductions by its bounds.
    Raises UnsupportedError, with the operation and the bounds, if a number stays too large."""
    inserted: list[str] = []
    conditional_subtracts: list[dict[int, int]] = [{} for _ in field_program.blocks]
    for _ in range(_ATTEMPTS):
        run = _Run(field_program, contract, unit, conditional_subtracts)
        try:
            results = run.all()
        except _TooLarge as large:
            number, k, why = large.args
            blocks = list(field_program.blocks)
            block, node = blocks[number], blocks[number].nodes[k]
            if unit.conditional_subtracts or node.kind == MUL or (node.source and not node.source.name):
                raise UnsupportedError(f"{field_program.name}, block {block.name}: {why}") from None
            blocks[number] = block.reduced(k, field_program.domain.one)
            field_program = field_program.with_blocks(blocks)
            inserted.append(block.name)
            conditional_subtracts = [{} for _ in field_program.blocks]
            continue
        if run.conditional_subtracts == conditional_subtracts:
            return LegalProgram(
                field_program, tuple(run.offset_multiples), tuple(conditional_subtracts), tuple(inserted), results
            )
        # found late in a loop, they also hold in its first pass: run again for the offset multiples
        conditional_subtracts = run.conditional_subtracts
    raise UnsupportedError(f"{field_program.name}: numbers stay too large after {len(inserted)} reductions")


class _Run(_Bounds):
    """One run of a field program on bounds."""

    def __init__(
        self,
        field_program: FieldProgram,
        contract: Contract,
        unit: DatapathSpec,
        conditional_subtracts: list[dict[int, int]],
    ) -> None:
        super().__init__(contract, dict.fromkeys(field_program.inputs, Fraction(1)))
        self._field_program, self._unit = field_program, unit
        self.offset_multiples: list[dict[int, int]] = [{} for _ in field_program.blocks]
        self.conditional_subtracts = [dict(t) for t in conditional_subtracts]

    def all(self) -> tuple[Fraction, ...]:
        field_program = self._field_program
        for number, block in enumerate(field_program.blocks):
            steady = block is field_program.loop and self.loop(field_program.passes, partial(self._block, number))
            if not steady:  # a loop that ran all its passes: once more, for the offset multiples of its last bounds
                self._block(number)
        return tuple(self.held[name] for name in field_program.answers)

    def _block(self, number: int) -> None:
        block = self._field_program.blocks[number]
        bounds: list[Fraction] = []
        for k, node in enumerate(block.nodes):
            bounds.append(self._bound(number, k, node, bounds))
        self.held.update({name: bounds[k] for name, k in block.outputs.items()})

    def _bound(self, number: int, k: int, node: Node, bounds: list[Fraction]) -> Fraction:
        if node.source is not None:
            return self._source(number, k)
        a = [bounds[i] for i in node.args]
        offset_multiple = conditional_subtract = 0
        if node.kind not in (MUL, SELECT):
            offset_multiple = max(ceil(a[1]), self.offset_multiples[number].get(k, 0)) if node.kind == SUB else 0
            self.offset_multiples[number][k] = offset_multiple
            before = self.before_subtract(node.kind, a, offset_multiple)
            conditional_subtract = self._conditional_subtract(number, k, before)
        try:
            return self.result(node.kind, a, offset_multiple, conditional_subtract)
        except UnsupportedError as refusal:
            raise _TooLarge(number, max(node.args, key=lambda i: bounds[i]), str(refusal)) from None

    def _conditional_subtract(self, number: int, k: int, bound: Fraction) -> int:
        """Multiple of p to subtract from a sum below ``bound`` p, 0 for none; it never shrinks from pass to pass."""
        multiple = self.conditional_subtracts[number].get(k, 0)
        limit = min(self.room, self.contract.operand_bound)
        if self._unit.conditional_subtracts and subtracted_bound(bound, multiple) > limit:
            half = max(1, int(bound // 2)), ceil(bound / 2)
            multiple = max(min(half, key=lambda t: subtracted_bound(bound, t)), multiple)
            self.conditional_subtracts[number][k] = multiple
        return multiple

    def _source(self, number: int, k: int) -> Fraction:
        field_program, block = self._field_program, self._field_program.blocks[number]
        source = block.nodes[k].source
        assert source is not None
        if not source.name:
            return Fraction(source.value + 1, self.contract.p)
        if (source.name if isinstance(source.name, str) else source.name[0]) in field_program.shared:
            return Fraction(1)
        return self.read(field_program.groups.touched(block, k), f"{field_program.name}, block {block.name}")


@dataclass(frozen=True)
class Limits:
    """Bounds in multiples of p: of each task's result, by part (0 before, 1 loop, 2 after), instruction and task, and
    of the program's results and checks."""

    tasks: Mapping[tuple[int, int, int], Fraction]
    results: tuple[Fraction, ...]


def program_bounds(program: Program, contract: Contract) -> Limits:
    """Run the instructions of a program on bounds, one after the other.

    Raises UnsupportedError, with the instruction, if operands or a sum could overflow, a difference could be negative,
    a slot is read before it is written, a constant is not in [0, p), or a result needs more final subtractions.
    """
    name, found = program.name, dict[tuple[int, int, int], Fraction]()
    bounds = _Bounds(contract, {(False, slot): Fraction(1) for slot, _ in program.inputs})
    for slot, value in program.shared:
        if not 0 <= value < contract.p:
            raise UnsupportedError(f"{name}: the constant in shared slot {slot} is not in [0, p)")
        bounds.held[True, slot] = Fraction(value + 1, contract.p)

    def run(part: int) -> None:
        for number, instruction in enumerate(program.parts[part]):
            where = f"{name}, {PARTS[part]} instruction {number}"
            made = []
            for task in instruction.tasks:
                operands = [bounds.read(address.all, where) for address in task.reads]
                try:
                    made.append(bounds.result(task.kind, operands, task.offset_multiple, task.conditional_subtract))
                except UnsupportedError as refusal:
                    raise UnsupportedError(f"{where}: {refusal}") from None
            for k, (task, bound) in enumerate(zip(instruction.tasks, made, strict=True)):
                found[part, number, k] = max(bound, found.get((part, number, k), bound))
                slots = task.destination.all
                for slot in slots:
                    bounds.held[slot] = bound if len(slots) == 1 else max(bound, bounds.held.get(slot, bound))

    run(0)
    bounds.loop(program.passes, lambda: run(1))
    run(2)
    results = []
    for slot, subtractions in (*program.results, *program.checks):
        results.append(bound := bounds.read([(False, slot)], f"{name}, results"))
        if bound > subtractions + 1:
            raise UnsupportedError(
                f"{name}: the result in slot {slot} is below {float(bound):.6g} p; {subtractions} final subtractions "
                "cannot bring it below p"
            )
    return Limits(found, tuple(results))
