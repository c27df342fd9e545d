# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Errata: every item is computed again, a contradiction is found, and the page is that of the items."""

import re
from dataclasses import replace
from pathlib import Path
from time import process_time

import pytest

from modmill.numbers.redundant_digits import theorem_9, theorem_10
from modmill.report.errata import Figure, Verdict, faults, markdown
from modmill.studies.papers.errata import ERRATA, errata_of, rsa64k_results
from modmill.studies.papers.reproduce import PAPERS

ROOT = Path(__file__).resolve().parents[3]
ITEMS = {f"{key} {item.number}": item for key, paper in ERRATA.items() for item in paper.items}
COMPUTED = {name: item for name, item in ITEMS.items() if item.compute}


@pytest.mark.parametrize("name", COMPUTED)
def test_an_item_says_what_its_computation_gives(name):
    assert faults(COMPUTED[name], COMPUTED[name].run()) == []


@pytest.mark.parametrize("name", COMPUTED)
def test_a_wrong_number_or_verdict_of_any_item_is_found(name):
    """Planted: each stated number one after another, a value too few, and a paper that is right after all."""
    item = COMPUTED[name]
    found = item.run()
    for k, figure in enumerate(item.figures):
        figures = [*item.figures]
        figures[k] = replace(figure, ours=figure.ours + 1 if isinstance(figure.ours, int) else f"{figure.ours}1")
        (fault,) = faults(replace(item, figures=tuple(figures)), found)
        assert fault.startswith(f"{figure.what}: {found[k]} is computed")
    assert faults(item, found[:-1]) == [f"{len(found) - 1} values are computed, {len(found)} stated"]
    right = tuple(replace(f, printed=f.ours) for f in item.figures)
    wrong = tuple(replace(f, printed="else") for f in item.figures)
    if item.verdict is Verdict.UNSTATED:
        assert any("has printed values" in fault for fault in faults(replace(item, figures=right), found))
    else:
        assert any("contradicted" in fault for fault in faults(replace(item, figures=right), found))
    if item.verdict is Verdict.PARTLY:
        assert any("none confirmed" in fault or "is confirmed" in fault
                   for fault in faults(replace(item, figures=wrong), found))  # fmt: skip


def test_a_verdict_that_does_not_follow_is_found():
    item = ITEMS["hbe 5"]
    assert item.verdict is Verdict.PARTLY
    only_right = replace(item, figures=item.figures[:1])
    found = item.run()[:1]
    for verdict in Verdict:
        said = faults(replace(only_right, verdict=verdict), found)
        assert len(said) == 1 and "the verdict is" in said[0], verdict
    assert faults(replace(only_right, verdict=Verdict.WRONG, figures=(Figure("delta", "0", "0, 1, 2"),)), found) == []


def test_all_items_take_little_time():
    start = process_time()
    for item in COMPUTED.values():
        item.run()
    assert process_time() - start < 30


def test_items_are_numbered_without_a_gap_and_are_whole():
    assert ERRATA.keys() == PAPERS.keys()
    assert [len(paper.items) for paper in ERRATA.values()] == [30, 17, 19, 14]
    for paper in ERRATA.values():
        assert [item.number for item in paper.items] == [*range(1, len(paper.items) + 1)]
    for name, item in ITEMS.items():
        assert all((item.where, item.says, item.reading, item.means)), name
        assert bool(item.figures) == bool(item.compute), name
        what = [f.what for f in item.figures]
        assert len(set(what)) == len(what), name
    text_alone = {name for name in ITEMS if name not in COMPUTED}
    assert text_alone == {"multistep 9", "multistep 10", "multistep 12", "multistep 13"}


def missing_tests(items):
    for name, item in items.items():
        for test in item.tests:
            path, _, function = test.partition("::")
            if not (ROOT / path).is_file() or (function and f"def {function}(" not in (ROOT / path).read_text()):
                yield f"{name}: {test}"


def test_every_test_that_an_item_names_is_there():
    assert list(missing_tests(ITEMS)) == []
    gone = replace(ITEMS["hbe 1"], tests=("tests/numbers/test_cox.py::test_gone", "tests/gone.py"))
    assert len(list(missing_tests({"hbe 1": gone}))) == 2


def test_the_page_is_that_of_the_items():
    text = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    assert text == markdown(ERRATA.values()), "run ./mill readme"
    assert max(len(line) for line in text.splitlines() if not line.startswith(("Check: ", "## "))) <= 120
    for name in ITEMS:
        assert (f"`./mill errata {name}`" in text) == (name in COMPUTED)


def test_items_that_pages_name_are_there():
    """The pages of the designs name items of the sum-of-residues paper by their numbers."""
    named = set()
    for page in (ROOT / "docs" / "designs").glob("sor*.md"):
        for numbers in re.findall(r"\(\[errata\]\(\.\./errata\.md\), items? ([\d, ]+)\)", page.read_text()):
            named |= {int(number) for number in numbers.split(",")}
    assert named >= {1, 2, 25} and all(f"sor {number}" in ITEMS for number in named)


def test_the_slides_belong_to_their_paper():
    assert errata_of("hbe-slides") is ERRATA["hbe"]


@pytest.mark.long
@pytest.mark.parametrize(("iterate", "share"), [(theorem_9, 43), (theorem_10, 43)])
def test_many_chains_with_the_printed_rule(iterate, share):
    """Of 20,000 chains at r = 4, d = 3 about 43 fail (2 in 1,000); none fails for M <= 2^(d r) / 4."""
    assert abs(rsa64k_results.chains_that_fail(iterate, 20_000, 4095, seed=1) - share) < 25
    assert rsa64k_results.chains_that_fail(iterate, 20_000, 1024, seed=1) == 0
