# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The site as files: valid, linked, without requests, every number with its origin, readable in both schemes."""

import json
import re
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import markup
import pytest

from modmill.designs import DESIGNS
from modmill.numbers.moduli import parse_modulus
from modmill.report import pages
from modmill.report.families import FAMILIES
from modmill.report.picture import _colours
from modmill.report.reproduction import UNKNOWN, Line
from modmill.report.rows import Store
from modmill.report.traces import row_id
from modmill.studies.papers.reproduce import PAPERS, reproduce
from modmill.studies.site.predicted import TARGET, predicted
from modmill.studies.site.site import MARK, Site

PROSE_MAY_QUOTE = ("errata.html", "rows.html", "paper-")
"""Pages whose text quotes papers: there a number with a unit may stand in a sentence."""


@pytest.fixture(scope="session")
def parsed(site):
    return {path.name: markup.tree(path.read_text()) for path in sorted(site.glob("*.html"))}


@pytest.fixture(scope="session")
def known():
    return {row_id(row): row for row in Store(Path("/nowhere")).rows}


def ids_of(parsed, site):
    ids = {name: {e.attrs["id"] for e in root.all() if "id" in e.attrs} for name, (root, _) in parsed.items()}
    others = (path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file())
    return {name: set() for name in others} | ids


def test_there_is_a_page_for_everything(parsed):
    wanted = {f"design-{d.name}.html" for d in DESIGNS} | {f"paper-{name}.html" for name in PAPERS}
    wanted |= {name for name, _ in pages.NAVIGATION} | {"rows.html"}
    assert parsed.keys() == wanted


def test_pages_are_valid_and_accessible(parsed):
    faults = {
        name: [*nesting, *markup.validity(root), *markup.accessibility(root)]
        for name, (root, nesting) in parsed.items()
    }
    assert {name: found for name, found in faults.items() if found} == {}


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("</h1>", "</h2>", "closes <h1>"),
        ("</main>", '<p id="main"></p></main>', "id main is given twice"),
        ("</main>", "<h4>deep</h4></main>", "h4 'deep' follows"),
        ("</main>", '<div class="scroll"></div></main>', "cannot be reached"),
        ("</main>", '<div role="img"></div></main>', "has no label"),
        ("</main>", '<input name="x"></main>', "has no label"),
        ("</main>", '<a href="x.html"> </a></main>', "has no name"),
        ("</main>", "<table><tr><td>1</td></tr><tr><td>1</td><td>2</td></tr></table></main>", "rows of [1, 2] cells"),
        ('lang="en"', "", "language"),
        ("</main>", "<p><div></div></p></main>", "<p> holds <div>"),
    ],
)
def test_planted_markup_faults_are_caught(site, old, new, fault):
    text = (site / "papers.html").read_text()
    assert old in text
    root, nesting = markup.tree(text.replace(old, new, 1))
    assert any(fault in found for found in [*nesting, *markup.validity(root), *markup.accessibility(root)])


def test_links_lead_somewhere(parsed, site):
    ids = ids_of(parsed, site)
    assert [f for name, (root, _) in parsed.items() for f in markup.links(root, name, ids)] == []
    broken, _ = markup.tree('<a href="gone.html">a</a><a href="index.html#gone">b</a><script src="no.js"></script>')
    assert len(list(markup.links(broken, "index.html", ids))) == 3


def test_nothing_is_fetched_from_elsewhere(site):
    for path in site.iterdir():
        if path.is_file() and path.name not in ("plotly.min.js", MARK):
            assert list(markup.foreign(path.read_text())) == [], path.name
    script = (site / "site.js").read_text()
    assert not re.search(r"fetch\(|XMLHttpRequest|import\(|sendBeacon", script)
    for planted in (
        '<script src="https://cdn.example/x.js">',
        "<img src=//example.org/x>",
        "a{background:url(http://x/y)}",
    ):
        assert list(markup.foreign(planted))


def test_every_measured_number_has_its_rows(parsed, known):
    faults, count = [], 0
    for name, (root, _) in parsed.items():
        found = list(markup.untraced(root, known))
        if name.startswith(PROSE_MAY_QUOTE):
            found = [fault for fault in found if "in the text" not in fault]
        faults += [f"{name}: {fault}" for fault in found]
        count += sum("data-rows" in e.attrs for e in root.all("a"))
    assert faults == []
    assert count > 1500
    rows = {e.attrs["id"].removeprefix("r-") for e in parsed["rows.html"][0].all("tr") if "id" in e.attrs}
    assert rows == known.keys()


def test_every_page_can_be_read(parsed):
    assert {name: found for name, (root, _) in parsed.items() if (found := list(markup.unreadable(root)))} == {}


@pytest.mark.parametrize(
    "planted",
    [
        "<built-in method values of dict object at 0x7f12>", "None", "3 and nan", "{'lut': 3}", "Fraction(1, 3)",
        "<modmill.report.rows.Row object at 0x7f>", "(3,)", "",
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_caught(planted):
    root, _ = markup.tree(f"<main><table><tr><td>{pages.Markup.escape(planted)}</td></tr></table></main>")
    assert len(list(markup.unreadable(root))) == 1


def numbers_of(rows_page):
    """The numbers that the page of rows shows, for each row."""
    return {
        tr.attrs["id"].removeprefix("r-"): {b.text for b in tr.all("b")}
        for tr in rows_page.all("tr")
        if "id" in tr.attrs
    }


def test_every_measured_number_stands_in_the_row_to_which_it_links(parsed):
    shown_by = numbers_of(parsed["rows.html"][0])
    faults = [f"{name}: {f}" for name, (root, _) in parsed.items() for f in markup.contradicted(root, shown_by)]
    assert faults == []
    root, _ = markup.tree('<a href="rows.html#r-1" data-rows="1">176</a><a href="rows.html#r-1" data-rows="1">175</a>')
    assert len(list(markup.contradicted(root, {"1": {"175"}}))) == 1


@pytest.mark.parametrize(
    "planted",
    [
        '<b class="m">175</b>',
        '<a class="m" data-rows="0123456789">175</a>',
        "<p>It runs at 175 MHz.</p>",
        "<td>3,947 LUT</td>",
        "<table><thead><tr><th>LUT</th></tr></thead><tbody><tr><td>3,947</td></tr></tbody></table>",
    ],
)
def test_a_planted_number_without_its_row_is_caught(known, planted):
    root, _ = markup.tree(f"<main>{planted}</main>")
    assert len(list(markup.untraced(root, known))) == 1


def test_a_measured_number_that_no_row_stands_behind_is_refused():
    for bad in (175.0, 3, "up to 3"):
        with pytest.raises(pages.Untraced):
            pages.measured(bad)
    assert "–" in pages.measured(None) and "–" in pages.measured(UNKNOWN)


def test_shown_numbers_are_those_of_their_rows(parsed, known):
    """Wherever a cell of the race shows a single row's number, it is the row's."""
    head = [th.text.strip() for th in next(parsed["index.html"][0].all("thead")).all("th")]
    seen = 0
    for tr in next(parsed["index.html"][0].all("tbody")).all("tr"):
        cells = list(tr.all("th", "td"))
        for title, cell in zip(head, cells, strict=True):
            key = {"latency, cycles": "latency"}.get(title, title.lower())
            for a in cell.all("a"):
                ids = a.attrs.get("data-rows", "").split()
                if len(ids) == 1 and key in known[ids[0]].values:
                    value = known[ids[0]].values[key]
                    assert a.text == pages.shown(value)
                    seen += 1
    assert seen > 250


def test_what_is_measured_is_not_predicted(parsed):
    """No core that has a clock on the device stands there with a prediction; with one row less it does."""
    rows = list(Store(Path("/nowhere")).rows)
    p = parse_modulus("P-256").value
    found = {one.label: one for one in predicted(rows, [p])}
    assert "kbe" not in found and {"mcivor", "orup", "wide"} <= set(found)
    fewer = [r for r in rows if not (r.kind == "route" and r.about.get("design") == "kbe" and r.target == TARGET)]
    again = {one.label: one for one in predicted(fewer, [p])}
    assert set(again) > set(found) and again["kbe"].figures.lut.percent == 0 < again["kbe"].figures.mhz.percent
    assert list(predicted(rows[:3], [p])) == []
    shown = [tr for tr in next(parsed["index.html"][0].all("tbody")).all("tr") if tr.attrs.get("data-predicted")]
    assert sum(tr.attrs["data-works"] == "P-256" for tr in shown) == len(found)


def words(shown):
    """The text of a piece of a page."""
    return unescape(re.sub("<[^>]*>", "", shown))


@pytest.mark.parametrize("paper", sorted(PAPERS))
def test_every_line_of_a_paper_is_on_its_page(parsed, paper):
    """Every cell that the code accounts for, with what is printed; the tests of studies/papers check these against the
    papers' tables, cell by cell."""
    root = parsed[f"paper-{paper}.html"][0]
    for section, element in zip(
        reproduce(paper, recorded=True), (e for e in root.all("section") if "data-section" in e.attrs), strict=True
    ):
        assert element.attrs["data-section"] == section.title
        cells = [e for e in element.all("td", "tr") if "data-cell" in e.attrs]
        assert sorted(e.attrs["data-cell"] for e in cells) == sorted(line.what for line in section.lines)
        shown = {e.attrs["data-cell"]: [p.text for p in e.all("span") if "p" in p.classes] for e in cells}
        for line in section.lines:
            assert shown[line.what] == ([] if line.printed is None else [words(pages.told(line.printed, 7))]), line
            if line.why and not any(words(pages.sentence(line.why)) in e.text for e in element.all("td", "li")):
                pytest.fail(f"no reason on the page: {line.why}")


def test_every_plot_has_its_numbers_in_a_table(parsed):
    count = 0
    for name, (root, _) in parsed.items():
        for canvas in root.all("div"):
            if "data-plot" not in canvas.attrs:
                continue
            figure = canvas.parent
            data = json.loads(next(s for s in figure.all("script")).text)
            cells = {td.text for td in figure.all("td")}
            for series in data["series"]:
                for _, y in series["points"]:
                    assert pages.shown(y) in cells, (name, data["title"], y)
            count += 1
    assert count > 50


def test_small_numbers_keep_their_digits():
    assert [pages.shown(x) for x in (0.0, 0.25, 1.5e-4, 1.5e-9, -2e-12)] == [
        "0", "0.25", "0.00015", "1.5 × 10⁻⁹", "-2 × 10⁻¹²",
    ]  # fmt: skip


def test_difference_in_per_cent():
    assert pages.difference(Line("x", 100, 150, 99.5)) == {"predicted": "+50.0 %", "measured": "−0.5 %"}
    assert pages.difference(Line("x", 3, 3, UNKNOWN)) == {"predicted": "=", "measured": ""}
    assert pages.difference(Line("x", "yes", "no")) == {"predicted": "≠", "measured": ""}
    assert pages.difference(Line("x", None, 5, 5)) == {"predicted": "", "measured": ""}
    assert pages.difference(Line("x", 100_000, 100_001))["predicted"] == "+0.001 %"


# ---------------------------------------------------------------------------------------------- colours

SHEET = pages.asset("style.css")


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [":root {", ':root[data-theme="dark"] {', ':root:not([data-theme="light"]) {'])
def test_colours_can_be_told_from_their_background(scheme):
    c = _colours(SHEET, scheme)
    texts = ("ink", "quiet", "link", "predicted", "measured", "off", *(f.key for f in FAMILIES))
    faint = [
        (text, ground, round(contrast(c[text], c[ground]), 2))
        for text in texts
        for ground in ("paper", "tint", "band", "mark")
        if contrast(c[text], c[ground]) < 4.5
    ]
    assert faint == []
    assert contrast(c["ink"], c["step"]) > 4.5 and contrast(c["step-rule"], c["paper"]) >= 3
    assert contrast("#777777", "#888888") < 4.5 < contrast("#000000", "#ffffff") == 21


def test_both_ways_to_dark_have_the_same_colours():
    assert _colours(SHEET, ':root[data-theme="dark"] {') == _colours(SHEET, ':root:not([data-theme="light"]) {')


def test_the_site_is_written_in_time(site):
    """Processor time on one core, from rows that ship and an empty cache."""
    assert json.loads((site / MARK).read_text())["seconds"] < 60


def test_what_has_rows_of_other_rtl_is_left_out_and_named():
    made = [SimpleNamespace(label=f"core {k}", target="ecp5-85k", digest=k, synth=k % 2) for k in range(3)]
    emitting = Site(("sor",), emit=True)
    assert emitting._of_today(made, int) == made[:2] and emitting.left_out == ["core 2 for ecp5-85k"]
    assert Site(("sor",))._of_today(made, int) == made
