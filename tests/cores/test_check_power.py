# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Engines for powers that check them: nothing but 0 leaves after a wrong one, in constant time; a missing check is
noticed."""

import random
import re
from dataclasses import replace

import pytest
from calls_bench import Powers, compiles_for_rv32i, simulated
from command import refused
from test_check_result import ends_with_an_alarm, unchecked
from test_engine_proof import planted
from test_power_calls import WRONG_KEY, key

from marks import long
from modmill.buses.adapters import find_bus
from modmill.buses.files import bus_texts
from modmill.buses.registers import NUMBERS
from modmill.contract import ALARM, Fault, UnsupportedError
from modmill.cores.behind_bus import bus_faults
from modmill.cores.proofs.engine_proof import machine_time
from modmill.cores.proofs.engine_theorem import parts
from modmill.cores.rsa.check import check_engine
from modmill.cores.rsa.circuit import circuit_engine
from modmill.cores.rsa.engine import Stored
from modmill.cores.rsa.machine import EngineCore, engine
from modmill.cores.rsa.pairs import drawn, released
from modmill.engines.rsa.exponentiation import PUBLIC, checked, fixed_window, ladder
from modmill.engines.rsa.keygen import probable_prime
from modmill.engines.rsa.rsa import PrivateKey, Rsa
from modmill.engines.theorem.power_programs import PowerProof
from modmill.flow.tools import ToolError
from modmill.proofs.netlist import Netlist
from modmill.studies.attack.campaign import run as campaign
from modmill.studies.attack.keys import read as subject
from modmill.studies.attack.operation import read as operation

P = 2**64 - 59
KINDS = {
    "window": ("montgomery-array", {"window": 2, "bits": 80, "threads": 2}),
    "ladder": ("mcivor", {"method": "ladder", "bits": 70, "threads": 1}),
    "plain": ("pseudo-mersenne", {"p": P, "window": 1, "bits": 64, "threads": 3}),
    "three": ("iddmm", {"window": 3, "bits": 64, "threads": 2, "public_exponent": 5, "word": 16}),
}


def made(kind="window", **options):
    design, given = KINDS[kind]
    return engine(design, **{"check_result": True, "width": 64 * ("p" not in given), **given, **options})


@pytest.fixture(scope="module")
def checking():
    return made()


def right(core, count, p=P, seed=1):
    rnd = random.Random(seed)
    return [core.drawn(rnd, p, core.exponent_bits) for _ in range(count)]


@pytest.mark.parametrize("kind", ["window", "three", long("ladder"), long("plain")])
def test_nothing_but_zeros_leaves_after_a_wrong_power(kind):
    """One bit of one exponent is wrong, in each thread once; exponents are k + r (p - 1), as blinding makes them."""
    core = made(kind)
    pairs = right(core, 3 * core.results)
    powers = [pow(*pair, P) for pair in pairs]
    assert core.trial().judged == 2 * core.results
    for thread in range(core.results):
        base, exponent = pairs[core.results + thread]
        wrong = list(pairs)
        wrong[core.results + thread] = base, exponent ^ 4
        found = core.simulate(core.fitted, 0, wrong)
        assert found.powers == [*powers[: core.results + thread], *[0] * (2 * core.results - thread)]
        assert set(found.cycles) == {core.cycles(0)}
        removed = unchecked(core).simulate(core.fitted, 0, wrong).powers
        assert removed == [pow(*pair, P) for pair in wrong], "a check that is removed is not noticed"


def test_an_input_of_another_key_or_out_of_range_is_an_alarm(checking):
    """The public program is not checked; an exponent of another e raises the alarm, and so does a base above p."""
    base = 12345
    public = checking.simulate(checking.fitted, 1, [(base, PUBLIC)] * 2, PUBLIC.bit_length())
    assert public.powers == [pow(base, PUBLIC, P)] * 2
    for pair in ((base, pow(7, -1, P - 1)), (base + P, pow(PUBLIC, -1, P - 1))):
        assert checking.simulate(checking.fitted, 0, [pair] * 2).powers == [0, 0]


@pytest.mark.parametrize("loadable", [True, pytest.param(False, id="built-in", marks=pytest.mark.long)])
def test_other_moduli(loadable):
    """Also composite ones, and ones for which e has no inverse: there the pairs are other ones."""
    for p in (2**61 - 1, 2**64 - 1, 5 * 2**13 * PUBLIC + 1, 17 * 19):
        core = engine("montgomery-array", p, settings={"loadable": loadable}, window=1, threads=1, check_result=True)
        assert core.trial().judged == 2, p


def test_pairs_that_are_tried():
    rnd = random.Random(1)
    for p, bits, e in ((P, 64, 5), (P, 12, 5), (P, 80, PUBLIC), (P, 1, PUBLIC), (2**61 - 1, 20, PUBLIC), (35, 6, 3)):
        pairs = [drawn(rnd, p, bits, e) for _ in range(40)]
        assert all(released(p, pair, e) and pair[0] < p and pair[1] >> bits == 0 for pair in pairs)
        assert len({base for base, _ in pairs}) > (2 if bits > 1 and p != 35 else 0), (p, bits)
    assert not released(P, (3, 5), PUBLIC) and released(P, (3, 5), 0)


@pytest.mark.parametrize("program", [fixed_window(1), fixed_window(3, converted=False), ladder(), ladder(False)])
@pytest.mark.parametrize("e", [3, 17, PUBLIC])
def test_a_check_needs_no_slot(program, e):
    found = checked(program, e)
    shown = [address.number for i in found.after for t in i.tasks for address in (t.destination, *t.reads)]
    assert max(shown) <= max(program.result, program.base, 3) and found.result == program.result != found.check


@pytest.mark.long
def test_the_handshake_tells_nothing_of_an_alarm(checking):
    module = Netlist.read(checking.verilog, checking.top).module
    assert machine_time(Netlist(module)).state == "PROVED"
    assert machine_time(planted(module, "message_taken", "alarm")).state == "OPEN"


@pytest.mark.parametrize("kind", KINDS)
def test_the_programs_are_proved(kind):
    core = made(kind)
    found = list(parts(core))
    assert [part.remains for part in found if part.remains] == []
    assert sum(part.name.startswith("check of ") for part in found) == 1


def test_a_wrong_check_is_not_proved(checking):
    power, program = checking.layout.powers[0], checking.layout.programs[0]

    def open_parts(program):
        return [part.name.split()[0] for part in PowerProof(power, program).parts() if part.remains]

    assert open_parts(program) == []
    assert open_parts(replace(program, checks=program.results)) == ["check"]
    assert open_parts(replace(program, matched=False)) == ["check"]
    last = max(k for k, step in enumerate(program.after) if step.tasks)
    assert open_parts(replace(program, after=program.after[:last] + program.after[last + 1 :])) == ["check"]


def test_the_record_says_what_is_on(checking):
    record = checking.record()
    assert record["options"]["check_result"] is True and ALARM in record["ports"]
    assert [program.get("checked_by") for program in record["programs"]] == [PUBLIC, None]
    assert EngineCore.of_record(record).options == checking.options
    assert "s^65537" in checking.page({**record, "command": "", "measured": "", "proved": "", "tools": {}})
    five = made("three").record()
    assert five["options"]["public_exponent"] == 5 and EngineCore.of_record(five).public_exponent == 5
    assert not {"check_result", "public_exponent"} & made(check_result=False).options.keys()


def test_refusals():
    for make, words in (
        (
            lambda: engine("hbe", 0, 512, check_result=True).layout,
            "with the base, whose residues are not unique.*check=true",
        ),
        (
            lambda: engine("kbe", 0, 512, check_result=True).layout,
            "with the base, whose residues are not unique.*check=true",
        ),
        (lambda: circuit_engine("radix64k-mul", 0, 64, check_result=True), "circuit has no check"),
        (lambda: engine("mcivor", 0, 64, public_exponent=3), "--public-exponent with --check-result"),
        (lambda: made(public_exponent=4), "must be odd, at least 3"),
    ):
        with pytest.raises(UnsupportedError, match=words):
            make()
    command = ("rsa", "build", "-m", "2^64-59", "--check-result", "--multiplier", "hbe", "-o", "never")
    assert "residues are not unique" in refused(*command)


def test_rsa_on_a_checked_engine(checking, tmp_path):
    """CRT, blinded message and exponent; another public exponent, a test of primes, a wrong exponent."""
    numbers = key(64, random.Random(5))
    p, q, n = (numbers[name] for name in ("p", "q", "n"))
    d = pow(PUBLIC, -1, (p - 1) * (q - 1))
    stored = Stored.read(checking.write(tmp_path / "engine", "x"))
    modelled = Stored(checking, modelled=True)
    for machine in (stored, modelled):
        pairs = [(x % p, d % (p - 1) + r * (p - 1)) for x, r in ((5, 0), (n - 1, 7), (n // 3, 65535))]
        assert machine.secret(p, pairs, 80) == [pow(*pair, p) for pair in pairs]
        assert machine.secret(p, [(5, d % (p - 1) ^ 1)], 80) == [0]
        with pytest.raises(UnsupportedError, match=r"built with --check-result.*an engine without them"):
            probable_prime(machine, p, 2, lambda n: n // 2)
    with pytest.raises(UnsupportedError, match="for keys with the public exponent 65537; the key has 3"):
        Rsa(stored).private(Small(n, 3, d, p, q), [5])
    rsa = Rsa(stored, blind_exponent=16, below=random.Random(1).randrange)
    assert rsa.private(Small(n, PUBLIC, d, p, q), [5, n - 1]) == [pow(5, d, n), pow(n - 1, d, n)]
    with pytest.raises(Fault):
        rsa.private(Small(n, PUBLIC, d ^ 2, p, q), [5])
    assert Stored(checking, whole=True).public(p, [7], 3) == [343]


class Small(PrivateKey):
    """A key of any length."""

    def __post_init__(self):
        pass


@pytest.mark.long
def test_several_machines_and_lockstep(checking, tmp_path):
    two = made(cores=2)
    pairs = right(two, 8)
    wrong = [(pairs[0][0], pairs[0][1] ^ 1), *pairs[1:]]
    powers = [pow(*pair, P) for pair in pairs]
    found = two.simulate(two.fitted, 0, wrong).powers
    assert found == [0, 0, *powers[2:4], 0, 0, *powers[6:]]
    pair = made(lockstep=True)
    assert pair.simulate(pair.fitted, 0, pairs).powers == powers
    with pytest.raises(ToolError, match="0 of"):
        pair.simulate(pair.fitted, 0, wrong)
    both = made(cores=2, lockstep=True)  # an alarm of the state at power-up would stay
    assert check_engine(both.write(tmp_path / "both", "x")).failures == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("bus", "options"),
    [
        ("axi4-lite", {"cores": 2}),
        ("axi-stream", {"cores": 2, "lockstep": True}),
        ("apb", {"key_slots": 2}),
        ("wishbone", {"bus_clock": "separate"}),
    ],
)
def test_behind_a_bus(bus, options):
    """The check passes, zeroise included, which leaves nothing in the memory of inputs. An alarm ends a job with an
    error."""
    core = made(bus=bus, **options)
    ends_with_an_alarm(core, bus)


def test_a_memory_that_zeroise_does_not_reach_is_seen():
    """The planted fault: words 0 are not written. Then a check of a job of zeros fails, so that zeroise does."""
    core = made(bus="apb", threads=1)
    text = bus_texts(core.device, find_bus("apb"), core.verilog)["bus.v"]
    exchanges = list(core.exchanges())
    assert list(bus_faults(text, core.device, find_bus("apb"), exchanges)) == []
    kept, count = re.subn(r"(\binputs\[\w+\] <= )(\w+);", r"if (\2 != 0) \1\2;", text)
    assert count == 1
    assert "zeroising" in str(list(bus_faults(kept, core.device, find_bus("apb"), exchanges)))


def test_the_calls_in_c(tmp_path):
    """A private operation with blinding, a key with another e, and the error ALARM for a power by another exponent."""
    core, rnd = made("ladder", bus="wishbone", bits=96), random.Random(8)
    powers, numbers = simulated(core, tmp_path, Powers), key(64, rnd)
    compiles_for_rv32i(tmp_path, "engine")
    assert powers.key(key(64, rnd, 3))[0] == WRONG_KEY
    _, made_key = powers.key(numbers)
    x = rnd.randrange(numbers["n"])
    error, found = powers.private(made_key, x, rnd.randbytes(powers.c.random_bytes))
    assert error == 0 and pow(found, PUBLIC, numbers["n"]) == x
    _, modulus = powers.modulus(P)
    assert powers.powers(modulus, [(5, 0)]) == (0, [pow(5, PUBLIC, P)])
    assert powers.powers(modulus, [(5, 7)], 9) == (NUMBERS["ALARM"], [0])


@pytest.mark.long
def test_fewer_wrong_powers_are_released(tmp_path, checking):
    """Of the same faults in the same netlist, without the comparison and with it."""
    counts = {}
    for which, core in (("on", checking), ("off", unchecked(checking))):
        attacked = operation(checking.write(tmp_path / which, "x"), exponent_bits=16)
        report = campaign(replace(attacked, engine=core), 1000, name=which)
        counts[which] = sum(outcome == "released" for _, outcome in report.outcomes)
    assert 0 < 5 * counts["on"] < counts["off"]


def test_attacks_know_the_check(checking, tmp_path):
    """Faults meet exponents of the given length and bases of their order; leakage by random exponents is refused."""
    attacked = operation(checking.write(tmp_path / "loaded", "x"), exponent_bits=16)
    assert attacked.job.p % 65521 == 1 and attacked.job.p.bit_length() == 64
    assert [set(powers) <= {0, 1} for powers in attacked.job.results] == [False, False]
    built_in = operation(made("plain").write(tmp_path / "built-in", "x"))
    assert built_in.job.p == P and len(set(built_in.job.results)) > 1
    with pytest.raises(UnsupportedError, match="releases no power by a random exponent"):
        subject(tmp_path / "loaded")
