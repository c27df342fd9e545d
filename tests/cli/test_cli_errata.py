# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command errata: its list, one paper, one item, JSON, and what it refuses."""

import json
from dataclasses import replace

import pytest
from command import modmill, refused

from modmill.studies.papers import errata
from modmill.studies.papers.errata import ERRATA


def test_the_list_has_every_item_with_its_verdict():
    done = modmill("errata", COLUMNS="120")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and all(len(line) <= 120 or ":" in line[:12] for line in lines)
    for paper in ERRATA.values():
        start = lines.index(f"{paper.key}: {paper.title}")
        for item, line in zip(paper.items, lines[start + 1 :], strict=False):
            assert line.startswith(f"{item.number:>4}  {item.verdict.value}")
    assert lines[-1] == "80 items, 76 computed, 0 failed; modmill errata PAPER N shows one"


def test_one_item():
    done = modmill("errata", "hbe", "1", COLUMNS="200")
    assert done.returncode == 0 and done.stdout.startswith("hbe 1\n    paper     HBE has no additional constraint")
    assert "    or as     d_m = (2^(w-t) - 1) / min a" in done.stdout
    assert "    computed  HBE with t' = 9 ... 23, sigma = 1/2, returns: X + A; paper: X\n" in done.stdout
    assert "    verdict   does not hold\n" in done.stdout


def test_one_paper_by_both_names():
    paper, slides = (modmill("errata", name).stdout for name in ("hbe", "hbe-slides"))
    assert paper == slides and paper.count("    verdict  ") == len(ERRATA["hbe"].items)


def test_json():
    found = json.loads(modmill("errata", "--json").stdout)
    assert len(found) == 80 and not any(item["faults"] for item in found)
    assert [item["number"] for item in json.loads(modmill("errata", "multistep", "--json").stdout)] == [*range(1, 15)]
    item = json.loads(modmill("errata", "sor", "2", "--json").stdout)
    assert item["figures"][1] == {"what": "secp256k1: (z - X Y mod p) / p", "printed": 0, "ours": 1, "computed": 1}


def test_an_item_that_its_computation_contradicts_has_status_1(monkeypatch):
    paper = ERRATA["multistep"]
    wrong = replace(paper.items[13], compute=lambda: [1])
    monkeypatch.setitem(errata.ERRATA, "multistep", replace(paper, items=(*paper.items[:13], wrong)))
    done = modmill("errata", "multistep", "14")
    assert done.returncode == 1
    assert "    FAILS     clocks of [15]: 1 is computed, 3 stated\n" in done.stdout
    assert "no printed value is contradicted" in " ".join(done.stdout.split())
    everything = modmill("errata")
    assert everything.returncode == 1 and "1 failed" in everything.stdout and "  14  FAILS " in everything.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("errata", "sorr"), "no paper is called 'sorr'; there are sor, hbe, rsa64k, multistep, hbe-slides"),
        (("errata", "hbe", "18"), "the errata of hbe have items 1 to 17, not 18"),
        (("errata", "hbe", "0"), "not 0"),
        (("errata", "x" * 5000), "no paper is called"),
        (("errata", "hbe", "9" * 4000), "items 1 to 17, not"),
        (("errata", "hbe", "one"), "[N] takes a whole number, not 'one'"),
    ],
)
def test_refusals_are_one_line(arguments, words):
    line = refused(*arguments)
    assert words in line and len(line) < 400
