# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The radix-64K paper: every printed cell stands in our sections, and what they say of it is computed again."""

import itertools
import re
import statistics
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from modmill.cores.multiplier.build import build
from modmill.cores.rsa.circuit import circuit_engine
from modmill.flow import tools
from modmill.numbers.moduli import parse_modulus
from modmill.numbers.primes import is_prime
from modmill.report.reproduction import UNKNOWN
from modmill.report.rows import Row, append, read
from modmill.studies.papers import rsa64k
from modmill.studies.papers.bench import Bench, modulus_value
from modmill.studies.papers.reproduce import reproduce

ROOT = Path(__file__).resolve().parents[3]

# Transcribed from the paper once more, row by row as it prints them.
PRINTED = {
    ("Table 1", "redundant"): """
        clock (MHz) 40.80 41.50 40.38 40.30 40.21
        clock cycles (worst) 660 2340 8772 33924 133380
        time (ms) (worst) 0.016 0.056 0.217 0.841 3.317
        clock cycles (expected) 500 1764 6596 25476 100100
        time (ms) (expected) 0.012 0.042 0.161 0.632 2.489
        slices 865 1708 2905 5811 13467
        multipliers 9 17 33 65 129
    """,
    ("Table 1", "non-redundant"): """
        clock (MHz) 47.43 41.75 33.61 25.12 16.38
        clock cycles (worst) 650 2322 8738 33858 133250
        time (ms) (worst) 0.013 0.055 0.259 1.347 8.134
        clock cycles (expected) 480 1746 6562 25344 99970
        time (ms) (expected) 0.010 0.041 0.195 1.008 6.103
        slices 530 974 1971 3909 7549
        multipliers 9 17 31 63 123
    """,
    ("Table 2", "redundant"): """
        clock (MHz) 53.20 52.51 52.77 52.57 52.90
        clock cycles (worst) 660 2340 8772 33924 133380
        time (ms) (worst) 0.012 0.044 0.166 0.645 2.521
        clock cycles (expected) 500 1764 6596 25476 100100
        time (ms) (expected) 0.009 0.033 0.124 0.484 1.892
        slices 896 1652 3204 5868 11589
        multipliers 4 8 16 32 64
        block RAMs 2 4 8 15 29
    """,
    ("Table 2", "non-redundant"): """
        clock (MHz) 68.06 58.83 44.47 30.40 18.46
        clock cycles (worst) 650 2322 8738 33858 133250
        time (ms) (worst) 0.09 0.039 0.196 1.113 7.218
        clock cycles (expected) 480 1746 6562 25344 99970
        time (ms) (expected) 0.07 0.029 0.147 0.833 5.415
        slices 613 1086 2034 3911 7708
        multipliers 4 8 15 31 61
        block RAMs 2 4 8 15 29
    """,
}
SIZES = (64, 128, 256, 512, 1024)


def printed_cells():
    """{(table, what a line must be called): the printed number}."""
    cells = {}
    for (table, kind), text in PRINTED.items():
        for line in text.strip().splitlines():
            words = line.split()
            name, numbers = " ".join(words[:-5]), words[-5:]
            for bits, number in zip(SIZES, numbers, strict=True):
                cells[table, f"{bits} bits, {kind}: {name}"] = Fraction(number)
    return cells


def faults(sections):
    """Printed cells that are missing, double or wrong in the sections of Tables 1 and 2."""
    found = {}
    for section in sections:
        if section.title.startswith("Table"):
            for line in section.lines:
                found.setdefault((section.title.split(":")[0], line.what), []).append(Fraction(str(line.printed)))
    cells = printed_cells()
    for key in cells.keys() | found.keys():
        if found.get(key) != [cells.get(key)]:
            yield f"{key[1]}: {found.get(key)}, the paper has {cells.get(key)}"


@pytest.fixture
def unmeasured(cache):
    return rsa64k.sections(Bench())


def lines(sections, title):
    return {line.what: line for s in sections if s.title.startswith(title) for line in s.lines}


def test_every_printed_cell_is_there(unmeasured):
    assert len(printed_cells()) == 2 * 5 * (7 + 8)
    assert list(faults(unmeasured)) == []


@pytest.mark.parametrize("what", ["256 bits, redundant: slices", "1024 bits, non-redundant: time (ms) (worst)"])
def test_a_missing_or_wrong_cell_is_found(unmeasured, what):
    for change in (lambda line: [], lambda line: [line, line], lambda line: [replace(line, printed=line.printed + 1)]):
        broken = [
            replace(s, lines=[x for line in s.lines for x in (change(line) if line.what == what else [line])])
            for s in unmeasured
        ]
        assert any(fault.startswith(what) for fault in faults(broken))


def test_cells_that_differ_are_those_in_the_errata(unmeasured):
    """All other cycles, times, multipliers and block RAMs come out as printed."""
    for table in ("Table 1", "Table 2"):
        differ = {what for what, line in lines(unmeasured, table).items() if line.differs}
        counted = {what for what in differ if "redundant: clock cycles" in what and ", redundant" in what}
        assert counted == {
            f"{bits} bits, redundant: clock cycles ({kind})" for bits in SIZES for kind in ("worst", "expected")
        }
        rest = differ - counted - {"256 bits, non-redundant: multipliers"}  # 15 digits of 17 bits are 255 bits
        expected = {f"{bits} bits, non-redundant: clock cycles (expected)" for bits in (64, 512)}
        if table == "Table 1":
            expected |= {"256 bits, redundant: time (ms) (expected)"}
        else:
            expected |= {f"64 bits, non-redundant: time (ms) ({kind})" for kind in ("worst", "expected")}
        assert rest == expected
        assert all(line.why for line in lines(unmeasured, table).values() if line.differs)


def test_exact_counts(unmeasured):
    for table in ("Table 1", "Table 2"):
        found = lines(unmeasured, table)
        for bits in SIZES:
            cell = found[f"{bits} bits, redundant: clock cycles (worst)"]
            assert cell.predicted == cell.printed - 1 == (2 * bits + 4) * (bits // 16 + 1) - 1
        assert [found[f"{bits} bits, non-redundant: clock cycles (expected)"].predicted for bits in SIZES] == [
            490, 1746, 6562, 25410, 99970,
        ]  # fmt: skip


def test_lemmas_and_claims(unmeasured):
    lemmas = lines(unmeasured, "Lemmas")
    assert [lemmas[f"Lemma {n}: least r"].predicted for n in (1, 2, 3)] == [2, 3, 4]
    assert lemmas["Section 6: redundant bits of the highest digit"].predicted == "up to 10"
    claims = lines(unmeasured, "Abstract")
    assert claims["E = 2^16 + 1, 1024 bits: cycles, less than"].predicted == 1430
    assert "1429" in claims["E = 2^16 + 1, 1024 bits: cycles, less than"].why
    assert "1494" in claims["E = 2^16 + 1, 1024 bits: cycles, less than"].why
    differ = {what for what, line in claims.items() if line.differs}
    assert {what for what in differ if "ms" in what} == {
        "worst time for 1024 bits, conclusion (ms)", "expected time for 1024 bits, conclusion (ms)",
    }  # fmt: skip


def test_our_moduli_are_primes_of_their_sizes():
    for bits, name in rsa64k.MODULI.items():
        p = parse_modulus(name).value
        assert p.bit_length() == bits and is_prime(p)


def test_rows_show(cache):
    circuit = circuit_engine("radix64k-ram", parse_modulus(rsa64k.MODULI[64]).value)
    core = build("radix64k-ram", rsa64k.MODULI[64], "native", redundant=True)
    about = {"design": "radix64k-ram", "modulus": rsa64k.MODULI[64], "io": "native"}
    yosys, nextpnr = (
        f"yowasp-{name} {tools.version(tool)}" for name, tool in (("yosys", "yosys"), ("nextpnr-ecp5", "nextpnr"))
    )
    values = {"dsp": 4, "lut": 800, "ff": 200, "bram": 4, "cells": {}, "logic_delay_ns": None, "seconds": 1}
    append(cache / "rows.jsonl", Row("synth", core.digest, yosys, "ecp5-85k", None, values, about))
    append(cache / "rows.jsonl", Row("route", core.digest, nextpnr, "ecp5-85k", 1, {"mhz": 61.5}, about))
    about, key = circuit.about() | {"engine": "radix64k-ram circuit"}, circuit.digest
    seen = {"latency": 660, "period": 670, "results": 2, "half_ones": 495, "e65537": 110, "seconds": 1}
    append(cache / "rows.jsonl", Row("check", key, f"verilator {tools.version('verilator')}", "", None, seen, about))
    append(cache / "rows.jsonl", Row("synth", key, yosys, "ecp5-85k", None, values | {"bram": 5, "lut": 9}, about))
    append(cache / "rows.jsonl", Row("route", key, nextpnr, "ecp5-85k", 1, {"mhz": 33.0}, about))
    found = reproduce("rsa64k")
    table, ours = lines(found, "Table 2"), lines(found, "Our radix64k-ram")
    assert table["64 bits, redundant: clock (MHz)"].measured == 33
    assert table["64 bits, redundant: block RAMs"].measured == 5
    assert table["64 bits, redundant: clock cycles (worst)"].measured == 660
    assert table["64 bits, redundant: clock cycles (expected)"].measured == 495
    assert table["64 bits, redundant: time (ms) (worst)"].measured == 0.02
    circuits = lines(found, "Our circuit on radix64k-ram")
    assert circuits["64 bits, redundant: cycles from a product to the next"].measured == 5
    assert circuits["64 bits, redundant: cycles for E = 2^16 + 1"].measured == 110
    assert circuits["64 bits, redundant: LUT"].measured == 9
    assert ours["64 bits, redundant: clock (MHz)"].measured == 61.5
    assert table["64 bits, non-redundant: clock (MHz)"].measured == UNKNOWN
    assert ours["64 bits, redundant: LUT"].measured == 800
    assert ours["64 bits, redundant: clock, % of that for 64 bits"].measured == 100


def clocks(text):
    """The table of clocks on the designs' page: what stands for each core."""
    found = {}
    for bits, *cells in re.findall(r"^\| (\d+) \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|$", text, re.MULTILINE):
        kinds = itertools.product(("radix64k-ram", "radix64k-mul"), (True, False))
        found |= {(int(bits), *kind): cell for kind, cell in zip(kinds, cells, strict=True)}
    return found


def routed(rows):
    """The same from rows: the median of the seeds."""
    found = {}
    for row in rows:
        about = row.about
        if row.kind == "route" and about["design"] != "radix64k-table" and "engine" not in about:
            key = modulus_value(about["modulus"]).bit_length(), about["design"], about["parameters"]["redundant"]
            found.setdefault(key, []).append(row.values["mhz"])
    return {key: f"{statistics.median(some):.1f}" for key, some in found.items()}


def test_the_page_of_the_designs_shows_the_clocks_of_the_rows():
    text = (ROOT / "docs" / "designs" / "radix64k.md").read_text()
    shown, wanted = clocks(text), routed(read(ROOT / "results" / "rsa64k-paper.jsonl"))
    assert len(shown) == 4 * len(SIZES)
    there = {key: mhz for key, mhz in shown.items() if mhz != "-"}
    assert there == wanted
    assert clocks(text.replace("| 512 | 53.4 ", "| 512 | 54.4 ")) != shown and routed(()) != there


def test_multipliers_and_block_rams_of_theorem_10(unmeasured):
    table = lines(unmeasured, "Table 2")
    assert table["1024 bits, redundant: multipliers"].predicted == 64
    assert table["1024 bits, redundant: block RAMs"].predicted == 29


def unexplained(sections):
    """Cells without a measurement and without the reason."""
    return [line.what for s in sections for line in s.lines if line.measured == UNKNOWN and not line.why]


def test_a_missing_measurement_has_its_reason(unmeasured):
    assert unexplained(unmeasured) == []
    bare = [replace(s, lines=[replace(line, why="") for line in s.lines]) for s in unmeasured]
    assert len(unexplained(bare)) > 100


def test_cycles_of_the_circuit_are_simulated():
    """Every count that ships is that of the formula, and at most that of Theorem 11."""
    rows = [row for row in read(ROOT / "results" / "rsa64k-paper.jsonl") if row.kind == "check"]
    assert any("engine" in row.about for row in rows)
    for row in (row for row in rows if "engine" in row.about):
        bits, about = row.about["modulus_bits"], row.about
        extra = bits // 16 + 3 if about["parameters"]["redundant"] else 3
        d = bits // 16
        assert row.values["latency"] == (2 * bits + 2) * (d + 1) + extra <= (2 * bits + 4) * (d + 1)
        assert row.values["half_ones"] == (bits + bits // 2 + 1) * (d + 1) + extra
        assert row.values["e65537"] == 20 * (d + 1) + extra


def test_figures_of_other_works(unmeasured):
    found = lines(unmeasured, "Section 1")
    assert found['"more than 10 times faster": than Blum and Paar'].predicted == 4.7
    assert found['"more than 10 times faster": than Amanor et al.'].predicted == 12.0
    assert found["[11]: a product of 1024 bits with block RAMs (us)"].predicted == 1.23
    assert found["[6]: a product of 1024 bits by multipliers (us)"].predicted == 1.62
