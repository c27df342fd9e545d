# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Check a built engine: its files against what makes them, its RTL by simulation against Python's integers.

Two engines run side by side (`pair_check`) with the same kinds of messages, but other moduli, bases and exponents.
"""

from __future__ import annotations

import random
from pathlib import Path

from modmill.design import Fitted
from modmill.studies.engine import PUBLIC, EngineCore, read
from modmill.studies.pair_check import Answer, Messages, PairReport, Stream, check_pair

SHORT = 48
"""Bits of the exponents of all messages but one of full length."""
POWERS = 16
"""Powers of either programme for each modulus, at least."""


def check_engine(path: str | Path, *, full: bool = True) -> PairReport:
    """Check the engine in a folder; ``full``: one message with exponents of full length among the short ones.

    Raises ValueError when a file is missing or malformed, ToolError when a tool cannot be run.
    """
    folder = Path(path)
    core = read(folder)

    def messages() -> Messages:
        moduli = [core.fitted, *core.fitted.others()]

        def streams(first: bool) -> tuple[Stream, Stream]:
            whole = full and first
            return _stream(core, moduli, whole, 1), _stream(core, moduli[::-1], whole, 2)

        length = core.answer - core.packets.head
        patience = 2 * core.cycles(0) + 1000
        return Messages(streams, core.layout.numbers, length, patience, "moduli, bases or exponents")

    return check_pair(folder, "engine", core, "powers", messages)


def _stream(core: EngineCore, moduli: list[Fitted], full: bool, seed: int) -> Stream:
    """For each modulus messages of either programme, with edges of bases and exponents among them."""
    rnd = random.Random(seed)
    layout, out = core.layout, Stream()
    size = layout.contexts
    for k, fitted in enumerate(moduli):
        p = fitted.p
        out.words += core.sent(core.setup(fitted))
        longest = layout.powers[0].bits
        kinds = [(0, longest)] if full and not k else []
        kinds += [(0, min(SHORT, longest)), (1, PUBLIC.bit_length())] * -(-POWERS // size)
        for programme, bits in kinds:
            edges = [(p - 1, (1 << bits) - 1), (0, 0), (1, 1 << bits - 1), (p - 1, 1), (2, 0)]
            pairs = [rnd.choice(edges) if rnd.randrange(3) == 0 else (rnd.randrange(p), rnd.getrandbits(bits))
                     for _ in range(size)]  # fmt: skip
            if programme:
                pairs = [(base, PUBLIC) for base, _ in pairs]
            job = layout.power_job(programme, pairs, bits)
            wanted = [pow(base, exponent, p) for base, exponent in pairs]
            out.add(core.packets, job, Answer("power", p, wanted, cycles=core.cycles(programme, bits)))
    return out
