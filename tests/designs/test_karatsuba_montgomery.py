# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Any odd modulus by pairs of digits: the algorithm at the ends of its range, the carry between the half products."""

import random

import pytest

from modmill.contract import UnsupportedError
from modmill.designs import design
from modmill.designs.karatsuba.complement import corner_bits
from modmill.designs.karatsuba.product import DIGIT
from modmill.numbers.moduli import MODULI, parse_modulus

MASK = (1 << DIGIT) - 1
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def fit(p, **settings):
    return design("karatsuba-montgomery").fit(p, **settings)


def product(fitted, a, b):
    return dict(fitted.trace(a, b))["v"]


@pytest.mark.parametrize("modulus", [m.name for m in MODULI])
def test_every_named_modulus(modulus):
    p = parse_modulus(modulus).value
    fitted = fit(p)
    top, inverse = fitted.params.limit - 1, pow(fitted.R, -1, p)
    rnd = random.Random(p)
    pairs = [(top, top), (0, top), (1, 1), *((rnd.randrange(top), rnd.randrange(top)) for _ in range(3))]
    for a, b in [*pairs, *fitted.corners()[::40]]:
        v = product(fitted, a, b)
        assert v % p == a * b * inverse % p
        assert v <= fitted.bounds[2] * p
        assert v <= top


@pytest.mark.parametrize("p", [2**51 + 1, 2**80 - 65, 3**100, ORDER, 2**255 + 95, 2**260 - 1, 2**1070 + 1])
def test_other_odd_numbers_and_their_bounds(p):
    fitted = fit(p)
    operand, _, most = fitted.bounds
    assert fitted.params.quotient_most < fitted.R + (1 << 2 * DIGIT)
    assert most < operand
    top = fitted.params.limit - 1
    assert product(fitted, top, top) * fitted.R % p == top * top % p


def test_slots():
    fitted = fit(ORDER)
    assert (fitted.cost.dsp, fitted.schedule.interval) == (19, 15)
    assert fitted.cost.multiplications == 19 * 15


def carry(q, g, b):
    """The carry as the machine makes it from digits of q and g, and the true one."""
    n = len(q)
    low = 1 << DIGIT * n
    whole, modulus = (sum(d << DIGIT * k for k, d in enumerate(digits)) for digits in (q, g))
    r = -whole * modulus % low
    columns = [sum(q[i] * g[k - i] for i in range(k + 1)) for k in range(n)]
    below = sum((q[i] >> DIGIT - b) * (g[n - 2 - i] >> DIGIT - b) for i in range(n - 1))
    bound = (below << 2 * (DIGIT - b)) >> DIGIT
    highest = r >> DIGIT * (n - 1) >> DIGIT - 1
    made = columns[n - 1] + bound + (highest << DIGIT - 1) + MASK >> DIGIT
    return made, (sum(c << DIGIT * k for k, c in enumerate(columns)) + r) // low


def extreme(n, b, count):
    """Digits whose lower bits are ones: those that the bound leaves out."""
    rnd = random.Random(n)
    rest = (1 << DIGIT - b) - 1
    for _ in range(count):
        yield [[rnd.choice((MASK, rest | rnd.getrandbits(b) << DIGIT - b)) for _ in range(n)] for _ in range(2)]


@pytest.mark.parametrize("n", [5, 7, 9, 15, 31, 63])
def test_the_carry_is_exact(n):
    b = corner_bits(n)
    for q, g in extreme(n, b, 300):
        made, true = carry(q, [g[0] | 1, *g[1:]], b)
        assert made == true


@pytest.mark.parametrize("n", [9, 15, 31])
def test_fewer_bits_do_not_suffice(n):
    """Planted: a bound from two bits less."""
    b = corner_bits(n) - 2
    assert any(len({*carry(q, g, b)}) == 2 for q, g in extreme(n, b, 3000))


def test_refusals():
    with pytest.raises(UnsupportedError, match="52 to 1071 bits, this one has 51"):
        fit(2**51 - 1)
    with pytest.raises(UnsupportedError, match="52 to 1071 bits"):
        fit(2**1071 + 1)
