# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""An operation of a curve is measured on coprocessors around designs; its rows are recorded, refusals told."""

import pytest
from small_curves import montgomery, weierstrass

from modmill.contract import UnsupportedError
from modmill.report.rows import read
from modmill.studies.race.ecc import operation_of, race_operation


def test_a_race_measures_once_and_records(cache):
    record, told = cache / "rows.jsonl", []
    race = lambda **more: race_operation(  # noqa: E731
        montgomery(251),
        "scalar-multiplication",
        ["multistep"],
        target="ecp5-85k",
        threads=1,
        progress=told.append,
        **more,
    )
    (found,), refused = race(record=record)
    assert not refused and not found.note
    assert found.numbers["latency"] == found.check.values["latency"] < found.numbers["period"]
    assert [row.kind for row in read(record)] == ["check", "synth"]
    assert {row.about["operations"][0] for row in read(record)} == {"ladder"}
    ((again,), _) = race()
    assert again.check == found.check and again.synth == found.synth
    assert told == ["multistep: build", "multistep: simulation", "multistep: synthesis", "multistep: build"]


def test_what_cannot_race_is_refused():
    curve = weierstrass(251, -3)
    for name, designs, why in [
        ("add", (), "the operation must be scalar-multiplication or one of"),
        ("multiply", ("none",), "there is no design 'none'"),
        ("ladder", ("montgomery-array",), "has no operation 'ladder'"),
    ]:
        with pytest.raises(UnsupportedError, match=why):
            race_operation(curve, name, designs, target="ecp5-85k")
    assert operation_of(curve, "scalar-multiplication") == "multiply"
    assert operation_of(montgomery(251), "scalar-multiplication") == "ladder"
