# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What stands below a table about its clocks."""

from modmill.report.clocks import origin, routed_by
from modmill.report.rows import Row
from modmill.report.traces import traced


def routes(*seeds, tool="nextpnr 1", cap=None):
    return [Row("route", "sha256:1", tool, "ecp5-85k", seed, {"mhz": 100.0, "cap_mhz": cap}) for seed in seeds]


def test_seeds_options_and_limits():
    found = {
        "a": routes(1, 2, cap=175.0), "b": routes(1), "c": routes(1, tool="nextpnr 1, router2, floorplan"),
        "d": routes(2, 1), "e": [],
    }  # fmt: skip
    assert origin(found) == (
        "clock placed and routed, median of seeds 1, 2; b, c: seed 1; by floorplan: c; by router2: c; "
        "capped at the blocks' limit of 175 MHz"
    )


def test_the_same_for_all():
    assert origin({"a": routes(1), "b": routes(1)}) == "clock placed and routed, median of seed 1"
    assert origin({"a": []}) == ""


def test_how_a_number_was_routed():
    (row,) = routes(1, tool="nextpnr 1, router2")
    assert routed_by(round(traced(100.0, row) * 2, 1)) == "by router2"
    assert routed_by(traced(100.0, *routes(1))) == routed_by(100.0) == routed_by(None) == ""
