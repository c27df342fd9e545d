# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Operands at the edges of a cox-rower machine: of its contract and of both base extensions."""

from __future__ import annotations

import random
from math import gcd
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modmill.designs.cox_rower.kbe import RnsMontgomery


def edge_numbers(fitted: RnsMontgomery, seed: int = 1) -> list[tuple[int, int]]:
    """Operands at the edges of the contract, of the cox, and of the first extension (xi all largest or all smallest).

    The error of the cox is largest if every Z_r is just below a multiple of 2^drop. The cox is closest to a wrong h if
    the result is small too. `edge_zeta` chooses such zeta; then operands are tried until they give this result.
    """
    rnd = random.Random(seed)
    q, p = fitted.params, fitted.p
    top = fitted.contract("native").largest_operand
    out = [(x, y) for x in (0, 1, p - 1, p, top) if x <= top for y in (0, 1, top)]
    for _ in range(40):
        result = fitted.edge_result(rnd)
        if result >= q.proof.limit or result >= q.proof.result * p:
            continue
        x = result * q.a.M % p
        for k in range(min(30, (top - x) // p + 1)):
            if fitted.multiply(x + k * p, 1) == result:
                out.append((x + k * p, 1))
                break
    for _ in range(6):
        for wanted in fitted.edge_quotients(rnd):
            target = -q.a.from_gammas(wanted) * p % q.a.M
            x = rnd.randrange(1, top + 1)
            if gcd(x, q.a.M) == 1:
                out.append((x, min(target * pow(x, -1, q.a.M) % q.a.M, top)))
    return list(dict.fromkeys(out))
