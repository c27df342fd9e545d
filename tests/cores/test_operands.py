# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Operands lie within the contract, reach its edges, and use all representatives."""

import random

import pytest

from modmill.cores.multiplier import operands
from modmill.designs import design

P = 2**61 - 1


@pytest.fixture(scope="module")
def fitted():
    return design("sor-1m-p").fit(P, n=20)


@pytest.mark.parametrize("io", ["plain", "native"])
def test_all_are_covered(fitted, io):
    contract = fitted.contract(io)
    pairs = operands.corners(fitted, io) + operands.randoms(contract, 200, seed=3)
    assert len(pairs) > 264
    assert all(operands.covered(contract, a, b) for a, b in pairs)


def test_binary_corners(fitted):
    pairs = operands.corners(fitted, "plain")
    numbers = {a for a, _ in pairs}
    assert {0, 1, 2, P - 1, P - 2, P // 2, P // 2 + 1, 1 << 60, (1 << 60) - 1} <= numbers
    assert {(P - 1, P - 1), (0, P - 1), (P - 1, 1)} <= set(pairs)
    for m in fitted.representation.base.moduli:
        assert any(x % m == 0 and x for x in numbers) and any(x % m == m - 1 and x > m for x in numbers)


@pytest.mark.parametrize("p", [3, 5, 7, 97])
def test_corners_of_tiny_moduli_are_below_them(p):
    pairs = operands.binary_corners(p, (2**14 - 1, 2**14 - 3))
    assert pairs and all(0 <= a < p and 0 <= b < p for a, b in pairs)


def test_tiny_moduli_are_tried_exhaustively():
    contract = design("sor-1m-p").fit(5, n=14).contract("plain")
    assert operands.randoms(contract, 25, seed=1) == [(a, b) for a in range(5) for b in range(5)]
    assert len(operands.randoms(contract, 24, seed=1)) == 24


def test_random_native_operands_use_other_representatives(fitted):
    contract = fitted.contract("native")
    base = fitted.representation.base
    rnd = random.Random(1)
    ports = [contract.operand.any(x, rnd) for x in range(400)]
    assert [contract.operand.decode(v) for v in ports] == list(range(400))
    offset = [r for v in ports for r, m in zip(contract.operand.unpack(v), base.moduli, strict=True) if r >= m]
    assert offset and max(offset) < 1 << base.w


def test_uncovered(fitted):
    contract = fitted.contract("native")
    top = contract.largest_operand + 1
    assert not operands.covered(contract, contract.operand.encode(top * 2), contract.operand.encode(top))
    assert operands.covered(contract, contract.operand.encode(top * 2), contract.operand.encode(1))
    assert not operands.covered(fitted.contract("plain"), P, 1)
    assert not operands.covered(fitted.contract("plain"), -1, 1)


def test_expected_value_is_pythons(fitted):
    contract = fitted.contract("native")
    a, b = 2**63 + 5, 2**62 + 9
    (product,) = operands.judged(contract, [(contract.operand.encode(a), contract.operand.encode(b))])
    assert product.value == a * b % P
