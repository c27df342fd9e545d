# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Powers as rows: right on integers in the unit's time, within the same bounds, and free of hazards."""

import random
from dataclasses import replace

import pytest
from test_exponentiation import montgomery, plain

from modmill.contract import UnsupportedError
from modmill.designs import design
from modmill.engines.microcode.bounds import row_limits, rows_of
from modmill.engines.microcode.hazards import Hazard, check_rows
from modmill.engines.microcode.interpreter import exact, largest, run
from modmill.engines.microcode.program import DatapathSpec, Row
from modmill.engines.rsa.exponentiation import Exponentiation, fixed_window, ladder
from modmill.engines.rsa.exponentiation import left_to_right as power_of

P = 2**31 - 1
PROGRAMMES = [*(fixed_window(w) for w in (1, 2, 3, 5)), ladder(), power_of(65537), power_of(37, start="one", bits=7)]


def unit(distance):
    return DatapathSpec(0, distance, 1, 64, 8)


def made(program, contract, distance=1):
    bits = 12 if program.uniform else max(7, program.exponent.bit_length())
    power = Exponentiation(program, contract, bits)
    return power, power.rows(distance)


def raised(power, rows, distance, base, exponent, product=None):
    digits = power.program.digits(exponent, power.bits)
    return run(rows, unit(distance), power.contract, {"base": base}, digits, product)


@pytest.mark.parametrize("distance", [1, 2, 5])
@pytest.mark.parametrize("program", PROGRAMMES, ids=lambda p: p.name)
def test_rows_give_powers(program, distance):
    """On integers, and with the largest products that the contract allows."""
    rnd = random.Random(3)
    for contract, form in ((montgomery(P), program), (plain(P), _unconverted(program))):
        power, rows = made(form, contract, distance)
        check_rows(rows, unit(distance))
        exponents = [0, 1, 0xFFF, 0x800, rnd.getrandbits(12)] if form.uniform else [form.exponent]
        for exponent in exponents:
            for base in (0, 1, P - 1, rnd.randrange(P)):
                for product in (None, largest(rows, contract)):
                    assert raised(power, rows, distance, base, exponent, product) == (pow(base, exponent, P),)


def _unconverted(program):
    """The same for a multiplier without a factor."""
    if program.name == "ladder":
        return ladder(converted=False)
    if program.uniform:
        return fixed_window(program.window, converted=False)
    return power_of(program.exponent, converted=False)


@pytest.mark.parametrize("program", PROGRAMMES, ids=lambda p: p.name)
def test_rows_are_products_and_rows_that_wait(program):
    power, rows = made(program, montgomery(P))
    assert rows.rows == rows.products == power.products
    assert rows.digits == program.digit_count(power.bits)
    assert [slot for slot, _ in rows.shared] == list(range(len(program.constants)))
    _, far = made(program, montgomery(P), 3)
    assert far.products == power.products < far.rows <= 3 * power.products
    if program.name == "ladder":
        assert len(far.loop) == 2 * (2 + 2)  # the two products of a bit do not need one another


@pytest.mark.parametrize("program", PROGRAMMES, ids=lambda p: p.name)
def test_bounds_of_all_passes_are_those_of_the_formula(program):
    """Every row of every pass, x y p / R + 1 for operands below x p and y p."""
    power, rows = made(program, montgomery(P))
    held = {(True, k): (x + 1) / P for k, x in rows.shared} | {(False, slot): 1.0 for slot, _ in rows.inputs}
    for _, _, row in rows_of(rows):
        x, y = (max(held[slot] for slot in place.all) for place in row.product.reads)
        held[False, row.product.destination.number] = x * y * float(power.contract.gain) + 1
    (bound,) = row_limits(rows, power.contract).results
    assert abs(bound - held[False, rows.results[0][0]]) < 1 / (1 << 20)
    tight = replace(power.contract, product_bound=power.contract.product_bound / 8)
    with pytest.raises(UnsupportedError, match="exceed the core's limit"):
        row_limits(rows, tight)


def test_bit_exact_on_a_design():
    fitted = design("kbe").fit(2**61 - 1)
    contract = fitted.contract("native")
    for program in (fixed_window(2), ladder()):
        power = Exponentiation(program, contract, 8)
        rows = power.rows()
        assert raised(power, rows, 1, 12345, 0xA5, exact(fitted, contract)) == (pow(12345, 0xA5, 2**61 - 1),)


def test_a_row_that_does_not_wait_is_a_hazard():
    _, rows = made(fixed_window(2), montgomery(P), 2)
    check_rows(rows, unit(2))
    hasty = replace(rows, loop=tuple(row for row in rows.loop if row != Row()))
    with pytest.raises(Hazard, match="rows too early"):
        check_rows(hasty, unit(2))


def test_more_subtractions_may_be_asked_for():
    power, rows = made(fixed_window(2), montgomery(P))
    assert rows.results == ((rows.results[0][0], 1),) and power.subtractions == 1
    assert power.rows(1, 3).results[0][1] == 3
