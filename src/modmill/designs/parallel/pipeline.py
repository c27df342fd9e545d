# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Registers in a network: the stage in which each operation stands.

An operation stands in the stage of the latest word that it reads, or in the next one if the sum of the delays in the
stage would exceed the period. Stage s works in cycle s, and the words that a later stage reads are in registers from
cycle s + 1 on. For a number of stages the period is the shortest for which they are enough.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from modmill.designs.parallel.network import Kind, Network, Operation, Row

REGISTER = 12
"""Estimated delay of a register, its routing included, in 0.1 ns."""


def allotted(net: Network, period: int) -> list[int]:
    """The stage of each operation, for stages of ``period``, at least the longest delay."""
    ready = dict.fromkeys(range(len(net.widths)), (0, 0))
    stages: list[int] = []
    for operation in net.operations:
        stage, at = max(ready[piece.word] for row in operation.reads for piece in row)
        if at + operation.delay > period:
            stage, at = stage + 1, 0
        for word in operation.words:
            ready[word] = stage, at + operation.delay
        stages.append(stage)
    return stages


def longest(net: Network) -> int:
    """The longest delay of an operation."""
    return max(operation.delay for operation in net.operations)


def most_stages(net: Network) -> int:
    """Number of stages for the shortest period."""
    return max(allotted(net, longest(net))) + 1


def period(net: Network, stages: int) -> int:
    """The shortest period for which ``stages`` are enough."""
    low, high = longest(net), max(net.times)
    while low < high:
        middle = (low + high) // 2
        if max(allotted(net, middle)) < stages:
            high = middle
        else:
            low = middle + 1
    return low


@dataclass(frozen=True)
class Group:
    """The words of operations of one kind in one stage that are in registers at its end. ``reads``: the kinds and
    stages from whose registers they are computed; ``first``: the first cycle of the operations, the one before their
    stage if a DSP block has the registers of its operands."""

    kind: Kind
    stage: int
    words: tuple[int, ...]
    reads: tuple[tuple[Kind, int], ...]
    first: int


@dataclass(frozen=True)
class Pipeline:
    """A network in stages of ``period``."""

    network: Network
    period: int

    @cached_property
    def stages(self) -> list[int]:
        """The stage of each operation."""
        return allotted(self.network, self.period)

    @property
    def depth(self) -> int:
        """Number of stages."""
        return max(self.stages) + 1

    @cached_property
    def made(self) -> dict[int, int]:
        """The stage in which a word is made; operands and constants are in none."""
        return {
            w: s for operation, s in zip(self.network.operations, self.stages, strict=True) for w in operation.words
        }

    @cached_property
    def uses(self) -> dict[int, list[int]]:
        """The stages in which a word is read."""
        found: dict[int, list[int]] = defaultdict(list)
        for operation, stage in zip(self.network.operations, self.stages, strict=True):
            for word in read(operation.reads):
                found[word].append(stage)
        return found

    def captures(self, operation: Operation, stage: int) -> bool:
        """Whether a DSP block has the registers of its operands, and of its product: both come and go with a stage."""
        before = (self.made.get(word, stage) for word in read(operation.reads))
        return operation.kind is Kind.PRODUCT and all(s == stage - 1 for s in before) and self.leaves(operation, stage)

    def leaves(self, operation: Operation, stage: int) -> bool:
        """Whether no operation of the same stage reads what ``operation`` makes."""
        return all(use > stage for word in operation.words for use in self.uses[word])

    @cached_property
    def groups(self) -> list[Group]:
        """All groups, in the order of the stages."""
        net = self.network
        captured: set[int] = set()
        sources: dict[int, set[tuple[Kind, int]]] = defaultdict(set)
        words: dict[tuple[Kind, int], list[int]] = defaultdict(list)
        first: dict[tuple[Kind, int], int] = {}
        for operation, stage in zip(net.operations, self.stages, strict=True):
            if self.captures(operation, stage):
                captured.update(read(operation.reads))
        of = {word: (op.kind, s) for op, s in zip(net.operations, self.stages, strict=True) for word in op.words}
        for operation, stage in zip(net.operations, self.stages, strict=True):
            key = operation.kind, stage
            for word in read(operation.reads):
                if word in of:
                    local = of[word][1] == stage or word in captured
                    sources[operation.words[0]] |= sources[word] if local else {of[word]}
            first[key] = min(first.get(key, stage), stage - self.captures(operation, stage))
            for word in operation.words:
                sources[word] = sources[operation.words[0]]
                last = operation.kind is Kind.RESULT
                if word not in captured and (last or any(use > stage for use in self.uses[word])):
                    words[key].append(word)
        order = sorted(words, key=lambda key: (key[1], list(Kind).index(key[0])))
        return [
            Group(kind, stage, tuple(words[kind, stage]),
                  tuple(sorted(set().union(*(sources[w] for w in words[kind, stage])), key=order.index)),
                  first[kind, stage])
            for kind, stage in order
        ]  # fmt: skip


def read(rows: Sequence[Row]) -> Iterator[int]:
    """The words of ``rows``, each once."""
    return iter(dict.fromkeys(piece.word for row in rows for piece in row))
