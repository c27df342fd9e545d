# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The constants of a cox-rower machine, and where they lie in the rowers' block RAMs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from modmill.designs.cox_rower.schedule import CONSTANTS, Programme


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


@dataclass(frozen=True)
class Constants:
    """What the block RAM of every rower holds before the words of products: see `address`, then both extensions."""

    p: Programme
    tables: Tables

    def address(self, name: str, k: int) -> int:
        """Address of a constant of the rower's k-th channel of that base."""
        return CONSTANTS.index(name) * self.p.shape.share + k

    @cached_property
    def modulus_addresses(self) -> list[int]:
        """Addresses of those that depend on the modulus."""
        shape = self.p.shape
        extension = range(shape.fixed, shape.fixed + shape.share * shape.steps)
        return [*range(self.address("xi", 0), self.address("xi", shape.share)), *extension]

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
        """Contents of rower i's block RAM: constants, the ring's in the order in which it brings them."""
        p, t = self.p, self.tables
        shape = p.shape
        row = i // shape.columns
        own = range(i, shape.n, shape.rowers)

        def passed(k: int, rows: Sequence[Sequence[int]]) -> Iterator[int]:
            """The row's coefficients in all runs of ring k: the row itself, its values in the order of its places."""
            for j, channel in enumerate(own):
                for step in range(p.n):
                    back, place = divmod(p.turned(k, j) + step, shape.share)
                    yield rows[place * shape.rows + (row - back) % shape.rows][channel]

        mask = (1 << shape.w) - 1
        shifts = range((shape.parts - 1) * shape.w, -1, -shape.w)
        fixed = [table[channel] for table in (t.xi, t.wt, t.h) for channel in own]
        fixed += [
            partner[channel] >> k & mask for partner in (t.partner_a, t.partner_b) for channel in own for k in shifts
        ]
        return [*fixed, *passed(1, t.first), *passed(2, t.second)]
