# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Montgomery multiplication of integers: identity and bounds on all small operands, and what the edges reach."""

import pytest

from modmill.numbers.montgomery import carrying, edges, quotient, unreduced


@pytest.mark.parametrize("m", [3, 5, 9, 15, 17, 31])
def test_identity_and_bound_on_all_operands(m):
    R = 1 << m.bit_length()
    largest = 0
    for x in range(m):
        for y in range(m):
            v = unreduced(x, y, m, R)
            assert (v * R - x * y) % m == 0
            assert v * R < x * y + R * m
            largest = max(largest, v)
    assert largest < 2 * m
    assert largest >= m or m < 9, "no product needs the subtraction"


@pytest.mark.parametrize("m", [13, 97, 2**61 - 1, 2**64 + 13, 2**127 - 1])
@pytest.mark.parametrize("bits", [0, 2])
def test_edges_reach_what_they_promise(m, bits):
    R, limit = 1 << m.bit_length() + bits, m << bool(bits)
    pairs = edges(m, R, limit)
    assert all(0 <= x < limit and 0 <= y < limit for x, y in pairs)
    values = {unreduced(x, y, m, R) for x, y in pairs}
    assert {1, m + 1} & values, "no result next to 0"
    assert {m - 1, 2 * m - 1} & values, "no result next to m"
    assert any(v >= m for v in values), "no pair needs the subtraction"
    assert len({quotient(x, y, m, R) for x, y in pairs} & {R - 1, R - 2, 0}) >= 2


@pytest.mark.parametrize("m", [97, 2**61 - 1, 2**64 + 13, 2**127 - 1])
@pytest.mark.parametrize("bits", [0, 2])
def test_every_kind_of_edge_is_there(m, bits):
    R, limit = 1 << m.bit_length() + bits, m << bool(bits)
    pairs, top = edges(m, R, limit), limit - 1
    values, quotients = ({f(x, y, m, R) for x, y in pairs} for f in (unreduced, quotient))
    assert all(values & {v, m + v} for v in (1, 2, m - 2, m - 1))
    assert {0, 1, R - 2, R - 1, *(R // 2,) * (top >= R // 2)} <= quotients
    ends = [x for x in (0, 1, 2, m - 1, m, top - 1, top) if x <= top]
    assert {(x, y) for x in ends for y in ends} <= set(pairs)
    striped = [int(text[-top.bit_length() :], 2) for text in ("01" * limit.bit_length(), "10" * limit.bit_length())]
    ones = (1 << top.bit_length() // 16 * 15 + 1) - 1
    for x in (*striped, ones):
        assert x > top or {(x, top), (top, x), (x, x)} <= set(pairs)


@pytest.mark.parametrize("m", [65521, 2**61 - 1, 2**64 + 13])
def test_operands_that_carry_into_the_highest_bit(m):
    R, limit = 1 << m.bit_length(), 2 * m
    pairs = carrying(m, R, limit)
    values = {unreduced(x, y, m, R) for x, y in pairs}
    assert all(0 <= x < limit and 0 <= y < limit for x, y in pairs)
    (power,) = {1 << v.bit_length() - 1 for v in values}
    assert values == {power, power + 1}, "both sides of the carry"
    assert ((limit - 1) ** 2 + (R - 1) * m) // R < 2 * power, "v has no higher bit"
