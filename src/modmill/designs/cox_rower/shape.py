# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The structure of a cox-rower machine: what follows from the bases and the number of rowers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from modmill.designs.cox_rower.operations import TABLES, WORDS, H, Kind, Operation, Value, operations, require_order
from modmill.numbers.folding import fold_bound
from modmill.numbers.rns.residues import signed_digits
from modmill.rtl.product import DSP18, DspBlock

OPERAND = 3
"""Cycles from an address to the operand at the multiplier."""

PRODUCT = 7
"""Cycles from an address to the visible product."""

TREE = 2
"""Registers between the machine's control word and the rower's."""


@dataclass(frozen=True)
class Shape:
    """What the machine's structure depends on.

    ``w``: bits of a channel, ``columns``: rowers in a row, ``u``: for each rower u of the a that it serves, then u of
    the b, ``fraction``: t of the cox, ``offset``: its d. ``numbered``: operands and results are numbers that stay in
    the rowers, and a product is the sum of two, x y + v z.
    """

    w: int
    columns: int
    u: tuple[tuple[int, ...], ...]
    fraction: int
    offset: int
    numbered: bool = False
    block: DspBlock = DSP18

    @property
    def rowers(self) -> int:
        """Rowers."""
        return len(self.u)

    @property
    def channels_per_rower(self) -> int:
        """Channels of each base that a rower serves; its k-th is channel k * rowers + its own number."""
        return len(self.u[0]) // 2

    @property
    def tiles(self) -> int:
        """DSP blocks of a rower's multiplier."""
        return self.block.tiles(self.w, self.w)

    @property
    def n(self) -> int:
        """Channels of each base."""
        return self.rowers * self.channels_per_rower

    @property
    def rows(self) -> int:
        """Rows of rowers."""
        return self.rowers // self.columns

    @property
    def steps(self) -> int:
        """Steps of the ring until it has passed everything by every rower."""
        return self.n // self.columns

    def named(self, name: str, k: int) -> str:
        """``name`` for the k-th channels of the rowers, counted from 0; the name itself where each serves one."""
        return name if self.channels_per_rower == 1 else f"{name} {k + 1}"

    def shown(self, value: Value) -> str:
        """A value's name on charts and probes."""
        return value.letter if value.k is None else self.named(value.letter, value.k)

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """One product, in the order of the algorithm."""
        found = tuple(operations(self.channels_per_rower, rows=not self.loop, numbered=self.numbered))
        require_order(found)
        return found

    def of(self, *kinds: Kind) -> list[Operation]:
        """The operations of these kinds, in that order."""
        return [op for op in self.operations if op.kind in kinds]

    @cached_property
    def words(self) -> tuple[Value, ...]:
        """Words of a product's slot in each rower's memory, in the order of their addresses."""
        return (*(Value(letter, k) for letter in WORDS for k in range(self.channels_per_rower)), H)

    @property
    def slot(self) -> int:
        """Words set aside for a slot, a power of two."""
        return max(16, 1 << (len(self.words) - 1).bit_length())

    @property
    def hat_bits(self) -> int:
        """Bits of what travels in the ring."""
        return self.w if self.columns == 1 else self.columns * self.w + (self.columns - 1).bit_length()

    @property
    def top_bits(self) -> int:
        """Bits of the cox's summands."""
        return self.hat_bits - (self.columns * self.w - self.fraction)

    @property
    def cox_levels(self) -> int:
        """Levels of the cox's adder tree."""
        return max(1, (self.rows - 1).bit_length())

    @cached_property
    def h_max(self) -> int:
        """Largest h."""
        return (self.steps * ((1 << self.top_bits) - 1) + self.offset) >> self.fraction

    @cached_property
    def sum_bound(self) -> int:
        """Exclusive bound of the lazy sums of both extensions."""
        top = (1 << self.w) - 1
        return top * top * (self.steps + 1) + top * self.h_max + 1

    @cached_property
    def product_bound(self) -> int:
        """Exclusive bound of one product."""
        return ((1 << self.w) - 1) ** 2 + 1

    @cached_property
    def pair_bound(self) -> int:
        """Exclusive bound of a sum of two products."""
        return 2 * ((1 << self.w) - 1) ** 2 + 1

    @property
    def pair(self) -> bool:
        """Whether sums of two products wait for the fold in a register of their own. The pipelined fold is busy with
        one ring after the other, so that three values wait for the same gap between them."""
        return self.numbered and not self.loop

    @property
    def loop(self) -> bool:
        """Whether sums are folded in a loop (else in a pipeline)."""
        return self.columns == 1

    @cached_property
    def digits(self) -> int:
        """Signed digits of u that every fold is built for."""
        return max(len(signed_digits(u)) for own in self.u for u in own)

    @property
    def loop_pass(self) -> int:
        """Cycles of one pass of the loop: entry register, multiplexer register and adder tree."""
        return 2 + max(1, self.digits.bit_length())

    def passes(self, bound: int) -> int:
        """Passes that bring any value below ``bound`` below 2^w in every channel."""
        return len(self.bounds(bound))

    def bounds(self, bound: int) -> list[int]:
        """Exclusive bounds before each pass, worst channel."""
        out = []
        while bound > 1 << self.w:
            out.append(bound)
            smaller = max(fold_bound(bound, self.w, u) for own in self.u for u in own)
            if smaller >= bound:
                raise ValueError(f"folding makes no progress below {bound}")
            bound = smaller
        return out

    @cached_property
    def fold_bound(self) -> int:
        """Exclusive bound of all that enters the fold."""
        return max(self.sum_bound, self.product_bound, 1 << self.hat_bits)

    @cached_property
    def fold_latency(self) -> int:
        """Cycles of the pipelined fold: entry register, a multiplexer register in the first pass, and adder trees."""
        tree = max(1, self.digits.bit_length())
        return 1 + sum(1 if b <= 2 << self.w else tree + (k == 0) for k, b in enumerate(self.bounds(self.fold_bound)))

    @property
    def parts(self) -> int:
        """Words of a row's cofactor A_r / a_(r,j), and so multiplications for X_r."""
        return self.columns - 1

    @property
    def hat_cycles(self) -> int:
        """Cycles from the first of them to the whole X_r."""
        return PRODUCT + 1 if self.parts == 1 else PRODUCT + 1 + self.parts

    @property
    def cox_cycles(self) -> int:
        """Cycles from the ring's load to the visible h: places of the ring, tap, tree, sum over the share."""
        return self.channels_per_rower + 1 + self.cox_levels + self.channels_per_rower

    @property
    def depth(self) -> int:
        """Cycles from the first multiplication to the last fold of a product that never waits, about."""
        product, whole = (
            self.passes(bound) * self.loop_pass if self.loop else self.fold_latency
            for bound in (self.product_bound, self.sum_bound)
        )
        extension = OPERAND + self.channels_per_rower * (self.steps + 2) + PRODUCT + whole
        return 2 * (PRODUCT + product) + 2 * (extension + (0 if self.loop else self.hat_cycles))

    @property
    def fixed(self) -> int:
        """Constants before those of the two extensions."""
        return self.channels_per_rower * (len(TABLES) + 2 * self.parts)

    @property
    def constants(self) -> int:
        """All constants of a rower."""
        return self.fixed + 2 * self.channels_per_rower * self.steps

    def address(self, op: Operation, step: int = 0) -> int:
        """Where the constant of an operation lies, or the one for a step of it."""
        place = (op.extension - 1) * self.channels_per_rower + op.k
        if op.kind is Kind.TERMS:
            return self.fixed + place * self.steps + step
        if op.kind is Kind.ROW_SUM:
            return len(TABLES) * self.channels_per_rower + place * self.parts + step
        return TABLES.index(op.table) * self.channels_per_rower + op.k

    @property
    def least_interval(self) -> int:
        """Multiplications of one product in each rower."""
        each = {Kind.MULTIPLY: 1, Kind.MULTIPLY_TWO: 2, Kind.ROW_SUM: self.parts, Kind.TERMS: self.steps, Kind.TERM: 1}
        return sum(each.get(op.kind, 0) for op in self.operations)
