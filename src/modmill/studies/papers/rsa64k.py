# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The radix-64K paper: Tables 1 and 2 cell by cell, the lemmas, and every claim that has a number.

K. Nakano, K. Kawakami, K. Shigemoto: RSA Encryption and Decryption using the Redundant Number System on the FPGA. IPDPS
Workshops, 2009.

Printed values are the paper's own (XST 10.1i, XC2VP30-6). Predicted values are counted by running the algorithm
(redundant_digits), follow from a core's schedule, or come from printed cells, as the line states. Measured values are
rows of this repository: cycles from simulation, resources from Yosys, clocks from nextpnr on ECP5, which is not the
paper's device. A missing row is shown as ``-``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
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
from modmill.studies.papers.measured_core import ROUTED, MeasuredCore, seeds, shown

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

LOOKUPS = {1024: 2}
"""Number of copies of z in our block-RAM cores, if more than one: each 29 of 57 block RAMs have their own."""

COUNTEREXAMPLE = (
    0x547B4F802DEE04B839B032E1DD89F733B96B8F02A382AB715FD570588F399EA4,
    0xFFFFFFFFFFFFFFC895453EDAA6D36CF35AC7C7A556F2854162F9F4AB13F3FC15,
)
"""Numbers below 2^256 whose product modulo the prime of secp256k1, squared, refutes the rule of Section 6."""


def sections(bench: Bench) -> Sequence[Section]:
    """Both tables, the lemmas, the claims, and our cores, with the rows of ``bench``."""
    made = [make(bench, *table) for make in (_table, _ours) for table in TABLES]
    return [*made, _lemmas(), _claims(bench)]


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
    copies = _lookups(name, bits)
    given = {"lookups": copies} if copies > 1 else {}
    return MeasuredCore(bench, name, MODULI[bits], ROUTED, redundant=redundant, **given)


def _lookups(name: str, bits: int) -> int:
    return LOOKUPS.get(bits, 1) if name == "radix64k-ram" else 1


def _table(bench: Bench, title: str, name: str, table: Mapping[bool, Sequence[Implementation]]) -> Section:
    lines = []
    for redundant, row in ((redundant, row) for redundant, rows in table.items() for row in rows):
        ours = _core(bench, name, row.bits, redundant)
        multipliers = design(name).fit(parse_modulus(MODULI[row.bits]).value).cost.dsp  # with one z, as in the paper
        more = _lookups(name, row.bits) - 1
        digits17 = "" if redundant else "printed: X in digits of 17 bits; ours of 16, as for Y and M"
        lookups = f"measured: lookups = {more + 1}, a multiplier for each after the first" if more else ""
        worst, expected = worst_cycles(row.bits, redundant), expected_cycles(row.bits, redundant)
        bound = "printed: the bound of Theorem 11, one more than the count" if redundant else ""
        misprint = "" if redundant or row.expected == expected else "misprint: (1.5 R + 2)(d + 1)"
        lines += cells(
            _name(row, redundant),
            ("clock (MHz)", row.mhz, None, shown(ours.mhz), seeds(ours)),
            ("clock cycles (worst)", row.worst, worst, None, bound),
            _time("worst", row.worst, row.mhz, row.worst_ms),
            ("clock cycles (expected)", row.expected, int(expected), None, bound or misprint),
            _time("expected", row.expected, row.mhz, row.expected_ms),
            ("slices", row.slices, None, None, "placement by the vendor's tool; LUT and FF of ours below"),
            ("multipliers", row.multipliers, multipliers, shown(ours.resource("dsp")),
             "; ".join(filter(None, [digits17, lookups]))),
        )  # fmt: skip
        if row.rams is not None:
            why = f"predicted: words of {row.bits} bits on ports of 36; ports on ECP5 have 18: {-(-row.bits // 18)}"
            why += ", and 2 for each further z" if more else ""
            needed = -(-row.bits // PAPER_PORT)
            lines += cells(_name(row, redundant), ("block RAMs", row.rams, needed, shown(ours.resource("bram")), why))
    return Section(
        title, lines,
        "Predicted cycles are counted; predicted times are the printed cycles at the printed clock, cut after three "
        "digits as the paper's are. "
        f"Measured: {ROUTED}, native io, moduli {', '.join(MODULI.values())}.",
    )  # fmt: skip


def _time(case: str, cycles: int, mhz: float, printed: float) -> tuple[Any, ...]:
    """The row of a time: as printed, and from the printed cycles and clock."""
    found = _ms(cycles, mhz)
    why = "" if found == printed else f"{cycles} cycles at {mhz:g} MHz are {1000 * cycles / mhz / 1e6:.4f} ms"
    return f"time (ms) ({case})", printed, found, None, why


def _ours(bench: Bench, title: str, name: str, table: Mapping[bool, Sequence[Implementation]]) -> Section:
    lines = []
    extra = "printed: d + 1, with its addition of -M" + ("; one more adds the last k M" if "ram" in name else "")
    for redundant, rows in table.items():
        first: float | None = None
        for row in rows:
            ours = _core(bench, name, row.bits, redundant)
            clock = ours.mhz
            after = row.bits // R + 1 if redundant else 1
            cycles = multiplications((1 << row.bits) - 1, row.bits) * ours.latency + after
            first = first or clock
            share = None if clock is None or first is None else 100 * clock / first
            lines += cells(
                _name(row, redundant),
                ("cycles a product, interval", row.bits // R + 1, ours.interval, shown(ours.seen_interval), extra),
                ("cycles a product, latency", None, ours.latency, shown(ours.seen),
                 "operands into registers, X y_0, then the iterations"),
                ("LUT", None, None, shown(ours.resource("lut"))),
                ("FF", None, None, shown(ours.resource("ff"))),
                ("time of an exponentiation (ms) (worst)", row.worst_ms, None,
                 UNKNOWN if clock is None else traced(_ms(cycles, clock), clock),
                 f"measured: {cycles:,} cycles for products that wait for one another, at the routed clock"),
                ("clock, % of that for 64 bits", round(100 * row.mhz / rows[0].mhz, 1), None, shown(share),
                 routed_by(share)),
            )  # fmt: skip
    return Section(f"Our {name} beside {title.split(':')[0]}", lines, f"{ROUTED}, native io, modulus built in.")


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
    return Section("Abstract, Sections 1, 7 and 8: claims", [
        Line("worst time for 1024 bits, abstract (ms)", 2.521, _ms(last.worst, last.mhz)),
        Line("expected time for 1024 bits, abstract (ms)", 1.892, _ms(last.expected, last.mhz)),
        Line("worst time for 1024 bits, conclusion (ms)", 2.67, round(last.worst / last.mhz / 1000, 2),
             why="that is 49.96 MHz; no clock gives both times of the conclusion"),
        Line("expected time for 1024 bits, conclusion (ms)", 1.99, round(last.expected / last.mhz / 1000, 2),
             why="that is 50.30 MHz"),
        Line("speedup by redundant numbers, 1024 bits", 2.86, round(slow.worst_ms / last.worst_ms, 2)),
        Line("E = 2^16 + 1, 1024 bits: cycles, less than", 1430, skipped + 1,
             why=f"squaring C = 1 left out: {skipped}; the algorithm as printed takes {literal}"),
        Line("E = 2^16 + 1, 1024 bits: time (ms)", 0.027, _ms(skipped, last.mhz)),
        *(
            Line(f"clock of redundant numbers: spread, {title.split(':')[0]}, %", 0,
                 _spread([row.mhz for row in table[True]]),
                 shown(_spread([_core(bench, name, bits, redundant=True).mhz for bits in SIZES])),
                 "\"fixed\"; measured: our cores, 64 to 1024 bits")
            for title, name, table in TABLES
        ),
        Line("one digit product, MUL(r + 2, r + 2), r = 16: blocks", 1, "1 and logic",
             why="blocks of Virtex-II Pro multiply 18 bits with sign, so 17 without; ECP5's take 18"),
    ], "Predicted: counted, or from the printed cells of Tables 1 and 2.")  # fmt: skip


def _spread(clocks: Sequence[float | None]) -> float | None:
    """Excess of the fastest clock over the slowest in %; None if one is unknown."""
    known = [mhz for mhz in clocks if mhz is not None]
    if len(known) < len(clocks):
        return None
    return traced(round(100 * (max(known) / min(known) - 1), 1), *known)
