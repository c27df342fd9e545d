# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A list scheduler: which operation of a block is done in which instruction of a unit.

Instruction by instruction, of the operations whose numbers can be read the one with the longest path to the block's end
goes first: one product, and as many sums as the unit does. A number is read ``distance`` instructions after it was
made, or later. A variable is written after its old number was read, and what reads one digit comes before all that
reads the next.

Sections follow one another without waiting for the last results: a block is as long as the next one's first reads of
what it writes ask for, and a loop's block as its own. Of several placements, which differ where paths are almost
equally long, the shortest is taken, and of those the one that needs the fewest slots.

Source: list scheduling by critical path, R. Graham: Bounds on multiprocessing timing anomalies, SIAM Journal on Applied
Mathematics 17(2), 1969; that it is close to the best for one product an instruction shows in ``Placed.length`` against
the number of products.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

from modmill.contract import UnsupportedError
from modmill.engines.microcode.expressions import MUL, READ, BasicBlock, Element, Name
from modmill.engines.microcode.program import ENTRY, FIXED, PAIR, DatapathSpec
from modmill.schedule import Schedule, Step

_ROUNDS = 4
"""How often a loop is placed anew with the reads that its own end allows."""
_TURNS, _WORK, _SPREAD, _ORDERS = 16, 4000, 7, 8
"""Placements that are tried at most, and operations of all of them; instructions by which paths change places."""
_PATIENCE, _FEW = 6, 6
"""Placements without a gain after which no more are tried; slots that are few enough."""
_IDLE = 100_000


@dataclass(frozen=True)
class RegisterGroups:
    """What belongs together in slots: ``pairs`` of variables, and ``tables`` with the number of entries of each."""

    pairs: tuple[tuple[str, str], ...] = ()
    tables: tuple[tuple[str, int], ...] = ()

    @cached_property
    def partner(self) -> dict[str, str]:
        """The other of each pair."""
        return {a: b for x, y in self.pairs for a, b in ((x, y), (y, x))}

    def touched(self, block: BasicBlock, node: int) -> tuple[Name, ...]:
        """Variables and entries of this program's tables that a node reads from slots."""
        source = block.nodes[node].source
        if source is None or not source.name:
            return ()
        if source.pick == ENTRY:
            size = dict(self.tables).get(source.name, 0)
            return tuple((source.name, k) for k in range(size))
        if source.pick == PAIR:
            return source.name, self.partner[source.name]
        return (source.name,)


@dataclass(frozen=True)
class Placed:
    """A block with the instruction of each operation, -1 for what is only read, and its number of instructions."""

    block: BasicBlock
    instructions: tuple[int, ...]
    length: int
    advances: tuple[int, ...]
    """Instructions after which the next digit is seen."""

    def schedule(self, unit: DatapathSpec, names: Mapping[int, str] | None = None) -> Schedule:
        """The instructions as a schedule, whose cycles are instructions: for the chart."""
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


_SIGNS = {MUL: "×", "add": "+", "sub": "−", READ: ""}


def distance(unit: DatapathSpec, kind: str) -> int:
    """Instructions from an operation to the first instruction that may read its result."""
    return unit.product_distance if kind == MUL else unit.sum_distance


# ---------------------------------------------------------------------------------------------- order


def ready_to_place(block: BasicBlock, layers: RegisterGroups, unit: DatapathSpec, one: int) -> BasicBlock:
    """The same block, pruned, in which every number that is set is made by an operation of its own, which does not
    have to come before the old number is read: else it is copied."""
    block = block.pruned()
    while True:
        wrong = _wrong_output(block, layers)
        if wrong is None:
            return block
        element = Element(block, block.outputs[wrong])
        copy = block.copied(element, one if unit.added else None)
        block.outputs[wrong] = copy.node
        block = block.pruned()


def _wrong_output(block: BasicBlock, layers: RegisterGroups) -> Name | None:
    seen: set[int] = set()
    for name, node in block.outputs.items():
        if block.nodes[node].kind == READ or node in seen:
            return name
        seen.add(node)
    circle = _circle(block, layers)
    return next((name for name, node in block.outputs.items() if node in circle), None)


def _circle(block: BasicBlock, layers: RegisterGroups) -> set[int]:
    """Operations that can be done in no order: each waits for another of them, for its number or as the last to read
    what it overwrites."""
    waits: dict[int, set[int]] = {k: set(node.args) for k, node in enumerate(block.nodes)}
    writers: dict[int, set[int]] = {}
    for name, readers in _readers(block, layers).items():
        if name in block.outputs:
            writer = block.outputs[name]
            waits[writer] |= readers - {writer}
    for k, before in waits.items():
        for a in before:
            writers.setdefault(a, set()).add(k)
    free = [k for k, before in waits.items() if not before]
    while free:
        done = free.pop()
        del waits[done]
        for k in writers.get(done, ()):
            waits[k].discard(done)
            if not waits[k]:
                free.append(k)
    return set(waits)


def _readers(block: BasicBlock, layers: RegisterGroups) -> dict[Name, set[int]]:
    """Operations that read each variable or entry from its slot."""
    found: dict[Name, set[int]] = {}
    for k, node in enumerate(block.nodes):
        if node.kind == READ:
            for name in layers.touched(block, k):
                found.setdefault(name, set()).update(block.users[k])
    return found


def _epochs(block: BasicBlock) -> dict[int, int]:
    """The digit that each operation sees, of those that see one."""
    found: dict[int, int] = {}
    for k, node in enumerate(block.nodes):
        if node.source and node.source.pick != FIXED:
            for user in block.users[k]:
                if found.setdefault(user, node.source.epoch) != node.source.epoch:
                    raise UnsupportedError(f"block {block.name}: an operation reads slots picked by two digits")
    return found


# ---------------------------------------------------------------------------------------------- placing


def place(
    block: BasicBlock,
    layers: RegisterGroups,
    unit: DatapathSpec,
    ready: Mapping[Name, int] | None = None,
    turn: int = 0,
) -> Placed:
    """Instructions for a block that `ready_to_place` has prepared. ``ready``: instructions at its start in which
    variables cannot be read yet. The length is that of its last instruction; what follows may ask for more. ``turn``:
    paths that are almost as long as others change places, in another way for each turn from 1 on."""
    nodes = block.nodes
    operations = [k for k, node in enumerate(nodes) if node.kind != READ]
    before, earliest = _waits(block, layers, unit, operations, ready or {})
    after: dict[int, list[tuple[int, int]]] = {k: [] for k in operations}
    for k in operations:
        for a, later in before[k]:
            after[a].append((k, later))
    height = _heights(operations, after, {k: distance(unit, nodes[k].kind) for k in operations})
    if turn:
        chance, spread = random.Random(turn), turn % _SPREAD + 1
        early = Fraction(turn % _ORDERS, len(operations))  # as written, numbers are used soon after they are made
        height = {
            k: instructions + chance.randrange(spread) - int(early * k * spread) for k, instructions in height.items()
        }
    epochs = _epochs(block)
    waiting = [sum(e == digit for e in epochs.values()) for digit in range(block.digits + 1)]
    left = {k: len(before[k]) for k in operations}
    free = [k for k in operations if not left[k]]
    instructions = [-1] * len(nodes)
    advances: list[int] = []
    instruction, digit, done = 0, 0, 0
    while done < len(operations):
        taken: list[int] = []
        can = [k for k in free if earliest[k] <= instruction and epochs.get(k, digit) == digit]
        can.sort(key=lambda k: (-height[k], k))
        room = {True: 1, False: unit.sums}
        for k in can:
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
            for follower, instructions_later in after[k]:
                earliest[follower] = max(earliest[follower], instruction + instructions_later)
                left[follower] -= 1
                if not left[follower]:
                    free.append(follower)
        if digit < block.digits and not waiting[digit]:
            advances.append(instruction)
            digit += 1
        instruction += 1
        if instruction > _IDLE:
            raise UnsupportedError(
                f"block {block.name} cannot be placed on a unit with {unit.sums} sums an instruction"
            )
    while digit < block.digits:
        advances.append(instruction)
        digit, instruction = digit + 1, instruction + 1
    return Placed(block, tuple(instructions), instruction, tuple(advances))


def _waits(
    block: BasicBlock, layers: RegisterGroups, unit: DatapathSpec, operations: Iterable[int], ready: Mapping[Name, int]
) -> tuple[dict[int, list[tuple[int, int]]], dict[int, int]]:
    """For each operation those that it waits for, with the instructions between, and its earliest instruction."""
    nodes = block.nodes
    before = {
        k: [(a, distance(unit, nodes[a].kind)) for a in dict.fromkeys(nodes[k].args) if nodes[a].kind != READ]
        for k in operations
    }
    earliest = dict.fromkeys(operations, 0)
    for name, readers in _readers(block, layers).items():
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
    """Instructions from each operation to the end of the longest path that it begins."""
    found: dict[int, int] = {}
    for start in operations:
        stack = [start]
        while stack:
            k = stack[-1]
            missing = [f for f, _ in after[k] if f not in found]
            if k in found or not missing:
                found[k] = max([own[k], *(instructions + found[f] for f, instructions in after[k])])
                stack.pop()
            else:
                stack += missing
    return found


# ---------------------------------------------------------------------------------------------- joining


def touches(placed: Placed, layers: RegisterGroups) -> dict[Name, int]:
    """The first instruction in which each variable or entry is read or written."""
    found: dict[Name, int] = {}
    for name, readers in _readers(placed.block, layers).items():
        if readers:
            found[name] = min(placed.instructions[k] for k in readers)
    for name, writer in placed.block.outputs.items():
        found[name] = min(found.get(name, placed.instructions[writer]), placed.instructions[writer])
    return found


def available(placed: Placed, unit: DatapathSpec) -> dict[Name, int]:
    """The first instruction, counted from the block's start, in which each variable that it sets can be read."""
    nodes = placed.block.nodes
    return {name: placed.instructions[k] + distance(unit, nodes[k].kind) for name, k in placed.block.outputs.items()}


def _needed(written: Mapping[Name, int], touched: Mapping[Name, int]) -> int:
    return max((instruction - touched.get(name, 0) for name, instruction in written.items()), default=0)


def pressure(placed: Placed) -> int:
    """Numbers that a block keeps for itself at once, at most."""
    nodes, instructions = placed.block.nodes, placed.instructions
    given = set(placed.block.outputs.values())
    change = [0] * (placed.length + 2)
    for k, users in enumerate(placed.block.users):
        if nodes[k].kind != READ and k not in given:
            change[instructions[k]] += 1
            change[max((instructions[u] for u in users), default=instructions[k]) + 1] -= 1
    return max(accumulate(change))


def _of_length(placed: Placed, length: int) -> Placed:
    return Placed(placed.block, placed.instructions, max(placed.length, length), placed.advances)


def join(blocks: Sequence[BasicBlock], loop: int, layers: RegisterGroups, unit: DatapathSpec) -> list[Placed]:
    """All blocks in instructions, each so long that the next finds what it reads, the one with number ``loop`` after
    itself
    too; -1: none is a loop. What the next block does not touch it is taken to touch at its start. What the last
    block sets can be read at its end."""
    placed: list[Placed] = []
    pending: dict[Name, int] = {}
    for number, block in enumerate(blocks):
        found = _best(block, layers, unit, None if number == loop else pending)
        if placed:
            length = _needed(available(placed[-1], unit), touches(found, layers))
            placed[-1] = _of_length(placed[-1], length)
        placed.append(found)
        pending = {name: max(0, instruction - found.length) for name, instruction in available(found, unit).items()}
    placed[-1] = _of_length(placed[-1], max(available(placed[-1], unit).values(), default=0))
    return placed


def _best(block: BasicBlock, layers: RegisterGroups, unit: DatapathSpec, pending: Mapping[Name, int] | None) -> Placed:
    """The shortest of some placements, and of those the one that keeps the fewest numbers; without ``pending`` of a
    loop, which follows itself."""
    turns = max(1, min(_TURNS, _WORK // max(1, len(block.nodes))))
    best: tuple[tuple[int, int], int, Placed] | None = None
    for turn in range(turns):
        for found in _placements(block, layers, unit, pending, turn):
            cost = found.length, pressure(found)
            if best is None or cost < best[0]:
                best = cost, turn, found
        if best is not None and (turn - best[1] >= _PATIENCE or (pending is not None and best[0][1] <= _FEW)):
            break
    assert best is not None
    return best[2]


def _placements(
    block: BasicBlock, layers: RegisterGroups, unit: DatapathSpec, pending: Mapping[Name, int] | None, turn: int
) -> Iterator[Placed]:
    if pending is not None:
        yield place(block, layers, unit, pending, turn)
        return
    ready: dict[Name, int] = {}
    for _ in range(_ROUNDS):
        found = place(block, layers, unit, ready, turn)
        found = _of_length(found, _needed(available(found, unit), touches(found, layers)))
        yield found
        end = max(found.instructions, default=-1) + 1
        ready = {name: max(0, instruction - end) for name, instruction in available(found, unit).items()}
