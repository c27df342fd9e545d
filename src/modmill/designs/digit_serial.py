# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Designs that take an operand digit by digit and whose control is a counter: one list of typed operations for each.

A design lists its operations with their cycles (``schedule``) and says what each makes of what it reads (`evaluate`).
Chart, algorithm and probes are made from that. An operation gets nothing but a, b and the values that its step reads,
so the algorithm is wrong where the chart leaves out a dependence.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from modmill.design import DesignInstance, Multiplier
from modmill.rtl.words import WordSubtraction
from modmill.schedule import Operation, Operations, Schedule, Step

PLACES = 2
"""Products under way: one in the loop, one in the end or waiting at the output."""


def put(
    op: Operation, unit: str, start: int, reads: Iterable[Step] = (), *, cycles: int = 1, busy: int | None = None
) -> Step:
    """The step in which a unit does ``op`` from cycle ``start`` on, with what the steps ``reads`` make."""
    return op.on(unit, start, cycles, [read.does for read in reads], busy=busy)


def planned(steps: Sequence[Step], busy: int) -> Schedule:
    """The schedule of a machine that its product occupies for ``busy`` cycles. ``steps``: the operations of one
    product, each after those that it reads, the result last. The interval is ``busy``, unless the result would not be
    out in time."""
    return Schedule(tuple(steps), max(busy, -(-(steps[-1].end + 1) // PLACES)))


class DigitSerial(DesignInstance):
    """A design of this kind."""

    @abstractmethod
    def evaluate(self, op: Operation, read: Mapping[Operation, Any], a: int, b: int) -> Any:
        """What ``op`` makes of the port values a and b and of ``read``, the values of the operations that it reads, in
        the order in which its step names them."""

    def standing(self, op: Operation, value: Any) -> Any:
        """What of a value stands in the operation's register at the step's end: all, unless words follow it."""
        return value

    def trace(self, a: int, b: int) -> Iterator[tuple[str, Any]]:
        plan = self.schedule
        made: dict[str, Any] = {}
        for step in plan.steps:
            read = {plan[name].does: made[name] for name in step.reads}
            made[step.name] = self.evaluate(step.does, read, a, b)
            yield step.name, self.standing(step.does, made[step.name])


class DigitSerialMachine(Multiplier):
    """Its machine: ports as wide as its numbers, and stream k where it loads the modulus."""

    _fitted: Any

    def __init__(self, fitted: DigitSerial) -> None:
        self._fitted = fitted
        width, load = fitted.representation.width, fitted.load
        super().__init__(width, width, width, k=load.width if load else 0)

    def watch(self, end: WordSubtraction, registers: Mapping[Any, Any]) -> None:
        """Make a probe for every step: the register of its operation or else of its kind, at the step's end. Raises
        KeyError for a step without a register."""
        where = {End.DIFFERENCE: end.registers, End.WORD: end.registers, End.RESULT: self.o_r, **registers}
        for step in self._fitted.schedule.steps:
            register = where[step.does if step.does in where else step.does.kind]
            self.probes.append((step.name, register, step.end))


# ---------------------------------------------------------------------------------------------- the end


class End(Operations):
    """What ends a product word by word: `rtl.words`."""

    SUM = "v{}"  # a word of V = S + C, and the carry
    DIFFERENCE = "d{}"  # a word of V, that of V - p, and 0 for a borrow
    WORD = "w{}"  # a word of V, where nothing is subtracted
    RESULT = "z"


def addition(pair: Step, count: int, subtract: bool) -> list[Step]:
    """The ``count`` words of S + C, one a cycle, from the pair (S, C), and what follows them (`subtraction`)."""
    made: list[Step] = []
    for j in range(count):
        made.append(put(End.SUM(j), "adder", pair.end + j, (pair, *made[-1:])))
    return made + subtraction(made, subtract)


def subtraction(words: Sequence[Step], subtract: bool) -> list[Step]:
    """The subtraction as the words of V come, one a cycle, and the choice; ``words``: the step that makes each."""
    made: list[Step] = []
    for j, word in enumerate(words):
        start = words[0].end + j
        if subtract:
            made.append(put(End.DIFFERENCE(j), "subtractor", start, (word, *made[-1:])))
        else:
            made.append(put(End.WORD(j), "words", start, (word,)))
    return [*made, put(End.RESULT(), "choice", made[-1].end, made)]


def ended(op: Operation, read: Mapping[Operation, Any], w: int, p: int = 0) -> Any:
    """What an operation of the end makes, on words of ``w`` bits. Each step that makes a word of V has a list of
    values, whose first is that word."""
    mask, (first, *rest) = (1 << w) - 1, read.values()
    match op.kind:
        case End.SUM:
            total = sum(number >> w * op.numbers[0] & mask for number in first) + (rest[0][1] if rest else 0)
            return [total & mask, total >> w]
        case End.DIFFERENCE:
            total = first[0] + (~p >> w * op.numbers[0] & mask) + (rest[0][2] if rest else 1)
            return [first[0], total & mask, total >> w]
        case End.WORD:
            return first[:1]
        case _:
            words = [first, *rest]
            fits = words[-1][2] if len(words[-1]) > 1 else 0
            return sum(word[fits] << w * j for j, word in enumerate(words))
