# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The chart of a cox-rower program: the steps of one product on the machine's units, cycle 0 the accepted operands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from modmill.designs.cox_rower.operations import Kind, Operation, Value
from modmill.designs.cox_rower.schedule import Program, start_of
from modmill.designs.cox_rower.shape import PRODUCT
from modmill.schedule import Schedule, Step


def chart(p: Program) -> Schedule:
    """The steps of one product, in the order of the operations and with the names of their results."""
    return Schedule(tuple(_Chart(p).steps()), p.interval)


class _Chart:
    """The steps of each operation of a program."""

    def __init__(self, p: Program) -> None:
        self.p, self.shape = p, p.shape
        self._reduced: dict[Value, str] = {}
        """For each value, the name of the step whose result it is."""

    def steps(self) -> Iterator[Step]:
        """Yield the steps of all operations, then the output."""
        for op in self.shape.operations:
            yield from self._of(op)
        results = [self._reduced[op.reads[0]] for op in self.shape.of(Kind.GIVE) if op.result.letter == "w"]
        yield self._step("out", "output", max(self.p.outputs), 3, results)

    def _step(self, name: str, unit: str, start: int, cycles: int, reads: Iterable[str] = (), busy: int = 1) -> Step:
        return Step(name, unit, start - self.p.accept, cycles, tuple(reads), busy)

    def _of(self, op: Operation) -> Iterator[Step]:
        p, shape, name = self.p, self.shape, self.shape.shown(op.result)
        reads = [self._reduced[value] for value in op.reads if value in self._reduced]
        match op.kind:
            case Kind.MULTIPLY | Kind.MULTIPLY_TWO:
                pair = int(op.kind is Kind.MULTIPLY_TWO)
                yield self._step(name, "multiplier", p.start(op), PRODUCT + pair, reads, 1 + pair)
                yield from self._folds(op, f"{name} mod", [name])
            case Kind.ROW_SUM:
                hat = shape.named(f"hat {op.result.letter}", op.k)
                yield self._step(hat, "multiplier", p.start(op), shape.hat_cycles - 1, reads, shape.parts)
                self._reduced[op.result] = hat
            case Kind.LOAD:
                yield from self._load(op, reads)
            case Kind.TERMS:
                letter, source = ("q", "e")[op.extension - 1], ("X", "Z")[op.extension - 1]
                for i in range(p.n):
                    if not shape.loop:
                        folded = f"{shape.named(source, op.k)}{i + 1} mod"
                        yield self._step(folded, "fold", p.start(op) + 1 + i, shape.fold_latency)
                    yield self._step(f"{shape.named(letter, op.k)}{i + 1}", "multiplier", p.first(op) + i, PRODUCT)
            case Kind.TERM:
                yield self._step(start_of(shape, op), "multiplier", p.start(op), PRODUCT, reads)
            case Kind.REDUCE:
                yield from self._reduce(op, name)
            case Kind.COX:
                begin = p.load(op.extension) + 2
                yield self._step(name, "cox", begin, p.start(op) - begin, ("Z",))
                self._reduced[op.result] = name
            case _:
                pass

    def _folds(self, op: Operation, label: str, reads: Sequence[str]) -> Iterator[Step]:
        shape, entries = self.shape, self.p.entries(op)
        cycles = shape.loop_pass if shape.loop else shape.fold_latency
        for n, entry in enumerate(entries, 1):
            name = f"{label}/{n}" if len(entries) > 1 else label
            yield self._step(name, "fold", entry, cycles, reads)
            reads = [name]
        self._reduced[op.result] = reads[0]

    def _load(self, op: Operation, reads: Sequence[str]) -> Iterator[Step]:
        p, shape, letter, load = self.p, self.shape, ("X", "Z")[op.extension - 1], self.p.start(op)
        if not shape.loop:
            first = next(hat for hat in shape.of(Kind.ROW_SUM) if hat.result == op.reads[0])
            made = p.start(first) + shape.hat_cycles
            waits = max(1, load + len(reads) - 1 - made)
            yield self._step(f"{letter} held", "hat", made, waits, reads[:1], waits)
        last = [run for run in shape.of(Kind.TERMS) if run.extension == op.extension][-1]
        yield self._step(letter, "ring", load + 1, 1, reads[-1:], p.start(last) - load + p.n)

    def _reduce(self, op: Operation, name: str) -> Iterator[Step]:
        p, shape = self.p, self.shape
        run = next(other for other in shape.of(Kind.TERMS) if other.result == op.reads[0])
        term = next(other for other in shape.of(Kind.TERM) if other.result == op.reads[0])
        total, summand = shape.named(f"sum {op.result.letter}", op.k), start_of(shape, term)
        terms = [f"{shape.named(('q', 'e')[op.extension - 1], op.k)}{i + 1}" for i in range(p.n)]
        first, catch = (p.start(term) if term.opens else p.first(run)) + PRODUCT, p.start(op)
        yield self._step(total, "sum", first, catch - first + 1, (summand,) if term.opens else (), catch - first + 1)
        yield from self._folds(op, name, (total, *terms, *(() if term.opens else (summand,))))
