# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A core shown in a notebook, its one line, and the help of the package."""

import doctest
import pydoc
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import modmill
from modmill.cores.multiplier import notebook
from modmill.designs import DESIGNS
from modmill.report.rows import Store

ROWS = Store(Path("/nowhere")).rows


class Table(HTMLParser):
    """The texts of all cells, line by line; fails on tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.lines = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.lines.append([])
        elif tag in ("td", "th"):
            self.lines[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.lines[-1][-1] += data


def test_a_core_shows_its_data_sheet_its_schedule_and_its_rows():
    core = modmill.build("hbe", "P-256", io="native")
    text = notebook.html(core, ROWS)
    lines = Table(text).lines
    facts = {line[0]: line[1] for line in lines if len(line) == 2}
    assert facts["command"] == core.command and hex(core.contract.factor) in facts["result"]
    assert f"latency {core.contract.timing.latency} cycles" in facts["timing"]
    synth, check = (
        next(r.values for r in ROWS if r.kind == kind and r.about.get("design") == "hbe"
             and r.about.get("modulus") == "P-256" and "engine" not in r.about)
        for kind in ("synth", "check")
    )  # fmt: skip
    measured = next(line for line in lines if line[0] == "ecp5-85k")
    assert measured[1:5] == [
        f"{check['latency']}, {check['interval']}",
        *(f"{synth[k]:,}" for k in ("dsp", "lut", "ff")),
    ]
    assert "<pre>cycle" in text and "verilog" not in vars(core), "it is shown without emitting its RTL"


def test_rows_of_other_cores_are_not_shown():
    """Another modulus, form or parameter; and the planted fault: a changed row shows."""
    core = modmill.build("hbe", "P-256", io="native")
    for other in (
        modmill.build("hbe", "P-256", io="native", rowers=8), modmill.build("hbe", "2^255-19", io="native"),
        modmill.build("hbe", "P-256"),
    ):  # fmt: skip
        assert "No measured rows" in notebook.html(other, (r for r in ROWS if r.about.get("modulus") == "P-256"))
    changed = [replace(r, values={**r.values, "lut": 123456}) if r.kind == "synth" else r for r in ROWS]
    assert "123,456" in notebook.html(core, changed) and "123,456" not in notebook.html(core, ROWS)


def test_texts_are_escaped():
    core = modmill.build("sor-1m-p", 97, n=12)
    found = replace(core, design=replace(core.design, title="<script>"))
    assert "<script>" not in notebook.html(found, ()) and "&lt;script&gt;" in notebook.html(found, ())


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: d.name)
def test_every_core_is_one_line_and_a_table(design):
    name = "2^17-145" if design.page == "channel" else "2^61-1"
    io = "native" if design.page in ("channel", "extension", "reduction") else "plain"
    try:
        core = modmill.build(design, name, io=io)
    except ValueError:
        core = modmill.build(design, "secp256k1", io="native")
    assert "\n" not in repr(core) and design.name in repr(core) and len(repr(core)) < 160
    assert Table(notebook.html(core, ())).lines


def test_help_lists_what_there_is():
    text = pydoc.plain(pydoc.render_doc(modmill))
    head = text.split("PACKAGE CONTENTS")[0]
    assert all(name in head for name in modmill.__all__ if not name.startswith("_"))
    assert dir(modmill) == sorted(modmill.__all__)


def test_the_examples_of_the_package_run():
    found = doctest.testmod(modmill, optionflags=doctest.ELLIPSIS)
    assert found.attempted >= 5 and not found.failed
