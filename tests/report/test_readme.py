# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The README's results are what the rows say, its advice follows from them, and its outputs are those of the
commands."""

from pathlib import Path

import pytest

from modmill.designs import design
from modmill.numbers.moduli import parse_modulus
from modmill.report.measured import core_numbers
from modmill.report.readme import pages, replayed, rewritten
from modmill.report.result_tables import all_rows, cores

ROOT = Path(__file__).resolve().parents[2]


def test_pages_are_up_to_date():
    stale = [path.name for path, text in pages(ROOT, ROOT / "results").items() if path.read_text() != text]
    assert stale == [], "run ./mill readme"


def test_a_page_without_a_place_is_refused():
    with pytest.raises(ValueError, match="no place"):
        rewritten("# nothing", "")
    with pytest.raises(ValueError, match="no place for operations"):
        rewritten("<!-- results: -->", "", "operations")


# ---------------------------------------------------------------------------------------------- advice


def advice():
    """The lines of "Which core do I need?": the modulus, then a design for each column."""
    table = (ROOT / "README.md").read_text().split("## Which core", 1)[1].split("| modulus |", 1)[1].split("\n\n")[0]
    for line in table.splitlines()[2:]:
        modulus, *names = (cell.strip() for cell in line.strip("|").split("|"))
        yield modulus, [name.strip("`").split()[0] for name in names]


@pytest.mark.parametrize("named", ["P-256", "P-384", "P-521", "SM2", "2^255-19", "secp256k1"])
def test_recommended_designs_serve_their_moduli(named):
    (names,) = (names for modulus, names in advice() if named in modulus)
    assert all(design(name).fit(parse_modulus(named).value) for name in names)


VALUES = (lambda n: -n["us"], lambda n: n["per_dsp"] or 0, lambda n: -(n["lut"] + 100 * n["dsp"]))
"""What each column maximises."""


@pytest.mark.parametrize(
    ("line", "modulus", "loaded", "without"),
    [
        ("P-256", "P-256", False, ()),
        ("secp256k1", "secp256k1", False, ()),
        ("built in", "secp256k1", False, ("pseudo-mersenne", "karatsuba", "karatsuba-two-level")),
        ("loaded", None, True, ()),
    ],
)
def test_advice_follows_from_the_rows(line, modulus, loaded, without):
    """Each recommended design is the best routed one; a design that was not routed is not compared."""
    (names,) = (names for words, names in advice() if line in words)
    found = []
    for check, synth, routes in cores(all_rows(ROOT / "results"), modulus, "ecp5-85k"):
        about = synth.about
        if (
            routes
            and about["design"] not in without
            and parse_modulus(about["modulus"]).value.bit_length() == 256
            and bool(about["parameters"].get("loadable", about["design"] == "montgomery-array" and loaded)) is loaded
        ):
            found.append((about["design"], core_numbers(check, synth, routes)))
    routed = {name for name, _ in found}
    assert routed
    for name, value in zip(names, VALUES, strict=True):
        if name in routed:
            assert max(found, key=lambda pair: value(pair[1]))[0] == name


# ---------------------------------------------------------------------------------------------- outputs


def test_outputs_are_replaced_unless_only_seconds_differ():
    page = "Text.\n\n```console\n$ ./mill one a\nin 2.5 s\n$ ./mill two\nold\nlines\n```\n\nMore."
    told = {("one", "a"): "in 12.0 s\n", ("two",): "new\n"}
    assert replayed(page, lambda words: told[tuple(words)]) == page.replace("old\nlines", "new")
