# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""docs/errata.md as data: numbered without a gap, and every command names what is there."""

import re
from pathlib import Path

import pytest

from modmill.report.errata import parse
from modmill.studies.papers.reproduce import PAPERS

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "errata.md").read_text()


def missing(papers, root):
    """Tests and commands that are named and not there."""
    for paper in papers:
        for item in paper.items:
            for command in item.commands:
                tests = re.findall(r"(\S+\.py)::(\w+)", command)
                for path, name in tests:
                    if not (root / path).exists() or f"def {name}(" not in (root / path).read_text():
                        yield f"{item.number}: {path}::{name}"
                found = re.match(r"\./mill reproduce (\w+)", command)
                if found and found[1] not in PAPERS:
                    yield f"{item.number}: {command}"


def test_every_command_names_what_is_there():
    papers = parse(TEXT)
    assert [len(p.items) for p in papers] == [25, 17, 17, 14]
    assert list(missing(papers, ROOT)) == []


def test_a_test_that_is_gone_is_caught():
    text = TEXT.replace("`C::test_erratum_35_percent`", "`C::test_gone`")
    assert list(missing(parse(text), ROOT)) == ["7: tests/numbers/test_rns_costs.py::test_gone"]


def test_items_without_a_command_say_what_they_follow_from():
    words = re.compile(
        r"comparison|definition|arithmetic|data sheet|Unexplained|unexplained|is Xilinx's|One number for two", re.I
    )
    for paper in parse(TEXT):
        for item in paper.items:
            short = len(item.text) < 160
            assert item.commands or words.search(item.text) or short, item.text


def test_shared_commands_and_programs():
    sor = parse(TEXT)[0]
    items = {item.number: item for item in sor.items}
    assert items[4].commands == items[1].commands
    assert (
        items[17].commands == items[18].commands
        and "test_misprints" in items[17].commands[0]
        and not items[19].commands
    )
    assert items[10].commands == items[11].commands and items[11].commands[0].startswith("python3 - <<'END'")
    assert items[1].statement.endswith("canonical number.") and "Check" not in items[1].statement
    assert items[3].statement == items[3].text  # its last sentence says more than the tests' names
    assert parse(TEXT)[1].right.startswith("Algorithm 2 equals Algorithm 1")


def test_the_program_of_an_item_runs():
    program = parse(TEXT)[0].items[10].commands[0]
    import subprocess

    found = subprocess.run(["sh", "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "True 3 False\n"


def test_a_gap_in_the_numbers_is_refused():
    with pytest.raises(ValueError, match="item 3 follows item 1"):
        parse("## P\n\n### G\n\n**1. a** b\n\n**3. c** d\n")
