# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Montgomery multiplication of integers without the final subtraction, and operands at its edges.

v = (x y + q m) / R,  q = -x y m^-1 mod R.  Then v = x y R^-1 (mod m) and v < (x y) / R + m.
"""

import random
from math import gcd


def quotient(x: int, y: int, m: int, R: int) -> int:
    """q in [0, R) with x y + q m divisible by R. Raises ValueError unless gcd(m, R) = 1."""
    return -x * y * pow(m, -1, R) % R


def unreduced(x: int, y: int, m: int, R: int) -> int:
    """v = (x y + q m) / R, not reduced below m. Raises ValueError unless gcd(m, R) = 1."""
    return (x * y + quotient(x, y, m, R) * m) // R


def carrying(m: int, R: int, limit: int, seed: int = 1) -> list[tuple[int, int]]:
    """Operands in [0, ``limit``) for which v = (x y + q m) / R, with q below R, is the largest power of two that v can
    reach, or one more: a carry from below enters its highest bit. None if no such operands are found.

    ``R``: coprime to ``m``. ``seed`` fixes the random choices."""
    rnd, found = random.Random(seed), list[tuple[int, int]]()
    power = 1 << (((limit - 1) ** 2 + (R - 1) * m) // R).bit_length() - 1
    for _ in range(200):
        x = rnd.randrange(limit * 3 // 4, limit)
        for v in (power, power + 1) if gcd(x, m) == 1 else ():
            least = v * R * pow(x, -1, m) % m
            found += [(x, y) for y in range(least, limit, m) if 0 <= v * R - x * y < R * m]
        if len(found) >= 8:
            break
    return found


def edges(m: int, R: int, limit: int, seed: int = 1) -> list[tuple[int, int]]:
    """Operands in [0, ``limit``) at the edges of a Montgomery multiplication with R, a power of two.

    Edges: v near 0, near m and near its largest value; q = 0 and q = R - 1; operands of all zeros, all ones or
    alternating bits. ``seed`` fixes the random choices.
    """
    rnd = random.Random(seed)
    top = limit - 1
    bits = top.bit_length()
    ends = sorted({x for x in (0, 1, 2, m - 1, m, top - 1, top) if 0 <= x <= top})
    pairs = [(x, y) for x in ends for y in ends]
    stripes = [int("01" * bits, 2) & (1 << bits) - 1, int("10" * bits, 2) & (1 << bits) - 1]
    low = [(1 << k) - 1 for k in range(1, bits + 1, max(1, bits // 16))]
    for x in (*stripes, *low):
        if x <= top:
            pairs += [(x, top), (top, x), (x, x)]
    for _ in range(12):
        y = rnd.randrange(limit) | 1
        if y > top:
            continue
        if gcd(y, m) == 1:
            pairs += [(v * R * pow(y, -1, m) % m, y) for v in (1, 2, m - 2, m - 1)]
        for q in (R - 1, R - 2, R // 2, 1):
            x = -q * m * pow(y, -1, R) % R
            if x <= top:
                pairs.append((x, y))
    half = R.bit_length() // 2
    if 1 << half <= top:
        pairs.append((1 << half, 1 << min(half, bits - 1)))
    tried = ((rnd.randrange(top // 2, limit), rnd.randrange(top // 2, limit)) for _ in range(64))
    pairs += sorted(tried, key=lambda pair: -unreduced(pair[0], pair[1], m, R))[:4]
    return list(dict.fromkeys(pairs))
