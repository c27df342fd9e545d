# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Engines from rows: their numbers, which rows count, and the commands that measure them.

engines.jsonl beside the tests of the site holds rows as the races of engines write them, without lists of cells.
"""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from modmill.cli.commands import app
from modmill.report.engine_rows import Work, is_engine, measured_engines, work_of
from modmill.report.engines import EngineRaceResult
from modmill.report.rows import Store, read
from modmill.report.traces import rows as instructions_of
from modmill.studies.race.machines import EngineRace

SAMPLE = list(read(Path(__file__).resolve().parents[1] / "site" / "engines.jsonl"))
FOUND = measured_engines(SAMPLE)
X25519 = Work("ecc", "Curve25519", "ladder", 255)


def of(work, cores=1):
    (found,) = [e for e in FOUND if e.work == work and e.about["cores"] == cores]
    return found


def test_every_engine_of_the_rows_is_there_once():
    assert {e.digest for e in FOUND} == {row.digest for row in SAMPLE if row.kind == "synth"}
    assert len(FOUND) == len({(e.digest, e.target) for e in FOUND}) > 6
    assert {e.kind for e in FOUND} == {"rsa", "ecc"}


def test_numbers_follow_from_the_rows():
    e = of(X25519)
    check, synth, (route,) = e.check.values, e.synth.values, e.routes
    n, mhz = e.numbers, route.values["mhz"]
    assert n["ms"] == pytest.approx(check["latency"] / mhz / 1e3, rel=1e-12)
    assert n["rate"] == pytest.approx(mhz * 1e6 / check["period"] * 12, rel=1e-12) and n["crt"] is None
    assert n["cycles"] == check["period"] / 12
    assert n["per_dsp"] == n["rate"] / synth["dsp"] and n["per_lut"] == n["rate"] / synth["lut"]
    assert {row.kind for row in instructions_of(n["per_dsp"])} == {"check", "synth", "route"}
    assert len(instructions_of(n["cycles"])) == 1
    result = EngineRaceResult("x", 12, 1, check=e.check, synth=e.synth, routes=list(e.routes))
    assert float(n["rate"]) == pytest.approx(result.numbers["rate"]) and n["ms"] == result.numbers["ms"]
    many = of(X25519, cores=8)
    assert many.numbers["cycles"] == many.check.values["period"] / 96 and "8 × 12 interleaved" in many.label
    (rsa,) = [e for e in FOUND if e.kind == "rsa"]
    assert rsa.numbers["crt"] == rsa.numbers["rate"] / 2


def test_the_exponent_65537_is_a_task_of_its_own():
    (rsa,) = [e for e in FOUND if e.kind == "rsa"]
    more = {"e65537": 4000, "e65537_period": 5000}
    rows = [replace(row, values={**row.values, **more}) if row.kind == "check" else row for row in SAMPLE]
    private, public = (e for e in measured_engines(rows) if e.digest == rsa.digest)
    assert private.work == rsa.work and private.numbers == rsa.numbers
    assert public.work == replace(rsa.work, operation="public", bits=17) and "65537" in public.work.title
    n, mhz = public.numbers, public.routes[0].values["mhz"]
    assert n["ms"] == pytest.approx(4000 / mhz / 1e3) and n["crt"] is None
    assert n["rate"] == pytest.approx(mhz * 1e6 / 5000 * rsa.about["threads"] * rsa.about["cores"])
    assert public.command == private.command
    at = public.build.index("--bits")
    assert public.build[at : at + 3] == ["--bits", rsa.work.subject, "--no-crt"]


def test_a_setting_without_a_default_of_the_modulus_is_told():
    """`kbe` chooses no value of ``check``, so the design's own default counts."""
    rows = [row for row in Store(Path("/nowhere")).rows if row.about.get("parameters", {}).get("check")]
    found = [e for e in measured_engines(rows) if e.work.subject == "P-256"]
    assert len(found) == 2 and all("check" in e.label and "--set check=True" in e.command for e in found)


def test_what_was_not_measured_is_not_there():
    rows = [row for row in SAMPLE if row.kind == "synth"]
    for e in measured_engines(rows):
        n = e.numbers
        assert all(n[name] is None for name in ("latency", "period", "mhz", "ms", "rate", "per_dsp", "crt", "cycles"))
        assert n["lut"] == e.synth.values["lut"] and "--route" not in e.command


def test_an_engine_without_dsp_blocks_has_no_rate_for_them():
    rows = [replace(row, values={**row.values, "dsp": 0}) if row.kind == "synth" else row for row in SAMPLE]
    n = next(e for e in measured_engines(rows) if e.routes).numbers
    assert n["per_dsp"] is None and n["per_lut"] and n["dsp"] == 0


def test_what_does_not_fit_is_known():
    assert {e.design.name for e in FOUND if not e.fits} == {"sor-2m"}


def test_of_two_digests_that_of_today_counts():
    row = of(X25519).synth
    fewer = {k: v for k, v in row.about["parameters"].items() if k != "streams"}  # a setting that came later
    old = replace(row, digest="sha256:old", about={**row.about, "parameters": fewer, "date": "2000"})
    for order in ([row, old], [old, row]):
        (found,) = measured_engines(order, digest=lambda r: row.digest)
        assert found.digest == row.digest
        (found,) = measured_engines(order)
        assert found.digest == order[-1].digest


def test_rows_of_other_things_are_no_engines():
    assert not any(is_engine(row) for row in Store(Path("/nowhere")).rows if "engine" not in row.about)
    row = of(X25519).synth
    for lacking in ("curve", "shape", "threads", "engine"):
        assert not is_engine(replace(row, about={k: v for k, v in row.about.items() if k != lacking}))
    assert not is_engine(replace(row, about={**row.about, "design": "gone"}))


def test_works_are_told_in_words():
    assert X25519.title == "Curve25519, ladder, scalars of 255 bits"
    assert Work("rsa", "1024", "power", 1024).title == "1,024 bits, exponents of 1,024 bits"
    assert work_of({"modulus_bits": 2048, "bits": 2112}) == Work("rsa", "2048", "power", 2112)


# ---------------------------------------------------------------------------------------------- commands


def raced(command, monkeypatch):
    """What the command would measure, without measuring: (about, whether it routes)."""
    seen = []

    def measure(self, name, engine, about):
        seen.append((dict(about) | {"engine": name}, self.with_route))
        return EngineRaceResult(name, 1, 1, check=SAMPLE[0])

    monkeypatch.setattr(EngineRace, "measure", measure)
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    assert done.exit_code == 0, done.output
    (found,) = seen
    return found


def comparable(about):
    return json.loads(json.dumps({k: v for k, v in about.items() if k != "date"}))


@pytest.mark.parametrize("e", FOUND, ids=lambda e: f"{e.work.subject}-{e.design.name}-{e.about['cores']}")
def test_the_command_measures_the_engine_of_the_rows(e, monkeypatch):
    about, routes = raced(e.command, monkeypatch)
    today, then = comparable(about), comparable(e.about)
    for part in ("parameters", *(["shape"] if "shape" in then else [])):  # without settings that came later
        today[part] = {k: v for k, v in today[part].items() if k in then[part]}
    assert today == then and routes == bool(e.routes)


def test_a_curve_for_pairings_is_asked_for():
    found = [e for e in measured_engines(Store(Path("/nowhere")).rows) if e.work.subject == "BLS12-381-G1"]
    assert found and all("--allow-pairing" in words for e in found for words in (e.command.split(), e.build))
    assert not any("--allow-pairing" in e.command for e in FOUND)


def changed(e, **about):
    return replace(e, synth=replace(e.synth, about={**e.about, **about}))


def test_choices_are_in_the_command():
    """The planted faults: a choice that the command forgets would measure another engine."""
    e = of(X25519)
    for key, value, words in (
        ("word", 64, "--word 64"), ("sums", 2, "--sums 2"), ("cores", 4, "--cores 4"), ("io", "plain", "--io plain"),
        ("check_result", True, "--check-result"),
        ("shape", {**e.about["shape"], "window": 5, "joint": True}, "--window 5 --joint"),
    ):  # fmt: skip
        assert words not in e.command
        assert words in changed(e, **{key: value}).command, key
    (rsa,) = [e for e in FOUND if e.kind == "rsa"]
    checked = changed(rsa, check_result=True, public_exponent=3).command
    assert "--parity" in changed(rsa, parity=True).command and "--parity" not in rsa.command
    assert "--check-result" in checked and "--public-exponent 3" in checked and "--check-result" not in rsa.command
    blinded = changed(rsa, bits=1088, method="ladder").command
    assert "--bits 1024 --no-crt --blind 64" in blinded and "--method ladder" in blinded
    half = changed(rsa, modulus_bits=512, bits=512).command
    assert "--bits 1024 --multiplier" in half and "--no-crt" not in half
    other = changed(rsa, parameters={**rsa.about["parameters"], "streams": 1})
    assert "--set streams=1" in other.command and "streams=1" in other.label
