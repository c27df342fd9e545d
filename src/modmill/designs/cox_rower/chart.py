# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The chart of a cox-rower program: the steps of one product on the machine's units, cycle 0 the accepted operands.

Each step ends with a result in the register of its unit (`CoxRowerArray.registers`). TAKE has no step: it
writes the operands into the block RAMs before they are accepted. GIVE has one step for all words of the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from modmill.designs.cox_rower.operations import Kind, Operation, Value
from modmill.designs.cox_rower.schedule import Program, label
from modmill.designs.cox_rower.shape import PRODUCT
from modmill.schedule import Schedule, Step


def chart(p: Program) -> Schedule:
    """The steps of one product, in the order of the operations and with the names of their results."""
    return Schedule(tuple(_Chart(p).steps()), p.interval)


class _Chart:
    """The steps of each operation of a program; ``made``: for each value the name of the step whose result it is."""

    def __init__(self, p: Program) -> None:
        self.p, self.shape = p, p.shape
        self.made: dict[Value, str] = {}

    def steps(self) -> Iterator[Step]:
        """Yield the steps of all operations, then the output."""
        gives = self.shape.of(Kind.GIVE)
        for op in self.shape.operations:
            for step in self._of(op):
                self.made[op.result] = step.name
                yield step
        yield self._step(gives[-1], "output", max(self.p.outputs), 3, [self.made[op.result] for op in gives])

    def _step(
        self, op: Operation, unit: str, start: int, cycles: int, reads: Sequence[str] = (), busy: int = 1, *, n: int = 1
    ) -> Step:
        name = label(self.shape, op, unit, n)
        return Step(name, unit, start - self.p.accept, cycles, tuple(reads), busy, op)

    def _of(self, op: Operation) -> Iterator[Step]:
        p, shape = self.p, self.shape
        reads = [self.made[value] for value in op.reads if value in self.made]
        match op.kind:
            case Kind.MULTIPLY | Kind.TERM:
                yield (product := self._step(op, "multiplier", p.start(op), PRODUCT, reads))
                yield from self._folds(op, [product.name]) if op.kind is Kind.MULTIPLY else ()
            case Kind.ROW_SUM:
                yield from self._row_sum(op, reads)
            case Kind.LOAD:
                last = [run for run in shape.of(Kind.TERMS) if run.extension == op.extension][-1]
                turns = p.start(last) - p.start(op) + shape.steps
                yield self._step(op, "ring", p.start(op), shape.channels_per_rower, reads, turns)
            case Kind.TERMS:
                for i in range(shape.steps):
                    if not shape.loop:
                        yield self._step(op, "fold", p.start(op) + 1 + i, shape.fold_latency, n=i + 1)
                    yield self._step(op, "multiplier", p.first(op) + i, PRODUCT, n=i + 1)
            case Kind.REDUCE:
                yield from self._reduce(op)
            case Kind.COX:
                begin = p.load(op.extension) + shape.channels_per_rower
                yield self._step(op, "cox", begin, shape.cox_cycles - shape.channels_per_rower, reads)
            case Kind.SHARE:
                residue = p.residue(shape.maker(Kind.REDUCE, op.reads[0]))
                yield self._step(op, "cox", residue, 1, reads)

    def _folds(self, op: Operation, reads: Sequence[str]) -> Iterator[Step]:
        cycles = self.shape.loop_pass if self.shape.loop else self.shape.fold_latency
        for number, entry in enumerate(self.p.entries(op), 1):
            yield (step := self._step(op, "fold", entry, cycles, reads, n=number))
            reads = [step.name]

    def _row_sum(self, op: Operation, reads: Sequence[str]) -> Iterator[Step]:
        """The products, and their sum in the row's register until the next number arrives or the ring is loaded."""
        p, shape = self.p, self.shape
        own = [other for other in shape.of(Kind.ROW_SUM) if other.extension == op.extension]
        begin, *others = (p.start(other) + shape.hat_changes - 1 for other in own[op.k :])
        end = min([p.load(op.extension) + shape.channels_per_rower - 1, *others])
        yield (terms := self._step(op, "multiplier", p.start(op), PRODUCT, reads, shape.parts))
        cycles = p.start(op) + shape.hat_cycles - begin
        yield self._step(op, "hat", begin, cycles, [terms.name], end - begin)

    def _reduce(self, op: Operation) -> Iterator[Step]:
        """The sum until it is copied before the fold, and its folds."""
        p, shape = self.p, self.shape
        products: list[tuple[int, str]] = []
        for term in shape.terms(op.reads[0]):
            ring = term.kind is Kind.TERMS
            begin = (p.first(term) if ring else p.start(term)) + PRODUCT
            steps = range(shape.steps if ring else 1)
            products += [(begin + k, label(shape, term, "multiplier", k + 1)) for k in steps]
        (first, name), (last, _) = products[0], products[-1]
        reads = [name] if shape.terms(op.reads[0])[0].kind is Kind.TERM else []
        yield (whole := self._step(op, "sum", first, last + 1 - first, reads, p.start(op) + 1 - first))
        yield from self._folds(op, [whole.name, *(name for _, name in products)])
