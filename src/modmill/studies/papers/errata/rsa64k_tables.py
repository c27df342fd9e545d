# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Errors of the radix-64K paper in its cycles, its tables, and its claims about them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from modmill.numbers.redundant_digits import Radix, exponentiation_cycles, multiplications
from modmill.report.errata import Figure, Item, Value, Verdict, decimal
from modmill.studies.papers.rsa64k import (
    SIZES,
    TABLE_1,
    TABLE_2,
    Implementation,
    expected_cycles,
    worst_cycles,
)


def exact(printed: float) -> Fraction:
    """A printed number as an exact fraction."""
    return Fraction(str(printed))


def _bound_and_count() -> Sequence[Value]:
    return [", ".join(str(worst_cycles(bits, True)) for bits in SIZES),
            ", ".join(str((2 * bits + 4) * (bits // 16 + 1)) for bits in SIZES)]  # fmt: skip


def _expected() -> Sequence[Value]:
    return [int(expected_cycles(bits, False)) for bits in SIZES]


def _ms(cycles: int, row: Implementation) -> Fraction:
    return cycles / exact(row.mhz) / 1000


def _time_of_256() -> Sequence[Value]:
    cells = [(case, row) for t in (TABLE_1, TABLE_2) for rows in t.values() for row in rows for case in "we"]
    cut = sum(Fraction(_ms(row.worst if case == "w" else row.expected, row) * 1000 // 1, 1000)
              == exact(row.worst_ms if case == "w" else row.expected_ms) for case, row in cells)  # fmt: skip
    return [f"{decimal(_ms(6596, TABLE_1[True][2]), 4)} ms", cut, len(cells)]


def _zero_missing() -> Sequence[Value]:
    row = TABLE_2[False][0]
    return [f"{decimal(_ms(cycles, row), 4)} ms" for cycles in (row.worst, row.expected)]


def _conclusion() -> Sequence[Value]:
    row = TABLE_2[True][-1]
    clocks = [
        f"{decimal(cycles / exact(ms) / 1000, 2)} MHz" for cycles, ms in ((row.worst, 2.67), (row.expected, 1.99))
    ]
    # any clock for which the time is cut or rounded to the printed one
    ranges = [(cycles / (exact(ms) + Fraction(1, 100)), cycles / (exact(ms) - Fraction(1, 200)))
              for cycles, ms in ((row.worst, 2.67), (row.expected, 1.99))]  # fmt: skip
    one = max(low for low, _ in ranges) <= min(high for _, high in ranges)
    return [*(f"{decimal(_ms(cycles, row), 3)} ms" for cycles in (row.worst, row.expected)), *clocks,
            "yes" if one else "no"]  # fmt: skip


def _short_exponent() -> Sequence[Value]:
    counts = (int(exponentiation_cycles(multiplications(65537, 17, skip_one=skip), 64)) for skip in (True, False))
    return [value for count in counts for value in (count, "yes" if count < 1430 else "no")]


def _one_multiplier() -> Sequence[Value]:
    largest = (1 << 17) - 1  # of a signed factor of 18 bits
    return ["yes" if Radix(16).full <= largest else "no", largest.bit_length()]


def _seventeen_bits() -> Sequence[Value]:
    needed = {bits: -(-bits // 17) for bits in SIZES}
    agree = sum((row.multipliers, other.multipliers) == (2 * needed[row.bits] + 1, needed[row.bits])
                for row, other in zip(TABLE_1[False], TABLE_2[False], strict=True))  # fmt: skip
    return [2 * needed[256] + 1, needed[256], agree]


def _ten_times() -> Sequence[Value]:
    last = TABLE_2[True][-1]
    times = [exact(ms) / exact(ours) for ms, ours in ((22.7, last.expected_ms), (11.95, last.worst_ms))]
    return [value for x in times for value in (decimal(x, 1), "yes" if x > 10 else "no")]


ITEMS = (
    Item(
        10, "Theorem 11, Tables 1 and 2", "660, 2340, 8772, 33924, 133380 clock cycles (worst)",
        "the number of cycles.", Verdict.PARTLY,
        "(2 R + 4)(d + 1) is a bound, and the count one less, by Section 6's own formula.",
        "the bound of Theorem 11; it is right.",
        (
            Figure("cycles for 64 to 1024 bits", "660, 2340, 8772, 33924, 133380", "659, 2339, 8771, 33923, 133379"),
            Figure("the bound of Theorem 11", "660, 2340, 8772, 33924, 133380", "660, 2340, 8772, 33924, 133380"),
        ),
        _bound_and_count, ("tests/numbers/test_redundant.py::test_theorem_11",),
    ),
    Item(
        11, "Tables 1 and 2", "non-redundant, expected cycles: 480, 1746, 6562, 25344, 99970", "(1.5 R + 2)(d + 1).",
        Verdict.PARTLY, "Misprints for 64 and 512 bits; the other three are right.",
        figures=(
            Figure("64 bits", 480, 490), Figure("128 bits", 1746, 1746), Figure("256 bits", 6562, 6562),
            Figure("512 bits", 25344, 25410), Figure("1024 bits", 99970, 99970),
        ),
        compute=_expected,
    ),
    Item(
        12, "Table 1", "256 bits, redundant, expected time: 0.161 ms", "expected cycles over the clock.",
        Verdict.PARTLY,
        "6596 cycles at 40.38 MHz are 0.163 ms. All other times but the two of item 13 are cycles over clock, cut "
        "after three digits.",
        figures=(
            Figure("6596 cycles at 40.38 MHz", "0.1610 ms", "0.1633 ms"),
            Figure("times of both tables that are cycles over clock, cut after three digits", 40, 37),
            Figure("times of both tables", 40, 40),
        ),
        compute=_time_of_256,
        tests=("tests/studies/papers/test_rsa64k.py::test_cells_that_differ_are_those_in_the_errata",),
    ),
    Item(
        13, "Table 2", "64 bits, non-redundant: 0.09 and 0.07 ms", "650 and 480 cycles at 68.06 MHz.", Verdict.MISPRINT,
        "A zero is missing: 0.009 and 0.007 ms.",
        figures=(
            Figure("650 cycles", "0.0900 ms", "0.0096 ms"), Figure("480 cycles", "0.0700 ms", "0.0071 ms"),
        ),
        compute=_zero_missing,
    ),
    Item(
        14, "Conclusion", '"2.67ms and in expected 1.99ms"', "the times of Table 2 for 1024 bits.", Verdict.WRONG,
        "Tables and abstract have 2.521 and 1.892 ms. The times of the conclusion belong to about 50 MHz, and not to "
        "one clock.",
        "an older implementation; no single clock gives both.",
        (
            Figure("worst time", "2.670 ms", "2.521 ms"), Figure("expected time", "1.990 ms", "1.892 ms"),
            Figure("clock for the worst time", None, "49.96 MHz"),
            Figure("clock for the expected time", None, "50.30 MHz"),
            Figure("some clock gives both, rounded or cut", None, "no"),
        ),
        _conclusion, ("tests/studies/papers/test_rsa64k.py::test_lemmas_and_claims",),
    ),
    Item(
        15, "Section 1", 'E = 2^16 + 1 "in less than (18 + 4)(1024/16 + 1) = 1430 clock cycles"',
        "the algorithm of Section 4 as printed.", Verdict.PARTLY,
        "True if the squaring of C = 1 is left out, which the algorithm as printed does not do.",
        "with the first squaring, of 1, left out; this holds.",
        (
            Figure("cycles without the squaring of 1", None, 1429),
            Figure("cycles without the squaring of 1 are below 1430", "yes", "yes"),
            Figure("cycles of the algorithm as printed", None, 1494),
            Figure("cycles of the algorithm as printed are below 1430", "yes", "no"),
        ),
        _short_exponent, ("tests/numbers/test_redundant.py::test_rsa_with_a_short_exponent",),
    ),
    Item(
        16, "Sections 5 and 7", "one embedded multiplier for each MUL(r + 2, r + 2) with r = 16",
        "a multiplier block multiplies two 18-bit digits.", Verdict.WRONG,
        "The device's multipliers take signed numbers of 18 bits (its data sheet), that is 17 unsigned bits. A "
        "product of two 18-bit digits needs additional adders in logic; their cost is included in the slices.",
        "one block and logic; this is what the tables count.",
        (
            Figure("the largest digit fits in a factor of the block", "yes", "no"),
            Figure("unsigned bits that fit", 18, 17),
        ),
        _one_multiplier,
    ),
    Item(
        17, "Tables 1 and 2", "non-redundant, 256 bits: 31 and 15 multipliers",
        "digits of 17 bits, 2 ceil(R / 17) + 1 and ceil(R / 17) multipliers, as for the other sizes.",
        Verdict.UNEXPLAINED, "A 256-bit number has 16 digits of 17 bits. With 31 and 15 the last bit must be in logic.",
        figures=(
            Figure("Theorem 9, 256 bits", 31, 33), Figure("Theorem 10, 256 bits", 15, 16),
            Figure("of five sizes, as by the formulas", 5, 4),
        ),
        compute=_seventeen_bits,
    ),
    Item(
        19, "Section 1", '"Thus, our implementation runs more than 10 times faster"',
        "than the two implementations named before, those of Blum et al. and Amanor et al.", Verdict.PARTLY,
        "It holds against the estimate of Amanor et al. (22.7 ms expected) and not against Blum et al. (11.95 ms).",
        "than Amanor et al. alone, the last one named; this holds.",
        (
            Figure("times as fast as Amanor et al.", None, "12.0"), Figure("Amanor et al.: above 10", "yes", "yes"),
            Figure("times as fast as Blum et al.", None, "4.7"), Figure("Blum et al.: above 10", "yes", "no"),
        ),
        _ten_times,
    ),
)  # fmt: skip
