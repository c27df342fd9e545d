# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Tables of papers in the terminal: every cell is in the text as it is, brackets and all."""

import re
from io import StringIO

import pytest
from rich.console import Console

from modmill.report import reproduction
from modmill.report.reproduction import Line, Section, show
from modmill.studies.papers.reproduce import PAPERS, reproduce


def swallowed(sections):
    """Cells that are not in the printed text, each with its line."""
    for section in sections:
        for line in section.lines:
            out = StringIO()
            show([Section("", [line])], Console(file=out, width=4000, highlight=False))
            (row,) = [text for text in out.getvalue().splitlines() if text.startswith(line.what[:1])][-1:]
            for cell in (line.what, line.printed, line.predicted, line.measured, line.why):
                text = reproduction._text(cell)
                if re.sub(r"\s+", " ", text).strip() not in re.sub(r"\s+", " ", row):
                    yield text, line


@pytest.mark.parametrize("paper", sorted(PAPERS))
def test_no_cell_is_swallowed(paper, tmp_path, monkeypatch):
    monkeypatch.setenv("MODMILL_CACHE", str(tmp_path))
    assert list(swallowed(reproduce(paper, recorded=True))) == []


@pytest.mark.parametrize("cell", ["[r-1, 0]", "[bold]", "[/]"])
def test_a_cell_that_looks_like_markup_is_shown(cell):
    section = Section("Theorem 1", [Line(f"digits {cell}", cell, cell, cell, cell)], text=cell, chart=[cell])
    assert list(swallowed([section])) == []


def test_a_swallowed_cell_is_found(monkeypatch):
    section = Section("Theorem 1", [Line("digits", "[r-1, 0]")])
    monkeypatch.setattr("rich.markup.escape", str)
    assert list(swallowed([section])) == [("[r-1, 0]", section.lines[0])]
