# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Coprocessors as they are made for a curve: X25519 and a fixed base through the RTL, folders, and refusals."""

import json
import random

import pytest
from small_curves import montgomery

from marks import long
from modmill.contract import UnsupportedError
from modmill.cores.ecc.engine import RtlPointEngine, Work
from modmill.cores.ecc.machine import ecc, read
from modmill.cores.ecc.page import describe, restored
from modmill.cores.ecc.samples import expected, sample
from modmill.numbers.curves.named import find_curve


@pytest.fixture(scope="module")
def x25519():
    return ecc("Curve25519", "pseudo-mersenne")


def test_the_ladder_gives_what_the_curve_gives_in_the_predicted_time(x25519):
    """Scalars 0, 1, n - 1, n and all ones among them, u = 0, 1 and p - 1; two batches."""
    pairs = sample(x25519.curve, "ladder", 255, x25519.layout.threads + 3)
    found = x25519.simulate("ladder", [run for run, _ in pairs])
    assert found.results == [result for _, result in pairs]
    assert set(found.cycles) == {x25519.cycles("ladder")}


@pytest.mark.parametrize("threads", [1, 2])
def test_numbers_of_one_word_wait_while_the_one_before_them_is_stored(threads):
    """The last number of a job is one word: it is taken before the number before it has left."""
    core = ecc(montgomery(251), "multistep", threads=threads)
    assert core.layout.number_words == 1
    pairs = sample(core.curve, "ladder", core.bits, 2 * threads)
    found = core.simulate("ladder", [run for run, _ in pairs])
    assert found.results == [result for _, result in pairs]
    assert found.cycles == [core.cycles("ladder")] * 2


def test_the_multiplier_is_busy(x25519):
    """A product of each context in every turn, for all but what the dependences of the formulas forbid."""
    program = x25519.held[0].instructions.program
    assert x25519.timing.issue_cycles == x25519.contract.timing.interval
    busy = program.products * x25519.layout.threads * x25519.timing.issue_cycles
    assert busy > 0.9 * x25519.cycles("ladder")


def test_the_vector_of_rfc_7748(x25519):
    k = int.from_bytes(bytes.fromhex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4"), "little")
    u = int.from_bytes(bytes.fromhex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c"), "little")
    k = k & ~7 & (1 << 254) - 1 | 1 << 254
    engine = RtlPointEngine(x25519)
    (out,) = engine.ladder([k], [u % x25519.curve.p], 255, [1])
    assert out.to_bytes(32, "little").hex() == "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"
    assert engine.work == [Work("ladder", 1, (x25519.cycles("ladder"),))]
    assert str(engine.work[0]) == f"ladder, 1 run, {x25519.cycles('ladder'):,} cycles"
    assert str(Work("ladder", 3, (7, 7))) == "ladder, 3 runs in 2 batches, 14 cycles"
    with pytest.raises(UnsupportedError, match="at most 255 bits, got 300"):
        engine.ladder([k], [u], 300, [1])
    with pytest.raises(UnsupportedError, match="this core has the operations ladder, not multiply"):
        engine.multiply([1], [(0, 0)], 255, [1])
    assert engine.ladder([], [], 255, []) == []


@pytest.mark.slow
def test_weierstrass_operations_of_one_core():
    core = ecc("secp192k1", "montgomery-array", operations=("multiply", "multiply-base", "multiply-two"))
    engine, rnd = RtlPointEngine(core), random.Random(3)
    curve, n = core.curve, core.curve.n
    scalars = [0, 1, n - 1, n, *(rnd.randrange(n) for _ in range(3))]
    points = [curve.base, curve.negate(curve.base)] * 3 + [curve.base]
    assert engine.multiply(scalars, points, core.bits, [1] * 7) == [
        curve.multiply(k, P) for k, P in zip(scalars, points, strict=True)
    ]
    assert engine.multiply_base(scalars, core.bits, [5] * 7) == [curve.multiply(k, curve.base) for k in scalars]
    both = [(0, 0), (1, n - 1), (n - 1, 1), (rnd.randrange(n), rnd.randrange(n))]
    assert engine.multiply_two(both, [curve.base] * 4) == [curve.multiply((u + v) % n, curve.base) for u, v in both]
    assert all(set(work.cycles) == {core.cycles(work.operation)} for work in engine.work)


def test_a_folder_makes_the_same_core_again(tmp_path, x25519):
    folder = x25519.write(tmp_path / "core", "modmill ecc build")
    again = read(folder)
    record = json.loads((folder / "ecc.json").read_text())
    assert again.verilog == x25519.verilog
    assert again.record()["digest"] == record["digest"]
    vectors = json.loads((folder / "vectors.json").read_text())
    assert len(vectors["messages"]) == 4
    setup, job = vectors["messages"][:2]
    words = [int(word, 16) for word in setup["in"] + job["in"]]
    run = x25519._simulator.run(words, len(job["out"]), timeout=10**6)
    assert run.words == [int(word, 16) for word in job["out"]]
    (program,) = record["programs"]
    assert run.valid[0] - run.accepted[-1] == program["cycles"]
    page = (folder / "README.md").read_text()
    assert f"| 1 | ladder | {program['digit_words']} | u, blind | x |" in page
    x25519.write(folder, "modmill ecc build")
    (folder / "mine").write_text("")
    with pytest.raises(ValueError, match="which no build wrote, and is not replaced"):
        x25519.write(folder, "modmill ecc build")
    for text, why in ((None, "is missing"), ("{}", "is malformed")):
        place = tmp_path / why
        place.mkdir()
        if text:
            (place / "ecc.json").write_text(text)
        with pytest.raises(ValueError, match=why):
            read(place)


@pytest.mark.parametrize("name", ["P-256", "Curve448", "Ed25519"])
def test_curves_come_back_from_their_record(name):
    curve = find_curve(name)
    assert restored(describe(curve)) is curve
    own = describe(curve) | {"name": "mine"}
    assert restored(own).coefficients() == curve.coefficients()
    assert restored(own).base == curve.base


def test_samples_are_those_of_the_affine_arithmetic():
    curve = find_curve("P-192")
    for operation in ("multiply", "multiply-base", "multiply-two"):
        for run, result in sample(curve, operation, 192, 7):
            scalars, numbers = run
            P = (numbers["x"], numbers["y"]) if "x" in numbers else None
            total = curve.multiply(scalars[0], curve.base) if operation != "multiply" else None
            total = curve.add(total, curve.multiply(scalars[-1], P)) if P else total
            assert result == (total or (0, 0)) == expected(curve, operation, run)


def test_what_cannot_be_made_is_refused(x25519):
    for make, why in [
        (lambda: ecc("Curve25519", "pseudo-mersenne", operations=("add",)), "an operation must be one of"),
        (lambda: ecc("Curve25519", "pseudo-mersenne", io="other"), "takes --io plain or native, not other"),
        (lambda: ecc("Curve25519", "pseudo-mersenne", operations=("multiply",)).points, "no operation 'multiply'"),
        (lambda: ecc("Curve25519", "pseudo-mersenne", threads=300).layout, "do not fit 1024 addresses"),
        (lambda: x25519.job("ladder", [((1,), {"u": x25519.curve.p})] * 12), "u must be below"),
        (lambda: x25519.job("ladder", [((1 << 255,), {"u": 1})] * 12), "256 bits"),
    ]:
        with pytest.raises(UnsupportedError, match=why):
            make()


@pytest.mark.parametrize(("curve", "design", "spare"), [
    long("P-256", "karatsuba-solinas", 3), ("Curve25519", "karatsuba", 1), ("secp256k1", "karatsuba", None),
])  # fmt: skip
def test_operands_get_the_room_that_sums_need(curve, design, spare):
    core = ecc(curve, design)
    assert core.given.get("spare") == spare
    if spare:
        with pytest.raises(UnsupportedError, match=r"multiple, window 4|ladder"):
            ecc(curve, design, {"spare": spare - 1})
