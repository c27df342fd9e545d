# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Cases to try: design, modulus, form and settings, drawn so that every choice of every setting occurs."""

from __future__ import annotations

import random
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import exp, log
from typing import Any

from allpairspy import AllPairs  # type: ignore[import-untyped]

from modmill.buses.adapters import BUSES
from modmill.contract import UnsupportedError
from modmill.design import PLAIN, Design, Setting
from modmill.designs import DESIGNS
from modmill.studies.exploring import moduli

OFTEN = 3
"""Least number of trials for each class of each setting."""
HUGE = 100_000
"""Upper limit of drawn values for a whole number without an upper limit."""
STEERED = 6
"""Period of the draws of a design while classes remain to be tried: one case from pairs, three for the least covered
class outside the limits (a refusal, which is cheap), the others for the least covered class inside."""
USUAL = 3
"""Weight of a setting's default in a case for one class, against 1 for all its other values, while nothing is known."""
LACKING = 4
"""Weight of a class that remains to be tried and was never refused, in a case for another class inside the limits."""
AHEAD = 200
"""Number of additional cases of a design with classes to be tried, compared with a design without."""

Class = tuple[str, str]
"""A setting's name, or ``io``, ``size`` or ``shape``, and a class of its values."""

_OUTSIDE = frozenset({"below", "beyond", "huge"})
BEHIND_BUS = 12
"""One case in this number is also tried behind a bus."""
_SIZES = ("tiny", "narrow", "word", "middle")
_LARGER = {"wide": 0.10, "long": 0.03}  # probability that a modulus of size middle is replaced by one of this size


@dataclass(frozen=True)
class Case:
    """One core to try: ``settings`` has the given settings; all others have their defaults. ``bus``: the bus behind
    which it is tried too."""

    design: str
    p: int
    io: str
    settings: tuple[tuple[str, Any], ...] = ()
    bus: str = ""

    @property
    def command(self) -> str:
        """The command that builds the core."""
        sets = [word for name, value in self.settings for word in ("--set", f"{name}={value}")]
        bus = ["--bus", self.bus] if self.bus else []
        return shlex.join(["modmill", "build", self.design, "-m", moduli.text(self.p), "--io", self.io, *sets, *bus])


@dataclass(frozen=True)
class Drawn:
    """A case and the classes that it covers."""

    case: Case
    covers: frozenset[Class]
    """The classes of its values, form, size and shape."""
    target: Class | None = None
    """The class for which the case was drawn."""
    chosen: Mapping[str, str] = field(default_factory=dict)
    """The drawn class of every setting, of ``io`` and of ``size``; where it has no value, the default was taken."""


# ---------------------------------------------------------------------------------------------- classes of values


def limits(setting: Setting, p: int, values: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Least and largest value of a whole number for a modulus and other settings; the setting's static limits if the
    design has none for that modulus."""
    try:
        return setting.range(p, values)
    except Exception:
        return setting.least, setting.most


def parsed(design: Design, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that `build` would go on with, and defaults for the others: limits are functions of these alone."""
    found = {}
    for s in design.settings:
        try:
            found[s.name] = s.parse(values[s.name])
        except UnsupportedError:
            found[s.name] = s.default
    return found


def classes(setting: Setting) -> list[str]:
    """The classes of values to be covered: each choice; for whole numbers the limits, beyond them, default, between."""
    if setting.kind is bool:
        return ["True", "False"]
    if setting.choices:
        return [str(choice) for choice in setting.choices]
    if setting.kind is not int:
        return ["default"]
    upper = ["most", "beyond"] if setting.most is not None or setting.limits is not None else ["huge"]
    found = ["default", "below", "least", "between", *upper]
    inside = None if setting.least is None or setting.most is None else range(setting.least + 1, setting.most)
    if setting.limits is None and inside is not None and not set(inside) - {setting.default}:
        found.remove("between")
    return found


def label(setting: Setting, value: Any, p: int, values: Mapping[str, Any]) -> set[str]:
    """The classes of a value."""
    if setting.kind is bool or setting.choices or setting.kind is not int:
        return {str(value) if setting.kind is bool or setting.choices else "default"}
    found = {"default"} if value == setting.default else set()
    least, most = limits(setting, p, values)
    if setting.automatic and value == 0:
        return found | ({"least"} if least == 0 else set())
    if least is not None and value <= least:
        found.add("least" if value == least else "below")
    if most is not None and value >= most:
        found.add("most" if value == most else "beyond")
    if most is None and value >= HUGE:
        found.add("huge")
    return found or {"between"}


def value_of(rnd: random.Random, setting: Setting, wanted: str, p: int, values: Mapping[str, Any]) -> Any:
    """A random value of a class; the default if the class has no value for the modulus."""
    if setting.kind is bool:
        return wanted == "True"
    if setting.choices:
        return next(choice for choice in setting.choices if str(choice) == wanted)
    least, most = limits(setting, p, values)
    low = 0 if least is None else least
    found = {
        "default": setting.default,
        "below": rnd.choice([x - 1 for x in sorted({low, setting.least or 0}) if x - 1 or not setting.automatic]),
        "least": low,
        "most": most,
        "beyond": None if most is None else most + rnd.choice((1, 1, 2, most + 1)),
        "huge": HUGE,
        "between": _between(rnd, setting.default, low, most),
    }[wanted]
    return setting.default if found is None else found


def _between(rnd: random.Random, default: int, least: int, most: int | None) -> int | None:
    """A number between the limits other than the default: near the default or the lower limit, or on a log scale."""
    top = max(least + 2, 8 * max(default, least, 8)) if most is None else most
    if top - least < 2:
        return None
    near = {default - 1, default + 1, default // 2, 2 * default, least + 1, least + 2} - {default}
    inside = sorted(x for x in near if least < x < top)
    if inside and rnd.random() < 0.4:
        return rnd.choice(inside)
    offset = min(int(exp(rnd.uniform(0.0, log(top - least)))), top - least - 1)
    return next((x for x in (least + offset, *inside) if x != default), None)


# ---------------------------------------------------------------------------------------------- drawing


@dataclass
class Counts:
    """Outcomes of the cases of one design."""

    drawn: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    tried: Counter[Class] = field(default_factory=Counter)
    covered: Counter[Class] = field(default_factory=Counter)
    beside: Counter[tuple[Class, Class]] = field(default_factory=Counter)
    """Outcomes of cases for a class, by each class beside it; the next counts those that were built."""
    built_beside: Counter[tuple[Class, Class]] = field(default_factory=Counter)


def _forms(design: Design) -> tuple[str, ...]:
    """The forms that a design of the table has for the first of some moduli that it serves; of another, two."""
    for p in (97, 2**61 - 1, 2**127 - 1) if design in DESIGNS else ():
        with suppress(ValueError):
            return design.fit(p).forms
    return PLAIN


class _Corner:
    """Draws the cases of one design."""

    def __init__(self, design: Design, rnd: random.Random, buses: random.Random) -> None:
        self.design, self.counts = design, Counts()
        self._rnd, self._buses = rnd, buses
        self._pairs: Iterator[Mapping[str, str]] = iter(())
        self.wanted = {(s.name, c) for s in design.settings for c in classes(s)}
        self.forms = _forms(design)
        if design in DESIGNS:
            self.wanted |= {("io", form) for form in self.forms}

    def draw(self) -> Drawn:
        """The next case."""
        counts = self.counts
        counts.drawn += 1
        turn = counts.drawn % STEERED
        outside = turn % 2 == 0 and self._lacks(True)
        target = self._rarest(outside) if turn != 1 and self._lacks(outside) else None
        chosen = self._pair() if target is None else self._around(target)
        size = chosen["size"]
        for larger, chance in _LARGER.items():
            if size == "middle" and self._rnd.random() < chance:
                size = larger
        shape = self._shape()
        p = moduli.draw(self._rnd, size, shape, self._words(chosen))
        values = {s.name: s.default for s in self.design.settings}
        for s in sorted(self.design.settings, key=lambda s: (s.kind is int, s.limits is not None)):
            values[s.name] = value_of(self._rnd, s, chosen[s.name], p, parsed(self.design, values))
        given = tuple((s.name, values[s.name]) for s in self.design.settings if values[s.name] != s.default)
        sound = parsed(self.design, values)
        covers = {(s.name, c) for s in self.design.settings for c in label(s, values[s.name], p, sound)}
        covers |= {("io", chosen["io"]), ("size", size), ("shape", shape)}
        counts.tried.update(covers | ({target} if target else set()))
        bus = self._buses.choice(BUSES).name if self._buses.randrange(BEHIND_BUS) == 0 else ""
        return Drawn(Case(self.design.name, p, chosen["io"], given, bus), frozenset(covers), target, chosen)

    def learn(self, drawn: Drawn, outcome: str) -> None:
        """Count the outcome of a case. Any outcome covers a value outside the limits; only a built core covers any
        other value."""
        self.counts.outcomes[outcome] += 1
        for key in drawn.covers:
            if outcome != "refused" or key[1] in _OUTSIDE:
                self.counts.covered[key] += 1
        if drawn.target:
            beside = [(drawn.target, other) for other in drawn.chosen.items()]
            self.counts.beside.update(beside)
            self.counts.built_beside.update(beside if outcome != "refused" else ())

    def _pair(self) -> Mapping[str, str]:
        """The next case of an endless sequence of lists; in each list every two classes inside the limits occur
        together."""
        while (found := next(self._pairs, None)) is None:
            columns = {s.name: [c for c in classes(s) if c not in _OUTSIDE] for s in self.design.settings}
            columns |= {"io": list(self.forms), "size": list(_SIZES)}
            for column in columns.values():
                self._rnd.shuffle(column)
            rows = [dict(zip(columns, row, strict=True)) for row in AllPairs(list(columns.values()))]
            self._rnd.shuffle(rows)
            self._pairs = iter(rows)
        return found

    def _lacks(self, outside: bool) -> bool:
        """Whether a class inside (or outside) the limits remains to be tried."""
        return any(self._lacking(*key) for key in self.wanted if (key[1] in _OUTSIDE) == outside)

    def _wish(self, key: Class) -> float:
        """Weight of a class beside another: more while it remains to be tried, less of it the oftener in vain."""
        counts = self.counts
        return 1 + self._lacking(*key) * (LACKING - 1) * (counts.covered[key] + 1) / (counts.tried[key] + 1)

    def _lacking(self, name: str, value: str) -> bool:
        """Whether this class remains to be tried."""
        return (name, value) in self.wanted and self.counts.covered[name, value] < OFTEN

    @property
    def lacking(self) -> bool:
        """Whether any class remains to be tried."""
        return self._lacks(True) or self._lacks(False)

    def _rarest(self, outside: bool) -> Class:
        """The least covered class inside (or outside) the limits that remains to be tried; one that was often tried in
        vain waits."""
        keys = sorted(k for k in self.wanted if (k[1] in _OUTSIDE) == outside and self._lacking(*k))
        score = {key: self.counts.covered[key] + self.counts.tried[key] / 4 for key in keys}
        return self._rnd.choice([key for key in keys if score[key] == min(score.values())])

    def _around(self, target: Class) -> Mapping[str, str]:
        """A case for a class. Most other settings have their defaults; classes that remain to be tried, and what was
        built with this class, come oftener, what was refused with it less."""
        counts, out = self.counts, {target[0]: target[1]}
        columns = {s.name: [c for c in classes(s) if c not in _OUTSIDE] for s in self.design.settings}
        usual = {s.name: str(s.default) if s.kind is bool or s.choices else "default" for s in self.design.settings}
        for column, found in (columns | {"io": list(self.forms), "size": list(_SIZES)}).items():
            if column == target[0]:
                continue
            keys = [(target, (column, c)) for c in found]
            odds = [(counts.built_beside[key] + 1) / (counts.beside[key] + 2) for key in keys]
            weights = [
                x
                * (USUAL * (len(found) - 1 or 1) if c == usual.get(column) else 1)
                * (1 if target[1] in _OUTSIDE else self._wish((column, c)))
                for c, x in zip(found, odds, strict=True)
            ]
            out[column] = self._rnd.choices(found, weights)[0]
        return out

    def _shape(self) -> str:
        """A shape of moduli; shapes that the design serves are more frequent."""
        counts = self.counts
        keys = {shape: ("shape", shape) for shape in moduli.SHAPES}
        weights = [(counts.covered[key] + 1) / (counts.tried[key] + 2) for key in keys.values()]
        return self._rnd.choices(list(keys), weights)[0]

    def _words(self, chosen: Mapping[str, str]) -> list[int]:
        """Word lengths in bits among the design's settings."""
        return [s.default for s in self.design.settings if s.kind is int and 8 <= s.default <= 80]


class Space:
    """Draws cases of all designs in turn; the same seed and the same outcomes give the same sequence."""

    def __init__(self, designs: Sequence[Design], seed: int) -> None:
        self._rnd = random.Random(seed)
        self._corners = {
            d.name: _Corner(d, *(random.Random(f"{seed} {d.name}{more}") for more in ("", " bus"))) for d in designs
        }

    def draw(self) -> Drawn:
        """The next case, of the design with the fewest tries; a refused case counts little, and designs with classes to
        be tried are preferred."""
        score = {
            name: c.counts.drawn - 0.8 * c.counts.outcomes["refused"] - AHEAD * c.lacking
            for name, c in self._corners.items()
        }
        least = min(score.values())
        return self._corners[self._rnd.choice([n for n, s in score.items() if s <= least + 0.5])].draw()

    def learn(self, drawn: Drawn, outcome: str) -> None:
        """Record the outcome of a case."""
        self._corners[drawn.case.design].learn(drawn, outcome)

    @property
    def counts(self) -> dict[str, Counts]:
        """Counts of each design."""
        return {name: corner.counts for name, corner in self._corners.items()}

    def below(self, often: int = OFTEN) -> dict[str, int]:
        """Designs, and classes of their settings, with fewer than ``often`` trials, and that number."""
        found = {}
        for name, corner in self._corners.items():
            counts = corner.counts
            built = sum(counts.outcomes.values()) - counts.outcomes["refused"]
            if built < often:
                found[name] = built
            for setting, wanted in sorted(corner.wanted):
                if (times := counts.covered[setting, wanted]) < often:
                    found[f"{name} {setting}: {wanted}"] = times
        return found
