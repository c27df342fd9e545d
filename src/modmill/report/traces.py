# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Measured numbers that carry the rows from which they come through arithmetic.

``traced(values["lut"], row) / 1000`` is a float whose rows are ``(row,)``; a result of two traced numbers has the rows
of both. So every cell of a table leads to its rows, and a test checks this.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from modmill.report.rows import Row


@dataclass(frozen=True)
class Run:
    """A run of an algorithm that counted something, without tool and device. ``what``: the run in words."""

    what: str


Origin = Row | Run


def row_id(row: Row) -> str:
    """Ten hexadecimal digits of a digest of the row's key, for links to the row."""
    return sha256(repr(row.key).encode()).hexdigest()[:10]


def _merged(parts: Iterable[Iterable[Origin]]) -> tuple[Origin, ...]:
    """All origins, each once, in order of appearance."""
    seen: dict[Any, Origin] = {}
    for origins in parts:
        for origin in origins:
            seen.setdefault(origin.key if isinstance(origin, Row) else origin, origin)
    return tuple(seen.values())


class _Traced:
    """A number with its origins."""

    origins: tuple[Origin, ...] = ()

    def __deepcopy__(self, memo: object) -> Any:
        return self


class TracedInt(int, _Traced):
    """A whole number with its origins."""


class TracedFloat(float, _Traced):
    """A float with its origins."""


def origins(value: object) -> tuple[Origin, ...]:
    """The origins of a number; empty for a number that is not traced."""
    return value.origins if isinstance(value, _Traced) else ()


def rows(value: object) -> tuple[Row, ...]:
    """The rows among a number's origins."""
    return tuple(origin for origin in origins(value) if isinstance(origin, Row))


def traced(value: Any, *sources: object) -> Any:
    """``value`` with the origins of the sources, each a row, a run, or a traced number that it was computed from.

    A value that is not a number (a text, None, True) is returned unchanged.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    found = _merged([(s,) if isinstance(s, (Row, Run)) else origins(s) for s in sources])
    if not found:
        return value
    made = TracedInt(value) if isinstance(value, int) else TracedFloat(value)
    made.origins = found
    return made


def counted(value: int, what: str) -> int:
    """A number that was counted in a run of an algorithm."""
    number: int = traced(value, Run(what))
    return number


def _binary(plain: Callable[..., Any], *, reflected: bool) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        a, b = _plain(self), _plain(other)
        return traced(plain(b, a) if reflected else plain(a, b), self, other)

    return method


def _unary(plain: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *rest: traced(plain(_plain(self), *rest), self)


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, TracedInt) else float(value) if isinstance(value, TracedFloat) else value


for _kind in (TracedInt, TracedFloat):
    for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod"):
        _operation = getattr(operator, _name)
        setattr(_kind, f"__{_name}__", _binary(_operation, reflected=False))
        setattr(_kind, f"__r{_name}__", _binary(_operation, reflected=True))
    for _name, _function in (("neg", operator.neg), ("abs", abs), ("round", round)):
        setattr(_kind, f"__{_name}__", _unary(_function))
