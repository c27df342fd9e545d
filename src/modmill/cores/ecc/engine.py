# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The point engine of a curve by a coprocessor's RTL, simulated: what protocols ask, as many items at once as fit; and
arithmetic modulo the curve's order by the same RTL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from modmill.contract import Refusal
from modmill.cores.ecc.machine import EccCore
from modmill.engines.ecc.blinding import HostOrder, OrderArithmetic
from modmill.engines.ecc.order_engine import OrderByProgrammes
from modmill.engines.ecc.points import BLIND
from modmill.numbers.curves.affine import Curve, Point, Weierstrass


@dataclass(frozen=True)
class Work:
    """What was asked of a coprocessor at once. ``cycles``: of each batch of as many runs as it does in step."""

    operation: str
    runs: int
    cycles: tuple[int, ...]

    def __str__(self) -> str:
        """A line of a report."""
        batches = f" in {len(self.cycles)} batches" if len(self.cycles) > 1 else ""
        return f"{self.operation}, {self.runs} run{'s' * (self.runs != 1)}{batches}, {sum(self.cycles):,} cycles"


def simulated(
    core: EccCore, operation: str, runs: Sequence[tuple[tuple[int, ...], Mapping[str, int]]], work: list[Work]
) -> list[tuple[int, ...]]:
    """The results of runs by the RTL; ``work`` is told."""
    found = core.simulate(operation, runs)
    work.append(Work(operation, len(runs), tuple(found.cycles)))
    return found.results


@dataclass(frozen=True)
class RtlPointEngine:
    """A `PointEngine` that simulates ``core``. ``work`` lists what it did, cycles as they were measured: from the last
    word of a batch to the first of its results.

    Raises Refusal for an operation that the core does not have, and for scalars longer than its own.
    """

    core: EccCore
    work: list[Work] = field(default_factory=list)

    @property
    def curve(self) -> Curve:
        """The curve."""
        return self.core.curve

    def multiply(
        self, scalars: Sequence[int], points: Sequence[Point], bits: int, blinds: Sequence[int]
    ) -> list[Point]:
        """k P for each pair; P any point of the curve, but not the point at infinity."""
        items = zip(scalars, points, blinds, strict=True)
        runs = [((k,), self._given(P) | {BLIND: blind}) for k, P, blind in items]
        return list(map(self._point, self._run("multiply", bits, runs)))

    def multiply_base(self, scalars: Sequence[int], bits: int, blinds: Sequence[int]) -> list[Point]:
        """k G for each scalar."""
        runs = [((k,), {BLIND: blind}) for k, blind in zip(scalars, blinds, strict=True)]
        return list(map(self._point, self._run("multiply-base", bits, runs)))

    def multiply_two(self, scalars: Sequence[tuple[int, int]], points: Sequence[Point]) -> list[Point]:
        """u1 G + u2 P for each pair (u1, u2)."""
        runs = [(both, self._given(P)) for both, P in zip(scalars, points, strict=True)]
        return list(map(self._point, self._run("multiply-two", 0, runs)))

    def ladder(self, scalars: Sequence[int], us: Sequence[int], bits: int, blinds: Sequence[int]) -> list[int]:
        """The u-coordinate of k P for each k and each u."""
        items = zip(scalars, us, blinds, strict=True)
        return [x for (x,) in self._run("ladder", bits, [((k,), {"u": u, BLIND: blind}) for k, u, blind in items])]

    def _run(
        self, operation: str, bits: int, runs: Sequence[tuple[tuple[int, ...], Mapping[str, int]]]
    ) -> list[tuple[int, ...]]:
        if bits > self.core.bits:
            raise Refusal(f"this core multiplies by scalars of up to {self.core.bits} bits, not {bits}")
        if not runs:
            return []
        return simulated(self.core, operation, runs, self.work)

    def _given(self, P: Point) -> dict[str, int]:
        if P is None:
            raise Refusal("the engine takes no point at infinity")
        return {"x": P[0], "y": P[1]}

    def _point(self, results: tuple[int, ...]) -> Point:
        x, y = results
        return None if isinstance(self.curve, Weierstrass) and x == y == 0 else (x, y)

    @property
    def order(self) -> OrderArithmetic:
        """Arithmetic modulo the order: the core's where it has programmes for it, else the host's, with the reason."""
        if self.core.order:
            return RtlOrder(self.core, self.work)
        if self.core.contract.load is None:
            return HostOrder("host; the core's modulus is built in")
        return HostOrder("host; the core was built without it")


@dataclass(frozen=True)
class RtlOrder(OrderByProgrammes):
    """An `OrderArithmetic` that simulates ``core``, into which n is loaded after p; ``work`` as of `RtlPointEngine`.

    Raises Refusal for another order than that of the core's curve.
    """

    core: EccCore
    work: list[Work] = field(default_factory=list)

    @property
    def where(self) -> str:
        """The same core, and what changing the modulus takes."""
        return f"this core, loaded with n by a message of {len(self.core.setup(self.core.curve.n)):,} words"

    def results(self, n: int, operation: str, runs: Sequence[Mapping[str, int]]) -> list[tuple[int, ...]]:
        """What each run gives."""
        if n != self.core.curve.n:
            raise Refusal(f"the core computes modulo the order of {self.core.curve.title} alone")
        return simulated(self.core, operation, [((), given) for given in runs], self.work) if runs else []
