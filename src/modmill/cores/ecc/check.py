# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Check a built coprocessor (`pair_check`) with these messages:

own curve            SETUP, then edge-case and random scalars and points for each operation; expected results
                     from `numbers`
modulo the order     if the core has it, SETUP with n, then signatures, quotients and multiply-adds; expected results
                     from Python's integers
other numbers        SETUP with random constants, modulo p and, if the core loads its modulus, modulo others; then
                     a job of each operation on random numbers; expected results from the program's instructions,
                     interpreted on integers. Where the engine checks its results, they are wrong with such
                     constants: zeros are expected of a machine from the first wrong one on; in lockstep no word
                     would leave, so these messages are left out
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from modmill.contract import Contract, UnsupportedError
from modmill.cores.built import Message
from modmill.cores.ecc.machine import EccCore
from modmill.cores.ecc.samples import EDGES, expected, sample
from modmill.cores.pair_check import Messages, PairReport, Stream, check_pair
from modmill.design import DesignInstance
from modmill.engines.ecc.blinding import Run
from modmill.engines.ecc.points import BLIND
from modmill.engines.microcode.bounds import program_bounds
from modmill.engines.microcode.interpreter import answers
from modmill.engines.microcode.program import Program
from modmill.numbers.curves.projective import multiples

RUNS = 10
"""Minimum number of runs of each operation on the core's own curve, edge cases first."""

_Loaded = tuple[DesignInstance, dict[int, Program]]
"""A modulus, and the programs by number, with constants for it."""


def check_ecc(path: str | Path) -> PairReport:
    """Check the coprocessor in a folder.

    Raises ValueError if a file is missing or malformed, ToolError if a tool cannot be run.
    """
    return check_pair(path, EccCore, "results", messages)


def messages(core: EccCore) -> Messages:
    """Messages of the check: two streams for two instances of the core, vectors, and short streams."""
    pair = (
        Stream(core, _stream(core, list(_others(core, 1)), 1)),
        Stream(core, _stream(core, list(_others(core, 2))[::-1], 2)),
    )
    short = Stream(core, _short(core, 1)), Stream(core, _short(core, 2))
    return Messages(pair, pair, Stream(core, core.messages()), short, "scalars, points or numbers")


def _short(core: EccCore, seed: int) -> Iterator[Message]:
    """SETUP and two jobs of the operation modulo p with the fewest cycles."""
    size, operation = core.results, min(core.operations, key=core.cycles)
    yield Message(core.setup())
    pairs = sample(core.curve, operation, core.scalar_bits, EDGES + 2 * size, seed)[EDGES:]
    yield from (core.message(operation, batch) for batch in (pairs[:size], pairs[size:]))


def _others(core: EccCore, seed: int) -> Iterator[_Loaded]:
    """Yield the moduli for which no number overflows, the core's own first, with programs that have random constants.

    A constant c modulo p is chosen with c / p at most that of the core's own constant, because the offset multiples of
    differences depend on it. None if an alarm, which wrong constants raise, ends all answers.
    """
    if core.lockstep and core.check_result:
        return
    rnd = random.Random(seed)
    for fitted in (core.fitted, *core.fitted.others()):
        p, known = fitted.p, dict[int, tuple[tuple[int, int], ...]]()
        made = {}
        try:
            for k, (held, offset) in enumerate(zip(core.held, core.layout.offsets, strict=True)):
                own = held.instructions.program
                ends = [(slot, max(1, (value + 1) * p // held.modulus)) for slot, value in own.shared]
                program_bounds(
                    replace(own, shared=tuple((slot, end - 1) for slot, end in ends)), fitted.contract(core.io)
                )
                chosen = tuple((slot, rnd.randrange(end)) for slot, end in ends)
                made[k] = replace(own, shared=known.setdefault(offset, chosen))  # programs may share constants
        except UnsupportedError:
            continue
        yield fitted, made


def _stream(core: EccCore, others: list[_Loaded], seed: int) -> Iterator[Message]:
    """Messages of one instance; the second one has the runs in reverse order."""
    size, number = core.results, 0
    for setting, programs in core.by_modulus():
        yield setting
        for held in programs:
            jobs = max(core.cores, -(-RUNS // size))
            number += jobs
            pairs = sample(core.curve, held.operation, core.scalar_bits, jobs * size, seed)[:: 1 if seed == 1 else -1]
            yield from (core.message(held.operation, pairs[at : at + size]) for at in range(0, len(pairs), size))
    rnd, alarmed = random.Random(seed), set[int]()
    for fitted, made in others:
        contract, chosen = core.contract_at(fitted), core.choose(fitted.choice)
        yield Message(chosen.layout.setup(contract, made))
        for k, program in made.items():
            if core.blinding and core.blinding.recodings[k]:
                continue  # with random constants, random multiples of the order change the results
            yield _random_job(chosen, k, program, contract, rnd, number % core.cores, alarmed)
            number += 1


def _random_job(
    core: EccCore, number: int, program: Program, contract: Contract, rnd: random.Random, machine: int,
    alarmed: set[int],
) -> Message:  # fmt: skip
    """A job of random digits and numbers; expected results from its instructions, interpreted on integers.
    ``machine``: that does the job; it is added to those that have raised their alarm, ``alarmed``, if a check is wrong.
    """
    held, bits = core.held[number], core.curve.n.bit_length()
    unit, runs, results = core.unit(core.results), [], []
    for _ in range(core.results):
        scalars: tuple[int, ...] = (rnd.randrange(1 << min(bits, core.scalar_bits)),)
        if held.operation == "multiply-two":
            scalars = rnd.randrange(core.curve.n), rnd.randrange(core.curve.n)
        elif held.operation in core.modulo_order:
            scalars = ()
        digits = held.made.digits(*scalars)
        inputs = {key: rnd.randrange(contract.p) for _, key in program.inputs}
        runs.append((digits, [inputs[key] for _, key in program.inputs]))
        checks, found = answers(program, unit, contract, inputs, digits)
        if not set(checks) <= {1}:
            alarmed.add(machine)
        results.append((0,) * len(found) if machine in alarmed else found)
    what, words = f"other numbers, {program.name}", core.layout.job(number, runs)
    return Message(words, {}, what, number, contract.p, results, core.cycles(held.operation), core.fitted.choice)


def every(core: EccCore) -> Iterator[Message]:
    """All scalars, all multiples of the base point and all random factors of `multiply`, one job after another."""
    curve, size = core.curve, core.results
    points = [multiples(curve, [(k, curve.base)]) for k in range(1, curve.n)]
    runs: list[Run] = [
        ((scalar,), {BLIND: blind, "x": x, "y": y})
        for scalar in range(1 << core.scalar_bits) for x, y in filter(None, points) for blind in range(1, curve.p)
    ]  # fmt: skip
    runs += runs[: -len(runs) % size]
    yield Message(core.setup())
    for at in range(0, len(runs), size):
        yield core.message("multiply", [(run, expected(curve, "multiply", run)) for run in runs[at : at + size]])
