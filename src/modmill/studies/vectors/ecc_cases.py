# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Vectors of elliptic curves as cases: run through the protocols on any engine, judged, sampled."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from modmill.contract import Fault, UnsupportedError
from modmill.engines.ecc import ecdh, ecdsa, eddsa
from modmill.engines.ecc.blinding import Ecc

WANTED = {"valid": {"right"}, "invalid": {"refused"}, "acceptable": {"right", "refused"}}
"""Allowed outcomes for each result that a vector may state."""


@dataclass(frozen=True)
class Case:
    """One vector: an operation on a curve with its arguments and its result.

    item: the arguments, or the message with which reading them was refused. expected: the result of an exchange, a
    multiple or a signature that is made; None for one that is verified. result: valid, invalid, or acceptable, which
    may be refused.
    """

    label: str
    operation: str
    curve: str
    item: tuple[Any, ...] | str
    result: str
    expected: Any = None
    hash: str = ""
    context: bytes = b""
    flags: tuple[str, ...] = ()

    @property
    def reaches(self) -> bool:
        """Whether its arguments could be read."""
        return not isinstance(self.item, str)

    @property
    def marks(self) -> tuple[str, ...]:
        """Flags and result."""
        return *self.flags, self.result


def outcomes(ecc: Callable[[str], Ecc], cases: Sequence[Case]) -> list[str]:
    """Return `right`, `wrong` or `refused` for each case. ``ecc``: curve's name -> the protocols on an engine.

    All cases of one operation, curve, hash and context run in one batch; if a batch is refused or a result is off the
    curve, each case runs again by itself.
    """
    batches: dict[tuple[str, str, str, bytes], list[int]] = defaultdict(list)
    found: dict[int, str] = {}
    for i, case in enumerate(cases):
        if case.reaches:
            batches[case.operation, case.curve, case.hash, case.context].append(i)
        else:
            found[i] = "refused"
    for members in batches.values():
        runner = ecc(cases[members[0]].curve)
        for i, outcome in zip(members, _batch(runner, [cases[i] for i in members]), strict=True):
            found[i] = outcome
    return [found[i] for i in range(len(cases))]


def _batch(ecc: Ecc, cases: Sequence[Case]) -> list[str]:
    try:
        results = _ask(ecc, cases)
    except (UnsupportedError, Fault) as error:
        if len(cases) > 1:
            return [outcome for case in cases for outcome in _batch(ecc, [case])]
        return ["wrong" if isinstance(error, Fault) else "refused"]
    return [_outcome(case, result) for case, result in zip(cases, results, strict=True)]


def _outcome(case: Case, result: Any) -> str:
    if isinstance(result, bool):
        return "right" if result else "refused"
    return "right" if result == case.expected else "wrong"


def _ask(ecc: Ecc, cases: Sequence[Case]) -> Sequence[Any]:
    """Results of cases of one operation, curve, hash and context."""
    items: list[Any] = [case.item for case in cases]
    operation, hash, context = cases[0].operation, cases[0].hash, cases[0].context
    match operation:
        case "ecdh":
            return ecdh.exchange(ecc, items)
        case "x":
            return ecdh.exchange_u(ecc, items, allow_zero=True)
        case "ecdsa-verify" | "ecdsa-low-s":
            return ecdsa.verify(ecc, items, hash, low_s=operation == "ecdsa-low-s")
        case "eddsa-verify":
            return eddsa.verify(ecc, items, context)
        case "ecdsa-sign":
            return [ecdsa.encode(ecc.curve, one) for one in ecdsa.sign(ecc, items, hash)]
        case "eddsa-sign":
            return eddsa.sign(ecc, items, context)
        case "multiply":
            return ecc.multiply(*_columns(items))
        case "multiply-base":
            return ecc.multiply_base([k for (k,) in items])
        case "multiply-two":
            return ecc.multiply_two(*_columns(items))
        case "ladder":
            return ecc.ladder(*_columns(items), ecc.curve.bits)
    raise ValueError(f"no protocol has an operation {operation!r}")


def _columns(items: Iterable[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    first, second = zip(*items, strict=True)
    return list(first), list(second)


def faults(ecc: Callable[[str], Ecc], cases: Sequence[Case]) -> list[str]:
    """Return a line for each case whose outcome its vector does not allow."""
    return [
        f"{case.label} {case.flags}: {case.result}, but {outcome}"
        for case, outcome in zip(cases, outcomes(ecc, cases), strict=True)
        if outcome not in WANTED[case.result]
    ]


def sample(cases: Iterable[Case], count: int) -> list[Case]:
    """Return at most ``count`` of the cases that can be read: those with rare flags first, then evenly spaced ones.

    The choice is deterministic. Every flag and every result is in the sample if ``count`` permits.
    """
    reach = [case for case in cases if case.reaches]
    frequency = Counter(mark for case in reach for mark in case.marks)
    order = sorted(range(len(reach)), key=lambda i: min(frequency[mark] for mark in reach[i].marks))
    chosen: list[int] = []
    covered: set[str] = set()
    for i in order:
        if not set(reach[i].marks) <= covered and len(chosen) < count:
            covered |= set(reach[i].marks)
            chosen.append(i)
    taken = set(chosen)
    rest = [i for i in range(len(reach)) if i not in taken]
    missing = min(count - len(chosen), len(rest))
    chosen += [rest[i * len(rest) // missing] for i in range(missing)]
    return [reach[i] for i in sorted(chosen)]


def distinct(cases: Iterable[Case]) -> Iterator[Case]:
    """Yield the cases without repeated ones: files hold the same keys in several containers."""
    seen = set()
    for case in cases:
        question = case.operation, case.curve, case.item, case.hash, case.context, case.expected
        if not case.reaches or question not in seen:
            seen.add(question)
            yield case
