# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The commands ``modmill reproduce``, ``modmill errata`` and ``modmill view``: the papers in the terminal, or as a
site."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from modmill.cli import complete
from modmill.cli.options import Json, Record
from modmill.cli.output import recorded, results
from modmill.cli.progress import hide, keep, note, show

_KEPT = "rows that were measured are kept; the same command goes on from them"
Papers = Annotated[
    list[str],
    typer.Argument(
        metavar="[PAPER]...",
        help="sor: sum of residues; hbe: base extension; rsa64k: radix 64K; multistep: multi-step radix 2. "
        "Default: all.",
        autocompletion=complete.papers,
    ),
]


def reproduce(
    papers: Papers = [],  # noqa: B006 - typer reads the default, nothing changes it
    measure: Annotated[bool, typer.Option("--measure", help="Measure missing rows (minutes).")] = False,
    emit: Annotated[
        bool, typer.Option("--emit", help="Emit every core again; show only rows of that RTL (minutes).")
    ] = False,
    site: Annotated[Path | None, typer.Option("--output", "-o", metavar="DIR", help="Write a site.")] = None,
    as_json: Json = False,
    record: Record = None,
) -> None:
    """Print every table of the papers: printed, predicted and measured values, with the reasons for differences."""
    from modmill.contract import UnsupportedError

    if site is not None:
        if as_json:
            raise UnsupportedError("--json prints the tables, -o writes a site; omit one of them")
        _write(site, papers, measure, emit, record)
    else:
        _print(papers, measure, emit, as_json, record)
    recorded(record)


Paper = Annotated[
    str | None,
    typer.Argument(
        metavar="[PAPER]",
        help="sor, hbe (also hbe-slides), rsa64k or multistep; default: all.",
        autocompletion=complete.errata,
    ),
]
Number = Annotated[int | None, typer.Argument(metavar="[N]", help="The number of an item.")]


def errata(paper: Paper = None, number: Number = None, as_json: Json = False) -> None:
    """Compute the errors found in the papers: a list of all, the items of one paper, or one item.

    Exit status 1 if a computed value differs from the item's, or does not support its verdict.
    """
    from modmill.report.errata import faults, lines, overview
    from modmill.studies.papers.errata import ERRATA, errata_of

    papers = [errata_of(paper)] if paper else list(ERRATA.values())
    items = [(p, i) for p in papers for i in ([p.item(number)] if number is not None else p.items)]
    found = []
    for number_, (p, item) in enumerate(items):
        show(f"{p.key} {item.number}", number_, len(items))
        found.append((p, item, item.run()))
    wrong = sum(bool(faults(item, values)) for _, item, values in found)
    width = shutil.get_terminal_size((110, 24)).columns
    if as_json:
        data = [item.describe(p.key, values) for p, item, values in found]
        print(json.dumps(data if number is None else data[0], indent=2, ensure_ascii=False))
    else:
        for p, item, values in found:
            if paper:
                print("\n".join([f"{p.key} {item.number}", *lines(item, values, width)]))
            else:
                print(*[f"{p.key}: {p.title}"] * (item is p.items[0]), overview(item, values, width), sep="\n")
        if number is None:
            computed = sum(item.compute is not None for _, item, _ in found)
            print(f"{len(found)} items, {computed} computed, {wrong} failed; modmill errata PAPER N shows one")
    if wrong:
        raise typer.Exit(1)


def view(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="A site; default: a new one in the cache.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on this machine; 0: a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the browser.")] = True,
) -> None:
    """Serve the site on this machine and open the browser. Ctrl-C ends it."""
    from modmill.studies.site import site as pages

    if folder is None:
        folder = pages.kept(show)
    _serve(folder, port, browser)


def _write(site: Path, papers: list[str], measure: bool, emit: bool, record: Path | None) -> None:
    from modmill.studies.site.site import write

    stale: list[str] = []
    keep(_KEPT)
    files = write(site, papers, measure=measure, emit=emit, record=record, progress=show, left_out=stale.append)
    _name(stale)
    print(f"{site}: {sum(name.endswith('.html') for name in files)} pages; open {site / 'index.html'}")


def _name(stale: list[str]) -> None:
    """Name the cores that have only rows of other RTL."""
    for text in stale:
        note(f"{text}: its rows are for other RTL; measure it again")


def _print(papers: list[str], measure: bool, emit: bool, as_json: bool, record: Path | None) -> None:
    from rich.console import Console

    from modmill.report.reproduction import as_data
    from modmill.report.reproduction import show as show_tables
    from modmill.studies.papers.reproduce import PAPERS, require_papers
    from modmill.studies.papers.reproduce import reproduce as reproduced

    require_papers(papers)
    keep(_KEPT)
    found = {}
    stale: list[str] = []
    for paper in papers or PAPERS:
        show(f"tables of {paper}")
        found[paper] = reproduced(
            paper, measure=measure, record=record, progress=show, recorded=not emit, left_out=stale.append
        )
    _name(stale)

    def print_all() -> None:
        for paper, sections in found.items():
            if len(found) > 1:
                print(f"\n==== {paper}")
            show_tables(sections, Console(width=None if sys.stdout.isatty() else 170, highlight=False))

    data = {paper: as_data(sections) for paper, sections in found.items()}
    results(data[papers[0]] if len(papers) == 1 else data, as_json, print_all, ascii_only=False)


def _serve(folder: Path, port: int, browser: bool) -> None:
    """Serve a folder, only to this machine, until Ctrl-C."""
    import webbrowser
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    from modmill.contract import UnsupportedError

    if not (folder / "index.html").is_file():
        raise UnsupportedError(f"{folder} holds no site (index.html); modmill reproduce -o {folder} writes one")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    hide()
    with ThreadingHTTPServer(("127.0.0.1", port), partial(Quiet, directory=str(folder))) as server:
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        print(f"{folder} at {address}; Ctrl-C ends it", flush=True)
        if browser:
            webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
