# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The program of the cox-rower machine: the jobs of each operation, and the cycles in which they start.

A multiplication that starts in cycle t:

    cycle t       addresses at the block RAM
    cycle t + 3   operands in the registers in front of the multiplier
    cycle t + 7   product, behind the three registers of the DSP block and one more
    cycle t + 8   sum that includes the product

A word that starts a sum is read `START` cycles after the start of the first product that is added to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from modmill import placement
from modmill.contract import Timing, UnsupportedError
from modmill.designs.cox_rower.operations import OPERANDS, Kind, Method, Operation, Value
from modmill.designs.cox_rower.shape import OPERAND, PRODUCT, TREE, Shape
from modmill.placement import Job
from modmill.schedule import ScheduleError

H_STAYS = 8
"""Largest number of cycles for which h waits in its register."""

START = PRODUCT - OPERAND
"""Cycles from the start of the first product of a sum to the read of the word that starts the sum."""

_TERM = ("w~ c", "h B")
"""Names of the TERM jobs, which add one product to the sum of extension 1 and 2."""


def job_of(shape: Shape, op: Operation, part: str = "") -> str:
    """The name of a job of an operation. (Stored placements depend on these names.)

    ``part``: empty for the first job; ``fold``: folds the result and stores the residue; ``catch``: copies the sum of
    two products into the register before the fold; ``read``: reads the words for the ring (KBE).
    """
    shown = shape.shown(op.result)
    match op.kind, part:
        case _, "fold":
            return f"{shown} fold"
        case Kind.MULTIPLY_TWO, "catch":
            return f"catch {shown}"
        case Kind.LOAD, _:
            return f"{part or 'load'} {op.extension}"
        case Kind.TAKE, _:
            return f"in {shown}"
        case Kind.GIVE, _:
            return f"out {shown}"
        case Kind.ROW_SUM, _:
            return shape.named(f"hat {op.extension}", op.k)
        case Kind.TERMS, _:
            return shape.named(f"ring {op.extension}", op.k)
        case Kind.TERM, _:
            return shape.named(_TERM[op.extension - 1], op.k)
        case Kind.REDUCE, _ if op.result.letter == "v":
            return "catch v"
        case Kind.REDUCE, _:
            return shape.named(f"catch {op.extension}", op.k)
        case Kind.START, _:
            return f"start {shown}"
    return shown


def label(shape: Shape, op: Operation, unit: str, number: int = 1) -> str:
    """The name of what an operation leaves in the register of a unit, in its ``number``-th step on that unit.

    The i-th term of TERMS is q_i in the first extension, e_i in the second. Passes of a fold are numbered if there are
    several.
    """
    name = shape.shown(op.result)
    match op.kind, unit:
        case Kind.TERMS, "fold":
            return shape.named(f"{'-XZ'[op.extension]}{number}", op.k) + " mod"
        case Kind.TERMS, _:
            return shape.named(f"{'-qe'[op.extension]}{number}", op.k)
        case Kind.TERM, _:
            return job_of(shape, op)
        case Kind.ROW_SUM, "multiplier":
            return f"{name} terms"
        case Kind.REDUCE, "sum":
            return shape.shown(op.reads[0])
        case Kind.GIVE, _:
            return "out"
        case Kind.MULTIPLY, "fold":
            name = f"{name} mod"
    several = unit == "fold" and len(fold_entries(shape, op)) > 1
    return f"{name}/{number}" if several else name


def folded_bound(shape: Shape, op: Operation) -> int:
    """Exclusive bound of the value that an operation folds."""
    return shape.products_bound(1) if op.kind is Kind.MULTIPLY else shape.sum_bound


def fold_entries(shape: Shape, op: Operation) -> list[int]:
    """Cycles after the start of the fold in which a value enters it, one for each pass of the loop."""
    return [k * shape.loop_pass for k in range(len(shape.bounds(folded_bound(shape, op))))] if shape.loop else [0]


def fold_cycles(shape: Shape, op: Operation) -> int:
    """Cycles from the start of the fold to the visible residue."""
    return len(fold_entries(shape, op)) * shape.loop_pass if shape.loop else shape.fold_latency


def first_slot(shape: Shape) -> int:
    """Cycles from the start of TERMS to its first multiplication."""
    return -1 if shape.loop else shape.fold_latency - 1


class _Jobs:
    """The jobs of one product, made from its operations."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._makers = {op.result: op for op in shape.operations if op.kind is not Kind.GIVE}

    def ready(self, value: Value) -> tuple[str, int]:
        """(job, cycles): ``value`` can be read from that many cycles after the start of the job on."""
        shape, op = self.shape, self._makers[value]
        match op.kind:
            case Kind.MULTIPLY | Kind.MULTIPLY_TWO | Kind.REDUCE:
                return job_of(shape, op, "fold"), fold_cycles(shape, op) + 1
            case Kind.ROW_SUM:
                return job_of(shape, op), shape.hat_cycles
            case _:
                return job_of(shape, op), 1

    def job_of(self, kind: Kind, value: Value) -> str:
        """The name of the first job of the operation of a kind that computes ``value``."""
        return job_of(self.shape, self.shape.maker(kind, value))

    def later(self, op: Operation, cycles: int) -> tuple[tuple[str, int], ...]:
        """The condition that ``op`` starts ``cycles`` or more after the same operation of the previous channel; empty
        for the first channel."""
        if not op.k:
            return ()
        return ((job_of(self.shape, replace(op, result=Value(op.result.letter, op.k - 1))), cycles),)

    def of(self, op: Operation) -> Iterator[Job]:
        """Yield the jobs of an operation, with their units, distances and holds (see `placement.Job`)."""
        shape, name = self.shape, job_of(self.shape, op)
        match op.kind:
            case Kind.TAKE:
                others = (job_of(shape, other) for other in shape.of(Kind.TAKE) if other is not op)
                within = tuple((other, 10 * shape.channels_per_rower) for other in others)
                yield Job(name, (("memory", 0, 1),), within=within)
            case Kind.MULTIPLY:
                yield from self._multiply(name, op)
            case Kind.MULTIPLY_TWO:
                yield Job(name, (("multiplier", 0, 2), ("memory", 0, 2)))
                catch = job_of(shape, op, "catch")
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
                load, cycles = self.job_of(Kind.LOAD, op.reads[0]), shape.cox_cycles + TREE + 1
                yield Job(name, (("memory", 0, 1),), ((load, cycles),), ((load, cycles + H_STAYS),))
            case Kind.SHARE:
                fold, cycles = self.ready(op.reads[0])
                cycles += TREE + 1
                yield Job(name, (("memory", 0, 1),), ((fold, cycles),), ((fold, cycles + H_STAYS),))
            case Kind.START:
                ready = [self.ready(value) for value in op.reads]
                term = (job_of(shape, shape.maker(Kind.TERM, op.result)), START)
                yield Job(name, (("memory", 0, 1),), (term, *ready), (term,))
            case Kind.GIVE:
                yield self._give(name, op)

    def _multiply(self, name: str, op: Operation) -> Iterator[Job]:
        # the first product starts after all words of the operands have arrived
        letters = OPERANDS if op.reads[0].letter == OPERANDS[0] else tuple(value.letter for value in op.reads)
        after = [self.ready(Value(letter, op.k)) for letter in letters]
        yield Job(name, (("multiplier", 0, 1), ("memory", 0, 1)), (*after, *self.later(op, 1)))
        fold, caught = self._fold(op, "", name), ("caught product", name, PRODUCT + 1, 0)
        yield replace(fold, after=((name, PRODUCT + 1),), holds=(caught,))

    def _reduce(self, name: str, op: Operation) -> Iterator[Job]:
        n, at = self.shape.steps, first_slot(self.shape)
        terms = self.shape.terms(op.reads[0])
        products = [(at, n) if term.kind is Kind.TERMS else (0, 1) for term in terms]
        begin, end = job_of(self.shape, terms[0]), job_of(self.shape, terms[-1])
        after = (end, products[-1][0] + products[-1][1] + PRODUCT)
        yield Job(name, (), (after,), holds=(("sum", begin, products[0][0] + PRODUCT, 0),))
        yield self._fold(op, "caught sum", name)

    def _fold(self, op: Operation, caught: str, catch: str) -> Job:
        shape = self.shape
        uses = [("fold", entry, 1) for entry in fold_entries(shape, op)]
        stored = ("memory", fold_cycles(shape, op), 1)
        return Job(job_of(shape, op, "fold"), (*uses, stored), ((catch, 1),), holds=((caught, catch, 1, 0),))

    def _load(self, name: str, op: Operation) -> Iterator[Job]:
        shape = self.shape
        if shape.loop:
            read = job_of(shape, op, "read")
            yield Job(read, (("memory", 0, shape.channels_per_rower),), tuple(self.ready(value) for value in op.reads))
            # several words pass through one register, one in each cycle
            at_once = ((read, OPERAND),) if shape.channels_per_rower > 1 else ()
            holds = (("waiting", read, OPERAND, shape.channels_per_rower - 1),)
            yield Job(name, (), ((read, OPERAND),), at_once, holds)
        else:
            first, last = self.ready(op.reads[0]), self.ready(op.reads[-1])
            yield Job(name, (), (last,), holds=(("hat", first[0], shape.hat_changes, shape.channels_per_rower - 1),))

    def _run(self, name: str, op: Operation) -> Job:
        shape, n, load = self.shape, self.shape.steps, self.job_of(Kind.LOAD, op.reads[0])
        cox, multiplier = shape.cox_cycles + TREE + 1, ("multiplier", first_slot(shape), n)
        held = (("ring", load, 1, n),) if op.k == shape.channels_per_rower - 1 else ()
        before = self.later(op, n + 2 if shape.channels_per_rower > 2 else n)
        # fix the distance between later runs to keep the search small
        latest = before if before and shape.channels_per_rower > 2 else ((load, n + op.k * (max(n, cox) + 6)),)
        uses = (multiplier,) if shape.loop else (("fold", 1, n), multiplier)
        return Job(name, uses, ((load, 0), *before), latest, held)

    def _term(self, name: str, op: Operation) -> Job:
        shape, n, first = self.shape, self.shape.steps, first_slot(self.shape)
        uses, ready = (("multiplier", 0, 1), ("memory", 0, 1)), self.ready(op.reads[0])
        added = shape.terms(op.result)
        if len(added) == 1:
            return Job(name, uses, (ready,))
        run, cox = self.job_of(Kind.TERMS, op.result), shape.cox_cycles + TREE + 1
        if op is added[0]:
            return Job(name, uses, (ready, (run, first - 3)), ((run, first - 1),))
        return Job(name, uses, (ready, (run, first + n)), ((run, max(first + n, cox) + 4),))

    def _give(self, name: str, op: Operation) -> Job:
        shape, memory = self.shape, (("memory", 0, 1),)
        gives = shape.of(Kind.GIVE)
        over_b = gives[: shape.channels_per_rower]
        last = job_of(shape, over_b[-1])
        if shape.numbered:  # the number that leaves belongs to no operation in flight
            return Job(name, memory) if op in over_b else Job(name, memory, ((last, 1),), ((last, 12),))
        ready = self.ready(op.reads[0])
        if op in over_b:
            result = self._makers[Value("w", shape.channels_per_rower - 1)]
            finished = (job_of(shape, result, "fold"), fold_cycles(shape, result) - 5)
            return Job(name, memory, (ready, finished, *self.later(op, 1)))
        return Job(name, memory, (ready, (last, 1), *self.later(op, 1)), ((last, 12 * shape.channels_per_rower),))


def jobs(shape: Shape) -> list[Job]:
    """The jobs of one product for `placement.place`; the first job, in cycle 0, is the first multiplication."""
    made = _Jobs(shape)
    found = [job for op in shape.operations for job in made.of(op)]
    first = job_of(shape, shape.of(Kind.MULTIPLY, Kind.MULTIPLY_TWO)[0])
    return sorted(found, key=lambda job: job.name != first)


@dataclass(frozen=True)
class Program:
    """The start cycles of the jobs of one product, and the cycles derived from them.

    Cycle 0 is the first multiplication; ``interval``: cycles between products.
    """

    shape: Shape
    interval: int
    starts: Mapping[str, int]

    def start(self, op: Operation, part: str = "") -> int:
        """The cycle in which a job of an operation starts (`job_of`).

        REDUCE starts with the copy of the sum into the fold's register; ``fold``: the result enters the fold.
        """
        return self.starts[job_of(self.shape, op, part)]

    def entries(self, op: Operation) -> list[int]:
        """The cycles in which the result of an operation enters the fold, one for each pass of the loop."""
        return [self.start(op, "fold") + cycles for cycles in fold_entries(self.shape, op)]

    def residue(self, op: Operation) -> int:
        """The cycle in which the residue of an operation leaves the fold and is stored."""
        return self.start(op, "fold") + fold_cycles(self.shape, op)

    def first(self, op: Operation) -> int:
        """The cycle of the first multiplication of TERMS."""
        return self.start(op) + first_slot(self.shape)

    def load(self, extension: int) -> int:
        """The cycle in which the ring is loaded."""
        return next(self.start(op) for op in self.shape.of(Kind.LOAD) if op.extension == extension)

    def passing(self, op: Operation) -> list[list[int]]:
        """For each step of TERMS and each row the place, among the values loaded, of the one that is multiplied."""
        shape, rows, turned = self.shape, self.shape.rows, self.start(op) - self.load(op.extension)
        steps = (divmod(turned + step, shape.channels_per_rower) for step in range(shape.steps))
        return [[place * rows + (row - back) % rows for row in range(rows)] for back, place in steps]

    def _starts(self, kind: Kind) -> list[int]:
        return [self.start(op) for op in self.shape.of(kind)]

    @property
    def accept(self) -> int:
        """The cycle in which the operands are accepted: their last word is read. Slot machine: the operation is."""
        return self.origin - 1 if self.shape.numbered else max(self._starts(Kind.TAKE)) - 1

    @property
    def origin(self) -> int:
        """The first cycle in which the control logic sees the slot number of the product."""
        return min(self._starts(Kind.MULTIPLY_TWO) or self._starts(Kind.TAKE)) - TREE - 1

    @property
    def lead(self) -> int:
        """Cycles before the acceptance in which the operands must already be valid; the machine decides then."""
        return self.accept - self.origin + 1

    @property
    def outputs(self) -> list[int]:
        """The cycles in which the words of the result are read."""
        return self._starts(Kind.GIVE)

    @property
    def valid(self) -> int:
        """The first cycle in which the result is valid at the output."""
        return max(self.outputs) + 3

    @property
    def timing(self) -> Timing:
        """Timing of the machine."""
        latency = self.valid - self.accept
        return Timing(latency, self.interval, -(-latency // self.interval))

    @cached_property
    def distance(self) -> int:
        """Slot machine: the number of intervals after which an operation can read the result."""
        over_a, over_b = self.shape.of(Kind.MULTIPLY_TWO)
        zeta, w = self.shape.of(Kind.REDUCE)
        ready = max(self.residue(w) + 1 - self.start(over_a), self.residue(zeta) + 1 - self.start(over_b))
        return -(-ready // self.interval)

    @property
    def last_slot(self) -> int:
        """The cycle of the last multiplication."""
        shape = self.shape
        return max(self.start(shape.of(Kind.TERM)[-1]), self.first(shape.of(Kind.TERMS)[-1]) + shape.steps - 1)


@lru_cache(maxsize=64)
def program(shape: Shape, interval: int = 0, *, loadable: bool = False) -> Program:
    """The program with the given interval, 0 for the least, and with the smallest latency that the solver finds.

    ``loadable``: in a cycle of each period no product uses the words' port of the block RAMs, so that a modulus can be
    loaded. Raises ScheduleError if no program is found; for interval 0, below four times the multiplications of a
    product.
    """
    wanted = jobs(shape)
    used = sum(cycles for job in wanted for unit, _, cycles in job.uses if unit == "memory")
    if loadable and 0 < interval <= used:
        raise ScheduleError(f"products use the port of the block RAMs in {used} cycles, and a load needs one more")
    least = max(shape.least_interval, used + 1) if loadable else shape.least_interval
    if shape.loop:
        folded = shape.of(Kind.MULTIPLY, Kind.MULTIPLY_TWO, Kind.REDUCE)
        least = max(least, sum(len(fold_entries(shape, op)) for op in folded))
    trials = [interval] if interval else [*range(least, 4 * least)]
    takes = {op.result: job_of(shape, op) for op in shape.of(Kind.TAKE)}
    if shape.numbered:
        over_b, (zeta, w) = shape.of(Kind.MULTIPLY_TWO)[1], (job_of(shape, op, "fold") for op in shape.of(Kind.REDUCE))
        minimise = {w: 1, **({zeta: 1, job_of(shape, over_b): -1} if shape.pair else {})}
    else:
        last = job_of(shape, shape.of(Kind.GIVE)[-1])
        minimise = {last: 2, **{takes[Value(letter)]: -1 for letter in ("xa", "xb")}}
    long = shape.method is not Method.MONTGOMERY and shape.n > 24
    if (shape.channels_per_rower > 1 or long) and not interval:
        # with more jobs a trial takes up to a minute: try few intervals, in steps that double
        trials = [least, *(least + (max(1, least // 24) << k) for k in range(8))]
    limits = {}
    if shape.channels_per_rower > 1 or shape.pair:
        # of a pair, a placement over many intervals is easy to find, but its `distance` is too long
        limits = {"effort": 4, "span": shape.depth // trials[0] + 2 + shape.pair}
    elif long:
        limits = {"effort": 4, "span": shape.depth // trials[0] + 3}
    return Program(shape, *placement.least_interval(wanted, trials, minimise, **limits))


BLOCK_WORDS = 1024
"""Words of a block RAM."""

LEAST_SLOTS = 3
"""Fewest slots: for a product in flight, a result that waits, and a spare one."""


def memory_words(shape: Shape, slots: int) -> int:
    """Words of block RAM for the constants, ``slots`` slots, and one slot for writes that belong to no product."""
    return (-(-shape.constants // shape.slot) + slots + 1) * shape.slot


def memory_plan(p: Program) -> tuple[int, int, int]:
    """(depth in words, a power of two; number of the first slot; number of slots) of every rower's block RAM.

    Raises UnsupportedError if the constants and the slots of all products in flight, and a spare one, do not fit.
    """
    constants, slot = p.shape.constants, p.shape.slot
    first = -(-constants // slot)
    needed = -(-(p.valid - p.origin) // p.interval) + LEAST_SLOTS - 1
    depth = 1 << (memory_words(p.shape, needed) - 1).bit_length()
    if depth > BLOCK_WORDS:
        raise UnsupportedError(
            f"{constants} constants and {needed} slots of {slot} words do not fit in a block RAM of {BLOCK_WORDS} words"
        )
    return depth, first, depth // slot - first - 1
