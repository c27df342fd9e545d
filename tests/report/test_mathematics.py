# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The formulas of the docs become MathML, whole."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from modmill.report.mathematics import inline, typeset
from modmill.report.pages import prose

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.joinpath("designs").glob("*.md"), key=str)
PAGES = [page for page in PAGES if page.stem != "index"]
TEXTS = [*PAGES, *(DOCS / name for name in ("designs/index.md", "ecc.md", "errata.md", "guide.md", "rsa.md"))]
NAME = "{http://www.w3.org/1998/Math/MathML}"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_formula_of_a_design_is_typeset_line_by_line(page):
    text = page.read_text().partition("## Formula")[2].partition("\n## ")[0]
    blocks = re.findall(r"```math\n(.*?)```", text, re.DOTALL)
    assert blocks
    for latex in blocks:
        root = ElementTree.fromstring(str(typeset(latex)))
        assert len(list(root.iter(f"{NAME}mtr"))) in (0, latex.count("\\\\") + 1)
        shown = "".join(root.itertext())
        assert "\\" not in shown and "&" not in shown
        letters = {"alpha": "α", "gamma": "γ", "kappa": "κ", "xi": "ξ", "zeta": "ζ"}
        assert all(letter in shown for name, letter in letters.items() if f"\\{name}" in latex)
        assert shown.count("=") == latex.count("=")
        assert "<math" in prose(f"```math\n{latex}```")


def plain(text):
    """Formulas in sentences that are not typeset: powers, indices, relations and functions in plain text."""
    text = re.sub(r"^ *```.*?```|^(?:#|Source).*?$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\$[^$]*\$|`[^`]*`|\]\([^)]*\)", "", text)
    return re.findall(r"[A-Za-z0-9)]\^\S*|\b[A-Za-z]_[a-z0-9]\b|[<>]=|\b(?:floor|ceil)\(", text)


@pytest.mark.parametrize("page", TEXTS, ids=lambda path: path.stem)
def test_formulas_in_sentences_are_typeset(page):
    text = page.read_text()
    assert plain(text) == []
    for latex in re.findall(r"\$([^$]*)\$", re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)):
        shown = "".join(ElementTree.fromstring(str(inline(latex))).itertext())
        assert "\\" not in shown and shown.count("=") == latex.count("=")


def test_a_formula_in_plain_text_is_found():
    assert plain("R^-1 and X_r <= 2, ceil(n / 2)") == ["R^-1", "X_r", "<=", "ceil("]
    assert plain("$R^{-1}$ and `X_r` <\n```\n2^w\n```\n") == []


def test_sentences_and_cells_have_their_formulas():
    assert '<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline">' in prose("As $2^w - u$ has 2 bits")
    assert prose("| a |\n|---|\n| $N$ sets of 4 |").count("<math") == 1
    with pytest.raises(ValueError, match="no MathML"):
        prose(r"Here $\nonsense$ stands.")


@pytest.mark.parametrize("latex", [r"\begin{aligned} a &= b \end{aligned}", r"a & b", r"\nonsense x"])
def test_what_is_not_understood_is_refused(latex):
    with pytest.raises(ValueError, match="no MathML"):
        typeset(latex)
