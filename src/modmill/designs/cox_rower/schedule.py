# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What the cox-rower machine (`multiplier`) does in which cycle: the operations' jobs and their places in time.

cycle t       addresses at the block RAM
cycle t + 3   operands at the multiplier, behind a register
cycle t + 7   product behind the DSP block's three registers and one more
cycle t + 8   sum with that product
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from modmill import placement
from modmill.contract import UnsupportedError
from modmill.designs.cox_rower.operations import OPERANDS, Kind, Operation, Value
from modmill.designs.cox_rower.shape import OPERAND, PRODUCT, TREE, Shape
from modmill.placement import Job

H_STAYS = 8
"""Cycles for which h may wait in its register."""

_TERM = ("w~ c", "h B")
"""Names of the jobs that add one product to the sum of an extension."""


def start_of(shape: Shape, op: Operation) -> str:
    """The job in which an operation begins."""
    match op.kind:
        case Kind.TAKE:
            return f"in {shape.shown(op.result)}"
        case Kind.GIVE:
            return f"out {shape.shown(op.result)}"
        case Kind.ROW_SUM:
            return shape.named(f"hat {op.extension}", op.k)
        case Kind.LOAD:
            return f"load {op.extension}"
        case Kind.TERMS:
            return shape.named(f"ring {op.extension}", op.k)
        case Kind.TERM:
            return shape.named(_TERM[op.extension - 1], op.k)
        case Kind.REDUCE:
            return shape.named(f"catch {op.extension}", op.k)
        case _:
            return shape.shown(op.result)


def fold_of(shape: Shape, op: Operation) -> str:
    """The job that folds what an operation has made and stores the residue."""
    return f"{shape.shown(op.result)} fold"


def catch_of(shape: Shape, op: Operation) -> str:
    """The job that catches the sum of two products."""
    return f"catch {shape.shown(op.result)}"


def read_of(op: Operation) -> str:
    """The job that reads the words which go into the ring (KBE)."""
    return f"read {op.extension}"


def folded_bound(shape: Shape, op: Operation) -> int:
    """Exclusive bound of what an operation folds."""
    return shape.product_bound if op.kind is Kind.MULTIPLY else shape.sum_bound


def fold_entries(shape: Shape, op: Operation) -> list[int]:
    """Cycles, from the start of the fold, in which something enters it."""
    return [k * shape.loop_pass for k in range(shape.passes(folded_bound(shape, op)))] if shape.loop else [0]


def fold_cycles(shape: Shape, op: Operation) -> int:
    """Cycles from the start of the fold to the visible residue."""
    return len(fold_entries(shape, op)) * shape.loop_pass if shape.loop else shape.fold_latency


def first_slot(shape: Shape) -> int:
    """Cycles from the start of a run of the ring to its first multiplication."""
    return -1 if shape.loop else shape.fold_latency - 1


class _Jobs:
    """The jobs of one product, operation by operation."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._makers = {op.result: op for op in shape.operations if op.kind is not Kind.GIVE}
        self._terms = {op.result: op for op in shape.of(Kind.TERMS)}
        self._single = {op.result: op for op in shape.of(Kind.TERM)}
        self._loads = {op.extension: op for op in shape.of(Kind.LOAD)}

    def ready(self, value: Value) -> tuple[str, int]:
        """The job after whose start, by so many cycles, a value can be read."""
        shape, op = self.shape, self._makers[value]
        match op.kind:
            case Kind.MULTIPLY | Kind.MULTIPLY_TWO | Kind.REDUCE:
                return fold_of(shape, op), fold_cycles(shape, op) + 1
            case Kind.ROW_SUM:
                return start_of(shape, op), shape.hat_cycles
            case _:
                return start_of(shape, op), 1

    def later(self, op: Operation, cycles: int) -> tuple[tuple[str, int], ...]:
        """It comes so many cycles after the same for the channel before."""
        if not op.k:
            return ()
        return ((start_of(self.shape, replace(op, result=Value(op.result.letter, op.k - 1))), cycles),)

    def of(self, op: Operation) -> Iterator[Job]:
        """The jobs of an operation."""
        shape, name = self.shape, start_of(self.shape, op)
        match op.kind:
            case Kind.TAKE:
                others = (start_of(shape, other) for other in shape.of(Kind.TAKE) if other is not op)
                yield Job(
                    name, (("memory", 0, 1),), within=tuple((other, 10 * shape.channels_per_rower) for other in others)
                )
            case Kind.MULTIPLY:
                yield from self._multiply(name, op)
            case Kind.MULTIPLY_TWO:
                yield Job(name, (("multiplier", 0, 2), ("memory", 0, 2)))
                catch = catch_of(shape, op)
                yield Job(catch, (), ((name, PRODUCT + 2),), holds=(("sum", name, PRODUCT, 0),))
                yield self._fold(op, "caught pair" if shape.pair else "caught sum", catch)
            case Kind.ROW_SUM:
                uses = (("multiplier", 0, shape.parts), ("memory", 0, shape.parts))
                yield Job(name, uses, (self.ready(op.reads[0]), *self.later(op, shape.parts)))
            case Kind.LOAD:
                yield from self._load(name, op)
            case Kind.TERMS:
                yield self._run(name, op)
            case Kind.TERM:
                yield self._term(name, op)
            case Kind.REDUCE:
                yield from self._reduce(name, op)
            case Kind.COX:
                load, cycles = start_of(shape, self._loads[op.extension]), shape.cox_cycles + TREE + 1
                yield Job(name, (("memory", 0, 1),), ((load, cycles),), ((load, cycles + H_STAYS),))
            case Kind.GIVE:
                yield self._give(name, op)

    def _multiply(self, name: str, op: Operation) -> Iterator[Job]:
        # the first product waits for all words of the operands
        letters = OPERANDS if op.reads[0].letter == OPERANDS[0] else tuple(value.letter for value in op.reads)
        after = [self.ready(Value(letter, op.k)) for letter in letters]
        yield Job(name, (("multiplier", 0, 1), ("memory", 0, 1)), (*after, *self.later(op, 1)))
        fold, caught = self._fold(op, "", name), ("caught product", name, PRODUCT + 1, 0)
        yield replace(fold, after=((name, PRODUCT + 1),), holds=(caught,))

    def _reduce(self, name: str, op: Operation) -> Iterator[Job]:
        n, at = self.shape.steps, first_slot(self.shape)
        run, term = (start_of(self.shape, found[op.reads[0]]) for found in (self._terms, self._single))
        if self._terms[op.reads[0]].opens:
            begins, end = (run, at + PRODUCT), (term, PRODUCT + 1)
        else:
            begins, end = (term, PRODUCT), (run, at + n + PRODUCT)
        yield Job(name, (), (end,), holds=(("sum", *begins, 0),))
        yield self._fold(op, "caught sum", name)

    def _fold(self, op: Operation, caught: str, catch: str) -> Job:
        shape = self.shape
        uses = [("fold", entry, 1) for entry in fold_entries(shape, op)]
        stored = ("memory", fold_cycles(shape, op), 1)
        return Job(fold_of(shape, op), (*uses, stored), ((catch, 1),), holds=((caught, catch, 1, 0),))

    def _load(self, name: str, op: Operation) -> Iterator[Job]:
        shape = self.shape
        if shape.loop:
            read = read_of(op)
            yield Job(read, (("memory", 0, shape.channels_per_rower),), tuple(self.ready(value) for value in op.reads))
            at_once = (
                ((read, OPERAND),) if shape.channels_per_rower > 1 else ()
            )  # words follow one another through one register
            holds = (("waiting", read, OPERAND, shape.channels_per_rower - 1),)
            yield Job(name, (), ((read, OPERAND),), at_once, holds)
        else:
            begun = min(shape.hat_cycles, PRODUCT + 2)  # the register changes from here on
            first, last = self.ready(op.reads[0]), self.ready(op.reads[-1])
            yield Job(name, (), (last,), holds=(("hat", first[0], begun, shape.channels_per_rower - 1),))

    def _run(self, name: str, op: Operation) -> Job:
        shape, n, load = self.shape, self.shape.steps, start_of(self.shape, self._loads[op.extension])
        cox, multiplier = shape.cox_cycles + TREE + 1, ("multiplier", first_slot(shape), n)
        held = (("ring", load, 1, n),) if op.k == shape.channels_per_rower - 1 else ()
        before = self.later(op, n + 2 if shape.channels_per_rower > 2 else n)
        # of many runs, later ones have no choice, which keeps the search small
        latest = before if before and shape.channels_per_rower > 2 else ((load, n + op.k * (max(n, cox) + 6)),)
        uses = (multiplier,) if shape.loop else (("fold", 1, n), multiplier)
        return Job(name, uses, ((load, 0), *before), latest, held)

    def _term(self, name: str, op: Operation) -> Job:
        shape, n, first = self.shape, self.shape.steps, first_slot(self.shape)
        run, cox = start_of(shape, self._terms[op.result]), shape.cox_cycles + TREE + 1
        uses, ready = (("multiplier", 0, 1), ("memory", 0, 1)), self.ready(op.reads[0])
        if op.opens:
            return Job(name, uses, (ready, (run, first - 3)), ((run, first - 1),))
        return Job(name, uses, (ready, (run, first + n)), ((run, max(first + n, cox) + 4),))

    def _give(self, name: str, op: Operation) -> Job:
        shape, memory = self.shape, (("memory", 0, 1),)
        gives = shape.of(Kind.GIVE)
        over_b = gives[: shape.channels_per_rower]
        last = start_of(shape, over_b[-1])
        if shape.numbered:  # what leaves belongs to no operation under way
            return Job(name, memory) if op in over_b else Job(name, memory, ((last, 1),), ((last, 12),))
        ready = self.ready(op.reads[0])
        if op in over_b:
            result = self._makers[Value("w", shape.channels_per_rower - 1)]
            finished = (fold_of(shape, result), fold_cycles(shape, result) - 5)
            return Job(name, memory, (ready, finished, *self.later(op, 1)))
        return Job(name, memory, (ready, (last, 1), *self.later(op, 1)), ((last, 12 * shape.channels_per_rower),))


def jobs(shape: Shape) -> list[Job]:
    """What one product does, to be placed in time; cycle 0 is the first multiplication."""
    made = _Jobs(shape)
    found = [job for op in shape.operations for job in made.of(op)]
    first = start_of(shape, shape.of(Kind.MULTIPLY, Kind.MULTIPLY_TWO)[0])
    return sorted(found, key=lambda job: job.name != first)


@dataclass(frozen=True)
class Program:
    """Start cycles of the jobs of one product, and what follows from them."""

    shape: Shape
    interval: int
    starts: Mapping[str, int]

    @property
    def n(self) -> int:
        """Steps of the ring."""
        return self.shape.steps

    def start(self, op: Operation) -> int:
        """The cycle in which an operation begins; a REDUCE begins when it catches the sum."""
        return self.starts[start_of(self.shape, op)]

    def catch(self, op: Operation) -> int:
        """The cycle in which the sum of two products is caught."""
        return self.starts[catch_of(self.shape, op)]

    def read(self, op: Operation) -> int:
        """The cycle in which the first word for the ring is read (KBE)."""
        return self.starts[read_of(op)]

    def fold(self, op: Operation) -> int:
        """The cycle in which what an operation has made enters the fold."""
        return self.starts[fold_of(self.shape, op)]

    def entries(self, op: Operation) -> list[int]:
        """The cycles in which it enters the fold, pass by pass."""
        return [self.fold(op) + cycles for cycles in fold_entries(self.shape, op)]

    def residue(self, op: Operation) -> int:
        """Cycle in which the residue of an operation is visible and stored."""
        return self.fold(op) + fold_cycles(self.shape, op)

    def first(self, op: Operation) -> int:
        """First multiplication of TERMS."""
        return self.start(op) + first_slot(self.shape)

    def load(self, extension: int) -> int:
        """The cycle in which the ring is loaded."""
        return next(self.start(op) for op in self.shape.of(Kind.LOAD) if op.extension == extension)

    def turned(self, op: Operation) -> int:
        """Steps that the ring has made before TERMS, since the first of its values was in it."""
        return self.start(op) - self.load(op.extension)

    @property
    def _inputs(self) -> list[int]:
        """Starts of the operands' words."""
        return [self.start(op) for op in self.shape.of(Kind.TAKE)]

    @property
    def accept(self) -> int:
        """Cycle in which the operands are accepted: the last of their words is taken. Numbered: the operation is."""
        return self.origin - 1 if self.shape.numbered else max(self._inputs) - 1

    @property
    def origin(self) -> int:
        """Cycle from which the product's slot number is visible to the machine's control."""
        pairs = [self.start(op) for op in self.shape.of(Kind.MULTIPLY_TWO)]
        return min(pairs or self._inputs) - TREE - 1

    @property
    def lead(self) -> int:
        """Cycles before the acceptance in which the operands must already be valid: then it is decided."""
        return self.accept - self.origin + 1

    @property
    def outputs(self) -> list[int]:
        """Starts of the jobs that read the result."""
        return [self.start(op) for op in self.shape.of(Kind.GIVE)]

    @property
    def valid(self) -> int:
        """First cycle in which the result is valid at the output."""
        return max(self.outputs) + 3

    @cached_property
    def distance(self) -> int:
        """Numbered: how many operations later the result can be read."""
        over_a, over_b = self.shape.of(Kind.MULTIPLY_TWO)
        zeta, w = self.shape.of(Kind.REDUCE)
        ready = max(self.residue(w) + 1 - self.start(over_a), self.residue(zeta) + 1 - self.start(over_b))
        return -(-ready // self.interval)

    @property
    def last_slot(self) -> int:
        """The last multiplication."""
        return max(self.start(self.shape.of(Kind.TERM)[-1]), self.first(self.shape.of(Kind.TERMS)[-1]) + self.n - 1)


@lru_cache(maxsize=64)
def program(shape: Shape, interval: int = 0) -> Program:
    """The program with the least interval (or the given one), and for it a latency as small as the solver finds.

    Raises ScheduleError when there is none.
    """
    least = shape.least_interval
    if shape.loop:
        folded = shape.of(Kind.MULTIPLY, Kind.MULTIPLY_TWO, Kind.REDUCE)
        least = max(least, sum(len(fold_entries(shape, op)) for op in folded))
    trials = [interval] if interval else [*range(least, 4 * least)]
    takes = {op.result: start_of(shape, op) for op in shape.of(Kind.TAKE)}
    if shape.numbered:
        over_b, (zeta, w) = shape.of(Kind.MULTIPLY_TWO)[1], (fold_of(shape, op) for op in shape.of(Kind.REDUCE))
        minimise = {w: 1, **({zeta: 1, start_of(shape, over_b): -1} if shape.pair else {})}
    else:
        last = start_of(shape, shape.of(Kind.GIVE)[-1])
        minimise = {last: 2, **{takes[Value(letter)]: -1 for letter in ("xa", "xb")}}
    if shape.pair:  # placements of many intervals' length are easy to find, and their operations too far apart
        span = shape.depth // trials[0] + 3
        return Program(shape, *placement.least_interval(jobs(shape), trials, minimise, effort=4, span=span))
    if shape.channels_per_rower == 1:
        return Program(shape, *placement.least_interval(jobs(shape), trials, minimise))
    if not interval:  # more jobs, and a trial takes up to a minute: in steps that double
        trials = [least, *(least + (max(1, least // 24) << k) for k in range(8))]
    span = shape.depth // trials[0] + 2
    return Program(shape, *placement.least_interval(jobs(shape), trials, minimise, effort=4, span=span))


BLOCK_WORDS = 1024
"""Words of a block RAM."""

LEAST_SLOTS = 3
"""Fewest slots: for a product under way, one that waits, and a spare one."""


def memory_words(shape: Shape, slots: int) -> int:
    """Words that the constants, so many slots and one for what belongs to no product take."""
    return (-(-shape.constants // shape.slot) + slots + 1) * shape.slot


def memory_plan(p: Program) -> tuple[int, int, int]:
    """(depth, first slot, slots): a power of two of words that holds the constants and enough slots, one spare.

    Raises UnsupportedError when there is no room."""
    constants, slot = p.shape.constants, p.shape.slot
    first = -(-constants // slot)
    needed = -(-(p.valid - p.origin) // p.interval) + LEAST_SLOTS - 1
    depth = slot
    while depth < memory_words(p.shape, needed):
        depth *= 2
    if depth > BLOCK_WORDS:
        raise UnsupportedError(
            f"{constants} constants and {needed} slots of {slot} words do not fit {BLOCK_WORDS} of block RAM"
        )
    return depth, first, depth // slot - first - 1
