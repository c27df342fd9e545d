# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The pages of engines, from engines.jsonl: rows as the races of engines write them, without lists of cells."""

from dataclasses import replace
from pathlib import Path

import markup
import pytest

from modmill.report import pages
from modmill.report.engine_rows import measured_engines
from modmill.report.rows import Store, read
from modmill.report.traces import row_id
from modmill.studies.site import machine_pages as engine_pages
from modmill.studies.site.site import Site

ROWS = list(read(Path(__file__).with_name("engines.jsonl")))
FOUND = measured_engines(ROWS)
KNOWN = {row_id(row): row for row in ROWS}


@pytest.fixture(scope="session")
def parsed(engines):
    return {path.name: markup.tree(path.read_text()) for path in engines.glob("*.html")}


def test_pages_are_valid_and_every_number_has_its_rows(parsed):
    for name, (root, nesting) in parsed.items():
        assert [*nesting, *markup.validity(root), *markup.accessibility(root)] == [], name
        if name != "rows.html":
            assert list(markup.untraced(root, KNOWN)) == [], name
    shown = {i for name in ("rsa.html", "ecc.html") for a in parsed[name][0].all("a")
             for i in a.attrs.get("data-rows", "").split()}  # fmt: skip
    assert shown == KNOWN.keys()


def test_every_engine_stands_on_its_page_with_its_numbers_and_its_command(parsed):
    for page in engine_pages.PAGES:
        root, _ = parsed[page.file]
        own = [e for e in FOUND if e.kind == page.kind]
        lines = {tr.attrs["id"]: tr for tr in root.all("tr") if "id" in tr.attrs}
        assert lines.keys() == {engine_pages.anchor(e) for e in own} and len(lines) == len(own)
        for e in own:
            cells = [c.text.strip() for c in lines[engine_pages.anchor(e)].all("th", "td")]
            assert e.label in cells[0] and cells[1] == e.work.title and cells[2] == e.target
            assert cells[3] == ("routed" if e.routes else "not routed" if e.fits else "does not fit")
            columns = [key for key, _ in page.values(FOUND)["columns"]]
            numbers = [pages.shown(e.numbers[key]) or "–" for key in (*columns, "results")]
            nothing_proved = "–"
            assert cells[4:-1] == [*numbers, nothing_proved] and cells[-1].startswith(e.command)
        commands = [b.attrs["data-copy"] for b in root.all("button") if "data-copy" in b.attrs]
        assert commands == [e.command for e in own]


def test_a_design_links_to_the_engines_built_on_it(parsed):
    links = {a.attrs["href"] for a in parsed["design-pseudo-mersenne.html"][0].all("a") if "href" in a.attrs}
    wanted = {f"{e.kind}.html#{engine_pages.anchor(e)}" for e in FOUND if e.design.name == "pseudo-mersenne"}
    assert wanted and wanted <= links
    others = {f"{e.kind}.html#{engine_pages.anchor(e)}" for e in FOUND} - wanted
    assert others and not others & links


def test_rows_tell_what_their_engines_do(parsed):
    lines = {
        tr.attrs["id"]: [td.text for td in tr.all("td")] for tr in parsed["rows.html"][0].all("tr") if "id" in tr.attrs
    }
    for row in ROWS:
        _, about, *_, numbers = lines[f"r-{row_id(row)}"]
        assert f"{row.about['threads']} interleaved on {row.about['cores']}" in about
        name = {"check": "latency", "synth": "lut", "route": "mhz"}[row.kind]
        assert f"{name} {pages.shown(row.values[name])} " in f"{numbers} "


def test_without_rows_the_pages_say_how_to_measure(tmp_path):
    site = Site(())
    site._store = Store(Path("/nowhere"), tmp_path)
    for name, text in site._engine_pages():
        root, nesting = markup.tree(text)
        assert [*nesting, *markup.validity(root), *markup.accessibility(root)] == []
        assert "No row yet" in text and "plotly" not in text
        (page,) = [p for p in engine_pages.PAGES if p.file == name]
        assert page.command in text


@pytest.mark.parametrize("kind", ["rsa", "ecc"])
def test_the_generator_still_emits_what_rows_are_about(kind):
    """Pages find rows by what they are about; this is what makes that honest. The smallest engine of each kind."""
    found = [e for e in measured_engines(Store(Path("/nowhere")).rows) if e.kind == kind]
    if not found:
        pytest.skip(f"no rows of {kind} engines ship")
    e = min(found, key=lambda e: e.synth.values["lut"])
    today = engine_pages.digest_today(e.synth)
    assert today == e.digest, f"rows of {e.label} are about RTL that is emitted no longer: measure again"


def test_an_engine_of_today_is_the_one_that_its_row_is_about():
    """The planted fault: of two rows that differ in one choice, each has a digest of its own."""
    row = next(e.synth for e in FOUND if e.kind == "rsa")
    small = {**row.about, "bits": 16, "modulus_bits": 64, "threads": 1}
    first, other, later = (
        engine_pages.digest_today(replace(row, about={**small, **more})) for more in ({}, {"word": 16}, {"date": "x"})
    )
    assert first == later != other
