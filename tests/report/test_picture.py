# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The README's picture is what the rows say, and nothing else."""

import re
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
    svg = {"": "http://www.w3.org/2000/svg"}
    assert root.find("title", svg).text == "a < b: y against x"
    assert [len(root.findall(f".//g[@id='{f.key}']//use", svg)) for f in FAMILIES] == [1] * 5
    assert root.find(".//g[@id='front']/path", svg).get("d").split()[::3] == ["M", "L", "L"]
    assert {t.text for t in root.iter(f"{{{svg['']}}}text")} > {"p0", "p1", "p3", "x", "y", "a < b"}


def test_every_colour_has_one_for_dark_pages():
    text = picture([Point("p", family, 2 + k, 3) for k, family in enumerate(FAMILIES)], "t", "x", "y")
    head, body = text.split("</style>")
    used = set(re.findall(r"(?:fill|stroke): #[0-9a-f]{6}", body))
    assert len(used) > 7 and all(f'[style*="{colour}"]' in head for colour in used)


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="nothing to draw"):
        picture([], "t", "x", "y")
