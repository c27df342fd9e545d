# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Reduction modulo m = 2^w - u by folding; the number of folds is proved for each modulus.

One fold: T -> (T >> w) * u + T mod 2^w, congruent modulo m because 2^w = u (mod m).
Range:    T < t gives a result <= max(h u + l, (h - 1) u + 2^w - 1) with h = (t - 1) >> w, l = (t - 1) mod 2^w,
          attained by T = h 2^w + l or by T = (h - 1) 2^w + 2^w - 1.
The result of the last fold is below 2^w: a lazy residue, congruent but not always the least.
"""


def fold(t: int, w: int, u: int) -> int:
    """One fold of ``t`` >= 0."""
    return (t >> w) * u + (t & ((1 << w) - 1))


def fold_bound(bound: int, w: int, u: int) -> int:
    """Least exclusive bound of a fold's result over all 0 <= T < ``bound``."""
    h, low = (bound - 1) >> w, (bound - 1) & ((1 << w) - 1)
    return max(h * u + low, (h - 1) * u + (1 << w) - 1 if h else 0) + 1


def fold_bounds(bound: int, w: int, u: int) -> tuple[int, ...]:
    """Exclusive bounds after each fold until the value is below 2^w; empty if ``bound`` already is. Raises ValueError
    if u is so large that a fold does not lower the bound."""
    bounds = []
    while bound > 1 << w:
        smaller = fold_bound(bound, w, u)
        if smaller >= bound:
            raise ValueError(f"folding modulo 2^{w} - {u} makes no progress below {bound}; take a smaller u")
        bounds.append(bound := smaller)
    return tuple(bounds)


def reduce(t: int, bound: int, w: int, u: int) -> int:
    """The lazy residue in [0, 2^w) that the folds compute for 0 <= t < bound: the bit-exact model of the hardware.
    Raises ValueError for ``t`` outside this range, and as `fold_bounds` does."""
    if not 0 <= t < bound:
        raise ValueError(f"{t} is outside [0, {bound})")
    for _ in fold_bounds(bound, w, u):
        t = fold(t, w, u)
    return t
