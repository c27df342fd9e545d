# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Typeset mathematics: the LaTeX of docs as MathML, which browsers show without scripts or fonts."""

from __future__ import annotations

import re
from functools import cache

from markupsafe import Markup

from modmill.parts import need


@cache
def inline(latex: str) -> Markup:
    """A formula within a sentence. Raises ValueError and MissingPartError as `typeset` does."""
    return _mathml(latex, "inline")


@cache
def typeset(latex: str) -> Markup:
    """One displayed formula, or lines of an ``align*`` environment, as an element that scrolls if it is too wide.

    Raises ValueError if a part is not understood, and MissingPartError without the converter.
    """
    return Markup('<div class="scroll formula" tabindex="0" role="group" aria-label="formula">{}</div>').format(
        _mathml(latex, "block")
    )


def _mathml(latex: str, display: str) -> Markup:
    need("site")
    from latex2mathml.converter import convert

    text = str(convert(latex.strip(), display=display))
    if left := re.search(r"<m[io]>(&|\\[a-z]+)</m[io]>|<mtext>\\[a-z]+|<merror", text):
        raise ValueError(f"no MathML for {left[0]!r} in {latex.strip().splitlines()[0]!r}")
    text = re.sub(r"<mo[^>]*>(&#x0007C;)", r'<mo stretchy="false" lspace="0" rspace="0">\1', text)  # | in pairs
    return Markup(text.replace('<mspace width="1em" />', '<mspace width="0.4em" />') if display == "inline" else text)
