# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Tables and charts of the programs of a curve."""

import re

import pytest

from modmill.contract import UnsupportedError
from modmill.cores.ecc.explain import OnDesign, explanation, table
from modmill.engines.ecc.blinding import ReferenceEngine
from modmill.engines.ecc.point_engine import Shape
from modmill.numbers.curves.named import find_curve


def test_the_table_has_every_operation_with_its_instructions():
    on = OnDesign(find_curve("Ed25519"), "pseudo-mersenne")
    rows = {line.split()[0]: line.split()[1:] for line in table(on).splitlines()[1:]}
    engine = on.engine()
    for operation in ("multiply", "multiply-base", "multiply-two"):
        program = engine.program(operation, 253)[1].program
        assert rows[operation][:2] == [str(program.instructions), str(program.products)]
    assert rows["multiply-base"][:2] == ["815", "814"]


def test_a_weierstrass_curve_has_a_sum_in_variable_time_too():
    lines = table(OnDesign(find_curve("P-192"), "wide", distances=(2, 1))).splitlines()
    fixed, variable = (re.split("  +", line) for line in lines[-2:])
    assert (fixed[0], variable[0]) == ("multiply-two", "multiply-two, variable time")
    assert int(variable[2]) < int(fixed[2])


def test_an_operation_is_drawn():
    text = explanation(OnDesign(find_curve("Curve25519"), "wide", distances=(2, 1)), "ladder", 90)
    found = [int(n) * int(times) for n, times in re.findall(r"^\w+: (\d+) instructions, (\d+) times", text, re.M)]
    assert re.search(rf"^instructions +{sum(found)}$", text, re.M)
    bit = text[text.index("bit: 11 instructions, 255 times") :].split("affine:")[0]
    assert len(re.findall("×", bit)) == 10
    assert all(name in bit for name in ("×X2", "×Z2", "×X3", "×Z3"))


@pytest.mark.parametrize(
    ("design", "io", "conditional_subtracts", "added"),
    [
        ("montgomery-array", "native", False, False), ("montgomery-array", "montgomery", True, False),
        ("multistep", "native", True, False), ("sor-2m", "native", False, False), ("hbe", "native", False, True),
        ("hbe", "montgomery", True, False),
    ],
)  # fmt: skip
def test_the_unit_follows_from_the_multiplier(design, io, conditional_subtracts, added):
    unit = OnDesign(find_curve("P-256"), design, io).unit
    assert (unit.conditional_subtracts, unit.added, unit.sums) == (conditional_subtracts, added, 0 if added else 3)


def test_its_engine_is_bit_by_bit():
    on = OnDesign(find_curve("Ed25519"), "pseudo-mersenne", shape=Shape(3))
    reference = ReferenceEngine(on.curve)
    assert on.engine().multiply_base([12345], 253, [9]) == reference.multiply_base([12345], 253, [1])


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"io": "octal"}, "takes --io montgomery or native, not octal"),
        ({"distances": (0, 1)}, "distances must be at least 1 instruction, got 0"),
        ({"sums": 0}, "must be at least 1, got 0"),
        ({"design": "nothing"}, "no design is called"),
    ],
)
def test_wrong_requests_are_refused(given, why):
    on = OnDesign(**{"curve": find_curve("P-256"), "design": "montgomery-array"} | given)
    with pytest.raises(UnsupportedError, match=why):
        table(on)
    with pytest.raises(UnsupportedError, match="not 'ladder'"):
        explanation(OnDesign(find_curve("P-256"), "montgomery-array"), "ladder")
