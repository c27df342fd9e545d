# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Structure and schedule of the machine in `passes`: one or two base extensions on any number of rowers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from modmill.rtl.booth_fold import stage_cycles, tile_places
from modmill.rtl.extension_shape import TILE, Kind, fold_stages, fold_tiles
from modmill.rtl.memory import DEPTHS
from modmill.rtl.product import DspBlock
from modmill.schedule import Operation, Operations, Schedule, ScheduleError, Step

PRESTAGE = 2
"""Cycles of the sum that shortens an X_r of more than two digits before it enters the fold."""


class Back(Operations):
    """The operations of the second pass, from B to A; the members are those of `Kind`, and START is unused."""

    XI = "zeta{}"
    XI_RESIDUE = "zeta{} mod"
    PARTNERS = "Z{}"
    HAT = "Z{} sum"
    HAT_RESIDUE = "Z{} mod"
    H = "h of B"
    START = "start of A{}"
    TERM = "s{}"
    SUM = "sum of A{}"
    RESIDUE = "s{} mod"


@dataclass(frozen=True)
class Pass:
    """A base extension. ``u_a``, ``u_b``: u of the moduli 2^w - u from which and to which it runs. ``offset``: d of its
    cox, None without a cox. ``start``: each sum has one more term, a word of the input times a constant."""

    u_a: tuple[int, ...]
    u_b: tuple[int, ...]
    offset: int | None
    start: bool = False


@dataclass(frozen=True)
class Times:
    """Cycles of one pass after the product's acceptance.

    ``base``: cycle in which the pass's words are loaded. ``xi``, ``partners``: operands of the multiplications for the
    xi, and for X_r. ``loads``: words of the source registers are made. ``heads``[j][r]: row r is at the head of the
    source registers, for target j. ``starts``, ``terms``: operands of the products of the sums. ``caught``: the sum of
    each target is complete.
    """

    base: int
    xi: tuple[int, ...]
    partners: tuple[int, ...]
    loads: tuple[int, ...]
    heads: tuple[tuple[int, ...], ...]
    starts: tuple[int, ...]
    terms: tuple[tuple[int, ...], ...]
    caught: tuple[int, ...]

    @property
    def h(self) -> int:
        """Cycle in which h is in its register."""
        return self.heads[0][-1] + 1


@dataclass(frozen=True)
class Shape:
    """The parameters of the machine's structure and schedule.

    ``w``: bits of a channel; ``columns``: c, moduli in a row; ``lanes``: number of rowers that serve the first base;
    ``fraction``: t of the coxes, 0 without any. ``block``: DSP block of the multipliers; ``reducer``: that of the
    folds, None: logic.
    Raises ValueError if the rowers do not suit the moduli, if constants do not fit a block RAM, or for a u that is too
    large for folding.
    """

    w: int
    columns: int
    lanes: int
    passes: tuple[Pass, ...]
    fraction: int
    block: DspBlock
    reducer: DspBlock | None = None

    def __post_init__(self) -> None:
        first = self.passes[0]
        if self.n % self.lanes or self.lanes % self.columns:
            raise ValueError(
                f"rowers must be a multiple of {self.columns} and divide n = {self.n}, got {self.lanes}; "
                f"accepted are {', '.join(map(str, lanes_for(self.n, self.columns)))}"
            )
        assert len(first.u_b) % self.m == 0
        if max(self.tables, 1) + self.schedule.interval > DEPTHS[-1]:
            raise ValueError(
                f"-h A takes {self.tables} words and an interval {self.schedule.interval}: a block RAM has at most "
                f"{DEPTHS[-1]}; take more rowers"
            )

    @property
    def n(self) -> int:
        """Moduli of A."""
        return len(self.passes[0].u_a)

    @property
    def m(self) -> int:
        """Channels of each base that a rower serves."""
        return self.n // self.lanes

    @property
    def targets(self) -> int:
        """Sums of a rower in each pass."""
        return self.m

    @property
    def interval(self) -> int:
        """Cycles between products."""
        return self.schedule.interval

    @property
    def rowers(self) -> int:
        """Number of rowers: ``lanes``, and more if B has more moduli than A."""
        return len(self.passes[0].u_b) // self.m

    @property
    def groups(self) -> int:
        """Rows whose X_r are made at the same time."""
        return self.lanes // self.columns

    @property
    def steps(self) -> int:
        """S, rows of A: terms of each sum."""
        return self.n // self.columns

    @property
    def hat_bits(self) -> int:
        """Bits of X_r."""
        return (self.hat_bound - 1).bit_length()

    @property
    def hat_bound(self) -> int:
        """Exclusive bound of X_r; for one column that of xi."""
        top = (1 << self.w) - 1
        return self.columns * top**self.columns + 1

    @property
    def factors(self) -> tuple[int, ...]:
        """Largest factor of each digit of X_r above the second: 2^(k w) modulo a modulus."""
        us = [u for p in self.passes for u in p.u_a + p.u_b]
        return tuple(max(power(self.w, u, k) for u in us) for k in range(2, self.columns))

    @property
    def short_bound(self) -> int:
        """Exclusive bound of an X_r that enters the fold: for c > 2 its first two digits, and the others times
        `factors`."""
        if self.columns < 3:
            return self.hat_bound
        total = 1 << 2 * self.w
        for k, factor in enumerate(self.factors, 2):
            total += factor * self.digit_most(k)
        return total

    def digit_most(self, k: int) -> int:
        """Largest digit ``k`` of X_r, the last one being all that is above."""
        return (self.hat_bound - 1) >> k * self.w if k == self.columns - 1 else (1 << self.w) - 1

    @property
    def sum_bound(self) -> int:
        """Exclusive bound of a lazy sum plus -h A mod b_j."""
        top = (1 << self.w) - 1
        terms = max(self.steps + p.start for p in self.passes)
        return (top * terms + 1) * top + 1

    @cached_property
    def stages(self) -> tuple[int, ...]:
        """Exclusive bounds before each stage of the fold except the last."""
        bound = max(self.sum_bound, self.short_bound if self.columns > 1 else 0)
        return fold_stages(bound, self.w, [u for p in self.passes for u in p.u_a + p.u_b])

    @property
    def fold(self) -> int:
        """F, cycles of the fold."""
        return len(self.stages) * stage_cycles(self.reducer)

    @property
    def product(self) -> int:
        """P, cycles from the operands to their product."""
        return TILE + (self.block.tiles(self.w, self.w) > 1)

    @property
    def prestage(self) -> int:
        """Cycles before an X_r enters the fold."""
        return PRESTAGE if self.columns > 2 else 0

    @property
    def tiles(self) -> int:
        """DSP blocks of a rower."""
        total = self.block.tiles(self.w, self.w)
        if self.reducer is None:
            return total
        u = max(u for p in self.passes for u in p.u_a + p.u_b)
        total += fold_tiles(self.stages, self.w, u, self.reducer)
        for k, factor in enumerate(self.factors, 2):
            total += len(tile_places(self.digit_most(k).bit_length(), factor.bit_length(), self.reducer))
        return total

    @property
    def top_bits(self) -> int:
        """Bits of X_r that the cox adds up."""
        return self.hat_bits - self.columns * self.w + self.fraction

    @property
    def offset(self) -> int:
        """The largest d of the coxes."""
        return max(p.offset or 0 for p in self.passes)

    @property
    def h_max(self) -> int:
        """Largest h of a cox; 0 without one."""
        return (self.steps * ((1 << self.top_bits) - 1) + self.offset) >> self.fraction if self.fraction else 0

    @property
    def h_bits(self) -> int:
        """Bits of h."""
        return self.h_max.bit_length()

    @property
    def tables(self) -> int:
        """Words of the tables of -h A: one table for each pass and target."""
        return len(self.passes) * self.m << self.h_bits if self.fraction else 0

    @cached_property
    def times(self) -> tuple[Times, ...]:
        """The cycles of each pass, each as soon as its operands are there."""
        found: list[Times] = []
        for p in self.passes:
            found.append(self._times(p, found[-1].caught[-1] + 1 + self.fold if found else 0))
        return tuple(found)

    def _times(self, p: Pass, base: int) -> Times:
        m, c, made = self.m, self.columns, self.product + 1 + self.fold
        xi = tuple(base + k for k in range(1, m + 1))
        partners: tuple[int, ...] = ()
        loads = [at + made for at in xi]
        if c > 1:
            first = base + 1 + max(made + 1, m)
            partners = tuple(range(first, first + m * (c - 1)))
            loads = [at + self.product for at in partners[c - 2 :: c - 1]]
        ahead = max(at + 1 - k * self.groups for k, at in enumerate(loads))
        lead = self.prestage + 1 + self.fold if c > 1 else 0
        cycle = max(ahead, loads[0] + 1, (partners or xi)[-1] + 1 + p.start - lead)
        heads: list[tuple[int, ...]] = []
        terms, caught, starts = [], [], []
        for j in range(m):
            own: list[int] = []
            cycle += p.start and j > 0
            while len(own) < self.steps:
                if c == 1 or cycle + self.prestage not in caught:
                    own.append(cycle)
                cycle += 1
            heads.append(tuple(own))
            terms.append(tuple(at + lead for at in own))
            starts.append(terms[j][0] - 1)
            caught.append(terms[j][-1] + self.product + 1)
        return Times(
            base, xi, partners, tuple(loads), tuple(heads), tuple(starts) if p.start else (), tuple(terms),
            tuple(caught),
        )  # fmt: skip

    @property
    def multiplications(self) -> int:
        """Multiplications of each rower."""
        return sum(self.m * (self.columns + self.steps + p.start) for p in self.passes)

    @property
    def read_words(self) -> list[int]:
        """Addresses of the block RAM that are read: h of each pass and target with a cox, and the multiplications."""
        found = []
        for k, p in enumerate(self.passes):
            most = (self.steps * ((1 << self.top_bits) - 1) + (p.offset or 0)) >> self.fraction
            for j in range(self.m) if p.offset is not None else ():
                found += [((k * self.m + j) << self.h_bits) + h for h in range(most + 1)]
        starts = [step.start for step in self.schedule.steps if step.unit == "multiplier"]
        return found + sorted(self.tables + start % self.interval for start in starts)

    @property
    def depth(self) -> int:
        """Words of the block RAM, a power of two: the tables of -h A, then the constants in the order of cycles."""
        return max(DEPTHS[0], 1 << (self.tables + self.schedule.interval - 1).bit_length())

    @cached_property
    def schedule(self) -> Schedule:
        """The steps of one product on each rower's units, with the least interval that has no conflict; the operand is
        accepted in cycle 0."""
        steps = tuple(step for k in range(len(self.passes)) for step in _steps(self, k))
        for interval in range(max(4, self.multiplications), steps[-1].end + 4):
            try:
                return Schedule(steps, interval, tuple(self._hold()))
            except ScheduleError:
                continue
        raise AssertionError("products that do not overlap have no conflict")

    def _hold(self) -> Iterator[tuple[str, int, int]]:
        for k, at in enumerate(self.times):
            last = at.heads[-1][-1]
            yield f"source {k}", at.loads[0] + 1, last
            if at.partners:
                yield f"xi {k}", at.xi[0] + self.product + 2 + self.fold, at.partners[-1]
            if at.starts:
                yield "operand", 1, at.starts[-1]
        yield "result", self.times[-1].caught[0] + 2 + self.fold, self.times[-1].caught[-1] + 1 + self.fold
        if len(self.passes) > 1:
            yield "S_B", self.times[0].caught[0] + 2 + self.fold, self.times[-1].caught[-1] + 1 + self.fold


def lanes_for(n: int, columns: int) -> list[int]:
    """The numbers of rowers for ``n`` moduli in each base."""
    return [k for k in range(columns, n + 1, columns) if n % k == 0]


def power(w: int, u: int, k: int) -> int:
    """2^(k w) modulo 2^w - u."""
    return pow(u, k, (1 << w) - u)


def kinds(k: int) -> type[Operations]:
    """The kinds of operations of pass ``k``."""
    return Back if k else Kind


def digit_numbers(columns: int) -> list[tuple[int, ...]]:
    """The numbers, beside that of the slot, of the operations that make X_r: for c > 2 one for each digit of a
    cofactor, the highest first."""
    return [()] if columns == 2 else [(d,) for d in range(1, columns)]


def _steps(s: Shape, k: int) -> Iterator[Step]:
    """The steps of pass ``k``; rows, slots and targets are counted from 1. A sum lists only its first term among its
    reads, because later terms arrive while it is under way."""
    at, of, p, fold = s.times[k], kinds(k), s.product, s.fold
    xi, residue, partners, hat = (getattr(of, name) for name in ("XI", "XI_RESIDUE", "PARTNERS", "HAT"))
    reads: list[Operation] = [Kind.RESIDUE(j) for j in range(1, s.m + 1)] if k else []
    for i, start in enumerate(at.xi, 1):
        yield xi(i).on("multiplier", start, p, reads, busy=1)
        yield residue(i).on("fold", start + p, fold + 2, [xi(i)], busy=1)
    made = [residue(i) for i in range(1, s.m + 1)]
    if s.columns > 1:
        digits = digit_numbers(s.columns)
        for i, start in enumerate(at.partners):
            slot, d = divmod(i, len(digits))
            yield partners(slot + 1, *digits[d]).on("multiplier", start, p, [residue(slot + 1)], busy=1)
        made = [hat(i) for i in range(1, s.m + 1)]
        for i, load in enumerate(at.loads, 1):
            yield hat(i).on("adder", load, 1, [partners(i, *numbers) for numbers in digits])
    if s.passes[k].offset is not None:
        first = at.heads[0][0]
        yield of.H().on("cox", first, at.h - first, made[:1], busy=at.caught[-1] - 1 - first)  # type: ignore[attr-defined]
    yield from _sums(s, k, made)


def _sums(s: Shape, k: int, made: Sequence[Operation]) -> Iterator[Step]:
    at, of, p, fold = s.times[k], kinds(k), s.product, s.fold
    hat, start, term, total, residue = (getattr(of, x) for x in ("HAT_RESIDUE", "START", "TERM", "SUM", "RESIDUE"))
    for j in range(1, s.m + 1):
        if at.starts:
            yield start(j).on("multiplier", at.starts[j - 1], p, busy=1)
        for r in range(1, s.steps + 1):
            head, slot = at.heads[j - 1][r - 1], at.terms[j - 1][r - 1]
            source = made[(r - 1) // s.groups if s.columns > 1 else (r - 1) // s.lanes]
            if s.columns > 1:
                yield hat(r, j).on("fold", head + s.prestage, slot - head - s.prestage, [source], busy=1)
                source = hat(r, j)
            yield term(j, r).on("multiplier", slot, p, [source], busy=1)
        caught, first = at.caught[j - 1], at.starts[j - 1] if at.starts else at.terms[j - 1][0]
        opening = start(j) if at.starts else term(j, 1)
        yield total(j).on("sum", first + p, caught - first - p, [opening])
        reads = [total(j)] + ([of.H()] if s.passes[k].offset is not None else [])  # type: ignore[attr-defined]
        yield residue(j).on("fold", caught, fold + 2, reads, busy=1)
