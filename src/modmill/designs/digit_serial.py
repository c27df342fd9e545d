# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Designs for Montgomery multiplication of binary numbers, and those that process an operand digit by digit.

A digit-serial design, controlled by a counter, lists its operations with their cycles (``schedule``) and defines the
result of each (`evaluate`). Chart, algorithm and probes are derived from these. An operation is evaluated only from a,
b and the values that its step reads, so a dependence that is missing in the chart makes the algorithm wrong.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from amaranth.hdl import Module, Value

from modmill.contract import Binary, Load, Timing
from modmill.design import IO, Cost, DesignInstance, Setting, loadable_modulus
from modmill.interface import Multiplier
from modmill.numbers.moduli import MAX_BITS
from modmill.numbers.montgomery import edges
from modmill.rtl.acceptance import Acceptance
from modmill.rtl.words import CarrySaveWords, WordSubtraction
from modmill.schedule import Operation, Operations, Schedule, Step

PLACES = 2
"""Products under way in a digit-serial machine: one in the loop, one in the final addition or waiting at the output."""

SUBTRACT = Setting(
    "subtract", bool, True, "operands and results below p; false: below 2 p, without the final subtraction"
)
LOADABLE = Setting("loadable", bool, False, "load the modulus at run time: any odd one of at most that width")


def word_setting(name: str, default: int, meaning: str, smaller: str = "") -> Setting:
    """The setting for the bits of a sum of two operands that are added in each cycle. A default of 0 is automatic."""
    return Setting(
        name, int, default, meaning, least=min(default, 1), most=MAX_BITS + 2, smaller=smaller,
        depends="a sum is 1 bit longer than an operand, which has the bits of p, 1 more without subtract",
        limits=lambda p, settings: (1, p.bit_length() + (not settings["subtract"]) + 1),
    )  # fmt: skip


def scanned_bits(bits: int, settings: Mapping[str, Any]) -> int:
    """Bits of x that the loop processes: ``bits`` of the modulus, and 2 more without ``subtract``."""
    return bits + 2 * (not settings["subtract"])


class BinaryMontgomery(DesignInstance):
    """Common base of the designs for Montgomery multiplication of binary numbers; abstract.

    Setting ``subtract``: operands and results are below p, and one conditional subtraction ends a product; otherwise
    they are below 2 p. Setting ``loadable``: the modulus is loaded. A design that lacks a setting does neither. The
    binary form always subtracts.
    """

    forms = IO

    def __init__(self, p: int, settings: dict[str, Any], bits: int = 0) -> None:
        """``bits``: width of the largest modulus of the core; 0: the width of p."""
        self.p, self.settings = p, settings
        self.bits = bits or p.bit_length()
        self.subtract: bool = settings.get("subtract", False)
        self.loadable: bool = settings.get("loadable", False)

    @property
    @abstractmethod
    def R(self) -> int:
        """A power of two that depends only on ``bits``: the result is a b / R (mod p)."""

    @property
    def operand_bits(self) -> int:
        """Width of operands and results, in bits."""
        return self.bits + (not self.subtract)

    @property
    def cost(self) -> Cost:
        """No DSP block and no table; a subclass may override it."""
        return Cost(dsp=0, memory_bits=0, multiplications=1)

    @property
    def factor(self) -> int:
        return pow(self.R, -1, self.p)

    @property
    def representation(self) -> Binary:
        return Binary(self.operand_bits)

    @property
    def bounds(self) -> tuple[Fraction, Fraction, Fraction]:
        one, two = Fraction(1), Fraction(2)
        return (one, one, one) if self.subtract else (two, two**2, 4 * Fraction(self.p, self.R) + 1)

    @property
    def gain(self) -> Fraction:
        return Fraction(0) if self.subtract else Fraction(self.p, self.R)

    @property
    def load(self) -> Load | None:
        return Load(self.bits, (self.p,), 1, self.R.bit_length() - 1) if self.loadable else None

    def at(self, p: int) -> DesignInstance:
        if not self.loadable:
            return super().at(p)
        return type(self)(loadable_modulus(p, self.bits), self.settings, self.bits)

    def _binary(self) -> BinaryMontgomery:
        """The same design with operands below p and the subtraction; R is the same."""
        out = type(self)(self.p, self.settings, self.bits)
        out.subtract = True
        return out

    def binary_component(self) -> Multiplier:
        return self._binary().component()

    def binary_timing(self) -> Timing:
        return self._binary().schedule.timing

    def corners(self) -> list[tuple[int, int]]:
        return edges(self.p, self.R, self.contract("native").largest_operand + 1)


def put(
    op: Operation, unit: str, start: int, reads: Iterable[Step] = (), *, cycles: int = 1, busy: int | None = None
) -> Step:
    """The step of ``op`` on ``unit``, from cycle ``start`` for ``cycles``; it reads the results of the steps ``reads``.

    ``busy``: cycles for which it occupies the unit, as in `Operation.on`.
    """
    return op.on(unit, start, cycles, [read.does for read in reads], busy=busy)


class End(Operations):
    """The last operations of a product, word by word, on the units of `rtl.words`."""

    SUM = "v{}"  # a word of V = S + C, and the carry
    DIFFERENCE = "d{}"  # a word of V, the word of V - p, and the inverted borrow
    WORD = "w{}"  # a word of V, if nothing is subtracted
    RESULT = "z"


class DigitSerial(BinaryMontgomery):
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

    def planned(self, steps: Sequence[Step], busy: int) -> Schedule:
        """The schedule of a machine that one product occupies for ``busy`` cycles.

        ``steps``: the operations of one product, each after those that it reads, the result last. The interval is
        ``busy``, or longer so that at most PLACES products are under way.
        """
        return Schedule(tuple(steps), max(busy, -(-(steps[-1].end + 1) // PLACES)))

    def addition(self, pair: Step, count: int) -> list[Step]:
        """Steps for the ``count`` words of S + C, one in each cycle after step ``pair``, and those of `subtraction`."""
        made: list[Step] = []
        for j in range(count):
            made.append(put(End.SUM(j), "adder", pair.end + j, (pair, *made[-1:])))
        return made + self.subtraction(made)

    def subtraction(self, words: Sequence[Step]) -> list[Step]:
        """Steps for V - p, or for V unless ``subtract``, word by word, and for the choice.

        ``words``: for each word of V the step that computes it; the words arrive one in each cycle.
        """
        made: list[Step] = []
        for j, word in enumerate(words):
            start = words[0].end + j
            if self.subtract:
                made.append(put(End.DIFFERENCE(j), "subtractor", start, (word, *made[-1:])))
            else:
                made.append(put(End.WORD(j), "words", start, (word,)))
        return [*made, put(End.RESULT(), "choice", made[-1].end, made)]

    def ended(self, op: Operation, read: Mapping[Operation, Any], w: int) -> Any:
        """The value of an operation of kind `End`, with words of ``w`` bits. The value of each step that computes a
        word of V is a list that starts with this word."""
        mask, (first, *rest) = (1 << w) - 1, read.values()
        match op.kind:
            case End.SUM:
                total = sum(number >> w * op.numbers[0] & mask for number in first) + (rest[0][1] if rest else 0)
                return [total & mask, total >> w]
            case End.DIFFERENCE:
                total = first[0] + (~self.p >> w * op.numbers[0] & mask) + (rest[0][2] if rest else 1)
                return [first[0], total & mask, total >> w]
            case End.WORD:
                return first[:1]
            case _:
                words = [first, *rest]
                fits = words[-1][2] if len(words[-1]) > 1 else 0
                return sum(word[fits] << w * j for j, word in enumerate(words))


class SerialMachine(Multiplier):
    """Machine of a digit-serial design; it has stream k if the modulus is loaded.

    It never stalls: it accepts operands if one of its PLACES for a result is free. Timing does not depend on values.
    """

    _fitted: Any

    def __init__(self, fitted: DigitSerial) -> None:
        self._fitted = fitted
        width, load = fitted.operand_bits, fitted.load
        super().__init__(width, width, width, k=load.width if load else 0)

    @property
    def timing(self) -> Timing:
        timing: Timing = self._fitted.schedule.timing
        return timing

    def acceptance(self, m: Module, p: int, bits: int) -> Acceptance:
        """The input side; ``p``, of ``bits`` bits: the modulus, or what is loaded for it."""
        return Acceptance(m, self, p, bits, PLACES)

    def finish(
        self, m: Module, z: Value, modulus_word: Value, valid: Value, last: Value, count: int,
        registers: Mapping[Any, Any],
    ) -> None:  # fmt: skip
        """Connect the words of the result to a `WordSubtraction`, and add a probe for every step, at the step's end.

        ``registers``: registers by operation, or else by its kind; those of the subtraction are known. Raises KeyError
        for a step without a register.
        """
        end = WordSubtraction(m, self, z, modulus_word, valid, last, count=count, subtract=self._fitted.subtract)
        where = {End.DIFFERENCE: end.registers, End.WORD: end.registers, End.RESULT: self.o_r, **registers}
        for step in self._fitted.schedule.steps:
            register = where[step.does if step.does in where else step.does.kind]
            self.probes.append((step.name, register, step.end))

    def add_and_finish(
        self, m: Module, last: Value, s: Value, c: Value, modulus: Value, word: int, count: int, pair: Operation,
        registers: Mapping[Any, Any],
    ) -> None:  # fmt: skip
        """`finish` for a result S + C, which `CarrySaveWords` adds word by word; its registers are known too.

        The pair (S, C), the result of operation ``pair``, is at ``s`` and ``c`` in the cycle in which ``last`` is high.
        """
        words = CarrySaveWords(m, last, s, c, modulus, word=word, count=count)
        where = {**registers, pair: words.pair, End.SUM: words.registers}
        self.finish(m, words.z, words.modulus_word, words.valid, words.last, count, where)
