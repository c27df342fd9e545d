# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The bit-exact model: the operations of one product, executed on integers in the order of the algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from modmill.designs.cox_rower.constants import Tables
from modmill.designs.cox_rower.operations import Kind, Operation, Value
from modmill.designs.cox_rower.schedule import Program, fold_entries
from modmill.designs.cox_rower.shape import Shape
from modmill.numbers.folding import fold, reduce
from modmill.numbers.rns.cox import Cox


@dataclass(frozen=True)
class Model:
    """Model of the machine of ``shape`` with the constants ``tables``; ``cox``: the cox of the second extension.

    ``program``: gives the order in which the ring brings its values; without it they come in the order of the rows.
    ``exchanged``: as in `Constants`.
    """

    shape: Shape
    tables: Tables
    cox: Cox
    program: Program | None = None
    exchanged: Sequence[bool] = ()

    def run(self, inputs: Mapping[Value, Sequence[int]]) -> Iterator[tuple[Operation, str, int, list[int]]]:
        """Yield what each operation leaves in registers: (operation, unit, number of its step on that unit, values).

        Units and numbers are those of `schedule.label`. There is a value for each rower; of ROW_SUM for each row, of
        LOAD for each place of the ring, of COX and SHARE one. TAKE, GIVE and START are not listed. ``inputs``: the
        words that TAKE reads, a number below 2^w for each rower.
        """
        held: dict[Value, list[int]] = {value: list(words) for value, words in inputs.items()}
        for op in self.shape.operations:
            if op.kind in (Kind.TAKE, Kind.GIVE):
                continue
            words = [held[value] for value in op.reads]
            if op.kind is Kind.START:
                first = words[0] if words else self._own(op, self.tables.of(op))
                held[op.result] = [x + y for x, y in zip(held.get(op.result, [0] * len(first)), first, strict=True)]
                continue
            steps = {"fold": 0, "multiplier": 0}
            for unit, made in self._steps(op, words):
                number = steps[unit] = steps.get(unit, 0) + 1
                yield op, unit, number, made
                if op.kind not in (Kind.TERM, Kind.TERMS):
                    held[op.result] = made
                elif unit == "multiplier":
                    held[op.result] = [x + y for x, y in zip(held.get(op.result, [0] * len(made)), made, strict=True)]

    def _own(self, op: Operation, table: Sequence[int]) -> list[int]:
        """The constants of all rowers for an operation, from a table with one for each channel."""
        return [table[self.shape.channel(i, op.k)] for i in self.shape.all_rowers]

    def _steps(self, op: Operation, words: list[list[int]]) -> Iterator[tuple[str, list[int]]]:
        """Yield (unit, values) of an operation with the operands ``words``."""
        shape, rowers = self.shape, self.shape.rowers
        match op.kind:
            case Kind.MULTIPLY | Kind.TERM:
                x = words[0] * (len(shape.all_rowers) // len(words[0]))  # h is the same for all rowers
                made = _products(x, self._own(op, self.tables.of(op)) if op.table else words[1])
                yield "multiplier", made
            case Kind.MULTIPLY_TWO:
                made = [x + y for x, y in zip(_products(*words[:2]), _products(*words[2:]), strict=True)]
            case Kind.ROW_SUM:
                cofactors = self._own(op, self.tables.cofactors(op))
                yield "multiplier", _products(words[0], [x >> (shape.parts - 1) * shape.w for x in cofactors])
                terms = _products(words[0], cofactors)
                yield "hat", [sum(terms[k : k + shape.columns]) for k in range(0, rowers, shape.columns)]
            case Kind.LOAD:
                yield "ring", [word for row in words for word in row[:rowers]]
            case Kind.TERMS:
                yield from self._turns(op, words[0])
            case Kind.REDUCE:
                made = words[0]
                yield "sum", made
            case Kind.COX:
                yield "cox", [self.cox.h(words[0], shape.offset)]
            case Kind.SHARE:
                yield "cox", [words[0][-1]]
        if op.kind in (Kind.MULTIPLY, Kind.MULTIPLY_TWO, Kind.REDUCE):
            for folded in self.folded(op, made):
                yield "fold", folded

    def _turns(self, op: Operation, ring: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
        """Yield, for each step of the ring, the values modulo each rower's modulus (HBE), and the products."""
        shape, rows = self.shape, self.tables.rows(op)
        unordered = [[step] * shape.rows for step in range(shape.steps)]
        of_rower = [shape.row_of(i) for i in shape.all_rowers]
        channels = [shape.channel(i, op.k) for i in shape.all_rowers]
        for passing in self.program.passing(op) if self.program else unordered:
            places = [passing[row] for row in of_rower]
            words = [ring[place] for place in places]
            if not shape.loop:
                (words,) = self.folded(op, words)
                yield "fold", words
            yield "multiplier", _products(words, [rows[place][k] for place, k in zip(places, channels, strict=True)])

    def folded(self, op: Operation, values: Sequence[int]) -> list[list[int]]:
        """The values of all rowers after each pass of the fold: at last congruent modulo the rowers' a_i or b_i (as
        ``op`` says) and below 2^w.

        The values must be below `folded_bound`; those of TERMS below ``shape.fold_bound``.
        """
        shape, made = self.shape, []
        places = shape.channels_per_rower
        channels = (shape.channel(i, op.k) for i in shape.all_rowers)
        second = [op.over_b ^ any(self.exchanged[k : k + 1]) for k in channels]
        us = [shape.u_of(i)[s * places + op.k] for i, s in zip(shape.all_rowers, second, strict=True)]
        if not shape.loop:
            return [[reduce(x, shape.fold_bound, shape.w, u) for x, u in zip(values, us, strict=True)]]
        for _ in fold_entries(shape, op):
            values = [fold(x, shape.w, u) for x, u in zip(values, us, strict=True)]
            made.append(values)
        return made


def _products(x: Sequence[int], y: Sequence[int]) -> list[int]:
    return [a * b for a, b in zip(x, y, strict=True)]
