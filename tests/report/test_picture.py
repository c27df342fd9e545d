# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The README's picture is what the rows say, and nothing else."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from modmill.report.families import FAMILIES
from modmill.report.picture import Point, front, picture
from modmill.report.rows import append, read
from modmill.studies.race.measured_cores import race_picture

ROOT = Path(__file__).resolve().parents[2]


def test_the_picture_is_up_to_date():
    assert race_picture(ROOT / "results") == (ROOT / "docs" / "race.svg").read_text(encoding="utf-8"), (
        "run ./mill readme"
    )
    assert "docs/race.svg" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_a_changed_number_is_seen(tmp_path):
    for path in (ROOT / "results").glob("*.jsonl"):
        for row in read(path):
            faster = {**row.values, "mhz": 999.0} if row.kind == "route" else row.values
            append(tmp_path / path.name, replace(row, values=faster))
    assert race_picture(tmp_path) != race_picture(ROOT / "results")


def test_all_points_and_the_front_are_drawn():
    points = [
        Point(f"p{k}", FAMILIES[k % 5], x, y) for k, (x, y) in enumerate([(10, 5), (20, 9), (30, 7), (5, 1), (20, 8)])
    ]
    assert [p.label for p in front(points)] == ["p1", "p0", "p3"]
    root = ElementTree.fromstring(picture(points, "a < b", "x", "y"))
    name = "{http://www.w3.org/2000/svg}"
    assert len([p for p in root.iter(f"{name}path") if p.find(f"{name}title") is not None]) == 5
    assert len(root.find(f"{name}polyline").get("points").split()) == 3


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="nothing to draw"):
        picture([], "t", "x", "y")
