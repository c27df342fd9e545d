# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The constants of a cox-rower machine, and where they lie in the rowers' block RAMs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from modmill.designs.cox_rower.operations import TABLES, Kind, Operation
from modmill.designs.cox_rower.schedule import Program


@dataclass(frozen=True)
class Tables:
    """Constants of every channel i: |-p^-1 A_i^-1|, |B_i A^-1|, |-B|, the row's cofactors, and the extensions' rows.

    ``first[r][j]``: coefficient of X_r in channel b_j; ``second[r][i]``: of Z_r in channel a_i.
    """

    xi: Sequence[int]
    wt: Sequence[int]
    h: Sequence[int]
    partner_a: Sequence[int]
    partner_b: Sequence[int]
    first: Sequence[Sequence[int]]
    second: Sequence[Sequence[int]]

    def of(self, op: Operation) -> Sequence[int]:
        """The constants by which an operation multiplies: one for each channel."""
        return dict(zip(TABLES, (self.xi, self.wt, self.h), strict=True))[op.table]

    def cofactors(self, op: Operation) -> Sequence[int]:
        """A_r / a_(r,j) or B_r / b_(r,j) of each channel, as ROW_SUM needs them."""
        return self.partner_b if op.extension == 2 else self.partner_a

    def rows(self, op: Operation) -> Sequence[Sequence[int]]:
        """The coefficients of each row in each channel, as TERMS needs them."""
        return self.second if op.extension == 2 else self.first


@dataclass(frozen=True)
class Constants:
    """What the block RAM of every rower holds before the words of products, where `Shape.address` says."""

    p: Program
    tables: Tables

    @cached_property
    def modulus_addresses(self) -> list[int]:
        """Addresses of those that depend on the modulus."""
        shape = self.p.shape
        xi = [shape.address(op) for op in shape.of(Kind.MULTIPLY) if op.table == "xi"]
        first = [op for op in shape.of(Kind.TERMS) if op.extension == 1]
        return [*xi, *(shape.address(op, step) for op in first for step in range(shape.steps))]

    def modulus_words(self) -> list[int]:
        """Those that depend on the modulus, for all rowers at a time, rower 0 in the least significant bits."""
        w, contents = self.p.shape.w, self.contents()
        return [
            sum(words[address] << (w * i) for i, words in enumerate(contents)) for address in self.modulus_addresses
        ]

    def contents(self, *, blank: bool = False) -> list[list[int]]:
        """Of every rower's block RAM; ``blank``: without those that depend on the modulus."""
        found = [self._memory(i) for i in range(self.p.shape.rowers)]
        for words in found if blank else ():
            for address in self.modulus_addresses:
                words[address] = 0
        return found

    def _memory(self, i: int) -> list[int]:
        """Contents of rower i's block RAM."""
        words = [0] * self.p.shape.constants
        for op in self.p.shape.operations:
            for step, value in enumerate(self._coefficients(op, i)):
                words[self.p.shape.address(op, step)] = value
        return words

    def _coefficients(self, op: Operation, i: int) -> Iterator[int]:
        """What rower i multiplies by in each step of an operation, the ring's in the order in which it brings them."""
        p, t, shape = self.p, self.tables, self.p.shape
        channel = op.k * shape.rowers + i
        if op.table:
            yield t.of(op)[channel]
        elif op.kind is Kind.ROW_SUM:
            for k in range((shape.parts - 1) * shape.w, -1, -shape.w):
                yield t.cofactors(op)[channel] >> k & (1 << shape.w) - 1
        elif op.kind is Kind.TERMS:
            row, rows = i // shape.columns, t.rows(op)
            for step in range(p.n):  # the row itself, then those behind it; each with its values one after another
                back, place = divmod(p.turned(op) + step, shape.channels_per_rower)
                yield rows[place * shape.rows + (row - back) % shape.rows][channel]
