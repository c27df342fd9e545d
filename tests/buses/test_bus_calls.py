# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The calls in C: compiled strictly, their jobs compared word for word with those of Python, planted faults."""

import contextlib
import ctypes
import random

import pytest
from calls_bench import (
    _MADE,
    BUS,
    CORES,
    GCC,
    NEUTRAL,
    POINT,
    POINTS,
    RANGE,
    RESULT,
    TIMEOUT,
    Calls,
    StandIn,
    compiled,
    compiles_for_rv32i,
    compiles_with_gcc,
    described,
    documented_example_compiles,
    flipped,
    linked,
    on,
    words,
)

from modmill.buses.files import descriptions, section
from modmill.contract import UnsupportedError
from modmill.cores.ecc.machine import ecc
from modmill.cores.ecc.samples import drawn, expected, sample
from modmill.engines.ecc.points import BLIND
from modmill.studies.explore_engines import draw


@on(*CORES)
def test_they_compile_without_a_warning_for_rv32i(calls):
    """Nothing but the driver and memcpy or memset is missing in the object."""
    core, _, folder = _MADE[next(name for name, made in _MADE.items() if made[0] is calls.core)]
    compiles_for_rv32i(folder, "ecc")
    assert len(core.calls.operations) == len(core.jobs)


@pytest.mark.parametrize("machine", GCC)
@on("p256", "ed25519")
def test_gcc_compiles_driver_and_calls_without_a_warning(calls, machine):
    _, _, folder = _MADE[next(name for name, made in _MADE.items() if made[0] is calls.core)]
    compiles_with_gcc(machine, folder, "ecc.c", "ecc_calls.c")


@on("x25519")
def test_the_example_of_the_docs_compiles(calls, tmp_path):
    declared = "int shared(uint8_t *secret, const uint8_t *scalar, const uint8_t *peer)"
    documented_example_compiles(calls.core, BUS, tmp_path, declared, "-Wno-array-parameter")


@on("ed25519")
def test_a_planted_error_of_the_recoding_is_caught(calls, tmp_path):
    """One more is added to a scalar before it is split into windows: another job than Python's."""
    core = calls.core
    run = sample(core.curve, "multiply", core.bits, 5)[4][0]
    for text in ("ecc.h", "ecc.c", "ecc_calls.h", "ecc_calls.c"):
        (tmp_path / text).write_text(descriptions(described(core), BUS)[text])
    source = (tmp_path / "ecc_calls.c").read_text()
    wrong = source.replace(
        "carry += (uint64_t)*sum + (*number++ & mask);", "carry += 1u + (uint64_t)*sum + (*number++ & mask);"
    )
    assert wrong != source
    (tmp_path / "ecc_calls.c").write_text(wrong)
    planted = Calls(core, linked(tmp_path), StandIn(core))
    planted.bus.run = lambda number, held, part: (0, 1)
    planted.many("multiply", [(run[0], {**run[1], BLIND: 1})])
    assert [m for m in planted.bus.messages if m[0]] != [core.job("multiply", [(run[0], {**run[1], BLIND: 1})] * 2)]


@on(*CORES)
def test_jobs_have_the_words_of_python(calls):
    """Edge scalars and random ones; a job is filled with its last run."""
    core, rnd = calls.core, random.Random(3)
    threads, front = core.layout.threads, calls.bus
    answers = {}
    front.run = lambda number, held, part: answers.get(part) or [0] * len(held.instructions.program.results)
    for operation in core.operations:
        runs = [run for run, _ in sample(core.curve, operation, core.bits, 8)]
        runs += [drawn(core.curve, operation, core.bits, rnd) for _ in range(13)]
        if operation == "multiply-two":
            n = core.curve.n
            runs += [((a, b), runs[3][1]) for a in (0, 1, n - 1) for b in (0, 1, 2, n // 2, n - 2, n - 1)]
        else:
            runs += [((k,), runs[3][1]) for k in (2, core.curve.n + 1, 1 << core.bits - 1) if k >> core.bits == 0]
        runs = [(scalars, {**numbers, BLIND: 1} if BLIND in numbers else numbers) for scalars, numbers in runs]
        front.messages.clear()
        error, _ = calls.many(operation, runs)
        assert error in (0, NEUTRAL, RESULT)
        if error == RESULT:  # of an Edwards curve the stand-in's zeros are no point
            assert core.calls.form == "edwards"
        wanted = []
        for at in range(0, len(runs), threads):
            batch = runs[at : at + threads]
            wanted.append(core.job(operation, batch + batch[-1:] * (threads - len(batch))))
        assert [m for m in front.messages if m[0]] == wanted


@on("p256", "p384", "secp256k1", "joint", "halves", "ed25519", "x25519", "x448")
def test_results(calls):
    """Multiples by the core's own instructions; the blinding factor is that of the caller."""
    core, curve, rnd = calls.core, calls.core.curve, random.Random(5)
    calls.engine.blind[:] = words(core.calls.words, 12345)[:]
    for operation in core.operations:
        runs = [drawn(curve, operation, core.bits, rnd) for _ in range(2)]
        assert calls.many(operation, runs) == (0, [expected(curve, operation, run) for run in runs])


def random_engine(seed):
    """An engine for a small random curve, of any form, with random windows, threads and lengths."""
    rnd = random.Random(seed)
    while True:
        case = draw(rnd)
        options = {name: x for name, x in case.arguments if name in ("operations", "bits", "shape", "sums", "threads")}
        with contextlib.suppress(UnsupportedError):
            if case.kind == "ecc":
                core = ecc(case.curve, "montgomery-array", **options)
                assert core.calls
                return core


@pytest.mark.parametrize("seed", range(6))
def test_engines_of_any_shape(seed, tmp_path):
    """Each job is that of Python, and each result the multiple."""
    core = random_engine(seed)
    calls, rnd = Calls(core, compiled(core, tmp_path), StandIn(core)), random.Random(seed)
    for operation in core.operations:
        runs = [run for run, _ in sample(core.curve, operation, core.bits, 6)]
        runs += [drawn(core.curve, operation, core.bits, rnd) for _ in range(6)]
        for scalars, numbers in runs:
            run = scalars, {**numbers, BLIND: 1} if BLIND in numbers else numbers
            calls.bus.messages.clear()
            error, results = calls.many(operation, [run])
            assert error in (0, NEUTRAL) and results == [expected(core.curve, operation, run)]
            jobs = [message for message in calls.bus.messages if message[0]]
            assert jobs == [core.job(operation, [run] * core.layout.threads)]


@on("p256", "x25519")
def test_refusals_before_the_engine(calls):
    core, curve = calls.core, calls.core.curve
    operation = core.operations[0]
    runs = [run for run, _ in sample(curve, operation, core.bits, 2)]
    coordinate = "u" if operation == "ladder" else "x"
    jobs = len(calls.bus.messages)
    for value, error in ((curve.p, RANGE), (runs[0][1][coordinate] ^ 1, POINT), (0, POINT)):
        if error != RANGE and operation == "ladder":
            continue
        numbers = {**runs[1][1], coordinate: value, **({"y": 0} if value == 0 else {})}
        found, results = calls.many(operation, [runs[0], (runs[1][0], numbers)])
        assert found == error and not any(map(any, results))
    if core.bits % 32:
        assert calls.many(operation, [((1 << core.bits,), runs[0][1])])[0] == RANGE
    if "multiply-two" in core.operations:
        assert calls.many("multiply-two", [((1, curve.n), runs[0][1])])[0] == RANGE
    for blind in (0, curve.p):
        calls.engine.blind[:] = words(core.calls.words, blind)[:]
        assert calls.many(operation, runs)[0] == RANGE
    assert len(calls.bus.messages) == jobs


@on("p256", "ed25519")
@pytest.mark.parametrize("operation", POINTS)
def test_a_wrong_point_is_not_released(operation, calls):
    run = sample(calls.core.curve, operation, calls.core.bits, 5)[4][0]
    for bit in (0, 100, 32 * calls.core.calls.words):
        calls.bus.fault = flipped(operation, bit)
        error, results = calls.many(operation, [run])
        assert error == RESULT and not any(map(any, results))


@on("p256")
def test_the_modulus_is_loaded_on_demand(calls):
    """Once for many jobs, and again after an error, an abort and a reset."""
    run = sample(calls.core.curve, "multiply-base", 256, 5)[4][0]
    front = calls.bus
    count = lambda: sum(m[0] == 0 for m in front.messages)  # noqa: E731
    for _ in range(2):
        assert calls.many("multiply-base", [run])[0] == 0
    assert count() == 1
    calls.library.ecc_abort(ctypes.byref(calls.engine))
    assert calls.many("multiply-base", [run])[0] == 0 and count() == 2
    work, calls.engine.patience, front.work = front.work, 10, lambda: None
    assert calls.many("multiply-base", [run]) == (TIMEOUT, [(0, 0)])
    front.work = work
    assert calls.many("multiply-base", [run])[0] == 0 and count() == 3


def test_numbers_that_are_not_binary_have_no_calls():
    core = ecc("P-256", "hbe", threads=1)
    device = described(core)
    assert core.calls is None and "ecc_calls.h" not in descriptions(device, BUS)
    assert "not binary" in section(device, BUS)
