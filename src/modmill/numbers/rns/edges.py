# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Operands at the edges of the approximations in a sum of residues, built through the Chinese remainder theorem."""

from __future__ import annotations

import random
from fractions import Fraction

from modmill.numbers.rns.sum_of_residues import SumOfResidues


def edge_operands(rns: SumOfResidues, seed: int = 1) -> list[tuple[list[int], list[int]]]:
    """Residue vectors (X, Y) at the edges of alpha, of kappa and of the channel reducers, built through the CRT.

    For alpha: gamma_i whose truncated low bits are all ones (largest error) or all zeros (no error); the last gamma
    puts Z / M just above an integer, or just below the limit. For kappa: of many such Z those with the largest and the
    smallest z. For the reducers: every residue at 0, 1, m - 1, m, 2^w - 1. Y is 1, so that Z = X: the contract limits
    only the product of the two.
    """
    base = rns.base
    rnd = random.Random(seed)
    w, n = base.w, base.n
    low = w - rns.q
    ones = (1 << low) - 1
    one = [1] * n
    out: list[tuple[list[int], list[int]]] = []

    def from_gammas(gammas: list[int]) -> int | None:
        z = base.from_gammas(gammas)
        return z if z < rns.product_limit else None

    def last_gamma(head: list[int], near: Fraction) -> int:
        """gamma_N that puts sum gamma_i / m_i just above ``near`` (mod 1)."""
        part = sum((Fraction(g, m) for g, m in zip(head, base.moduli[:-1], strict=True)), Fraction(0))
        need = (near - part) % 1 * base.moduli[-1]
        return -(-need.numerator // need.denominator) % base.moduli[-1]

    limit = Fraction(rns.product_limit, base.M)
    numbers: set[int] = set()
    for pattern in (0, ones):
        for near in (Fraction(0), limit - Fraction(2, base.moduli[-1])):
            for _ in range(6):
                head = [min(m - 1, (rnd.getrandbits(rns.q) << low) | pattern) for m in base.moduli[:-1]]
                z = from_gammas([*head, last_gamma(head, near)])
                if z is not None:
                    numbers.add(z)
    tried: list[tuple[int, int]] = []
    for _ in range(300):
        head = [m - 1 - rnd.randrange(m >> 6) for m in base.moduli[:-1]]
        z = from_gammas([*head, last_gamma(head, Fraction(rnd.randrange(1 << 20), 1 << 20) * limit)])
        if z is not None:
            g = base.gammas(z)
            alpha = rns.alpha(g)
            value = sum(x * r for x, r in zip(g, rns.r, strict=True)) + rns.v[alpha] - rns.kappa(g, alpha) * rns.p
            tried.append((value, z))
    tried.sort()
    numbers.update(z for _, z in tried[:4] + tried[-8:])
    top = rns.operand_limit
    numbers.update(x for x in (0, 1, 2, rns.p - 1, rns.p, rns.p + 1, rns.z_max, top, rns.product_limit - 1) if x >= 0)
    out += [(base.residues(z), one) for z in sorted(numbers)]
    pairs = [(top, top), (rns.z_max, rns.z_max), (rns.p - 1, rns.p - 1), (rns.p, rns.p), (0, top), (1, top)]
    for a, b in pairs:
        out.append((base.residues(a), base.residues(b)))
        out.append(
            (
                [lift(r, m, w) for r, m in zip(base.residues(a), base.moduli, strict=True)],
                [lift(r, m, w) for r, m in zip(base.residues(b), base.moduli, strict=True)],
            )
        )
    for i, m in enumerate(base.moduli):  # numbers next to multiples of each channel's modulus
        x = top - top % m
        for delta in (-1, 0, 1):
            if 0 <= x + delta <= top:
                out.append((base.residues(x + delta), base.residues(top - i)))
    return out


def lift(residue: int, m: int, w: int) -> int:
    """The largest representative of a residue below 2^w."""
    return residue + ((1 << w) - 1 - residue) // m * m
