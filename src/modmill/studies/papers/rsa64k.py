# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The radix-64K paper: Tables 1 and 2 cell by cell, the lemmas, and every claim that has a number.

K. Nakano, K. Kawakami, K. Shigemoto: RSA Encryption and Decryption using the Redundant Number System on the FPGA. IPDPS
Workshops, 2009.

Printed values are the paper's own (XST 10.1i, XC2VP30-6). Predicted values are counted by running the algorithm
(redundant_digits), follow from a core's schedule, or come from printed cells, as the line states. Measured values are
rows of this repository: cycles from simulation of the circuit (designs.radix64k.circuit), resources from Yosys, clocks
from nextpnr on ECP5, which is not the paper's device. A missing row is shown as ``-``, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from statistics import median
from typing import Any

from modmill.designs import design
from modmill.numbers.moduli import parse_modulus
from modmill.numbers.redundant_digits import (
    Montgomery,
    Radix,
    digits,
    exponentiation_cycles,
    least_r,
    multiplications,
    theorem_9,
)
from modmill.report.clocks import routed_by
from modmill.report.reproduction import UNKNOWN, Line, Section, cells
from modmill.report.traces import traced
from modmill.studies.papers.bench import Bench
from modmill.studies.papers.measured_circuit import MeasuredCircuit
from modmill.studies.papers.measured_core import NO_ROW, ROUTED, MeasuredCore, over, seeds, shown

SIZES = (64, 128, 256, 512, 1024)
R = 16
PAPER_PORT = 36
"""Bits that each port of a Virtex-II Pro block RAM reads; those of ECP5 read 18."""

MODULI = {64: "2^64-59", 128: "2^128-159", 256: "2^256-189", 512: "2^512-569", 1024: "2^1024-105"}
"""Our modulus of each size; the paper names none."""


@dataclass(frozen=True)
class Implementation:
    """A column of one half of Table 1 or 2."""

    bits: int
    mhz: float
    worst: int
    worst_ms: float
    expected: int
    expected_ms: float
    slices: int
    multipliers: int
    rams: int | None = None


TABLE_1 = {
    True: (
        Implementation(64, 40.80, 660, 0.016, 500, 0.012, 865, 9),
        Implementation(128, 41.50, 2340, 0.056, 1764, 0.042, 1708, 17),
        Implementation(256, 40.38, 8772, 0.217, 6596, 0.161, 2905, 33),
        Implementation(512, 40.30, 33924, 0.841, 25476, 0.632, 5811, 65),
        Implementation(1024, 40.21, 133380, 3.317, 100100, 2.489, 13467, 129),
    ),
    False: (
        Implementation(64, 47.43, 650, 0.013, 480, 0.010, 530, 9),
        Implementation(128, 41.75, 2322, 0.055, 1746, 0.041, 974, 17),
        Implementation(256, 33.61, 8738, 0.259, 6562, 0.195, 1971, 31),
        Implementation(512, 25.12, 33858, 1.347, 25344, 1.008, 3909, 63),
        Implementation(1024, 16.38, 133250, 8.134, 99970, 6.103, 7549, 123),
    ),
}
TABLE_2 = {
    True: (
        Implementation(64, 53.20, 660, 0.012, 500, 0.009, 896, 4, 2),
        Implementation(128, 52.51, 2340, 0.044, 1764, 0.033, 1652, 8, 4),
        Implementation(256, 52.77, 8772, 0.166, 6596, 0.124, 3204, 16, 8),
        Implementation(512, 52.57, 33924, 0.645, 25476, 0.484, 5868, 32, 15),
        Implementation(1024, 52.90, 133380, 2.521, 100100, 1.892, 11589, 64, 29),
    ),
    False: (
        Implementation(64, 68.06, 650, 0.09, 480, 0.07, 613, 4, 2),
        Implementation(128, 58.83, 2322, 0.039, 1746, 0.029, 1086, 8, 4),
        Implementation(256, 44.47, 8738, 0.196, 6562, 0.147, 2034, 15, 8),
        Implementation(512, 30.40, 33858, 1.113, 25344, 0.833, 3911, 31, 15),
        Implementation(1024, 18.46, 133250, 7.218, 99970, 5.415, 7708, 61, 29),
    ),
}
TABLES: tuple[tuple[str, str, Mapping[bool, Sequence[Implementation]]], ...] = (
    ("Table 1: multipliers (Theorems 9 and 11)", "radix64k-mul", TABLE_1),
    ("Table 2: multipliers and block RAMs (Theorems 10 and 11)", "radix64k-ram", TABLE_2),
)

DIGITS_17 = 17
"""Bits of X and M at a multiplier of the paper's non-redundant form: unsigned, in a signed block of 18 bits."""
NOT_ROUTED = "not routed at this size here"

LOOKUPS = {1024: 2}
"""Number of copies of z in our block-RAM cores, if more than one: each 29 of 57 block RAMs have their own."""
CHAINS = {1024: 64}
"""Bits of the pieces in which our non-redundant cores add, if they do: nextpnr ends on paths of 1,040 carries."""

COUNTEREXAMPLE = (
    0x547B4F802DEE04B839B032E1DD89F733B96B8F02A382AB715FD570588F399EA4,
    0xFFFFFFFFFFFFFFC895453EDAA6D36CF35AC7C7A556F2854162F9F4AB13F3FC15,
)
"""Numbers below 2^256 whose product modulo the prime of secp256k1, squared, refutes the rule of Section 6."""


def sections(bench: Bench) -> Sequence[Section]:
    """Both tables, the lemmas, the claims, and our cores, with the rows of ``bench``."""
    made = [make(bench, *table) for make in (_table, _circuits, _ours) for table in TABLES]
    return [_explained(section) for section in (*made, _lemmas(), _claims(bench), _others())]


def _explained(section: Section) -> Section:
    """The section; a missing measurement without a reason has no row."""
    missing = (line.measured == UNKNOWN and not line.why for line in section.lines)
    lines = [replace(line, why=NO_ROW) if none else line for none, line in zip(missing, section.lines, strict=True)]
    return replace(section, lines=lines)


def worst_cycles(bits: int, redundant: bool) -> int:
    """Cycles if every bit of the exponent is 1 and the result is reduced once."""
    return int(exponentiation_cycles(multiplications((1 << bits) - 1, bits), bits // R, redundant=redundant))


def expected_cycles(bits: int, redundant: bool) -> Fraction:
    """Cycles if half of the bits are 1; the conversion is as in the worst case."""
    return exponentiation_cycles(Fraction(3 * bits, 2) + 2, bits // R, redundant=redundant)


def _name(row: Implementation, redundant: bool) -> str:
    return f"{row.bits} bits, {'redundant' if redundant else 'non-redundant'}"


def _ms(cycles: Fraction | int, mhz: float) -> float:
    """Time in ms, truncated after three digits as in the paper."""
    return float(Fraction(cycles) / Fraction(str(mhz)) // 1) / 1000


def _core(bench: Bench, name: str, bits: int, redundant: bool) -> MeasuredCore:
    return MeasuredCore(bench, name, MODULI[bits], ROUTED, redundant=redundant, **_large(name, bits, redundant))


def _large(name: str, bits: int, redundant: bool) -> dict[str, int]:
    """The settings that only large cores need."""
    copies = {"lookups": LOOKUPS[bits]} if bits in LOOKUPS and name == "radix64k-ram" else {}
    chain = {"chain": CHAINS[bits]} if bits in CHAINS and not redundant else {}
    return copies | chain


def _circuit(bench: Bench, name: str, bits: int, redundant: bool) -> MeasuredCircuit:
    return MeasuredCircuit(bench, name, MODULI[bits], ROUTED, **_form(redundant), **_large(name, bits, redundant))


def _form(redundant: bool) -> dict[str, Any]:
    return {} if redundant else {"redundant": False, "tile": DIGITS_17}


def _multipliers(name: str, bits: int, redundant: bool) -> int:
    """Multipliers of the paper's circuit, which makes z once."""
    return design(name).fit(parse_modulus(MODULI[bits]).value, feedback=True, **_form(redundant)).cost.dsp


def _table(bench: Bench, title: str, name: str, table: Mapping[bool, Sequence[Implementation]]) -> Section:
    lines = []
    for redundant, row in ((redundant, row) for redundant, rows in table.items() for row in rows):
        ours = _circuit(bench, name, row.bits, redundant)
        alone = _core(bench, name, row.bits, redundant)
        copies = "lookups" in _large(name, row.bits, redundant)
        worst, expected = worst_cycles(row.bits, redundant), expected_cycles(row.bits, redundant)
        bound = "printed: the bound of Theorem 11, one more than the count; " if redundant else ""
        misprint = "" if redundant or row.expected == expected else "misprint: (1.5 R + 2)(d + 1); "
        pieces = "X and M in digits of 17 bits; 15 of them are 255 bits" if row.bits == 256 and not redundant else ""
        lines += cells(
            _name(row, redundant),
            ("clock (MHz)", row.mhz, None, shown(ours.mhz), _clock_of(ours, alone)),
            ("clock cycles (worst)", row.worst, worst, shown(ours.cycles("latency")), bound + _counted("2", redundant)),
            _time("worst", row.worst, row.mhz, row.worst_ms, ours.milliseconds("latency")),
            ("clock cycles (expected)", row.expected, int(expected), shown(ours.cycles("half_ones")),
             bound + misprint + _counted("1.5", redundant)),
            _time("expected", row.expected, row.mhz, row.expected_ms, ours.milliseconds("half_ones")),
            ("slices", row.slices, None, None, "placement by the vendor's tool; LUT and FF of ours below"),
            ("multipliers", row.multipliers, _multipliers(name, row.bits, redundant), shown(ours.resource("dsp")),
             pieces or (f"measured: z is made {LOOKUPS[row.bits]} times" if copies else "")),
        )  # fmt: skip
        if row.rams is not None:
            why = f"predicted: words of {row.bits} bits on ports of 36; ports on ECP5 have 18: {-(-row.bits // 18)}"
            needed = -(-row.bits // PAPER_PORT)
            lines += cells(_name(row, redundant), ("block RAMs", row.rams, needed, shown(ours.resource("bram")), why))
    return Section(
        title, lines,
        "Predicted cycles are counted; predicted times are the printed cycles at the printed clock, cut after three "
        f"digits as the paper's are. Measured: the whole circuit on {ROUTED}, modulus built in, one of "
        f"{', '.join(MODULI.values())}; cycles from the last word of a job to the first word of its answer, simulated; "
        "times are these cycles at the routed clock, where the circuit is routed.",
    )  # fmt: skip


def _clock_of(ours: MeasuredCircuit, alone: MeasuredCore) -> str:
    """The seeds of the circuit's clock, or why it has none."""
    if ours.clocks:
        n = len(ours.clocks)
        return f"median of {n} seeds" if n > 1 else "one seed"
    known = f"; its multiplier alone, without feedback: {alone.mhz:.1f} MHz" if alone.mhz else ""
    return f"the circuit is not routed at this size: {NO_ROW}{known}"


def _counted(share: str, redundant: bool) -> str:
    """Why the simulated count differs from the paper's: ``share`` of R squares and products."""
    first = "" if share == "2" else "the square of 1 before the first bit is left out, and "
    after = "d + 3 more: the carries in one pass, because the last product is at most M" if redundant else (
        "3 more: word in, comparison with M, word out"
    )  # fmt: skip
    return f"measured: {first}{after}"


def _time(case: str, cycles: int, mhz: float, printed: float, measured: float | None) -> tuple[Any, ...]:
    """The row of a time: as printed, from the printed cycles and clock, and of our circuit."""
    found = _ms(cycles, mhz)
    why = "" if found == printed else f"{cycles} cycles at {mhz:g} MHz are {1000 * cycles / mhz / 1e6:.4f} ms"
    return f"time (ms) ({case})", printed, found, shown(measured, 4), why or ("" if measured else NOT_ROUTED)


def _circuits(bench: Bench, title: str, name: str, table: Mapping[bool, Sequence[Implementation]]) -> Section:
    lines = []
    for redundant, row in ((redundant, row) for redundant, rows in table.items() for row in rows):
        ours, d = _circuit(bench, name, row.bits, redundant), row.bits // R
        lines += cells(
            _name(row, redundant),
            ("cycles from a product to the next", d + 1, ours.core.feedback, shown(ours.interval),
             "measured: difference of two simulated counts over that of their products"),
            ("cycles for E = 2^16 + 1", None, ours.core.cycles(1, 17, 65537), shown(ours.cycles("e65537")),
             "20 products: 16 squares, 2 by P', 2 conversions"),
            ("LUT", None, None, shown(ours.resource("lut"))),
            ("FF", None, None, shown(ours.resource("ff"))),
        )  # fmt: skip
    return Section(f"Our circuit on {name} beside {title.split(':')[0]}", lines, f"{ROUTED}, modulus built in.")


def _ours(bench: Bench, title: str, name: str, table: Mapping[bool, Sequence[Implementation]]) -> Section:
    lines = []
    extra = "printed: d + 1, with its addition of -M" + ("; one more adds the last k M" if "ram" in name else "")
    for redundant, rows in table.items():
        first: float | None = None
        for row in rows:
            ours = _core(bench, name, row.bits, redundant)
            clock = ours.mhz
            first = first or clock
            share = None if clock is None or first is None else 100 * clock / first
            around = _circuit(bench, name, row.bits, redundant).clocks
            no_clock = NOT_ROUTED + (f"; the circuit around it: {median(around):.1f} MHz" if around else "")
            lines += cells(
                _name(row, redundant),
                ("cycles a product, interval", row.bits // R + 1, ours.interval, shown(ours.seen_interval), extra),
                ("cycles a product, latency", None, ours.latency, shown(ours.seen),
                 "operands into registers, X y_0, then the iterations"),
                ("LUT", None, None, shown(ours.resource("lut"))),
                ("FF", None, None, shown(ours.resource("ff"))),
                ("clock (MHz)", row.mhz, None, shown(clock), seeds(ours) if ours.clocks else no_clock),
                ("clock, % of that for 64 bits", round(100 * row.mhz / rows[0].mhz, 1), None, shown(share),
                 routed_by(share) or ("" if share else no_clock)),
            )  # fmt: skip
    return Section(
        f"Our {name} beside {title.split(':')[0]}",
        lines,
        f"{ROUTED}, native io, modulus built in, without feedback: the multiplier for independent products.",
    )


def _least_r() -> dict[str, int]:
    """The least r for which the sums of Lemmas 1 to 3 fit in r + 2 bits for the largest digits."""

    def sums(r: int) -> dict[str, tuple[int, ...]]:
        bound, full = Radix(r, largest=True), Radix(r).full
        x = (full,) * 4
        return {"1": bound.add(x, x), "2": bound.scale(x, full), "3": bound.product_sum(x, full, (full,) * 5)}

    return {lemma: least_r(partial(lambda n, r: Radix(r).fits(sums(r)[n]), lemma)) for lemma in ("1", "2", "3")}


def _top_bits() -> str:
    """Redundant bits of the highest digit, before -M, in the square of the counterexample's product."""
    m = Montgomery(parse_modulus("secp256k1").value, R)
    x, y = (digits(n, R, m.d) for n in COUNTEREXAMPLE)
    for _ in range(2):
        c: tuple[int, ...] = (0,) * (m.d + 1)
        for digit in y:
            c = theorem_9(m, c, x, digit)
        x = y = m.joined(c)
    return format(x[-1] >> R, "02b")


def _lemmas() -> Section:
    found = _least_r()
    lines = [
        Line(f"Lemma {n}: least r", printed, found[n], why=why)
        for n, printed, why in (
            ("1", 2, "4 + 2^r + 4 + 2^r < 2^(r+2) fails for r = 2, the result does not"),
            ("2", 3, ""),
            ("3", 5, "15 + 3 + 3 (2^r - 1) is at most 2^(r+2) - 1 for r = 4 already"),
        )
    ]
    lines += [
        Line("Lemma 5: multiplications for R = 1024, worst", 2050, multiplications((1 << 1024) - 1, 1024)),
        Line("Lemma 6: least significant digits of X Y and k M sum to", "0", "0, 2^r or 2 2^r",
             why="so a carry of 0 to 2 must enter digit 1, where redundant slots are free"),
        Line("Lemma 6: digits of X Y", "d + 1", "d + 2"),
        Line("Section 6: redundant bits of the highest digit", "00 or 01", f"up to {_top_bits()}",
             why="the subtraction of M does not keep numbers in range; one more iteration does, in as many cycles"),
        Line("Section 5.3: g as printed", "cancels", "does not",
             why="g(z) = bits [r-1, r/2] of h(z), plus 1 unless z = 0; the error is in 98 % of z"),
        Line("Section 3: bits of k", "[r-1, 0]", "[R-1, 0]", why="with R bits of X Y to cancel"),
        Line("Section 4: indices of the exponent's bits", "R-1 ... 1", "R-1 ... 0"),
        Line("Section 4: direction of the algorithm", "right-to-left", "left-to-right"),
    ]  # fmt: skip
    return Section("Lemmas and Sections 3 to 6", lines)


def _claims(bench: Bench) -> Section:
    slow, last = TABLE_2[False][-1], TABLE_2[True][-1]
    literal, skipped = (
        int(exponentiation_cycles(multiplications(65537, 17, skip_one=skip), last.bits // R)) for skip in (False, True)
    )
    ours = _circuit(bench, "radix64k-ram", last.bits, redundant=True)
    return Section("Abstract, Sections 1, 7 and 8: claims", [
        Line("worst time for 1024 bits, abstract (ms)", 2.521, _ms(last.worst, last.mhz)),
        Line("expected time for 1024 bits, abstract (ms)", 1.892, _ms(last.expected, last.mhz)),
        Line("worst time for 1024 bits, conclusion (ms)", 2.67, round(last.worst / last.mhz / 1000, 2),
             why="that is 49.96 MHz; no clock gives both times of the conclusion"),
        Line("expected time for 1024 bits, conclusion (ms)", 1.99, round(last.expected / last.mhz / 1000, 2),
             why="that is 50.30 MHz"),
        Line("speedup by redundant numbers, 1024 bits", 2.86, round(slow.worst_ms / last.worst_ms, 2),
             shown(_speedup(bench, 1024), 2), _speedups(bench)),
        Line("E = 2^16 + 1, 1024 bits: cycles, less than", 1430, skipped + 1, shown(ours.cycles("e65537")),
             f"squaring C = 1 left out: {skipped}; the algorithm as printed takes {literal}; measured: the carries in "
             "one pass"),
        Line("E = 2^16 + 1, 1024 bits: time (ms)", 0.027, _ms(skipped, last.mhz)),
        *(
            Line(f"clock of redundant numbers: spread, {title.split(':')[0]}, %", 0,
                 _spread([row.mhz for row in table[True]]),
                 shown(_spread([_core(bench, name, bits, redundant=True).mhz for bits in SIZES])),
                 "\"fixed\"; measured: our multipliers, 64 to 1024 bits")
            for title, name, table in TABLES
        ),
        Line("one digit product, MUL(r + 2, r + 2), r = 16: blocks", 1, "1 and logic",
             why="blocks of Virtex-II Pro multiply 18 bits with sign, so 17 without; ECP5's take 18"),
    ], "Predicted: counted, or from the printed cells of Tables 1 and 2.")  # fmt: skip


def _speedup(bench: Bench, bits: int) -> float | None:
    """Time of the non-redundant circuit over that of the redundant one."""
    slow, fast = (
        _circuit(bench, "radix64k-ram", bits, redundant).milliseconds("latency") for redundant in (False, True)
    )
    return over(slow, fast)


def _speedups(bench: Bench) -> str:
    """The sizes at which both circuits are routed."""
    known = {bits: found for bits in SIZES if (found := _speedup(bench, bits)) is not None}
    listed = ", ".join(f"{found:.2f} at {bits} bits" for bits, found in known.items())
    return f"our circuits on radix64k-ram: {listed or NO_ROW}" + ("" if 1024 in known else f"; 1024 bits {NOT_ROUTED}")


def _others() -> Section:
    """Section 1: the figures of other authors, and the comparisons with them."""
    last = TABLE_2[True][-1]
    slices, blocks = 13696, 136
    theirs = "printed: quoted by the paper from"
    return Section("Section 1: figures of other works, and the comparisons", [
        Line("Blum and Paar, 1024 bits (ms)", 11.95, why=f"{theirs} [3]; their circuit is not built here"),
        Line("Amanor et al., 1024 bits, expected (ms)", 22.7, why=f"{theirs} [1], an estimate"),
        Line("\"more than 10 times faster\": than Blum and Paar", 10, round(11.95 / last.worst_ms, 1),
             why="2.521 ms, worst; 6.3 against 1.892 ms, expected: does not hold"),
        Line("\"more than 10 times faster\": than Amanor et al.", 10, round(22.7 / last.expected_ms, 1),
             why="both expected times: holds"),
        Line("Mazzeo et al., E = 2^16 + 1 (ms)", 2.99, why=f"{theirs} [7]"),
        Line("Garg and Vig, E = 2^16 + 1 (ms)", 0.167, why=f"{theirs} [5]"),
        Line("\"much faster\" than Mazzeo et al., times", None, round(2.99 / 0.027, 1)),
        Line("\"much faster\" than Garg and Vig, times", None, round(0.167 / 0.027, 1)),
        Line("[6]: a product of 1024 bits by multipliers (us)", 1.54, round(65 / TABLE_1[True][-1].mhz, 2),
             why="65 cycles at the printed clock of Table 1; 1.54 us are 42.2 MHz"),
        Line("[11]: a product of 1024 bits with block RAMs (us)", 1.23, round(65 / last.mhz, 2),
             why="65 cycles at the printed clock of Table 2"),
        Line("share of the device, 1024 bits, Table 2: slices (%)", None, round(100 * last.slices / slices),
             why=f"of {slices}; Table 1: {100 * TABLE_1[True][-1].slices / slices:.0f} %. The text states no share"),
        Line("share of the device, 1024 bits, Table 2: multipliers (%)", None, round(100 * last.multipliers / blocks),
             why=f"of {blocks}; block RAMs {100 * (last.rams or 0) / blocks:.0f} %; Table 1: 95 % of the multipliers"),
    ], "Predicted: from the printed cells of Tables 1 and 2.")  # fmt: skip


def _spread(clocks: Sequence[float | None]) -> float | None:
    """Excess of the fastest clock over the slowest in %; None if one is unknown."""
    known = [mhz for mhz in clocks if mhz is not None]
    if len(known) < len(clocks):
        return None
    return traced(round(100 * (max(known) / min(known) - 1), 1), *known)
