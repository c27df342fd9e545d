# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Structure and schedule of the machine in `extension`, derived from the bases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from modmill.numbers.folding import fold_bound
from modmill.rtl.booth_fold import FINAL, stage_cycles, tile_places
from modmill.rtl.memory import DEPTHS
from modmill.rtl.product import DspBlock
from modmill.schedule import Operations, Schedule, Step

ROWERS = 2
"""Number of rowers; for HBE also the number of channels in a row."""

LEAST = 6
"""Fewest moduli of a base: the table of -h A is read while the sum of the previous target is in the fold."""

TILE = 2
"""Registers of a tile: operands and product."""


def fold_stages(bound: int, w: int, us: Sequence[int]) -> tuple[int, ...]:
    """Exclusive bounds before each stage of a `Fold` except the last, for values below ``bound``. Raises ValueError for
    a u that is too large."""
    found = []
    while bound > 1 << (w + FINAL) or (((bound - 1) >> w) + 1) * max(us) > 1 << w:
        found.append(bound)
        smaller = max(fold_bound(bound, w, u) for u in us)
        if smaller >= bound:
            raise ValueError(f"folding modulo 2^{w} - {max(us)} makes no progress below {bound}")
        bound = smaller
    return tuple(found)


def fold_tiles(stages: Sequence[int], w: int, u: int, block: DspBlock | None) -> int:
    """DSP blocks of a `Fold` with these stages; ``u`` is the largest."""
    if block is None:
        return 0
    return sum(len(tile_places((bound - 1).bit_length() - w, u.bit_length(), block)) for bound in stages)


@dataclass(frozen=True)
class Shape:
    """The parameters of the machine's structure and schedule.

    ``w``: bits of a channel; ``columns``: 1 (KBE) or 2 (HBE); ``u_a``, ``u_b``: u of the moduli 2^w - u of A and B;
    ``fraction`` and ``offset``: t and d of the cox; fraction 0: no cox. ``reducer``: the DSP block that multiplies by u
    in the folds; None: logic.
    Raises ValueError for an odd or too small number of moduli, for constants that do not fit a block RAM, and for a u
    that is too large for folding.
    """

    w: int
    columns: int
    u_a: tuple[int, ...]
    u_b: tuple[int, ...]
    fraction: int
    offset: int
    block: DspBlock
    reducer: DspBlock | None = None

    def __post_init__(self) -> None:
        for u in (self.u_a, self.u_b):
            if len(u) < LEAST or len(u) % ROWERS:
                raise ValueError(f"a base must have an even number of moduli, at least {LEAST}, got {len(u)}")
        if max(self.tables, self.slots) > DEPTHS[-1]:
            raise ValueError(
                f"-h A takes {self.tables} words and the slots take {self.slots}: a block RAM has at most {DEPTHS[-1]}"
            )
        _ = self.stages, self.hat_stages  # raises for a u that is too large

    @property
    def rowers(self) -> int:
        """Number of rowers."""
        return ROWERS

    lanes = rowers

    @property
    def n(self) -> int:
        """Moduli of A."""
        return len(self.u_a)

    @property
    def m(self) -> int:
        """Channels of A that each rower serves."""
        return self.n // ROWERS

    @property
    def targets(self) -> int:
        """Channels of B that each rower serves."""
        return len(self.u_b) // ROWERS

    @property
    def target_bits(self) -> int:
        """Bits of the index of a target in its rower."""
        return max(1, (self.targets - 1).bit_length())

    @property
    def steps(self) -> int:
        """S, multiplications for each target."""
        return self.n // self.columns

    @property
    def hat_bits(self) -> int:
        """Bits of X_r."""
        return self.w if self.columns == 1 else 2 * self.w + 1

    @property
    def top_bits(self) -> int:
        """Bits of X_r that the cox adds up."""
        return self.hat_bits - self.columns * self.w + self.fraction

    @cached_property
    def h_max(self) -> int:
        """Largest h of the cox."""
        return (self.steps * ((1 << self.top_bits) - 1) + self.offset) >> self.fraction if self.fraction else 0

    @property
    def h_bits(self) -> int:
        """Bits of h."""
        return self.h_max.bit_length()

    @property
    def tables(self) -> int:
        """Words of the tables of -h A."""
        return self.targets << self.h_bits if self.fraction else 0

    @property
    def sum_bound(self) -> int:
        """Exclusive bound of the fold's input: a lazy sum plus -h A mod b_j."""
        top = (1 << self.w) - 1
        return (top * self.steps + 1) * top + 1

    @property
    def hat_bound(self) -> int:
        """Exclusive bound of X_r (HBE)."""
        return 2 * ((1 << self.w) - 1) ** 2 + 1

    @cached_property
    def stages(self) -> tuple[int, ...]:
        """Exclusive bounds before each stage of the fold except the last; their number is its latency."""
        return self._stages(self.sum_bound, (*self.u_a, *self.u_b))

    @cached_property
    def hat_stages(self) -> tuple[int, ...]:
        """The same for the fold of X_r; empty for KBE."""
        return self._stages(self.hat_bound, self.u_b) if self.columns > 1 else ()

    def _stages(self, bound: int, us: Sequence[int]) -> tuple[int, ...]:
        return fold_stages(bound, self.w, us)

    @property
    def fold(self) -> int:
        """Cycles of the fold."""
        return len(self.stages) * stage_cycles(self.reducer)

    @property
    def hat_fold(self) -> int:
        """Cycles of the fold of X_r; 0 for KBE."""
        return len(self.hat_stages) * stage_cycles(self.reducer)

    @property
    def tiles(self) -> int:
        """DSP blocks of a rower."""
        own = max(self.u_a), max(self.u_b)
        both = ((self.stages, max(own)), (self.hat_stages, max(own)))
        folds = sum(fold_tiles(stages, self.w, u, self.reducer) for stages, u in both)
        return self.block.tiles(self.w, self.w) + folds

    @property
    def product(self) -> int:
        """P, slots from the operands to their product."""
        return TILE + (self.block.tiles(self.w, self.w) > 1)

    @property
    def xi_ready(self) -> int:
        """Slots from the multiplication for xi_i to the first that can use xi_i."""
        return self.product + 2 + self.fold

    @property
    def hat_ready(self) -> int:
        """Slots from the multiplications for X_r to the first that can use X_r."""
        return self.product + 1 + self.hat_fold

    @property
    def spare(self) -> int:
        """Cycles for which X_r waits before the first target uses it; with 0 or 1 it bypasses the memory."""
        return self.sums - self.hats - self.hat_ready

    @property
    def hats(self) -> int:
        """First slot of the multiplications for the X_r (HBE)."""
        return max(self.m, self.xi_ready)

    @property
    def sums(self) -> int:
        """D, first slot of the sums."""
        return self.hats if self.columns == 1 else self.hats + max(self.m, self.hat_ready)

    @property
    def interval(self) -> int:
        """Cycles between extensions: one more than the slots, because the last sum and the next xi share the fold."""
        return self.sums + self.targets * self.steps + 1

    @property
    def multiplications(self) -> int:
        """Multiplications of each rower."""
        return self.m * self.columns + self.targets * self.steps

    @property
    def slots(self) -> int:
        """Slots of an extension, including idle ones; each has a word in the block RAM."""
        return self.sums + self.targets * self.steps

    @property
    def apart(self) -> bool:
        """Whether the tables of -h A need a block RAM of their own."""
        return self.tables + self.slots > DEPTHS[-1]

    @property
    def depth(self) -> int:
        """Words of the block RAM, a power of two: the tables of -h A, unless they are ``apart``, and the slots."""
        return max(DEPTHS[0], 1 << (self.slots + self.tables * (not self.apart) - 1).bit_length())

    def caught(self, target: int) -> int:
        """Cycle after acceptance in which the sum of a rower's ``target``, counted from 0, is complete."""
        return 1 + self.sums + (target + 1) * self.steps + self.product

    @cached_property
    def schedule(self) -> Schedule:
        """The steps of one extension on each rower's units; the operand is accepted in cycle 0."""
        return Schedule(tuple(_steps(self)), self.interval)


class Kind(Operations):
    """The operations of both rowers, each for its own channel: of row r of A, or of target j of B."""

    XI = "xi{}"
    """x_i T_i."""
    XI_RESIDUE = "xi{} mod"
    PARTNERS = "X{}"
    """Each xi of a row times its partner's modulus (HBE)."""
    HAT = "X{} sum"
    HAT_RESIDUE = "X{} mod"
    """X_r modulo the target's modulus (HBE)."""
    H = "h"
    TERM = "x{}"
    """X_r C_(r,j), for a target and a row."""
    START = "start{}"
    """The word of the input, times a constant (a reduction)."""
    SUM = "sum{}"
    RESIDUE = "x{} mod"


def _steps(s: Shape) -> Iterator[Step]:
    """Rows and targets are counted from 1. A sum lists only its first term among its reads, because later terms arrive
    while it is under way."""
    fold, p = s.fold, s.product
    rows = range(1, s.m + 1)
    for k in rows:
        yield Kind.XI(k).on("multiplier", k, p, busy=1)
        yield Kind.XI_RESIDUE(k).on("fold", k + p, fold + 2, [Kind.XI(k)], busy=1)
    made = [Kind.XI_RESIDUE(k) for k in rows]
    if s.columns > 1:
        for k in rows:
            yield Kind.PARTNERS(k).on("multiplier", s.hats + k, p, [Kind.XI_RESIDUE(k)], busy=1)
            yield Kind.HAT(k).on("adder", s.hats + k + p, 1, [Kind.PARTNERS(k)])
        made = [Kind.HAT(k) for k in rows]
    if s.fraction:
        yield Kind.H().on("cox", s.m + (s.hats + p + 2 if s.columns > 1 else s.xi_ready), 1, made)
    for j in range(1, s.targets + 1):
        for r in range(1, s.steps + 1):
            slot = s.sums + (j - 1) * s.steps + r
            source = made[(r - 1) * s.m // s.steps]
            if s.columns > 1:
                stages = s.hat_fold
                yield Kind.HAT_RESIDUE(r, j).on("X fold", slot - stages, stages, [source], busy=1)
                source = Kind.HAT_RESIDUE(r, j)
            yield Kind.TERM(j, r).on("multiplier", slot, p, [source], busy=1)
        caught = s.caught(j - 1)
        yield Kind.SUM(j).on("sum", caught - s.steps, s.steps, [Kind.TERM(j, 1)])
        yield Kind.RESIDUE(j).on("fold", caught, fold + 2, [Kind.SUM(j), *([Kind.H()] if s.fraction else [])], busy=1)
