# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Rows survive writing, torn lines and two writers; a store prefers what was measured here."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from modmill.report.rows import Row, Store, append, put, read, shipped_folder


def row(kind="synth", digest="sha256:1", seed=None, **values):
    return Row(kind, digest, "yosys 1", "ecp5-85k", seed, values or {"lut": 5}, {"design": "d"})


def test_round_trip(tmp_path):
    path = tmp_path / "deep" / "rows.jsonl"
    rows = [row(), row("route", seed=1, mhz=101.5), row(digest="sha256:2")]
    for r in rows:
        append(path, r)
    assert list(read(path)) == rows


def test_missing_file_has_no_rows(tmp_path):
    assert list(read(tmp_path / "nothing")) == []


def test_torn_line_is_passed_over_and_not_continued(tmp_path):
    path = tmp_path / "rows.jsonl"
    append(path, row())
    path.write_text(path.read_text() + row(digest="sha256:2").line()[:40])
    append(path, row(digest="sha256:3"))
    assert [r.digest for r in read(path)] == ["sha256:1", "sha256:3"]


def test_a_row_of_new_rtl_takes_the_place_of_the_old_ones(tmp_path):
    """Pages must never find two cores where there is one."""
    path = tmp_path / "record.jsonl"
    about, other = {"design": "sor", "modulus": "P-256"}, {"design": "sor", "modulus": "P-192"}

    def about_it(kind, number, words, seed=None):
        return replace(row(kind, f"sha256:{number}", seed), about={**words, "date": str(number)})

    for each in (about_it("synth", 1, about), about_it("route", 1, about, seed=1), about_it("synth", 2, other)):
        put(path, each)
    put(path, about_it("route", 1, about, seed=2))
    assert [r.digest for r in read(path)] == ["sha256:1", "sha256:1", "sha256:2", "sha256:1"]
    put(path, about_it("check", 3, about))
    assert [(r.kind, r.digest) for r in read(path)] == [("synth", "sha256:2"), ("check", "sha256:3")]
    for number in (4, 5):
        put(path, replace(row(digest=f"sha256:{number}"), about={}))
    assert len(list(read(path))) == 4


def test_a_row_measured_again_takes_the_place_of_the_old_one(tmp_path):
    path = tmp_path / "record.jsonl"
    for lut in (5, 6, 6):
        put(path, row(lut=lut))
    put(path, row("route", seed=1, mhz=101.5))
    assert [r.values for r in read(path)] == [{"lut": 6}, {"mhz": 101.5}]


@pytest.mark.parametrize("line", ["", "x", "[]", "1", "{}", '{"kind": "synth"}', row("guess").line()])
def test_lines_that_are_no_rows(line):
    with pytest.raises(ValueError, match="not a row"):
        Row.parse(line)


def test_many_writers(tmp_path):
    path = tmp_path / "rows.jsonl"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda k: append(path, row(digest=f"sha256:{k}", x="y" * 5000)), range(100)))
    assert {r.digest for r in read(path)} == {f"sha256:{k}" for k in range(100)}


def test_store(tmp_path):
    shipped, own, record = tmp_path / "results", tmp_path / "rows.jsonl", tmp_path / "record.jsonl"
    append(shipped / "sor.jsonl", row(lut=1))
    append(shipped / "sor.jsonl", row("route", seed=1))
    append(own, row(lut=2))
    store = Store(own, shipped, record)
    found = store.find("synth", "sha256:1", "yosys 1", "ecp5-85k")
    assert found is not None and found.values["lut"] == 2
    assert store.find("synth", "sha256:1", "yosys 2", "ecp5-85k") is None
    assert store.find("route", "sha256:1", "yosys 1", "ecp5-85k", 2) is None
    assert store.find("route", "sha256:1", "yosys 1", "ecp5-85k", 1) is not None
    assert [(r.kind, r.digest) for r in read(record)] == [("synth", "sha256:1"), ("route", "sha256:1")]
    store.add(row(digest="sha256:9"))
    assert [r.digest for r in read(own)] == ["sha256:1", "sha256:9"]
    assert [(r.kind, r.digest) for r in read(record)] == [("synth", "sha256:9")]  # of newer RTL for the same core
    Store(own, shipped, record).find("synth", "sha256:9", "yosys 1", "ecp5-85k")
    assert len(list(read(record))) == 1
    assert len(list(read(shipped / "sor.jsonl"))) == 2


def test_a_route_is_found_whatever_its_options(tmp_path):
    tools = ("nextpnr 1, router2", "nextpnr 12", "nextpnr 1, floorplan, router2")
    for k, tool in enumerate(tools):
        append(tmp_path / "rows.jsonl", replace(row("route", seed=k), tool=tool))
    store = Store(tmp_path / "rows.jsonl", tmp_path)
    seen = [store.routed("sha256:1", "nextpnr 1", "ecp5-85k", seed) for seed in range(4)]
    assert [found and found.tool for found in seen] == [tools[0], None, tools[2], None]
    assert store.routed("sha256:1", "nextpnr 1, floorplan", "ecp5-85k", 2) == seen[2]
    assert store.routed("sha256:1", "nextpnr 1", "ecp5-85k", 0, exact=True) is None
    assert store.routed("sha256:1", tools[0], "ecp5-85k", 0, exact=True) == seen[0]
    assert store.routed("sha256:2", "nextpnr 1", "ecp5-85k", 0) is None


def mixed(rows):
    """Routes of one core and seed with different options of the tool, of which no median may be taken."""
    routes = [(r.digest, r.target, r.seed) for r in rows if r.kind == "route"]
    return sorted(key for key in set(routes) if routes.count(key) > 1)


def test_routes_of_one_seed_with_different_options_are_found():
    one = row("route", seed=1)
    assert mixed([one, replace(one, tool="nextpnr 1, router2")]) and not mixed([one, replace(one, seed=2)])


@pytest.mark.parametrize("path", sorted(shipped_folder().glob("*.jsonl")), ids=lambda path: path.stem)
def test_no_row_ships_twice(path):
    rows = list(read(path))
    keys = [r.key for r in rows]
    assert keys and len(keys) == len(set(keys))
    assert not mixed(rows)
