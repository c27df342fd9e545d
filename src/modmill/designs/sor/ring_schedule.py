# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The operations of `sor-ring`, their cycles, and the search for the least interval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from modmill.designs.sor import family
from modmill.numbers.folding import fold_bounds
from modmill.numbers.rns.residues import signed_digits
from modmill.schedule import Schedule, ScheduleError, Step

PRODUCT = 5
"""Cycles from the start of a multiplication to its visible product."""
CLEAR = 1
"""Cycles from the clear of the accumulator to the first product of a sum."""
ACCUMULATE = 1
"""Cycles from a visible product to the visible sum that includes it."""
ALPHA = 3
"""Cycles from the last gamma at a tap to alpha in its register: tap, sum of the taps, sum of alpha, register."""
KAPPA = 7
"""Cycles from the last gamma at a tap to kappa in its register: tap, DSP block, sums of words and taps, K, register."""
BUS = 2
"""Cycles from alpha or kappa to the operand multiplexers of the rowers."""
FIFO = 1
"""Cycles through an empty output queue."""


def fold_cycles(digits: int) -> int:
    """Cycles of one pass of the folding loop, for u of at most ``digits`` signed digits."""
    return 1 + max(1, digits.bit_length())


@dataclass(frozen=True)
class Params(family.Params):
    """The constants, and the number of ``taps`` on the ring; each tap processes a part of the gamma_i."""

    taps: int

    @property
    def digits(self) -> int:
        """Largest number of signed digits of any u; every folding loop is built for it."""
        return max(len(signed_digits(u)) for u in self.base.u)

    @property
    def segments(self) -> list[range]:
        """The channels whose gamma_i each tap processes; the tap is at the last of them."""
        n, t = self.base.n, self.taps
        return [range(i * n // t, (i + 1) * n // t) for i in range(t)]

    @property
    def turns(self) -> int:
        """Cycles until the taps have processed every gamma_i."""
        return max(len(s) for s in self.segments)

    @property
    def buses(self) -> int:
        """Registers at the end of the bus, one for every four rowers."""
        return -(-self.base.n // 4)

    @property
    def kappa_tiles(self) -> int:
        """DSP blocks of a tap."""
        return -(-self.rns.constant_bits // self.base.w)

    @cached_property
    def passes(self) -> int:
        """Passes of the folding loop that suffice in every channel for the unreduced sum of all terms."""
        bound = ((1 << self.base.w) - 1) ** 2 * (self.base.n + 1 + self.words) + 1
        return max(len(fold_bounds(bound, self.base.w, u)) for u in self.base.u)


class Kind(Enum):
    """The kinds of operations, with their names on charts: the letters of Algorithm 2."""

    PRODUCT = "Z"  # X Y
    HOLD = "hold Z"  # Z, reduced, in the operand register
    INVERSE = "G"  # gamma = Z M_i^-1
    WAIT = "wait G"  # gamma, reduced, in the register before the ring
    RING = "ring"  # gamma in the ring
    TERM = "L"  # gamma_i <M_i>_p for the gamma_i that the ring brings
    ALPHA = "alpha"  # floor((sum trunc(gamma_i) + d) / 2^q)
    KAPPA = "kappa"  # floor((sum gamma_i c_i + e_alpha) / 2^T)
    BUS = "bus"  # alpha or a word of kappa beside every rower
    BUS_TERM = "AL, KP, KQ"  # alpha <-M>_p, or a word of kappa times -p
    SUM = "A"  # the sum of all terms
    FOLD = "r"  # one pass of the folding loop
    RESULT = "z"  # A, reduced, in the queue


ALPHA_WORD = -1
"""The number of alpha among the words on the bus; those of kappa count from 0."""
WORDS = {ALPHA_WORD: "AL", 0: "KP", 1: "KQ", 2: "KR", 3: "KS"}
"""Names of the products with alpha and with the words of kappa."""
FOLDED = {Kind.PRODUCT: "Zr", Kind.INVERSE: "Gr", Kind.SUM: "zr"}
"""Names of the reduced values, by the kind of operation that computes the value."""


@dataclass(frozen=True)
class Operation:
    """One operation, which all rowers execute at the same time.

    ``number``, from 0: step of the ring for a TERM; word of kappa, or ALPHA_WORD, for a BUS or BUS_TERM; pass for a
    FOLD. ``of``: the kind of operation whose result a FOLD reduces.
    """

    kind: Kind
    number: int = 0
    of: Kind = Kind.PRODUCT

    @property
    def name(self) -> str:
        """The name of its result on charts."""
        match self.kind:
            case Kind.TERM:
                return f"L{self.number + 1}"
            case Kind.BUS:
                return f"bus {WORDS[self.number]}"
            case Kind.BUS_TERM:
                return WORDS[self.number]
            case Kind.FOLD:
                return f"{FOLDED[self.of]}/{self.number + 1}"
            case _:
                return self.kind.value


def schedule(p: Params, interval: int, gamma_at: int, ring_at: int, words_at: Sequence[int]) -> Schedule:
    """The operations of one product, in the order of Algorithm 2, in their cycles after the acceptance.

    ``gamma_at``: the cycle of the multiplication INVERSE; ``ring_at``: that of the first TERM; ``words_at``: those of
    the BUS_TERMs, for alpha, then for the words of kappa. Raises ScheduleError if the machine cannot run the schedule.
    """
    n, fold = p.base.n, fold_cycles(p.digits)
    out: list[Step] = []

    def step(op: Operation, unit: str, start: int, cycles: int, *reads: Operation, busy: int | None = 1) -> Operation:
        out.append(Step(op.name, unit, start, cycles, tuple(read.name for read in reads), busy, op))
        return op

    def slot(op: Operation, start: int, *reads: Operation) -> Operation:
        return step(op, "mul", start, PRODUCT, *reads)

    def reduced(of: Kind, start: int, *reads: Operation) -> tuple[Operation, int]:
        """The passes of one reduction. The loop accepts a value in each cycle, so a pass is busy for one."""
        for i in range(p.passes):
            reads = (step(Operation(Kind.FOLD, i, of), "fold", start + i * fold, fold, *reads),)
        return reads[0], start + p.passes * fold

    def kept(kind: Kind, unit: str, value: Operation, start: int, end: int) -> Operation:
        """A register that keeps a value from cycle ``start`` until it is read in cycle ``end``."""
        return step(Operation(kind), unit, start, 1, value, busy=end - start)

    value, ready = reduced(Kind.PRODUCT, PRODUCT, slot(Operation(Kind.PRODUCT), 0))
    z = kept(Kind.HOLD, "hold", value, ready, gamma_at)
    value, ready = reduced(Kind.INVERSE, gamma_at + PRODUCT, slot(Operation(Kind.INVERSE), gamma_at, z))
    gamma = kept(Kind.WAIT, "wait", value, ready, ring_at - 1)
    ring = step(Operation(Kind.RING), "ring", ring_at - 1, 1, gamma, busy=n)
    terms = [slot(Operation(Kind.TERM, i), ring_at + i, ring) for i in range(n)]
    alpha, kappa = (
        step(op, op.name, ring_at, p.turns + cycles, ring, busy=p.turns)
        for op, cycles in ((Operation(Kind.ALPHA), ALPHA), (Operation(Kind.KAPPA), KAPPA))
    )
    for word, cycle in enumerate(words_at, ALPHA_WORD):
        bus = step(Operation(Kind.BUS, word), "bus", cycle - BUS, BUS, alpha if word == ALPHA_WORD else kappa)
        terms.append(slot(Operation(Kind.BUS_TERM, word), cycle, bus))
    end = max(ring_at + n - 1, *words_at) + PRODUCT + ACCUMULATE
    start = ring_at + PRODUCT - CLEAR
    total = step(Operation(Kind.SUM), "sum", start, end - start, ring, busy=None)
    value, ready = reduced(Kind.SUM, end, total, *terms)
    step(Operation(Kind.RESULT), "queue", ready, FIFO, value)
    return Schedule(tuple(out), interval)


def candidates(p: Params, interval: int) -> Iterator[tuple[int, int, list[int]]]:
    """Yield the last three arguments of `schedule`, with no two multiplications in one cycle of the interval, in the
    order of gamma_at, then ring_at."""
    n = p.base.n
    reduction = p.passes * fold_cycles(p.digits)
    for gamma in range(PRODUCT + reduction + 1, PRODUCT + reduction + 1 + interval):
        if gamma % interval == 0:
            continue
        soonest = gamma + PRODUCT + reduction + 2
        for ring in range(soonest, soonest + interval):
            taken = {0, gamma % interval, *((ring + i) % interval for i in range(n))}
            if len(taken) != n + 2:
                continue
            cycle = ring + p.turns + ALPHA + BUS
            slots = []
            for ready in (cycle, *[ring + p.turns + KAPPA + BUS] * p.words):
                cycle = max(cycle, ready)
                while cycle % interval in taken and cycle < ring + interval:
                    cycle += 1
                taken.add(cycle % interval)
                slots.append(cycle)
            if slots[-1] < ring + interval and len(taken) == n + 3 + p.words:
                yield gamma, ring, slots


def search(p: Params) -> Schedule:
    """The schedule with the least interval, and for it the earliest of `candidates`. Raises ValueError if there is none
    with an interval below 2 N + 40."""
    n = p.base.n
    for interval in range(n + 3 + p.words, 2 * n + 40):
        for slots in candidates(p, interval):
            try:
                return schedule(p, interval, *slots)
            except ScheduleError:
                continue
    raise ValueError(f"no schedule for {n} channels with an interval below {2 * n + 40}")
