# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""docs/errata.md as data: papers, items, and for each item the commands that check it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

_PAPER = re.compile(r"^## (.+)$", re.MULTILINE)
_GROUP = re.compile(r"^### (.+)$", re.MULTILINE)
_ITEM = re.compile(r"\*\*(\d+)\. ")
_SHORT = re.compile(r"`([A-Z])`\s+(?:is\s+short\s+)?for\s+`([\w/.]+)`")
_BARE = re.compile(r"`([\w/.]+)`\s+is\s+short\s+for\s+the\s+test\s+file")
_RIGHT = re.compile(r"What is right: (.+?)(?:\n\n|\Z)", re.DOTALL)
_TEST = re.compile(r"`(?:([A-Z])::|(tests/[\w/.]+)::)?(test_\w+)`")
_COMMAND = re.compile(r"`(modmill [^`]+)`")
_PROGRAM = re.compile(r"^```\n(.+?)^```", re.DOTALL | re.MULTILINE)
_OF_OTHERS = re.compile(r"Check of (\d+)(?: and (\d+))?: (.+)", re.DOTALL)
_PROGRAM_OF = re.compile(r"the program under item (\d+)")
_AS_ITEM = re.compile(r"(?:[Cc]heck[^.]*: as|as) item (\d+)|(Same check)")


@dataclass(frozen=True)
class Erratum:
    """One error: its number in the paper's list, a text in Markdown that begins with what the paper says, and the
    commands that show it; none where it follows from the text alone."""

    number: int
    group: str
    text: str
    commands: tuple[str, ...]

    @property
    def statement(self) -> str:
        """The text without a last sentence that only names the commands."""
        head, check, tail = self.text.rpartition("Check:")
        named = re.sub(r"`[^`]*`|as item \d+|[,;.\s]|Table \d|Tables \d and \d|Section [\w.]+", "", tail)
        return head.rstrip() if check and self.commands and not named else self.text


@dataclass(frozen=True)
class PaperErrata:
    """The errors of one paper. ``right``: what holds although one might doubt it."""

    title: str
    intro: str
    right: str
    items: tuple[Erratum, ...]


def parse(text: str) -> list[PaperErrata]:
    """The papers of the file. Raises ValueError when an item's number does not follow the one before it."""
    _, *parts = _PAPER.split(text)
    return [_paper(title, body) for title, body in zip(parts[::2], parts[1::2], strict=True)]


def _paper(title: str, body: str) -> PaperErrata:
    intro, *groups = _GROUP.split(body)
    short = dict(_SHORT.findall(intro))
    bare = _BARE.search(intro)
    right = _RIGHT.search(intro)
    items: list[Erratum] = []
    for group, content in zip(groups[::2], groups[1::2], strict=True):
        _, *found = _ITEM.split(content)
        for number, words in zip(found[::2], found[1::2], strict=True):
            if int(number) != len(items) + 1:
                raise ValueError(f"errata of {title!r}: item {number} follows item {len(items)}")
            others = _OF_OTHERS.search(words)
            own = words[: others.start()] if others else words
            commands = _commands(own, short, bare[1] if bare else "", items)
            items.append(Erratum(int(number), group, f"**{own}".strip(), commands))
            if others:
                for k in filter(None, others.groups()[:2]):
                    found_there = _commands(others[3], short, bare[1] if bare else "", items)
                    items[int(k) - 1] = replace(items[int(k) - 1], commands=found_there)
    items = [_with_program(item, items) for item in items]
    return PaperErrata(title, intro.strip(), " ".join(right[1].split()) if right else "", tuple(items))


def _with_program(item: Erratum, items: list[Erratum]) -> Erratum:
    """The item with the commands of the one whose program shows it."""
    other = _PROGRAM_OF.search(item.text)
    return replace(item, commands=items[int(other[1]) - 1].commands) if other else item


def _commands(words: str, short: Mapping[str, str], bare: str, before: list[Erratum]) -> tuple[str, ...]:
    found = [program.strip() for program in _PROGRAM.findall(words)]
    for letter, path, test in _TEST.findall(words):
        place = path or (short[letter] if letter else bare)
        if place:
            found.append(f"./mill test {place}::{test}")
    found += [f"./{command.replace('modmill', 'mill', 1)}" for command in _COMMAND.findall(words)]
    for number, same in _AS_ITEM.findall(words):
        found += before[-1 if same else int(number) - 1].commands
    return _joined(list(dict.fromkeys(found)))


def _joined(commands: list[str]) -> tuple[str, ...]:
    """The same with all tests in one command."""
    start = "./mill test "
    tests = list(dict.fromkeys(word for c in commands if c.startswith(start) for word in c.split()[2:]))
    others = tuple(c for c in commands if not c.startswith(start))
    return ((start + " ".join(tests), *others)) if tests else others
