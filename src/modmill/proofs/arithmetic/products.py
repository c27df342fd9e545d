# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The result of one product proved for all operands, over the integers: congruent to a b factor, and in its range.

The netlist runs cycle by cycle with the operands of one product as unknown integers (`symbolic`). Everything else
may be anything: the contents of memories and of registers with data before the reset, the ports while nothing is
offered, and the operands of the products before and after. The result is then a polynomial in a, b and floors; it is
congruent to a b factor if all other coefficients are multiples of p.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Any

from modmill.contract import Binary, Digits, Form
from modmill.numbers.shown import shortened
from modmill.proofs.arithmetic.branches import Branches, joined
from modmill.proofs.arithmetic.certificate import Conclusion, Witness, body, head, idle_lines, run_line, write
from modmill.proofs.arithmetic.integers import Integers
from modmill.proofs.arithmetic.polynomials import Expression, Monomial
from modmill.proofs.arithmetic.reasons import Equality
from modmill.proofs.arithmetic.residue_words import Channels, Product
from modmill.proofs.arithmetic.residues import remains
from modmill.proofs.arithmetic.symbolic import OPERANDS, Symbolic
from modmill.proofs.arithmetic.word_rules import Bits
from modmill.proofs.netlist import Netlist

_PATIENCE = 4
"""Latencies after which a result must have come."""
_CONGRUENCE, _RANGE = "congruence", "range"
_MOST_MATCHED = 6
"""Most floors that are compared with each other."""
_MOST_CHOICES = 7
"""Most choices by data, such as the last subtraction of the modulus, each in a case of the last one."""


@dataclass(frozen=True)
class Claim:
    """What is to be proved: for operands from 0 to ``largest`` the result is congruent to their product times
    ``factor`` modulo ``p`` and below ``end``. Forms and timing as in `contract.Contract`. ``reset``: its cycles.
    ``load``: the words that load p after the reset, in at most ``loading`` cycles; none if p is built in."""

    p: int
    factor: int
    operand: Form | Channels
    result: Form | Channels
    largest: int
    end: int
    latency: int
    interval: int
    in_flight: int
    reset: int = 1
    load: tuple[int, ...] = ()
    loading: int = 0

    def describe(self) -> dict[str, Any]:
        """The claim as JSON."""
        return {
            **vars(self), "operand": self.operand.describe(), "result": self.result.describe(), "load": [*self.load]
        }  # fmt: skip

    @property
    def line(self) -> str:
        """The claim in words."""
        operands = f"operands from 0 to {shortened(self.largest)}"
        if isinstance(self.operand, Digits):
            operands += f" in {self.operand.d} digits of {self.operand.r + 2} bits"
        if isinstance(self.operand, Channels):
            operands += f", as any residues modulo {len(self.operand.moduli)} moduli"
        loaded = f"with the modulus {shortened(self.p)} loaded, " if self.load else ""
        what = f"o_r is congruent to their product times factor, and below {shortened(self.end)}"
        return f"{loaded}for all {operands}: {what}"


@dataclass(frozen=True)
class Start:
    """One run. ``phase``: cycles between reset, or the contract's time for a load, and operands. ``full``: other
    products before and after it, as many as the core takes. Both say which bits the control has that no reset sets."""

    phase: int
    full: bool

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


class _EndedError(Exception):
    """Another way of a run had an end that is that of the run."""


class UnprovedError(ValueError):
    """A run cannot be followed: the message says what is not known."""


def starts(net: Netlist, claim: Claim, fixed: Mapping[str, Bits] | None = None) -> list[Start]:
    """First operands in every cycle of an interval, alone and between other products; but not in a cycle whose state is
    one of those before an earlier cycle, of which not all bits are known, and not in a cycle in which they are not
    accepted and change nothing, so that they are first operands of the next cycle. Raises UnprovedError if no modulus
    is loaded."""
    return [start for full in (False, True) for start in _phases(net, claim, fixed or {}, full)[0]]


def _phases(net: Netlist, claim: Claim, fixed: Mapping[str, Bits], full: bool) -> tuple[list[Start], _Run]:
    """The starts alone or between other products, and an interval without operands."""
    run, seen = _Run(net, Integers(), claim, full, {}, fixed), dict[Bits, list[tuple[int, Bits]]]()
    run.prepare()
    first, waits = list[int](), list[bool]()
    for phase in range(claim.interval + 1):
        control, state = run.core.contents()
        earlier = seen.setdefault(control, [])
        same = (k for k, one in earlier if all(a is None or a == b for a, b in zip(one, state, strict=True)))
        first.append(next(same, phase))
        if first[-1] == phase:
            earlier.append((phase, state))
        if phase < claim.interval:
            waits.append(run.waits())
    return [Start(phase, full) for phase in _kept(first, waits)], run


def _kept(first: Sequence[int], waits: Sequence[bool]) -> list[int]:
    """The phases of which each needs a run. ``first``: the earliest phase whose state covers that of each phase, up to
    the one after the last; ``waits``: operands of a phase are as those of the next one."""
    kept = set[int]()
    for phase in range(len(waits)):
        passed, k = list[int](), first[phase]
        while k < len(waits) and k not in passed:
            passed.append(k)
            k = first[k + 1] if waits[k] else k
        kept.add(passed[-1])
    return sorted(kept)


def prove_products(
    net: Netlist, claim: Claim, progress: Callable[[str, int, int], None] | None = None,
    fixed: Mapping[str, Bits] | None = None, certificate: IO[str] | None = None, some: Sequence[Start] = (),
) -> ProductProof:  # fmt: skip
    """Prove the claim in every run of `starts`, or in ``some``; the first run that stays open ends the proof.
    ``fixed``: bits at other input ports. ``certificate``: gets the lines of the proof (`certificate`).

    Raises ValueError if a form has no rule here, or a cell."""
    for form in (claim.operand, claim.result):
        if not isinstance(form, Binary | Digits | Channels):
            raise ValueError(f"numbers of the form {form.describe()['kind']} are not proved")
    proof = ProductProof()
    try:
        idle = [_phases(net, claim, fixed or {}, full) for full in (False, True)]
    except UnprovedError as error:
        return ProductProof([Outcome(Start(0, False), 0, 0, (str(error),), 0)])
    given = some or [start for found, _ in idle for start in found]
    if certificate:
        write(certificate, [head(net, claim.describe())])
        for full, (_, run) in enumerate(idle):
            write(certificate, idle_lines(bool(full), run.begun, run.core.words.integers))
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
    begin = _seconds()
    found: list[Outcome] = []
    for known in (False, True):
        found.append(joined(lambda of: _ways(net, claim, start, fixed, _Ways(of, known, written))))  # noqa: B023
        if not found[-1].open:
            break
    return replace(min(found, key=_remaining), seconds=_seconds() - begin)


def _seconds() -> float:
    """Time of processor of this process and of its copies."""
    return sum(os.times()[:4])


def _remaining(outcome: Outcome) -> int:
    """How far a run is from its end: nothing remains, a range, a congruence, or all."""
    return sum(1 if line.startswith(_RANGE) else 2 if line.startswith(_CONGRUENCE) else 4 for line in outcome.open)


@dataclass
class _Ways:
    """The ways of one run from its first choice by data: without ``cases``, and if something remains, case by case.
    ``plain``: the outcome without cases. ``done``: of cases before this one, whose choices are ``values``."""

    branches: Branches[Outcome]
    known: bool
    written: bool
    cases: bool = False
    plain: Outcome | None = None
    done: list[Outcome] = field(default_factory=list)
    values: int = 0

    def choose(self, values: tuple[int, int]) -> int | None:
        """The value in this way of a floor that has two ``values``; None without cases. Raises _EndedError if a way
        before this one was the last that counts, and UnprovedError if there are too many choices."""
        if not self.cases:
            if (plain := self._other()) is None:
                return None
            self.plain, self.cases = plain, True
            if not plain.open:
                raise _EndedError
        self.values += 1
        if self.values > _MOST_CHOICES:
            raise UnprovedError(f"more than {_MOST_CHOICES} choices by data, each in a case of the last one")
        if (other := self._other()) is None:
            return values[1]
        self.done.append(other)
        if other.open:
            raise _EndedError
        return values[0]

    def _other(self) -> Outcome | None:
        """The outcome of another way; None in that way."""
        found = self.branches.split()
        if found is None:
            self.plain, self.done = None, []
        return found

    def outcome(self, last: Outcome | None) -> Outcome:
        """Of all ways since the copy began. ``last``: of this one."""
        ends = [*self.done, *([last] if last else [])]
        found = [self.plain] if self.plain else []
        if ends:
            lines = tuple(line for one in ends for line in one.lines)
            most = {name: max(getattr(one, name) for one in ends) for name in ("terms", "atoms")}
            found.append(replace(ends[-1], lines=lines, **most))
        return min(found, key=_remaining)


def _ways(net: Netlist, claim: Claim, start: Start, fixed: Mapping[str, Bits], ways: _Ways) -> Outcome:
    """The outcome of a run, in this way and in those of copies."""
    make = Integers()
    operands = [_number(make, claim.operand, name, claim.largest) for name in _ports(net)]
    product = make.number(1)
    for operand in operands:  # before the run, which needs the range of a product of digits
        product = make.product(product, operand.whole)
    ports = {name: operand.bits for name, operand in zip(_ports(net), operands, strict=True)}
    run = _Run(net, make, claim, start.full, ports, fixed, known=ways.known, choose=ways.choose)
    try:
        result = _read(run.result(start.phase), claim.result)
    except _EndedError:
        return ways.outcome(None)
    except UnprovedError as error:
        return ways.outcome(Outcome(start, 0, 0, (str(error),), 0))
    open_: tuple[str, ...]
    conclusion: Conclusion | Witness | None
    if isinstance(claim.result, Channels):
        x, y = operands[0].words, operands[-1].words
        found = Product(claim.result, x, y, result.words, run.core.words.named or {}, run.core.stored)
        open_, conclusion = remains(make, claim, found)
    else:
        open_, conclusion = _remains(make, claim, result.whole, product)
    lines = list[str]()
    if ways.written and conclusion and not open_:
        lines.append(run_line(start.phase, start.full, known=ways.known, cases=ways.cases))
        lines += body(make, conclusion, cases=ways.cases)
    return ways.outcome(Outcome(start, len(result.whole.terms), len(make.atoms), open_, 0, tuple(lines)))


def _remains(
    make: Integers, claim: Claim, result: Expression, product: Expression
) -> tuple[tuple[str, ...], Conclusion]:  # fmt: skip
    """What is not proved of a result, and why the rest is so."""
    equal = list[Equality]()
    number, wanted, found = make.settled(result, equal), make.sum([(claim.factor, product)]), list[str]()
    if left := _wrong(make, claim, number, wanted):
        for size in sorted({0, *(abs(c) for m, c in left.items() if m)}):  # all of them, then those of one size
            if some := {m: c for m, c in left.items() if m and size in (0, abs(c))}:
                number = make.cancelled(number, some, equal)
                left = _wrong(make, claim, number, wanted)
        if len(left) <= _MOST_MATCHED and all(len(m) == 1 for m in left):
            number = make.matched(number, [m[0] for m in left], equal)
        left = _wrong(make, claim, number, wanted)
    if left:
        found.append(f"{_CONGRUENCE}: {len(left)} of {len(number.terms)} terms are no multiples of the modulus")
    ways = [(number, equal), *make.replaced(result, number, equal)]
    most, least = (make.side(result, sign, ways, enough) for sign, enough in ((1, claim.end - 1), (-1, 0)))
    if most.bound >= claim.end:
        over = (most.bound - claim.end + 1) / claim.p
        found.append(f"{_RANGE}: the upper bound that was found is {over:.3g} p too large")
    if least.bound > 0:
        found.append(f"{_RANGE}: the lower bound that was found is {least.bound / claim.p:.3g} p below 0")
    return tuple(found), Conclusion(most, least, equal)


def _wrong(make: Integers, claim: Claim, number: Expression, wanted: Expression) -> dict[Monomial, int]:
    """What is no multiple of p in a difference: each coefficient modulo p, of the least size."""
    half = claim.p // 2
    terms = make.sum([(1, number), (-1, wanted)]).terms.items()
    return {m: r for m, c in terms if (r := (c + half) % claim.p - half)}


@dataclass(frozen=True)
class _Read:
    """A number at a port: its words, the number itself if it is binary or in digits, and the bits."""

    words: list[Expression]
    whole: Expression
    bits: Bits


def _number(make: Integers, form: Form | Channels, name: str, largest: int) -> _Read:
    """An unknown operand."""
    if isinstance(form, Binary):
        number = make.atom(name, 0, largest)
        return _Read([number], number, tuple((number, k) for k in range(form.width)))
    size, count, radix = _words(form)
    words = [make.atom(f"{name}[{k}]", 0, (1 << size) - 1) for k in range(count)]
    number = make.number(1)
    if radix:
        number = make.within(make.sum((1 << radix * k, word) for k, word in enumerate(words)), 0, largest)
    return _Read(words, number, tuple((word, k) for word in words for k in range(size)))


def _read(core: tuple[Symbolic, Bits], form: Form | Channels) -> _Read:
    """The number at port o_r."""
    run, bits = core
    size, count, radix = _words(form)
    words = [run.words.integer(bits[k * size : (k + 1) * size]) for k in range(count)]
    return _Read(words, run.words.integers.sum((1 << radix * k, word) for k, word in enumerate(words)), bits)


def _words(form: Form | Channels) -> tuple[int, int, int]:
    """Bits of a word, how many words there are, and the bits from one to the next if they are digits, else 0."""
    match form:
        case Digits():
            return form.r + 2, form.d, form.r
        case Channels():
            return form.bits, len(form.moduli), 0
    return form.width, 1, 0


def _ports(net: Netlist) -> list[str]:
    """The ports of operands."""
    return [name for name in OPERANDS if name in net.module["ports"]]


class _Run:
    """A core from its reset to the result of the product of ``operands``, bits at its ports. ``full``: as of `Start`.
    ``known``: what may be anything is an unknown integer, which may cancel, in place of unknown bits, which do not but
    take no time. ``choose``: says which of two values a floor has whose lowest bit chooses between words that differ by
    more than a constant; None if such bits stay unknown."""

    def __init__(
        self, net: Netlist, make: Integers, claim: Claim, full: bool, operands: Mapping[str, Bits],
        fixed: Mapping[str, Bits], *, known: bool = False,
        choose: Callable[[tuple[int, int]], int | None] | None = None,
    ) -> None:  # fmt: skip
        self._decided: dict[tuple[Expression, int], int] = {}
        self._choose = choose
        self._claim, self._full, self._known, self._operands = claim, full, known, operands
        self.core = Symbolic(net, make)
        self.core.ports |= fixed
        self.core.words.modulus = claim.p
        if isinstance(claim.result, Channels):
            self.core.words.named, self.core.longest = {}, claim.result.bits
        if choose:
            self.core.words.decide = self._decide
        self._nothing: dict[str, Bits] = {n: (None,) * len(net.module["ports"][n]["bits"]) for n in _ports(net)}
        self.begun = "".join(map(str, self.core.begin(random.Random(int(full)))))
        """Bits of the registers of control that no reset sets."""

    def _decide(self, word: Expression, k: int, linear: bool) -> int | None:
        """The value of bit k of a word in this case, if its floor has two values and what it chooses is not
        ``linear``."""
        least, most = word.low >> k, word.high >> k
        if (word, k) not in self._decided:
            make = self.core.words.integers
            if linear or most != least + 1 or make.asked("decide", word, k):
                return make.choose("decide", word, k, lambda: None)
            assert self._choose is not None
            value = self._choose((least, most))
            if value is None:
                self.core.words.decide = lambda *_: None
                return None
            self._decided[word, k] = value
            make.assume(word, k, value)
        return self._decided[word, k] & 1

    def _any(self) -> dict[str, Bits]:
        """The operands of another product."""
        if not self._known:
            return self._nothing
        make = self.core.words.integers
        atoms = {name: make.atom("other", 0, (1 << len(bits)) - 1) for name, bits in self._nothing.items()}
        return {name: tuple((atom, k) for k in range(len(self._nothing[name]))) for name, atom in atoms.items()}

    def result(self, phase: int) -> tuple[Symbolic, Bits]:
        """The bits of the result of operands that are offered from cycle ``phase`` on. Raises UnprovedError if
        handshake or result are not known."""
        claim, core = self._claim, self.core
        mine = claim.in_flight + 1 if self._full else 0
        offered = taken = 0
        self.prepare()
        for _ in range(phase):
            self.idle()
        if self._known:
            core.fill()
        data: Mapping[str, Bits] = self._any()
        end = _PATIENCE * (claim.latency + claim.interval * (mine + 1))
        for cycle in range(end):
            offer = self._full or not offered
            if offer and offered == mine:
                data = self._operands
            self._settle(data if offer else self._any(), i_valid=int(offer))
            ready, valid = self._known_bit("i_ready", cycle), self._known_bit("o_valid", cycle)
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

    def prepare(self) -> None:
        """The reset, then the words that load a modulus, until the core takes operands. Raises UnprovedError if it does
        not take the words."""
        load, done, since = self._claim.load, 0, 0
        for _ in range(self._claim.reset):
            self.idle(rst=1)
        end = _PATIENCE * (self._claim.latency + self._claim.loading)
        for cycle in range(end) if load else ():
            if done == len(load) and since >= self._claim.loading:  # cycles since the first word was taken
                return
            self._settle(self._nothing, k_valid=int(done < len(load)), k_m=load[done] if done < len(load) else 0)
            done += self._known_bit("k_ready", cycle) if done < len(load) else 0
            since += done > 0
            self.core.clock()
        if load:
            raise UnprovedError(f"the modulus is not loaded within {end} cycles")

    def waits(self) -> bool:
        """A cycle without operands; whether operands would not be accepted in it and would leave the same state."""
        core, before = self.core, self.core.contents()
        self._settle(self._nothing, i_valid=1)
        ready = self._known_bit("i_ready", 0)
        core.clock()
        after = core.contents()
        core.put_back(before[1])
        self.idle()
        return not ready and core.contents() == after

    def idle(self, rst: int = 0) -> None:
        """A cycle without operands."""
        self._settle(self._nothing, rst=rst)
        self.core.clock()

    def _settle(self, data: Mapping[str, Bits], **given: int) -> None:
        """Compute all nets; input ports without ``data`` that are not ``given`` are 0, o_ready is 1."""
        core = self.core
        for name, value in {"rst": 0, "k_valid": 0, "k_m": 0, "i_valid": 0, "o_ready": 1, **given}.items():
            if name in core.net.module["ports"]:
                width = len(core.net.module["ports"][name]["bits"])
                core.ports[name] = tuple(value >> k & 1 for k in range(width))
        core.ports |= data
        core.settle()

    def _known_bit(self, port: str, cycle: int) -> int:
        """The bit at a port of the handshake."""
        (bit,) = self.core.output(port)
        if bit is None or isinstance(bit, tuple):
            raise UnprovedError(f"{port} in cycle {cycle} is not known")
        return bit
