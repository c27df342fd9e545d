# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Cores of the race that are not measured, with predicted numbers and error bars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from modmill.contract import UnsupportedError
from modmill.design import Design
from modmill.flow.targets import target as find_target
from modmill.report.families import Family, family_of
from modmill.report.rows import Row
from modmill.studies.search.candidates import candidates, multipliers
from modmill.studies.search.estimate import Estimate
from modmill.studies.search.knowledge import Figures, Knowledge

TARGET = "ecp5-85k"
"""The device that most rows are of."""


@dataclass(frozen=True)
class Predicted:
    """A core with its default settings for a modulus, without a measured clock on `TARGET`."""

    figures: Figures
    target: str = TARGET

    @property
    def design(self) -> Design:
        """Its design."""
        return self.figures.core.design

    @property
    def family(self) -> Family:
        """The family of its design."""
        return family_of(self.design.page)

    @property
    def modulus(self) -> int:
        """Its modulus."""
        return self.figures.core.fitted.p

    @property
    def label(self) -> str:
        """Its design, with settings that the device asks for."""
        return self.figures.core.label

    @property
    def command(self) -> str:
        """The command that builds it."""
        return self.figures.core.command

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """Its predicted numbers, by the names of measured ones."""
        f = self.figures
        lut, dsp = f.lut.value, f.dsp
        found = {"lut": f.lut, "mhz": f.mhz, "us": f.us, "rate": f.rate}
        if dsp:
            found["per_dsp"] = f.rate.through(lambda rate: rate / dsp)
        found["per_lut"] = f.rate.through(lambda rate: rate / lut)
        return found

    @property
    def numbers(self) -> dict[str, float | None]:
        """All its numbers: cycles and DSP blocks by the design's formulas, others predicted; None for what is not."""
        core = self.figures.core
        exact = {"latency": core.latency, "interval": core.interval, "dsp": self.figures.dsp}
        none = dict.fromkeys(("ff", "bram", "per_dsp", "share"))
        return none | exact | {name: estimate.value for name, estimate in self.estimates.items()}

    @property
    def says(self) -> dict[str, str]:
        """Where each number comes from."""
        how = {name: estimate.how for name, estimate in self.estimates.items()}
        return {name: how.get(name, "the design's formulas") for name in self.numbers}

    @property
    def spread(self) -> str:
        """The ends of the clock's error bar, as multiples of the clock."""
        return _ends(self.figures.mhz)

    @property
    def area(self) -> str:
        """The ends of the error bar of the LUTs, as multiples of the LUTs."""
        return _ends(self.figures.lut)


def _ends(estimate: Estimate) -> str:
    return f"{estimate.low / estimate.value:.4f} {estimate.high / estimate.value:.4f}"


def predicted(rows: Iterable[Row], moduli: Sequence[int]) -> Iterator[Predicted]:
    """The cores of all designs for these moduli that have no clock on `TARGET` and fit on it; none if there are too few
    rows to predict from. The error bars hold for `estimate.HELD` of measured cores when each is left out."""
    try:
        knowledge = Knowledge(find_target(TARGET), rows)
    except UnsupportedError:
        return
    capacity = knowledge.target.capacity
    for p in moduli:
        for design in multipliers():
            core = next(iter(candidates(p, knowledge.target, [design])), None)
            if core is None or knowledge.clocked(core):
                continue
            figures = knowledge.of(core)
            if figures.dsp <= capacity.dsp and figures.lut.low <= capacity.lut:
                yield Predicted(figures)
