# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Numbers of our circuits for powers for the tables of the radix-64K paper."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from statistics import median
from typing import final

from modmill.cores.rsa.circuit import CircuitCore, circuit_engine
from modmill.numbers.moduli import parse_modulus
from modmill.report.traces import traced
from modmill.studies.papers.bench import Bench, EngineRows


@final
class MeasuredCircuit:
    """One circuit with its modulus built in, on one target. Measured numbers are None without a row.

    Raises UnsupportedError if the design does not serve the modulus or the settings.
    """

    def __init__(self, bench: Bench, name: str, modulus: str, target: str, **settings: object) -> None:
        self._bench, self._target, self._modulus = bench, target, modulus
        self.core: CircuitCore = circuit_engine(name, parse_modulus(modulus).value, settings=settings)

    @cached_property
    def _rows(self) -> EngineRows:
        return self._bench.engine(self.core, self._target)

    def cycles(self, job: str) -> int | None:
        """Simulated cycles from the last word of a job to the first word of its answer. ``job``: ``latency`` for every
        exponent in constant time; in variable time ``half_ones`` for one in which half of the bits are 1, ``e65537``
        for 65537."""
        return self._rows.check.get(job)

    @property
    def interval(self) -> int | None:
        """Cycles from a product to the next one: from two simulated counts and their numbers of products."""
        whole, half = self.cycles("latency"), self.cycles("half_ones")
        if whole is None or half is None:
            return None
        bits = self.core.exponent_bits
        found = Fraction(whole - half, (2 * bits + 2) - (bits + bits // 2 + 1))
        assert found.denominator == 1
        return traced(int(found), whole, half)

    def resource(self, name: str) -> int | None:
        """A measured resource: ``dsp``, ``lut``, ``ff`` or ``bram``."""
        return self._rows.synth.get(name)

    @property
    def clocks(self) -> Sequence[float]:
        """Routed clocks in MHz, one for each seed."""
        return self._rows.clocks

    @property
    def mhz(self) -> float | None:
        """The median routed clock."""
        return median(self.clocks) if self.clocks else None

    def milliseconds(self, job: str) -> float | None:
        """Simulated cycles at the median routed clock."""
        cycles, clock = self.cycles(job), self.mhz
        return None if cycles is None or clock is None else cycles / clock / 1000
