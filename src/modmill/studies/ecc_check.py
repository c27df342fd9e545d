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
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from modmill.contract import Contract, Refusal
from modmill.design import Fitted
from modmill.engines.row_bounds import row_limits
from modmill.engines.row_machine import run
from modmill.engines.rows import RowProgramme
from modmill.studies.ecc import EccCore, read
from modmill.studies.ecc_samples import sample
from modmill.studies.pair_check import Answer, Messages, PairReport, Stream, check_pair

RUNS = 10
"""Runs of each operation on the core's own curve, at least: the exceptional ones come first."""

_Loaded = tuple[Fitted, dict[int, RowProgramme]]
"""A modulus, and the programmes with constants for it."""


def check_ecc(path: str | Path) -> PairReport:
    """Check the coprocessor in a folder. Raises ValueError when a file is missing or malformed, ToolError when a tool
    cannot be run."""
    folder = Path(path)
    core = read(folder)

    def messages() -> Messages:
        pair = (
            _stream(core, list(_others(core, 1)), 1),
            _stream(core, list(_others(core, 2))[::-1], 2),
        )
        patience = 2 * max(map(core.cycles, core.jobs)) + 1000
        return Messages(lambda _: pair, core.layout.numbers, 0, patience, "scalars, points or numbers")

    return check_pair(folder, "ecc", core, "results", messages)


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
    for k, held in enumerate(core.held):
        if held.modulus != loaded:
            loaded = held.modulus
            out.words += packets.sent(core.setup(loaded))
        jobs = max(core.cores, -(-RUNS // size))
        pairs = sample(core.curve, held.operation, core.bits, jobs * size, seed)[:: 1 if seed == 1 else -1]
        for at in range(0, len(pairs), size):
            batch = pairs[at : at + size]
            wanted = [result for _, result in batch]
            answer = Answer(held.operation, loaded, list(chain(*wanted)), len(wanted[0]), cycles[k], lengths[k])
            out.add(packets, core.job(held.operation, [given for given, _ in batch]), answer)
    rnd = random.Random(seed)
    for fitted, made in others:
        contract = core.contract_at(fitted)
        out.words += packets.sent(lay.setup(contract, made))
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
