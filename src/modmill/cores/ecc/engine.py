# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Point engine and arithmetic modulo the curve's order on a coprocessor: its simulated RTL, or its programs interpreted
with the bit-exact algorithm of its multiplier."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from modmill.contract import UnsupportedError
from modmill.cores.ecc.machine import EccCore
from modmill.engines.ecc.blinding import HostOrder, OrderArithmetic, PointEngine, Run
from modmill.engines.ecc.points import BLIND
from modmill.engines.microcode.interpreter import exact, run
from modmill.numbers.curves.affine import Curve


@dataclass(frozen=True)
class Work:
    """One call to a coprocessor: operation, number of runs, and cycles of each job."""

    operation: str
    runs: int
    cycles: tuple[int, ...]

    def __str__(self) -> str:
        """One line of a report."""
        batches = f" in {len(self.cycles)} batches" if len(self.cycles) > 1 else ""
        return f"{self.operation}, {self.runs} run{'s' * (self.runs != 1)}{batches}, {sum(self.cycles):,} cycles"


def simulated(core: EccCore, operation: str, runs: Sequence[Run], work: list[Work]) -> list[tuple[int, ...]]:
    """Simulate runs of an operation on the RTL; append the call to ``work``. Bases that are loaded are drawn anew.

    Raises UnsupportedError and ToolError as `EccCore.simulate` does.
    """
    if not runs:
        return []
    core = core.choose(secrets.randbelow(core.fitted.choices))
    found = core.simulate(operation, runs)
    work.append(Work(operation, len(runs), tuple(found.cycles)))
    return found.results


def interpreted(core: EccCore, operation: str, runs: Sequence[Run]) -> list[tuple[int, ...]]:
    """Interpret the core's program of an operation with its multiplier's bit-exact algorithm. Raises UnsupportedError
    as `EccCore.job` does, and Fault as `run` does."""
    held = core.held[core.number(operation)]
    fitted = core.fitted if held.modulus == core.curve.p else core.fitted.at(held.modulus)
    contract, unit = fitted.contract(core.io), core.unit(core.layout.threads)
    product = exact(fitted, contract)
    return [
        run(held.instructions.program, unit, contract, {BLIND: 1, **given}, held.made.digits(*scalars), product)
        for scalars, given in runs
    ]


@dataclass(frozen=True)
class RtlPointEngine(PointEngine):
    """A `PointEngine` that simulates ``core``. ``work``: list of calls, with simulated cycles from the last word of a
    job to the first of its results.

    Raises UnsupportedError for an operation that the core does not have, and for scalars longer than it supports.
    """

    core: EccCore
    work: list[Work] = field(default_factory=list)

    @property
    def curve(self) -> Curve:
        return self.core.curve

    def results(self, operation: str, bits: int, runs: Sequence[Run]) -> list[tuple[int, ...]]:
        if bits > (most := self.core.scalar_bits):
            raise UnsupportedError(f"scalars of this core must have at most {most} bits, got {bits}")
        if BLIND in self.core.drawn(self.core.number(operation)) and any(given.get(BLIND, 1) != 1 for _, given in runs):
            raise UnsupportedError("this engine draws the random factor of coordinates itself: no --blind-coordinates")
        return self.run(operation, runs)

    def run(self, operation: str, runs: Sequence[Run]) -> list[tuple[int, ...]]:
        """Results of runs of any operation of the core, modulo p or n."""
        return simulated(self.core, operation, runs, self.work)

    @property
    def order(self) -> OrderArithmetic:
        """Arithmetic modulo the order: on the core if it has programs for it, else on the host, with the reason."""
        if self.core.order:
            return CoreOrder(self)
        if self.core.contract.load is None:
            return HostOrder("host; the core's modulus is built in")
        return HostOrder("host; the core was built without it")


@dataclass(frozen=True)
class ExactPointEngine(RtlPointEngine):
    """The same without simulation: it interprets the core's programs, as `interpreted` does. ``work`` stays empty."""

    def run(self, operation: str, runs: Sequence[Run]) -> list[tuple[int, ...]]:
        return interpreted(self.core, operation, runs)


@dataclass(frozen=True)
class CoreOrder(OrderArithmetic):
    """An `OrderArithmetic` on the core of ``engine``, with n loaded after p. Raises UnsupportedError for another order
    than that of the core's curve."""

    engine: RtlPointEngine

    @property
    def where(self) -> str:
        """Text: this core, and the length of the message that loads n."""
        core = self.engine.core
        return f"this core, loaded with n by a message of {len(core.setup(core.curve.n)):,} words"

    def results(self, n: int, operation: str, runs: Sequence[Mapping[str, int]]) -> list[tuple[int, ...]]:
        if n != self.engine.curve.n:
            raise UnsupportedError(f"the core computes modulo the order of {self.engine.curve.title} only")
        return self.engine.run(operation, [((), given) for given in runs])
