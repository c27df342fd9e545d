# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Any odd modulus by pairs of digits: the algorithm at the ends of its range, the carry between the half products."""

import random

import pytest

from modmill.contract import UnsupportedError
from modmill.cores.multiplier.build import build
from modmill.cores.multiplier.verify import SHORT, Report, simulate
from modmill.designs import design
from modmill.designs.karatsuba import complement
from modmill.designs.karatsuba.complement import bound_of_sum, corner_bits
from modmill.designs.karatsuba.montgomery import DIGITS_MOST, MontgomeryParams
from modmill.designs.karatsuba.product import DIGIT, LONG
from modmill.flow.simulate import Simulator, widths
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


@pytest.mark.parametrize("p", [2**51 + 1, 2**80 - 65, 3**100, ORDER, 2**255 + 95, 2**260 - 1, 2**1070 + 1, 2**4096 + 1])
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


def carry(q, p, n):
    """The carry as the machine makes it from q and p, and the true one."""
    r = -q * p % (1 << DIGIT * n)
    digits = [[number >> DIGIT * k & MASK for k in range(n)] for number in (q, p)]
    below = sum(x * y << DIGIT * (j + k) for j, x in enumerate(digits[0]) for k, y in enumerate(digits[1][: n - j]))
    return bound_of_sum(q, r, p, n) + MASK >> DIGIT, below + r >> DIGIT * n


def extreme(n, b, count):
    """Numbers of digits whose lower bits are ones: those that the bound leaves out."""
    rnd = random.Random(n)
    rest = (1 << DIGIT - b) - 1
    digit = lambda: rnd.choice((MASK, rest | rnd.getrandbits(b) << DIGIT - b))  # noqa: E731
    for _ in range(count):
        yield [sum(digit() << DIGIT * k for k in range(n)) for _ in range(2)]


@pytest.mark.parametrize("n", [5, 7, 9, 15, 31, 63, 65, 121, 127, 129, DIGITS_MOST])
def test_the_carry_is_exact(n):
    for q, p in extreme(n, corner_bits(n), 300):
        made, true = carry(q, p | 1, n)
        assert made == true


@pytest.mark.parametrize("n", [9, 15, 31])
def test_fewer_bits_do_not_suffice(n, monkeypatch):
    """Planted: a bound from two bits less."""
    b = corner_bits(n)
    monkeypatch.setattr(complement, "corner_bits", lambda n: b - 2)
    assert any(len({*carry(q, p, n)}) == 2 for q, p in extreme(n, b - 2, 3000))


@pytest.mark.parametrize("p", [2**52 - 59, ORDER, 2**521 - 1, 2**1024 - 105])
def test_corners_reach_the_edges_of_the_carry(p):
    """Their quotients are the chosen ones. The sum is at its bound, or above it by nearly as much as bits are left out;
    with an error of 1 in the sum, a carry is wrong."""
    fitted = fit(p)
    q = fitted.params
    above, found = [], set()
    for a, b in fitted.corners():
        assert max(a, b) < q.limit
        r = (a * b >> DIGIT) + (a * b & MASK) * q.P
        quotient = r * q.f % (1 << q.n)
        found.add(quotient)
        made, true = carry(quotient, p, q.digits)
        assert made == true
        total = bound_of_sum(quotient, r % (1 << q.n), p, q.digits)
        above.append((true << DIGIT) - total)
        assert -(-(total + 1) >> DIGIT) == true + (above[-1] == 0)
    assert min(above) == 0
    left_out = (q.digits - 1 << DIGIT + 1 - corner_bits(q.digits)) + (1 << DIGIT - 1)
    assert 0.75 * left_out < max(above) < 1 << DIGIT
    assert len(found) > 0.9 * len(fitted.corners()) / 2


@pytest.mark.parametrize(("p", "widest"), [(2**80 - 65, 2**80 - 1), (2**87 - 67, 2**87 - 1), (ORDER, 2**256 - 1)])
def test_a_loaded_modulus(p, widest):
    """The words are the tables, with whole highest digits; each modulus up to the width has the same bounds."""
    fitted = fit(p, loadable=True)
    q = fitted.params
    n, names = q.digits, [table.name for table in q.tables]
    digit = {name: fitted.load.words[n * k : n * (k + 1)] for k, name in enumerate(names)}
    assert len(fitted.load.words) == n * len(names) == n * (n // 2 + 5)
    assert sum(d << DIGIT * k for k, d in enumerate(digit["q_square_constant"])) == p
    assert sum(d << DIGIT * k for k, d in enumerate(digit["P_digit"])) == q.P
    assert max(fitted.load.words) < 1 << fitted.load.width
    for other in (widest, 3, p):
        loaded = fitted.at(other)
        assert (loaded.width, loaded.R, loaded.operand_bits) == (p.bit_length(), fitted.R, fitted.operand_bits)
        top = loaded.params.limit - 1
        v = product(loaded, top, top)
        assert v * fitted.R % other == top * top % other
        assert v <= top
    with pytest.raises(UnsupportedError, match=rf"below 2\^{p.bit_length()}"):
        fitted.at(widest + 2)
    with pytest.raises(UnsupportedError, match="built in"):
        fit(p).at(p)


@pytest.mark.long
@pytest.mark.parametrize("loadable", [False, True])
def test_long_products(loadable):
    """From 65 digits on strobes come from a ring, and the bound of the carry takes a cycle more."""
    core = build("karatsuba-montgomery", 2**1100 - 1, "native", loadable=loadable)
    report = Report(core.name)
    simulate(core, Simulator(core.verilog, widths=widths(core.contract), instances=2), report, vectors=20, effort=SHORT)
    assert core.fitted.params.digits == LONG and not report.failures


def test_the_rtl_depends_on_the_width_of_a_loaded_modulus_only():
    texts = {build("karatsuba-montgomery", p, "native", loadable=True).verilog for p in (2**87 - 67, 2**86 + 1)}
    assert len(texts) == 1


def test_exchanged_words_are_found(monkeypatch):
    """Planted: two words of the load are exchanged; the results are wrong."""
    core = build("karatsuba-montgomery", 2**80 - 65, "native", loadable=True)
    first, *others, last = core.contract.load.words
    monkeypatch.setattr(MontgomeryParams, "words", (last, *others, first))
    report = Report(core.name)
    simulator = Simulator(core.verilog, widths=widths(core.contract), instances=2)
    simulate(core, simulator, report, vectors=20, effort=SHORT)
    assert report.failures


def test_refusals():
    with pytest.raises(UnsupportedError, match="52 to 4097 bits, this one has 51"):
        fit(2**51 - 1)
    with pytest.raises(UnsupportedError, match="52 to 4097 bits"):
        fit(2**4097 + 1)
