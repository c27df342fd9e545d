# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Forms of numbers at a port: what goes in comes out, in every representation, up to the end and not beyond."""

import random

import pytest

import modmill
from modmill.contract import Binary, Digits, ResiduePair, Residues
from modmill.numbers.rns.residues import Base

A, B = Base(8, (255, 253, 251)), Base(8, (247, 241, 239))
FORMS = [Binary(12), Residues(A), ResiduePair(A, B), Digits(6, 3)]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: type(form).__name__)
def test_every_representation_decodes_to_its_number(form):
    rnd = random.Random(1)
    seen = {}
    for _ in range(300):
        x = rnd.randrange(form.end)
        for port in (form.encode(x), form.any(x, rnd)):
            assert 0 <= port < 1 << form.width
            assert form.decode(port) == x
            seen.setdefault(x, set()).add(port)
    redundant = not isinstance(form, Binary)
    assert (max(map(len, seen.values())) > 1) == redundant


@pytest.mark.parametrize("form", [Binary(5), Digits(2, 2), Digits(4, 1)])
def test_the_end_is_where_ports_end(form):
    decoded = {form.decode(port) for port in range(1 << form.width)}
    assert decoded == set(range(form.end))


def test_digits():
    form = Digits(4, 3)
    assert form.encode(0x3FFF) == 0b111111_001111_001111
    assert form.pack([17, 0, 1]) == 0b000001_000000_010001
    assert form.decode(form.pack([17, 0, 1])) == 17 + (1 << 8)
    assert form.describe()["digits"] == 3 and form.describe()["digit_bits"] == 6
    with pytest.raises(ValueError, match="does not fit in 3 digits of 6 bits"):
        form.encode(form.end)


def test_conversion_of_the_data_sheet(tmp_path):
    core = modmill.build("radix64k-mul", 2**61 - 1, "native")
    text = (core.write(tmp_path / "core") / "README.md").read_text()
    assert "redundant digits, see How to convert" in text
    names: dict = {}
    exec(text[text.index("```python\n") + 10 :].split("```")[0], names)
    form = core.contract.operand
    for x in (0, 1, 2**61 - 1, 2**62 - 3):
        assert form.decode(names["to_core"](x)) == x
        assert names["from_core"](form.any(x, random.Random(x))) == x
