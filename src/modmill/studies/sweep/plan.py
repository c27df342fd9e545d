# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The plan of a sweep: a TOML file whose lists multiply to points. `docs/sweep.md` describes the keys."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain, product
from math import prod
from pathlib import Path
from typing import Any

from modmill.contract import UnsupportedError
from modmill.cores import digests
from modmill.design import IO, Design
from modmill.designs import design as find_design
from modmill.flow.targets import target as find_target
from modmill.numbers.moduli import parse_modulus
from modmill.numbers.shown import near, shortened
from modmill.studies.race import measure
from modmill.studies.sweep import machines
from modmill.studies.sweep.clusters import KINDS as CLUSTERS
from modmill.studies.sweep.limited import Limits
from modmill.studies.sweep.measuring import tool_of
from modmill.studies.sweep.points import KINDS, Hashable, Point

POINTS_MAX = 1_000_000
"""Largest number of combinations of a plan."""


@dataclass(frozen=True)
class Plan:
    """A checked plan. ``settings``: for each design, the values that each of its settings takes. ``machines``: as
    `machines.checked` returns them. ``cluster``: the table for a queue, empty for this machine."""

    targets: Sequence[str]
    moduli: Sequence[str] = ()
    designs: Sequence[str] = ()
    io: Sequence[str] = ("native",)
    measure: Sequence[str] = ("synth",)
    seeds: Sequence[int] = (1, 2, 3)
    settings: Mapping[str, Mapping[str, Sequence[Any]]] = field(default_factory=dict)
    machines: Sequence[Mapping[str, Any]] = ()
    limits: Limits = field(default_factory=Limits)
    cluster: Mapping[str, Any] = field(default_factory=dict)

    def points(self) -> list[Point]:
        """All points, each once."""
        return [*dict.fromkeys(self._points())]

    def _points(self) -> Iterator[Point]:
        fingerprint = digests.fingerprint()
        for modulus, name, io in product(self.moduli, self.designs, self.io):
            design, value = find_design(name), hex(parse_modulus(modulus).value)
            for settings, target in product(self._settings(design), self.targets):
                given = Hashable(measure.settings(design, settings, find_target(target)))
                for kind, place, seed, tool in self._measurements(target):
                    yield Point(kind, name, value, io, given, place, seed, tool, fingerprint)
        for machine, subject, name, settings, options in chain(*map(machines.described, self.machines)):
            fingerprint, io = digests.fingerprint(digests.EVERYTHING), options.pop("io", "")
            for target in self.targets:
                given = Hashable(measure.settings(find_design(name), settings, find_target(target)))
                for kind, place, seed, tool in self._measurements(target):
                    words = machine, Hashable(options)
                    yield Point(kind, name, subject, io, given, place, seed, tool, fingerprint, *words)

    def _measurements(self, target: str) -> Iterator[tuple[str, str, int | None, str]]:
        """Kind, target, seed and tool of each measurement of a core."""
        for kind in self.measure:
            place = "" if kind == "check" else target
            for seed in self.seeds if kind == "route" else [None]:
                yield kind, place, seed, tool_of(kind, place)

    def _settings(self, design: Design) -> Iterator[dict[str, Any]]:
        lists = self.settings.get(design.name, {})
        return (dict(zip(lists, values, strict=True)) for values in product(*lists.values()))


def read(path: Path) -> Plan:
    """The plan of a file. Raises ValueError, with the path and what would be accepted, for a file that is none."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        return parse(found)
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no TOML file in UTF-8") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def parse(found: Mapping[str, Any]) -> Plan:
    """The plan of a TOML document. Raises ValueError for unknown keys and values."""
    _require_keys("the plan", found, [f.name for f in fields(Plan)])
    wanted = ("targets",) if "machines" in found and not {"moduli", "designs"} & set(found) else _EXAMPLES
    for name in wanted:
        if name not in found:
            raise UnsupportedError(f"the plan needs {name}, a list, for example: {name} = {_EXAMPLES[name]}")
    given: dict[str, Any] = {name: _list(name, found[name], known) for name, known in _LISTS.items() if name in found}
    settings = _table("settings", found.get("settings", {}))
    for name, table in settings.items():
        if name not in (designs := given.get("designs", [])):
            raise UnsupportedError(f"[settings.{name}] is for none of the plan's designs, {', '.join(designs)}")
        settings[name] = _values(find_design(name), _table(f"settings.{name}", table))
    if not isinstance(tables := found.get("machines", []), list):
        tables = [tables]
    given["machines"] = [*map(machines.checked, tables)]
    plan = Plan(**given, settings=settings, limits=_limits(found), cluster=_cluster(found))
    cores = sum(prod(map(len, plan.settings.get(name, {}).values())) for name in plan.designs)
    cores *= len(plan.moduli) * len(plan.io)
    count = (cores + sum(map(machines.count, plan.machines))) * len(plan.targets) * len(plan.seeds)
    if count > POINTS_MAX:
        raise UnsupportedError(f"the plan has up to {count:,} points, at most {POINTS_MAX:,} are accepted")
    for kind, target in product(plan.measure, plan.targets):
        tool_of(kind, target)
        if kind == "route" and plan.machines and not find_target(target).routable:
            raise UnsupportedError(f"whole machines cannot be placed and routed on {target} here; take ecp5-85k")
    return plan


def _io(text: str) -> None:
    if text not in IO:
        raise UnsupportedError(f"io takes {', '.join(IO)}, not {shortened(text)}")


def _kind(text: str) -> None:
    if text not in KINDS:
        raise UnsupportedError(f"measure takes {', '.join(KINDS)}, not {shortened(text)}")


def _seed(number: int) -> None:
    if number < 1:
        raise UnsupportedError(f"seeds takes whole numbers from 1 on, not {shortened(number)}")


_LISTS: Mapping[str, Callable[[Any], Any]] = {
    "moduli": parse_modulus, "designs": find_design, "targets": find_target, "io": _io, "measure": _kind,
    "seeds": _seed,
}  # fmt: skip
"""The lists of a plan, with what refuses a wrong value."""
_EXAMPLES = {"moduli": '["P-256", "2^255-19"]', "designs": '["wide", "karatsuba"]', "targets": '["ecp5-85k"]'}


def _require_keys(where: str, found: Mapping[str, Any], accepted: Sequence[str]) -> None:
    for name in found:
        if name not in accepted:
            hint = near(name, accepted)
            raise UnsupportedError(
                f"{where} has no key {shortened(name)}; it takes {', '.join(accepted)}{hint and f'; {hint}'}"
            )


def _table(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UnsupportedError(f"{name} is a table, [{name}], not {shortened(value)}")
    return dict(value)


def _list(name: str, value: Any, known: Callable[[Any], Any]) -> list[Any]:
    kind, words = (int, "whole numbers") if name == "seeds" else (str, "texts")
    if not isinstance(value, list) or not value or any(type(each) is not kind for each in value):
        raise UnsupportedError(f"{name} takes a list of one or more {words}, not {shortened(value)}")
    for each in value:
        known(each)
    return [*dict.fromkeys(value)]


def _values(design: Design, table: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The values of each setting: a value alone is a list of one."""
    found = {}
    for name, value in table.items():
        values = value if isinstance(value, list) else [value]
        if not values:
            raise UnsupportedError(f"settings.{design.name}.{name} takes one value or more, not an empty list")
        found[name] = [*dict.fromkeys(design.checked({name: each})[name] for each in values)]
    return found


def _limits(found: Mapping[str, Any]) -> Limits:
    table = _table("limits", found.get("limits", {}))
    least = {"seconds": 1, "memory_mb": 100, "retries": 0}
    _require_keys("[limits]", table, [*least])
    for name, value in table.items():
        if type(value) is not int or value < least[name]:
            raise UnsupportedError(f"limits.{name} takes a whole number from {least[name]} on, not {shortened(value)}")
    return Limits(**table)


def _cluster(found: Mapping[str, Any]) -> dict[str, Any]:
    if "cluster" not in found:
        return {}
    table = _table("cluster", found["cluster"])
    if (kind := table.get("kind")) not in CLUSTERS:
        raise UnsupportedError(f"cluster.kind takes {', '.join(CLUSTERS)}, not {shortened(kind)}")
    jobs = table.setdefault("jobs", 1)
    if type(jobs) is not int or jobs < 1:
        raise UnsupportedError(f"cluster.jobs takes a whole number from 1 on, not {shortened(jobs)}")
    return table
