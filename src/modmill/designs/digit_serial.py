# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Designs that process an operand digit by digit under control of a counter: one list of typed operations for each.

A design lists its operations with their cycles (``schedule``) and defines the result of each (`evaluate`). Chart,
algorithm and probes are derived from these. An operation is evaluated only from a, b and the values that its step
reads, so a dependence that is missing in the chart makes the algorithm wrong.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from modmill.design import DesignInstance, Multiplier
from modmill.rtl.words import WordSubtraction
from modmill.schedule import Operation, Operations, Schedule, Step

PLACES = 2
"""Products under way: one in the loop, one in the final addition or waiting at the output."""


def put(
    op: Operation, unit: str, start: int, reads: Iterable[Step] = (), *, cycles: int = 1, busy: int | None = None
) -> Step:
    """The step of ``op`` on ``unit``, from cycle ``start`` for ``cycles``; it reads the results of the steps ``reads``.

    ``busy``: cycles for which it occupies the unit, as in `Operation.on`.
    """
    return op.on(unit, start, cycles, [read.does for read in reads], busy=busy)


def planned(steps: Sequence[Step], busy: int) -> Schedule:
    """The schedule of a machine that one product occupies for ``busy`` cycles.

    ``steps``: the operations of one product, each after those that it reads, the result last. The interval is ``busy``,
    or longer so that at most PLACES products are under way.
    """
    return Schedule(tuple(steps), max(busy, -(-(steps[-1].end + 1) // PLACES)))


class DigitSerial(DesignInstance):
    """A digit-serial design; abstract. Subclasses define ``schedule`` and `evaluate`."""

    @abstractmethod
    def evaluate(self, op: Operation, read: Mapping[Operation, Any], a: int, b: int) -> Any:
        """The value of ``op``. ``a``, ``b``: port values; ``read``: values of the operations that its step reads, in
        the order of the step."""

    def standing(self, op: Operation, value: Any) -> Any:
        """The part of ``value`` that is in the operation's register at the step's end; by default all of it."""
        return value

    def trace(self, a: int, b: int) -> Iterator[tuple[str, Any]]:
        plan = self.schedule
        made: dict[str, Any] = {}
        for step in plan.steps:
            read = {plan[name].does: made[name] for name in step.reads}
            made[step.name] = self.evaluate(step.does, read, a, b)
            yield step.name, self.standing(step.does, made[step.name])


class DigitSerialMachine(Multiplier):
    """Machine of a digit-serial design; it has stream k if the modulus is loaded."""

    _fitted: Any

    def __init__(self, fitted: DigitSerial) -> None:
        self._fitted = fitted
        width, load = fitted.representation.width, fitted.load
        super().__init__(width, width, width, k=load.width if load else 0)

    def watch(self, end: WordSubtraction, registers: Mapping[Any, Any]) -> None:
        """Add a probe for every step, at the step's end. ``registers``: registers by operation, or else by its kind;
        those of ``end`` are known. Raises KeyError for a step without a register."""
        where = {End.DIFFERENCE: end.registers, End.WORD: end.registers, End.RESULT: self.o_r, **registers}
        for step in self._fitted.schedule.steps:
            register = where[step.does if step.does in where else step.does.kind]
            self.probes.append((step.name, register, step.end))


class End(Operations):
    """The last operations of a product, word by word, on the units of `rtl.words`."""

    SUM = "v{}"  # a word of V = S + C, and the carry
    DIFFERENCE = "d{}"  # a word of V, the word of V - p, and the inverted borrow
    WORD = "w{}"  # a word of V, if nothing is subtracted
    RESULT = "z"


def addition(pair: Step, count: int, subtract: bool) -> list[Step]:
    """Steps for the ``count`` words of S + C, one in each cycle after step ``pair``, and those of `subtraction`."""
    made: list[Step] = []
    for j in range(count):
        made.append(put(End.SUM(j), "adder", pair.end + j, (pair, *made[-1:])))
    return made + subtraction(made, subtract)


def subtraction(words: Sequence[Step], subtract: bool) -> list[Step]:
    """Steps for V - p, or for V unless ``subtract``, word by word, and for the choice.

    ``words``: for each word of V the step that computes it; the words arrive one in each cycle.
    """
    made: list[Step] = []
    for j, word in enumerate(words):
        start = words[0].end + j
        if subtract:
            made.append(put(End.DIFFERENCE(j), "subtractor", start, (word, *made[-1:])))
        else:
            made.append(put(End.WORD(j), "words", start, (word,)))
    return [*made, put(End.RESULT(), "choice", made[-1].end, made)]


def ended(op: Operation, read: Mapping[Operation, Any], w: int, p: int = 0) -> Any:
    """The value of an operation of kind `End`, with words of ``w`` bits. The value of each step that computes a word of
    V is a list that starts with this word."""
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
