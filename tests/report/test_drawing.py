# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Cycle charts show the schedule, all of it and nothing else."""

from xml.etree import ElementTree

import pytest

from modmill.designs import design
from modmill.numbers.moduli import parse_modulus
from modmill.report.drawing import cycle_chart, cycles


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
    ticks = [e for e in root.iter("text") if e.get("class") == "tick"]
    assert len(ticks) == int(root.get("data-cycles")) and ticks[0].get("style") is None
    cell = (float(root.get("width")) - 1) / max(schedule.latency, *(s.occupied.stop for s in schedule.steps))
    assert cell == int(root.get("data-cell"))
    by_name = {s.name: s for s in schedule.steps}
    for g in groups:
        step, bar = by_name[g.get("data-name")], next(r for r in g.iter("rect") if r.get("class") == "busy")
        assert float(bar.get("x")) == step.start * cell
        assert (float(bar.get("y")) - 4) / chart.row - 1 == [unit for unit, _ in chart.units].index(step.unit)
        assert g.get("data-reads") == ", ".join(step.reads) and g.get("data-when") == cycles(step)
    assert sum(line.get("class") == "next" for line in root.iter("line")) > 0 or schedule.in_flight == 1
