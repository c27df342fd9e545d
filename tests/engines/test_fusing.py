# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Sections for units that add up two products: the same numbers, in products of two or four, and few of them."""

import random

import pytest
from test_microcode import UNITS, assembled

from modmill.engines.microcode.expressions import MUL, READ, BasicBlock
from modmill.engines.microcode.fusing import fused

P, FACTOR = 1009, pow(1 << 12, -1, 1009)
ONE = (1 << 12) % P


def made(formula, names="xyzw"):
    """A block and the same fused; both set r0, r1 ..."""
    block = BasicBlock("test")
    for k, value in enumerate(formula(*(block.variable(name) for name in names))):
        block.set(f"r{k}", value)
    block = block.pruned()
    return block, fused(block, ONE, P).pruned()


def same(block, other):
    rnd = random.Random(1)
    for _ in range(20):
        given = {name: rnd.randrange(P) for name in "xyzw"}
        assert other.evaluate(given, P, factor=FACTOR) == block.evaluate(given, P, factor=FACTOR)


@pytest.mark.parametrize(
    ("formula", "operations"),
    [
        (lambda x, y, z, w: (x * y,), 1),
        (lambda x, y, z, w: (x + y,), 1),
        (lambda x, y, z, w: (x - y,), 1),
        (lambda x, y, z, w: (-x,), 1),
        (lambda x, y, z, w: (3 * x - 2 * y,), 1),
        (lambda x, y, z, w: (8 * x,), 1),
        (lambda x, y, z, w: (x + y + z + w,), 3),
        (lambda x, y, z, w: (x * y + z * w,), 1),
        (lambda x, y, z, w: (x * y + z,), 1),
        (lambda x, y, z, w: (x * y - z,), 1),
        (lambda x, y, z, w: (z - x * y,), 2),
        (lambda x, y, z, w: (z - (x - w) * y,), 2),
        (lambda x, y, z, w: (z - x * x,), 2),
        (lambda x, y, z, w: (2 * (x * y),), 1),
        (lambda x, y, z, w: (3 * ((x + z) * y),), 2),
        (lambda x, y, z, w: (x * y + z, x * y + w), 2),
        (lambda x, y, z, w: (x * y + z, x * y * w), 3),
        (lambda x, y, z, w: (x * y + z * w, x * y - z * w), 3),
        (lambda x, y, z, w: ((x + y) * (x - y), x + y), 3),
        (lambda x, y, z, w: ((x + y) - (x + y),), 1),
    ],
)
def test_operations_of_formulas(formula, operations):
    block, other = made(formula)
    same(block, other)
    assert all(node.kind in (MUL, READ) and len(node.args) in (0, 2, 4) for node in other.nodes)
    assert other.products <= operations


def test_random_formulas():
    for seed in range(300):
        rnd = random.Random(seed)

        def formula(*variables, rnd=rnd):
            held = list(variables)
            for _ in range(rnd.randrange(1, 14)):
                a, b = rnd.choice(held[-6:]), rnd.choice(held)
                held.append(rnd.choice([lambda a, b: a * b, lambda a, b: a + b, lambda a, b: a - b])(a, b))
            return held[-3:]

        block, other = made(formula)
        same(block, other)
        assert other.products <= sum(node.kind != READ for node in block.nodes) + 3


@pytest.mark.parametrize(
    ("operation", "name", "operations"),
    [
        ("multiply", "P-256", 4581), ("multiply-base", "Ed25519", 948), ("multiply-two", "secp256k1", 3506),
        ("ladder", "Curve25519", 4353),
    ],
)  # fmt: skip
def test_operations_of_programs(operation, name, operations):
    """With copies, one for each number that is set from another as it stands."""
    _, found, _ = assembled(operation, name, UNITS["added"])
    assert found.program.products == found.program.instructions == operations
