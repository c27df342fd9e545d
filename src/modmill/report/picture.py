# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The README's picture of the race: routed cores for one modulus, throughput against area, as SVG.

Written by ``modmill readme``, from the same rows as the README's tables. It follows the reader's colour scheme, and
needs nothing but itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log10
from pathlib import Path

from markupsafe import escape

from modmill.report.families import FAMILIES, Family

WIDTH, HEIGHT = 860, 430
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 24, 56, 78


@dataclass(frozen=True)
class Point:
    """A core: what it is called, and its numbers as they are drawn."""

    label: str
    family: Family
    x: float
    y: float


def front(points: Iterable[Point]) -> list[Point]:
    """The points that no other beats: none has both a larger y and an x that is not larger. By falling y."""
    best: list[Point] = []
    for point in sorted(points, key=lambda p: (-p.y, p.x)):
        if not best or point.x < best[-1].x:
            best.append(point)
    return best


def picture(points: Sequence[Point], title: str, x: str, y: str) -> str:
    """The picture. Raises ValueError without points."""
    if not points:
        raise ValueError("there is nothing to draw: no core has been routed")
    floor, end = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    across, down = _scale([p.x for p in points], _LEFT, end), _scale([p.y for p in points], floor, _TOP)
    best = front(points)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" aria-labelledby="t">',
        f'<title id="t">{escape(title)}: {escape(y)} against {escape(x)}</title>',
        f"<style>{_style()}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
        f'<text class="title" x="{_LEFT}" y="28">{escape(title)}</text>',
    ]
    for tick in across.ticks:
        at = across(tick)
        parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{_TOP}" y2="{floor}"/>')
        parts.append(f'<text class="tick" x="{at}" y="{floor + 18}" text-anchor="middle">{_short(tick)}</text>')
    for tick in down.ticks:
        at = down(tick)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{end}" y1="{at}" y2="{at}"/>')
        parts.append(f'<text class="tick" x="{_LEFT - 8}" y="{at + 4}" text-anchor="end">{_short(tick)}</text>')
    parts.append(f'<text class="axis" x="{end}" y="{floor + 38}" text-anchor="end">{escape(x)}</text>')
    parts.append(f'<text class="axis" x="{_LEFT}" y="{_TOP - 10}">{escape(y)}</text>')
    line = " ".join(f"{across(p.x)},{down(p.y)}" for p in best)
    parts.append(f'<polyline class="front" points="{line}"/>')
    parts += [
        f'<path class="{p.family.key}" transform="translate({across(p.x)} {down(p.y)})" d="{_SHAPES[p.family.symbol]}">'
        f"<title>{escape(p.label)}: {p.x:,.4g} {escape(x)}, {p.y:,.4g} {escape(y)}</title></path>"
        for p in points
    ]
    parts += _labels(points, across, down)
    used = [f for f in FAMILIES if any(p.family == f for p in points)]
    at = _LEFT
    for f in used:
        parts.append(f'<path class="{f.key}" transform="translate({at + 6} {HEIGHT - 18})" d="{_SHAPES[f.symbol]}"/>')
        parts.append(f'<text class="axis" x="{at + 18}" y="{HEIGHT - 14}">{escape(f.title)}</text>')
        at += 42 + 7 * len(f.title)
    return "\n".join([*parts, "</svg>", ""])


def _labels(points: Sequence[Point], across: _Scale, down: _Scale) -> list[str]:
    """A name at each point, on the side where no earlier one stands."""
    taken: list[tuple[float, float, float, float]] = [
        (across(p.x) - 6, down(p.y) - 6, across(p.x) + 6, down(p.y) + 6) for p in points
    ]
    parts = []
    for p in points:
        x, y, wide = across(p.x), down(p.y), 6.4 * len(p.label)
        for dx, dy, anchor in ((10, 4, "start"), (-10, 4, "end"), (0, -11, "middle"), (0, 20, "middle")):
            left = x + dx - (wide if anchor == "end" else wide / 2 if anchor == "middle" else 0)
            box = (left, y + dy - 11, left + wide, y + dy + 3)
            free = not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken)
            if free and box[0] > _LEFT and box[2] < WIDTH:
                taken.append(box)
                place = f'x="{x + dx}" y="{y + dy}" text-anchor="{anchor}"'
                parts.append(f'<text class="label" {place}>{escape(p.label)}</text>')
                break
    return parts


class _Scale:
    """Decimal logarithms between two pixels."""

    def __init__(self, low: float, high: float, start: int, end: int) -> None:
        self._low, self._high, self._start, self._end = log10(low), log10(high), start, end
        steps = [m * 10**e for e in range(-3, 12) for m in (1, 2, 5)]
        self.ticks = [step for step in steps if low <= step <= high]

    def __call__(self, value: float) -> float:
        share = (log10(value) - self._low) / (self._high - self._low)
        return round(self._start + share * (self._end - self._start), 1)


def _scale(values: Sequence[float], start: int, end: int) -> _Scale:
    return _Scale(min(values) / 1.3, max(values) * 1.3, start, end)


def _short(number: float) -> str:
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:g}{unit}"
    return f"{number:g}"


_SHAPES = {
    "circle": "M-6 0a6 6 0 1 0 12 0a6 6 0 1 0 -12 0z",
    "diamond": "M0 -8L8 0L0 8L-8 0z",
    "square": "M-5.5 -5.5h11v11h-11z",
    "triangle-up": "M0 -7L7 5.5H-7z",
    "star": "M0 -8L2 -2.6 7.6 -2.5 3.2 1 4.7 6.5 0 3.3 -4.7 6.5 -3.2 1 -7.6 -2.5 -2 -2.6z",
}


def _style() -> str:
    """The colours of the site's style sheet, light and dark."""
    sheet = Path(__file__).with_name("site").joinpath("style.css").read_text(encoding="utf-8")
    light, dark = (_colours(sheet, head) for head in (":root {", ':root[data-theme="dark"] {'))
    keys = [f.key for f in FAMILIES]

    def rules(c: dict[str, str]) -> str:
        fills = "".join(f".{key}{{fill:{c[key]}}}" for key in keys)
        return (
            f".paper{{fill:{c['paper']}}}.grid{{stroke:{c['rule']}}}.title,.label{{fill:{c['ink']}}}"
            f".tick,.axis{{fill:{c['quiet']}}}.front{{fill:none;stroke:{c['quiet']};stroke-dasharray:2 4}}{fills}"
        )

    font = "font-family:ui-sans-serif,system-ui,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"
    sizes = f"text{{{font};font-size:12.5px}}.title{{font-size:15px;font-weight:600}}.label{{font-size:12px}}"
    return f"{sizes}{rules(light)}@media (prefers-color-scheme:dark){{{rules(dark)}}}"


def _colours(sheet: str, head: str) -> dict[str, str]:
    """The variables of one rule."""
    body = sheet.split(head, 1)[1].split("}", 1)[0]
    pairs = (part.split(":", 1) for part in body.split(";") if part.strip().startswith("--"))
    return {name.strip()[2:]: value.strip() for name, value in pairs}
