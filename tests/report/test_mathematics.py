# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The formulas of the docs become MathML, whole."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from modmill.report.mathematics import typeset
from modmill.report.pages import prose

PAGES = sorted(Path(__file__).parents[2].joinpath("docs", "designs").glob("*.md"), key=str)
PAGES = [page for page in PAGES if page.stem != "index"]
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


@pytest.mark.parametrize("latex", [r"\begin{aligned} a &= b \end{aligned}", r"a & b", r"\nonsense x"])
def test_what_is_not_understood_is_refused(latex):
    with pytest.raises(ValueError, match="no MathML"):
        typeset(latex)
