# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Pages from templates. Every number enters a page through one of three filters, which show its origin:

printed     a number of a paper, with its table
predicted   a number from a formula or a schedule, with that source
measured    a number from rows, linked to them; refused if it has no origin
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from modmill.parts import need
from modmill.report.families import FAMILIES
from modmill.report.formulas import marked
from modmill.report.mathematics import inline, typeset
from modmill.report.plots import Plot
from modmill.report.reproduction import UNKNOWN, Line, Section
from modmill.report.traces import Run, origins, row_id, rows

NAVIGATION = (
    ("index.html", "Race"),
    ("rsa.html", "RSA"),
    ("ecc.html", "Curves"),
    ("designs.html", "Designs"),
    ("papers.html", "Papers"),
    ("errata.html", "Errata"),
    ("scaling.html", "Scaling"),
    ("method.html", "How measured"),
)
ASSETS = ("style.css", "site.js")


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Untraced(ValueError):
    """A measured number without a row."""


def shown(value: Any, digits: int = 4) -> str:
    """A number with separators, a float with ``digits`` significant digits; texts unchanged; lists with commas."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{name} {shown(each, digits)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(shown(each, digits) for each in value)
    if isinstance(value, (bool, str)):
        return str(value)
    if isinstance(value, int):
        return f"{int(value):,}"
    if abs(value) >= 10 ** (digits - 1):
        return f"{float(value):,.0f}"
    number, _, power = f"{float(value) or 0.0:.{digits}g}".partition("e")
    return f"{number} × 10{str(int(power)).translate(_RAISED)}" if power else number


def told(value: Any, digits: int = 4) -> str | Markup:
    """As `shown`, with formulas typeset."""
    return sentence(value) if isinstance(value, str) and "^" in value else shown(value, digits)


def printed(value: Any, table: str) -> Markup:
    """A paper's number and its table."""
    return Markup('<span class="p" data-table="{}">{}</span>').format(table, told(value, 7))


def dash(value: Any) -> Any:
    """The value; a dash if there is none, so that no cell is empty."""
    return Markup('<span class="none">–</span>') if value is None else value


def setting(value: Any) -> str:
    """The value of a setting as commands take it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def predicted(value: Any, source: str) -> Markup:
    """A predicted number and its formula or schedule."""
    return Markup('<span class="f" data-formula="{}">{}</span>').format(source, told(value))


def measured(value: Any, digits: int = 4) -> Markup:
    """A measured number as a link to its rows, first to the one that has the same number; a number that none of them
    has is marked as computed. Raises Untraced if it has no row.

    A text without a digit (yes, a dash) needs no row.
    """
    if value is None or value == UNKNOWN or (isinstance(value, str) and not any(c.isdigit() for c in value)):
        return Markup('<span class="none">{}</span>').format("–" if value in (None, UNKNOWN) else value)
    found = origins(value)
    if not found:
        raise Untraced(f"the measured number {value!r} has no row")
    behind = rows(value)
    if not behind:
        runs = "; ".join(o.what for o in found if isinstance(o, Run))
        return Markup('<span class="m" data-run="{}" title="counted in a run: {}">{}</span>').format(
            runs, runs, shown(value, digits)
        )
    stated = {row.key for row in behind if value in [v for v in row.values.values() if not isinstance(v, bool)]}
    ids = [row_id(row) for row in sorted(behind, key=lambda row: row.key not in stated)]
    how = Markup("") if stated else Markup(" data-computed")
    said = ("" if stated else "computed from ") + _origin(value)
    return Markup('<a class="m" href="rows.html#r-{}" data-rows="{}"{} title="{}">{}</a>').format(
        ids[0], " ".join(ids), how, said, shown(value, digits)
    )


def _origin(value: Any) -> str:
    """The origin of a number in words: tools, targets, seeds."""
    by_tool: dict[str, list[int]] = {}
    for row in rows(value):
        seeds = by_tool.setdefault(" ".join(filter(None, (row.tool, row.target))), [])
        if row.seed is not None:
            seeds.append(row.seed)
    texts = [
        f"{tool}, seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}" if seeds else tool
        for tool, seeds in by_tool.items()
    ]
    return "; ".join(texts)


def difference(line: Line) -> Mapping[str, str]:
    """Differences of prediction and measurement from print in per cent, if both are numbers; ``=`` for none."""
    found = {"predicted": "", "measured": ""}
    for name in found:
        value = getattr(line, name)
        if value in (None, UNKNOWN) or line.printed is None:
            continue
        if value == line.printed:
            found[name] = "="
        elif isinstance(value, (int, float)) and isinstance(line.printed, (int, float)) and line.printed:
            percent = 100 * (float(value) / float(line.printed) - 1)
            digits = "+.1f" if abs(percent) >= 0.05 else "+.2g"
            text = f"{percent:{digits}} %" if abs(percent) < 1000 else f"× {value / line.printed:.0f}"
            found[name] = text.replace("-", "−")
        else:
            found[name] = "≠"
    return found


def matrix(section: Section) -> Mapping[str, Any] | None:
    """A section as the paper's table: a row for each item, a column for each quantity, and notes; None for a section
    that is a list of statements."""
    cells: dict[tuple[str, str], Line] = {}
    for line in section.lines:
        where, colon, quantity = line.what.rpartition(": ")
        if colon and (where, quantity) not in cells:
            cells[where, quantity] = line
    wheres, quantities = (list(dict.fromkeys(key[k] for key in cells)) for k in (0, 1))
    enough = len(wheres) > 1 < len(quantities) <= 12 and 2 * len(cells) >= len(wheres) * len(quantities)
    if not enough or len(cells) < len(section.lines):
        return None
    notes = list(dict.fromkeys(line.why for line in section.lines if line.why))
    return {"wheres": wheres, "quantities": quantities, "cells": cells, "notes": notes}


def mark(place: int) -> str:
    """The mark of a note: a ... z, aa ..."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return letters[place] if place < 26 else letters[place // 26 - 1] + letters[place % 26]


def figure_data(plot: Plot) -> str:
    """A plot as JSON for the page's script, with ``<`` escaped so that it cannot close the script element."""
    by_key = {f.key: f for f in FAMILIES}
    data = asdict(plot)
    for series in data["series"]:
        series["points"] = [[x, float(y) if isinstance(y, float) else int(y)] for x, y in series["points"]]
        of = by_key.get(series["family"])
        series |= {"symbol": of.symbol if of else "circle", "group": of.title if of else ""}
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


def grid(plot: Plot) -> Mapping[str, Any]:
    """The numbers of a plot as a table: a row for each x, a column for each series."""
    xs = list(dict.fromkeys(x for series in plot.series for x, _ in series.points))
    if all(isinstance(x, (int, float)) for x in xs):
        xs.sort(key=lambda x: float(x))
    return {"xs": xs, "columns": [(series, dict(series.points)) for series in plot.series]}


@cache
def _markdown() -> MarkdownIt:
    need("site")
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    made = MarkdownIt("commonmark", {"html": False}).enable("table")
    return made.use(dollarmath_plugin, allow_space=False, renderer=lambda latex, _: inline(latex))


def prose(text: str) -> Markup:
    """Markdown as HTML. Headings start at level 3; ``math`` blocks and ``$...$`` are typeset; tables, code and
    displayed formulas can be scrolled with the keyboard."""
    tokens = _markdown().parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 1)}"
        if token.type == "fence" and token.info == "math":
            token.type, token.content = "html_block", typeset(token.content)
    html = str(_markdown().renderer.render(tokens, _markdown().options, {}))
    html = html.replace("<table>", '<div class="scroll" tabindex="0" role="group" aria-label="table"><table>')
    html = html.replace("</table>", "</table></div>")
    html = html.replace("<td></td>", f"<td>{dash(None)}</td>")
    html = html.replace("<th></th>", '<th><span class="hidden">row</span></th>')
    return Markup(html.replace("<pre>", '<pre tabindex="0">'))


def phrase(text: str) -> Markup:
    """One line of Markdown as HTML."""
    return Markup(_markdown().renderInline(text))


def sentence(text: str) -> Markup:
    """One line of Markdown in which formulas stand as in a terminal, with these typeset."""
    return phrase(marked(text))


@cache
def _templates() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("modmill.report", "site"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "printed": printed, "predicted": predicted, "measured": measured, "shown": shown, "prose": prose,
        "dash": dash, "setting": setting, "phrase": phrase, "sentence": sentence, "mark": mark, "grid": grid,
        "figure_data": figure_data, "difference": difference, "matrix": matrix, "row_id": row_id,
        "quoted": lambda value: escape(json.dumps(value)),
    }  # fmt: skip
    made.globals |= {"navigation": NAVIGATION, "families": FAMILIES}
    return made


def page(template: str, name: str, **values: Any) -> str:
    """One page. ``name``: its file name, which the navigation marks. Raises Untraced for a measured number without
    rows."""
    return _templates().get_template(f"{template}.html.j2").render(name=name, **values)


def asset(name: str) -> str:
    """The style sheet or the script."""
    return Path(__file__).with_name("site").joinpath(name).read_text(encoding="utf-8")


def plotly() -> str:
    """The text of plotly.js."""
    need("site")
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
