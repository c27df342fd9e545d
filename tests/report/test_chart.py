# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The cycle chart shows every step in its cycles, at any width."""

import pytest

from modmill.designs import design
from modmill.report.chart import chart
from modmill.schedule import Schedule, Step

SMALL = Schedule((Step("Z", "mul", 0, 2), Step("a-long-name", "acc", 2, 1, ("Z",)), Step("G", "mul", 2, 2, ("Z",))), 5)


def test_small_chart():
    assert chart(SMALL, 80).splitlines() == [
        "cycle       0      1      2      3  used",
        "mul │      Z      │      G      │  80%",
        "acc    ·      ·   │a-lon…│  ·   │  20%",
    ]


def test_every_step_stands_under_its_cycle():
    plan = design("sor-1m-p").fit(2**256 - 2**32 - 977).schedule
    text = chart(plan, 400)
    head, *rows = text.splitlines()
    assert len(text.split("\n\n")) == 1
    column = {int(c): head.index(f" {c} ") + 1 for c in head.split() if c.isdigit()}
    for unit, steps in plan.chart():
        (row,) = (r for r in rows if r.startswith(f"{unit} "))
        for first, cycles, name in steps:
            if len(name) < 4:
                assert name in row[column[first] - 4 : column[first] + 6 * cycles]


@pytest.mark.parametrize("width", [0, 20, 60, 80, 100, 200])
@pytest.mark.parametrize("name", ["sor-1m-n", "sor-2m", "sor-nm"])
def test_bands_fit_the_width(width, name):
    plan = design(name).fit(2**256 - 2**32 - 977).schedule
    text = chart(plan, width)
    bands = text.split("\n\n")
    assert max(map(len, text.splitlines())) <= max(width, 24)
    cycles = [int(c) for band in bands for c in band.splitlines()[0].split() if c.isdigit()]
    assert cycles == list(range(plan.latency))
    for band in bands[:-1]:
        shown = [int(c) for c in band.splitlines()[0].split() if c.isdigit()]
        busy = {step.unit for step in plan.steps if set(step.occupied) & set(shown)}
        assert {line.split()[0] for line in band.splitlines()[1:]} == busy
    assert len(bands[-1].splitlines()) == len(plan.units) + 1


def test_utilisation_stands_once():
    text = chart(SMALL, 20)
    assert text.count("80%") == 1 and text.count("20%") == 1
