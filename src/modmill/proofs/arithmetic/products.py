# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The result of one product proved for all operands, over the integers: congruent to a b factor, and in its range.

The netlist runs cycle by cycle with the operands of one product as unknown integers (`symbolic`). Everything else
may be anything: the contents of memories and of registers with data before the reset, the ports while nothing is
offered, and the operands of the products before and after. The result is then a polynomial in a, b and floors; it is
congruent to a b factor if all other coefficients are multiples of p.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import IO, Any

from modmill.contract import Binary, Digits, Form
from modmill.numbers.shown import shortened
from modmill.proofs.arithmetic.certificate import Conclusion, body, head, run_line, write
from modmill.proofs.arithmetic.integers import Integers
from modmill.proofs.arithmetic.polynomials import Expression, Monomial
from modmill.proofs.arithmetic.reasons import Equality
from modmill.proofs.arithmetic.symbolic import OPERANDS, Symbolic
from modmill.proofs.arithmetic.word_rules import Bits
from modmill.proofs.netlist import Netlist

_PATIENCE = 4
"""Latencies after which a result must have come."""
_CONGRUENCE, _RANGE = "congruence", "range"
_MOST_MATCHED = 6
"""Most floors that are compared with each other."""
_MOST_CASES = 8
"""Most cases of choices by data, such as the last subtraction of the modulus."""


@dataclass(frozen=True)
class Claim:
    """What is to be proved: for operands from 0 to ``largest`` the result is congruent to their product times
    ``factor`` modulo ``p`` and below ``end``. Forms and timing as in `contract.Contract`. ``reset``: its cycles."""

    p: int
    factor: int
    operand: Form
    result: Form
    largest: int
    end: int
    latency: int
    interval: int
    in_flight: int
    reset: int = 1

    def describe(self) -> dict[str, Any]:
        """The claim as JSON."""
        return {**vars(self), "operand": self.operand.describe(), "result": self.result.describe()}

    @property
    def line(self) -> str:
        """The claim in words."""
        operands = f"operands from 0 to {shortened(self.largest)}"
        if isinstance(self.operand, Digits):
            operands += f" in {self.operand.d} digits of {self.operand.r + 2} bits"
        return f"for all {operands}: o_r is congruent to their product times factor, and below {shortened(self.end)}"


@dataclass(frozen=True)
class Start:
    """One run. ``phase``: cycles between reset and operands. ``full``: other products before and after it, as many as
    the core takes. ``seed``: of the control bits that the reset does not set."""

    phase: int
    full: bool
    seed: int = 1

    @property
    def line(self) -> str:
        """The run in words."""
        return (
            f"{'between other products' if self.full else 'alone'}, first operands {self.phase} cycles after the reset"
        )


@dataclass(frozen=True)
class Outcome:
    """The result of a run. ``open``: what is not proved, each with what remains; empty if all is. ``lines``: of its
    certificate, if one was asked for."""

    start: Start
    terms: int
    atoms: int
    open: tuple[str, ...]
    seconds: float
    lines: tuple[str, ...] = field(default=(), repr=False)


@dataclass
class ProductProof:
    """All runs."""

    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def open(self) -> list[Outcome]:
        """The runs of which something is not proved."""
        return [outcome for outcome in self.outcomes if outcome.open]

    @property
    def state(self) -> str:
        """PROVED or OPEN."""
        return "PROVED" if self.outcomes and not self.open else "OPEN"


class _OpenCaseError(Exception):
    """A bit of data chooses between words, and its case is not given. ``values``: of the floor whose lowest bit it
    is."""

    def __init__(self, values: tuple[int, int]) -> None:
        super().__init__()
        self.values = values


class UnprovedError(ValueError):
    """A run cannot be followed: the message says what is not known."""


def starts(claim: Claim) -> Iterator[Start]:
    """First operands in every cycle of an interval after the reset, alone and between other products."""
    for phase in range(claim.interval):
        for full in (False, True):
            yield Start(phase, full, seed=1 + phase)


def prove_products(
    net: Netlist, claim: Claim, progress: Callable[[str, int, int], None] | None = None,
    fixed: Mapping[str, Bits] | None = None, certificate: IO[str] | None = None,
) -> ProductProof:  # fmt: skip
    """Prove the claim in every run of `starts`; the first run that stays open ends the proof. ``fixed``: bits at other
    input ports. ``certificate``: gets the lines of the proof (`certificate`).

    Raises ValueError if a form has no rule here, or a cell."""
    for form in (claim.operand, claim.result):
        if not isinstance(form, Binary | Digits):
            raise ValueError(f"numbers of the form {form.describe()['kind']} are not proved; binary and digits are")
    proof, given = ProductProof(), list(starts(claim))
    if certificate:
        write(certificate, [head(net, claim.describe())])
    for number, start in enumerate(given):
        if progress:
            progress(start.line, number, len(given))
        outcome = _outcome(net, claim, start, fixed or {}, written=certificate is not None)
        if certificate:
            write(certificate, outcome.lines)
        proof.outcomes.append(replace(outcome, lines=()))
        if proof.open:
            break
    return proof


def _outcome(
    net: Netlist, claim: Claim, start: Start, fixed: Mapping[str, Bits], *, written: bool = False
) -> Outcome:  # fmt: skip
    """The result of a run: without a choice by data if that does, else case by case."""
    begin = time.process_time()
    found: list[Outcome] = []
    for known, cases in ((False, False), (False, True), (True, False), (True, True)):
        found.append(_all_cases(net, claim, start, fixed, known=known, cases=cases, written=written))
        if not found[-1].open:
            break
    return replace(min(found, key=_remaining), seconds=time.process_time() - begin)


def _remaining(outcome: Outcome) -> int:
    """How far a run is from its end: nothing remains, a range, a congruence, or all."""
    return sum(1 if line.startswith(_RANGE) else 2 if line.startswith(_CONGRUENCE) else 4 for line in outcome.open)


def _all_cases(
    net: Netlist, claim: Claim, start: Start, fixed: Mapping[str, Bits], *, known: bool, cases: bool, written: bool
) -> Outcome:  # fmt: skip
    todo: list[tuple[int, ...]] = [()]
    terms = atoms = 0
    lines = list[str]()
    while todo:
        case, make = todo.pop(), Integers()
        operands = [
            _number(make, claim.operand, name, claim.largest) for name in OPERANDS if name in net.module["ports"]
        ]
        product = make.number(1)
        for operand, _ in operands:  # before the run, which needs the range of a product of digits
            product = make.product(product, operand)
        run = _Run(net, make, claim, start, operands, fixed, known=known, case=case if cases else None)
        try:
            number = _read(run.result(), claim.result)
        except _OpenCaseError as fork:
            todo += [(*case, value) for value in fork.values]
            if len(todo) > _MOST_CASES:
                return Outcome(start, terms, atoms, (f"more than {_MOST_CASES} cases of choices by data",), 0)
            continue
        except UnprovedError as error:
            return Outcome(start, terms, atoms, (str(error),), 0)
        terms, atoms = max(terms, len(number.terms)), max(atoms, len(make.atoms))
        open_, conclusion = _remains(make, claim, number, product)
        if open_:
            return Outcome(start, terms, atoms, open_, 0)
        if written:
            lines.append(run_line(start.phase, start.full, known=known, cases=cases, bits=run.begun))
            lines += body(make, conclusion)
    return Outcome(start, terms, atoms, (), 0, tuple(lines))


def _remains(
    make: Integers, claim: Claim, result: Expression, product: Expression
) -> tuple[tuple[str, ...], Conclusion]:  # fmt: skip
    """What is not proved of a result, and why the rest is so."""
    equal = list[Equality]()
    number, wanted, found = make.settled(result, equal), make.sum([(claim.factor, product)]), list[str]()
    if left := _wrong(make, claim, number, wanted):
        if len(left) <= _MOST_MATCHED and all(len(m) == 1 for m in left):
            number = make.matched(number, [m[0] for m in left], equal)
        left = _wrong(make, claim, number, wanted)
    if left:
        found.append(f"{_CONGRUENCE}: {len(left)} of {len(number.terms)} terms are no multiples of the modulus")
    for ends in (make.ends, make.case_ends, make.close_ends):
        least, most = ends(number)
        if least[0] >= 0 and most[0] < claim.end:
            break
    if most[0] >= claim.end:
        over = (most[0] - claim.end + 1) / claim.p
        found.append(f"{_RANGE}: the upper bound that was found is {over:.3g} p too large")
    if least[0] < 0:
        found.append(f"{_RANGE}: the lower bound that was found is {-least[0] / claim.p:.3g} p below 0")
    ways = make.whole(result, most, 1, equal), make.whole(result, least, -1, equal)
    return tuple(found), Conclusion(*ways, equal)


def _wrong(make: Integers, claim: Claim, number: Expression, wanted: Expression) -> list[Monomial]:
    return [m for m, c in make.sum([(1, number), (-1, wanted)]).terms.items() if c % claim.p]


def _number(make: Integers, form: Form, name: str, largest: int) -> tuple[Expression, Bits]:
    """An unknown operand: its number, and the bits of its port."""
    if isinstance(form, Digits):
        words = [make.atom(f"{name}[{k}]", 0, (1 << form.r + 2) - 1) for k in range(form.d)]
        number = make.within(make.sum((1 << form.r * k, word) for k, word in enumerate(words)), 0, largest)
        return number, tuple((word, k) for word in words for k in range(form.r + 2))
    number = make.atom(name, 0, largest)
    return number, tuple((number, k) for k in range(form.width))


def _read(core: tuple[Symbolic, Bits], form: Form) -> Expression:
    """The number at port o_r."""
    run, bits = core
    if isinstance(form, Digits):
        size = form.r + 2
        parts = [run.words.integer(bits[k * size : (k + 1) * size]) for k in range(form.d)]
        return run.words.integers.sum((1 << form.r * k, part) for k, part in enumerate(parts))
    return run.words.integer(bits)


class _Run:
    """A core from its reset to the result of the product. ``known``: what may be anything is an unknown integer, which
    may cancel, in place of unknown bits, which do not but take no time. ``case``: the floors whose lowest bits choose
    between words, in their order; None if such bits stay unknown."""

    def __init__(
        self, net: Netlist, make: Integers, claim: Claim, start: Start, operands: list[tuple[Expression, Bits]],
        fixed: Mapping[str, Bits], *, known: bool, case: tuple[int, ...] | None,
    ) -> None:  # fmt: skip
        self._decided: dict[tuple[Expression, int], int] = {}
        self._case = case
        self._claim, self._start, self._known = claim, start, known
        self._core = Symbolic(net, make)
        self._core.ports |= fixed
        if case is not None:
            self._core.words.decide = self._decide
        self._ports = {n: net.module["ports"][n]["bits"] for n in OPERANDS if n in net.module["ports"]}
        self._operands = {n: bits for n, (_, bits) in zip(self._ports, operands, strict=True)}
        self.begun = self._core.begin(random.Random(start.seed))
        """Bits of the registers of control."""
        if known:
            self._core.fill()

    def _decide(self, word: Expression, k: int) -> int | None:
        """The value of bit k of a word in this case, if its floor has two values."""
        least, most = word.low >> k, word.high >> k
        if (word, k) not in self._decided:
            make = self._core.words.integers
            if most != least + 1 or make.asked("decide", word, k):
                return make.choose("decide", word, k, lambda: None)
            assert self._case is not None
            if len(self._decided) == len(self._case):
                raise _OpenCaseError((least, most))
            self._decided[word, k] = self._case[len(self._decided)]
            self._core.words.integers.assume(word, k, self._decided[word, k])
        return self._decided[word, k] & 1

    def _any(self) -> dict[str, Bits]:
        """The operands of another product."""
        if not self._known:
            return {n: (None,) * len(bits) for n, bits in self._ports.items()}
        atoms = {n: self._core.words.integers.atom("other", 0, (1 << len(bits)) - 1) for n, bits in self._ports.items()}
        return {n: tuple((atoms[n], k) for k in range(len(bits))) for n, bits in self._ports.items()}

    def result(self) -> tuple[Symbolic, Bits]:
        """The bits of the result. Raises UnprovedError if handshake or result are not known."""
        claim, start, core = self._claim, self._start, self._core
        mine = claim.in_flight + 1 if start.full else 0
        offered = taken = 0
        data = self._any()
        end = start.phase + _PATIENCE * (claim.latency + claim.interval * (mine + 1))
        for cycle in range(-claim.reset, end):
            offer = cycle >= start.phase and (start.full or not offered)
            if offer and offered == mine:
                data = self._operands
            shown = data if offer else self._any()
            core.ports |= {"rst": (int(cycle < 0),), "i_valid": (int(offer),), "o_ready": (1,), **shown}
            core.settle()
            if cycle >= 0:
                (ready,), (valid,) = core.output("i_ready"), core.output("o_valid")
                if ready is None or valid is None or isinstance(ready, tuple) or isinstance(valid, tuple):
                    raise UnprovedError(f"the handshake in cycle {cycle} after the reset is not known")
                if valid and taken == mine:
                    bits = core.output("o_r")
                    if None in bits:
                        raise UnprovedError(f"{bits.count(None)} bits of the result depend on something unknown")
                    return core, bits
                taken += valid
                if offer and ready:
                    offered += 1
                    data = self._any()
            core.clock()
        raise UnprovedError(f"no result within {end} cycles")
