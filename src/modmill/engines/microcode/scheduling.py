# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A list scheduler: it assigns the operations of a basic block to the instructions of a unit.

It fills one instruction after the other. Among the operations with readable operands, those with the longest path to
the end of the block come first: one product, and as many sums as the unit allows. A value can be read ``distance``
instructions after its operation. A variable is overwritten only after the last read of its old value. All operations
that depend on one digit precede those that depend on the next.

Basic blocks overlap: a block does not wait for its last results. Its length is the least one with which the next block
finds everything that it reads; a loop's block counts as its own successor. Several placements are tried, which differ
in the order of paths of almost equal length. The shortest one is taken, and among those the one with the fewest slots.

Source: R. Graham: Bounds on Multiprocessing Timing Anomalies. SIAM Journal on Applied Mathematics 17(2), 1969 (list
scheduling by critical path). With one product in an instruction the number of products is a lower bound of
``Placed.length``.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate

from modmill.contract import UnsupportedError
from modmill.engines.microcode.expressions import MUL, READ, SELECT, BasicBlock, Element, Name
from modmill.engines.microcode.program import ENTRY, FIXED, PAIR, DatapathSpec
from modmill.schedule import Schedule, Step

_ROUNDS = 4
"""Placements of a loop, each after the first with the read times that the end of the one before imposes."""
_ATTEMPTS, _WORK = 16, 4000
"""Limits of all attempts to place a block: their number, and the number of nodes placed by all of them together."""
_SPREAD, _ORDERS = 7, 8
"""Perturbation of path lengths: at most this many instructions, and number of weights of the source order."""
_PATIENCE, _FEW = 6, 6
"""Stop after 6 attempts without a gain, or when a block outside a loop has at most 6 temporary values alive."""
_LENGTH_MAX = 100_000
"""Give up on a block with more instructions."""


@dataclass(frozen=True)
class RegisterGroups:
    """Variables of a thread in adjacent slots: ``pairs``, and ``tables`` as (name, number of entries)."""

    pairs: tuple[tuple[str, str], ...] = ()
    tables: tuple[tuple[str, int], ...] = ()

    @cached_property
    def partner(self) -> dict[str, str]:
        """The other member of each pair, by name."""
        return {a: b for x, y in self.pairs for a, b in ((x, y), (y, x))}

    def touched(self, block: BasicBlock, node: int) -> tuple[Name, ...]:
        """Variables and table entries of the thread that a node may read from slots, for all digits."""
        source = block.nodes[node].source
        if source is None or not source.name:
            return ()
        if source.pick == ENTRY:
            name = str(source.name)
            return tuple((name, k) for k in range(dict(self.tables).get(name, 0)))
        if source.pick == PAIR:
            return source.name, self.partner[str(source.name)]
        return (source.name,)


@dataclass(frozen=True)
class Placed:
    """A scheduled basic block. ``instructions``: number of the instruction of each node, -1 for reads. ``length``:
    number of instructions. ``advances``: instructions after which the next digit is current."""

    block: BasicBlock
    instructions: tuple[int, ...]
    length: int
    advances: tuple[int, ...]

    def schedule(self, unit: DatapathSpec, names: Mapping[int, str] | None = None) -> Schedule:
        """A schedule for the chart, in which one cycle is one instruction. ``names``: label of each node."""
        labels = dict(names or {}) or {k: f"{_SIGNS[n.kind]}{k}" for k, n in enumerate(self.block.nodes)}
        by_instruction: dict[int, int] = {}
        steps = []
        for k in sorted(range(len(self.instructions)), key=lambda k: self.instructions[k]):
            node, instruction = self.block.nodes[k], self.instructions[k]
            if node.kind == READ:
                continue
            lane = "multiplier"
            if node.kind != MUL:
                by_instruction[instruction] = by_instruction.get(instruction, 0) + 1
                lane = f"adder {by_instruction[instruction]}" if unit.sums > 1 else "adder"
            reads = tuple(labels[a] for a in dict.fromkeys(node.args) if self.block.nodes[a].kind != READ)
            steps.append(Step(labels[k], lane, instruction, distance(unit, node.kind), reads, busy=1))
        return Schedule(tuple(steps), self.length)


_SIGNS = {MUL: "×", "add": "+", "sub": "−", SELECT: "?", READ: ""}


def distance(unit: DatapathSpec, kind: str) -> int:
    """Number of instructions from an operation of a kind to the first instruction that may read its result."""
    return unit.product_distance if kind == MUL else unit.sum_distance


def ready_to_place(block: BasicBlock, groups: RegisterGroups, unit: DatapathSpec, one: int) -> BasicBlock:
    """The same block, pruned, with copies inserted so that it can be scheduled.

    In the returned block each output has an operation of its own, and no output must be written before the old value
    of its variable is read. ``one``: 1 in the domain.
    """
    block = block.pruned()
    while (name := _output_to_copy(block, groups)) is not None:
        element = Element(block, block.outputs[name])
        block.set(name, block.copied(element, one if unit.added else None))
        block = block.pruned()
    return block


def _output_to_copy(block: BasicBlock, groups: RegisterGroups) -> Name | None:
    seen: set[int] = set()
    for name, node in block.outputs.items():
        if block.nodes[node].kind == READ or node in seen:
            return name
        seen.add(node)
    cycle = _cyclic(block, groups)
    return next((name for name, node in block.outputs.items() if node in cycle), None)


def _cyclic(block: BasicBlock, groups: RegisterGroups) -> set[int]:
    """Nodes in or behind a cycle of dependences: reads of results, and reads of old values before overwriting."""
    waits: dict[int, set[int]] = {k: set(node.args) for k, node in enumerate(block.nodes)}
    for name, readers in _readers(block, groups).items():
        if name in block.outputs:
            writer = block.outputs[name]
            waits[writer] |= readers - {writer}
    sorter = TopologicalSorter(waits)
    with suppress(CycleError):
        sorter.prepare()
    while sorter.is_active():
        for done in sorter.get_ready():
            del waits[done]
            sorter.done(done)
    return set(waits)


def _readers(block: BasicBlock, groups: RegisterGroups) -> dict[Name, set[int]]:
    """Operations that read each variable or table entry from its slot."""
    found: dict[Name, set[int]] = {}
    for k, node in enumerate(block.nodes):
        if node.kind == READ:
            for name in groups.touched(block, k):
                found.setdefault(name, set()).update(block.users[k])
    return found


def _epochs(block: BasicBlock) -> dict[int, int]:
    """Number of the digit of each operation that depends on one. Raises UnsupportedError for one with two digits."""
    found: dict[int, int] = {}
    for k, node in enumerate(block.nodes):
        if node.kind == SELECT:
            found[k] = node.epoch
        elif node.source and node.source.pick != FIXED:
            for user in block.users[k]:
                if found.setdefault(user, node.source.epoch) != node.source.epoch:
                    raise UnsupportedError(f"block {block.name}: an operation reads slots selected by two digits")
    return found


def place(
    block: BasicBlock,
    groups: RegisterGroups,
    unit: DatapathSpec,
    ready: Mapping[Name, int] | None = None,
    attempt: int = 0,
) -> Placed:
    """Schedule a block that `ready_to_place` has prepared.

    ``ready``: first instruction in which each variable can be read, where that is not 0. ``attempt``: seed of the
    perturbation of path lengths; 0 for none. The length of the result ends with its last operation; the next block may
    require more. Raises UnsupportedError if the unit cannot do an operation, or one depends on two digits.
    """
    nodes = block.nodes
    operations = [k for k, node in enumerate(nodes) if node.kind != READ]
    before, earliest = _waits(block, groups, unit, operations, ready or {})
    after: dict[int, list[tuple[int, int]]] = {k: [] for k in operations}
    for k in operations:
        for a, later in before[k]:
            after[a].append((k, later))
    height = _heights(operations, after, {k: distance(unit, nodes[k].kind) for k in operations})
    if attempt:
        height = _perturbed(height, attempt)
    epochs = _epochs(block)
    waiting = [sum(e == digit for e in epochs.values()) for digit in range(block.digits + 1)]
    left = {k: len(before[k]) for k in operations}
    free = [k for k in operations if not left[k]]
    instructions = [-1] * len(nodes)
    advances: list[int] = []
    instruction, digit, done = 0, 0, 0
    while done < len(operations):
        taken = []
        candidates = [k for k in free if earliest[k] <= instruction and epochs.get(k, digit) == digit]
        room = {True: 1, False: unit.sums}
        for k in sorted(candidates, key=lambda k: (-height[k], k)):
            product = nodes[k].kind == MUL
            if room[product]:
                room[product] -= 1
                taken.append(k)
        for k in taken:
            instructions[k] = instruction
            done += 1
            free.remove(k)
            if k in epochs:
                waiting[digit] -= 1
            for follower, later in after[k]:
                earliest[follower] = max(earliest[follower], instruction + later)
                left[follower] -= 1
                if not left[follower]:
                    free.append(follower)
        if digit < block.digits and not waiting[digit]:
            advances.append(instruction)
            digit += 1
        instruction += 1
        if instruction > _LENGTH_MAX:
            raise UnsupportedError(
                f"block {block.name} cannot be scheduled on a unit with {unit.sums} sums in an instruction"
            )
    rest = range(instruction, instruction + block.digits - digit)
    return Placed(block, tuple(instructions), rest.stop, (*advances, *rest))


def _waits(
    block: BasicBlock, groups: RegisterGroups, unit: DatapathSpec, operations: Iterable[int], ready: Mapping[Name, int]
) -> tuple[dict[int, list[tuple[int, int]]], dict[int, int]]:
    """For each operation its predecessors, as (operation, distance in instructions), and its earliest instruction."""
    nodes = block.nodes
    before = {
        k: [(a, distance(unit, nodes[a].kind)) for a in dict.fromkeys(nodes[k].args) if nodes[a].kind != READ]
        for k in operations
    }
    earliest = dict.fromkeys(operations, 0)
    for name, readers in _readers(block, groups).items():
        writer = block.outputs.get(name)
        for reader in readers:
            earliest[reader] = max(earliest[reader], ready.get(name, 0))
            if writer is not None and writer != reader:
                before[writer].append((reader, 1))
    for name, writer in block.outputs.items():
        earliest[writer] = max(earliest[writer], ready.get(name, 0))
    return before, earliest


def _heights(
    operations: Iterable[int], after: Mapping[int, list[tuple[int, int]]], own: Mapping[int, int]
) -> dict[int, int]:
    """Length in instructions of the longest path that begins with each operation. ``own``: distance of each."""
    found: dict[int, int] = {}
    for start in operations:
        stack = [start]
        while stack:
            k = stack[-1]
            missing = [f for f, _ in after[k] if f not in found]
            if k in found or not missing:
                found[k] = max([own[k], *(later + found[f] for f, later in after[k])])
                stack.pop()
            else:
                stack += missing
    return found


def _perturbed(height: Mapping[int, int], attempt: int) -> dict[int, int]:
    """Path lengths with random changes, and with a preference for source order, which uses values soon."""
    chance, spread = random.Random(attempt), attempt % _SPREAD + 1
    early = Fraction(attempt % _ORDERS, len(height))
    return {k: length + chance.randrange(spread) - int(early * k * spread) for k, length in height.items()}


def touches(placed: Placed, groups: RegisterGroups) -> dict[Name, int]:
    """The first instruction that reads or writes each variable or table entry."""
    found: dict[Name, int] = {}
    for name, readers in _readers(placed.block, groups).items():
        if readers:
            found[name] = min(placed.instructions[k] for k in readers)
    for name, writer in placed.block.outputs.items():
        at = placed.instructions[writer]
        found[name] = min(found.get(name, at), at)
    return found


def available(placed: Placed, unit: DatapathSpec) -> dict[Name, int]:
    """The first instruction, counted from the block's start, that may read each variable that the block sets."""
    nodes = placed.block.nodes
    return {name: placed.instructions[k] + distance(unit, nodes[k].kind) for name, k in placed.block.outputs.items()}


def _needed(written: Mapping[Name, int], touched: Mapping[Name, int]) -> int:
    """The least length of a block from which the next one finds what it reads."""
    return max((instruction - touched.get(name, 0) for name, instruction in written.items()), default=0)


def pressure(placed: Placed) -> int:
    """Maximum number of temporary values, outputs not counted, that are alive at the same time."""
    nodes, instructions = placed.block.nodes, placed.instructions
    given = set(placed.block.outputs.values())
    change = [0] * (placed.length + 2)
    for k, users in enumerate(placed.block.users):
        if nodes[k].kind != READ and k not in given:
            change[instructions[k]] += 1
            change[max((instructions[u] for u in users), default=instructions[k]) + 1] -= 1
    return max(accumulate(change))


def _of_length(placed: Placed, length: int) -> Placed:
    return replace(placed, length=max(placed.length, length))


def join(blocks: Sequence[BasicBlock], loop: int, groups: RegisterGroups, unit: DatapathSpec) -> list[Placed]:
    """Schedule consecutive blocks, each so long that the next one finds everything that it reads.

    ``loop``: number of the block that is also its own successor, -1 for none. A variable that the next block does not
    touch must be readable at the next block's start. The outputs of the last block are readable at its end. Raises
    UnsupportedError for a block that cannot be scheduled.
    """
    placed: list[Placed] = []
    pending: dict[Name, int] = {}
    for number, block in enumerate(blocks):
        found = _best(block, groups, unit, None if number == loop else pending)
        if placed:
            placed[-1] = _of_length(placed[-1], _needed(available(placed[-1], unit), touches(found, groups)))
        placed.append(found)
        pending = {name: max(0, instruction - found.length) for name, instruction in available(found, unit).items()}
    placed[-1] = _of_length(placed[-1], max(available(placed[-1], unit).values(), default=0))
    return placed


def _best(block: BasicBlock, groups: RegisterGroups, unit: DatapathSpec, pending: Mapping[Name, int] | None) -> Placed:
    """The shortest of several placements, and among those the one with the least `pressure`. ``pending``: first
    instruction in which each variable can be read; None for a loop, which follows itself."""
    attempts = max(1, min(_ATTEMPTS, _WORK // max(1, len(block.nodes))))
    best: tuple[tuple[int, int], int, Placed] | None = None
    for attempt in range(attempts):
        for found in _placements(block, groups, unit, pending, attempt):
            cost = found.length, pressure(found)
            if best is None or cost < best[0]:
                best = cost, attempt, found
        if best is not None and (attempt - best[1] >= _PATIENCE or (pending is not None and best[0][1] <= _FEW)):
            break
    assert best is not None
    return best[2]


def _placements(
    block: BasicBlock, groups: RegisterGroups, unit: DatapathSpec, pending: Mapping[Name, int] | None, attempt: int
) -> Iterator[Placed]:
    if pending is not None:
        yield place(block, groups, unit, pending, attempt)
        return
    ready: dict[Name, int] = {}
    for _ in range(_ROUNDS):
        found = place(block, groups, unit, ready, attempt)
        found = _of_length(found, _needed(available(found, unit), touches(found, groups)))
        yield found
        end = max(found.instructions, default=-1) + 1
        ready = {name: max(0, instruction - end) for name, instruction in available(found, unit).items()}
