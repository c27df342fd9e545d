# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Digits stand for their scalar, are of fixed count, and each in its table; chains give their exponent."""

import random

import pytest

from modmill.contract import UnsupportedError
from modmill.engines.ecc.addition_chains import chain, power
from modmill.engines.ecc.endomorphism import endomorphism
from modmill.engines.ecc.recoding import Comb, Gray, Odd, Signed, Unsigned, together
from modmill.numbers.curves.named import find_curve
from modmill.numbers.moduli import parse_modulus


@pytest.mark.parametrize("window", [1, 2, 3, 5])
@pytest.mark.parametrize("bits", [1, 4, 7])
def test_windows_of_every_scalar(bits, window):
    plain, signed, both = Unsigned(bits, window), Signed(bits, max(2, window)), Signed(bits, max(2, window), both=True)
    for k in range(-(1 << bits) + 1, 1 << bits):
        if k >= 0:
            assert worth(plain, k, lambda d: d) == k
            assert worth(signed, k, lambda d: d - (1 << signed.window - 1), signed.window) == k
        assert worth(both, k, lambda d: d - (1 << both.window - 1), both.window) == k


def worth(recoding, k, value, window=None):
    digits = recoding.digits(k)
    window = window or recoding.window
    assert len(digits) == recoding.count
    assert all(0 <= d < 1 << window for d in digits)
    return sum(value(d) << window * i for i, d in enumerate(reversed(digits)))


@pytest.mark.parametrize(("n", "bits", "window"), [(31, 5, 2), (29, 6, 3), (101, 7, 4)])
def test_odd_digits_are_never_a_multiple_of_the_order_before_the_last(n, bits, window):
    assert (1 << bits - window) + 1 < n
    recoding = Odd(bits, window, n)
    for k in range(1 << bits):
        total = 0
        digits = recoding.digits(k)
        assert len(digits) == recoding.count
        for place, d in enumerate(digits):
            assert 0 <= d < 1 << window
            total = (total << window) + 2 * d + 1 - (1 << window)
            assert place == len(digits) - 1 or total % n
        assert total % n == k % n


@pytest.mark.parametrize(
    ("bits", "teeth", "columns"), [(7, 2, 1), (7, 2, 2), (8, 3, 2), (5, 5, 1), (9, 2, 3), (10, 4, 2)]
)
def test_comb_of_every_scalar(bits, teeth, columns):
    comb = Comb(bits, teeth, columns)
    factors = comb.factors
    for k in range(1 << bits):
        digits = comb.digits(k)
        assert len(digits) == comb.count == comb.passes * columns
        total = 0
        for j in range(comb.passes):
            total = 2 * total + sum(factors[c][digits[columns * j + c]] for c in range(columns))
        assert total == k


def test_gray_digits():
    for k in range(64):
        digits = Gray(6).digits(k)
        assert len(digits) == 7
        bit, bits = 0, []
        for d in digits[:-1]:
            bit ^= d
            bits.append(bit)
        assert int("".join(map(str, bits)), 2) == k
        assert digits[-1] == k & 1


@pytest.mark.parametrize("recoding", [Unsigned(8, 4), Signed(8, 4), Odd(8, 4, 251), Comb(8, 4, 1), Gray(8)])
@pytest.mark.parametrize("k", [-1, 256])
def test_scalars_out_of_range_are_refused(recoding, k):
    with pytest.raises(UnsupportedError, match=r"must be in \[0, 2\^8\)"):
        recoding.digits(k)


def test_signed_digits_of_one_bit_are_refused():
    """To count their digits did not end: none of them is worth more than 0."""
    with pytest.raises(UnsupportedError, match="signed digits must have at least 2 bits, got 1"):
        Signed(8, 1)


def test_strings_of_digits_take_turns():
    assert together((1, 2), (3, 4), (5, 6)) == (1, 3, 5, 2, 4, 6)
    with pytest.raises(ValueError, match="shorter"):
        together((1, 2), (3,))


def test_chains_of_all_small_exponents():
    for exponent in range(1, 700):
        assert _exponent(chain(exponent)) == exponent
    with pytest.raises(UnsupportedError, match="at least 1, got"):
        chain(0)


def _exponent(steps):
    held = [1]
    for a, b in steps:
        held.append(held[a] + held[b])
    return held[-1]


@pytest.mark.parametrize(
    ("name", "products"),
    [
        ("2^255-19", 266), ("2^448-2^224-1", 460), ("secp256k1", 270), ("P-256", 267), ("P-384", 397), ("P-521", 533),
        ("P-224", 235), ("P-192", 203), ("SM2", 270), ("brainpoolP256r1", 309),
    ],
)  # fmt: skip
def test_products_of_inversions(name, products):
    p = parse_modulus(name).value
    steps = chain(p - 2)
    assert _exponent(steps) == p - 2
    assert len(steps) == products
    assert power(3, p - 2, lambda a, b: a * b % p) == pow(3, -1, p)


@pytest.mark.parametrize("name", ["secp256k1", "secp160k1", "secp192k1", "secp224k1"])
def test_scalars_are_split_in_two_halves(name):
    curve = find_curve(name)
    half = endomorphism(curve)
    rnd = random.Random(name)
    assert half.bits <= curve.n.bit_length() // 2 + 1
    assert (half.eigenvalue**2 + half.eigenvalue + 1) % curve.n == 0
    assert half.beta != 1 and pow(half.beta, 3, curve.p) == 1
    for k in [0, 1, curve.n - 1, *(rnd.randrange(curve.n) for _ in range(500))]:
        one, other = half.split(k)
        assert (one + other * half.eigenvalue - k) % curve.n == 0
        assert max(abs(one), abs(other)) < 1 << half.bits


def test_curves_without_an_endomorphism():
    assert endomorphism(find_curve("P-256")) is None
