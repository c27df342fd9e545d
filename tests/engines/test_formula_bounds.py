# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Bounds of a loop that doubles a point: refused with the numbers where the base is too tight, reached by no number."""

from dataclasses import fields, replace

import pytest

from modmill.contract import Contract, UnsupportedError
from modmill.designs import design
from modmill.engines.microcode.assembly import assemble
from modmill.engines.microcode.bounds import program_bounds
from modmill.engines.microcode.expressions import BasicBlock
from modmill.engines.microcode.field_program import Domain, FieldProgram
from modmill.engines.microcode.interpreter import exact, largest, run
from modmill.engines.microcode.program import DatapathSpec, Instruction, OperandAddress, Program, Task
from trial import loadable

P = 2**31 - 1
SECP256K1 = 2**256 - 2**32 - 977
UNIT = DatapathSpec(1, 1, 1, 16, 16)


def instructions(*operations):
    """Instructions of one operation each, (kind, destination, a, b), on two inputs."""
    tasks = [Task(kind, *map(OperandAddress, slots)) for kind, *slots in operations]
    made = tuple(Instruction(task) if task.kind == "mul" else Instruction(sums=(task,)) for task in tasks)
    return Program("instructions", ((0, "a"), (1, "b")), (), made, (), (), 0, ())


def doubling(contract, passes=3):
    """Point doublings on y^2 = x^3 + 7 in Jacobian coordinates, one in each pass of a loop."""
    s = BasicBlock("doubling")
    x, y, z = (s.variable(name) for name in "xyz")
    a, b = x * x, y * y
    d, e = 2 * ((x + b) * (x + b) - a - b * b), 3 * a
    x3 = e * e - 2 * d
    for name, value in zip("xyz", (x3, e * (d - x3) - 8 * (b * b), 2 * (y * z)), strict=True):
        s.set(name, value)
    names = ("x", "y", "z")
    return FieldProgram("doubling", Domain.of(contract), names, names, (), s, BasicBlock("end"), passes)


def doubled(p, x, y, z):
    a, b, e = x * x, y * y, 3 * x * x
    d = 4 * x * b
    x3 = e * e - 2 * d
    assert d == 2 * ((x + b) ** 2 - a - b * b)
    return x3 % p, (e * (d - x3) - 8 * b * b) % p, 2 * y * z % p


def test_a_result_bound_that_follows_its_operands_allows_what_one_number_refuses():
    steps = instructions(("mul", 2, 0, 1), ("add", 3, 2, 2), ("mul", 0, 3, 2))
    growing = loadable.contract(12, 511)
    assert program_bounds(steps, growing).tasks[0, 2, 0] < 2
    fixed = Contract(**{f.name: getattr(growing, f.name) for f in fields(Contract)} | {"gain": 0})
    with pytest.raises(UnsupportedError, match=r"before instruction 2: operands below 3.998\d+ p and 2 p exceed"):
        program_bounds(steps, fixed)


def test_a_formula_within_bounds_passes_and_its_results_enter_again():
    contract = design("sor-1m-p").fit(SECP256K1).contract("native")
    made = assemble(doubling(contract, 1000), contract, UNIT)
    assert not made.legal.reductions
    assert 2 < max(made.legal.results) <= max(program_bounds(made.program, contract).tasks.values())
    assert max(program_bounds(made.program, contract).tasks.values()) < contract.operand_bound
    differences = [task for instruction in made.program.loop for task in instruction.sums if task.kind == "sub"]
    assert 2 in {task.offset_multiple for task in differences}, "a product is below 1.13 p"


def test_a_formula_whose_sums_exceed_the_bound_is_refused_with_the_numbers():
    contract = design("sor-1m-p").fit(SECP256K1).contract("native")
    tight = design("sor-1m-p").fit(SECP256K1, n=43).contract("native")
    assert tight.closed
    made = assemble(doubling(contract), contract, UNIT).program
    with pytest.raises(
        UnsupportedError, match=r"loop instruction \d+: operands below \d.* exceed the core's limit of 10 p\^2"
    ):
        program_bounds(made, tight)
    assert assemble(doubling(tight), tight, UNIT).legal.reductions


def test_a_binary_core_takes_no_sums():
    contract = design("sor-1m-p").fit(P, n=16).contract("plain")
    with pytest.raises(UnsupportedError, match="before instruction 0: a sum below 2 p, a slot holds numbers below"):
        program_bounds(instructions(("add", 2, 0, 1), ("mul", 2, 2, 0)), contract)


def test_bounds_hold_for_the_largest_numbers():
    fitted = design("sor-1m-p").fit(SECP256K1)
    contract = fitted.contract("native")
    made = assemble(doubling(contract), contract, UNIT).program
    limits = program_bounds(made, contract).tasks

    def seen(where, result):
        assert result < limits[where] * SECP256K1

    for numbers in ([SECP256K1 - 1] * 3, [0, 0, 0], [0, SECP256K1 - 1, 0], [5, 7, 11]):
        wanted = numbers
        for _ in range(3):
            wanted = doubled(SECP256K1, *wanted)
        for product in (exact(fitted, contract), largest(made, contract)):
            given = dict(zip("xyz", numbers, strict=True))
            assert run(made, UNIT, contract, given, (), product, seen) == wanted


def test_a_difference_adds_the_least_multiple_of_p_that_serves():
    contract = design("sor-1m-p").fit(SECP256K1).contract("native")
    made = assemble(doubling(contract), contract, UNIT).program
    for k, instruction in enumerate(made.loop):
        for task in (task for task in instruction.sums if task.kind == "sub"):
            less = Instruction(
                instruction.product,
                tuple(replace(t, offset_multiple=t.offset_multiple - (t is task)) for t in instruction.sums),
                instruction.advance,
            )
            with pytest.raises(
                UnsupportedError,
                match=f"loop instruction {k}: {task.offset_multiple - 1} p is added, but what is subtracted",
            ):
                program_bounds(replace(made, loop=(*made.loop[:k], less, *made.loop[k + 1 :])), contract)
