# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Formulas in plain sentences are found, whole, and nothing else is."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from modmill.designs import DESIGNS
from modmill.report.formulas import marked
from modmill.report.mathematics import inline
from modmill.report.pages import sentence
from modmill.studies.papers.errata import ERRATA
from modmill.studies.site.site import _fit

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("0 <= X, Y < M^", r"$0 \le X$, $Y < \hat{M}$"),
        ("X Y mod p", r"$X Y \bmod p$"),
        ("m_i = 2^n - 2^t_i - 1, t_i in {0, 2}", r"$m_{i} = 2^{n} - 2^{t_i} - 1$, $t_{i} \in \lbrace 0, 2\rbrace$"),
        ("floor(sum gamma_i <M_i>_p / p)", r"$\lfloor \sum \gamma_{i} \langle M_{i}\rangle_{p} / p \rfloor$"),
        ("d(r+2) + r/2 bits", r"$d (r + 2) + r / 2$ bits"),
        ("e = 2^-(r-1), (-M^-1)[R-1, 0]", r"$e = 2^{-(r - 1)}$, $(-M^{-1})[R - 1, 0]$"),
        ("0, 2^r or 2 2^r", r"0, $2^{r}$ or $2 \cdot 2^{r}$"),
        ("moduli 2^17-145 for P-256", "moduli $2^{17} - 145$ for P-256"),
        ("lambda = ~5.9e+06 p, below ~16 A", r"$\lambda \approx 5.9 \cdot 10^{6} p$, below $\approx 16 A$"),
        ("A larger T in Section V, i.e. a digit of A", "A larger $T$ in Section V, i.e. a digit of $A$"),
        ("r = 2 (16 < 16), (22) and [15]", "$r = 2$ ($16 < 16$), (22) and [15]"),
        ("SOR_1M_P has 2 block(s) of 18 bits, Table A1", "SOR_1M_P has 2 block(s) of 18 bits, Table A1"),
        ("run `a_b <= 2^3` with n' = n + 1", "run `a_b <= 2^3` with $n' = n + 1$"),
        ("the second sign must be <=.", r"the second sign must be $\le$."),
    ],
)  # fmt: skip
def test_formulas_are_found(text, latex):
    assert marked(text) == latex


def texts():
    """Every sentence of the errata and every fact of a design's page."""
    for paper in ERRATA.values():
        yield from (paper.notation, paper.right)
        for item in paper.items:
            yield from (item.says, item.where, item.reading, item.other, item.means)
            yield from (f"{f.what}: {f.ours} ({f.printed})" for f in item.figures)
    for design in DESIGNS:
        for name, value in _fit(design)[0].facts():
            yield from (name, value)


SYMBOLS = {
    "≤": "<=", "≥": ">=", "≈": "~", "∈": "in", "⌊": "floor", "⌋": "", "⌈": "ceil", "⌉": "", "∑": "sum", "…": "...",
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "Δ": "Delta", "κ": "kappa", "λ": "lambda", "μ": "mu",
    "ν": "nu", "ξ": "xi", "σ": "sigma", "ζ": "zeta", "×": "x", "−": "-", "⟨": "<", "⟩": ">", "′": "'", "·": "",
}  # fmt: skip


def letters(text):
    """What is left without brackets, spaces and marks, in the letters of a terminal; * and hats are left out."""
    for symbol, word in SYMBOLS.items():
        text = text.replace(symbol, word)
    return re.sub(r"[\s^_*(){}\[\]`,~=]|floor|ceil", "", text)


def test_nothing_is_lost():
    """A page's text has the letters, digits and signs of the terminal's text, in their order."""
    count = 0
    for text in texts():
        if "Mt" in text or "Mb" in text or re.search(r"\de[-+]\d", text) or "Zmax" in text:
            continue  # letters that pages write in another way
        shown = re.sub(
            r"\$([^$]*)\$",
            lambda found: "".join(ElementTree.fromstring(str(inline(found[1]))).itertext()),
            marked(text),
        )
        assert letters(shown) == letters(text), text
        count += shown != text
    assert count > 300


def test_a_lost_letter_is_seen():
    assert letters("X Y mod p") != letters("X mod p") and letters("2^8 - 1") == letters("2 8−1")


def test_a_sentence_is_typeset_and_escaped():
    shown = sentence("V < 2^W, if a < b and <div>")
    assert shown.count("<math") == 2 and "&lt;div&gt;" in shown
