# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Check a built coprocessor: its files against what makes them, its RTL by simulation against Python's integers.

Two coprocessors run side by side (`pair_check`) with the same kinds of messages:

    its own curve        SETUP, then for each operation exceptional and random scalars and points, by `numbers`
    modulo the order     where the core has it, SETUP with n, then signatures and their like, by Python's integers
    other numbers        SETUP with random constants, modulo p and, where the modulus is loaded, modulo others; then
                         a job of each operation on random numbers, by the programme's rows on integers
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from modmill.contract import Contract, Refusal
from modmill.cores import engine_files
from modmill.cores.ecc.machine import STEM, EccCore, remade
from modmill.cores.ecc.samples import EDGES, Run, sample
from modmill.cores.pair_check import Answer, Messages, PairReport, Stream, check_pair
from modmill.design import Fitted
from modmill.engines.microcode.bounds import row_limits
from modmill.engines.microcode.interpreter import run
from modmill.engines.microcode.program import RowProgramme

RUNS = 10
"""Runs of each operation on the core's own curve, at least: the exceptional ones come first."""

_Loaded = tuple[Fitted, dict[int, RowProgramme]]
"""A modulus, and the programmes with constants for it."""


def check_ecc(path: str | Path) -> PairReport:
    """Check the coprocessor in a folder. Raises ValueError when a file is missing or malformed, ToolError when a tool
    cannot be run."""
    folder = Path(path)
    core = replace(remade(folder), stored=engine_files.verilog_of(folder, STEM))

    return check_pair(folder, STEM, core, "results", lambda: messages(core))


def messages(core: EccCore) -> Messages:
    """What a core is checked with."""
    pair = (
        _stream(core, list(_others(core, 1)), 1),
        _stream(core, list(_others(core, 2))[::-1], 2),
    )
    patience = 2 * max(map(core.cycles, core.jobs)) + 1000
    timing = core.contract.timing
    return Messages(
        lambda _: pair, _vectors(core), (_short(core, 1), _short(core, 2)), core.layout.numbers, 0, patience,
        timing.latency + timing.interval + core.rhythm.turn, "scalars, points or numbers",
    )  # fmt: skip


def _vectors(core: EccCore) -> Stream:
    """The messages of vectors.json."""
    out, loaded = Stream(), 0
    for held in core.held:
        if held.modulus != loaded:
            loaded = held.modulus
            out.load(core.packets.sent(core.setup(loaded)), core.contract)
        for pairs in core.vector_jobs(held.operation):
            _add(core, out, held.operation, pairs)
    return out


def _short(core: EccCore, seed: int) -> Stream:
    """SETUP and two jobs of the operation modulo p that takes the fewest cycles."""
    out, size = Stream(), core.layout.contexts
    out.load(core.packets.sent(core.setup()), core.contract)
    operation = min(core.operations, key=core.cycles)
    pairs = sample(core.curve, operation, core.bits, EDGES + 2 * size, seed)[EDGES:]
    for batch in (pairs[:size], pairs[size:]):
        _add(core, out, operation, batch)
    return out


def _add(core: EccCore, out: Stream, operation: str, pairs: Sequence[tuple[Run, tuple[int, ...]]]) -> None:
    """Append a job to a stream."""
    k = core.number(operation)
    wanted = [result for _, result in pairs]
    answer = Answer(
        operation, core.modulus(operation), list(chain(*wanted)), len(wanted[0]), core.cycles(operation),
        core.layout.answer_words(k),
    )  # fmt: skip
    out.add(core.packets, core.job(operation, [given for given, _ in pairs]), answer)


def _others(core: EccCore, seed: int) -> Iterator[_Loaded]:
    """Moduli that the core takes, its own first, with random constants: those with which no number overflows.

    A constant stays below the share of p that the core's own has, for which differences are made.
    """
    rnd = random.Random(seed)
    for fitted in (core.fitted, *core.fitted.others()):
        p, known = fitted.p, dict[int, tuple[tuple[int, int], ...]]()
        made = {}
        try:
            for k, (held, offset) in enumerate(zip(core.held, core.layout.offsets, strict=True)):
                own = held.rows.programme
                ends = [(slot, max(1, (value + 1) * p // held.modulus)) for slot, value in own.shared]
                row_limits(replace(own, shared=tuple((slot, end - 1) for slot, end in ends)), fitted.contract(core.io))
                chosen = tuple((slot, rnd.randrange(end)) for slot, end in ends)
                made[k] = replace(own, shared=known.setdefault(offset, chosen))  # programmes may share their constants
        except Refusal:
            continue
        yield fitted, made


def _stream(core: EccCore, others: list[_Loaded], seed: int) -> Stream:
    """The messages of one side; the second has the exceptional runs in the opposite order."""
    out, lay, packets = Stream(), core.layout, core.packets
    size = lay.contexts
    cycles = list(map(core.cycles, core.jobs))
    lengths = list(map(lay.answer_words, range(len(core.jobs))))
    loaded = 0
    for held in core.held:
        if held.modulus != loaded:
            loaded = held.modulus
            out.load(packets.sent(core.setup(loaded)), core.contract)
        jobs = max(core.cores, -(-RUNS // size))
        pairs = sample(core.curve, held.operation, core.bits, jobs * size, seed)[:: 1 if seed == 1 else -1]
        for at in range(0, len(pairs), size):
            _add(core, out, held.operation, pairs[at : at + size])
    rnd = random.Random(seed)
    for fitted, made in others:
        contract = core.contract_at(fitted)
        out.load(packets.sent(lay.setup(contract, made)), core.contract)
        for k, programme in made.items():
            job, numbers = _random_job(core, k, programme, contract, rnd)
            each = len(programme.results)
            what = f"other numbers, {programme.name}"
            out.add(packets, job, Answer(what, fitted.p, numbers, each, cycles[k], lengths[k]))
    return out


def _random_job(
    core: EccCore, number: int, programme: RowProgramme, contract: Contract, rnd: random.Random
) -> tuple[list[int], list[int]]:
    """A job of random digits and numbers, and what its rows give on integers."""
    held, bits = core.held[number], core.curve.n.bit_length()
    unit, runs, results = core.unit(core.layout.contexts), [], list[int]()
    for _ in range(core.layout.contexts):
        scalars: tuple[int, ...] = (rnd.randrange(1 << min(bits, core.bits)),)
        if held.operation == "multiply-two":
            scalars = rnd.randrange(core.curve.n), rnd.randrange(core.curve.n)
        elif held.operation in core.modulo_order:
            scalars = ()
        digits = held.made.digits(*scalars)
        inputs = {key: rnd.randrange(contract.p) for _, key in programme.inputs}
        runs.append((digits, [inputs[key] for _, key in programme.inputs]))
        results += run(programme, unit, contract, inputs, digits)
    return core.layout.job(number, runs), results
