# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Reduction modulo 2^w - u by folding, in logic: shifts and additions, no multiplier.

The bounds, and so the number of folds and every width, come from ``numbers.folding``.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from modmill.numbers.folding import fold_bound, fold_bounds
from modmill.numbers.rns import signed_digits


def bits(bound: int) -> int:
    """Width of a value in [0, bound)."""
    return (bound - 1).bit_length()


def times(x: Value, u: int) -> Value:
    """x * u for a constant u >= 0 in shifts and additions of its signed digits (an expression)."""
    if u == 0:
        return Const(0, 1)
    digits = signed_digits(u)
    shift, _ = digits[0]
    total: Value = x << shift if shift else x
    for shift, sign in digits[1:]:
        term = x << shift if shift else x
        total = total + term if sign > 0 else total - term
    return total.as_unsigned()[: len(x) + u.bit_length()]


def fold_step(m: Module, t: Value, bound: int, w: int, u: int, *, name: str) -> tuple[Signal, int]:
    """One fold of 0 <= t < bound. Returns the sum as a combinational signal, and its bound."""
    after = fold_bound(bound, w, u)
    out = Signal(bits(after), name=name)
    high = t[w : bits(bound)]
    low = t[:w]
    if bound <= 2 << w:  # the high part is one bit
        m.d.comb += out.eq(low + Mux(high, Const(u, max(1, u.bit_length())), 0))
    else:
        m.d.comb += out.eq(low + times(high, u))
    return out, after


def reduce(m: Module, t: Value, bound: int, w: int, u: int, *, name: str) -> Value:
    """A lazy residue in [0, 2^w) of 0 <= t < bound: all folds in one cycle (combinational).

    Cost: about w LUTs and one carry chain for each of the folds after the first, and one more for each signed
    digit of u in the first.
    """
    for k, _ in enumerate(fold_bounds(bound, w, u)):
        t, bound = fold_step(m, t, bound, w, u, name=f"{name}_fold{k + 1}")
    return Cat(t, Const(0, w))[:w] if len(t) < w else t[:w]
