# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The cores of the race are those of the rows; cores that rows are about are the ones that are emitted."""

from dataclasses import replace
from pathlib import Path

import pytest

from modmill.cores.multiplier.build import build
from modmill.numbers.moduli import parse_modulus
from modmill.report.families import FAMILIES, family
from modmill.report.rows import Store
from modmill.report.traces import rows
from modmill.studies.papers.bench import Bench, is_about
from modmill.studies.race.measured_cores import contenders, modulus_name
from modmill.studies.site import scaling, site

ALL = Store(Path("/nowhere")).rows
FOUND = contenders(ALL)
SAMPLE = ("hbe", "iddmm", "kbe", "mcivor", "montgomery-array", "multistep", "orup", "pseudo-mersenne", "radix64k-ram",
          "solinas", "sor-1m-p", "sor-ring", "tenca-koc")  # fmt: skip
"""One core of each design file with rows that is emitted in a second or two (wide takes ten)."""


def of(name, modulus="secp256k1", target="ecp5-85k"):
    p = parse_modulus(modulus).value
    return [c for c in FOUND if c.label == name and c.modulus == p and c.target == target]


def digest(row):
    return build(row.about["design"], row.about["modulus"], row.about["io"], **row.about["parameters"]).digest


@pytest.mark.parametrize("name", SAMPLE)
def test_the_generator_still_emits_what_rows_are_about(name):
    """Pages find rows by what they are about; this is what makes that honest."""
    core = next(c for c in FOUND if c.design.name == name and c.target == "ecp5-85k")
    assert digest(core.synth) == core.digest, f"rows of {name} are about RTL that is emitted no longer: measure again"


def test_numbers_are_those_of_the_rows():
    (hbe,) = of("hbe")
    n = hbe.numbers
    clocks = sorted(row.values["mhz"] for row in hbe.routes)
    assert n["mhz"] == clocks[len(clocks) // 2] and len(clocks) == 3
    assert n["us"] == n["latency"] / n["mhz"] and n["rate"] == n["mhz"] * 1e6 / n["interval"]
    assert n["per_lut"] == n["rate"] / n["lut"] == n["mhz"] * 1e6 / n["interval"] / hbe.synth.values["lut"]
    assert {r.kind for r in rows(n["per_lut"])} == {"check", "synth", "route"} and len(rows(n["mhz"])) == 3
    (slow,) = of("kbe rowers=8")
    assert slow.numbers["mhz"] is slow.numbers["us"] is None and slow.numbers["lut"]


def test_the_share_of_the_limit_is_that_of_the_slots():
    """A full array at the cap reaches its limit; no core exceeds it."""
    shares = [c.numbers["share"] for c in FOUND if c.numbers["share"]]
    assert len(shares) > 20 and max(shares) <= 100
    two_level, montgomery = (of(name)[0] for name in ("karatsuba-two-level", "montgomery-array"))
    assert two_level.numbers["share"] == pytest.approx(100 * two_level.numbers["mhz"] / 175)
    assert montgomery.numbers["share"] == pytest.approx(100 * montgomery.numbers["per_dsp"] * 16 * 33 / 175e6)
    assert of("hbe")[0].numbers["share"] is None  # a multiplication of a channel may take several blocks


def test_loaded_cores_serve_every_modulus_of_their_width():
    (array,) = of("montgomery-array")
    assert {modulus_name(p) for p in array.serves} >= {"secp256k1", "P-256", "2^256 - 189"}
    assert all(p.bit_length() == 256 for p in array.serves)
    (fixed,) = of("hbe")
    assert fixed.serves == (fixed.modulus,)


def test_of_two_digests_that_of_today_counts():
    row = of("hbe")[0].synth
    old = replace(row, digest="sha256:old", values={**row.values, "lut": 1})
    for order in ([row, old], [old, row]):
        (found,) = contenders(order, digest=lambda r: row.digest)
        assert found.numbers["lut"] == row.values["lut"]


def test_a_recorded_bench_finds_what_an_emitting_one_finds():
    for design, modulus, settings in (
        ("radix64k-mul", "2^64-59", {}),
        ("channel-reduce", "2^17-145", {"dsp": "18x18"}),
    ):
        emitting, recorded = Bench(), Bench(recorded=True)
        here = emitting.core(design, modulus, "ecp5-85k", **settings)
        assert here == recorded.core(design, modulus, "ecp5-85k", **settings)
        assert emitting.checked(design, modulus, **settings) == recorded.checked(design, modulus, **settings)
        assert emitting.routed(design, modulus, "ecp5-85k") == recorded.routed(design, modulus, "ecp5-85k")
    assert Bench(recorded=True).core("radix64k-mul", "2^61-1", "ecp5-85k") is None


def test_rows_of_engines_are_no_contenders_and_break_no_page():
    """An engine's rows name a design too, and perhaps no modulus."""
    (hbe,) = of("hbe")
    about = {"design": "hbe", "io": "native", "parameters": {}, "engine": "hbe, window 5", "bits": 2048}
    engine = [replace(row, digest="sha256:engine", about=about) for row in (hbe.synth, *hbe.routes)]
    assert contenders(engine) == []
    assert site._row(engine[0])["about"].startswith("hbe, window 5")
    (line,) = site._spread(engine)
    assert line["core"] == "hbe, window 5" and line["modulus"] == "" and line["seeds"] == 3


def test_what_a_row_is_about():
    row = of("kbe rowers=8")[0].synth
    core = build("kbe", "secp256k1", "native", rowers=8)
    assert is_about(row, core)
    assert not is_about(row, build("kbe", "secp256k1", "native"))
    assert not is_about(row, build("kbe", "P-256", "native", rowers=8))
    assert not is_about(replace(row, about={"design": "kbe"}), core)
    fewer = {k: v for k, v in row.about["parameters"].items() if k not in ("loadable", "dsp")}
    assert is_about(replace(row, about={**row.about, "parameters": fewer}), core)  # named later than the row was made


def test_every_multiplier_has_a_family():
    from modmill.designs import DESIGNS

    named = [page for f in FAMILIES for page in f.pages]
    assert len(named) == len(set(named))
    without = {d.page for d in DESIGNS if family(d.page) is None}
    assert without == {"extension", "reduction", "channel"}
    assert set(named) <= {d.page for d in DESIGNS}


# ---------------------------------------------------------------------------------------------- scaling


def test_predictions_are_those_of_the_designs():
    from modmill.designs import design

    found, refused = scaling.predictions([design("montgomery-array"), design("sor-ring"), design("hbe")])
    at = {(p.design.name, p.bits): p for p in found}
    for (name, bits), p in at.items():
        if bits <= 256:
            fitted = design(name).fit(scaling.modulus(design(name), bits))
            assert (p.dsp, p.interval) == (fitted.cost.dsp, fitted.schedule.interval)
    assert {p.bits for p in found if p.design.name == "montgomery-array"} == set(scaling.WIDTHS)
    assert at["hbe", 4096].settings == {"w": 20}
    assert any("2048-bit" in text and "sor-ring" in text for text in refused)


def test_a_share_of_the_limit_is_the_clock_over_that_of_the_blocks():
    lines = scaling.shares(FOUND)
    assert {"karatsuba", "montgomery-array", "hbe"} <= {line["core"].split()[0] for line in lines}
    for line in lines:
        (core,) = (
            c for c in of(line["core"], line["modulus"].split(",")[0]) if c.numbers["per_dsp"] == line["measured"]
        )
        assert line["share"] == pytest.approx(core.numbers["mhz"] / 175)
        assert line["measured"] == pytest.approx(line["share"] * line["limit"])
        assert line["share"] <= 1
        others = [c for c in FOUND if c.target == scaling.NEAREST and c.design == core.design and c.numbers["per_dsp"]]
        same = [c.numbers["per_dsp"] for c in others if c.modulus.bit_length() == line["bits"]]
        assert line["measured"] == max(same)


def test_the_duel_takes_the_best_of_each_kind():
    lines = {(x["bits"], x["primes"], x["unit"]): x for x in scaling.duel(FOUND)}
    line = lines[256, "any", "DSP block"]
    routed = [c for c in FOUND if c.routes and c.target == scaling.NEAREST and c.modulus.bit_length() == 256]
    best = max(float(c.numbers["per_dsp"] or 0) for c in routed if c.family.residues)
    assert line["residues"] == best and line["ratio"] == line["residues"] / line["positions"]
    special = lines[256, "2^k - c", "DSP block"]
    assert special["positions"] >= line["positions"]
    words = scaling.answers(list(lines.values()))
    assert ("residues give more" in words[0]) == any(x["ratio"] > 1 for x in lines.values() if x["primes"] == "any")
    assert scaling.answers([]) == []
