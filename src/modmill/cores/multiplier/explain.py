# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Explain a core: source, constants and bounds, schedule as a chart, one product with its intermediate values."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from modmill.cores.multiplier import operands
from modmill.report.chart import chart

if TYPE_CHECKING:
    from modmill.cores.multiplier.build import Core

_SHOWN = 8
"""Maximum number of elements of a vector that are shown."""


def explanation(core: Core, width: int = 100) -> str:
    """Return the explanation of a core as text, wrapped at ``width`` columns where possible."""
    design, fitted, plan = core.design, core.fitted, core.fitted.schedule
    native = fitted.contract("native")
    two = native.operands == 2
    unit = "product" if two else "number"
    name = f"{design.name}{f' ({design.paper})' if design.paper else ''}: {design.title}"
    facts = [
        ("source", str(design.source)),
        *_modulus(core),
        ("factor", hex(fitted.factor)),
        ("parameters", ", ".join(f"{k} = {v}" for k, v in fitted.settings.items())),
        *fitted.facts(),
        *([("results as operands", f"{'' if native.closed else 'not '}in chains of any length")] if two else []),
        ("predicted", f"{fitted.cost.dsp} DSP blocks, {fitted.cost.memory_bits} bits of constants, "
                      f"{fitted.cost.multiplications} channel multiplications a {unit}"),
    ]  # fmt: skip
    return "\n".join(
        [
            name,
            "",
            *_columns(facts, width),
            "",
            f"Schedule of one {unit}: latency {plan.latency}, interval {plan.interval}, {plan.in_flight} in flight",
            "",
            chart(plan, width),
            "",
            *_example(core, width),
        ]
    )


def _modulus(core: Core) -> list[tuple[str, str]]:
    named = f" ({core.modulus.name})" if core.modulus.name else ""
    if core.contract.p == core.modulus.value:
        return [("modulus p", f"{hex(core.modulus.value)}{named}")]
    return [("made for", f"{hex(core.modulus.value)}{named}"), ("congruent modulo p", hex(core.contract.p))]


def _columns(rows: list[tuple[str, str]], width: int) -> Iterator[str]:
    label = max(len(name) for name, _ in rows)
    for name, text in rows:
        parts = textwrap.wrap(text, max(20, width - label - 2)) or [""]
        yield f"{name:<{label}}  {parts[0]}"
        yield from (" " * (label + 2) + part for part in parts[1:])


def _example(core: Core, width: int) -> list[str]:
    contract = core.fitted.contract("native")
    rnd = random.Random(1)
    one = contract.operands == 1
    top = contract.largest_operand + 1 if one else contract.p
    a, b = rnd.randrange(top), 0 if one else rnd.randrange(top)
    rows: list[tuple[str, Any]] = [("a", a)] if one else [("a", a), ("b", b)]
    port = a, b
    if contract.operand == core.fitted.representation:
        port = contract.operand.encode(a), b if one else contract.operand.encode(b)
    *inner, (name, result) = core.fitted.trace(*port)
    rows += inner
    rows.append((name, contract.result.decode(result)))
    product = operands.judged(contract, [port])[0]
    rows.append(("a factor mod p" if one else "a b factor mod p", product.value))
    label = max(len(_cut(name, 24)) for name, _ in rows)
    shown = [f"{_cut(name, 24):<{label}}  {_value(value, width - label - 2)}" for name, value in rows]
    same = contract.result.decode(result) % contract.p == product.value
    verdict = f"The last two are {'congruent' if same else 'NOT CONGRUENT'} modulo p."
    return ["Example, with the names of all intermediate values:", "", *shown, "", verdict]


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"


def _value(value: Any, room: int) -> str:
    if isinstance(value, (list, tuple)):
        shown = " ".join(_hex(x, 10) for x in value[:_SHOWN])
        return _cut(f"[{shown}{' …' if len(value) > _SHOWN else ''}]", room)
    return _hex(value, max(24, room)) if isinstance(value, int) else _cut(str(value), room)


def _hex(x: int, room: int) -> str:
    text = hex(x)
    if len(text) <= room:
        return text
    head = (room + 1) // 2
    return f"{text[:head]}…{text[-(room - head - 1) :]}"
