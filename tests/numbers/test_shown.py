# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Values in messages: whole up to their limit, and their ends beyond it."""

import pytest

from modmill.numbers.shown import name, shortened


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ("a" * 48, f"'{'a' * 48}'"),
        ("a" * 29 + "bc" + "d" * 10 + "e" * 8, f"'{'a' * 29}b...{'e' * 8}' (49 characters)"),
        (True, "True"),
        (1 << 127, str(1 << 127)),
        (-(1 << 128), "-0x1000000000000000...00000000 (129 bits)"),
        ([1] * 16, str([1] * 16)),
        ([1] * 17, f"{str([1] * 17)[:30]}...{str([1] * 17)[-8:]}"),
    ],
)
def test_values(item, text):
    assert shortened(item) == text


def test_names():
    assert name("a\nb") == "a?b"
    assert name("a" * 119) == "a" * 119
    assert name("a" * 120) == "a" * 120
    assert name("a" * 59 + "b" * 62) == f"{'a' * 59}b...{'b' * 50}"
