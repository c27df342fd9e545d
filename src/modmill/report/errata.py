# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Errors in papers as items: what the paper says, how it can be read, what a computation gives, and the verdict.

An item states its numbers, and its computation returns them: `faults` compares the two with each other and with the
verdict. The items themselves are in studies.papers.errata; docs/errata.md, the site's page and ``modmill errata`` are
written from them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from fractions import Fraction
from textwrap import wrap
from typing import Any

from modmill.numbers.shown import shortened
from modmill.report.formulas import marked

Value = str | int


class Verdict(Enum):
    """What the computation must show of the printed values."""

    WRONG = "does not hold"
    """One printed value or more is contradicted."""
    MISPRINT = "misprint"
    """As WRONG; what is meant is clear."""
    PARTLY = "holds in part"
    """Some printed values come out, and some are contradicted: another reading, other parameters, or approximately."""
    UNEXPLAINED = "unexplained"
    """As WRONG; what is meant is not known."""
    UNSTATED = "not stated"
    """The paper states nothing that could be contradicted."""


@dataclass(frozen=True)
class Figure:
    """One number of an item: ``ours`` is what the item states, ``printed`` what the paper says, None if nothing."""

    what: str
    printed: Value | None
    ours: Value


@dataclass(frozen=True)
class Item:
    """One error. ``says``: the paper's statement, quoted or in our words. ``reading``: how we read it; ``other``:
    another possible reading, empty if there is none. ``means``: what is correct, and what follows.

    ``compute`` returns the values of ``figures`` in their order, by exact arithmetic. It is None where the error
    follows from the text alone; ``means`` then says from what. ``tests``: tests that show more.
    """

    number: int
    where: str
    says: str
    reading: str
    verdict: Verdict
    means: str
    other: str = ""
    figures: tuple[Figure, ...] = ()
    compute: Callable[[], Sequence[Value]] | None = None
    tests: tuple[str, ...] = ()

    def run(self) -> tuple[Value, ...]:
        """The computed values; none without a computation."""
        return tuple(self.compute()) if self.compute else ()

    def describe(self, paper: str, found: Sequence[Value]) -> dict[str, Any]:
        """Plain data, with the computed values and the faults."""
        figures = [{**asdict(f), "computed": value} for f, value in zip(self.figures, found, strict=True)]
        return {
            "paper": paper, "number": self.number, "where": self.where, "says": self.says, "reading": self.reading,
            "other_reading": self.other, "verdict": self.verdict.value, "means": self.means, "figures": figures,
            "tests": list(self.tests), "faults": faults(self, found),
        }  # fmt: skip


@dataclass(frozen=True)
class PaperErrata:
    """The errors of one paper. ``notation``: letters used in the items; ``right``: what holds although one might doubt
    it."""

    key: str
    title: str
    notation: str
    right: str
    items: tuple[Item, ...]

    def item(self, number: int) -> Item:
        """The item of this number. Raises ValueError if there is none."""
        for item in self.items:
            if item.number == number:
                return item
        raise ValueError(f"the errata of {self.key} have items 1 to {len(self.items)}, not {shortened(number)}")


def faults(item: Item, found: Sequence[Value]) -> list[str]:
    """One line for each computed value that differs from the item's, and one if the verdict does not follow."""
    if len(found) != len(item.figures):
        return [f"{len(found)} values are computed, {len(item.figures)} stated"]
    out = [
        f"{f.what}: {value} is computed, {f.ours} stated"
        for f, value in zip(item.figures, found, strict=True)
        if value != f.ours
    ]
    agree = {f.printed == value for f, value in zip(item.figures, found, strict=True) if f.printed is not None}
    if item.compute and not (needed := _NEEDED[item.verdict]) <= agree:
        out.append(f"the verdict is {item.verdict.value!r}, but no printed value is {_missing(needed - agree)}")
    if item.verdict is Verdict.UNSTATED and agree:
        out.append("the verdict is 'not stated', but the item has printed values")
    return out


_NEEDED: dict[Verdict, set[bool]] = {v: {False} for v in Verdict}
_NEEDED |= {Verdict.PARTLY: {True, False}, Verdict.UNSTATED: set()}
"""Whether a verdict needs printed values that come out (True) and ones that do not (False)."""


def _missing(kinds: Iterable[bool]) -> str:
    return " and none ".join("confirmed" if kind else "contradicted" for kind in sorted(kinds))


def decimal(value: Fraction | int, digits: int) -> str:
    """An exact value rounded to ``digits`` >= 1 places."""
    scaled = round(Fraction(value) * 10**digits)
    whole, rest = divmod(abs(scaled), 10**digits)
    return f"{'-' * (scaled < 0)}{whole}.{rest:0{digits}d}"


def lines(item: Item, found: Sequence[Value], width: int = 100) -> Iterator[str]:
    """The item for the terminal: statement, readings, computed numbers, verdict, and faults if there are any."""
    for label, text in (
        ("paper", f"{item.says} ({item.where})"), ("read as", item.reading), ("or as", item.other),
        *(("computed", f"{f.what}: {value}{_printed(f, '; paper: ', '')}")
          for f, value in zip(item.figures, found, strict=True)),
        ("verdict", item.verdict.value), ("so", item.means), *(("see also", test) for test in item.tests),
        *(("FAILS", text) for text in faults(item, found)),
    ):  # fmt: skip
        if text:
            start = f"    {label:<10}"
            yield from wrap(text, max(width, 40), initial_indent=start, subsequent_indent=" " * len(start),
                            break_long_words=False, break_on_hyphens=False)  # fmt: skip


def _printed(f: Figure, before: str, after: str) -> str:
    return "" if f.printed is None else f"{before}{f.printed}{after}"


def overview(item: Item, found: Sequence[Value], width: int = 100) -> str:
    """One line: number, verdict (or that the computation fails), place, and the beginning of what the paper says."""
    verdict = "FAILS" if faults(item, found) else item.verdict.value
    text = f"{item.number:>4}  {verdict:<14} {item.where}: {item.says}"
    return text if len(text) <= width else f"{text[: width - 3].rstrip()}..."


HEAD = """# Errors found in the papers

Each item has the paper's statement, how we read it (and how else it can be read), the numbers that our computation
gives, the verdict, and what follows. `./mill errata` computes them all and lists the items, `./mill errata PAPER N`
shows one. All arithmetic is exact; random operands come from generators with fixed seeds. This page is written by
`./mill readme` from the items in `src/modmill/studies/papers/errata/`, and a test computes every number again.
"""


def markdown(papers: Iterable[PaperErrata]) -> str:
    """docs/errata.md."""
    parts = [HEAD]
    for paper in papers:
        parts.append(f"## {paper.title}\n")
        parts += ["\n".join(_wrapped(marked(text))) + "\n" for text in (paper.notation, paper.right) if text]
        parts += [_section(paper.key, item) for item in paper.items]
    return "\n".join(parts)


def commands(key: str, item: Item) -> tuple[str, ...]:
    """Commands, run in a checkout, that show the item."""
    tests = " ".join(item.tests)
    return (f"./mill errata {key} {item.number}",) * bool(item.compute) + ((f"./mill test {tests}",) if tests else ())


def _section(key: str, item: Item) -> str:
    other = f" Other reading: {marked(item.other)}" if item.other else ""
    title = f"**{item.number}.** **{marked(item.says)}** ({marked(item.where)}): *{item.verdict.value}*."
    out = [*_wrapped(title), "", *_wrapped(f"Read as: {marked(item.reading)}{other}"), ""]
    for f in item.figures:
        out += _wrapped(f"- {marked(f'{f.what}: {f.ours}')}{marked(_printed(f, ' (paper: ', ')'))}", "  ")
    out += [""] * bool(item.figures) + [*_wrapped(marked(item.means)), ""]
    return "\n".join(out + [f"Check: `{command}`\n" for command in commands(key, item)])


def _wrapped(text: str, indent: str = "") -> list[str]:
    """Lines of at most 120 characters; code between backquotes and formulas between dollars are not divided."""
    whole = re.sub(r"`[^`]*`|\$[^$]*\$", lambda part: part[0].replace(" ", "\0"), text)
    rows = wrap(whole, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [row.replace("\0", " ") for row in rows]
