# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Selections as cases.

Yosys prints a selection as the call of a function f(a, b, s): the part of b whose bit of s is set, or a. If all bits of
s compare one value with different numbers, it is a `case` of that value.
"""

from __future__ import annotations

from collections.abc import Mapping

from modmill.flow.readable.expressions import Expr, number
from modmill.flow.readable.module import Module, Slot, Statement


def find_cases(module: Module) -> None:
    """Make a case of every selection that is one; another stays the call of Yosys's function."""
    defined = {s.numbered: s.slots[0].expression for s in module.statements if s.numbered}
    module.statements = [_as_case(module, s, defined) for s in module.statements]


def compared(condition: Expr, defined: Mapping[str, Expr]) -> tuple[Expr, list[int]] | None:
    """The value, and the numbers with one of which it is compared; None for another condition. ``defined``: the
    expressions of nets."""
    e = defined.get(condition.text, condition) if condition.kind == "name" else condition
    match e.kind, e.text:
        case "binary", "==" if e.parts[1].kind == "number":
            return e.parts[0], [number(e.parts[1])]
        case "unary", "!" | "~":
            return e.parts[0], [0]
        case ("unary", "|") | ("binary", "|"):
            found = [compared(part, defined) for part in (e.parts[0].parts if e.parts[0].kind == "joined" else e.parts)]
            if found[0] and all(of and of[0] == found[0][0] for of in found):
                return found[0][0], [n for of in found if of for n in of[1]]
        case "name" | "part", _:
            return e, [1]
    return None


def _as_case(module: Module, statement: Statement, defined: Mapping[str, Expr]) -> Statement:
    if statement.kind != "assign" or (call := statement.slots[0].expression).text not in module.selections:
        return statement
    default, values, conditions = call.parts
    bits = module.selections[call.text]
    found = [compared(condition, defined) for condition in _divided(module, conditions, 1)]
    value = found[0][0] if found[0] else default
    numbers = [n for of in found if of and of[0] == value for n in of[1]]
    if None in found or len(set(numbers)) < sum(len(of[1]) for of in found if of):
        return statement
    chosen = zip(found, _divided(module, values, bits), strict=True)
    items = sorted(((sorted(of[1]), item) for of, item in chosen if of), key=lambda item: item[0])
    size = module.width(value)
    slots = [Slot(value, simple=True), Slot(default, bits), *(Slot(item, bits) for _, item in items)]
    shown = tuple(tuple(f"{size}'h{n:0{-(-size // 4)}x}" for n in of) for of, _ in items)
    return Statement("case", [*slots], statement.target, items=shown)


def _divided(module: Module, e: Expr, bits: int) -> list[Expr]:
    """The parts of ``bits`` bits each, lowest first."""
    pieces = [(part, module.width(part)) for part in reversed(e.parts if e.kind == "joined" else (e,))]
    result = []
    while pieces:
        parts: list[Expr] = []
        missing = bits
        while missing:
            part, size = pieces.pop(0)
            taken = min(size, missing)
            parts.insert(0, _bits(module, part, taken - 1, 0))
            if taken < size:
                pieces.insert(0, (_bits(module, part, size - 1, taken), size - taken))
            missing -= taken
        result.append(parts[0] if len(parts) == 1 else Expr("joined", "{", tuple(parts)))
    return result


def _bits(module: Module, e: Expr, high: int, low: int) -> Expr:
    if (low, high) == (0, module.width(e) - 1):
        return e
    if e.kind == "number":
        return Expr("number", f"{high - low + 1}'h{number(e) >> low & (1 << high - low + 1) - 1:x}")
    start = number(e.parts[-1]) if e.kind == "part" else 0
    ends = dict.fromkeys((start + high, start + low))
    return Expr("part", e.text, tuple(Expr("number", str(n)) for n in ends))
