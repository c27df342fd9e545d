# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The commands ``modmill sweep`` and ``modmill rows``: many cores measured, and the store that they are in."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from modmill.cli.command import command, group
from modmill.cli.options import Json
from modmill.cli.output import SHOWN
from modmill.cli.progress import keep, note, show
from modmill.parts import need

if TYPE_CHECKING:
    from modmill.studies.sweep.plan import Plan
    from modmill.studies.sweep.run import Cluster, Summary
    from modmill.studies.sweep.store import Store

app = group("Rows of sweeps: from and to files of JSON lines, and queries in SQL.")

StoreFolder = Annotated[
    Path | None, typer.Option("--store", metavar="DIR", help="The store; default: `sweep` in the cache folder.")
]


def sweep(
    file: Annotated[Path, typer.Argument(metavar="PLAN", help="A TOML file; docs/sweep.md describes it.")],
    store: StoreFolder = None,
    scheduler: Annotated[
        str, typer.Option(metavar="ADDRESS", help="A Dask scheduler that runs already, as tcp://host:8786.")
    ] = "",
    local: Annotated[bool, typer.Option("--local", help="On this machine, also if the plan names a cluster.")] = False,
    jobs: Annotated[
        int, typer.Option(min=0, max=1024, help="Points at a time on this machine; 0: one for each processor.")
    ] = 0,
    most: Annotated[
        int | None, typer.Option(min=1, help="Measure at most this number of points now, evenly spread over the plan.")
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Measure points again that failed before.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="Go on with the store; else refuse one that has rows.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Measure all cores of a plan, on all processors or on a cluster. A point that the store has is not measured again.

    Ctrl-C keeps what is finished, and the same command goes on. Status 1 if a tool failed on a point; the point's row
    says so.
    """
    from modmill.contract import UnsupportedError

    need("sweep")
    from modmill.studies.sweep.plan import read
    from modmill.studies.sweep.run import LostError
    from modmill.studies.sweep.run import sweep as swept

    if scheduler and (local or jobs):
        raise UnsupportedError("--scheduler excludes --local and --jobs; omit one of them")
    plan = read(file)
    show("reading the plan and the store")
    opened = store_of(store)
    if not resume and opened.rows:
        raise UnsupportedError(f"{opened.folder} has {len(opened.rows):,} rows; name a new folder with --store")
    kept = f"finished rows are in {opened.folder}; the same command goes on"
    keep(kept)
    points = plan.points()
    try:
        summary = swept(
            points, opened, _cluster(plan, scheduler, local, jobs), limits=plan.limits, retry=retry, most=most,
            progress=show, opened=lambda client: note(f"dashboard: {client.dashboard_link}"),
        )  # fmt: skip
    except LostError as error:
        raise LostError(f"{error}; {kept}") from None
    if as_json:
        print(json.dumps({"store": str(opened.folder), "points": len(points), **summary.describe()}, indent=2))
    else:
        _tell(summary, len(points), opened)
    if summary.failures:
        raise typer.Exit(1)


def store_of(folder: Path | None) -> Store:
    """The store of a folder; without one, that of all sweeps."""
    from modmill.flow.tools import cache_dir
    from modmill.studies.sweep.store import Store

    need("sweep")
    return Store(folder or cache_dir() / "sweep")


def _cluster(plan: Plan, scheduler: str, local: bool, jobs: int) -> Cluster:
    from modmill.studies.sweep import clusters

    if scheduler:
        return partial(clusters.running, scheduler)
    if plan.cluster and not local:
        options: dict[str, Any] = dict(plan.cluster)
        return partial(clusters.remote, options.pop("kind"), options.pop("jobs"), options)
    return partial(clusters.local, jobs)


def _tell(summary: Summary, points: int, store: Store) -> None:
    counts = [f"{count:,} {state}" for state, count in summary.states.items()]
    counts += [f"{count:,} {word}" for word, count in (("before", summary.before), ("left", summary.left)) if count]
    print(f"{points:,} points: {', '.join(counts)}; {len(store.rows):,} rows in {store.folder}")
    for failure in summary.failures[:SHOWN]:
        print(f"  {failure.point.name}: {failure.state}: {failure.message}")
    if (more := len(summary.failures) - SHOWN) > 0:
        print(f"  and {more:,} more")


@command(app, "rows import results/secp256k1.jsonl", name="import")
def import_(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files of rows, as those in results.")],
    store: StoreFolder = None,
) -> None:
    """Add the rows of files to the store, so that a sweep does not measure them again."""
    from modmill.report.rows import read

    opened = store_of(store)
    for file in files:
        file.open().close()  # refuse a file that is not there
        found = [*read(file)]
        print(f"{file}: {len(found):,} rows, {opened.put(found):,} new in {opened.folder}")


@command(app, "rows export rows.jsonl")
def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of rows; those that it has stay.")],
    store: StoreFolder = None,
) -> None:
    """Add the measured rows of the store to a file of JSON lines, as those in results."""
    from modmill.report.rows import append, read

    opened = store_of(store)
    there = {row.key for row in read(file)}
    new = [row for row in opened.rows if row.key not in there]
    for row in new:
        append(file, row)
    print(f"{file}: {len(new):,} rows added")


@command(app, 'rows query "SELECT design, min(lut) FROM rows GROUP BY design"')
def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="DuckDB's SQL over the tables `rows` and `points`.")],
    store: StoreFolder = None,
    as_json: Json = False,
) -> None:
    """Print the result of a query: a line of names, and lines of values between tabs."""
    names, lines = store_of(store).query(sql)
    if as_json:
        print(json.dumps([dict(zip(names, line, strict=True)) for line in lines], indent=2, default=str))
        return
    for line in [names, *lines]:
        print(*("" if value is None else value for value in line), sep="\t")
