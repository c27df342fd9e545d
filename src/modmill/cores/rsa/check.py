# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Check a built engine: its files against what makes them, its RTL by simulation against Python's integers.

Two engines run side by side (`pair_check`) with the same kinds of messages, but other moduli, bases and exponents.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from modmill.cores import engine_files
from modmill.cores.pair_check import Answer, Messages, PairReport, Stream, check_pair
from modmill.cores.rsa.machine import PUBLIC, SHORT, STEM, EngineCore, remade
from modmill.design import Fitted

VERY_SHORT = 12
"""Bits of the exponents of the messages that are sent from many starts."""
POWERS = 16
"""Powers of either programme for each modulus, at least."""


def check_engine(path: str | Path, *, full: bool = True) -> PairReport:
    """Check the engine in a folder; ``full``: one message with exponents of full length among the short ones.

    Raises ValueError when a file is missing or malformed, ToolError when a tool cannot be run.
    """
    folder = Path(path)
    core = replace(remade(folder), stored=engine_files.verilog_of(folder, STEM))

    return check_pair(folder, STEM, core, "powers", lambda: messages(core, full))


def messages(core: EngineCore, full: bool = True) -> Messages:
    """What a core is checked with."""
    moduli = [core.fitted, *core.fitted.others()]

    def streams(first: bool) -> tuple[Stream, Stream]:
        whole = full and first
        return _stream(core, moduli, whole, 1), _stream(core, moduli[::-1], whole, 2)

    length = core.answer - core.packets.head
    patience = 2 * core.cycles(0) + 1000
    timing = core.contract.timing
    return Messages(
        streams, _vectors(core, full), (_short(core, 1), _short(core, 2)), core.layout.numbers, length, patience,
        timing.latency + timing.interval + core.layout.rhythm.turn, "moduli, bases or exponents",
    )  # fmt: skip


def _vectors(core: EngineCore, full: bool) -> Stream:
    """The messages of vectors.json; ``full``: with the exponents of full length."""
    out = Stream()
    out.load(core.sent(core.setup(core.fitted)), core.contract)
    for programme, bits, pairs in core.vector_jobs(full=full):
        _add(core, out, core.fitted.p, programme, bits, pairs)
    return out


def _short(core: EngineCore, seed: int) -> Stream:
    """The modulus and two jobs: short exponents, 65537."""
    out, rnd, p = Stream(), random.Random(seed), core.fitted.p
    out.load(core.sent(core.setup(core.fitted)), core.contract)
    bits = min(VERY_SHORT, core.layout.powers[0].bits)
    bases = [rnd.randrange(p) for _ in range(core.results)]
    _add(core, out, p, 0, bits, [(base, rnd.getrandbits(bits)) for base in bases])
    _add(core, out, p, 1, PUBLIC.bit_length(), [(base, PUBLIC) for base in bases[::-1]])
    return out


def _add(core: EngineCore, out: Stream, p: int, programme: int, bits: int, pairs: Sequence[tuple[int, int]]) -> None:
    """Append a job modulo p to a stream."""
    wanted = [pow(base, exponent, p) for base, exponent in pairs]
    job = core.layout.power_job(programme, pairs, bits)
    out.add(core.packets, job, Answer("power", p, wanted, cycles=core.cycles(programme, bits)))


def _stream(core: EngineCore, moduli: list[Fitted], full: bool, seed: int) -> Stream:
    """For each modulus messages of either programme, with edges of bases and exponents among them."""
    rnd = random.Random(seed)
    layout, out = core.layout, Stream()
    size = layout.contexts
    for k, fitted in enumerate(moduli):
        p = fitted.p
        out.load(core.sent(core.setup(fitted)), core.contract)
        longest = layout.powers[0].bits
        kinds = [(0, longest)] if full and not k else []
        kinds += [(0, min(SHORT, longest)), (1, PUBLIC.bit_length())] * -(-POWERS // size)
        for programme, bits in kinds:
            edges = [(p - 1, (1 << bits) - 1), (0, 0), (1, 1 << bits - 1), (p - 1, 1), (2, 0)]
            pairs = [rnd.choice(edges) if rnd.randrange(3) == 0 else (rnd.randrange(p), rnd.getrandbits(bits))
                     for _ in range(size)]  # fmt: skip
            if programme:
                pairs = [(base, PUBLIC) for base, _ in pairs]
            _add(core, out, p, programme, bits, pairs)
    return out
