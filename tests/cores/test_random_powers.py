# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Engines for powers that blind exponents inside: every small exponent, the words of the block, planted faults."""

import json
import random
from dataclasses import replace

import pytest
from calls_bench import Powers, compiles_for_rv32i, simulated
from command import refused
from test_blinder import Ignoring, passed
from test_check_power import Small
from test_power_calls import WRONG_KEY, key

from marks import long
from modmill.contract import UnsupportedError
from modmill.cores.rsa.check import check_engine
from modmill.cores.rsa.circuit import circuit_engine
from modmill.cores.rsa.engine import Stored
from modmill.cores.rsa.machine import EngineCore, engine
from modmill.engines.machine import blinder
from modmill.engines.rsa.exponentiation import PUBLIC, fixed_window, ladder
from modmill.engines.rsa.keygen import probable_prime
from modmill.engines.rsa.layout import serial, whole_words, words_of_digits
from modmill.engines.rsa.rsa import Rsa
from modmill.flow.tools import ToolError
from modmill.studies.attack.campaign import run as campaign
from modmill.studies.attack.keys import read as subject
from modmill.studies.attack.operation import read as operation

P = 2**64 - 59
PROGRAMS = [fixed_window(w, converted) for w in (1, 2, 3, 5, 8) for converted in (True, False)] + [ladder()]


def made(design="montgomery-array", **options):
    return engine(design, **{"width": 64, "threads": 1, "window": 2, "random_blind": 16, **options})


def pairs_of(core, count, p=P, bits=0):
    rnd = random.Random(2)
    return [core.drawn(rnd, p, bits or core.exponent_bits) for _ in range(count)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_digits_are_bits_of_the_exponent(program):
    for count in (1, 2, 3):
        bits = whole_words(program, count)
        assert words_of_digits(program, bits) == count == words_of_digits(program, bits + 1) - 1
        made, rnd = serial(program, bits), random.Random(count)
        for k in (0, 1, (1 << bits) - 1, *(rnd.getrandbits(bits) for _ in range(20))):
            assert made.digits(k) == program.digits(k, bits)


@pytest.mark.parametrize("e", [3, 5, 17, PUBLIC])
def test_every_small_modulus_and_exponent(e):
    """The bits of N = e k - 1, by the rule of the block; then all bases whose power by e k is the base again."""
    for k in range(64):
        a, bits = -1, 0
        for i in range(40):
            total = a + (k >> i & 1) * e
            bits, a = bits | (total & 1) << i, total >> 1
        assert bits == (e * k - 1) % (1 << 40)
    for n in range(3, 64, 2):
        for k in range(1, 32):
            for x in (x for x in range(n) if pow(x, e * k, n) == x):
                assert all(pow(x, k + r * (e * k - 1), n) == pow(x, k, n) for r in range(4))


CASES = [
    {"width": 6, "random_blind": 5, "public_exponent": 3, "threads": 2},
    {"width": 6, "random_blind": 33, "method": "ladder", "word": 17},
    long({"width": 6, "random_blind": 128, "public_exponent": (1 << 40) + 1, "window": 5, "word": 64}),
]


@pytest.mark.parametrize("options", CASES)
def test_the_machine_gets_the_digits_of_blinded_exponents(options, monkeypatch):
    """Every exponent of 6 bits, and short ones. A port that is ignored gives those of the exponent itself."""
    core = made(**options)
    lay, block, e = core.layout, core.blinding, core.public_exponent
    power, size = lay.powers[0], block.scalar_words(core.word)
    rnd = random.Random(1)
    exponents = [*range(64), *[rnd.randrange(16) for _ in range(8)]]
    jobs = [
        (6 if at < 64 else 4, [(rnd.randrange(60), k) for k in exponents[at : at + lay.threads]])
        for at in range(0, len(exponents), lay.threads)
    ]
    setup, public = core.setup(core.fitted), core.job(1, [(5, PUBLIC)] * lay.threads)
    messages = [setup, *(core.job(0, pairs, bits) for bits, pairs in jobs), public]

    def wanted(taken):
        words, found = iter(taken), list(setup)
        for bits, pairs in jobs:
            count = words_of_digits(power.program, bits + e.bit_length() + block.bits)
            length = whole_words(power.program, count)
            passes = power.program.passes(length)
            found += [1, passes, count]
            for base, k in pairs:
                r = sum(next(words) << 32 * i for i in range(block.random_words)) % (1 << block.bits)
                digits = serial(power.program, length).digits(k + r * (e * k - 1))
                assert k == 0 or digits == power.program.digits(k + r * (e * k - 1), length)
                found += [*lay.pack(0, digits, passes), *lay.number(base)]
        return [*found, *public]

    assert core.job(0, jobs[0][1], 6)[2] == size
    dut = lambda: blinder.Blinder(block, lay, len(setup) - 1)  # noqa: E731
    out, taken, _ = passed(core, messages, made=dut())
    assert len(taken) == len(exponents) * block.random_words and out == wanted(taken)
    monkeypatch.setattr(blinder, "RandomPort", Ignoring)
    out, taken, _ = passed(core, messages, made=dut())
    assert out == wanted([0] * len(taken)) != wanted(taken)


def test_every_power_of_a_small_engine():
    """All bases and exponents of 4 bits modulo all odd numbers of 4 bits, by e = 3, on the RTL."""
    core, judged = made(width=4, random_blind=8, public_exponent=3, threads=4), 0
    for p in range(3, 16, 2):
        pairs = core.released(p, [(x, k) for x in range(p) for k in range(16)])
        found = core.simulate(core.at(p), 0, pairs)
        assert found.powers == [pow(*pair, p) for pair in pairs] and set(found.cycles) == {core.cycles(0)}
        judged += len(pairs)
    assert judged > 150


CHECKED = [
    ("montgomery-array", {"bus": "wishbone", "key_slots": 2}),
    long("iddmm", {"method": "ladder", "lockstep": True, "cores": 2, "bus": "axi-stream"}),
    long("montgomery-array", {"bus": "apb", "bus_clock": "separate", "key_slots": 1, "cores": 2, "threads": 2}),
    long("montgomery-array", {"check_result": True, "public_exponent": 5, "parity": True, "fixed_addresses": True}),
    long("kbe", {"random_entropy": 9, "window": 3, "threads": 0}),
    long("mcivor", {"bits": 20, "word": 16, "random_blind": 100, "window": 1}),
]


@pytest.mark.parametrize(("design", "options"), CHECKED)
def test_engines_pass_their_check(design, options, tmp_path):
    report = check_engine(made(design, **options).write(tmp_path / "engine", "made for a test"))
    assert not report.failures and report.judged > 40


class Wrong(EngineCore):
    """A planted fault: blinding with another public exponent."""

    @property
    def blinding(self):
        return replace(super().blinding, inverse=5)


def test_a_wrong_public_exponent_is_found():
    core = made()
    assert core.trial().judged == 2
    wrong = Wrong(core.design, core.fitted, core.given, **{**core.options, "bits": 64})
    with pytest.raises(ToolError, match="power 0 is wrong"):
        wrong.trial()


def test_its_files_say_what_it_does(tmp_path):
    core = made(random_entropy=20, public_exponent=17)
    folder = core.write(tmp_path / "engine", "made for a test")
    record = json.loads((folder / "engine.json").read_text())
    assert {"bits": 64, "random_blind": 16, "random_entropy": 20, "public_exponent": 17}.items() <= (
        record["options"].items()
    )
    assert record["programs"][0]["scalar_words"] == 2 and record["programs"][0]["exponent_bits"] == 64
    assert record["ports"]["random_data"] == {"direction": "in", "width": 32} and "o_alarm" in record["ports"]
    sheet = (folder / "README.md").read_text()
    assert "d + r (17 d - 1), r of 16 bits from 1 words of the port" in sheet and "for 21 bits more than d" in sheet
    assert EngineCore.read(folder).digest == record["netlist"]


def test_rsa_with_crt(tmp_path):
    """Plain exponents are sent; another public exponent, a test of primes and longer exponents are refused."""
    core, numbers = made(), key(64, random.Random(5))
    p, q, n = (numbers[name] for name in ("p", "q", "n"))
    d = pow(PUBLIC, -1, (p - 1) * (q - 1))
    stored = Stored(core)
    rsa = Rsa(stored, below=random.Random(1).randrange)
    assert rsa.private(Small(n, PUBLIC, d, p, q), [5, n - 1]) == [pow(5, d, n), pow(n - 1, d, n)]
    with pytest.raises(UnsupportedError, match="for keys with the public exponent 65537; the key has 3"):
        rsa.private(Small(n, 3, d, p, q), [5])
    with pytest.raises(UnsupportedError, match=r"built with .* --random port .*an engine without them"):
        probable_prime(stored, p, 2, lambda n: n // 2)
    with pytest.raises(UnsupportedError, match="at most 64 bits, got 80"):
        Rsa(stored, blind_exponent=16).private(Small(n, PUBLIC, d, p, q), [5])


def test_refusals(tmp_path):
    for make, words in (
        (lambda: circuit_engine("radix64k-mul", 0, 64, random_blind=16), "circuit has no port for random words"),
        (lambda: made(random_blind=129), "blinding of an exponent has 0 to 128 bits, not 129"),
        (lambda: made(random_entropy=33), "1 to 32 bits of entropy, not 33"),
        (lambda: made(public_exponent=4), "must be odd, at least 3"),
        (lambda: made(random_blind=0, public_exponent=3), "with --check-result or --random port"),
        (lambda: made().job(0, [(5, 1 << 64)]), r"must be in \[0, 2\^64\)"),
        (lambda: made().job(0, [(5, 1)] * 2), "1 powers at once, not 2"),
        (lambda: made().job(0, [(5, 1)], 65), "at most 64 bits, got 65"),
    ):
        with pytest.raises(UnsupportedError, match=words):
            make()
    assert "needs --blind BITS" in refused("rsa", "build", "--random", "port", "--blind", "0", "-o", "never")
    assert "is for --random port" in refused("rsa", "build", "--random-entropy", "9", "-o", "never")
    folder = made().write(tmp_path / "engine", "made for a test")
    with pytest.raises(UnsupportedError, match="blinds exponents itself"):
        subject(folder, blind_exponent=8)
    case = subject(folder, exponent_bits=16)
    keys = case.key(random.Random(1))
    assert case.draw(keys, random.Random(2)).words and keys[0] >> 16 == 0


@pytest.mark.long
@pytest.mark.parametrize("lockstep", [False, True])
def test_faults_and_traces_have_random_words(lockstep, tmp_path):
    made(lockstep=lockstep).write(tmp_path / "engine", "made for a test")
    found = campaign(operation(tmp_path / "engine"), 300)
    assert any("factor" in place.name for place in found.places)
    assert lockstep is not bool(found.released)


def test_the_calls_in_c(tmp_path):
    """A private operation, a key with another e, a power of each program."""
    core, rnd = made(bus="wishbone", key_slots=1, window=3), random.Random(8)
    powers, numbers = simulated(core, tmp_path, Powers), key(64, rnd)
    compiles_for_rv32i(tmp_path, "engine")
    assert powers.key(key(64, rnd, 3))[0] == WRONG_KEY
    _, made_key = powers.key(numbers)
    x = rnd.randrange(numbers["n"])
    error, found = powers.private(made_key, x, rnd.randbytes(powers.c.random_bytes))
    assert error == 0 and pow(found, PUBLIC, numbers["n"]) == x
    _, modulus = powers.modulus(P)
    assert powers.powers(modulus, [(5, 0)]) == (0, [pow(5, PUBLIC, P)])
    pairs = pairs_of(core, 2)
    assert powers.powers(modulus, pairs, 64) == (0, [pow(*pair, P) for pair in pairs])
