# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Operands for the simulation of a core: corner cases and random numbers, as port values covered by the contract."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from modmill.contract import Contract
from modmill.design import DesignInstance


@dataclass(frozen=True)
class Product:
    """Two operands as port values (b = 0 for a core with one), and the canonical value of the result."""

    a: int
    b: int
    value: int


def judged(contract: Contract, pairs: Iterable[tuple[int, int]]) -> list[Product]:
    """Return pairs of port values with their expected products, by Python's integers."""
    decode = contract.operand.decode
    return [Product(a, b, contract.expect(decode(a), decode(b))) for a, b in pairs]


def columns(products: Sequence[Product]) -> tuple[list[int], list[int]]:
    """Return the first and the second port values of products."""
    return [product.a for product in products], [product.b for product in products]


def covered(contract: Contract, a: int, b: int) -> bool:
    """Whether the contract covers these port values."""
    if a < 0 or b < 0 or a >> contract.operand.width or b >> contract.operand.width:
        return False
    if contract.operands == 1:
        return b == 0 and numbers_covered(contract, contract.operand.decode(a), 0)
    return numbers_covered(contract, contract.operand.decode(a), contract.operand.decode(b))


def all_pairs(contract: Contract) -> list[tuple[int, int]]:
    """Return every pair of numbers below the operand bound as port values; every number if there is one operand."""
    ports = [contract.operand.encode(x) for x in range(contract.largest_operand + 1)]
    return [(a, b) for a in ports for b in (ports if contract.operands == 2 else [0])]


def numbers_covered(contract: Contract, x: int, y: int) -> bool:
    """Whether the contract covers these numbers: each is below its bound or, for native io, their product is."""
    limit = contract.operand_bound * contract.p
    if x < limit and y < limit:
        return True
    return contract.io == "native" and contract.operands == 2 and x * y < contract.product_bound * contract.p**2


def corners(fitted: DesignInstance, io: str) -> list[tuple[int, int]]:
    """Return corner cases as port values: the design's own for native io, those of integers below p otherwise."""
    contract, form = fitted.contract(io), fitted.representation
    own = fitted.corners() if io == "native" else []
    if contract.operands == 1:
        numbers = dict.fromkeys(a for a, _ in binary_corners(contract.largest_operand + 1))
        return [*own, *((contract.operand.encode(a), 0) for a in numbers)]
    if io == "native":
        return [*own, *((form.encode(a), form.encode(b)) for a, b in binary_corners(fitted.p))]
    pairs = binary_corners(contract.p, form.moduli)
    if io == "plain" and fitted.twice:  # the first product is an edge of the second
        back = pow(fitted.binary_factor, -1, contract.p)
        pairs += [(t * back % contract.p, 1) for t, _ in binary_corners(contract.p)[:: max(1, len(pairs) // 40)]]
    return list(dict.fromkeys(pairs))


def covered_corners(fitted: DesignInstance, io: str) -> list[tuple[int, int]]:
    """Return the `corners` that the contract covers."""
    contract = fitted.contract(io)
    return [pair for pair in corners(fitted, io) if covered(contract, *pair)]


def binary_corners(p: int, moduli: Iterable[int] = ()) -> list[tuple[int, int]]:
    """Return pairs of numbers below p: near 0, p and p/2, powers of two, runs of ones, near multiples of ``moduli``."""
    bits = p.bit_length()
    special = sorted({x for x in (0, 1, 2, p - 1, p - 2, p // 2, p // 2 + 1, (1 << bits - 1) - 1) if 0 <= x < p})
    patterns = [int("01" * bits, 2) & (1 << bits - 1) - 1, int("10" * bits, 2) & (1 << bits - 1) - 1]
    near = [x - x % m + delta for m in moduli for x in (p - 1,) for delta in (-1, 0, 1)]
    step = max(1, bits // 64)
    powers = [1 << k for k in range(0, bits, step)] + [(1 << k) - 1 for k in range(1, bits + 1, step)]
    pairs = [(a, b) for a in special for b in special]
    for x in dict.fromkeys([*patterns, *near, *powers]):
        if 0 <= x < p:
            pairs += [(x, p - 1), (x, x)]
    return list(dict.fromkeys(pairs))


def randoms(contract: Contract, count: int, seed: int) -> list[tuple[int, int]]:
    """Return ``count`` pairs of random port values, uniform below the operand bound; all pairs if p is tiny."""
    rnd, p = random.Random(seed), contract.p
    if contract.operands == 1:
        return [(port(contract, rnd), 0) for _ in range(count)]
    if contract.io != "native" and p * p <= count:
        return [(a, b) for a in range(p) for b in range(p)]
    return [(port(contract, rnd), port(contract, rnd)) for _ in range(count)]


def port(contract: Contract, rnd: random.Random) -> int:
    """Return a random port value of a random operand."""
    return contract.operand.any(rnd.randrange(contract.largest_operand + 1), rnd)
