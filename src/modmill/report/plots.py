# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Plots as data: series of points, each printed, predicted or measured. Pages draw them above a table of the same
numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["printed", "predicted", "measured"]


@dataclass(frozen=True)
class Series:
    """Points (x, y) in the order in which lines join them; x is a number or a name. ``family``: the family of
    report.families that gives colour and shape, if any."""

    name: str
    kind: Kind
    points: Sequence[tuple[float | int | str, float | int]]
    family: str = ""


@dataclass(frozen=True)
class Plot:
    """Series over one pair of axes. ``style``: lines, points, or bars in groups."""

    title: str
    x: str
    y: str
    series: Sequence[Series]
    style: Literal["lines", "points", "bars"] = "lines"
    log: Literal["", "x", "y", "xy"] = ""
