# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Check a built engine (`pair_check`) with edge-case moduli, and edge-case and random bases and exponents."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from modmill.cores.built import Message
from modmill.cores.pair_check import Messages, PairReport, Stream, check_pair
from modmill.cores.rsa.circuit import engine_class
from modmill.cores.rsa.machine import SHORT, EngineCore
from modmill.design import DesignInstance
from modmill.engines.rsa.exponentiation import PUBLIC

VERY_SHORT = 12
"""Length in bits of the exponents in the short messages, which are sent after many different resets."""
POWERS = 16
"""Minimum number of powers by each of the two programs for each modulus."""


def check_engine(path: str | Path, *, full: bool = True) -> PairReport:
    """Check the engine in a folder; ``full``: also with exponents of full length, in one job.

    Raises ValueError if a file is missing or malformed, ToolError if a tool cannot be run.
    """
    return check_pair(path, engine_class(path), "powers", partial(messages, full=full))


def messages(core: EngineCore, full: bool = True) -> Messages:
    """Messages of the check: two streams for two instances of the engine, vectors, and short streams.

    ``full``: one job has exponents of full length.
    """
    moduli = core.tried()

    def both(whole: bool) -> tuple[Stream, Stream]:
        return Stream(core, _stream(core, moduli, whole, 1)), Stream(core, _stream(core, moduli[::-1], whole, 2))

    short = Stream(core, _short(core, 1)), Stream(core, _short(core, 2))
    vectors = Stream(core, core.messages(full=full))
    return Messages(both(full), both(False), vectors, short, "moduli, bases or exponents")


def _short(core: EngineCore, seed: int) -> Iterator[Message]:
    """SETUP and two jobs: very short exponents, 65537."""
    rnd, p = random.Random(seed), core.fitted.p
    yield core.setting(core.fitted)
    bits = core.tried_length(VERY_SHORT)
    pairs = [core.drawn(rnd, p, bits) for _ in range(core.results)]
    yield core.message(p, 0, bits, pairs)
    yield core.message(p, 1, PUBLIC.bit_length(), [(base, PUBLIC) for base, _ in pairs[::-1]])


def _stream(core: EngineCore, moduli: list[DesignInstance], full: bool, seed: int) -> Iterator[Message]:
    """SETUP and jobs of both programs for each modulus, with edge cases of bases and exponents."""
    rnd = random.Random(seed)
    size, longest = core.results, core.exponent_bits
    for k, fitted in enumerate(moduli):
        p, chosen = fitted.p, core.choose(fitted.choice)
        yield chosen.setting(fitted)
        kinds = [(0, longest)] if full and not k else []
        kinds += [(0, core.tried_length(SHORT)), (1, PUBLIC.bit_length())] * -(-POWERS // size)
        for program, bits in kinds:
            edges = core.released(p, [(p - 1, (1 << bits) - 1), (0, 0), (1, 1 << bits - 1), (p - 1, 1), (2, 0)])
            pairs = [rnd.choice(edges) if rnd.randrange(3) == 0 else core.drawn(rnd, p, bits) for _ in range(size)]
            if program:
                pairs = [(base, PUBLIC) for base, _ in pairs]
            yield chosen.message(p, program, bits, pairs)
        for exponent, bits in core.public_exponents():
            yield chosen.message(p, 1, bits, [(rnd.randrange(p), exponent)] * size)


def every(core: EngineCore) -> Iterator[Message]:
    """All odd moduli that the engine loads, for each all bases, with all exponents and with 65537."""
    bits = core.exponent_bits
    for p in filter(core.serves, moduli(core)):
        yield core.setting(core.fitted.at(p))
        for program, length, exponents in ((0, bits, range(1 << bits)), (1, PUBLIC.bit_length(), (PUBLIC,))):
            pairs = list(itertools.product(range(p), exponents))
            pairs = pairs if program else core.released(p, pairs)
            pairs += pairs[: -len(pairs) % core.results]
            for at in range(0, len(pairs), core.results):
                yield core.message(p, program, length, pairs[at : at + core.results])


def moduli(core: EngineCore) -> range:
    """All odd moduli of at most the engine's length, from 3."""
    return range(3, 1 << core.fitted.p.bit_length(), 2)
