# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The store of sweeps: no row lost, none twice, with processes killed, a full disk and two writers."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from sweep_points import row_of

from modmill.report.rows import read, shipped_folder
from modmill.studies.sweep import store as stores
from modmill.studies.sweep.points import Point, Result
from modmill.studies.sweep.store import Store, StoreError

WRITER = """
import sys
from pathlib import Path
from test_sweep_store import measured, point
from modmill.studies.sweep import store
store.FILES = 3
folder, first, last = sys.argv[1:]
opened = store.Store(Path(folder))
for k in range(int(first), int(last)):
    opened.add([measured(point(k))])
    print(k, flush=True)
"""
"""Adds points one by one, and says which are in the store; merges often."""


def point(k=0, **changes):
    return replace(Point("synth", "wide", hex(2 * k + 3), "native", {}, "gowin", None, "Yosys 1", "sources"), **changes)


def measured(p):
    row = row_of(p)
    return Result(p, "measured", digest=row.digest, row=row, cpu_seconds=1.5, peak_mb=20)


def lines(folder):
    """The rows of all files by a query over plain Parquet: each as often as it is there."""
    import duckdb

    found = f"SELECT digest, target FROM read_parquet('{folder}/*.parquet') WHERE \"values\" IS NOT NULL"
    return sorted(duckdb.sql(found).fetchall())


def writer(folder, first, last, **options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", WRITER, str(folder), str(first), str(last)]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def test_what_is_added_is_found_again(tmp_path):
    store, p, failed = Store(tmp_path / "s"), point(), Result(point(1), "timeout", "stopped after 2 s")
    assert store.add([measured(p), failed]) == 1
    for opened in (store, Store(tmp_path / "s")):
        assert opened.rows == [row_of(p)]
        assert (opened.state(p), opened.state(point(1)), opened.state(point(2))) == ("measured", "timeout", None)
        assert opened.known(p) == (row_of(p).digest,) and opened.known(point(9)) == opened.known(p)
        assert opened.known(replace(p, target="ecp5-85k")) == ()
        assert opened.state(replace(p, tool="Yosys 2")) is opened.state(replace(p, fingerprint="other")) is None
    names, found = store.query("SELECT design, lut, seed FROM rows")
    assert (names, found) == (["design", "lut", "seed"], [("wide", 7, None)])
    assert store.query("SELECT message FROM points WHERE state = 'timeout'")[1] == [("stopped after 2 s",)]
    with pytest.raises(ValueError, match="DuckDB: Parser Error"):
        store.query("SELEKT")


def test_a_second_result_adds_nothing_and_a_failure_is_replaced(tmp_path):
    one, two = Store(tmp_path), Store(tmp_path)
    same = replace(point(), settings={"dsp": "18x18"})  # another description of the same RTL
    assert one.add([Result(point(), "failed", "no room"), measured(point(2))]) == 1
    assert two.add([measured(point()), measured(same), measured(point(2))]) == 1
    assert one.add([measured(point()), Result(point(), "failed", "no room")]) == 0
    for store in (one, two, Store(tmp_path)):
        assert len(store.rows) == 2 and store.state(point()) == "measured" and store.state(same) == "known"
    assert len(lines(tmp_path)) == 2
    one.merge()
    assert len(lines(tmp_path)) == 2 and len([*tmp_path.glob("*.parquet")]) == 1
    assert two.add([measured(same)]) == 0  # it has read the files that are gone
    assert Store(tmp_path).query("SELECT count(*) FROM points")[1] == [(3,)]


def test_rows_of_results_come_and_go_unchanged(tmp_path):
    rows = [*read(shipped_folder() / "secp160k1.jsonl")]
    assert len(rows) > 5
    store = Store(tmp_path)
    assert store.put(rows) == len(rows) and store.put(rows) == 0
    assert {row.line() for row in Store(tmp_path).rows} == {row.line() for row in rows}
    synth = next(row for row in rows if row.kind == "synth")
    wanted = point(tool=synth.tool, target=synth.target, design=synth.about["design"])
    assert synth.digest in store.known(wanted)


def test_a_merge_that_was_killed_leaves_each_row_once(tmp_path):
    store = Store(tmp_path / "s")
    for k in range(3):
        store.add([measured(point(k))])
    shutil.copytree(tmp_path / "s", tmp_path / "before")
    store.merge()
    for old in (tmp_path / "before").glob("*.parquet"):
        shutil.copy(old, tmp_path / "s")
    (tmp_path / "s" / "torn.parquet.new").write_bytes(b"PAR1")
    assert len(lines(tmp_path / "s")) == 6
    assert len(Store(tmp_path / "s").rows) == len(lines(tmp_path / "s")) == 3
    assert not [*(tmp_path / "s").glob("*.new")]


def test_many_files_become_one(tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "FILES", 4)
    store = Store(tmp_path)
    for k in range(5):
        assert len([*tmp_path.glob("*.parquet")]) == k
        store.add([Result(point(k), "refused", "not for this modulus")])
    assert len([*tmp_path.glob("*.parquet")]) == 1
    assert Store(tmp_path).state(point(4)) == "refused"


def test_two_writers_that_are_killed_lose_no_row_and_add_none_twice(tmp_path):
    """Both write the same points; each is killed in the middle, and another goes on."""
    told = set()
    for first in (0, 5):
        running = [writer(tmp_path, first, 1000) for _ in range(2)]
        for process in running:
            told |= {int(process.stdout.readline()) for _ in range(8)}
        for process in running:
            process.send_signal(signal.SIGKILL)
        for process in running:
            out, err = process.communicate(timeout=60)
            assert err == ""
            told |= {int(line) for line in out.split()}
    found = [digest for digest, _ in lines(Store(tmp_path).folder)]
    assert len(found) == len(set(found)) == len(Store(tmp_path).rows)
    assert {row_of(point(k)).digest for k in told} <= set(found)
    assert len(told) >= 13


def test_files_that_may_not_grow_end_with_one_line_and_keep_what_is_there(tmp_path):
    Store(tmp_path).add([measured(point())])
    before = lines(tmp_path)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # noqa: E731
    out, err = writer(tmp_path, 1, 9, preexec_fn=limit).communicate(timeout=60)
    assert out == "" and "StoreError: 1 results cannot be written to" in err.strip().splitlines()[-1]
    assert lines(tmp_path) == before and not [*tmp_path.glob("*.new")]
    assert Store(tmp_path).add([measured(point(1))]) == 1


def test_a_full_disk_keeps_the_last_batch(tmp_path):
    """On a file system of 400 kB, of which the store reserves 256."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = [
        "unshare",
        "-m",
        "sh",
        "-c",
        'mount -t tmpfs -o size=400k none "$0" && cd "$0" && exec "$@"',
        str(folder),
    ]
    if subprocess.run([*mounted, "true"], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    fill = "head -c 1M /dev/zero > fill; "
    script = f"""
import subprocess, sys
from pathlib import Path
from test_sweep_store import measured, point
from modmill.studies.sweep.store import Store, StoreError
store = Store(Path("store"))
store.add([measured(point())])
subprocess.run({fill!r}, shell=True, stderr=subprocess.DEVNULL)
try:
    store.add([measured(point(1))])
except StoreError as error:
    print(error)
print(len(Store(Path("store")).rows))
Path("fill").unlink()
print(store.add([measured(point(2))]), len(Store(Path("store")).rows))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([*mounted, sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    said, two, three = done.stdout.splitlines() or pytest.fail(done.stderr)
    assert said.startswith("all results are in store, and there is no room for more: ")
    assert (two, three) == ("2", "1 3")


def test_what_is_no_store_is_refused(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"no")
    with pytest.raises(StoreError, match=r"x.parquet is no file of a store, move it away: "):
        Store(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be made"):
        Store(tmp_path / "file" / "s")


def test_a_row_is_written_as_json(tmp_path):
    store = Store(tmp_path)
    store.add([measured(point())])
    ((values, about),) = store.query('SELECT "values", about FROM rows')[1]
    assert (json.loads(values), json.loads(about)["design"]) == (row_of(point()).values, "wide")
