# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The structure of a cox-rower machine, derived from the bases and the number of rowers: widths, bounds, addresses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

from modmill.designs.cox_rower.operations import H, Kind, Method, Operation, Value, operations, require_order
from modmill.numbers.folding import fold_bound
from modmill.numbers.rns.residues import signed_digits
from modmill.rtl.product import DSP18, DspBlock

OPERAND = 3
"""Cycles from an address to the operand at the multiplier."""

PRODUCT = 7
"""Cycles from an address to the visible product."""

TREE = 2
"""Registers between the control word of the machine and that of a rower."""


@dataclass(frozen=True)
class Shape:
    """The parameters of the machine's structure.

    ``w``: bits of a channel. ``columns``: c, rowers in a row. ``u``: for each rower the u of its moduli a_i = 2^w - u,
    then of its b_i. ``fraction``: t of the cox; ``offset``: its d, in units of 2^-t. ``numbered``: a slot machine: its
    numbers stay in the rowers, and an operation computes x y + v z. ``block``: DSP block of the multipliers. With a
    redundant modulus, which the last rower serves in place of both of its moduli, h is at most ``offset``.
    ``checked``: one rower more, outside of the ring, computes every product modulo 2^w too (`kbe`). ``either``: a bit
    of each channel is loaded, with which its two moduli change places.
    """

    w: int
    columns: int
    u: tuple[tuple[int, ...], ...]
    fraction: int
    offset: int
    numbered: bool = False
    block: DspBlock = DSP18
    method: Method = Method.MONTGOMERY
    checked: bool = False
    either: bool = False

    @cached_property
    def rowers(self) -> int:
        """Number of rowers in the ring."""
        return len(self.u)

    @property
    def all_rowers(self) -> range:
        """The numbers of all rowers: those in the ring, then that of the check."""
        return range(self.rowers + self.checked)

    def u_of(self, i: int) -> tuple[int, ...]:
        """The u of the moduli of rower i."""
        return self.u[i] if i < self.rowers else (0,) * len(self.u[0])

    def row_of(self, i: int) -> int:
        """The row whose first register of the ring rower i reads."""
        return i // self.columns if i < self.rowers else 0

    def channel(self, i: int, k: int) -> int:
        """The place of the k-th channel of rower i in each of the `Tables`; the channels of the check are the last."""
        return k * self.rowers + i if i < self.rowers else self.n + k

    @property
    def channels_per_rower(self) -> int:
        """Channels of each base that a rower serves; the k-th of rower i is channel k * rowers + i."""
        return len(self.u[0]) // 2

    @property
    def tiles(self) -> int:
        """DSP blocks of a rower's multiplier."""
        return self.block.tiles(self.w, self.w)

    @property
    def n(self) -> int:
        """n: channels of each base."""
        return self.rowers * self.channels_per_rower

    @property
    def rows(self) -> int:
        """Number of rows of rowers."""
        return self.rowers // self.columns

    @property
    def steps(self) -> int:
        """Steps of the ring until every value has passed every rower."""
        return self.n // self.columns

    def named(self, name: str, k: int) -> str:
        """``name`` with the number k + 1, k being the channel within each rower; without it if a rower serves one."""
        return name if self.channels_per_rower == 1 else f"{name} {k + 1}"

    def shown(self, value: Value) -> str:
        """A value's name on charts and probes."""
        return value.letter if value.k is None else self.named(value.letter, value.k)

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """The operations of one product, in the order of the algorithm. Raises ScheduleError as `require_order`."""
        found = tuple(operations(
            self.channels_per_rower, rows=not self.loop, numbered=self.numbered, method=self.method
        ))  # fmt: skip
        require_order(found)
        return found

    def of(self, *kinds: Kind) -> list[Operation]:
        """The operations of these kinds, in the order of the algorithm."""
        return [op for op in self.operations if op.kind in kinds]

    def maker(self, kind: Kind, value: Value) -> Operation:
        """The operation of a kind that computes ``value``."""
        return next(op for op in self.of(kind) if op.result == value)

    def terms(self, total: Value) -> list[Operation]:
        """The operations that add to a sum, in the order of time: TERM before TERMS, unless TERMS opens the sum."""
        found = [op for op in self.of(Kind.TERM, Kind.TERMS) if op.result == total]
        return sorted(found, key=lambda op: (not op.opens, op.kind is Kind.TERMS))

    @cached_property
    def words(self) -> tuple[Value, ...]:
        """The words of a product's slot in each rower's memory, in the order of their addresses."""
        return (*(Value(letter, k) for letter in self.method.words for k in range(self.channels_per_rower)), H)

    @property
    def slot(self) -> int:
        """Size of a slot in words, a power of two."""
        return max(16, 1 << (len(self.words) - 1).bit_length())

    @property
    def hat_bits(self) -> int:
        """Bits of a value in the ring: w for KBE, c w + ceil(log2 c) for X_r."""
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
        """Largest h that the cox can return."""
        if self.redundant:
            return self.offset
        return (self.steps * ((1 << self.top_bits) - 1) + self.offset) >> self.fraction

    def products_bound(self, count: int) -> int:
        """Exclusive bound of a sum of ``count`` products."""
        return count * ((1 << self.w) - 1) ** 2 + 1

    @cached_property
    def sum_bound(self) -> int:
        """Exclusive bound of the lazy sums of both extensions."""
        started = bool(self.of(Kind.START))
        return self.products_bound(self.steps + 1) + ((1 << self.w) - 1) * (self.h_max + started)

    @property
    def pair(self) -> bool:
        """Whether the sum of two products has its own register in front of the fold. The pipelined fold is busy while a
        ring turns, so three values wait for the same gap between two rings."""
        return self.numbered and not self.loop

    @property
    def redundant(self) -> bool:
        """Whether the last rower serves a redundant modulus."""
        return self.method is Method.REDUNDANT

    def places(self, i: int) -> tuple[list[int], list[int]]:
        """The places of rower i's words in a number: over A, then over B. A redundant modulus has one word, the last
        over A, for all channels of its rower."""
        if i == self.rowers:
            return [self.n] * self.channels_per_rower, [self.n] * self.channels_per_rower
        over_a = range(i, self.n, self.rowers)
        if self.redundant and i == self.rowers - 1:
            return [*over_a], [*over_a]
        return [*over_a], [self.n + self.checked + k for k in over_a]

    @property
    def number_words(self) -> int:
        """Words of a number."""
        return 2 * self.n - self.redundant + self.checked

    @property
    def loop(self) -> bool:
        """Whether the fold is a loop (KBE), else a pipeline (HBE)."""
        return self.columns == 1

    @cached_property
    def digits(self) -> int:
        """Largest number of signed digits of any u; every fold is built for it."""
        return max(len(signed_digits(u)) for own in self.u for u in own)

    @property
    def loop_pass(self) -> int:
        """Cycles of one pass of the loop: entry register, multiplexer register and adder tree."""
        return 2 + max(1, self.digits.bit_length())

    def bounds(self, bound: int) -> tuple[int, ...]:
        """Exclusive bound before each pass of the fold from ``bound`` to 2^w, the largest of all channels.

        Raises ValueError if a pass does not lower the bound.
        """
        return _bounds(self.w, self.u, bound)

    @cached_property
    def fold_bound(self) -> int:
        """Exclusive bound of all values that enter the fold."""
        return max(self.sum_bound, 1 << self.hat_bits)

    @cached_property
    def fold_latency(self) -> int:
        """Cycles of the pipelined fold: entry register, multiplexer register of the first pass, and adder trees."""
        tree = max(1, self.digits.bit_length())
        return 1 + sum(1 if b <= 2 << self.w else tree + (k == 0) for k, b in enumerate(self.bounds(self.fold_bound)))

    @property
    def parts(self) -> int:
        """Words of a cofactor A_r / a_(r,j): the multiplications of every rower for X_r."""
        return self.columns - 1

    @property
    def hat_cycles(self) -> int:
        """Cycles from the first multiplication of X_r to the complete X_r in its register."""
        return PRODUCT + 1 if self.parts == 1 else PRODUCT + 1 + self.parts

    @property
    def hat_changes(self) -> int:
        """Cycles from the first multiplication of X_r to the first change of that register."""
        return min(self.hat_cycles, PRODUCT + 2)

    @property
    def cox_cycles(self) -> int:
        """Cycles from the load of the ring to the visible h: registers of the ring, tap, adder tree, and the sum over
        the channels of a rower."""
        return self.channels_per_rower + 1 + self.cox_levels + self.channels_per_rower

    @property
    def depth(self) -> int:
        """Approximate cycles from the first multiplication to the last fold of a product that never waits."""
        product, whole = (
            len(self.bounds(bound)) * self.loop_pass if self.loop else self.fold_latency
            for bound in (self.products_bound(1), self.sum_bound)
        )
        extension = OPERAND + self.channels_per_rower * (self.steps + 2) + PRODUCT + whole
        return 2 * (PRODUCT + product) + 2 * (extension + (0 if self.loop else self.hat_cycles))

    @property
    def fixed(self) -> int:
        """Words of the constants of MULTIPLY, START, TERM and ROW_SUM, which precede those of TERMS."""
        return self.channels_per_rower * (len(self.method.tables) + 2 * self.parts)

    @property
    def constants(self) -> int:
        """Number of constants in a rower's memory."""
        return self.fixed + 2 * self.channels_per_rower * self.steps

    def address(self, op: Operation, step: int = 0) -> int:
        """Address of the constant of an operation; of TERMS and ROW_SUM, of the constant for the given step, from 0."""
        place = (op.extension - 1) * self.channels_per_rower + op.k
        if op.kind is Kind.TERMS:
            return self.fixed + place * self.steps + step
        if op.kind is Kind.ROW_SUM:
            return len(self.method.tables) * self.channels_per_rower + place * self.parts + step
        return self.method.tables.index(op.table) * self.channels_per_rower + op.k

    @property
    def least_interval(self) -> int:
        """Multiplications of one product in each rower, a lower bound of the interval."""
        each = {Kind.MULTIPLY: 1, Kind.MULTIPLY_TWO: 2, Kind.ROW_SUM: self.parts, Kind.TERMS: self.steps, Kind.TERM: 1}
        return sum(each.get(op.kind, 0) for op in self.operations)


@cache
def _bounds(w: int, us: tuple[tuple[int, ...], ...], bound: int) -> tuple[int, ...]:
    """`Shape.bounds` for the u of all rowers."""
    out = []
    while bound > 1 << w:
        out.append(bound)
        smaller = max(fold_bound(bound, w, u) for own in us for u in own)
        if smaller >= bound:
            raise ValueError(f"folding makes no progress below {bound}")
        bound = smaller
    return tuple(out)
