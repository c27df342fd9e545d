# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The README's picture of the race: routed cores for one modulus, throughput against area, as SVG by matplotlib.

``modmill readme`` writes it from the rows of the README's tables. It follows the reader's colour scheme.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from modmill.parts import need
from modmill.report.families import FAMILIES, Family

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = {"circle": "o", "diamond": "D", "square": "s", "triangle-up": "^", "star": "*"}
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "modmill",
    "font.size": 9.5,
    "font.sans-serif": ["DejaVu Sans", "Segoe UI", "Roboto", "Helvetica Neue", "Arial"],
}
"""Text stays text. DejaVu Sans ships with matplotlib, so the labels have the same places on every machine."""


@dataclass(frozen=True)
class Point:
    """A core: its label, its family and its coordinates."""

    label: str
    family: Family
    x: float
    y: float


def front(points: Iterable[Point]) -> list[Point]:
    """The Pareto front: points such that no other point has both a larger y and an x that is not larger. By falling
    y."""
    best: list[Point] = []
    for point in sorted(points, key=lambda p: (-p.y, p.x)):
        if not best or point.x < best[-1].x:
            best.append(point)
    return best


def picture(points: Sequence[Point], title: str, x: str, y: str) -> str:
    """The picture as SVG. ``x``, ``y``: titles of the axes, both logarithmic. Raises ValueError without points."""
    if not points:
        raise ValueError("there is nothing to draw: no core has been routed")
    need("site")
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter, LogLocator, NullLocator

    sheet = Path(__file__).with_name("site").joinpath("style.css").read_text(encoding="utf-8")
    light, dark = (_colours(sheet, head) for head in (":root {", ':root[data-theme="dark"] {'))
    with rc_context(STYLE):  # type: ignore[arg-type]
        figure = Figure(figsize=(9, 4.5), facecolor=light["paper"])
        axes = figure.add_axes((0.085, 0.2, 0.89, 0.67), facecolor="none", xscale="log", yscale="log", axisbelow=True)
        axes.set_title(title, loc="left", pad=22, fontweight="bold", color=light["ink"])
        axes.set_xlabel(x, loc="right", color=light["quiet"])
        axes.text(0, 1.03, y, transform=axes.transAxes, color=light["quiet"])
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(EngFormatter())
            axis.set_minor_locator(NullLocator())
        axes.grid(color=light["rule"])
        axes.margins(0.1, 0.08)
        axes.tick_params(length=0, labelcolor=light["quiet"])
        axes.spines[:].set_visible(False)
        best = front(points)
        axes.plot([p.x for p in best], [p.y for p in best], ":", linewidth=1, color=light["quiet"], gid="front")
        for family in FAMILIES:
            if own := [p for p in points if p.family == family]:
                axes.scatter(
                    [p.x for p in own], [p.y for p in own], 50, light[family.key], label=family.title, gid=family.key,
                    marker=_MARKERS[family.symbol],
                )  # fmt: skip
        axes.legend(
            loc="upper left", bbox_to_anchor=(-0.02, -0.16), ncols=len(FAMILIES), frameon=False, columnspacing=1,
            handletextpad=0.2, labelcolor=light["quiet"],
        )  # fmt: skip
        _label(axes, points, light["ink"])
        text = StringIO()
        figure.savefig(
            text, format="svg", metadata={"Date": None, "Creator": None, "Title": f"{title}: {y} against {x}"}
        )
    names = ("paper", "rule", "ink", "quiet", *(f.key for f in FAMILIES))
    rules = "".join(
        f'[style*="{what}: {light[name]}"]{{{what}:{dark[name]}!important}}'
        for name in names
        for what in ("fill", "stroke")
    )
    return text.getvalue().replace("</style>", f"@media (prefers-color-scheme:dark){{{rules}}}</style>", 1)


def _label(axes: Axes, points: Sequence[Point], colour: str) -> None:
    """Write the label of each point on its first side without a point or label; omit it if there is no such side."""
    from matplotlib.transforms import Bbox

    centres = [axes.transData.transform((p.x, p.y)) for p in points]
    taken = [Bbox([centre - 6, centre + 6]) for centre in centres]
    for p in points:
        for offset, across, down in (
            ((8, 0), "left", "center"),
            ((-8, 0), "right", "center"),
            ((0, 6), "center", "bottom"),
            ((0, -6), "center", "top"),
        ):
            note = axes.annotate(
                p.label, (p.x, p.y), offset, textcoords="offset points", ha=across, va=down, color=colour, size=8.2
            )
            box = note.get_window_extent()
            if not box.count_overlaps(taken) and axes.bbox.x0 < box.x0 and box.x1 < axes.figure.bbox.x1:
                taken.append(box)
                break
            note.remove()


def _colours(sheet: str, head: str) -> dict[str, str]:
    """The variables of one rule of the site's style sheet."""
    body = sheet.split(head, 1)[1].split("}", 1)[0]
    pairs = (part.split(":", 1) for part in body.split(";") if part.strip().startswith("--"))
    return {name.strip()[2:]: value.strip() for name, value in pairs}
