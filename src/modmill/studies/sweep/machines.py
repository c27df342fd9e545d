# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Whole machines as points of a sweep: coprocessors of curves and engines for RSA, around a multiplier.

A table ``[[machines]]`` of a plan has the keys of `KEYS`, which are options of ``modmill ecc race`` and ``modmill rsa
race``; an option that it does not give has the default of these commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import product
from typing import Any

from modmill.contract import UnsupportedError
from modmill.cores.built import BuiltEngine
from modmill.cores.ecc.machine import EccCore, ecc
from modmill.cores.rsa.machine import METHODS, engine
from modmill.design import IO
from modmill.designs import design as find_design
from modmill.engines.ecc.point_engine import OPERATIONS, Shape
from modmill.engines.rsa.rsa import engine_width
from modmill.numbers.curves.text import parse_curve
from modmill.numbers.shown import near, shortened
from modmill.studies.race.ecc import ANY, operation_of

SUBJECT = {"ecc": "curve", "rsa": "bits"}
"""Kinds of machines, with the key of what a machine computes on: a curve, or the length of RSA moduli."""
_BOTH: Mapping[str, Sequence[Any]] = {"io": IO, "threads": range(65), "cores": range(1, 65)}
KEYS: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "ecc": {
        "operation": (ANY, *OPERATIONS), "window": range(1, 7), "teeth": range(1, 9), "columns": range(1, 9),
        "joint": (False, True), "endomorphism": (False, True), "sums": range(9), "word": range(8, 65), **_BOTH,
    },
    "rsa": {
        "method": METHODS, "window": range(1, 9), "crt": (False, True), "blind": range(129), "word": range(16, 65),
        **_BOTH,
    },
}  # fmt: skip
"""Options of each kind, with the values that are accepted."""


def checked(table: Any) -> dict[str, Any]:
    """A table of a plan, all values lists, without values that are there twice. Raises UnsupportedError for a wrong key
    or value."""
    kind = str(table.get("kind") if isinstance(table, dict) else table)
    if not isinstance(table, dict) or kind not in KEYS:
        raise UnsupportedError(
            f"machines takes tables, [[machines]], of kind {' or '.join(KEYS)}, not {shortened(kind)}"
        )
    needed, where = (SUBJECT[kind], "multiplier"), f"[[machines]] of kind {kind}"
    accepted = ["kind", *needed, "settings", *KEYS[kind]]
    for name in table:
        if name not in accepted:
            hint = near(name, accepted)
            takes = f"it takes {', '.join(accepted)}{hint and f'; {hint}'}"
            raise UnsupportedError(f"{where} has no key {shortened(name)}; {takes}")
    for name in needed:
        if name not in table:
            raise UnsupportedError(f"{where} needs {name}")
    checks: dict[str, Callable[[Any], Any]] = {"curve": _curve, "bits": lambda n: engine_width(_whole(n), True)}
    checks["multiplier"] = lambda name: find_design(_text(name))
    found: dict[str, Any] = {}
    for name, value in table.items():
        if name not in ("kind", "settings"):
            check = checks.get(name) or _one_of(f"machines.{name}", KEYS[kind][name])
            found[name] = _values(f"machines.{name}", value, check)
    settings = table.get("settings", {})
    if not isinstance(settings, dict):
        raise UnsupportedError(f"machines.settings is a table, not {shortened(settings)}")
    found["settings"] = {
        name: _values(f"machines.settings.{name}", value, lambda _: None) for name, value in settings.items()
    }
    for name, values in found["settings"].items():
        for design, value in product(found["multiplier"], values):
            find_design(design).checked({name: value})
    return {"kind": kind, **found}


def described(table: Mapping[str, Any]) -> Iterator[tuple[str, str, str, dict[str, Any], dict[str, Any]]]:
    """Kind, subject, multiplier, settings and options of each machine of a checked table."""
    options = {name: values for name, values in table.items() if name in KEYS[table["kind"]]}
    settings = table["settings"]
    for subject, multiplier in product(table[SUBJECT[table["kind"]]], table["multiplier"]):
        for given in product(*settings.values()):
            for chosen in product(*options.values()):
                pairs = dict(zip(settings, given, strict=True)), dict(zip(options, chosen, strict=True))
                yield table["kind"], str(subject), multiplier, *pairs


def count(table: Mapping[str, Any]) -> int:
    """The number of machines of a checked table."""
    found = 1
    for name, values in (table | table["settings"]).items():
        found *= 1 if name in ("kind", "settings") else len(values)
    return found


def build(kind: str, subject: str, design: str, settings: Mapping[str, Any], given: Mapping[str, Any]) -> BuiltEngine:
    """The machine. Raises UnsupportedError if the multiplier or the options do not suit what it computes on."""
    options = dict(given)
    if kind == "ecc":
        curve = parse_curve(subject)
        shape = Shape(**{f.name: options.pop(f.name) for f in fields(Shape) if f.name in options})
        operation = operation_of(curve, options.pop("operation", ANY))
        return ecc(curve, design, settings, operations=(operation,), shape=shape, **options)
    width = engine_width(int(subject), options.pop("crt", True))
    return engine(design, width=width, settings=settings, bits=width + options.pop("blind", 0), **options)


def cycles(machine: BuiltEngine) -> int:
    """The predicted cycles of a job."""
    return machine.cycles(machine.operations[0] if isinstance(machine, EccCore) else 0)  # type: ignore[attr-defined]


def _values(name: str, value: Any, check: Callable[[Any], Any]) -> list[Any]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise UnsupportedError(f"{name} takes one value or more, not an empty list")
    for each in values:
        check(each)
    return [*dict.fromkeys(values)]


def _one_of(name: str, accepted: Sequence[Any]) -> Callable[[Any], None]:
    words = f"{accepted[0]} to {accepted[-1]}" if isinstance(accepted, range) else " or ".join(map(_toml, accepted))

    def check(value: Any) -> None:
        if type(value) is not type(accepted[0]) or value not in accepted:
            raise UnsupportedError(f"{name} takes {words}, not {shortened(_toml(value))}")

    return check


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _curve(text: Any) -> None:
    parse_curve(_text(text))


def _text(value: Any) -> str:
    if type(value) is not str:
        raise UnsupportedError(f"machines takes a name, not {shortened(value)}")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise UnsupportedError(f"machines.bits takes whole numbers, not {shortened(value)}")
    return value
