# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The operation of an engine that is attacked: SETUP, then one job of random numbers."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modmill.contract import ALARM, UnsupportedError
from modmill.cores.built import BuiltEngine, Message
from modmill.cores.ecc import machine as ecc
from modmill.cores.ecc.samples import drawn, expected
from modmill.cores.folder import kind_of
from modmill.cores.rsa import machine as rsa
from modmill.cores.rsa.circuit import read_any
from modmill.cores.rsa.pairs import prime_for
from modmill.design import DesignInstance
from modmill.flow.tools import ToolError
from modmill.numbers.primes import prev_prime
from modmill.numbers.shown import shortened
from modmill.studies.attack.faults import Attacked


@dataclass(frozen=True)
class Operation:
    """A SETUP message and a job of ``engine``, in words. ``what``: the job in words."""

    engine: BuiltEngine
    setup: Message
    job: Message
    what: str

    @property
    def words(self) -> list[int]:
        """All words at i."""
        packets = self.engine.packets
        return packets.sent(self.setup.words) + packets.sent(self.job.words, 0)

    @property
    def wanted(self) -> int:
        """Number of words at o."""
        return self.engine.packets.head + self.engine.layout.answer_words(self.job.program)

    def attacked(self) -> Attacked:
        """The engine compiled for faults in this operation. Raises ToolError if its answer is wrong without any."""
        made = self.engine
        found = Attacked(
            made.verilog, made.top, self.words, self.wanted, made.patience, power_up=made.power_up,
            alarm=ALARM if made.alarmed else "",
        )  # fmt: skip
        _, answer = made.packets.ordered(found.answer, self.wanted - made.packets.head)
        if made.answered(self.job, answer) != list(self.job.results):
            raise ToolError("simulation: the answer is wrong without a fault")
        return found

    def about(self) -> dict[str, Any]:
        """The engine and its operation in words, for a row."""
        return {**self.engine.about(), "engine": self.engine.design, "operation": self.what}


def read(folder: Path, name: str = "", exponent_bits: int = 0, seed: int = 1) -> Operation:
    """The operation of the engine in a folder. ``name``: of a coprocessor's operation, the first by default.
    ``exponent_bits``: of an RSA engine's exponents, by default `rsa.SHORT` or, if that is less, its longest ones.

    Raises UnsupportedError for a multiplier and for an operation or a length that the engine does not have; ValueError
    as `BuiltEngine.read`.
    """
    kind = kind_of(folder)
    rnd = random.Random(seed)
    if (folder / f"{ecc.EccCore.STEM}.json").exists():
        if exponent_bits:
            raise UnsupportedError("--exponent-bits is for RSA engines; the scalars of a coprocessor have one length")
        core = ecc.read(folder)
        chosen = name or core.operations[0]
        core.number(chosen)  # raises for an operation that it does not have
        runs = [drawn(core.curve, chosen, core.scalar_bits, rnd) for _ in range(core.results)]
        pairs = [(run, expected(core.curve, chosen, run)) for run in runs]
        return Operation(core, Message(core.setup(core.modulus(chosen))), core.message(chosen, pairs), chosen)
    if not (folder / f"{rsa.EngineCore.STEM}.json").exists():
        raise UnsupportedError(f"{folder} holds {kind}; faults are planted in what rsa build and ecc build write")
    if name:
        raise UnsupportedError(
            f"--operation is for coprocessors of curves; an RSA engine has powers, not {shortened(name)}"
        )
    engine = read_any(folder)
    p, bits = engine.fitted.p, exponent_bits or engine.tried_length(rsa.SHORT)
    engine.require_length(bits)
    if not 1 <= bits <= engine.exponent_bits:
        raise UnsupportedError(f"exponents of this engine have 1 to {engine.exponent_bits} bits, not {bits}")
    fitted, what = engine.fitted, f"powers, exponents of {bits} bits"
    if engine.inverts:
        fitted, powers = _inverses(engine, bits, rnd)
    else:
        powers = [(rnd.randrange(2, p - 1), rnd.getrandbits(bits)) for _ in range(engine.results)]
    return Operation(engine, engine.setting(fitted), engine.message(fitted.p, 0, bits, powers), what)


def _inverses(engine: rsa.EngineCore, bits: int, rnd: random.Random) -> tuple[DesignInstance, list[tuple[int, int]]]:
    """A modulus, and a base and exponent of each thread, for an engine for inverses. Where it loads its modulus
    and exponents are short, this is a prime p with a prime q | p - 1 of ``bits`` bits, which is the order of the bases.
    """
    fitted, order, length = engine.fitted, 0, engine.fitted.p.bit_length()
    if engine.contract.load and 3 < bits < length - 3:
        order = next(q for q in (prev_prime(1 << bits), prev_prime(prev_prime(1 << bits))) if engine.inverts % q)
        fitted = engine.at(prime_for(length, order))
    return fitted, [engine.drawn(rnd, fitted.p, bits, order) for _ in range(engine.results)]
