# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What leaks: the operation of a core or an engine with a key that is the same in every run, or random.

    engine for a curve     the scalars; points are random in all runs, so the results are too; or the other way round
    engine for powers      the exponents; bases are random in all runs; or the other way round
    multiplier             both operands

A scalar is blinded as `engines.ecc.blinding` does it on a host, an exponent as `engines.rsa.rsa` does. If an engine
loads the bases of its residues, each run may draw them: it then begins with SETUP.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

from modmill.contract import UnsupportedError
from modmill.cores.built import BuiltEngine, Message
from modmill.cores.ecc import machine as ecc
from modmill.cores.ecc.samples import drawn
from modmill.cores.folder import kind_of
from modmill.cores.multiplier.folder import load
from modmill.cores.multiplier.operands import port
from modmill.cores.rsa import machine as rsa
from modmill.cores.rsa.circuit import read_any
from modmill.cores.rsa.pairs import prime_for
from modmill.engines.ecc.blinding import Ecc, ReferenceEngine, Run, scalar_bits
from modmill.flow.simulate import patience, widths
from modmill.numbers.primes import prev_prime
from modmill.studies.attack.traces import Bench, Stream

Word = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """The words of a run; ``right``: whether an answer to them is right."""

    words: Sequence[Word]
    right: Callable[[Sequence[Word]], bool]


@dataclass(frozen=True)
class Subject:
    """What is tested. ``draw``: the run for a key and random numbers; ``key``: draws a key. ``what``: the operation,
    ``about``: the core or engine with its blinding, in words of a row; ``digest``: of its netlist; ``usual``:
    number of runs if none is given."""

    bench: Bench
    key: Callable[[random.Random], Any]
    draw: Callable[[Any, random.Random], Case]
    what: str
    digest: str
    about: Mapping[str, Any]
    usual: int = 10_000


@dataclass(frozen=True)
class _Noted(ReferenceEngine):
    """An engine that notes the runs it is given, with their results."""

    noted: list[tuple[Run, tuple[int, ...]]] = field(default_factory=list)

    def results(self, operation: str, bits: int, runs: Sequence[Run]) -> list[tuple[int, ...]]:
        found = super().results(operation, bits, runs)
        self.noted.extend(zip(runs, found, strict=True))
        return found


def read(
    folder: Path, operation: str = "", *, blind_scalar: int = 0, blind_coordinates: bool = False,
    point: bool = False, message: bool = False, exponent_bits: int = 0, blind_exponent: int = 0,
    random_bases: bool = False,
) -> Subject:  # fmt: skip
    """The subject in a folder. ``operation``: of a coprocessor, the first with a secret scalar by default;
    ``blind_scalar``, ``blind_coordinates``: as in `Ecc`; ``point``: the points take the part of the key, and scalars
    are random. ``exponent_bits``: of an RSA engine, default `rsa.SHORT`; ``message``: the numbers that it raises to
    powers take the part of the key, and exponents are random;
    ``blind_exponent``: bits of the random multiple of the bases' order that is added to them. ``random_bases``: each
    run draws the bases of residues.

    Raises UnsupportedError for an operation, a length or a blinding that the core does not have.
    """
    kind = kind_of(folder)
    curve = (folder / f"{ecc.EccCore.STEM}.json").exists()
    given = {
        "--operation": operation, "--blind-scalar": blind_scalar, "--blind-coordinates": blind_coordinates,
        "--fixed point": point,
    }  # fmt: skip
    for name in (name for name, value in given.items() if value and not curve):
        raise UnsupportedError(f"{name} is for coprocessors of curves; {folder} holds {kind}")
    engine = (folder / f"{rsa.EngineCore.STEM}.json").exists()
    given = {"--exponent-bits": exponent_bits, "--blind-exponent": blind_exponent, "--fixed message": message}
    for name in (name for name, value in given.items() if value and not engine):
        raise UnsupportedError(f"{name} is for RSA engines; {folder} holds {kind}")
    if random_bases and not (curve or engine):
        raise UnsupportedError(f"--random-bases is for engines, which get the bases with SETUP; {folder} holds {kind}")
    if curve:
        return _multiples(ecc.read(folder), operation, blind_scalar, blind_coordinates, point, random_bases)
    if engine:
        return _powers(read_any(folder), exponent_bits, blind_exponent, message, random_bases)
    return _product(folder)


_Engine = TypeVar("_Engine", bound=BuiltEngine)
_LEAST = 8
"""Least bits of exponents that an engine blinds."""
KEPT = 512
"""Choices of bases that are kept while runs are drawn."""


def _bases(
    engine: _Engine, setup: Callable[[_Engine], Sequence[int]], drawn: bool
) -> Callable[[random.Random], tuple[_Engine, Sequence[int]]]:
    """What gives for each run the engine with its bases, and SETUP, which it begins with; without SETUP if the bases
    are not ``drawn``. Raises UnsupportedError if they should be and are built in."""
    choices = engine.fitted.choices
    if drawn and choices == 1:
        raise UnsupportedError(
            f"the bases of {engine.design} in this engine are built in: --random-bases needs --set bases=loaded"
        )

    @lru_cache(KEPT)
    def chosen(choice: int) -> tuple[_Engine, Sequence[int]]:
        made = engine.choose(choice)
        return made, setup(made)

    return lambda rnd: chosen(rnd.randrange(choices)) if drawn else (engine, [])


def _multiples(
    core: ecc.EccCore, operation: str, blind_scalar: int, blind_coordinates: bool, point: bool, random_bases: bool
) -> Subject:
    curve, secret = core.curve, ("multiply", "multiply-base", "ladder")
    chosen = operation or next((name for name in core.operations if name in secret), core.operations[0])
    core.number(chosen)  # raises for an operation that it does not have
    if chosen not in secret:
        raise UnsupportedError(f"{chosen} has no secret scalar; operations with one are {', '.join(secret)}")
    room = core.scalar_bits - (scalar_bits(curve, 1) - 1)
    if blind_scalar > max(0, room):
        raise UnsupportedError(
            f"the scalars of this engine have {core.scalar_bits} bits, which leaves {max(0, room)} for --blind-scalar, "
            f"not {blind_scalar}; ecc build --blind BITS makes room"
        )
    inside = bool(core.drawn(core.number(chosen)))
    if blind_coordinates and inside:
        raise UnsupportedError("this engine draws the random factor of coordinates itself: no --blind-coordinates")
    if point and chosen == "multiply-base":
        raise UnsupportedError("multiply-base has no point of its own: --fixed point needs multiply or ladder")

    def points(rnd: random.Random) -> list[Mapping[str, int]]:
        return [drawn(curve, chosen, core.scalar_bits, rnd)[1] for _ in range(core.results)]

    scalars = partial(_several, core.results, curve.n)
    based = _bases(core, lambda made: made.setup(made.modulus(chosen)), random_bases)

    def draw(secrets: Any, rnd: random.Random) -> Case:
        made, setup = based(rnd)
        engine = _Noted(curve)
        host = Ecc(engine, blind_scalar, blind_coordinates, below=rnd.randrange)
        keys, given = (scalars(rnd), secrets) if point else (secrets, points(rnd))
        if chosen == "ladder":
            host.ladder(keys, [numbers["u"] for numbers in given], core.scalar_bits - blind_scalar)
        elif chosen == "multiply":
            host.multiply(keys, [(numbers["x"], numbers["y"]) for numbers in given])
        else:
            host.multiply_base(keys)
        return _case(made, made.message(chosen, engine.noted), setup)

    about = {**({"blind_scalar": blind_scalar} if blind_scalar else {}),
             **({"blind_coordinates": "inside" if inside else True} if blind_coordinates or inside else {}),
             **({"fixed": "point"} if point else {}), **({"random_bases": True} if random_bases else {})}  # fmt: skip
    setup = core.setup(core.modulus(chosen))
    return _engine(
        core, setup, core.layout.answer_words(core.number(chosen)), points if point else scalars, draw, chosen, about
    )


def _powers(engine: rsa.EngineCore, exponent_bits: int, blind: int, message: bool, random_bases: bool) -> Subject:
    """With ``blind``, exponents are k + r q, r of ``blind`` bits, and the modulus is a prime p with q | p - 1: so the
    order of the bases is q, which has few bits, where an RSA key has p - 1. Exponents that the engine blinds are
    inverses modulo such a q of half their length."""
    if engine.checked_by:
        raise UnsupportedError(
            "an engine with --check-result releases no power by a random exponent: test the same engine without it; "
            "the check reads no digit of an exponent"
        )
    longest = engine.exponent_bits - blind
    bits = exponent_bits or (longest if engine.blind_messages else min(rsa.SHORT, longest))
    engine.require_length(bits)
    if engine.blind_messages and not message:
        raise UnsupportedError(
            "exponents of an engine that blinds messages are inverses modulo p - 1, one for a modulus: test it with "
            "--fixed message, and for its exponents the same engine without --blind-messages"
        )
    least = max(1, 2 * bool(blind))
    if not least <= bits <= longest:
        raise UnsupportedError(
            f"exponents of this engine have {least} to {longest} bits beside the blinding, not {bits}"
        )  # fmt: skip
    q, inside = prev_prime(1 << bits) if blind else 0, engine.inverts
    if inside:
        if blind or bits < _LEAST:
            raise UnsupportedError(
                f"this engine blinds exponents itself: omit --blind-exponent, and take {_LEAST} bits or more"
            )
        if not engine.blind_messages:
            q = prev_prime(1 << bits // 2)
            q = q if inside % q else prev_prime(q)
    fitted = engine.at(prime_for(engine.fitted.p.bit_length(), q)) if q else engine.fitted
    p = fitted.p
    based = _bases(engine, lambda made: made.setup(made.at(p)), random_bases)
    exponents, messages = partial(_several, engine.results, q or 1 << bits), partial(_several, engine.results, p - 1)
    if engine.blind_messages:
        exponents = partial(_whole_inverses, engine, bits)
    elif inside:
        exponents = partial(_inverses, engine.results, bits, inside, q)

    def draw(keys: Sequence[int], rnd: random.Random) -> Case:
        made, setup = based(rnd)
        if message:
            pairs = list(zip(keys, exponents(rnd), strict=True))
        else:
            pairs = [(rnd.randrange(2, p - 1), key) for key in keys]
        if q:
            pairs = [(pow(x, (p - 1) // q, p), key) for x, key in pairs]
        if blind:
            pairs = [(x, key + q * rnd.getrandbits(blind)) for x, key in pairs]
        return _case(made, made.message(p, 0, bits + blind, pairs), setup)

    what = f"powers, exponents of {bits} bits"
    setup = engine.setup(fitted)
    about = {**({"blind_exponent": blind} if blind else {}), **({"fixed": "message"} if message else {}),
             **({"random_bases": True} if random_bases else {})}  # fmt: skip
    keys = messages if message else exponents
    return _engine(engine, setup, engine.layout.answer_words(0), keys, draw, what, about)


def _several(count: int, end: int, rnd: random.Random) -> list[int]:
    """So many keys in [1, end)."""
    return [rnd.randrange(1, end) for _ in range(count)]


def _inverses(count: int, bits: int, e: int, q: int, rnd: random.Random) -> list[int]:
    """So many inverses of e modulo q, of at most ``bits`` bits."""
    return [pow(e, -1, q) + q * rnd.randrange((1 << bits) // q - 1) for _ in range(count)]


def _whole_inverses(engine: rsa.EngineCore, bits: int, rnd: random.Random) -> list[int]:
    """Exponents for an engine that blinds messages."""
    return [engine.drawn(rnd, engine.fitted.p, bits)[1] for _ in range(engine.results)]


def _case(engine: BuiltEngine, job: Message, setup: Sequence[int]) -> Case:
    packets = engine.packets
    before = packets.sent(setup) if setup else []

    def right(answer: Sequence[Word]) -> bool:
        _, words = packets.ordered([word for (word,) in answer], len(answer) - packets.head)
        return engine.answered(job, words) == list(job.results)

    return Case([(word,) for word in [*before, *packets.sent(job.words, 0)]], right)


def _engine(
    engine: BuiltEngine, setup: Sequence[int], answer: int, key: Callable[[random.Random], Any],
    draw: Callable[[Any, random.Random], Case], what: str, about: Mapping[str, Any],
) -> Subject:  # fmt: skip
    packets, send = engine.packets, Stream("i", {"i_data": engine.word})
    bench = Bench(
        engine.verilog, engine.top, send, Stream("o", {"o_data": engine.word}), send,
        [(word,) for word in packets.sent(setup)], packets.head + answer, engine.patience, engine.power_up,
    )  # fmt: skip
    return Subject(bench, key, draw, what, engine.digest, {**engine.about(), **about})


def _product(folder: Path) -> Subject:
    core = load(folder)
    contract = core.contract
    there = widths(contract)
    a_and_b = {"i_a": there.a, **({"i_b": there.b} if there.b else {})}
    send, loads = Stream("i", a_and_b), contract.load
    bench = Bench(
        core.verilog, core.top, send, Stream("o", {"o_r": there.r}), Stream("k", {"k_m": there.k}) if loads else send,
        [(word,) for word in loads.words] if loads else [], 1, patience(contract), contract.power_up,
    )  # fmt: skip

    def key(rnd: random.Random) -> Word:
        return tuple(port(contract, rnd) for _ in a_and_b)

    def draw(operands: Word, _rnd: random.Random) -> Case:
        wanted = contract.expect(*map(contract.operand.decode, (*operands, *[0] * (2 - len(operands)))))
        return Case([operands], lambda answer: contract.result.decode(answer[0][0]) % contract.p == wanted)

    about = {
        "design": core.design.name,
        "modulus": hex(contract.p),
        "io": core.io,
        "parameters": dict(core.fitted.settings),
    }
    return Subject(bench, key, draw, "product", core.digest, about, 100_000)
