# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The table of what is in the papers: nothing numbered is left out, commands parse, quick ones run, sections are
there."""

from dataclasses import replace
from pathlib import Path

import pytest
import typer
from command import modmill

from modmill.cli.commands import app
from modmill.studies.papers.items import ENTRIES, markdown
from modmill.studies.papers.reproduce import PAPERS, reproduce

ROOT = Path(__file__).resolve().parents[3]

# Transcribed from the papers: everything that has a number.
NUMBERED = {
    "sor": {"algorithm": "1 2", "table": "1 2 3 4 5 A1", "figure": "1 2 3 4 5 6 A1 A2 A3"},
    "hbe": {"algorithm": "1 2 3", "table": "I II III", "figure": "1 2 3 4 5 6"},
    "rsa64k": {"lemma": "1 2 3 4 5 6 7 8", "theorem": "9 10 11", "table": "1 2", "figure": "1 2 3"},
    "multistep": {"algorithm": "1 2 3", "table": "1", "figure": "1 2 3 4"},
}
STATED = {"sor": 1, "hbe": 3, "rsa64k": 0, "multistep": 1}
"""Future work that each paper states."""
ALL = [entry for entries in ENTRIES.values() for entry in entries]
QUICK = sorted({entry.command for entry in ALL if entry.quick})


def faults(entries):
    """What is numbered in a paper and not in the table once, or in the table and not in a paper."""
    for paper, kinds in NUMBERED.items():
        for kind in ("algorithm", "lemma", "theorem", "table", "figure"):
            there = [entry.name for entry in entries[paper] if entry.kind == kind]
            if sorted(there) != sorted(kinds.get(kind, "").split()):
                yield f"{paper}: {kind} {there}"
        if sum(entry.kind == "future work" for entry in entries[paper]) != STATED[paper]:
            yield f"{paper}: future work"
        if not any(entry.kind == "headline" for entry in entries[paper]):
            yield f"{paper}: no headline"


def test_everything_numbered_is_there():
    assert ENTRIES.keys() == NUMBERED.keys() == PAPERS.keys()
    assert list(faults(ENTRIES)) == []
    for paper, entries in ENTRIES.items():
        for k, entry in enumerate(entries):
            without = {**ENTRIES, paper: entries[:k] + entries[k + 1 :]}
            assert entry.kind == "headline" or list(faults(without))


def refusal(command):
    """Why a command does not parse; None if it does."""
    _, *words = command.split()
    found = typer.main.get_command(app)
    while hasattr(found, "commands"):
        if words[0] not in found.commands:
            return f"no command {words[0]}"
        found = found.commands[words.pop(0)]
    try:
        found.make_context(found.name, words)
    except Exception as error:
        return getattr(error, "message", None) or str(error) or type(error).__name__
    return None


@pytest.mark.parametrize("command", sorted({entry.command for entry in ALL}))
def test_every_command_parses(command):
    assert refusal(command) is None


def test_a_command_that_does_not_parse_is_found():
    assert refusal("modmill explane sor-1m-p") == "no command explane"
    assert refusal("modmill explain sor-1m-p") and refusal("modmill errata sor one")
    assert refusal("modmill bases -m P-256 -w 17 --colums 2")


@pytest.mark.parametrize("command", QUICK)
def test_quick_commands_run(command):
    done = modmill(*command.split()[1:])
    assert done.returncode == 0 and done.stdout, done.stderr


@pytest.fixture(scope="module")
def sections():
    return {paper: reproduce(paper, recorded=True) for paper in PAPERS}


def missing(entries, sections):
    """Entries of `reproduce` whose section is not there, or is empty."""
    for entry in entries:
        _, verb, *rest = entry.command.split()
        if verb == "reproduce":
            found = [s for s in sections[rest[0]] if entry.section and s.title.startswith(entry.section)]
            if not found or not all(s.lines or s.plots or s.chart for s in found):
                yield entry.what
        elif entry.section:
            yield f"{entry.what}: a section without reproduce"


def test_every_section_is_there(sections):
    assert list(missing(ALL, sections)) == []
    some = next(entry for entry in ALL if entry.section)
    assert list(missing([replace(some, section="Table 9")], sections)) == [some.what]


def test_every_section_is_named(sections):
    """A section that no entry names is ours, or about several; those are listed here."""
    named = {paper: [e.section for e in ENTRIES[paper] if e.section] for paper in PAPERS}
    unnamed = {s.title.split(":")[0] for p, some in sections.items() for s in some
               if not any(s.title.startswith(start) for start in named[p])}  # fmt: skip
    assert unnamed == {
        "Sections 2.2 to 4", "Section IV-C", "Our base extensions", "Our Montgomery multiplications with KBE and HBE",
        "Our circuit on radix64k-ram beside Table 2", "Table I's operators with its DSP blocks and cycles",
        "Our radix64k-mul beside Table 1", "Our radix64k-ram beside Table 2", "Products a second and LUT over s",
        "The compared multipliers on one device", "What is wrong in print", "Schedule of one product, s = 16",
    }  # fmt: skip


def test_the_page_is_that_of_the_table():
    assert (ROOT / "docs" / "papers.md").read_text(encoding="utf-8") == markdown(), "run ./mill readme"
