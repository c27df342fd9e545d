# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Powers as instructions: right on integers in the unit's time, within the same bounds, and free of hazards."""

import random
from dataclasses import replace

import pytest
from test_exponentiation import montgomery, plain

from modmill.contract import UnsupportedError
from modmill.designs import design
from modmill.engines.microcode.bounds import program_bounds
from modmill.engines.microcode.hazards import Hazard, check_hazards
from modmill.engines.microcode.interpreter import exact, largest, run
from modmill.engines.microcode.program import DatapathSpec, Instruction
from modmill.engines.rsa.exponentiation import Exponentiation, fixed_window, ladder
from modmill.engines.rsa.exponentiation import left_to_right as power_of

P = 2**31 - 1
PROGRAMMES = [*(fixed_window(w) for w in (1, 2, 3, 5)), ladder(), power_of(65537), power_of(37, start="one", bits=7)]


def unit(distance):
    return DatapathSpec(0, distance, 1, 64, 8)


def made(program, contract, distance=1):
    bits = 12 if program.window else max(7, program.exponent.bit_length())
    power = Exponentiation(program, contract, bits)
    return power, power.instructions(distance)


def raised(power, instructions, distance, base, exponent, product=None):
    digits = power.program.digits(exponent, power.bits)
    return run(instructions, unit(distance), power.contract, {"base": base}, digits, product)


@pytest.mark.parametrize("distance", [1, 2, 5])
@pytest.mark.parametrize("program", PROGRAMMES, ids=lambda p: p.name)
def test_rows_give_powers(program, distance):
    """On integers, and with the largest products that the contract allows."""
    rnd = random.Random(3)
    for contract, form in ((montgomery(P), program), (plain(P), _unconverted(program))):
        power, instructions = made(form, contract, distance)
        check_hazards(instructions, unit(distance))
        exponents = [0, 1, 0xFFF, 0x800, rnd.getrandbits(12)] if form.window else [form.exponent]
        for exponent in exponents:
            for base in (0, 1, P - 1, rnd.randrange(P)):
                for product in (None, largest(instructions, contract)):
                    assert raised(power, instructions, distance, base, exponent, product) == (pow(base, exponent, P),)


def _unconverted(program):
    """The same for a multiplier without a factor."""
    if program.name == "ladder":
        return ladder(converted=False)
    if program.window:
        return fixed_window(program.window, converted=False)
    return power_of(program.exponent, converted=False)


@pytest.mark.parametrize("program", PROGRAMMES, ids=lambda p: p.name)
def test_rows_are_products_and_rows_that_wait(program):
    power, instructions = made(program, montgomery(P))
    assert instructions.instructions == instructions.products == power.products
    assert instructions.digits == program.digit_count(power.bits)
    assert [slot for slot, _ in instructions.shared] == list(range(len(program.constants)))
    _, far = made(program, montgomery(P), 3)
    assert far.products == power.products < far.instructions <= 3 * power.products
    if program.name == "ladder":
        assert len(far.loop) == 2 * (2 + 2)  # the two products of a bit do not need one another


@pytest.mark.parametrize("program", PROGRAMMES, ids=lambda p: p.name)
def test_bounds_of_all_passes_are_those_of_the_formula(program):
    """Every instruction of every pass, x y p / R + 1 for operands below x p and y p."""
    power, instructions = made(program, montgomery(P))
    held = {(True, k): (x + 1) / P for k, x in instructions.shared} | {
        (False, slot): 1.0 for slot, _ in instructions.inputs
    }
    for _, _, instruction in instructions.executed():
        x, y = (max(held[slot] for slot in place.all) for place in instruction.product.reads)
        held[False, instruction.product.destination.number] = x * y * float(power.contract.gain) + 1
    (bound,) = program_bounds(instructions, power.contract).results
    assert abs(bound - held[False, instructions.results[0][0]]) < 1 / (1 << 20)
    tight = replace(power.contract, product_bound=power.contract.product_bound / 8)
    with pytest.raises(UnsupportedError, match="exceed the core's limit"):
        program_bounds(instructions, tight)


def test_bit_exact_on_a_design():
    fitted = design("kbe").fit(2**61 - 1)
    contract = fitted.contract("native")
    for program in (fixed_window(2), ladder()):
        power = Exponentiation(program, contract, 8)
        instructions = power.instructions()
        assert raised(power, instructions, 1, 12345, 0xA5, exact(fitted, contract)) == (pow(12345, 0xA5, 2**61 - 1),)


def test_a_row_that_does_not_wait_is_a_hazard():
    _, instructions = made(fixed_window(2), montgomery(P), 2)
    check_hazards(instructions, unit(2))
    hasty = replace(
        instructions, loop=tuple(instruction for instruction in instructions.loop if instruction != Instruction())
    )
    with pytest.raises(Hazard, match="instructions too early"):
        check_hazards(hasty, unit(2))


def test_more_subtractions_may_be_asked_for():
    power, instructions = made(fixed_window(2), montgomery(P))
    assert instructions.results == ((instructions.results[0][0], 1),) and power.subtractions == 1
    assert power.instructions(1, 3).results[0][1] == 3
