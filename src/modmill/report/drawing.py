# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A schedule drawn for a page: the cycle chart, and the block diagram of the machine with its data flow."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
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
    """The chart as SVG. Every step has its name, unit, cycles and operands as data attributes and as a title."""
    end = max(schedule.latency, *(step.occupied.stop for step in schedule.steps))
    cell = min(_WIDEST, max(_NARROWEST, _CHART // end))
    used = schedule.utilisation()
    width, height = end * cell + 1, _ROW * (len(schedule.units) + 1)
    parts = [
        f'<svg class="cycles" role="img" aria-label="{escape(label)}" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">'
    ]
    every = next(n for n in (1, 2, 5, 10, 20, 50, 100) if n * cell >= 22)
    for cycle in range(0, end, every):
        parts.append(f'<text class="tick" x="{cycle * cell + 3}" y="{_ROW - 10}">{cycle}</text>')
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
        + (f'<text x="{x + wide / 2:.1f}" y="{y + 15}">{escape(name)}</text>' if name else "")
        + "</g>"
    )


def cycles(step: Step) -> str:
    """The cycles of a step in words."""
    return f"cycle {step.start}" if step.end - step.start <= 1 else f"cycles {step.start} to {step.end - 1}"


_BOX, _GAP, _TALL, _DOWN = 116, 60, 44, 74


def kinds(units: Iterable[str]) -> dict[str, str]:
    """Each unit's kind: units whose names differ only in a number are of one kind."""
    return {unit: re.sub(r"[ ]?\d+(\.\d+)?$", "", unit) or unit for unit in units}


@dataclass(frozen=True)
class Blocks:
    """The machine: ``boxes`` are (kind, number of units); ``flows`` count one product's values from kind to kind."""

    boxes: tuple[tuple[str, int], ...]
    flows: tuple[tuple[str, str, int], ...]
    svg: Markup


def blocks(schedule: Schedule, label: str) -> Blocks:
    """The block diagram, derived from the schedule: a box for each kind of unit, an arrow for each read between
    kinds."""
    kind = kinds(schedule.units)
    boxes = Counter(kind.values())
    unit_of = {step.name: kind[step.unit] for step in schedule.steps}
    flows = Counter((unit_of[name], kind[step.unit]) for step in schedule.steps for name in step.reads)
    order = list(boxes)
    first = {kind[step.unit]: step.start for step in sorted(schedule.steps, key=lambda s: -s.start)}
    order.sort(key=lambda name: (first[name], list(boxes).index(name)))
    layer: dict[str, int] = {}
    for name in order:
        above = [layer[a] for (a, b) in flows if b == name and a in layer and a != name]
        layer[name] = max(above) + 1 if above else 0
    lanes: dict[int, list[str]] = {}
    for name in order:
        lanes.setdefault(layer[name], []).append(name)
    place = {
        name: (k * (_BOX + _GAP) + 24, j * _DOWN + 46) for k, names in lanes.items() for j, name in enumerate(names)
    }
    tallest = max(len(names) for names in lanes.values())
    back = [pair for pair in flows if layer[pair[0]] >= layer[pair[1]] and pair[0] != pair[1]]
    width = len(lanes) * (_BOX + _GAP) - _GAP + 48
    height = tallest * _DOWN + 56 + 16 * len(back)
    parts = [
        f'<svg class="blocks" role="img" aria-label="{escape(label)}" viewBox="0 0 {width} {height}" '
        f'style="max-width:{width}px">'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z"/></marker></defs>'
    ]
    for (a, b), count in sorted(flows.items()):
        backward = (a, b) in back
        low = tallest * _DOWN + 44 + 16 * (back.index((a, b)) if backward else 0)
        parts.append(_flow(place[a], place[b], a == b, backward, low, f"{a} to {b}: {count}"))
    for name, count in boxes.items():
        x, y = place[name]
        words = name if len(name) < 18 else name[:16] + "…"
        times = f' <tspan class="times">× {count}</tspan>' if count > 1 else ""
        parts.append(
            f'<g><rect x="{x}" y="{y}" width="{_BOX}" height="{_TALL}" rx="4"/>'
            f'<text x="{x + _BOX / 2}" y="{y + 27}">{escape(words)}{times}</text></g>'
        )
    parts.append("</svg>")
    listed = tuple((a, b, n) for (a, b), n in flows.items())
    return Blocks(tuple(boxes.items()), listed, Markup("".join(parts)))


def _flow(a: tuple[int, int], b: tuple[int, int], loop: bool, back: bool, low: int, said: str) -> str:
    """The SVG of an arrow with its title."""
    path = _loop(a) if loop else _back(a, b, low) if back else _forward(a, b)
    return f'<path class="flow" d="{path}"><title>{escape(said)} values a product</title></path>'


def _loop(a: tuple[int, int]) -> str:
    """The path of a loop above its box."""
    x, y = a[0] + _BOX // 2, a[1]
    return f"M{x + 16} {y}C{x + 26} {y - 30} {x - 26} {y - 30} {x - 16} {y}"


def _back(a: tuple[int, int], b: tuple[int, int], low: int) -> str:
    """The path below all boxes to an earlier layer, or beside the boxes of one layer."""
    if a[0] == b[0]:
        x, up, down = a[0] + _BOX, a[1] + _TALL // 2, b[1] + _TALL // 2
        return f"M{x} {up}C{x + 34} {up} {x + 34} {down} {x} {down}"
    x1, y1, x2, y2 = a[0] + _BOX // 2 + 10, a[1] + _TALL, b[0] + _BOX // 2 - 10, b[1] + _TALL
    return f"M{x1} {y1}C{x1} {low} {x1} {low} {(x1 + x2) // 2} {low}S{x2} {low} {x2} {y2}"


def _forward(a: tuple[int, int], b: tuple[int, int]) -> str:
    """The path to a later layer, above any boxes between them in the same lane."""
    x1, y1, x2, y2 = a[0] + _BOX, a[1] + _TALL // 2, b[0], b[1] + _TALL // 2
    bend = _GAP * 3 // 5
    if y1 != y2 or x2 - x1 == _GAP:
        return f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"
    top, half = y1 - _TALL // 2 - 22, _BOX // 2
    up = f"C{x1 + bend} {top} {x1 + bend} {top} {x1 + half} {top}"
    return f"M{x1} {y1 - 8}{up}L{x2 - half} {top}C{x2 - bend} {top} {x2 - bend} {top} {x2} {y2 - 8}"
