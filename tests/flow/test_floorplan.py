# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Places of several machines: all different, on sites that the device has, and refused where there are too few."""

import re
from functools import partial

import pytest

from modmill.contract import UnsupportedError
from modmill.flow import floorplan
from modmill.flow.floorplan import DSP, RAM, along, apply, places, regions, spread

MACHINE = r"\bcore_(\d+)\."
_MIDDLE = 61
"""Columns below it are the left half of the device."""


def machine(number, columns, rams):
    """Names and types of its cells."""
    yield from ((f"engine.core_{number}.array.column{k}.tile", DSP) for k in range(columns))
    yield from ((f"engine.core_{number}.slice_{k // 3}.ram_{k % 3}", RAM) for k in range(rams))
    yield f"engine.core_{number}.sum", "CCU2C"


def test_parts_of_the_device_share_no_site():
    parts = list(regions())
    for kind, count in ((DSP, 3 * 52), (RAM, 4 * 52)):
        sites = [site for part in parts for site in part[kind]]
        assert len(parts) == 8
        assert len(sites) == len(set(sites)) <= count
    assert [len(part[DSP]) for part in parts] == [26, 26, 22, 22, 15, 15, 15, 15]
    assert {len(part[RAM]) for part in parts} == {26}


def test_machines_stand_in_their_parts_in_the_order_of_their_data():
    cells = [cell for number in range(8) for cell in machine(number, 15, 23)]
    found = places(cells, MACHINE)
    assert len(found) == len(set(found.values())) == 8 * (15 + 23)
    for number, part in enumerate(regions()):
        for kind, count in ((DSP, 15), (RAM, 23)):
            names = [name for name, type_ in machine(number, 15, 23) if type_ == kind]
            assert [found[name] for name in names] == spread(part[kind], count)
    assert places(reversed(cells), MACHINE) == found


def test_two_machines_get_half_of_the_device_each():
    """The blocks of a machine in a serpentine, so that neighbours in its order are neighbours on the device."""
    cells = [cell for number in range(2) for cell in machine(number, 78, 104)]
    found = places(cells, MACHINE)
    assert len(found) == len(set(found.values())) == 2 * (78 + 104)
    for number in range(2):
        names = [name for name, _ in machine(number, 78, 104)]
        assert {int(re.search(r"X(\d+)", found[name])[1]) < _MIDDLE for name in names[:182]} == {number == 0}
        x, y = ([int(re.search(rf"{c}(\d+)", found[name])[1]) for name in names[:78]] for c in "XY")
        assert [y[0], y[26], y[52]] == [10, 34, 58] and x[0] < x[25] and x[26] > x[51] and x[52] < x[77]


def test_memories_that_control_looks_at_come_first():
    names = ["core.results.lane0", "slice_1.ram_0", "core.low_106.bank0", "slice_0.ram_0", "core.y_113", "table_.bank0"]
    found = places(((f"core_2.{name}", RAM) for name in names), MACHINE)
    sites = [found[f"core_2.{names[k]}"] for k in (0, 5, 4, 2, 3, 1)]
    assert sites == spread(list(regions())[2][RAM], 6)


def test_one_machine_lies_along_the_rows_to_and_fro():
    """Columns in order, the head first; a slice's memories near its six columns; others near the head."""
    others = [("array.head.tile", DSP), ("results.lane0", RAM), ("table.bank0", RAM), ("sum", "CCU2C")]
    cells = [*machine(0, 120, 60), *others]
    found = along(cells)
    assert len(found) == len(set(found.values())) == 120 + 60 + 3 and along(reversed(cells)) == found
    x, y = (lambda name, c=c: int(re.search(rf"{c}(\d+)", found[name])[1]) for c in "XY")
    columns = ["array.head.tile", *(f"engine.core_0.array.column{k}.tile" for k in range(120))]
    rows = [[name for name in columns if y(name) == row] for row in (10, 34, 58)]
    assert [*rows[0], *rows[1], *rows[2]] == columns and min(map(len, rows)) >= 40
    for k, row in enumerate(rows):
        assert [x(name) for name in row] == sorted(map(x, row), reverse=k == 1)
    for k in range(20):
        ram, tile = f"engine.core_0.slice_{k}.ram_1", f"engine.core_0.array.column{6 * k + 2}.tile"
        assert abs(y(ram) - y(tile)) == 12 and abs(x(ram) - x(tile)) <= 9
    assert all((y(name), x(name) < 20) == (22, True) for name in ("results.lane0", "table.bank0"))
    small = {int(re.search(r"X(\d+)", site)[1]) for site in along(machine(0, 15, 23)).values()}
    assert max(small) < 80
    with pytest.raises(UnsupportedError, match="the machine has 157 MULT18X18D, the rows of the floorplan 156"):
        along(machine(0, 157, 1))


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([("sum", DSP)], "for 1 to 8 machines, not 0"),
        (machine(8, 1, 1), "for 1 to 8 machines, not 9"),
        (machine(4, 16, 1), "machine 4 has 16 MULT18X18D, its part of the device 15"),
        (machine(2, 1, 27), "machine 2 has 27 DP16KD, its part of the device 26"),
        (machine(1, 79, 1), "machine 1 has 79 MULT18X18D, its part of the device 78"),
    ],
)
def test_what_has_no_place_is_refused(cells, message):
    with pytest.raises(UnsupportedError, match=message):
        places(cells, MACHINE)


def test_a_netlist_gets_its_sites():
    cells = {name: {"type": kind, "attributes": {"src": "x"}} for name, kind in machine(1, 2, 3)}
    apply({"modules": {"top": {"cells": cells}}}, "top", partial(places, machine=MACHINE))
    given = {name: cell["attributes"].get("BEL") for name, cell in cells.items()}
    assert given == {**places(machine(1, 2, 3), MACHINE), "engine.core_1.sum": None}
    apply({"modules": {"top": {"cells": cells}}}, "top", along)
    given = {name: cell["attributes"].get("BEL") for name, cell in cells.items()}
    assert given == {**along(machine(1, 2, 3)), "engine.core_1.sum": None}
    assert floorplan.DEVICE == "LFE5U-85F"
