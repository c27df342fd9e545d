# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Reduction of a failing case: Hypothesis moves settings to their defaults, numbers to their limits and the modulus to
the smallest that still fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import HypothesisException
from hypothesis.strategies import SearchStrategy, sampled_from, tuples

from modmill.design import Design
from modmill.studies.exploring.space import Case

SECONDS = 90.0
"""Time limit for the reduction of a case; a running trial finishes."""
_KEPT = 3  # weight of the original values in a random case, against 1 for simpler ones
_EXAMPLES = 400
_SETTINGS = settings(
    database=None, derandomize=True, deadline=None, max_examples=_EXAMPLES, phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


def shrink(case: Case, design: Design, fails: Callable[[Case], bool], seconds: float = SECONDS) -> Case:
    """The smallest case found for which ``fails`` holds: fewest settings that are not defaults, then the least modulus.

    ``fails`` holds for ``case`` and is called once for each other case, until ``seconds`` have passed.
    """
    end, known, best = time.monotonic() + seconds, {case: True}, case

    def still(smaller: Case) -> bool:
        nonlocal best
        if smaller not in known and time.monotonic() > end:
            return False
        if smaller not in known:
            known[smaller] = fails(smaller)
        if known[smaller] and _size(smaller) < _size(best):
            best = smaller
        return known[smaller]

    for without in (
        case.settings,
        *((setting,) for setting in case.settings),
    ):  # settings that the failure does not need go first
        still(replace(best, settings=tuple(s for s in best.settings if s not in without)))
    with suppress(HypothesisException):  # no smaller case failed in time
        find(_simpler(best, design), still, settings=_SETTINGS)
    return best


def _size(case: Case) -> tuple[int, int, str]:
    return len(case.settings), case.p, str(case.settings)


def _simpler(case: Case, design: Design) -> SearchStrategy[Case]:
    """Cases between the design's simplest and this one; Hypothesis prefers the values that are listed first."""
    given = dict(case.settings)
    known = [s for s in design.settings if s.name in given]
    values = [_weighted(_values(s.default, given[s.name], s.least), given[s.name]) for s in known]
    moduli = _weighted([p for p in smaller_moduli(case.p) if p < case.p], case.p)

    def made(drawn: tuple[Any, ...]) -> Case:
        p, *rest = drawn
        kept = tuple((s.name, v) for s, v in zip(known, rest, strict=True) if v != s.default)
        return Case(case.design, p, case.io, kept, case.bus)

    return tuples(sampled_from(moduli), *map(sampled_from, values)).map(made)


def _weighted(simpler: Sequence[Any], own: Any) -> list[Any]:
    return [*simpler, *[own] * max(1, _KEPT * len(simpler))]


def _values(default: Any, value: Any, least: int | None) -> list[Any]:
    """Simpler values of a setting: its default, and for a whole number some values towards its lower limit."""
    if type(value) is not int:
        return [default]
    low = 0 if least is None else least
    between = sorted({low, low + 1, low + 2, (low + value) // 2, value // 2, value - 1})
    return [default, *(v for v in between if low <= v < value and v != default)]


def smaller_moduli(p: int) -> list[int]:
    """Shorter moduli that resemble ``p``, in ascending order: its head, its tail, all ones, one and zeros."""
    found = {3, 5, 7, 9, 11, 13}
    for bits in range(2, p.bit_length() + 1):
        if bits > 20 and bits % 16 not in (15, 0, 1) and bits % 17 not in (0, 1):
            continue
        top = p >> p.bit_length() - bits
        found |= {top | 1, 1 << bits - 1 | p % (1 << bits - 1), (1 << bits) - 1, (1 << bits - 1) + 1}
    return sorted(q for q in found if q >= 3 and q % 2)
