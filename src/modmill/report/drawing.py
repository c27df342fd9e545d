# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A schedule drawn for a page: the cycle chart."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup, escape

from modmill.schedule import Schedule, Step

_WIDEST, _NARROWEST, _CHART = 40, 4, 2400
_ROW, _LETTER = 30, 6.6


@dataclass(frozen=True)
class CycleChart:
    """``units`` from the top; ``svg`` has a row of ``row`` pixels for each, below one row for the cycle numbers."""

    units: tuple[tuple[str, float], ...]
    svg: Markup
    row: int = _ROW


def cycle_chart(schedule: Schedule, label: str) -> CycleChart:
    """The chart as SVG. Every step has its name, unit, cycles and operands as data attributes and as a title. The
    page's script draws the same chart at other widths of a cycle."""
    end = max(schedule.latency, *(step.occupied.stop for step in schedule.steps))
    cell = min(_WIDEST, max(_NARROWEST, _CHART // end))
    used = schedule.utilisation()
    width, height = end * cell + 1, _ROW * (len(schedule.units) + 1)
    parts = [
        f'<svg class="cycles" role="img" aria-label="{escape(label)}" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" data-cell="{cell}" data-cycles="{end}">'
    ]
    every = next(n for n in (1, 2, 5, 10, 20, 50, 100) if n * cell >= 22)
    for cycle in range(end):
        away = ' style="display:none"' if cycle % every else ""
        parts.append(f'<text class="tick" x="{cycle * cell + 3}" y="{_ROW - 10}"{away}>{cycle}</text>')
    for k in range(len(schedule.units)):
        y = _ROW * (k + 2)
        parts.append(f'<line class="rule" x1="0" x2="{width}" y1="{y}" y2="{y}"/>')
    for start in range(schedule.interval, end, schedule.interval):
        parts.append(f'<line class="next" x1="{start * cell}" x2="{start * cell}" y1="{_ROW - 6}" y2="{height}"/>')
    for k, unit in enumerate(schedule.units):
        for step in schedule.on(unit):
            parts.append(_step(step, k, cell))
    parts.append("</svg>")
    return CycleChart(tuple((unit, used[unit]) for unit in schedule.units), Markup("".join(parts)))


def _step(step: Step, place: int, cell: int) -> str:
    """A bar for the cycles in which the unit is occupied, and a thin bar until the result is valid."""
    y, x = _ROW * (place + 1) + 4, step.start * cell
    wide = max(len(step.occupied) * cell - 1, 2)
    said = f"{step.name} on {step.unit}, {cycles(step)}" + (f", reads {', '.join(step.reads)}" if step.reads else "")
    late = max(step.cycles - len(step.occupied), 0) * cell
    room = int((wide - 4) / _LETTER)
    name = step.name if len(step.name) <= room else step.name[: room - 1] + "…" if room > 2 else ""
    return (
        f'<g class="step" data-name="{escape(step.name)}" data-unit="{escape(step.unit)}" data-when="{cycles(step)}" '
        f'data-reads="{escape(", ".join(step.reads))}"><title>{escape(said)}</title>'
        + (f'<rect class="late" x="{x + wide}" y="{y + 9}" width="{late}" height="4"/>' if late else "")
        + f'<rect class="busy" x="{x}" y="{y}" width="{wide}" height="{_ROW - 8}" rx="2"/>'
        + f'<text x="{x + wide / 2:.1f}" y="{y + 15}">{escape(name)}</text></g>'
    )


def cycles(step: Step) -> str:
    """The cycles of a step in words."""
    return f"cycle {step.start}" if step.end - step.start <= 1 else f"cycles {step.start} to {step.end - 1}"
