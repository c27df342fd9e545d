# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Engines for powers that blind messages inside: the program, the words of the block, all powers, planted faults."""

import json
import random
from dataclasses import replace

import pytest
from calls_bench import RANGE, Powers, compiles_for_rv32i, simulated
from command import refused
from test_blinder import Ignoring, passed
from test_check_power import Small
from test_power_calls import key

from marks import long
from modmill.contract import UnsupportedError
from modmill.cores.rsa.check import check_engine
from modmill.cores.rsa.engine import Stored
from modmill.cores.rsa.machine import EngineCore, engine
from modmill.cores.rsa.pairs import primes_for, whole
from modmill.designs import design
from modmill.engines.machine import blinder
from modmill.engines.rsa.exponentiation import PUBLIC, Exponentiation, blinded_window, checked, fixed_window
from modmill.engines.rsa.layout import serial, whole_words, words_of_digits
from modmill.engines.rsa.rsa import Rsa
from modmill.flow.tools import ToolError
from modmill.studies.attack import leakage
from modmill.studies.attack.campaign import run as campaign
from modmill.studies.attack.keys import read as subject
from modmill.studies.attack.operation import read as operation
from modmill.studies.explore_engines import draw

P = 2**64 - 59


def made(name="montgomery-array", **options):
    return engine(
        name, **{"width": 64, "threads": 1, "window": 2, "random_blind": 16, "blind_messages": True, **options}
    )


@pytest.mark.parametrize("window", [1, 2, 3, 5])
@pytest.mark.parametrize(("name", "p"), [("montgomery-array", P), ("pseudo-mersenne", 2**61 - 1)])
def test_the_program_computes_the_power(window, name, p):
    """Bit-exact, and with the largest numbers; with other second exponents and with e of another engine it is wrong."""
    fitted, rnd = design(name).fit(p), random.Random(1)
    made = checked(blinded_window(window, 17, converted=fitted.factor != 1), 17)
    bits = whole_words(made, words_of_digits(made, p.bit_length() + 5 + 8))
    power, d = Exponentiation(made, fitted.contract("native"), bits), pow(17, -1, p - 1)
    multiple, plain = 17 * d - 1, Exponentiation(fixed_window(window, fitted.factor != 1), power.contract, bits)
    assert power.products - Exponentiation(checked(plain.program, 17), power.contract, bits).products == (
        5 + 2 - 1 + 2**window - 1 + plain.program.digit_count(bits) + (fitted.factor != 1)
    )
    for x in (0, 1, p - 1, rnd.randrange(p)):
        u, r, s = rnd.randrange(1, p), rnd.getrandbits(8), rnd.getrandbits(8) | 1
        k, m = d + r * multiple, s * multiple - 1
        assert serial(made, bits).digits(k | m << bits) == made.digits(k, bits, m)
        assert power.power(x, k, fitted.multiply, (u, m)) == power.power(x, k, None, (u, m)) == pow(x, d, p)
        assert x == 0 or power.power(x, k, fitted.multiply, (u, m - 1)) == 0, "the check is right for a wrong power"
    wrong = Exponentiation(replace(blinded_window(window, 3, fitted.factor != 1)), power.contract, bits)
    assert wrong.power(5, k, fitted.multiply, (u, m)) != pow(5, d, p)


CASES = [
    {"width": 7, "random_blind": 5, "public_exponent": 5, "threads": 2},
    {"width": 17, "random_blind": 33, "word": 17, "window": 3},
    long({"width": 33, "random_blind": 128, "public_exponent": (1 << 40) + 1, "window": 5, "word": 64}),
]


@pytest.mark.parametrize("options", CASES)
def test_the_machine_gets_digits_of_both_exponents_and_a_factor(options, monkeypatch):
    """A port that is ignored gives the exponents d and e d - 2, and the factor 1."""
    core = made(**options)
    lay, block, e, p = core.layout, core.blinding, core.public_exponent, core.fitted.p
    power, rnd, bits = lay.powers[0], random.Random(1), core.exponent_bits
    jobs = [[core.drawn(rnd, p, bits) for _ in range(lay.threads)] for _ in range(6)]
    setup, public = core.setup(core.fitted), core.job(1, [(5, PUBLIC)] * lay.threads)
    messages = [setup, *(core.job(0, pairs) for pairs in jobs), public]
    count = lay.digit_words(0)
    parts = -(-core.word // 32)

    def wanted(taken):
        words, found = iter(taken), list(setup)

        def drawn(size, each=32, step=1):
            tops = [sum(next(words) << 32 * i for i in range(step)) % (1 << each) for _ in range(-(-size // each))]
            return sum(top << each * i for i, top in enumerate(tops)) % (1 << size)

        for pairs in jobs:
            found += [1, power.program.passes(power.bits), count]
            for base, d in pairs:
                k = d + drawn(block.bits) * (e * d - 1)
                m = (drawn(block.bits) | 1) * (e * d - 1) - 1
                found += lay.pack(0, power.program.digits(k, power.bits, m))
                u = drawn(p.bit_length() - 1, core.word, parts) | 1
                assert 0 < u < p
                found += [*lay.number(u), *lay.number(base)]
        return [*found, *public]

    dut = lambda: blinder.Blinder(block, lay, len(setup) - 1)  # noqa: E731
    out, taken, _ = passed(core, messages, made=dut())
    assert len(taken) == 6 * lay.threads * (2 * block.random_words + block.factor_words(lay)) and out == wanted(taken)
    monkeypatch.setattr(blinder, "RandomPort", Ignoring)
    out, taken, _ = passed(core, messages, made=dut())
    assert out == wanted([0] * len(taken)) != wanted(taken)


def test_every_base_of_a_small_engine():
    """All bases modulo all primes of 5 bits, on the RTL."""
    core, judged = made(width=5, random_blind=8, public_exponent=3, threads=4), 0
    for p in filter(core.serves, range(17, 32)):
        pairs = core.released(p, [(x, 0) for x in range(p)])
        found = core.simulate(core.at(p), 0, pairs)
        assert found.powers == [pow(*pair, p) for pair in pairs] and set(found.cycles) == {core.cycles(0)}
        judged += len(pairs)
    assert judged == 17 + 23 + 29


CHECKED = [
    ("montgomery-array", {"bus": "wishbone", "key_slots": 2, "width": 40}),
    ("montgomery-array", {"check_result": True, "public_exponent": 5, "fixed_addresses": True, "width": 32}),
    long("iddmm", {"lockstep": True, "cores": 2, "bus": "axi-stream"}),
    long("montgomery-array", {"bus": "apb", "bus_clock": "separate", "key_slots": 1, "cores": 2, "threads": 2}),
    long("montgomery-array", {"check_result": True, "public_exponent": 5, "parity": True, "fixed_addresses": True}),
    long("multistep", {"random_entropy": 9, "window": 3, "width": 33, "public_exponent": 3}),
    long("mcivor", {"bits": 80, "word": 16, "random_blind": 100, "window": 1}),
    long("pseudo-mersenne", {"width": 0, "p": 2**61 - 1, "public_exponent": 17}),
]


@pytest.mark.parametrize(("name", "options"), CHECKED)
def test_engines_pass_their_check(name, options, tmp_path):
    report = check_engine(made(name, **options).write(tmp_path / "engine", "made for a test"))
    assert not report.failures and report.judged > 40


class Wrong(EngineCore):
    """A planted fault: messages are blinded by another public exponent than exponents."""

    @property
    def blinds(self):
        return 17


def test_a_wrong_public_exponent_is_found():
    core = made(width=32)
    assert core.trial().judged == 2
    wrong = Wrong(core.design, core.fitted, core.given, **core.options)
    with pytest.raises(ToolError, match="power 0 is wrong"):
        wrong.trial()


def test_its_files_say_what_it_does(tmp_path):
    core = made(public_exponent=17, width=61)
    folder = core.write(tmp_path / "engine", "made for a test")
    record = json.loads((folder / "engine.json").read_text())
    assert record["options"]["blind_messages"] is True and record["programs"][0]["name"] == "window-2-blinded"
    assert "(x u^17)^d u^-1" in (folder / "README.md").read_text()
    assert EngineCore.read(folder).digest == record["netlist"] and whole(core.fitted.p, 17)


def test_moduli_of_the_check():
    for bits, e in ((4, 3), (5, 3), (16, 65537), (33, 17)):
        some = primes_for(bits, e)
        assert all(p.bit_length() == bits and whole(p, e) for p in some)
        assert some[0] == max(p for p in range((1 << bits) - 500, 1 << bits) if whole(p, e))
        assert some[0] not in primes_for(bits, e, some[0])
    assert not primes_for(0, 3) and not whole(7, 3) and not whole(35, 5)
    with pytest.raises(UnsupportedError, match="no prime p of 4 bits has a p - 1 coprime to 15"):
        primes_for(4, 15)


def test_rsa_with_crt():
    core, numbers = made(), key(64, random.Random(5))
    p, q, n = (numbers[name] for name in ("p", "q", "n"))
    d = pow(PUBLIC, -1, (p - 1) * (q - 1))
    rsa = Rsa(Stored(core), below=random.Random(1).randrange)
    assert rsa.private(Small(n, PUBLIC, d, p, q), [5, n - 1]) == [pow(5, d, n), pow(n - 1, d, n)]


def test_refusals(tmp_path):
    for make, words in (
        (lambda: made(random_blind=0), "--blind-messages needs --random port"),
        (lambda: made("kbe"), "has residues at its ports"),
        (lambda: made(bits=40), "exponents of 40 bits are no inverses of 65537 .* take 64 bits or more"),
        (lambda: made("pseudo-mersenne", width=0, p=2**64 - 2**16 - 977 + 2), "is none: load the modulus"),
        (lambda: made(method="ladder").layout, "the ladder does not blind messages"),
        (lambda: made().at(2**61 - 1), "moduli must have 64 bits, got 61"),
    ):
        with pytest.raises(UnsupportedError, match=words):
            make()
    assert "needs --random port" in refused("rsa", "build", "--blind-messages", "-o", str(tmp_path / "never"))
    folder = made(width=16, public_exponent=3).write(tmp_path / "engine", "made for a test")
    with pytest.raises(UnsupportedError, match="test it with --fixed message"):
        subject(folder)
    with pytest.raises(UnsupportedError, match="of 16 bits or more, not 8"):
        operation(folder, exponent_bits=8)


def test_engines_with_blinded_messages_are_drawn():
    cases = (draw(random.Random(seed), small=True) for seed in range(400))
    drawn = [dict(case.arguments) for case in cases if case.kind == "rsa"]
    assert sum(bool(arguments.get("blind_messages")) for arguments in drawn) > 5


def test_the_calls_in_c(tmp_path):
    """A private operation, a power of each program, a modulus that is too short."""
    core, rnd = made(bus="wishbone", key_slots=1, window=3), random.Random(8)
    powers, numbers = simulated(core, tmp_path, Powers), key(64, rnd)
    compiles_for_rv32i(tmp_path, "engine")
    _, made_key = powers.key(numbers)
    x = rnd.randrange(numbers["n"])
    error, found = powers.private(made_key, x, rnd.randbytes(powers.c.random_bytes))
    assert error == 0 and pow(found, PUBLIC, numbers["n"]) == x
    p = core.fitted.p
    _, modulus = powers.modulus(p)
    assert powers.powers(modulus, [(5, 0)]) == (0, [pow(5, PUBLIC, p)])
    pairs = [core.drawn(rnd, p, 64) for _ in range(2)]
    assert powers.powers(modulus, pairs, 64) == (0, [pow(*pair, p) for pair in pairs])
    assert powers.modulus(2**62 + 1)[0] == RANGE


@pytest.mark.long
def test_products_do_not_depend_on_the_message(tmp_path, monkeypatch):
    """Of a message that half of the runs have alike: between its product with u^e and the end it is not seen; without
    blinding it is."""
    monkeypatch.setattr(leakage._Kept, "load", lambda *_: (0, []))
    monkeypatch.setattr(leakage._Kept, "save", lambda *_: None)

    def leaks(blind_messages):
        folder = made(width=16, public_exponent=3, random_blind=32, blind_messages=blind_messages).write(
            tmp_path / str(blind_messages), "made for a test"
        )
        report = leakage.run(subject(folder, message=True), 400)
        cycles = {cycle for curve in report.curves if curve.order == 1 for cycle in curve.leaks}
        return [cycle for cycle in cycles if 2500 < cycle < report.cycles - 1000]

    assert leaks(blind_messages=False) and not leaks(blind_messages=True)


@pytest.mark.long
def test_faults_are_campaigned(tmp_path):
    made(width=16, public_exponent=3, lockstep=True).write(tmp_path / "engine", "made for a test")
    assert not campaign(operation(tmp_path / "engine"), 300).released
