# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Words of the data sheet never promise more than the exact bound."""

from decimal import Decimal
from fractions import Fraction

import pytest

from modmill.report import sheet


@pytest.mark.parametrize("bound", [Fraction(9, 8), Fraction(10**40 + 1, 3 * 10**39), Fraction(2**80 - 1, 2**79)])
def test_decimal_bounds_are_rounded_to_the_safe_side(bound):
    low, high = (Fraction(Decimal(sheet.multiple(str(bound), up=up).removesuffix(" p"))) for up in (False, True))
    assert low <= bound <= high
    assert high - low < Fraction(1, 10**9)


def test_whole_bounds():
    assert sheet.multiple("1", up=True) == "p"
    assert sheet.multiple("4", up=True) == "4 p"


def test_split():
    assert sheet.split("// a\n// b\n\nmodule m;\n\nendmodule\n") == ("// a\n// b\n", "module m;\n\nendmodule\n")
    assert sheet.split("module m;\n\nendmodule\n") == ("", "module m;\n\nendmodule\n")
    assert sheet.split("// only") == ("", "// only")


def test_identifier():
    assert sheet.identifier("sor-1m-p-P-256-plain") == "sor_1m_p_p_256_plain"
