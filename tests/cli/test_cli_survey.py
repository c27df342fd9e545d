# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""`modmill survey`: every method has its counts, and a machine or the reason why there is none."""

import json

import pytest
from command import modmill, refused

from modmill.designs import DESIGNS, design
from modmill.numbers.moduli import parse_modulus
from modmill.numbers.rns.rns_costs import TABLE_II, product
from modmill.studies import rns_methods

SECP = parse_modulus("secp256k1").value


@pytest.fixture(scope="module")
def rows():
    return {row["method"]: row for row in json.loads(modmill("survey", "-m", "secp256k1", "--json").stdout)}


def test_every_method_has_a_machine_or_a_reason(rows):
    assert list(rows) == [method.name for method in rns_methods.METHODS]
    names = {d.name for d in DESIGNS}
    for row in rows.values():
        assert row["n"] >= 15 and row["products"] > row["n"] and row["source"]
        assert (row["design"] in names and row["interval"] > 0) != bool(row["why"]), row


def test_cycles_are_those_of_the_designs(rows):
    for name in ("kbe", "sq-rns", "dq-rns", "shenoy-kumaresan"):
        schedule = design(name).fit(SECP).schedule
        (row,) = (row for row in rows.values() if row["design"] == name)
        assert (row["interval"], row["latency"]) == (schedule.interval, schedule.latency)


def test_counts_are_those_of_the_papers(rows):
    """Table II with KBE, and the costs of the sources."""
    n = 16
    printed = {"Montgomery, KBE, merged constants": product(TABLE_II[0], n)}
    printed |= {"Montgomery, KBE": 2 * n * n + 7 * n, "Montgomery, KBE, plain residues": 2 * n * n + 5 * n}
    printed |= {f"Montgomery, {q}Q-RNS": 2 * n * n + 3 * n for q in "sd"}
    assert {name: rows[name]["products"] for name in printed} == printed
    assert rows["Montgomery, HBE c = 2"]["products"] == n * n + 6 * n
    assert rows["Montgomery, HBE c = 2"]["reductions"] == n * n
    assert int(rows["HPR, d = 2"]["modulus"], 16) != SECP and rows["HPR, d = 2"]["n"] == 16


def test_text_fits_and_names_the_sources():
    run = modmill("survey", "-m", "2^61-1")
    assert run.returncode == 0 and all(len(line) <= 120 for line in run.stdout.splitlines())
    for method in rns_methods.METHODS:
        assert f"{method.name}: {method.source}" in run.stdout.splitlines()


def test_a_tiny_modulus_has_every_method():
    """Products of few moduli give no prime M^4 - beta; the next number of moduli does."""
    assert [row.method for row in rns_methods.survey(13, 34)] == list(rns_methods.METHODS)


def test_refusals():
    assert "--width takes a whole number from 12 to 34, not '99'" in refused("survey", "-m", "97", "-w", "99")
    assert "has no bases for this 8000-bit modulus with w = 12" in refused("survey", "-q", "-m", "2^7999+1", "-w", "12")
