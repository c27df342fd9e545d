# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The calls in C of an engine for powers: messages compared with those of Python, RSA with integers, planted faults."""

import random
import re
from contextlib import suppress
from dataclasses import replace

import pytest
from calls_bench import (
    GCC,
    RANGE,
    TIMEOUT,
    Powers,
    PowerStandIn,
    compiled,
    compiles_for_rv32i,
    compiles_with_gcc,
    described,
    documented_example_compiles,
    linked,
    simulated,
)  # fmt: skip

from marks import long
from modmill.buses.adapters import find_bus
from modmill.buses.files import descriptions, section
from modmill.contract import UnsupportedError
from modmill.cores.rsa.machine import engine
from modmill.engines.rsa.exponentiation import PUBLIC
from modmill.numbers.primes import is_prime
from modmill.studies.explore_engines import draw

WRONG_KEY, RESULT = RANGE + 1, RANGE + 2
ENGINES = {
    "rsa-1024": ("montgomery-array", 512, {"bits": 576}),
    "array": ("montgomery-array", 130, {"bits": 150, "window": 3, "threads": 2}),
    "one-word": ("iddmm", 32, {"bits": 97, "threads": 1}),
    "iddmm": ("iddmm", 96, {"window": 4}),
    "ladder": ("mcivor", 64, {"method": "ladder", "bits": 128}),
    "short": ("tenca-koc", 65, {"bits": 40, "window": 1}),
    "tiny": ("montgomery-array", 6, {"bits": 8, "threads": 1}),
    "montgomery": ("montgomery-array", 61, {"bits": 61, "io": "montgomery"}),
    "inside": ("montgomery-array", 61, {"random_blind": 40, "window": 3, "threads": 2}),
    "inside-ladder": ("iddmm", 64, {"random_blind": 7, "method": "ladder", "public_exponent": 3}),
}
_MADE: dict = {}


@pytest.fixture
def powers(request, tmp_path_factory):
    """The calls of an engine of `ENGINES` on a fresh stand-in."""
    name = request.param
    if name not in _MADE:
        design, width, options = ENGINES[name]
        core, folder = engine(design, width=width, **options), tmp_path_factory.mktemp(name)
        _MADE[name] = core, compiled(core, folder), folder
    core, library, _ = _MADE[name]
    return Powers(core, library, PowerStandIn(core))


def on(*names):
    return pytest.mark.parametrize("powers", names, indirect=True)


def moduli(bits, rnd):
    """Edge moduli of an engine, and random ones."""
    return [
        (1 << bits) - 1,
        (1 << bits - 1) + 1,
        3,
        5,
        *(rnd.getrandbits(k) | 1 | 1 << k - 1 for k in (bits, bits, min(bits, 20))),
    ]


def prime(bits, rnd, e):
    """A random prime of these bits, its two highest ones set, for a public exponent."""
    while True:
        p = rnd.getrandbits(bits) | 3 << bits - 2 | 1
        if (p - 1) % e and is_prime(p):
            with suppress(ValueError):
                pow(e, -1, p - 1)
                return p


def key(bits, rnd, e=PUBLIC):
    """The numbers of a key whose primes have these bits."""
    p, q = prime(bits, rnd, e), prime(bits, rnd, e)
    d_p, d_q = pow(e, -1, p - 1), pow(e, -1, q - 1)
    return {"n": p * q, "e": e, "p": p, "q": q, "d_p": d_p, "d_q": d_q, "q_inverse": pow(q, -1, p)}


@on(*ENGINES)
def test_they_compile_without_a_warning_for_rv32i(powers):
    folder = next(folder for core, _, folder in _MADE.values() if core is powers.core)
    compiles_for_rv32i(folder, "engine")


@pytest.mark.parametrize("machine", GCC)
@on("array")
def test_gcc_compiles_them_without_a_warning(powers, machine):
    folder = next(folder for core, _, folder in _MADE.values() if core is powers.core)
    compiles_with_gcc(machine, folder, "engine_calls.c")


@on("array")
def test_the_example_of_the_docs_compiles(powers, tmp_path):
    declared = "int decrypted(uint8_t *, const uint8_t *, const engine_rsa_numbers *, const uint8_t *)"
    documented_example_compiles(powers.core, find_bus("wishbone"), tmp_path, declared)


@on(*ENGINES)
def test_messages_have_the_words_of_python(powers):
    """SETUP of edge moduli, jobs with edge exponents of several lengths; a job is filled with its last power."""
    core, rnd, front = powers.core, random.Random(4), powers.bus
    bits, longest, threads = powers.c.bits, powers.c.exponent_bits, core.layout.threads
    front.moduli = moduli(bits, rnd) if bits > 20 else range(3, 1 << bits, 2)
    for p in front.moduli:
        error, modulus = powers.modulus(p)
        assert error == 0
        for length in {1, 2, min(7, longest), longest - 1, longest, None}:
            front.messages.clear()
            high = PUBLIC if length is None else (1 << length) - 1
            exponents = [high] * 5 if length is None else [0, 1, high, high >> 1, rnd.getrandbits(length)]
            runs = [(base % p, exponent) for base in (0, 1, p - 1, rnd.randrange(p)) for exponent in exponents]
            error, found = powers.powers(modulus, runs, length)
            assert (error, found) == (0, [pow(*run, p) for run in runs])
            wanted = [] if front.messages[0][0] else [core.setup(core.at(p))]
            for at in range(0, len(runs), threads):
                batch = runs[at : at + threads]
                batch += batch[-1:] * (threads - len(batch))
                wanted.append(core.job(1 if length is None else 0, batch, 17 if length is None else length))
            assert front.messages == wanted


@on("array", "one-word", "short")
def test_a_product_without_the_engine(powers):
    rnd, c = random.Random(3), powers.c
    for p in moduli(c.bits, rnd):
        _, modulus = powers.modulus(p)
        for a in (0, 1, p - 1, rnd.randrange(p)):
            for b in (0, p - 1, rnd.randrange(p)):
                assert powers.product(modulus, a, b) == (0, a * b % p)
        for a, b in ((p, 1), (1, p)):
            assert powers.product(modulus, a, b) == (RANGE, 0)
    assert not powers.bus.messages


@on("array", "one-word")
def test_refusals_before_the_engine(powers):
    bits, longest = powers.c.bits, powers.c.exponent_bits
    for p in (0, 1, 2, 1 << bits - 1, *([(1 << bits) + 1] if bits % 32 else [])):
        assert powers.modulus(p)[0] == RANGE
    powers.bus.moduli = [p := (1 << bits) - 1]
    modulus = powers.modulus(p)[1]
    for base, exponent, length in ((p, 1, 9), (1, 512, 9), (1, 1, 0), (1, 1, longest + 1)):
        error, found = powers.powers(modulus, [(1, 1), (base, exponent)], length)
        assert error == RANGE and found == [0, 0]
    assert not powers.bus.messages
    assert powers.powers(modulus, [(2, 511)], 9) == (0, [pow(2, 511, p)])


@on("rsa-1024", "array", "one-word", "ladder")
def test_rsa(powers):
    """Keys of the longest and of shorter primes, several exponents, edge messages, edge random bytes."""
    rnd, c = random.Random(5), powers.c
    for bits, e in ((c.bits, PUBLIC), (c.bits, 3), (c.bits - 5, (1 << 255) + 95 if c.bits > 400 else 17)):
        numbers = key(bits, rnd, e)
        n, p, q = (numbers[name] for name in "npq")
        powers.bus.moduli = [p, q]
        error, made = powers.key(numbers, spare=rnd.randrange(3))
        assert error == 0 and made.bits == n.bit_length()
        d = pow(e, -1, (p - 1) * (q - 1))
        for x in (0, 1, n - 1, p, q * 2, rnd.randrange(n)):
            for text in (bytes(c.random_bytes), b"\xff" * c.random_bytes, rnd.randbytes(c.random_bytes)):
                assert powers.private(made, x, text) == (0, pow(x, d, n))
            assert powers.public(made, x) == (0, pow(x, e, n))
        assert powers.private(made, n, text) == powers.public(made, n) == (RANGE, 0)
        public = powers.key({**numbers, "p": 1, "q": 1}, private=False)[1]
        assert powers.public(public, 2) == (0, pow(2, e, n))
        assert powers.private(public, 2, text) == (WRONG_KEY, 0)


@on("array")
def test_other_random_bytes_hide_bases_and_exponents(powers):
    """Of one message, no number of a job is the same twice, but for the moduli."""
    rnd, c = random.Random(6), powers.c
    numbers = key(c.bits, rnd)
    powers.bus.moduli = [numbers["p"], numbers["q"]]
    _, made = powers.key(numbers)
    seen = []
    for _ in range(4):
        powers.bus.messages.clear()
        assert powers.private(made, 5, rnd.randbytes(c.random_bytes))[0] == 0
        jobs = [message for message in powers.bus.messages if message[0]]
        assert len(jobs) == 2  # two powers modulo each prime
        part = (len(jobs[0]) - 3) // 2
        seen += [(k, tuple(job[at : at + part])) for k, job in enumerate(jobs) for at in (3, 3 + part)]
        digits = powers.core.layout.digit_words(0)
        assert (
            len({(k, text[:digits]) for k, text in seen}) == len({(k, text[digits:]) for k, text in seen}) == len(seen)
        )


@on("array")
def test_wrong_keys_and_wrong_results_release_nothing(powers):
    rnd, c = random.Random(7), powers.c
    numbers = key(c.bits, rnd)
    p, q = numbers["p"], numbers["q"]
    powers.bus.moduli = [p, q]
    for name, value, error in (
        ("q_inverse", numbers["q_inverse"] ^ 1, WRONG_KEY), ("n", numbers["n"] + 2, WRONG_KEY), ("p", p - 1, RANGE),
        ("d_p", p, RANGE), ("d_q", q, RANGE), ("q_inverse", p, RANGE), ("e", 1, RANGE), ("e", 4, RANGE),
        ("n", numbers["n"] + 1, RANGE), ("n", 1, RANGE), ("n", 1 << 2 * c.bits | 1, RANGE), ("p", p | 1 << 200, RANGE),
    ):  # fmt: skip
        found, made = powers.key({**numbers, name: value})
        assert found == error and not any(bytes(made)), name
    text = rnd.randbytes(c.random_bytes)
    for name in ("d_p", "d_q"):
        _, made = powers.key({**numbers, name: numbers[name] ^ 2})
        assert powers.private(made, 5, text) == (RESULT, 0)
    _, made = powers.key(numbers)
    for at in range(2):
        powers.bus.fault = lambda name, found, at=at: [x ^ (k == at) for k, x in enumerate(found)]
        assert powers.private(made, 5, text) == (RESULT, 0)
    powers.bus.fault = lambda name, found: [x + powers.bus.loaded for x in found]
    modulus = powers.modulus(p)[1]
    assert powers.powers(modulus, [(5, 3)], 9) == (RESULT, [0])


@on("array")
def test_an_engine_without_an_answer_and_after_a_reset(powers):
    modulus = powers.modulus(p := 2**130 - 1)[1]
    powers.bus.moduli = [p]
    assert powers.powers(modulus, [(2, 5)], 9) == (0, [32])
    powers.bus.loaded = 0  # the device was reset: SETUP comes again
    assert powers.powers(modulus, [(2, 6)], 9) == (0, [64])
    assert [message[0] for message in powers.bus.messages] == [0, 1, 0, 1]
    powers.engine.patience = 50
    powers.bus.work = lambda: None
    assert powers.powers(modulus, [(2, 6)], 9) == (TIMEOUT, [0])


@on("array")
def test_a_planted_error_of_setup_is_caught(powers, tmp_path):
    """A digit of the modulus too few: another message than Python's, so the stand-in knows no modulus."""
    for name, text in descriptions(described(powers.core), find_bus("wishbone")).items():
        (tmp_path / name).write_text(text)
    source = (tmp_path / "engine_calls.c").read_text()
    wrong = re.sub(r"for \(k = 0u; k < 8u; k\+\+\) /\* its digits", "for (k = 1u; k < 8u; k++) /* its digits", source)
    assert wrong != source
    (tmp_path / "engine_calls.c").write_text(wrong)
    planted = Powers(powers.core, linked(tmp_path, "engine"), PowerStandIn(powers.core))
    sent = []
    planted.bus.work = lambda: sent.append(planted.bus.message)
    planted.engine.patience = 5
    planted.powers(planted.modulus(2**130 - 1)[1], [(2, 5)], 9)
    assert sent and powers.core.setup(powers.core.at(2**130 - 1)) not in sent


@pytest.mark.parametrize("seed", [0, 2, *map(long, (1, 3, 4, 5))])
def test_engines_of_any_shape(seed, tmp_path):
    """Random engines with calls: SETUP and jobs are those of Python, and powers right."""
    core, rnd = random_engine(seed), random.Random(seed)
    powers = Powers(core, compiled(core, tmp_path), PowerStandIn(core))
    powers.bus.moduli = [x.p for x in core.tried()] if core.blind_messages else moduli(powers.c.bits, rnd)
    for p in powers.bus.moduli:
        _, modulus = powers.modulus(p)
        length = 1 + rnd.randrange(powers.c.exponent_bits)
        runs = [(rnd.randrange(p), rnd.getrandbits(length)) for _ in range(3)]
        assert powers.powers(modulus, runs, length) == (0, [pow(*run, p) for run in runs])
        assert powers.powers(modulus, runs) == (0, [pow(base, PUBLIC, p) for base, _ in runs])
    if powers.c.rsa and powers.c.bits >= 16:
        e = powers.c.inverts or 5
        numbers = key(powers.c.bits, rnd, e)
        powers.bus.moduli = [numbers["p"], numbers["q"]]
        error, made = powers.key(numbers)
        assert error == 0
        x = rnd.randrange(numbers["n"])
        error, found = powers.private(made, x, rnd.randbytes(powers.c.random_bytes))
        assert error == 0 and pow(found, e, numbers["n"]) == x


def random_engine(seed):
    """The first engine of a seed that has calls."""
    rnd = random.Random(seed)
    while True:
        case = draw(rnd, small=True)
        if case.kind == "rsa" and not case.circuit:
            given = {name: value for name, value in case.arguments if name != "p"}
            with suppress(UnsupportedError):
                core = replace(
                    case, arguments=tuple((given | {"width": rnd.randrange(16, 200), "word": 32}).items())
                ).make()
                if core.calls:
                    return core


def test_on_the_simulated_bus(tmp_path):
    """Powers, and a private operation with its check, on bus.v of two small machines."""
    core, rnd = engine("iddmm", width=64, bits=72, threads=1, cores=2), random.Random(8)
    powers, numbers = simulated(core, tmp_path, Powers), key(64, rnd)
    _, modulus = powers.modulus(p := 2**64 - 59)
    runs = [(0, 5), (p - 1, 2**72 - 1), (rnd.randrange(p), rnd.getrandbits(72))]
    assert powers.powers(modulus, runs, 72) == (0, [pow(*run, p) for run in runs])
    assert powers.powers(modulus, runs) == (0, [pow(base, PUBLIC, p) for base, _ in runs])
    _, made = powers.key(numbers)
    x = rnd.randrange(numbers["n"])
    error, found = powers.private(made, x, rnd.randbytes(powers.c.random_bytes))
    assert error == 0 and pow(found, PUBLIC, numbers["n"]) == x


@pytest.mark.parametrize(
    ("design", "options"),
    [
        long("kbe", {}),
        ("montgomery-array", {"word": 64}),
        ("montgomery-array", {"p": 2**61 - 1, "settings": {"loadable": False}}),
    ],
)
def test_engines_without_calls_say_so(design, options):
    """Residues, words of another size than the bus, a modulus that is built in."""
    core = engine(design, **({"width": 64} | options if "p" not in options else options))
    assert core.calls is None
    if core.word == 32:
        device = described(core)
        assert "no calls in C" in section(device, find_bus("wishbone"))
        assert "engine_calls.c" not in descriptions(device, find_bus("wishbone"))
