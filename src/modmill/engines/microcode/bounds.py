# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Programs on bounds: exact multiples of p, exclusive, for all digits and all passes at once.

A loop runs on bounds until none grows any more; what holds then holds in every pass. Where a digit picks, the largest
bound counts. `legalise` runs a field program before it has instructions: it finds the multiple of p that each
difference adds, and where a number would be too large it conditional subtracts a sum, on units that can, or inserts a
product by the domain's 1. `program_bounds` runs finished instructions, of points and of powers, and knows nothing of
field programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from modmill.contract import Contract, UnsupportedError
from modmill.engines.microcode.expressions import MUL, SUB, Name, Node
from modmill.engines.microcode.field_program import FieldProgram
from modmill.engines.microcode.program import ENTRY, PAIR, DatapathSpec, Instruction, Program

_ROUNDING = 1 << 40
_REDUCTIONS = 100

Slot = tuple[bool, int]
"""(shared, number)."""


def sum_bound(p: int, a: Fraction, b: Fraction) -> Fraction:
    """Bound of a sum: where one of the two is at most a whole number, one less than both bounds together."""
    return a + b - (Fraction(1, p) if (a * p).denominator == 1 or (b * p).denominator == 1 else 0)


def trimmed(bound: Fraction, conditional_subtract: int) -> Fraction:
    """Bound of a number below bound p from which conditional subtract p is subtracted unless it is below that; 0:
    never."""
    return (
        min(bound, max(Fraction(conditional_subtract), bound - conditional_subtract)) if conditional_subtract else bound
    )


def _shown(place: Slot | Name) -> str:
    if isinstance(place, str):
        return place
    kind, number = place
    return f"{kind}[{number}]" if isinstance(kind, str) else f"{'shared ' * kind}slot {number}"


class _Bounds:
    """Runs operations on bounds. ``held``: what slots or variables hold is below this multiple of p."""

    def __init__(self, contract: Contract, held: dict[Any, Fraction]) -> None:
        self.contract, self.held = contract, held
        self.room = Fraction(contract.operand.end, contract.p)  # numbers below it can be told apart in a slot

    def read(self, places: Sequence[Slot | Name], where: str) -> Fraction:
        """The largest bound of these slots or variables. Raises UnsupportedError for one that nothing has written."""
        for place in places:
            if place not in self.held:
                raise UnsupportedError(f"{where}: {_shown(place)} is read before it is written")
        return max(self.held[place] for place in places)

    def untrimmed(self, kind: str, a: Sequence[Fraction], offset_multiple: int) -> Fraction:
        """Bound of a sum, or of a difference that adds ``offset_multiple`` p."""
        return a[0] + offset_multiple if kind == SUB else sum_bound(self.contract.p, a[0], a[1])

    def result(
        self, kind: str, a: Sequence[Fraction], offset_multiple: int = 0, conditional_subtract: int = 0
    ) -> Fraction:
        """Bound of the result of operands with the bounds ``a``: two, or four for two products that are added up. A
        product's bound is rounded up to a multiple of 2^-40, so that thousands of products keep it short.

        Raises UnsupportedError, with the bounds, for a product outside the contract, a difference that could be
        negative and a sum that a slot cannot hold.
        """
        if kind == MUL:
            factors = a if len(a) == 2 else (a[0] * a[1] + a[2] * a[3], Fraction(1))
            bound = self.contract.product(*factors)
            return min(self.contract.result_bound, Fraction(-(-bound * _ROUNDING // 1), _ROUNDING))
        if kind == SUB and a[1] > offset_multiple:
            raise UnsupportedError(f"{offset_multiple} p is added, but what is subtracted is below {float(a[1]):.6g} p")
        bound = trimmed(self.untrimmed(kind, a, offset_multiple), conditional_subtract)
        if bound > self.room:
            raise UnsupportedError(
                f"a sum below {float(bound):.6g} p, a slot holds numbers below {float(self.room):.6g} p"
            )
        return bound

    def loop(self, passes: int, run: Callable[[], None]) -> bool:
        """Run a loop for all its passes, or until no bound grows any more: True then."""
        for _ in range(passes):
            old = dict(self.held)
            run()
            self.held.update({place: max(bound, self.held[place]) for place, bound in old.items()})
            if self.held == old:
                return True
        return False


@dataclass(frozen=True)
class LegalProgram:
    """A field program whose numbers all fit, with the offset multiple and conditional subtract of each node of each
    block, and what was done for
    it.

    ``reductions``: products by 1 that were inserted, with the block's name. ``results``: bounds of the results.
    """

    field_program: FieldProgram
    offset_multiples: tuple[Mapping[int, int], ...]
    conditional_subtracts: tuple[Mapping[int, int], ...]
    reductions: tuple[str, ...]
    results: tuple[Fraction, ...]

    @property
    def conditional_subtracts_in_all(self) -> int:
        """Sums that are trimmed."""
        return sum(len(t) for t in self.conditional_subtracts)


class _TooLarge(Exception):
    """A node of a block whose number must become smaller first."""

    def __init__(self, block: int, node: int, why: str) -> None:
        super().__init__(why)
        self.block, self.node, self.why = block, node, why


def legalise(field_program: FieldProgram, contract: Contract, unit: DatapathSpec) -> LegalProgram:
    """Bounds of a whole field program. Raises UnsupportedError, with the operation and the bounds, where nothing
    helps."""
    inserted: list[str] = []
    conditional_subtracts: list[dict[int, int]] = [{} for _ in field_program.blocks]
    for _ in range(_REDUCTIONS):
        run = _Run(field_program, contract, unit, conditional_subtracts)
        try:
            results = run.all()
        except _TooLarge as large:
            block = field_program.blocks[large.block]
            node = block.nodes[large.node]
            if unit.conditional_subtracts or node.kind == MUL or (node.source and not node.source.name):
                raise UnsupportedError(f"{field_program.name}, block {block.name}: {large.why}") from None
            made = block.reduced([large.node], field_program.domain.one)
            field_program = field_program.with_blocks(
                tuple(made if k == large.block else s for k, s in enumerate(field_program.blocks))
            )
            inserted.append(block.name)
            conditional_subtracts = [{} for _ in field_program.blocks]
            continue
        if (
            run.conditional_subtracts != conditional_subtracts
        ):  # a conditional subtract that was found late holds from the start: its offset multiples are other ones
            conditional_subtracts = run.conditional_subtracts
            continue
        return LegalProgram(
            field_program, tuple(run.offset_multiples), tuple(run.conditional_subtracts), tuple(inserted), results
        )
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
            if block is field_program.loop and self.loop(
                field_program.passes, lambda: self._block(len(field_program.before))
            ):
                continue
            self._block(number)  # of a loop that ended first: with the offset multiples of its largest bounds
        return tuple(self.held[name] for name in field_program.results)

    def _block(self, number: int) -> None:
        block = self._field_program.blocks[number]
        bounds: list[Fraction] = []
        for k, node in enumerate(block.nodes):
            bounds.append(self._bound(number, k, node, bounds))
        self.held.update({name: bounds[k] for name, k in block.outputs.items()})

    def _bound(self, number: int, k: int, node: Node, bounds: list[Fraction]) -> Fraction:
        if node.source is not None:
            return self._source(number, node)
        a = [bounds[i] for i in node.args]
        offset_multiple = conditional_subtract = 0
        if node.kind != MUL:
            offset_multiple = self.offset_multiples[number][k] = (
                max(-(-a[1] // 1), self.offset_multiples[number].get(k, 0)) if node.kind == SUB else 0
            )
            conditional_subtract = self._conditional_subtract(number, k, self.untrimmed(node.kind, a, offset_multiple))
        try:
            return self.result(node.kind, a, offset_multiple, conditional_subtract)
        except UnsupportedError as refusal:
            raise _TooLarge(number, max(node.args, key=lambda i: bounds[i]), str(refusal)) from None

    def _conditional_subtract(self, number: int, k: int, bound: Fraction) -> int:
        """The conditional subtract of a sum below ``bound`` p: one that was found stays or grows."""
        conditional_subtract = self.conditional_subtracts[number].get(k, 0)
        if self._unit.conditional_subtracts and trimmed(bound, conditional_subtract) > min(
            self.room, self.contract.operand_bound
        ):
            half = max(1, int(bound // 2)), int(-(-bound // 2))
            conditional_subtract = self.conditional_subtracts[number][k] = max(
                min(half, key=lambda t: trimmed(bound, t)), conditional_subtract
            )
        return conditional_subtract

    def _source(self, number: int, node: Node) -> Fraction:
        source, layers = node.source, self._field_program.layers
        assert source is not None
        if not source.name:
            return Fraction(source.value + 1, self.contract.p)
        if source.name in self._field_program.shared:
            return Fraction(1)
        names: list[Name] = [source.name]
        if source.pick == ENTRY:
            names = [(source.name, i) for i in range(dict(layers.tables)[source.name])]
        elif source.pick == PAIR:
            names.append(layers.partner[source.name])
        return self.read(names, f"{self._field_program.name}, block {self._field_program.blocks[number].name}")


@dataclass(frozen=True)
class Limits:
    """Bounds of the results of all tasks, by part (0 before, 1 loop, 2 after), instruction and task."""

    tasks: Mapping[tuple[int, int, int], Fraction]
    results: tuple[Fraction, ...]


def program_bounds(program: Program, contract: Contract) -> Limits:
    """A program of instructions on bounds, one instruction after the other. Raises UnsupportedError, with the
    instruction, when some operands
    could overflow, a difference could be negative, a slot is read before it is written, or results need more
    subtractions."""
    name, found = program.name, dict[tuple[int, int, int], Fraction]()
    bounds = _Bounds(contract, {(False, slot): Fraction(1) for slot, _ in program.inputs})
    for slot, value in program.shared:
        if not 0 <= value < contract.p:
            raise UnsupportedError(f"{name}: the constant in shared slot {slot} is not in [0, p)")
        bounds.held[True, slot] = Fraction(value + 1, contract.p)

    def run(part: int, instructions: Sequence[Instruction]) -> None:
        for number, instruction in enumerate(instructions):
            where = f"{name}, {('before', 'loop', 'after')[part]} instruction {number}"
            made = []
            for task in instruction.tasks:
                operands = [bounds.read(place.all, where) for place in task.reads]
                try:
                    made.append(bounds.result(task.kind, operands, task.offset_multiple, task.conditional_subtract))
                except UnsupportedError as refusal:
                    raise UnsupportedError(f"{where}: {refusal}") from None
            for k, (task, bound) in enumerate(zip(instruction.tasks, made, strict=True)):
                found[part, number, k] = max(bound, found.get((part, number, k), bound))
                slots = task.destination.all
                for slot in slots:
                    bounds.held[slot] = bound if len(slots) == 1 else max(bound, bounds.held.get(slot, bound))

    run(0, program.before)
    bounds.loop(program.passes, lambda: run(1, program.loop))
    run(2, program.after)
    results = []
    for slot, subtractions in program.results:
        results.append(bound := bounds.read([(False, slot)], f"{name}, results"))
        if bound > subtractions + 1:
            raise UnsupportedError(
                f"{name}: the result in slot {slot} is below {float(bound):.6g} p; {subtractions} final subtractions "
                "cannot bring it below p"
            )
    return Limits(found, tuple(results))


def instructions_of(program: Program) -> tuple[tuple[int, int, Instruction], ...]:
    """All instructions of one run, as (part, number in the part, instruction)."""
    before, loop, after = (
        [(part, k, instruction) for k, instruction in enumerate(instructions)]
        for part, instructions in enumerate((program.before, program.loop, program.after))
    )
    return (*before, *loop * program.passes, *after)
