# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The paper's circuit for powers: results against Python's pow, its counts, its time, planted faults, refusals."""

import random
import shutil
from functools import cache

import pytest
from forged import forged
from test_radix64k import NAMES

from modmill.contract import UnsupportedError
from modmill.cores.engine_files import verilog_of
from modmill.cores.rsa.check import check_engine
from modmill.cores.rsa.circuit import CircuitCore, circuit_engine, read_any
from modmill.cores.rsa.machine import EngineCore, engine
from modmill.designs import design
from modmill.designs.radix64k.circuit import PowerCircuit, products
from modmill.numbers.redundant_digits import exponentiation_cycles, multiplications

PUBLIC = 65537


@cache
def loaded(name, redundant=True, r=0):
    settings = {"redundant": redundant, **({"r": r} if r else {})}
    return circuit_engine(name, width=64, settings=settings, bits=64)


def judged(core, fitted, program, pairs, bits=64):
    found = core.simulate(fitted, program, pairs, bits)
    assert found.powers == [pow(*pair, fitted.p) for pair in pairs]
    wanted = [core.cycles(program, bits, exponent) for _, exponent in pairs]
    assert found.cycles[1:] == wanted[1:] and wanted[0] <= found.cycles[0] <= wanted[0] + core.contract.load.cycles


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("redundant", [True, False])
@pytest.mark.parametrize("p", [2**64 - 1, 2**64 - 59, 2**63 + 1, 3, 9, 3**40, 0xFFFF0001_00000001, 2**48 - 1])
def test_powers(name, redundant, p):
    """Every kind of modulus of one machine, also with squares as factors: some powers are multiples of them."""
    core = loaded(name, redundant)
    rnd, root = random.Random(p), 3 ** (20 if p == 3**40 else 1)
    bases = [0, 1, p - 1, root % p, 2, *(rnd.randrange(p) for _ in range(3))]
    exponents = [0, 1, 2, 3, 2**64 - 1, 2**63, rnd.getrandbits(64), rnd.getrandbits(8)]
    pairs = [*zip(bases, rnd.sample(exponents, 8), strict=True), (root % p, 2), (p - 1, 2**64 - 1)]
    for program in (0, 1):
        judged(core, core.at(p), program, pairs)


@pytest.mark.parametrize("bits", [1, 2, 5, 17, 31, 32, 33, 63])
def test_short_exponents(bits):
    core = loaded("radix64k-ram")
    exponents = {0, 1, (1 << bits) - 1, 1 << (bits - 1), random.Random(bits).getrandbits(bits)}
    for program in (0, 1):
        judged(core, core.fitted, program, [(5, exponent) for exponent in exponents], bits)


def test_a_power_that_is_a_multiple_of_the_modulus_is_zero():
    """The last product is then M, and the circuit shows 0; without the comparison it shows M."""
    p = 3**40
    core = loaded("radix64k-mul")
    fitted = core.at(p)
    assert core.simulate(fitted, 0, [(3**20, 2), (3**39, 5)], 8).powers == [0, 0]
    text = core.verilog.replace("= zero ?", "= 1'b0 ?")
    assert text != core.verilog
    wrong = CircuitCore(core.design, core.fitted, core.given, stored=text, bits=64)
    assert p in wrong.simulate(fitted, 0, [(3**20, 2), (3**39, 5)], 8).powers


@pytest.mark.parametrize("name", NAMES[:2])
@pytest.mark.parametrize("redundant", [True, False])
@pytest.mark.parametrize("bits", [64, 128])
def test_counts_of_theorem_11(name, redundant, bits):
    """Simulated from the last word of a job to the first word of its answer."""
    p = 2**bits - (59 if bits == 64 else 159)
    core = circuit_engine(name, p, settings={"redundant": redundant})
    trial = core.trial()
    d = bits // 16
    extra = d + 3 if redundant else 3
    assert trial.latency == (2 * bits + 2) * (d + 1) + extra
    assert trial.more == {"half_ones": (bits + bits // 2 + 1) * (d + 1) + extra, "e65537": 20 * (d + 1) + extra}
    theorem = exponentiation_cycles(2 * bits + 2, d, redundant=redundant)
    assert trial.latency - theorem == (2 - d if redundant else 3)
    assert multiplications(PUBLIC, 17, skip_one=True) == 20


def test_products_are_those_of_the_algorithm():
    for exponent in range(1, 200):
        bits = exponent.bit_length()
        assert products(exponent, bits, variable=True) == multiplications(exponent, bits, skip_one=True)
        assert products(exponent, bits, variable=False) == multiplications((1 << bits) - 1, bits)
    assert products(3, 5, variable=True) == multiplications(3, 5)


@pytest.mark.parametrize(("name", "settings", "width", "word"), [
    ("radix64k-mul", {}, 33, 16), ("radix64k-ram", {"lookups": 2}, 64, 33),
    ("radix64k-ram", {"redundant": False, "tile": 17, "chain": 12}, 48, 32), ("radix64k-table", {"r": 5}, 31, 64),
])  # fmt: skip
def test_a_folder_passes_its_check(tmp_path, name, settings, width, word):
    core = circuit_engine(name, width=width, settings=settings, word=word)
    folder = core.write(tmp_path / "engine", "made for a test")
    report = check_engine(folder)
    assert not report.failures and report.judged > 300
    again = read_any(folder)
    assert type(again) is CircuitCore and again.record() == core.record()
    assert "public exponents only" in (folder / "README.md").read_text()


def test_faults_of_a_folder_are_found(tmp_path):
    core = circuit_engine("radix64k-mul", width=32, settings={"r": 8})
    folder = core.write(tmp_path / "engine", "made for a test")
    text = verilog_of(folder, "engine")
    for k, (what, changed) in enumerate((
        ("the time of a word depends", text.replace("~variable", "1'h0")),  # a bit 0 of a secret is skipped
        ("is wrong", text.replace("= zero ?", "= ~zero ?")),
    )):  # fmt: skip
        assert changed != text
        copy = shutil.copytree(folder, tmp_path / str(k))
        forged(copy, changed)
        assert any(what in line for line in check_engine(copy).failures), what


def test_an_engine_of_the_other_kind_is_read_as_such(tmp_path):
    folder = engine("radix64k-mul", width=32, bits=32, threads=1).write(tmp_path / "engine", "made for a test")
    assert type(read_any(folder)) is EngineCore


def test_refusals():
    with pytest.raises(UnsupportedError, match="needs radix64k-mul, radix64k-ram or radix64k-table, not kbe"):
        circuit_engine("kbe", width=64)
    with pytest.raises(UnsupportedError, match="needs feedback=true"):
        circuit_engine("radix64k-mul", width=64, settings={"feedback": False})
    with pytest.raises(ValueError, match="feedback=true"):
        PowerCircuit(design("radix64k-mul").fit(97).shape, 8, 32)
    core = loaded("radix64k-ram")
    for pair, bits in (((2, 5), 65), ((2, 8), 3)):
        with pytest.raises(UnsupportedError, match=r"at most (64|3) bits, got (65|4)"):
            core.simulate(core.fitted, 0, [pair], bits)
    with pytest.raises(UnsupportedError, match=r"below 2\^64"):
        core.at(2**64 + 1)
