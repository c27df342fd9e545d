# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Structure and schedule of the machine of `extension`: what follows from the bases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from modmill.numbers.folding import fold_bound
from modmill.rtl.booth_fold import FINAL
from modmill.rtl.memory import DEPTHS
from modmill.rtl.product import DspBlock
from modmill.schedule import Schedule, Step

ROWERS = 2
"""Rowers, and for HBE the columns of a row."""

LEAST = 6
"""Fewest moduli of a base: the table of -h A is read while the sum of the target before is in the fold."""

TILE = 2
"""Registers of a tile: operands and product."""


@dataclass(frozen=True)
class Shape:
    """What the machine's structure and schedule depend on.

    ``w``: bits of a channel, ``columns``: 1 (KBE) or 2 (HBE), ``u_a``, ``u_b``: distances of the moduli to 2^w,
    ``fraction`` and ``offset``: t and d of the cox; fraction 0: no cox.
    """

    w: int
    columns: int
    u_a: tuple[int, ...]
    u_b: tuple[int, ...]
    fraction: int
    offset: int
    block: DspBlock

    def __post_init__(self) -> None:
        for u in (self.u_a, self.u_b):
            if len(u) < LEAST or len(u) % ROWERS:
                raise ValueError(f"a base must have an even number of moduli, at least {LEAST}, got {len(u)}")
        if max(self.tables, self.slots) > DEPTHS[-1]:
            raise ValueError(
                f"{self.tables} words for -h A and {self.slots} for all slots: a block RAM has {DEPTHS[-1]} at most"
            )
        _ = self.stages, self.hat_stages  # refuses a u too large now

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
        """Bits of a target's number among a rower's own."""
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
        """Bits of X_r that the cox sees."""
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
        """Exclusive bound of what enters the fold: a lazy sum and -h A mod b_j."""
        top = (1 << self.w) - 1
        return (top * self.steps + 1) * top + 1

    @property
    def hat_bound(self) -> int:
        """Exclusive bound of X_r for HBE."""
        return 2 * ((1 << self.w) - 1) ** 2 + 1

    @cached_property
    def stages(self) -> tuple[int, ...]:
        """Exclusive bounds before each stage of the fold but the last; their number is its latency."""
        return self._stages(self.sum_bound, (*self.u_a, *self.u_b))

    @cached_property
    def hat_stages(self) -> tuple[int, ...]:
        """The same for the fold of X_r; empty for KBE."""
        return self._stages(self.hat_bound, self.u_b) if self.columns > 1 else ()

    def _stages(self, bound: int, us: Sequence[int]) -> tuple[int, ...]:
        found = []
        while bound > 1 << (self.w + FINAL) or (((bound - 1) >> self.w) + 1) * max(us) > 1 << self.w:
            found.append(bound)
            smaller = max(fold_bound(bound, self.w, u) for u in us)
            if smaller >= bound:
                raise ValueError(f"folding modulo 2^{self.w} - {max(us)} makes no progress below {bound}")
            bound = smaller
        return tuple(found)

    @property
    def product(self) -> int:
        """P, slots from operands to their product."""
        return TILE + (self.block.tiles(self.w, self.w) > 1)

    @property
    def xi_ready(self) -> int:
        """Slots from the multiplication that makes a xi to the first that can take it."""
        return self.product + 2 + len(self.stages)

    @property
    def hat_ready(self) -> int:
        """Slots from the multiplications that make an X_r to the first that can take it."""
        return self.product + 1 + len(self.hat_stages)

    @property
    def spare(self) -> int:
        """Cycles for which an X_r waits before the first target takes it; 0 and 1: it gets there past the memory."""
        return self.sums - self.hats - self.hat_ready

    @property
    def hats(self) -> int:
        """First slot of the multiplications that make the X_r (HBE)."""
        return max(self.m, self.xi_ready)

    @property
    def sums(self) -> int:
        """D, first slot of the sums."""
        return self.hats if self.columns == 1 else self.hats + max(self.m, self.hat_ready)

    @property
    def interval(self) -> int:
        """Cycles between extensions: one more than the slots, as the last sum and the next product share the fold."""
        return self.sums + self.targets * self.steps + 1

    @property
    def multiplications(self) -> int:
        """Multiplications of each rower."""
        return self.m * self.columns + self.targets * self.steps

    @property
    def slots(self) -> int:
        """Slots of an extension, idle ones included: words of the constants in their order."""
        return self.sums + self.targets * self.steps

    @property
    def apart(self) -> bool:
        """Whether the tables of -h A need a block RAM of their own."""
        return self.tables + self.slots > DEPTHS[-1]

    @property
    def depth(self) -> int:
        """Words of the block RAM: tables of -h A unless they stand apart, then a word for every slot."""
        return max(DEPTHS[0], 1 << (self.slots + self.tables * (not self.apart) - 1).bit_length())

    def caught(self, target: int) -> int:
        """Cycle after acceptance in which the sum of a target is whole."""
        return 1 + self.sums + (target + 1) * self.steps + self.product

    @property
    def arrival(self) -> int:
        """Cycle after acceptance in which the last residues are there."""
        return self.caught(self.targets - 1) + 1 + len(self.stages)

    @cached_property
    def schedule(self) -> Schedule:
        """The steps of one extension on each rower's units, cycle 0 the accepted operand."""
        return Schedule(tuple(_steps(self)), self.interval)


def _steps(s: Shape) -> Iterator[Step]:
    fold, p = len(s.stages), s.product
    for k in range(s.m):
        yield Step(f"xi{k + 1}", "multiplier", 1 + k, p, (), 1)
        yield Step(f"xi{k + 1} mod", "fold", 1 + k + p, fold + 2, (f"xi{k + 1}",), 1)
    sources = [f"xi{k // 2 + 1} mod" for k in range(s.n)]
    if s.columns > 1:
        for k in range(s.m):
            yield Step(f"X{k + 1}", "multiplier", 1 + s.hats + k, p, (f"xi{k + 1} mod",), 1)
            yield Step(f"X{k + 1} sum", "adder", 1 + s.hats + k + p, 1, (f"X{k + 1}",), 1)
        sources = [f"X{k + 1} sum" for k in range(s.m)]
    if s.fraction:
        last = sources[-1]
        ready = 1 + (s.hats + s.m + p + 1 if s.columns > 1 else s.m - 1 + s.xi_ready)
        yield Step("h", "cox", ready, 1, (last,) if s.columns == 1 else (), 1)
    for j in range(s.targets):
        names = []
        for k in range(s.steps):
            names.append(f"x{j + 1} {k + 1}")
            slot = 1 + s.sums + j * s.steps + k
            if s.columns > 1:
                start = slot - len(s.hat_stages)
                yield Step(f"X{k + 1} mod {j + 1}", "X fold", start, len(s.hat_stages), (sources[k],), 1)
                yield Step(names[-1], "multiplier", slot, p, (f"X{k + 1} mod {j + 1}",), 1)
            else:
                yield Step(names[-1], "multiplier", slot, p, (sources[k],), 1)
        yield Step(f"sum{j + 1}", "sum", s.caught(j) - s.steps, s.steps, (), s.steps)
        late = (f"sum{j + 1}", *(("h",) if s.fraction else ()))
        cycles = fold + (2 if j == s.targets - 1 else 1)
        yield Step(f"x{j + 1} mod", "fold", s.caught(j), cycles, late, 1)
