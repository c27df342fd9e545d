# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Why expressions of integers are in their ranges: steps that a certificate can repeat, in the order of their making.

A step uses only steps before it. What a run asked of its expressions is also a step, a `Choice`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modmill.proofs.arithmetic.polynomials import Expression

Parts = tuple[tuple[int, "Fact"], ...]
"""Facts, each times a factor above 0."""


@dataclass(frozen=True, eq=False)
class Sum:
    """``scale`` times the statement is the sum of the parts and a rest, whose bound is that of its terms. ``digits``:
    numbers in the rest and the digits that replace them before, in this order."""

    scale: int = 1
    parts: Parts = ()
    digits: tuple[tuple[tuple[int, ...], Expression, Fact, Fact], ...] = ()


@dataclass(frozen=True, eq=False)
class Split:
    """Both cases give the bound: ``on`` <= ``end``, and ``on`` > ``end``. ``assumed``: the factor of this."""

    on: Expression
    end: int
    cases: tuple[tuple[int, Sum], tuple[int, Sum]]


@dataclass(frozen=True, eq=False)
class Product:
    """The bound of a product follows from the ranges of both factors."""

    x: Expression
    y: Expression
    ends: tuple[Fact | None, Fact | None, Fact | None, Fact | None]


@dataclass(frozen=True, eq=False)
class Given:
    """The core or the claim says it: the range of an operand, of the word of a gate, or the case."""


GIVEN = Given()
Why = Sum | Split | Product | Given


@dataclass(frozen=True, eq=False)
class Fact:
    """``sign`` times ``x`` is at most ``bound``. Those of a `Cut` or `Lemma` have no ``why``."""

    x: Expression | None
    sign: int
    bound: int
    why: Why | None


class Floor:
    """The floor of ``x`` / 2^``bits``: x - 2^bits floor is at ``most`` 2^bits - 1, and at ``least`` 0."""

    def __init__(self, x: Expression, bits: int) -> None:
        self.x, self.bits = x, bits
        self.most, self.least = Fact(None, 1, (1 << bits) - 1, None), Fact(None, -1, 0, None)


class Atom:
    """A number of which only the range is known."""

    def __init__(self, number: int, low: int, high: int) -> None:
        self.number, self.low, self.high = number, low, high


class Cut(Floor):
    """Atom ``number`` is the floor. ``ends``: what is known of x."""

    def __init__(self, number: int, x: Expression, bits: int, ends: tuple[Fact | None, Fact | None]) -> None:
        super().__init__(x, bits)
        self.number, self.ends = number, ends


class Lemma(Floor):
    """The floor is ``value``, which ``why`` shows of both ends."""

    def __init__(self, x: Expression, bits: int, value: Expression, why: tuple[Sum, Sum]) -> None:
        super().__init__(x, bits)
        self.value, self.why = value, why


@dataclass(frozen=True, eq=False)
class Choice:
    """What was decided of ``x``, as ``kind`` says, with the facts that allow it."""

    kind: str
    x: Expression
    bits: int
    value: Any
    facts: tuple[Fact | None, ...] = ()


@dataclass(frozen=True, eq=False)
class Equality:
    """``factor`` times (``x`` - ``value``), which is 0; ``most`` and ``least`` say so."""

    factor: int
    x: Expression
    value: int
    most: Fact
    least: Fact


Step = Fact | Atom | Cut | Lemma | Choice


def parts(pairs: Iterable[tuple[int, Fact | None]]) -> Parts:
    """The parts of a sum, without those whose range is that of their terms."""
    return tuple((factor, fact) for factor, fact in pairs if fact is not None and factor)


def used(steps: Sequence[Step], last: Iterable[Fact]) -> list[Step]:
    """The steps that the ``last`` facts, the floors asked for, choices and the ranges of atoms need, in order."""
    wanted: set[int] = {id(fact) for fact in last}
    kept: list[Step] = []
    for step in reversed(steps):
        if isinstance(step, Fact) and id(step) not in wanted and not _of_atom(step):
            continue
        kept.append(step)
        wanted.update(map(id, needs(step)))
    return kept[::-1]


def _of_atom(fact: Fact) -> bool:
    terms = fact.x.terms if fact.x else {}
    return len(terms) == 1 and all(len(m) == 1 and c == 1 for m, c in terms.items())


def needs(step: Step) -> Iterable[Fact]:
    """The facts that a step names."""
    match step:
        case Cut():
            yield from filter(None, step.ends)
        case Choice():
            yield from filter(None, step.facts)
        case Lemma():
            for one in step.why:
                yield from _of(one)
        case Fact(why=why) if why is not None:
            yield from _of(why)
        case _:
            pass


def _of(why: Why) -> Iterable[Fact]:
    match why:
        case Sum():
            yield from (fact for _, fact in why.parts)
            for _, _, least, most in why.digits:
                yield from (least, most)
        case Split():
            for _, one in why.cases:
                yield from _of(one)
        case Product():
            yield from filter(None, why.ends)
        case _:
            pass
