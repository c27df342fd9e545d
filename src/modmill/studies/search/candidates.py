# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Cores to choose from: each design with its default settings and with others, and what is known without any tool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Any

from modmill import placement
from modmill.contract import UnsupportedError
from modmill.design import Design, DesignInstance, Setting
from modmill.designs import DESIGNS
from modmill.flow.targets import Target
from modmill.report.families import family
from modmill.studies.race import measure
from modmill.studies.race.measured_cores import modulus_name, shell


@dataclass(frozen=True)
class Candidate:
    """A native multiplier: ``given`` are the settings that differ from the design's choice."""

    design: Design
    fitted: DesignInstance
    given: Mapping[str, Any]
    latency: int
    interval: int

    @classmethod
    def of(cls, design: Design, p: int, given: Mapping[str, Any]) -> Candidate:
        """The core for a modulus. Raises UnsupportedError if there is none, and MissingPartError inside `unsolved`."""
        fitted = design.fit(p, **given)
        timing = fitted.contract("native").timing
        return cls(design, fitted, given, timing.latency, timing.interval)

    @property
    def key(self) -> tuple[Any, ...]:
        """What determines the RTL: design, settings, and the modulus or, if that is loaded, its length."""
        modulus = (self.fitted.width,) if self.loaded else self.fitted.p
        return self.design.name, modulus, tuple(sorted(self.fitted.settings.items()))

    @property
    def dsp(self) -> int:
        """Predicted DSP blocks."""
        return self.fitted.cost.dsp

    @property
    def loaded(self) -> bool:
        """Whether the modulus is loaded at run time."""
        return self.fitted.load is not None

    @cached_property
    def label(self) -> str:
        """The design's name, with its settings."""
        return " ".join([self.design.name, *(f"{name}={_text(value)}" for name, value in self.given.items())])

    @property
    def command(self) -> str:
        """The command that builds it."""
        sets = "".join(f" --set {name}={_text(value)}" for name, value in self.given.items())
        modulus = shell(modulus_name(self.fitted.p))
        return f"modmill build {self.design.name} --modulus {modulus} --io native{sets}"

    @cached_property
    def features(self) -> tuple[float, ...]:
        """Logarithms of what the design's cost formulas and schedule say of the core."""
        cost, fitted = self.fitted.cost, self.fitted
        numbers = (
            fitted.p.bit_length(), cost.dsp, cost.memory_bits, cost.multiplications, self.latency, self.interval,
            fitted.size, fitted.schedule.in_flight,
        )  # fmt: skip
        return tuple(log(1 + number) for number in numbers)

    @cached_property
    def numbers(self) -> dict[str, float]:
        """Each setting as a number: the logarithm of a whole number; 0 or 1 for a truth or a choice's first word."""
        return {
            s.name: _number(s, self.fitted.settings[s.name])
            for s in self.design.settings
            if s.name in self.fitted.settings
        }


_STEP = 2.0
"""How far apart two words or truths are, against logarithms of whole numbers."""


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(setting: Setting, value: Any) -> float:
    return log(1 + abs(value)) if type(value) is int else _STEP * (value != setting.default)


def multipliers() -> list[Design]:
    """The designs that multiply two operands."""
    return [d for d in DESIGNS if d.operands == 2 and family(d.page)]


def candidates(
    p: int, target: Target, designs: Iterable[Design], *, loaded: bool = False, pairs: bool = False
) -> Iterator[Candidate]:
    """The cores of designs for a modulus, each once: with default settings, and with one setting of another value; with
    ``pairs``, also with two.

    ``loaded``: those that load the modulus, instead of those that have it built in where the design offers both. Cores
    whose schedule the solver would have to find are left out.
    """
    with unsolved():
        for design in designs:
            seen = set()
            for given in _settings(design, p, target, loaded, pairs):
                with suppress(UnsupportedError, MissingSchedule):
                    found = Candidate.of(design, p, given)
                    if found.loaded >= loaded and found.key not in seen:
                        seen.add(found.key)
                        yield found


def _settings(design: Design, p: int, target: Target, loaded: bool, pairs: bool) -> Iterator[dict[str, Any]]:
    start, values = start_and_values(design, p, target, loaded)
    yield start
    singles = [(name, value) for name, found in values.items() for value in found]
    for name, value in singles:
        yield {**start, name: value}
    for one in singles if pairs else []:
        yield from ({**start, **dict((one, other))} for other in singles if other[0] > one[0])


def start_and_values(
    design: Design, p: int, target: Target, loaded: bool
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """The settings that all cores of a design have for a device, and the values to try of each other setting, without
    its default."""
    start = measure.settings(design, {"loadable": True} if loaded else {}, target)
    free = [s for s in design.settings if s.name not in (*start, *_FIXED)]
    return start, {s.name: [*_values(s, design, p, start)] for s in free}


_FIXED = ("loadable", "subtract", "operand", "dsp")
"""Settings that change what a core does, or that the device decides: no choice of a search."""


def _values(setting: Setting, design: Design, p: int, start: Mapping[str, Any]) -> Iterator[Any]:
    """Values to try, without the default: all of a choice, powers of two of a whole number."""
    if setting.room:
        return
    if setting.kind is bool:
        yield not setting.default
    elif setting.choices:
        yield from (value for value in setting.choices if value != setting.default)
    elif setting.kind is int:
        try:
            least, most = design.range(setting.name, p, **start)
        except ValueError:
            return
        for k in range(14):
            value = 1 << k
            if value >= (least or 0) and (most is None or value <= most) and value != setting.default:
                yield value


class MissingSchedule(UnsupportedError):
    """The solver would have to find the schedule of a core."""


@contextmanager
def unsolved() -> Iterator[None]:
    """Inside, a schedule that does not ship is refused by MissingSchedule instead of being solved for seconds."""

    def refused(part: str) -> None:
        raise MissingSchedule(f"its schedule needs the part {part}")

    names = vars(placement)
    before, names["need"] = names["need"], refused
    try:
        yield
    finally:
        names["need"] = before
