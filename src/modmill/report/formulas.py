# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Formulas in plain sentences, as terminals show them, found and written as LaTeX for pages and docs.

``0 <= X, Y < 2^(r d)`` becomes ``$0 \\le X$, $Y < 2^{r d}$``. A formula is the longest text that the grammar below
understands: numbers, single letters, Greek names, powers, indices, sums, relations, floor, ceil, and what stands in
brackets. Words, plain numbers and code in backquotes stay as they are, so the text in sentences is the only source.

    relation  expression { relation sign, expression }
    expression  [-] term { + or -, term }
    term      factor { space, /, * or mod, factor }
    factor    atom { ^ power, _ index, [bits] }
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

_GREEK = ("alpha", "beta", "gamma", "delta", "Delta", "kappa", "lambda", "mu", "nu", "xi", "sigma", "zeta")
_NAMES = {name: rf"\{name}" for name in _GREEK}
_NAMES |= {"CMM": r"\mathrm{CMM}", "CMR": r"\mathrm{CMR}", "Zmax": r"Z_{\max}", "Mt": r"\widetilde{M}",
           "Mb": r"\overline{M}"}  # fmt: skip
_PREFIXES = {"sum": r"\sum", "min": r"\min", "max": r"\max", "log2": r"\log_2"}
_RELATIONS = {"= ~": r"\approx", "<=": r"\le", ">=": r"\ge", "<": "<", ">": ">", "=": "=", "~": r"\approx"}
_ROUND = {"floor": (r"\lfloor", r"\rfloor"), "ceil": (r"\lceil", r"\rceil")}

_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?!\d)|\d+(?:\.\d+)?(?:e[-+]\d+)?")
_LETTER = re.compile(r"[XYCa]\d(?!\w)|[A-Za-z](?![A-Za-z0-9])")
_WORD = re.compile(r"[A-Za-z]+2?(?![A-Za-z0-9])")
_REFERENCE = re.compile(r"\(\d+\)(?!\^)|\[[\d, ]+\]")
_ARTICLE = re.compile(r"(?:^|[.:] )A (?!(?:and|is|in) )[a-z0-9][\w-]*")
_AFTER_A = re.compile(r"a(?: [-+/*=<>]=? | mod |[_^)\]}])")
_TITLED = re.compile(r"\b(?:(?:Section|Table|Figure|Appendix|Algorithm|Theorem)s?|App\.) $")

Found = tuple[str, int]
"""The LaTeX of a part, and the place behind it."""


@cache
def marked(text: str) -> str:
    """A sentence with its formulas in LaTeX between dollars; code between backquotes is left alone."""
    parts = text.split("`")
    return "`".join(part if k % 2 else "".join(_pieces(part)) for k, part in enumerate(parts))


def _pieces(text: str) -> Iterator[str]:
    """The text, with its formulas between dollars."""
    at = 0
    while at < len(text):
        found = _Reader(text).formula(at) if _may_start(text, at) else None
        if found:
            yield f"${found[0]}$"
        yield "" if found else text[at]
        at = found[1] if found else at + 1


def _may_start(text: str, at: int) -> bool:
    before = text[at - 1 : at]
    if re.match(r"[\w.'\-^_]", before) or _TITLED.search(text[:at]):
        return False
    if at > 1 and re.match(r"\w\(s\)", text[at - 2 :]):  # block(s)
        return False
    return before not in (")", "]") or text[at] in "[("


class _Reader:
    """The grammar over one text: each method gives what stands at a place, or None."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tight = 0

    def formula(self, at: int) -> Found | None:
        """A whole formula; no plain number and no article."""
        if sign := re.compile(r"[<>]=(?=[ .,;:]|$)").match(self.text, at):
            return _RELATIONS[sign[0]], sign.end()
        found = self.relation(at)
        if found is None:
            return None
        part = self.text[at : found[1]]
        if not re.search(r"[A-Za-z^]| [-+/*<=>] |<=|>=|\.\.\.", part):
            return None
        if part == "a" or part == "I" or (part == "A" and _ARTICLE.match(self.text, max(0, at - 2) if at else 0)):
            return None
        return None if re.match(r"\w|-\w|\.\w", self.text[found[1] :]) else found

    def relation(self, at: int) -> Found | None:
        found = self.expression(at)
        while found:
            latex, end = found
            sign = re.compile(r" ?(= ~(?=\d)|<=|>=|=|<|>|~) ?|( in )(?=\{)").match(self.text, end)
            if not sign:
                break
            right = self.expression(sign.end())
            if right is None or (sign[1] in ("<", ">") and " " not in sign[0]):
                break
            found = f"{latex} {_RELATIONS[sign[1]] if sign[1] else chr(92) + 'in'} {right[0]}", right[1]
        return found

    def expression(self, at: int) -> Found | None:
        start, lead = at, ""
        if sign := re.compile(r"-(?=[\w(<|])|~").match(self.text, at):
            start, lead = sign.end(), "-" if sign[0] == "-" else r"\approx "
        found = self.term(start)
        while found:
            latex, end = found
            close = self.tight or re.compile(r"\d\^\d+(?:[-+]\d+(?:\^\d+)?)*$").search(self.text, at, end)
            sign = re.compile(r" [-+] |[-+](?! )" if close else r" [-+] ").match(self.text, end)
            right = self.term(sign.end()) if sign else None
            if sign is None or right is None:
                return lead + latex, end
            found = f"{latex} {sign[0].strip()} {right[0]}", right[1]
        return None

    def term(self, at: int) -> Found | None:
        found = self.factor(at)
        while found:
            latex, end = found
            step = self._next(end)
            if step is None:
                return found
            found = f"{latex} {step[0]}".replace("  ", " "), step[1]
        return None

    def _next(self, at: int) -> Found | None:
        """An operator of a term with its right side; no operator is a product."""
        for sign, latex in ((" / ", "/"), ("/", "/"), (" * ", r"\cdot"), (" mod ", r"\bmod"), (" x ", r"\times")):
            if self.text.startswith(sign, at):
                right = self.factor(at + len(sign))
                if right is None or (sign == " x " and not self.text[at - 1].isdigit()):
                    return None
                return f"{latex} {right[0]}", right[1]
        ellipsis = re.compile(r" \.\.\. ").match(self.text, at)
        if ellipsis and (right := self.factor(ellipsis.end())):
            return rf"\ldots {right[0]}", right[1]
        space = self.text.startswith(" ", at)
        right = self.factor(at + space)
        if right is None or (_NUMBER.match(self.text, at + space) and (not space or "^" not in right[0])):
            return None
        return (rf"\cdot {right[0]}", right[1]) if right[0][0].isdigit() and self.text[at - 1].isdigit() else right

    def factor(self, at: int) -> Found | None:
        found = self.atom(at)
        if found is None:
            return None
        latex, end = found
        while mark := re.compile(r"[\^_\[']").match(self.text, end):
            step = self._mark(mark[0], latex, mark.end())
            if step is None:
                break
            latex, end = step
        return latex, end

    def _mark(self, sign: str, latex: str, at: int) -> Found | None:
        """A power, a hat, an index, a prime or a range of bits behind an atom."""
        if sign == "'":
            return None if re.match(r"\w", self.text[at : at + 1]) else (f"{latex}'", at)
        if sign == "[":
            bits = self.bracketed(at - 1)
            return (latex + bits[0], bits[1]) if bits and not self.text[at].isdigit() else None
        raised = self._script(at)
        if raised:
            return f"{latex}{sign}{{{raised[0]}}}", raised[1]
        return (rf"\hat{{{latex}}}", at) if sign == "^" else None

    def _script(self, at: int) -> Found | None:
        """What stands behind ^ or _: a number, a name or a group, with a sign or without."""
        minus = "-" * self.text.startswith("-", at)
        at += len(minus)
        if self.text.startswith("(", at):
            group = self.listed(at + 1, ")")
            return group and (f"-({group[0]})" if minus else group[0], group[1])
        word = re.compile(r"\d+|([A-Z]+|[a-z])(?![a-z])(_[a-z]\b)?").match(self.text, at)
        return (minus + word[0], word.end()) if word else None

    def atom(self, at: int) -> Found | None:
        """A number, a name, or something in brackets."""
        if number := _NUMBER.match(self.text, at):
            after = self.text[number.end() :]
            bad = re.match(r"x[0-9a-f]|[-:][A-Za-z]|\.\d|[A-Za-z]{2}|%| %", after)
            whole, _, power = number[0].replace(",", "{,}").partition("e")
            latex = rf"{whole} \cdot 10^{{{int(power)}}}" if power else whole
            return None if bad and not self.tight else (latex, number.end())
        word = _WORD.match(self.text, at)
        if word and word[0] in _ROUND and self.text.startswith("(", word.end()):
            left, right = _ROUND[word[0]]
            inside = self.listed(word.end() + 1, ")")
            return inside and (f"{left} {inside[0]} {right}", inside[1])
        if word and word[0] in _PREFIXES:
            of = self.factor(word.end() + 1) if self.text.startswith(" ", word.end()) else None
            return of and (f"{_PREFIXES[word[0]]} {of[0]}", of[1])
        if word and word[0] in _NAMES:
            return _NAMES[word[0]], word.end()
        if letter := _LETTER.match(self.text, at):
            return self._letter(letter)
        return self.bracketed(at)

    def _letter(self, letter: re.Match[str]) -> Found | None:
        """A letter that is a variable: no part of P-256, i.e. or an article."""
        after = self.text[letter.end() :]
        if not self.tight and re.match(r"-\w|\.\w", after):
            return None
        if letter[0] == "a" and not self.tight and not _AFTER_A.match(self.text, letter.start()):
            return None
        name = letter[0] if len(letter[0]) == 1 else f"{letter[0][0]}_{letter[0][1]}"
        return name, letter.end()

    def bracketed(self, at: int) -> Found | None:
        """(...), [...], {...}, <...> or |...|; a number alone in brackets is a reference."""
        kinds: dict[str, tuple[str, str, str]] = {
            "(": (")", "(", ")"), "[": ("])", "[", "]"), "{": ("}", r"\lbrace ", r"\rbrace "),
            "<": (">", r"\langle ", r"\rangle "), "|": ("|", "|", "|"),
        }  # fmt: skip
        opening = self.text[at : at + 1]
        if opening not in kinds or _REFERENCE.match(self.text, at):
            return None
        closing, left, right = kinds[opening]
        for close in closing:
            if inside := self.listed(at + 1, close):
                return f"{left}{inside[0]}{close if opening == '[' else right}".rstrip(), inside[1]
        return None

    def listed(self, at: int, close: str) -> Found | None:
        """Expressions with commas between them up to a closing bracket; operators need no spaces there."""
        if close == ")" and re.compile(r"[^()]* [<>]?[<=>] [^()]*\)").match(self.text, at):
            return None  # a remark in brackets
        return self._tightly(lambda: self._listed(at, close))

    def _tightly(self, read: Callable[[], Found | None]) -> Found | None:
        self.tight += 1
        try:
            return read()
        finally:
            self.tight -= 1

    def _listed(self, at: int, close: str) -> Found | None:
        parts = []
        while found := self.relation(at) if close != ">" else self.expression(at):
            parts.append(found[0])
            at = found[1]
            if self.text.startswith(close, at):
                return ", ".join(parts), at + len(close)
            comma = re.compile(r", ?").match(self.text, at)
            if not comma:
                return None
            at = comma.end()
        return None
