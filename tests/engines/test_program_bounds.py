# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Bounds of field programs and instructions: nothing overflows, what could is refused, and little is done to prevent
it."""

import random
from dataclasses import replace
from fractions import Fraction

import pytest
from test_microcode import IDLE, UNIT, program, task, wide

from modmill.contract import Fault, UnsupportedError
from modmill.designs import design
from modmill.engines.ecc.point_engine import point_program
from modmill.engines.microcode.assembly import assemble
from modmill.engines.microcode.bounds import legalise, program_bounds, subtracted_bound, sum_bound
from modmill.engines.microcode.expressions import BasicBlock
from modmill.engines.microcode.field_program import Domain, FieldProgram
from modmill.engines.microcode.interpreter import largest, run
from modmill.engines.microcode.program import ENTRY, DatapathSpec, Instruction
from modmill.engines.microcode.program import OperandAddress as Address
from modmill.numbers.curves.affine import Montgomery
from modmill.numbers.curves.named import find_curve

P = 101


def test_sums_and_conditional_subtractions_of_all_small_numbers():
    p = 7
    for top_a in range(1, 15):
        for top_b in range(1, 15):
            a, b = Fraction(top_a, p), Fraction(top_b, p)
            assert max(x + y for x in range(top_a) for y in range(top_b)) < sum_bound(p, a, b) * p
            assert max(x + y for x in range(top_a) for y in range(top_b)) == sum_bound(p, a, b) * p - 1
        for conditional_subtract in (1, 2):
            reached = max(x - conditional_subtract * p if x >= conditional_subtract * p else x for x in range(top_a))
            assert reached < subtracted_bound(Fraction(top_a, p), conditional_subtract) * p


@pytest.mark.parametrize(
    ("instructions", "contract", "why"),
    [
        ([Instruction(sums=(task("sub", 2, 0, 1, offset_multiple=0),))], {},
         "instruction 0: 0 p is added, but what is subtracted is below 1 p"),
        ([Instruction(sums=(task("add", 2, 0, 1),))], {"bits": 7}, "a sum below 1.9"),
        ([Instruction(task("mul", 2, 9, 1))], {}, "slot 9 is read before it is written"),
        ([Instruction(task("mul", 2, Address(7, shared=True), 1))], {}, "shared slot 7 is read before it is written"),
        ([Instruction(task("mul", 0, 0, 1))], {"result": 3}, "below 3 p; 0 final subtractions cannot bring it below p"),
        (
            [Instruction(sums=(task("add", 2, 0, 0),)), IDLE, Instruction(task("mul", 3, 2, 2))], {"product": 2},
            "before instruction 2: operands below .* exceed the core's limit",
        ),
    ],
)  # fmt: skip
def test_planted_overflows_are_found(instructions, contract, why):
    with pytest.raises(UnsupportedError, match=why):
        program_bounds(program(instructions, results=((0, 0),)), of(**contract))
    program_bounds(program([Instruction(task("mul", 2, 0, 1))], results=((0, 0),)), of())
    with pytest.raises(UnsupportedError, match="results: slot 7 is read before it is written"):
        program_bounds(program([Instruction(task("mul", 2, 0, 1))], results=((7, 0),)), of())


def of(bits=12, result=2, product=1 << 20):
    from modmill.contract import Binary

    form = Binary(bits)
    return replace(
        wide(P), operand=form, result=form, result_bound=Fraction(result), gain=Fraction(0),
        product_bound=Fraction(product), operand_bound=Fraction(product),
    )  # fmt: skip


def test_bounds_of_a_loop_grow_in_every_pass_until_a_slot_is_full():
    loop = [Instruction(sums=(task("add", 0, 0, 1),))]
    short = program_bounds(program((), loop, (), 5, results=((0, 5),)), of())
    assert short.results[0] == 6 - Fraction(5, P)
    with pytest.raises(UnsupportedError, match="a slot holds numbers below"):
        program_bounds(program((), loop, (), 100, results=((0, 200),)), of())
    with pytest.raises(UnsupportedError, match="results: slot 4 is read before it is written"):
        program_bounds(program((), loop, (), 5, results=((4, 5),)), of())
    long = program_bounds(program((), loop, (), 1000, results=((0, 2000),)), of(bits=40))
    assert long.results[0] == 1001 - Fraction(1000, P)


def test_a_digit_picks_the_largest_bound():
    entries = [
        Instruction(sums=(task("add", 4, 0, 1), task("add", 5, 1, 1))),
        IDLE,
        Instruction(sums=(task("add", 5, 5, 5),)),
        IDLE,
    ]
    pick = Instruction(sums=(task("add", 2, Address(4, ENTRY, size=2), 0),))
    found = program_bounds(program([*entries, pick], results=((2, 9),), window=1), of())
    assert found.results[0] == 5 - Fraction(4, P)


def test_numbers_outside_their_bounds_are_noticed_while_rows_run():
    instructions = program([Instruction(sums=(task("sub", 0, 0, 1),)), IDLE])
    with pytest.raises(Fault, match="breaks its bounds"):
        run(instructions, UNIT, of(), {"x0": 3, "x1": 5}, ())
    with pytest.raises(Fault, match="needs 1 subtractions, not 0"):
        run(program([Instruction(sums=(task("add", 0, 0, 1),)), IDLE]), UNIT, of(), {"x0": 100, "x1": 5}, ())


def field_program(formula, contract, unit):
    """A loop of three passes that sets x to what the formula makes of x and y."""
    before, loop, after = (BasicBlock(name) for name in ("before", "loop", "after"))
    domain = Domain.of(contract)
    before.set("x", domain.enter(before.variable("u")))
    before.set("y", domain.enter(before.variable("v")))
    loop.set("x", formula(loop.variable("x"), loop.variable("y")))
    after.set("r", domain.leave(after.variable("x")))
    made = FieldProgram("test", domain, ("u", "v"), ("r",), (before,), loop, after, passes=3)
    return made, legalise(made, contract, unit)


TRIMS, NONE = DatapathSpec(2, 1, 1, 64, 64, conditional_subtracts=True), DatapathSpec(2, 1, 1, 64, 64)


def test_multiples_of_p_are_subtracted_where_a_multiplier_takes_numbers_below_p_only():
    p = find_curve("P-256").p
    contract = design("multistep").fit(p).contract("native")
    made, legal = field_program(lambda x, y: (x + y) * (x - y), contract, TRIMS)
    assert legal.subtract_count == 2 and not legal.reductions
    instructions = assemble(made, contract, TRIMS).program
    assert run(instructions, TRIMS, contract, {"u": 5, "v": 3}, ()) == made.evaluate({"u": 5, "v": 3})
    with pytest.raises(UnsupportedError, match=r"block loop: .* a slot holds numbers below"):
        field_program(lambda x, y: (x + y) * (x - y), contract, NONE)


def test_a_reduction_is_inserted_where_no_multiple_of_p_can_be_subtracted():
    contract = replace(of(bits=40, product=16, result=2), factor=pow(1 << 9, -1, P))
    made, legal = field_program(lambda x, y: (x + y) * (x - y), contract, NONE)
    assert not legal.reductions
    made, legal = field_program(lambda x, y: (x + y) * ((x + y) + (x - y)), contract, NONE)
    assert legal.reductions == ("loop",)
    instructions = assemble(made, contract, NONE)
    assert dict(instructions.facts())["reductions inserted"] == "1 (loop)"
    assert instructions.program.products == made.products + 3
    for u in range(0, P, 9):
        given = {"u": u, "v": 100 - u}
        for product in (None, largest(instructions.program, contract)):
            assert run(instructions.program, NONE, contract, given, (), product) == made.evaluate(given)


def test_what_nothing_helps_is_refused():
    contract = of(bits=40, product=2, result=2)
    field_program(lambda x, y: x * y, contract, NONE)
    with pytest.raises(UnsupportedError, match="operands below 2 p and 2 p exceed the core's limit"):
        field_program(lambda x, y: x * x, contract, NONE)
    with pytest.raises(UnsupportedError, match="x is read before it is written"):
        block = BasicBlock("only")
        block.set("r", block.variable("x"))
        legalise(FieldProgram("test", Domain(P, 1), (), ("r",), (block,), None, BasicBlock("end")), of(), NONE)


DESIGNS = [
    ("montgomery-array", "native", TRIMS), ("montgomery-array", "montgomery", TRIMS),
    ("pseudo-mersenne", "native", TRIMS),
    ("pseudo-mersenne", "plain", TRIMS), ("multistep", "native", TRIMS), ("radix64k-mul", "native", TRIMS),
    ("wide", "native", TRIMS), ("orup", "native", TRIMS), ("iddmm", "native", TRIMS), ("mcivor", "native", TRIMS),
    ("tenca-koc", "native", TRIMS), ("sor-2m", "native", NONE), ("sor-2m", "plain", TRIMS),
    ("sor-ring", "native", NONE), ("mm-spa", "native", NONE), ("montgomery-array", "native", NONE),
    ("kbe", "native", DatapathSpec(0, 4, 4, 128, 512, added=True)), ("hbe", "native", DatapathSpec(0, 6, 6, 128, 512,
      added=True)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "io", "unit"), DESIGNS)
@pytest.mark.parametrize("curve_name", ["Curve25519", "Ed448", "secp256k1"])
def test_no_number_breaks_its_bounds_whatever_the_multiplier_gives(name, io, unit, curve_name):
    """Products at their largest, on every design that serves the curve."""
    curve = find_curve(curve_name)
    contract = design(name).fit(curve.p).contract(io)
    unit = replace(unit, room=128, shared_room=512)
    operation, bits = ("ladder", 255) if isinstance(curve, Montgomery) else ("multiply", 40)
    made = point_program(operation, curve, Domain.of(contract, unit.added), bits)
    instructions = assemble(made.field_program, contract, unit)
    limits = program_bounds(instructions.program, contract).tasks
    rnd = random.Random(name)
    scalar = rnd.getrandbits(bits)
    given = {n: rnd.randrange(1, curve.p) for _, n in instructions.program.inputs}
    if operation == "multiply":
        given |= dict(zip("xy", curve.base, strict=True))

    def seen(where, result):
        assert result < limits[where] * curve.p, where

    found = run(
        instructions.program, unit, contract, given, made.digits(scalar), largest(instructions.program, contract), seen
    )
    assert found == made.field_program.evaluate(given, made.digits(scalar))
    if operation == "multiply":
        assert found == curve.multiply(scalar, curve.base)
