# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Test runs of a coprocessor's operations, edge cases first, with results from `numbers`."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping

from modmill.cores.batches import batches
from modmill.engines.ecc.blinding import NUMBERS, Run, order_reference, reference
from modmill.engines.ecc.points import BLIND
from modmill.numbers.curves.affine import Curve, Edwards, Weierstrass
from modmill.numbers.curves.projective import multiples

EDGES = 5
"""Maximum number of edge cases at the start of a sample."""
_THREE = {*NUMBERS, "multiply-two"}
"""Operations with three edge cases."""


def expected(curve: Curve, operation: str, run: Run) -> tuple[int, ...]:
    """Expected results of a run. Modulo the order, the inverse of 0 is 0."""
    if operation in NUMBERS:
        return _modulo_order(operation, curve.n, run[1])
    return reference(curve, operation, run)


def sample(curve: Curve, operation: str, bits: int, count: int, seed: int = 1) -> list[tuple[Run, tuple[int, ...]]]:
    """Return ``count`` runs with expected results: scalars 0, 1, n - 1, n and all ones, then random ones.

    For multiply-two and operations modulo n: numbers 0, 1 and n - 1, then random ones. The first points are G and -G.
    """
    rnd, n = random.Random(seed), curve.n
    edges = [0, 1, n - 1] if operation in _THREE else [x for x in (0, 1, n - 1, n, (1 << bits) - 1) if x >> bits == 0]
    out = []
    for k in range(count):
        scalars, numbers = drawn(curve, operation, bits, rnd)
        if k < len(edges):
            turned = edges[k:] + edges[:k]
            scalars = tuple(turned[: len(scalars)])
            if operation in NUMBERS:
                numbers = dict(zip(numbers, itertools.cycle(turned), strict=False))
        if operation == "ladder" and k < 4:
            numbers = {**numbers, "u": (0, 1, curve.p - 1, curve.base[0])[k]}
        elif "x" in numbers and k < 2:
            numbers = {**numbers, **_point(curve, rnd, k)}
        run: Run = scalars, numbers
        out.append((run, expected(curve, operation, run)))
    return out


def jobs(
    curve: Curve, operation: str, bits: int, threads: int, machines: int = 1
) -> list[list[tuple[Run, tuple[int, ...]]]]:
    """Return jobs of ``threads`` runs with expected results, in the order of `batches`: edge cases as in `sample`, and
    random runs."""
    edges = sample(curve, operation, bits, 3 if operation in _THREE else EDGES)
    rnd = random.Random(2)

    def draw() -> tuple[Run, tuple[int, ...]]:
        run = drawn(curve, operation, bits, rnd)
        return run, expected(curve, operation, run)

    return list(batches(edges, draw, lambda pair: pair[1], lambda found: set(found) <= {0, 1}, threads, machines))


def drawn(curve: Curve, operation: str, bits: int, rnd: random.Random) -> Run:
    """Return a random run. Scalars have ``bits`` bits; the two of multiply-two are below n."""
    if operation in NUMBERS:
        return (), {name: rnd.randrange(curve.n) for name in NUMBERS[operation][0]}
    if operation == "multiply-two":
        return (rnd.randrange(curve.n), rnd.randrange(curve.n)), _point(curve, rnd, 2)
    numbers = {BLIND: rnd.randrange(1, curve.p)}
    if operation == "ladder":
        numbers["u"] = rnd.randrange(curve.p)
    elif operation == "multiply":
        numbers |= _point(curve, rnd, 2)
    return (rnd.getrandbits(bits),), numbers


def _modulo_order(operation: str, n: int, given: Mapping[str, int]) -> tuple[int, ...]:
    return order_reference(operation, n, given, lambda x: pow(x, n - 2, n))


def _point(curve: Curve, rnd: random.Random, number: int) -> dict[str, int]:
    """Return the coordinates of G for number 0, of -G for 1, otherwise of a random multiple of G, never of O."""
    assert isinstance(curve, Weierstrass | Edwards)
    scalar = {0: 1, 1: curve.n - 1}.get(number, 0) or rnd.randrange(1, curve.n)
    P = multiples(curve, [(scalar, curve.base)])
    assert P is not None
    return {"x": P[0], "y": P[1]}
