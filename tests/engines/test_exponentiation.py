# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Programs of an exponentiation: right for every exponent, the same products for each, never beyond a bound."""

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from modmill.contract import Binary, Contract, Fault, Timing, UnsupportedError
from modmill.designs import design
from modmill.engines.microcode.bounds import program_bounds
from modmill.engines.microcode.interpreter import largest, run
from modmill.engines.microcode.program import FIXED, DatapathSpec
from modmill.engines.rsa.exponentiation import Exponentiation, fixed_window, ladder, left_to_right

UNIT = DatapathSpec(0, 1, 1, 1024, 1024)
UNIFORM = [*(fixed_window(w) for w in range(1, 7)), ladder()]


def montgomery(p, bits=None):
    """Montgomery multiplication with R = 2^(bits + 2): results below 2 p are operands again."""
    bits = bits or p.bit_length()
    r = 1 << (bits + 2)
    return Contract(
        p=p, factor=pow(r, -1, p), io="native", operand=Binary(bits + 1), result=Binary(bits + 1),
        operand_bound=Fraction(2), product_bound=Fraction(4), result_bound=1 + Fraction(4 * p, r),
        timing=Timing(10, 10, 1), gain=Fraction(p, r),
    )  # fmt: skip


def product(p, bits):
    """What such a multiplier does."""
    r = 1 << (bits + 2)
    inverse = -pow(p, -1, r) % r
    return lambda a, b: (a * b + a * b * inverse % r * p) // r


def plain(p, bound=1):
    """A multiplier without a factor."""
    width = (int(bound * p) + 1).bit_length()
    return Contract(
        p=p, factor=1, io="native", operand=Binary(width), result=Binary(width), operand_bound=Fraction(4),
        product_bound=Fraction(4), result_bound=Fraction(bound), timing=Timing(1, 1, 1),
    )  # fmt: skip


@pytest.mark.parametrize("program", UNIFORM, ids=lambda p: p.name)
def test_every_base_and_exponent_of_a_small_modulus(program):
    p, bits = 13, 5
    engine = Exponentiation(program, montgomery(p), bits)
    exact = product(p, 4)
    for base in range(p):
        for exponent in range(1 << bits):
            assert engine.power(base, exponent) == pow(base, exponent, p), (base, exponent)
            assert engine.power(base, exponent, exact) == pow(base, exponent, p), (base, exponent)


@pytest.mark.parametrize("make", [lambda c: fixed_window(3, c), ladder, lambda c: left_to_right(37, converted=c)])
def test_a_multiplier_without_a_factor_needs_no_conversion(make):
    p, bits = 23, 6
    with_conversion, without = (Exponentiation(make(c), plain(p, Fraction(5, 4)), bits) for c in (True, False))
    assert without.products < with_conversion.products
    for base in range(p):
        for engine in (with_conversion, without):
            assert engine.power(base, 37) == pow(base, 37, p)
    with pytest.raises(UnsupportedError, match="must convert"):
        Exponentiation(make(False), montgomery(p), bits)


@pytest.mark.parametrize("start", ["one", "skip", "base"])
def test_left_to_right_for_every_small_exponent(start):
    p = 11
    contract = montgomery(p)
    for exponent in range(1, 70):
        bits = 7
        engine = Exponentiation(left_to_right(exponent, start=start, bits=bits), contract, bits)
        assert [engine.power(base, exponent) for base in range(p)] == [pow(base, exponent, p) for base in range(p)]
        n, ones = exponent.bit_length(), exponent.bit_count()
        assert engine.products == {"one": bits + ones + 2, "skip": n - 1 + ones + 2, "base": n + ones}[start]


def test_products_of_the_papers_algorithm():
    """Lemma 5: at most 2 R + 2 products. 65537: the paper's clock cycles ask for 20 of 65 cycles each."""
    for bits in (64, 1024):
        assert left_to_right((1 << bits) - 1, start="one").products(bits) == 2 * bits + 2
        assert fixed_window(1).products(bits) <= 2 * bits + 2
    assert left_to_right(65537, start="one").products(17) == 21
    assert left_to_right(65537, start="skip").products(17) == 20
    assert left_to_right(65537).products(17) == 19


@pytest.mark.parametrize(
    ("window", "bits", "products"), [(5, 1024, 2 + 30 + 1 + 204 * 6 + 1), (4, 8, 2 + 14 + 1 + 5 + 1)]
)
def test_products_of_the_fixed_window(window, bits, products):
    assert fixed_window(window).products(bits) == products


def test_products_of_the_ladder():
    assert ladder().products(1024) == 2 * 1024 + 3
    assert ladder().products(5) == 2 * 6 + 3


@pytest.mark.parametrize("program", UNIFORM, ids=lambda p: p.name)
def test_the_same_destinations_for_every_exponent(program):
    """What is done does not depend on the exponent; only the slot that is read does."""
    bits = 12
    instructions = Exponentiation(program, montgomery(4093), bits).instructions()
    tasks = [
        task
        for instruction in (*instructions.before, *instructions.loop, *instructions.after)
        for task in instruction.tasks
    ]
    assert {task.destination.pick for task in tasks} == {FIXED}
    assert {place.pick for task in tasks for place in task.reads} > {FIXED}
    for exponent in (0, 1, 2, 0xAAA, 0x555, 0xFFF, 0x800):
        digits = program.digits(exponent, bits)
        assert len(digits) == program.digit_count(bits) == instructions.digits


def test_a_program_of_one_exponent_takes_no_other():
    engine = Exponentiation(left_to_right(5), montgomery(13), 3)
    with pytest.raises(UnsupportedError, match="must be 5, got 7"):
        engine.power(2, 7)


@pytest.mark.parametrize("program", [fixed_window(4), ladder(), left_to_right(0x10001)], ids=lambda p: p.name)
@pytest.mark.parametrize("p", [2**64 - 59, 2**63 + 29, 3 << 62 | 1])
def test_no_product_exceeds_its_bound(program, p):
    bits = 64 if program.window else 17
    contract = montgomery(p, 64)
    engine = Exponentiation(program, contract, bits)
    exact = product(p, 64)
    instructions, reached = engine.instructions(), {}
    limits = program_bounds(instructions, contract).tasks
    rnd = random.Random(3)

    def seen(where, result):
        reached[where] = max(result, reached.get(where, 0))

    for base in (0, 1, p - 1, rnd.randrange(p)):
        exponent = rnd.randrange(1 << bits) if program.window else 0x10001
        digits = program.digits(exponent, bits)
        for multiply in (lambda _, x: exact(*x), largest(instructions, contract)):
            run(instructions, UNIT, contract, {"base": base}, digits, multiply, seen)
    assert set(reached) == set(limits) and engine.subtractions == 1
    assert all(reached[where] < bound * p for where, bound in limits.items())


def test_the_subtraction_at_the_end_is_needed():
    p = 23
    engine = Exponentiation(fixed_window(2), montgomery(p), 4)
    assert engine.power(0, 3) == 0
    engine.subtractions = 0
    with pytest.raises(Fault, match="needs 1 subtractions, not 0"):
        engine.power(0, 3)


def test_a_wrong_order_of_digits_is_noticed():
    engine = Exponentiation(fixed_window(3), montgomery(1009), 12)
    digits = engine.program.digits
    assert engine.power(7, 0o1234) == pow(7, 0o1234, 1009)
    broken = Exponentiation(fixed_window(3), montgomery(1009), 12)
    object.__setattr__(broken.program, "digits", lambda e, b, _: digits(e, b)[::-1])
    assert broken.power(7, 0o1234) == pow(7, 0o4321, 1009)


def test_a_program_that_could_overflow_is_refused():
    tight = replace(montgomery(2**31 - 1), product_bound=Fraction(1))
    with pytest.raises(UnsupportedError, match=r"window-2, before instruction \d+: operands below .* exceed the core"):
        Exponentiation(fixed_window(2), tight, 16)
    with pytest.raises(UnsupportedError, match="whose results can be operands"):
        Exponentiation(ladder(), replace(montgomery(2**31 - 1), result=Binary(40)), 16)
    with pytest.raises(UnsupportedError, match="two operands"):
        Exponentiation(ladder(), replace(montgomery(2**31 - 1), operands=1), 16)


def test_bases_and_exponents_out_of_range_are_refused():
    engine = Exponentiation(fixed_window(2), montgomery(2**31 - 1), 8)
    for base in (-1, 2**31 - 1):
        with pytest.raises(UnsupportedError, match="below the modulus of 31 bits"):
            engine.power(base, 3)
    with pytest.raises(UnsupportedError, match=r"must be in \[0, 2\^8\), got one of 9 bits"):
        engine.power(2, 256)
    with pytest.raises(UnsupportedError, match="window must have 1 to 8 bits, got 9"):
        fixed_window(9)
    with pytest.raises(UnsupportedError, match="one of one, skip, base, not 'zero'"):
        left_to_right(3, start="zero")
    with pytest.raises(UnsupportedError, match="at least 1"):
        left_to_right(0)
    with pytest.raises(UnsupportedError, match="at least 1 bit, got 0"):
        Exponentiation(fixed_window(2), montgomery(2**31 - 1), 0)


@pytest.mark.parametrize("name", ["sor-1m-p", "kbe", "sor-ring"])
def test_designs_of_the_house_run_bit_exact(name):
    p = 2**61 - 1
    fitted = design(name).fit(p)
    contract = fitted.contract("native")
    converted = contract.factor != 1
    rnd = random.Random(5)
    for program in (fixed_window(2, converted), ladder(converted)):
        engine = Exponentiation(program, contract, 8)
        base, exponent = rnd.randrange(p), rnd.randrange(256)
        assert engine.power(base, exponent, fitted.multiply) == pow(base, exponent, p)
        assert engine.power(base, exponent) == pow(base, exponent, p)


def test_a_length_of_rsa_takes_moments():
    p = (1 << 1024) - 105
    engine = Exponentiation(fixed_window(5), montgomery(p), 1024)
    exponent = random.Random(1).getrandbits(1024)
    assert engine.power(3, exponent) == pow(3, exponent, p)


def test_cycles_of_the_papers_theorem_11():
    """A product takes d + 1 cycles and the last conversion 2 d + 1: the exact counts behind the printed bounds."""
    for bits, cycles in ((64, 659), (128, 2339), (256, 8771), (512, 33923), (1024, 133379)):
        d = bits // 16
        worst = left_to_right((1 << bits) - 1, start="one").products(bits)
        assert worst * (d + 1) + 2 * d + 1 == cycles < (2 * bits + 4) * (d + 1)
    assert left_to_right(65537, start="skip").products(17) * 65 + 2 * 64 + 1 == 1429 < 1430
    assert left_to_right(65537, start="one").products(17) * 65 + 2 * 64 + 1 == 1494
