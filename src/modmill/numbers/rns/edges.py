# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Operands at the edges of the approximations in a sum of residues, built through the Chinese remainder theorem."""

import random
from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor

from modmill.numbers.rns.sum_of_residues import SumOfResidues


def edge_operands(rns: SumOfResidues, seed: int = 1) -> list[tuple[list[int], list[int]]]:
    """Residue vectors (X, Y) at the edges of alpha, of kappa and of the channel reducers, built through the CRT.

    For alpha: gamma_i whose truncated low bits are all ones (largest error) or all zeros (no error); the last gamma
    puts Z / M just above an integer, or just below the limit. For kappa: of many such Z those with the largest and the
    smallest z. For both Y is 1, so that Z = X: the contract limits only the product of the two. For the reducers:
    operands 0, 1, p - 1, p, the largest z and the largest operand, each with its least and its largest representatives
    below 2^w; and for each channel the largest operand that its modulus divides, with both neighbours.
    """
    base, rnd, top = rns.base, random.Random(seed), rns.operand_limit
    numbers = _alpha_edges(rns, rnd)
    numbers |= _kappa_edges(rns, rnd)
    numbers.update(x for x in (0, 1, 2, rns.p - 1, rns.p, rns.p + 1, rns.z_max, top, rns.product_limit - 1) if x >= 0)
    return [*((base.residues(z), [1] * base.n) for z in sorted(numbers)), *_reducer_edges(rns)]


def _last_gamma(rns: SumOfResidues, head: list[int], near: Fraction) -> int:
    """gamma_N that puts Z / M, which is plus or minus sum gamma_i / m_i (mod 1), just above ``near``."""
    *moduli, last = rns.base.moduli
    part = sum((Fraction(g, m) for g, m in zip(head, moduli, strict=True)), Fraction(0))
    if rns.negative:
        return floor((-near - part) % 1 * last)
    return ceil((near - part) % 1 * last) % last


def _alpha_edges(rns: SumOfResidues, rnd: random.Random) -> set[int]:
    """Z below the product limit whose gamma_i give alpha its largest or its smallest error."""
    base, low = rns.base, rns.base.w - rns.q
    limit = Fraction(rns.product_limit, base.M)
    found: set[int] = set()
    for pattern in (0, (1 << low) - 1):
        for near in (Fraction(0), limit - Fraction(2, base.moduli[-1])):
            for _ in range(6):
                head = [min(m - 1, (rnd.getrandbits(rns.q) << low) | pattern) for m in base.moduli[:-1]]
                found.add(rns.from_gammas([*head, _last_gamma(rns, head, near)]))
    return {z for z in found if z < rns.product_limit}


def _kappa_edges(rns: SumOfResidues, rnd: random.Random) -> set[int]:
    """Z below the product limit with large gamma_i: of 300 the four with the smallest z, the eight with the largest."""
    base, limit = rns.base, Fraction(rns.product_limit, rns.base.M)
    tried: list[tuple[int, int]] = []
    for _ in range(300):
        head = [m - 1 - rnd.randrange(m >> 6) for m in base.moduli[:-1]]
        near = Fraction(rnd.randrange(1 << 20), 1 << 20) * limit
        z = rns.from_gammas([*head, _last_gamma(rns, head, near)])
        if z < rns.product_limit:
            g = rns.gammas(z)
            alpha = rns.alpha(g)
            value = sum(x * r for x, r in zip(g, rns.r, strict=True)) + rns.v[alpha] - rns.kappa(g, alpha) * rns.p
            tried.append((value, z))
    tried.sort()
    return {z for _, z in tried[:4] + tried[-8:]}


def _reducer_edges(rns: SumOfResidues) -> Iterator[tuple[list[int], list[int]]]:
    """The pairs for the reducers."""
    base, top, end = rns.base, rns.operand_limit, 1 << rns.base.w
    pairs = [(top, top), (rns.z_max, rns.z_max), (rns.p - 1, rns.p - 1), (rns.p, rns.p), (0, top), (1, top)]
    for pair in pairs:
        x, y = map(base.residues, pair)
        yield x, y
        x, y = ([r + (end - 1 - r) // m * m for r, m in zip(v, base.moduli, strict=True)] for v in (x, y))
        yield x, y
    for i, m in enumerate(base.moduli):
        x0 = top - top % m
        for delta in (-1, 0, 1):
            if 0 <= x0 + delta <= top:
                yield base.residues(x0 + delta), base.residues(top - i)
