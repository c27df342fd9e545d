# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The bit-exact model: the operations of one product, executed on integers in the order of the algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from modmill.designs.cox_rower.constants import Tables
from modmill.designs.cox_rower.operations import RINGS, Kind, Operation, Value
from modmill.designs.cox_rower.shape import Shape
from modmill.numbers.folding import reduce
from modmill.numbers.rns.cox import Cox


@dataclass(frozen=True)
class Model:
    """Model of the machine of ``shape`` with the constants ``tables``; ``cox``: the cox of the second extension."""

    shape: Shape
    tables: Tables
    cox: Cox

    def run(self, inputs: Mapping[Value, Sequence[int]]) -> Iterator[tuple[Operation, list[int]]]:
        """Yield each operation that has a result of its own, and this result.

        A result is a list with one number for each rower; ROW_SUM gives one for each row, COX a single one. TAKE, LOAD,
        GIVE, TERM and TERMS are not listed. ``inputs``: the words that TAKE reads, one number below 2^w for each rower.
        """
        shape = self.shape
        held: dict[Value, list[int]] = {value: list(words) for value, words in inputs.items()}
        for op in shape.operations:
            match op.kind:
                case Kind.TAKE | Kind.GIVE:
                    continue
                case Kind.LOAD:
                    held[op.result] = [word for value in op.reads for word in held[value]]
                    continue
                case Kind.ROW_SUM:
                    made = self._row_sums(op, held[op.reads[0]])
                case Kind.COX:
                    made = [self.cox.h(held[op.reads[0]], shape.offset)]
                case _:
                    made = [self._of_rower(op, i, held) for i in range(shape.rowers)]
            held[op.result] = made
            if op.kind not in (Kind.TERM, Kind.TERMS):
                yield op, made

    def _row_sums(self, op: Operation, words: Sequence[int]) -> list[int]:
        shape, cofactors = self.shape, self.tables.cofactors(op)[op.k * self.shape.rowers :]
        terms = [word * cofactor for word, cofactor in zip(words, cofactors, strict=False)]
        return [sum(terms[k : k + shape.columns]) for k in range(0, shape.rowers, shape.columns)]

    def _of_rower(self, op: Operation, i: int, held: Mapping[Value, Sequence[int]]) -> int:
        """The result of the operation in rower i, from the values ``held``."""
        channel = op.k * self.shape.rowers + i
        words = [held[value][i if len(held[value]) > 1 else 0] for value in op.reads if value not in RINGS]
        match op.kind:
            case Kind.MULTIPLY:
                return self.reduced(op, i, words[0] * (self.tables.of(op)[channel] if op.table else words[1]))
            case Kind.MULTIPLY_TWO:
                return self.reduced(op, i, words[0] * words[1] + words[2] * words[3])
            case Kind.REDUCE:
                return self.reduced(op, i, words[0])
        total = held[op.result][i] if op.result in held else 0
        if op.kind is Kind.TERM:
            return total + words[0] * self.tables.of(op)[channel]
        rows = self.tables.rows(op)
        passed = held[op.reads[0]]
        if not self.shape.loop:
            passed = [self.reduced(op, i, word) for word in passed]
        return total + sum(word * row[channel] for word, row in zip(passed, rows, strict=True))

    def reduced(self, op: Operation, i: int, value: int) -> int:
        """``value`` after the fold of rower i: congruent modulo the rower's a_i or b_i (as ``op`` says), below 2^w.

        ``value`` must be below ``shape.fold_bound``.
        """
        shape = self.shape
        return reduce(value, shape.fold_bound, shape.w, shape.u[i][op.over_b * shape.channels_per_rower + op.k])
