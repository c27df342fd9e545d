# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The proof of products as lines of JSON, which `checker.recheck` reads. docs/certificate.md explains each line.

Expressions and facts have the numbers in which they come; a floor is two facts, the upper one first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

from modmill.proofs.arithmetic.integers import Integers
from modmill.proofs.arithmetic.polynomials import Expression
from modmill.proofs.arithmetic.reasons import (
    Atom,
    Choice,
    Cut,
    Equality,
    Fact,
    Lemma,
    Product,
    Split,
    Step,
    Sum,
    Why,
    used,
)
from modmill.proofs.arithmetic.symbolic import Symbolic, control
from modmill.proofs.netlist import Netlist

VERSION = 4
"""Of the format."""


@dataclass(frozen=True)
class Conclusion:
    """The result of a run: both ends of its range, and what was equal to 0 for its congruence."""

    most: Fact
    least: Fact
    equal: Sequence[Equality]

    @property
    def every(self) -> list[Fact]:
        """All facts that are named."""
        return [self.most, self.least, *(fact for one in self.equal for fact in (one.most, one.least))]


@dataclass(frozen=True)
class Witness:
    """The result of a run with residues (`residues`): the number R, the quotient Q and the divisor D; ``facts``: both
    ends of D R - Q p, of Q and of R, the upper ones first."""

    number: Expression
    quotient: Expression
    divisor: int
    facts: tuple[Fact, ...]


def head(net: Netlist, claim: dict[str, Any]) -> str:
    """The first line: netlist, claim, the order of the cells, full adders, and the nets of control."""
    run = Symbolic(net, Integers())
    adders = [[c.name, c.type, *(c.inputs[port] for port in "ABC")] for c in run.order() if c.type not in _plain(net)]
    order = [c.name for c in run.order()]
    return _line("products", VERSION, netlist_digest(net), claim, order, adders, control(net))


def _plain(net: Netlist) -> set[str]:
    return {cell["type"] for cell in net.cells.values()} | {"read"}


def netlist_digest(net: Netlist) -> str:
    """SHA-256 of a netlist."""
    text = json.dumps(net.module, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def run_line(phase: int, full: bool, *, known: bool, cases: bool) -> str:
    """The line before a run, or before one case of it."""
    return _line("run", phase, full, known, cases)


def idle_lines(full: bool, bits: str, make: Integers) -> Iterator[str]:
    """The lines of an interval without operands, before the runs of its phases. ``bits``: with which control begins."""
    yield _line("idle", full, bits)
    writer = _Writer()
    for step in used(make.steps, ()):
        yield from writer.lines(step)
    yield _line("end")


def body(make: Integers, found: Conclusion | Witness, *, cases: bool) -> Iterator[str]:
    """The lines of a run, or of one case of it. ``cases``: choices by data are cases, or none is made."""
    last = found.facts if isinstance(found, Witness) else found.every
    writer = _Writer()
    steps = [step for step in make.steps if cases or not (isinstance(step, Choice) and step.kind == "decide")]
    for step in used(steps, last):
        yield from writer.lines(step)
    yield from writer.end(found)


class _Writer:
    """The numbers of expressions and facts."""

    def __init__(self) -> None:
        self._expressions: dict[Expression, int] = {}
        self._facts: dict[int, int] = {}
        self._new: list[str] = []

    def lines(self, step: Step) -> list[str]:
        """The line of a step, after those of new expressions."""
        self._new = []
        match step:
            case Atom():
                line = _line("atom", step.number, step.low, step.high)
            case Cut():
                line = _line("cut", step.number, self._number(step.x), step.bits, *map(self._maybe, step.ends))
                self._count(step.most, step.least)
            case Lemma():
                value = self._number(step.value)
                line = _line("floor", self._number(step.x), step.bits, value, *map(self._sum, step.why))
                self._count(step.most, step.least)
            case Choice():
                facts = list(map(self._maybe, step.facts))
                line = _line("choice", step.kind, self._number(step.x), step.bits, step.value, facts)
            case Fact():
                assert step.x is not None and step.why is not None
                kind, *rest = self._why(step.why)
                line = _line(kind, self._number(step.x), step.sign, step.bound, *rest)
                self._count(step)
        return [*self._new, line]

    def end(self, found: Conclusion | Witness) -> list[str]:
        """The last line of a run, after those of new expressions."""
        self._new = []
        if isinstance(found, Witness):
            numbers = self._number(found.number), self._number(found.quotient), found.divisor
            return [*self._new, _line("end", *numbers, list(map(self.fact, found.facts)))]
        equal = [[one.factor, *map(self.fact, (one.most, one.least))] for one in found.equal]
        return [_line("end", self.fact(found.most), self.fact(found.least), equal)]

    def _why(self, why: Why) -> list[Any]:
        match why:
            case Sum():
                digits = [
                    [list(cut), self._number(digit), self.fact(least), self.fact(most)]
                    for cut, digit, least, most in why.digits
                ]
                return ["sum", *self._sum(why), *([digits] if digits else [])]
            case Split():
                cases = [[factor, *self._sum(one)] for factor, one in why.cases]
                return ["split", self._number(why.on), why.end, *cases]
            case Product():
                return ["product", self._number(why.x), self._number(why.y), list(map(self._maybe, why.ends))]
            case _:
                return ["given"]

    def _sum(self, why: Sum) -> list[Any]:
        return [why.scale, [[factor, self.fact(fact)] for factor, fact in why.parts]]

    def _number(self, x: Expression) -> int:
        if x not in self._expressions:
            self._expressions[x] = len(self._expressions)
            self._new.append(_line("terms", *([c, *m] for m, c in x.terms.items())))
        return self._expressions[x]

    def _count(self, *facts: Fact) -> None:
        for fact in facts:
            self._facts[id(fact)] = len(self._facts)

    def fact(self, fact: Fact) -> int:
        """The number of a fact."""
        return self._facts[id(fact)]

    def _maybe(self, fact: Fact | None) -> int | None:
        return None if fact is None else self.fact(fact)


def _line(*parts: Any) -> str:
    return json.dumps(parts, separators=(",", ":"))


def write(text: IO[str], lines: Iterable[str]) -> None:
    """Write lines."""
    text.writelines(f"{line}\n" for line in lines)
