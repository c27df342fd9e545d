# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Instructions for units: what the scheduler makes passes a checker that shares nothing with it, which finds planted
faults."""

import random
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import pytest

from modmill.contract import Binary, Contract, Fault, Timing, UnsupportedError
from modmill.engines.ecc.point_engine import point_program
from modmill.engines.microcode.assembly import assemble
from modmill.engines.microcode.expressions import BasicBlock
from modmill.engines.microcode.field_program import Domain
from modmill.engines.microcode.hazards import Hazard, check_hazards
from modmill.engines.microcode.interpreter import run
from modmill.engines.microcode.program import ENTRY, PAIR, DatapathSpec, Instruction, Program, Task
from modmill.engines.microcode.program import OperandAddress as Address
from modmill.engines.microcode.scheduling import RegisterGroups, distance, place, ready_to_place
from modmill.numbers.curves.affine import Montgomery
from modmill.numbers.curves.named import find_curve
from modmill.report.chart import chart

UNITS = {
    "many threads": DatapathSpec(3, 1, 1, 128, 512, conditional_subtracts=True),
    "one sum": DatapathSpec(1, 1, 1, 128, 512, conditional_subtracts=True),
    "one thread": DatapathSpec(2, 19, 2, 128, 512, conditional_subtracts=True),
    "far sums": DatapathSpec(4, 2, 5, 128, 512, conditional_subtracts=True),
    "added": DatapathSpec(0, 1, 1, 128, 512, added=True),
    "added, one thread": DatapathSpec(0, 6, 6, 128, 512, added=True),
}


def wide(p, factor=1):
    """A multiplier with much headroom."""
    width = p.bit_length() + 20
    return Contract(
        p=p, factor=factor, io="native", operand=Binary(width), result=Binary(width), operand_bound=Fraction(1 << 16),
        product_bound=Fraction(1 << 32), result_bound=Fraction(2), timing=Timing(1, 1, 1), gain=Fraction(1, 1 << 33),
    )  # fmt: skip


@lru_cache
def assembled(operation, name, unit):
    curve = find_curve(name)
    contract = wide(curve.p, pow(1 << 600, -1, curve.p))
    bits = curve.p.bit_length() if isinstance(curve, Montgomery) else curve.n.bit_length()
    made = point_program(operation, curve, Domain.of(contract, unit.added), bits)
    return made, assemble(made.field_program, contract, unit), contract


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
@pytest.mark.parametrize(
    ("operation", "name"),
    [("multiply", "P-256"), ("multiply-two", "secp256k1"), ("multiply-base", "Ed25519"), ("ladder", "Curve25519")],
)
def test_rows_give_what_the_formulas_give(operation, name, unit):
    made, instructions, contract = assembled(operation, name, unit)
    rnd = random.Random(name)
    program = instructions.program
    for _ in range(2):
        given = {n: rnd.randrange(1, contract.p) for _, n in program.inputs}
        digits = made.digits(*(rnd.getrandbits(250) for _ in range(2 if operation == "multiply-two" else 1)))
        assert run(program, unit, contract, given, digits) == made.field_program.evaluate(given, digits)
    assert program.products == instructions.field_program.products
    assert program.digits == made.field_program.digits == len(digits)


@pytest.mark.parametrize(
    ("operation", "name", "instructions"),
    [
        ("multiply", "P-256", 3474), ("multiply-base", "P-256", 1313), ("multiply-two", "secp256k1", 2960),
        ("multiply-base", "Ed25519", 817), ("multiply-two", "Ed25519", 3090), ("ladder", "Curve25519", 2821),
    ],
)  # fmt: skip
def test_rows_of_programs_where_contexts_hide_the_latency(operation, name, instructions):
    _, found, _ = assembled(operation, name, UNITS["many threads"])
    assert found.program.instructions == instructions
    assert dict(found.facts())["instructions"] == str(instructions)


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_every_operation_of_a_basic_block_has_its_instruction(unit):
    _, found, _ = assembled("ladder", "Curve25519", unit)
    for part in found.parts:
        nodes = part.block.nodes
        for k, node in enumerate(nodes):
            assert (part.instructions[k] >= 0) == (node.kind != "read")
            for a in node.args:
                if nodes[a].kind != "read":
                    assert part.instructions[k] >= part.instructions[a] + distance(unit, nodes[a].kind)


def test_the_rows_are_drawn():
    _, found, _ = assembled("ladder", "Curve25519", UNITS["many threads"])
    text = chart(found.parts[1].schedule(UNITS["many threads"]))
    assert text.count("×") == 10
    assert "multiplier" in text and "adder 2" in text


# ---------------------------------------------------------------------------------------------- planted faults

UNIT = DatapathSpec(2, 3, 2, 16, 8, conditional_subtracts=True)


def task(kind, destination, a, b, **more):
    addresses = [x if isinstance(x, Address) else Address(x) for x in (destination, a, b)]
    return Task(kind, *addresses, **more)


def program(before=(), loop=(), after=(), passes=0, results=((0, 0),), inputs=(0, 1), **more):
    return Program(
        "planted", tuple((slot, f"x{slot}") for slot in inputs), ((0, 5), (1, 6)), tuple(before), tuple(loop),
        tuple(after), passes, results, **more,
    )  # fmt: skip


IDLE = Instruction()
SQUARE = Instruction(task("mul", 2, 0, 0))


def test_sound_instructions_pass():
    check_hazards(program([SQUARE, IDLE, IDLE, Instruction(task("mul", 3, 2, 1))]), UNIT)
    table = Address(4, ENTRY, size=2)
    entries = [Instruction(sums=(task("add", 4, 0, 1), task("add", 5, 1, 1))), IDLE]
    loop = [Instruction(task("mul", 0, 0, table), advance=True), IDLE, IDLE]
    check_hazards(program(entries, loop, (), 4, window=1), UNIT)
    check_hazards(
        program(
            [Instruction(task("mul", Address(0, PAIR), Address(0, PAIR), 3))],
            inputs=(0, 1, 3),
            results=(),
        ),
        UNIT,
    )


@pytest.mark.parametrize(
    ("instructions", "why"),
    [
        ({"before": [SQUARE, IDLE, Instruction(task("mul", 3, 2, 1))]}, "slot 2 is read 1 instructions too early"),
        ({"before": [Instruction(sums=(task("add", 2, 0, 1),)), Instruction(sums=(task("add", 3, 2, 1),))]},
         "read 1 instructions too early"),
        ({"before": [Instruction(task("mul", 2, 7, 0))]}, "slot 7 is read before it is written"),
        ({"before": [Instruction(task("mul", 2, Address(7, shared=True), 0))]},
         "shared slot 7 is read before it is written"),
        ({"before": [SQUARE, Instruction(sums=(task("add", 2, 0, 1),))]},
         "slot 2 is written while a write is pending"),
        ({"before": [Instruction(task("mul", 0, 1, 1), (task("add", 2, 0, 1),))]},
         "slot 0 is read and written by two tasks"),
        ({"before": [Instruction(sums=(task("add", 2, 0, 1), task("sub", 2, 0, 1)))]}, "slot 2 is written twice"),
        ({"before": [Instruction(sums=(task("add", 2, 0, 1),) * 3)]}, "3 sums, the unit does 2"),
        ({"before": [Instruction(sums=(task("mul", 2, 0, 1),))]}, "a second product"),
        ({"before": [Instruction(task("add", 2, 0, 1))]}, "a product of kind add"),
        ({"before": [Instruction(task("mul", 2, 0, 1, c=Address(0), e=Address(1)))]}, "does not add two products"),
        ({"before": [Instruction(task("mul", 2, 0, 1, c=Address(0)))]}, "no such task"),
        ({"before": [Instruction(task("mul", 2, 0, 1, offset_multiple=1))]}, "offset multiple 1 of a mul"),
        ({"before": [Instruction(task("mul", 16, 0, 1))]}, "slot 16 of 16"),
        ({"before": [Instruction(task("mul", 2, 0, Address(8, shared=True)))]}, "slot 8 of 8"),
        ({"before": [Instruction(task("mul", Address(0, shared=True), 0, 1))]}, "writes a shared slot"),
        ({"before": [Instruction(task("mul", 2, Address(5, ENTRY, size=2), 0))], "window": 1},
         "a table of 2 entries begins at"),
        ({"before": [Instruction(task("mul", 2, Address(4, ENTRY, size=4), 0))], "window": 1}, "digits have 1 bits"),
        ({"before": [Instruction(task("mul", 2, Address(2, PAIR), 0))]}, "slot 2 is read before it is written"),
        ({"loop": [Instruction(task("mul", 0, 0, 1)), IDLE], "passes": 2},
         "loop instruction 0 of pass 1: slot 0 is read 1 instructions too"),
        ({"loop": [SQUARE, IDLE], "passes": 2}, "slot 2 is written while a write is pending"),
        ({"before": [Instruction(task("mul", 0, 0, 1)), IDLE]}, "the result in slot 0 is not there at the end"),
        ({"before": [IDLE], "results": ((9, 0),)}, "the result in slot 9 is not there at the end"),
        ({"before": [IDLE], "passes": 3}, "3 passes of a loop of 0 instructions"),
    ],
)  # fmt: skip
def test_planted_hazards_are_found(instructions, why):
    with pytest.raises(Hazard, match=why):
        check_hazards(program(**instructions), UNIT)


def test_units_that_cannot_subtract_multiples_of_p():
    instructions = program([Instruction(sums=(task("add", 2, 0, 1, conditional_subtract=1),))])
    check_hazards(instructions, UNIT)
    with pytest.raises(Hazard, match="does not subtract multiples of p"):
        check_hazards(instructions, replace(UNIT, conditional_subtracts=False))


@pytest.mark.parametrize("unit", [UNITS["many threads"], UNITS["one thread"]])
def test_an_instruction_that_comes_too_early_is_found(unit):
    """Leave out one idle instruction, or let products take longer than the instructions were made for."""
    _, found, _ = assembled("ladder", "Curve25519", unit)
    for part in ("before", "loop", "after"):
        instructions = getattr(found.program, part)
        if instructions[-1].tasks:
            continue  # without what it does the instructions would be others, not early
        short = replace(found.program, **{part: instructions[:-1]})
        with pytest.raises(Hazard):
            check_hazards(short, unit)
    for late in ({"product_distance": unit.product_distance + 1}, {"sum_distance": unit.sum_distance + 1}):
        with pytest.raises(Hazard, match=r"too early|not there"):
            check_hazards(found.program, replace(unit, **late))


def test_a_number_read_too_early_is_the_old_one():
    contract = wide(101)
    instructions = program(
        [Instruction(task("mul", 0, 0, 1)), Instruction(task("mul", 2, 0, 1)), IDLE, IDLE], results=((2, 1),)
    )
    assert run(instructions, UNIT, contract, {"x0": 3, "x1": 5}, ()) == (15,)
    assert run(instructions, replace(UNIT, product_distance=1), contract, {"x0": 3, "x1": 5}, ()) == (75,)
    nothing = program([SQUARE, Instruction(task("mul", 3, 2, 1)), IDLE, IDLE], results=((3, 1),))
    with pytest.raises(Fault, match="slot 2 is read before it is written"):
        run(nothing, UNIT, contract, {"x0": 3, "x1": 5}, ())


@pytest.mark.parametrize(
    ("given", "digits", "why"),
    [({"x0": 101, "x1": 1}, (), "x0 must be below"), ({"x0": 1, "x1": 1}, (1,), "uses 0 digits, not 1")],
)
def test_wrong_inputs_are_refused(given, digits, why):
    with pytest.raises(UnsupportedError, match=why):
        run(program([IDLE]), UNIT, wide(101), given, digits)


# ---------------------------------------------------------------------------------------------- blocks


def test_a_variable_set_from_another_is_copied():
    block = BasicBlock("swap")
    block.set("a", block.variable("b"))
    block.set("b", block.variable("a"))
    block.set("c", block.variable("a") * block.variable("b"))
    block.set("d", block.variable("a") * block.variable("b"))
    groups = RegisterGroups()
    ready = ready_to_place(block, groups, UNIT, 1)
    assert len(set(ready.outputs.values())) == 4
    placed = place(ready, groups, UNIT)
    values = ready.evaluate({"a": 3, "b": 5}, 101)
    assert values == {"a": 5, "b": 3, "c": 15, "d": 15}
    assert placed.length >= 2


def test_digits_are_seen_in_their_order():
    block = BasicBlock("digits")
    x = block.variable("x")
    first = x * block.entry("T")
    block.next_digit()
    second = x * block.entry("T")
    block.next_digit()
    block.set("x", first * second)
    groups = RegisterGroups(tables=(("T", 2),))
    placed = place(ready_to_place(block, groups, UNIT, 1), groups, UNIT)
    instructions = {k: placed.instructions[k] for k in range(len(placed.instructions))}
    products = sorted(instruction for k, instruction in instructions.items() if instruction >= 0)
    assert placed.advances[0] >= products[0] and placed.advances[0] < products[1] <= placed.advances[1]
    mixed = BasicBlock("mixed")
    one = mixed.entry("T")
    mixed.next_digit()
    mixed.set("x", one * mixed.entry("T"))
    with pytest.raises(UnsupportedError, match="two digits"):
        place(mixed, groups, UNIT)


def test_a_unit_without_room_is_refused():
    curve = find_curve("P-256")
    contract = wide(curve.p)
    made = point_program("multiply", curve, Domain.of(contract), 256)
    with pytest.raises(UnsupportedError, match=r"needs 63 slots for each thread and \d+ shared ones; the unit has 40"):
        assemble(made.field_program, contract, replace(UNITS["many threads"], room=40))
    with pytest.raises(UnsupportedError, match="another domain"):
        assemble(made.field_program, wide(curve.p, 3), UNITS["many threads"])
