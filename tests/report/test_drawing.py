# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Cycle charts and block diagrams show the schedule, all of it and nothing else."""

import re
from xml.etree import ElementTree

import pytest

from modmill.designs import DESIGNS, design
from modmill.numbers.moduli import parse_modulus
from modmill.report.drawing import blocks, cycle_chart, cycles, kinds
from modmill.schedule import Schedule, Step

SMALL = Schedule(
    (
        Step("a", "mul1", 0, 2),
        Step("b", "mul2", 0, 2),
        Step("c", "sum", 2, 1, ("a", "b")),
        Step("d", "mul1", 3, 2, ("c",)),
    ),
    5,
)


def plan(name):
    modulus = "2^17-145" if name.startswith("channel") else "P-256" if name == "solinas" else "secp256k1"
    return design(name).fit(parse_modulus(modulus).value).schedule


@pytest.mark.parametrize("name", ["sor-2m", "kbe", "multistep", "channel-reduce", "tenca-koc"])
def test_every_step_is_drawn_where_it_is(name):
    schedule = plan(name)
    chart = cycle_chart(schedule, "x < y")
    root = ElementTree.fromstring(chart.svg)
    groups = [g for g in root.iter("g") if g.get("class") == "step"]
    assert [g.get("data-name") for g in groups] == [s.name for unit in schedule.units for s in schedule.on(unit)]
    cell = (float(root.get("width")) - 1) / max(schedule.latency, *(s.occupied.stop for s in schedule.steps))
    by_name = {s.name: s for s in schedule.steps}
    for g in groups:
        step, bar = by_name[g.get("data-name")], next(r for r in g.iter("rect") if r.get("class") == "busy")
        assert float(bar.get("x")) == step.start * cell
        assert (float(bar.get("y")) - 4) / chart.row - 1 == [unit for unit, _ in chart.units].index(step.unit)
        assert g.get("data-reads") == ", ".join(step.reads) and g.get("data-when") == cycles(step)
    assert sum(line.get("class") == "next" for line in root.iter("line")) > 0 or schedule.in_flight == 1


def test_all_designs_can_be_drawn():
    for d in DESIGNS:
        schedule = plan(d.name)
        drawn = blocks(schedule, d.name)
        ElementTree.fromstring(drawn.svg)
        assert sum(n for _, _, n in drawn.flows) == sum(len(s.reads) for s in schedule.steps)
        assert sum(n for _, n in drawn.boxes) == len(schedule.units)


def test_blocks_of_a_small_schedule():
    drawn = blocks(SMALL, "small")
    assert drawn.boxes == (("mul", 2), ("sum", 1))
    assert set(drawn.flows) == {("mul", "sum", 2), ("sum", "mul", 1)}
    assert "mul to sum: 2 values" in drawn.svg and "× 2" in drawn.svg
    assert len(re.findall('class="flow"', drawn.svg)) == 2


def test_kinds_of_units():
    assert kinds(["element 12", "fold1.2", "column 0", "mul1", "k, k M, digits", "7"]) == {
        "element 12": "element", "fold1.2": "fold", "column 0": "column", "mul1": "mul", "7": "7",
        "k, k M, digits": "k, k M, digits",
    }  # fmt: skip
