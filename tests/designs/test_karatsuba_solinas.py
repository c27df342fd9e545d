# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The Karatsuba product with a digit-serial sparse quotient: ranges of sums, order of the additions, refusals."""

import random

import pytest

from modmill.contract import UnsupportedError
from modmill.designs import design
from modmill.designs.karatsuba.positions import DEPTH_MAX, NEAREST, depths
from modmill.designs.karatsuba.shape import ABOVE_MAX
from modmill.designs.karatsuba.solinas import BITS_MIN

MASK = 2**17 - 1
P256 = 2**256 - 2**224 + 2**192 + 2**96 - 1
MODULI = {
    "P-256": P256, "P-224": 2**224 - 2**96 + 1, "P-192": 2**192 - 2**64 - 1, "P-521": 2**521 - 1,
    "SM2": 2**256 - 2**224 - 2**96 + 2**64 - 1, "Ed448": 2**448 - 2**224 - 1, "shortest": 2**51 + 1, "ones": 2**85 - 1,
    "all of n digits": 2**255 - 2**111 + 1, "six terms": 2**200 + 2**160 - 2**140 - 2**120 + 2**90 - 2**87 + 1,
}  # fmt: skip


def fit(p):
    return design("karatsuba-solinas").fit(p)


@pytest.mark.parametrize("p", MODULI.values(), ids=MODULI)
def test_sums_are_within_their_ranges_and_corners_reach_the_ends(p):
    """Exactly, where the digits of x y can be chosen; the highest digit of v has the bits of an operand's."""
    fitted = fit(p)
    q, rnd = fitted.params, random.Random(p)
    n = q.digits
    pairs = fitted.corners() + [(rnd.randrange(q.limit), rnd.randrange(q.limit)) for _ in range(50)]
    found = [[] for _ in range(n)]
    for a, b in pairs:
        trace, carry = dict(fitted.trace(a, b)), 0
        for k in range(2 * n):
            total = trace[f"T{k}"] + carry
            low, high = q.positions.ranges[k]
            assert low <= total <= high
            if k < n:
                found[k].append(trace[f"T{k}"])
            carry = total >> 17
            assert q.positions.carries[k // n][0] <= carry <= q.positions.carries[k // n][1]
        assert 0 <= trace[f"v{n - 1}"] < 1 << 17 + q.above
        assert trace["v"] * fitted.R % p == a * b % p and trace["v"] < q.limit
    assert [(min(sums), max(sums)) for sums in found] == [q.positions.range(k, (0, 0)) for k in range(n)]


@pytest.mark.parametrize("p", MODULI.values(), ids=MODULI)
def test_sizes(p):
    q, bits = fit(p).params, p.bit_length()
    assert q.digits % 2 == 1 and 0 <= q.above <= ABOVE_MAX and 17 * q.digits + q.above > bits
    assert q.digits == 5 or 17 * (q.digits - 2) + ABOVE_MAX <= bits
    assert fit(p).contract("native").closed


def test_slots_of_p256():
    fitted = fit(P256)
    assert (fitted.cost.dsp, fitted.cost.multiplications, fitted.schedule.interval) == (8, 120, 15)
    assert fitted.R == 2**272 and fitted.operand_bits == 257


@pytest.mark.parametrize(
    ("distances", "others", "found"),
    [
        ((3,), 1, [1, 1]), ((3, 9), 1, [1, 2, 2]), ((5, 11, 13, 15), 2, [3, 3, 3, 3, 3, 3]),
        ((4, 8, 9), 2, [2, 3, 3, 3, 3]), ((3, 4, 9), 2, [1, 2, 4, 4, 4]),
    ],
)  # fmt: skip
def test_terms_are_added_as_late_as_they_must(distances, others, found):
    assert depths(distances, others) == found
    assert all(depth <= a - NEAREST + 1 for depth, a in zip(found, distances, strict=False))
    assert sum(2 ** (DEPTH_MAX - depth) for depth in found) <= 2**DEPTH_MAX


@pytest.mark.parametrize(
    ("p", "message"),
    [
        (2**384 - 2**128 - 2**96 + 2**32 - 1, r"^p = -1 mod 2\^32; p = 1 or -1 mod 2\^51 at least is accepted$"),
        (2 ** (BITS_MIN - 1) - 1, r"^the modulus must have 52 to 1074 bits, this one has 51$"),
        (2**1075 - 1, r"52 to 1074 bits, this one has 1,?075$"),
        (2**400 + sum(2 ** (60 + 20 * k) for k in range(6)) + 1, "^p - 1 has 7 signed digits, at most 6 are accepted$"),
        (
            2**90 + 2**60 + 2**55 + 2**52 + 1,
            r"^p = 1 mod 2\^52: 4 terms 5, 3, 3, 3 digits away cannot be added in time",
        ),
    ],
)
def test_refusals(p, message):
    with pytest.raises(UnsupportedError, match=message):
        fit(p)
