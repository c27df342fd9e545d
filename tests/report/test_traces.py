# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A measured number keeps its rows through what is computed from it."""

import copy
import json
from fractions import Fraction
from statistics import median

import pytest

from modmill.report.rows import Row
from modmill.report.traces import Run, counted, origins, row_id, rows, traced

A = Row("synth", "sha256:a", "yosys 1", "ecp5-85k", None, {"lut": 3000})
B = Row("route", "sha256:a", "nextpnr 1", "ecp5-85k", 1, {"mhz": 150.0})


@pytest.mark.parametrize(
    ("computed", "value", "found"),
    [
        (lambda lut, mhz: lut / 1000, 3.0, (A,)),
        (lambda lut, mhz: 1000 / mhz, 1000 / 150, (B,)),
        (lambda lut, mhz: round(1000 / mhz, 1), 6.7, (B,)),
        (lambda lut, mhz: round(mhz), 150, (B,)),
        (lambda lut, mhz: mhz * 1e6 / 16 / lut, 3125.0, (B, A)),
        (lambda lut, mhz: 2.0 * mhz - lut, -2700.0, (B, A)),
        (lambda lut, mhz: Fraction(3, 2) * mhz, 225.0, (B,)),
        (lambda lut, mhz: median([mhz, mhz + 2]), 151.0, (B,)),
        (lambda lut, mhz: sum([lut, lut]), 6000, (A,)),
        (lambda lut, mhz: -abs(lut) // 7, -429, (A,)),
        (lambda lut, mhz: traced(1.5, lut, mhz), 1.5, (A, B)),
    ],
)
def test_arithmetic_keeps_the_rows(computed, value, found):
    result = computed(traced(3000, A), traced(150.0, B))
    assert result == pytest.approx(value)
    assert type(result).__mro__[1] is type(value)
    assert rows(result) == found


def test_what_is_no_number_or_has_no_source_stays():
    assert traced("-", A) == "-" and traced(None, A) is None and traced(True, A) is True
    assert origins(traced(5)) == () and type(traced(5)) is int


def test_a_traced_number_is_shown_copied_and_written_like_any_other():
    number = traced(1234.5, B)
    assert f"{number:,.1f}" == "1,234.5" and json.dumps([number, traced(7, A)]) == "[1234.5, 7]"
    assert rows(copy.deepcopy(number)) == (B,)


def test_a_counted_number_has_a_run_and_no_row():
    number = counted(12, "KBE on 16 channels")
    assert origins(number) == (Run("KBE on 16 channels"),) and rows(number) == ()


def test_ids_tell_rows_apart():
    seeds = {row_id(Row("route", "sha256:a", "nextpnr 1", "ecp5-85k", seed, {})) for seed in range(100)}
    assert len(seeds) == 100
    assert row_id(A) == row_id(Row("synth", "sha256:a", "yosys 1", "ecp5-85k", None, {"lut": 1}, {"date": "x"}))
