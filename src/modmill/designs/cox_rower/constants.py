# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The constants of a cox-rower machine, and their addresses in the block RAMs of the rowers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from modmill.designs.cox_rower.operations import Kind, Operation
from modmill.designs.cox_rower.schedule import Program


@dataclass(frozen=True)
class Tables:
    """The constants of all channels, in the letters of `operations`.

    ``xi[i]`` = |-p^-1 T_i| mod a_i. ``wt[j]`` = |B_j A^-1| mod b_j. ``h[i]`` = |-B| mod a_i. ``partner_a``,
    ``partner_b``: the cofactors A_r / a_(r,j) and B_r / b_(r,j) of each channel. ``first[r][j]`` = |p A_r^-1 B_j^-1|
    mod b_j, the coefficient of X_r. ``second[r][i]`` = |B / B_r| mod a_i, the coefficient of Z_r. ``start[j]``: the
    constant with which START begins a sum over B. ``o[j]``: the factor from zeta_j to the result. A channel has the
    place `Shape.channel`.
    """

    xi: Sequence[int]
    wt: Sequence[int]
    h: Sequence[int]
    partner_a: Sequence[int]
    partner_b: Sequence[int]
    first: Sequence[Sequence[int]]
    second: Sequence[Sequence[int]]
    start: Sequence[int] = ()
    o: Sequence[int] = ()

    def of(self, op: Operation) -> Sequence[int]:
        """The constants of an operation with a ``table``: one for each channel."""
        return {"xi": self.xi, "w~": self.wt, "h": self.h, "start": self.start, "o": self.o}[op.table]

    def cofactors(self, op: Operation) -> Sequence[int]:
        """The cofactors of a ROW_SUM: A_r / a_(r,j) or B_r / b_(r,j) of each channel."""
        return self.partner_b if op.extension == 2 else self.partner_a

    def rows(self, op: Operation) -> Sequence[Sequence[int]]:
        """The coefficients of TERMS, indexed by row and channel."""
        return self.second if op.extension == 2 else self.first


@dataclass(frozen=True)
class Constants:
    """The constants in the block RAMs of the rowers, at the addresses of `Shape.address`, below the products' words.

    ``exchanged``: of a shape with loaded bases, whether the two moduli of each channel have changed places.
    """

    p: Program
    tables: Tables
    exchanged: Sequence[bool] = ()

    @cached_property
    def modulus_addresses(self) -> list[int]:
        """Addresses of the constants that depend on the modulus; with loaded bases of all, and before them one for the
        bits of the channels, which go to a register and are overwritten."""
        shape = self.p.shape
        if shape.either:
            return [0, *range(shape.constants)]
        xi = [shape.address(op) for op in shape.of(Kind.MULTIPLY) if op.table == "xi"]
        first = [op for op in shape.of(Kind.TERMS) if op.extension == 1]
        return [*xi, *(shape.address(op, step) for op in first for step in range(shape.steps))]

    def modulus_words(self) -> list[int]:
        """The constants that depend on the modulus, as words of stream k, in the order of `modulus_addresses`.

        A word has w bits for each rower, rower 0 in the least significant bits, that of a check in the most. With
        loaded bases the first word has a bit for each channel of a rower, set if its moduli have changed places.
        """
        shape, contents = self.p.shape, self.contents()
        rows = [[words[k] for words in contents] for k in self.modulus_addresses]
        if shape.either:
            rows[0] = [
                sum(self.exchanged[shape.channel(i, k)] << k for k in range(shape.channels_per_rower))
                for i in range(shape.rowers)
            ]
        return [sum(word << (shape.w * i) for i, word in enumerate(row)) for row in rows]

    def contents(self, *, blank: bool = False) -> list[list[int]]:
        """The constants of every rower, by address. ``blank``: 0 for those that depend on the modulus."""
        shape, found = self.p.shape, []
        for i in shape.all_rowers:
            words = [0] * shape.constants
            for op in shape.operations:
                for step, value in enumerate(self._coefficients(op, i)):
                    words[shape.address(op, step)] = value
            for address in self.modulus_addresses if blank else ():
                words[address] = 0
            found.append(words)
        return found

    def _coefficients(self, op: Operation, i: int) -> Iterator[int]:
        """The constants of rower i in each step of an operation; of TERMS in the order in which the ring brings X_r."""
        p, t, shape = self.p, self.tables, self.p.shape
        channel = shape.channel(i, op.k)
        if op.table:
            yield t.of(op)[channel]
        elif op.kind is Kind.ROW_SUM:
            for k in range((shape.parts - 1) * shape.w, -1, -shape.w):
                yield t.cofactors(op)[channel] >> k & (1 << shape.w) - 1
        elif op.kind is Kind.TERMS:
            for places in p.passing(op):  # the values of its own row first, then those of the rows before
                yield t.rows(op)[places[shape.row_of(i)]][channel]
