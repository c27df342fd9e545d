# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A core in a notebook: data sheet, schedule and measured rows as HTML, without emitting its RTL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from modmill.contract import UnsupportedError
from modmill.flow import tools
from modmill.numbers.moduli import parse_modulus
from modmill.report import sheet
from modmill.report.chart import chart
from modmill.report.measured import by_device, core_numbers
from modmill.report.result_tables import clock
from modmill.report.rows import Row, Store

if TYPE_CHECKING:
    from modmill.cores.multiplier.build import Core

_HEAD = ("device", "latency, interval", "DSP", "LUT", "FF", "MHz", "µs per product", "products/s")
_WIDTH = 120
"""Columns of the schedule."""


def html(core: Core, rows: Iterable[Row] | None = None) -> str:
    """The core as HTML. ``rows``: measured rows; by default all that ship or were measured here."""
    rows = Store(tools.cache_dir() / "rows.jsonl").rows if rows is None else rows
    plan = core.fitted.schedule
    cell = '<td style="text-align: left; overflow-wrap: anywhere">'
    lines = "".join(f"<tr><th>{escape(name)}</th>{cell}{escape(text)}</td></tr>" for name, text in _facts(core))
    steps = f"Schedule of the native core: latency {plan.latency}, interval {plan.interval}, {plan.in_flight} in flight"
    return (
        f"<h4>{escape(core.name)}</h4><p>{escape(core.design.title)}</p><table>{lines}</table>"
        f"<details><summary>{steps}</summary><pre>{escape(chart(plan, _WIDTH))}</pre></details>{_measured(core, rows)}"
    )


def _facts(core: Core) -> list[tuple[str, str]]:
    """The data sheet in short."""
    record, cost = core.record(), core.fitted.cost
    factor = "1" if core.contract.factor == 1 else hex(core.contract.factor)
    return [
        ("modulus", f"{hex(core.contract.p)} ({core.modulus.name or 'unnamed'}, {core.modulus.bits} bits)"),
        ("result", f"o = a {'b ' if core.contract.operands == 2 else ''}factor mod p, factor {factor}"),
        *((name, text.strip()) for name, _, text in (line.partition("  ") for line in sheet.promises(record))),
        ("in flight", str(core.contract.timing.in_flight)),
        ("parameters", ", ".join(f"{k} = {v}" for k, v in core.fitted.settings.items())),
        ("predicted", f"{cost.dsp} DSP blocks, {cost.memory_bits:,} bits of constants"),
        ("source", str(core.design.source)),
        ("command", core.command),
    ]


def _measured(core: Core, rows: Iterable[Row]) -> Markup:
    """A table of the rows about this core: design, modulus, form and parameters are equal."""
    lines = [_line(*found) for found in by_device((row for row in rows if _about(row, core)), lambda row: core.name)]
    if not lines:
        form = "" if core.io == "native" else f" --io {core.io}"
        words = f"race {core.modulus.name or hex(core.modulus.value)} --design {core.design.name}{form}"
        return Markup("<p>No measured rows; <code>modmill {}</code> measures it.</p>").format(words)
    head = Markup("").join(Markup("<th>{}</th>").format(word) for word in _HEAD)
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(Markup("").join(Markup("<td>{}</td>").format(cell) for cell in line))
        for line in lines
    )
    return Markup("<p>Measured rows about this core:</p><table><tr>{}</tr>{}</table>").format(head, body)


def _line(check: Row | None, synth: Row, routes: Sequence[Row]) -> list[str]:
    n = core_numbers(check, synth, routes)
    cells = [synth.target, f"{n['latency']}, {n['interval']}" if check else "not simulated"]
    cells += [f"{n[key]:,}" for key in ("dsp", "lut", "ff")]
    if not routes or not check:
        return [*cells, "not routed", "not routed", "not routed"]
    return [*cells, clock(n["mhz"], routes), f"{n['us']:.3f}", f"{n['rate']:,.0f}"]


def _about(row: Row, core: Core) -> bool:
    about = row.about
    if about.get("design") != core.design.name or about.get("io") != core.io or "engine" in about:
        return False
    settings, parameters = core.fitted.settings, about.get("parameters", {})
    usual = {s.name: s.default for s in core.design.settings}
    if any(k != "dsp" and settings.get(k, v) != v for k, v in parameters.items()):
        return False
    if any(k not in parameters and v != usual[k] for k, v in core.given.items()):
        return False  # a setting that a row does not name had its default
    try:
        return parse_modulus(str(about.get("modulus"))).value == core.modulus.value
    except UnsupportedError:
        return False
