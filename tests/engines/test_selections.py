# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Selections in place of addresses that a digit selects: the same results, all entries read, no other address."""

import random
from dataclasses import replace

import pytest
from test_exponentiation import montgomery

from marks import long
from modmill.engines.ecc.point_engine import Shape, point_program
from modmill.engines.microcode.assembly import assemble
from modmill.engines.microcode.bounds import program_bounds
from modmill.engines.microcode.field_program import Domain
from modmill.engines.microcode.hazards import Hazard, check_hazards
from modmill.engines.microcode.interpreter import largest, run
from modmill.engines.microcode.program import ENTRY, FIXED, DatapathSpec, Instruction, OperandAddress, Task
from modmill.engines.rsa.exponentiation import SELECTIONS, Exponentiation, fixed_window, ladder, with_selections
from modmill.engines.theorem.normal_forms import Forms
from modmill.engines.theorem.point_programs import PointProof
from modmill.engines.theorem.power_programs import PowerProof
from modmill.numbers.curves.affine import Edwards, Montgomery, Weierstrass

P = 2**31 - 1
CURVES = {
    "weierstrass": Weierstrass(251, (0, 2), 271, a=1, b=4),
    "edwards": Edwards(0x209, (0xDC, 0x156), 0x89, 4, a=0x208, d=0x15A),
    "montgomery": Montgomery(0x3E5, (0x203, 0x17), 0x101, 4, A=0x290, B=1),
}
POWERS = [*(fixed_window(w) for w in (1, 2, 3, 6)), ladder()]


def picks(program):
    return {
        address.pick
        for instruction in program.written for task in instruction.tasks for address in (task.destination, *task.reads)
    }  # fmt: skip


@pytest.mark.parametrize(("distance", "selected"), [(1, 1), (5, 1), (1, 2), (3, 2)])
@pytest.mark.parametrize("program", POWERS, ids=lambda p: p.name)
def test_powers(program, distance, selected):
    """The same products; each selection keeps one of two operands, and every entry is one for each digit."""
    made, contract, rnd = with_selections(program), montgomery(P), random.Random(1)
    power = Exponentiation(made, contract, 12)
    instructions = power.instructions(distance, selected=selected)
    unit = DatapathSpec(made.selections, distance, selected, 512, 8, adders=False)
    check_hazards(instructions, unit)
    program_bounds(instructions, contract)
    assert picks(instructions) == {FIXED} and power.products == Exponentiation(program, contract, 12).products
    assert 0 < made.selections <= SELECTIONS
    for exponent in (0, 1, 0xFFF, 0x800, *(rnd.getrandbits(12) for _ in range(4))):
        digits, base = made.digits(exponent, 12), rnd.randrange(P)
        for product in (None, largest(instructions, contract)):
            assert run(instructions, unit, contract, {"base": base}, digits, product) == (pow(base, exponent, P),)


def test_all_entries_are_read_for_each_digit():
    for window in (1, 3, 6):
        made = with_selections(fixed_window(window))
        of_loop = [task for step in made.loop for task in step.sums]
        read = [address.number for task in of_loop if task.bit == 0 for address in task.reads]
        assert sorted(read) == list(range(1 << window))
        assert len(of_loop) == (1 << window) - 1 and sum(step.advance for step in made.loop) == 1


@pytest.mark.parametrize(
    ("curve", "operation"),
    [
        ("weierstrass", "multiply"), ("weierstrass", "multiply-base"), ("montgomery", "ladder"),
        long("weierstrass", "multiply-two"), long("edwards", "multiply"), long("edwards", "multiply-base"),
    ],
)  # fmt: skip
def test_points(curve, operation):
    """The same results on instructions, and the theorems of the programs hold."""
    on = CURVES[curve]
    contract, unit = montgomery(on.p), DatapathSpec(3, 3, 2, 512, 512, conditional_subtracts=True)
    bits = on.n.bit_length() + 1
    made, plain = (
        point_program(operation, on, Domain.of(contract), bits, Shape(3, 3, 2), fixed_addresses=fixed)
        for fixed in (True, False)
    )
    assembled, usual = (assemble(one.field_program, contract, unit) for one in (made, plain))
    assert picks(assembled.program) == {FIXED} != picks(usual.program)
    assert assembled.program.products == usual.program.products
    rnd = random.Random(2)
    inputs = {name: rnd.randrange(1, on.p) for _, name in assembled.program.inputs}
    for _ in range(8):
        digits = tuple(rnd.getrandbits(made.field_program.window) for _ in range(made.field_program.digits))
        found = [run(x.program, unit, contract, inputs, digits) for x in (assembled, usual)]
        assert found[0] == found[1] == plain.field_program.evaluate(inputs, digits)
    assert not [part for part in PointProof(on, made, assembled, contract).parts() if part.remains]


def changed(instructions, part, change):
    """The program with one selection changed, the first of a part."""
    rows = list(getattr(instructions, part))
    k = next(k for k, row in enumerate(rows) if row.sums)
    rows[k] = replace(rows[k], sums=(change(rows[k].sums[0]), *rows[k].sums[1:]))
    return replace(instructions, **{part: tuple(rows)})


@pytest.mark.parametrize(
    ("kind", "part", "change"),
    [
        ("window", "loop", lambda task: replace(task, bit=1)),
        ("window", "before", lambda task: replace(task, a=task.b, b=task.a)),
        ("window", "loop", lambda task: replace(task, a=task.b)),
        ("ladder", "loop", lambda task: replace(task, a=task.b, b=task.a)),
    ],
)
def test_a_wrong_selection_is_found(kind, part, change):
    made = with_selections({"window": fixed_window(2), "ladder": ladder()}[kind])
    power = Exponentiation(made, montgomery(P), 12)
    instructions = power.instructions(2, selected=2)
    assert not [found for found in PowerProof(power, instructions).parts() if found.remains]
    assert [found for found in PowerProof(power, changed(instructions, part, change)).parts() if found.remains]


def test_a_selection_by_a_bit_needs_those_below():
    forms = Forms(P)
    a, b, c, d = (forms.atom(name) for name in "abcd")
    low, high = forms.chosen(0, 0, b, a), forms.chosen(0, 0, d, c)
    assert forms.chosen(0, 1, high, low) == forms.selected(0, [a, b, c, d])
    with pytest.raises(ValueError, match="bits below"):
        forms.chosen(0, 1, a, b)
    with pytest.raises(ValueError, match="bits below"):
        forms.chosen(1, 1, high, low)


@pytest.mark.parametrize(
    ("task", "unit", "said"),
    [
        ({"bit": 2}, {}, "by bit 2"), ({"bit": -1}, {}, "by bit -1"), ({}, {"added": True}, "by bit 0"),
        ({"kind": "add"}, {"adders": False}, "no adders"), ({"conditional_subtract": 1}, {}, "conditional subtract 1"),
    ],
)  # fmt: skip
def test_a_selection_that_no_unit_has_is_refused(task, unit, said):
    power = Exponentiation(fixed_window(2), montgomery(P), 12)
    places = (OperandAddress(k) for k in (6, 0, 1))
    step = Instruction(sums=(Task(task.pop("kind", "select"), *places, **task),))
    program = replace(power.instructions(), after=(step,))
    with pytest.raises(Hazard, match=said):
        check_hazards(program, DatapathSpec(1, 1, 1, 64, 8, conditional_subtracts=True, **unit))


def test_a_digit_selects_no_destination_after_selections():
    """A table that an instruction writes is not read before its last write."""
    made = with_selections(fixed_window(2))
    written = max(k for k, step in enumerate(made.before) if (False, 3) in step.written)
    assert min(k for k, step in enumerate(made.before) if step.sums) > written
    assert not any(task.destination.pick == ENTRY for step in made.written for task in step.tasks)
