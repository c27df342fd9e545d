# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Reduction modulo 2^w - u by folding, with shifts and additions instead of a multiplier.

The bounds come from ``numbers.folding``; they determine the number of folds and all widths.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from modmill.numbers.folding import fold_bound, fold_bounds
from modmill.numbers.rns.residues import signed_digits
from modmill.rtl.delay import later


def bits(bound: int) -> int:
    """Width of a value in [0, bound)."""
    return (bound - 1).bit_length()


def times(x: Value, u: int) -> Value:
    """x * u for a constant u >= 0, by shifts and additions for the signed digits of u (an expression)."""
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
    """One fold of 0 <= t < bound. Returns the sum as a combinational signal, and its exclusive bound."""
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
    """A lazy residue in [0, 2^w) of 0 <= t < bound: all folds combinational.

    Cost: about w LUTs and a carry chain for each fold, and in the first fold as much for each signed digit of u.
    Raises ValueError if folding does not end below 2^w.
    """
    for k, _ in enumerate(fold_bounds(bound, w, u)):
        t, bound = fold_step(m, t, bound, w, u, name=f"{name}_fold{k + 1}")
    return Cat(t, Const(0, w))[:w] if len(t) < w else t[:w]


def aligned(us: Sequence[int]) -> list[tuple[tuple[int, int] | None, ...]]:
    """A table of the signed digits (place, sign) of several u, one column for each u.

    Digits that all u share are in one row, which needs no multiplexer. None: the u has no more digits. The first row
    is positive in every column.
    """
    digits = [signed_digits(u) for u in us]
    shared = [d for d in digits[0] if all(d in other for other in digits[1:])]
    rest = [[d for d in own if d not in shared] for own in digits]
    by_sign = [sorted(own, key=lambda d: (-d[1], -d[0])) for own in rest]
    rows: list[tuple[tuple[int, int] | None, ...]] = [tuple([d] * len(us)) for d in shared]
    for k in range(max(map(len, by_sign))):
        rows.append(tuple(own[k] if k < len(own) else None for own in by_sign))
    return sorted(rows, key=lambda row: any(d is not None and d[1] < 0 for d in row))


@lru_cache(1 << 16)
def multiplexers(us: tuple[int, ...]) -> int:
    """Rows of `aligned` in which the u differ: the number of multiplexers of a SelectedFold."""
    return sum(len(set(row)) > 1 for row in aligned(us))


class SelectedFold:
    """One fold modulo 2^w - u, for one of several u that ``select`` chooses in each cycle; fully pipelined.

    ``out`` is (t >> w) * u + t mod 2^w of the registered ``t`` < ``bound``, ``latency`` cycles later. ``after`` is its
    exclusive bound over all u; the attribute ``select`` is the choice, delayed like ``out``. An adder tree with a
    register behind each level adds one term for each signed digit of u. Terms that differ between the u pass a
    multiplexer first, and with ``register`` a register behind it. Negative terms are added as inverted bits and a
    carry, modulo 2^(bits of ``out``).
    Latency: ceil(log2(digits + 1)) + register, or 1 if the high part is one bit.
    Cost: an adder for each digit, and a LUT for each bit of a term that differs.
    """

    def __init__(
        self, m: Module, t: Value, bound: int, w: int, us: Sequence[int], select: Value, *, name: str,
        register: bool = False,
    ) -> None:  # fmt: skip
        self._m, self._name, self._us = m, name, tuple(us)
        self.after = max(fold_bound(bound, w, u) for u in us)
        self.latency = 0
        self.select: Value = select
        width = self._width = bits(max(self.after, 1 << w))
        high, low = t[w : bits(bound)], t[:w]
        if bound <= 2 << w:
            u = self._chosen([Const(u, max(1, max(us).bit_length())) for u in us])
            self.out: Value = self._register((low + Mux(high, u, 0))[:width], "sum")
            self._step()
            return
        terms: list[Value] = []
        carries: list[list[int]] = []
        for entries in aligned(us):
            negative = any(e is not None and e[1] < 0 for e in entries)
            reach = width if negative else min(width, len(high) + max(e[0] for e in entries if e is not None))
            choices: list[Value] = []
            for e in entries:
                if e is None:
                    choices.append(Const(0, reach))
                    continue
                below = [Const(0, e[0])] if e[0] else []
                shifted = Cat(*below, high, Const(0, reach))[:reach]
                choices.append(~shifted if e[1] < 0 else shifted)
            terms.append(self._chosen(choices))
            if negative:
                carries.append([int(e is not None and e[1] < 0) for e in entries])
        leaves: list[Value] = [*terms[:2], low, *terms[2:]]
        if register:
            leaves = [self._register(leaf, f"term{k}") for k, leaf in enumerate(leaves)]
            self._step()
        while len(leaves) > 1:
            sums: list[Value] = []
            for k in range(0, len(leaves), 2):
                pair = leaves[k : k + 2]
                if len(pair) == 2 and carries:
                    carry = self._chosen([Const(c, 1) for c in carries.pop()])
                    wide = max(len(pair[0]), len(pair[1]))
                    one, other = (Cat(x, Const(0, wide - len(x))) if len(x) < wide else x for x in pair)
                    pair = [(Cat(Const(1, 1), one) + Cat(carry, other))[1:]]
                total = sum(pair[1:], pair[0])
                sums.append(self._register(total[:width] if len(total) > width else total, f"sum{self.latency}_{k}"))
            leaves = sums
            self._step()
        self.out = leaves[0]

    def _chosen(self, choices: Sequence[Value]) -> Value:
        """The selected one of ``choices``; equal choices need no multiplexer."""
        if len(choices) == 1 or all(repr(c) == repr(choices[0]) for c in choices[1:]):
            return choices[0]
        top = (len(choices) - 1).bit_length() - 1
        half = 1 << top
        return Mux(self.select[top], self._chosen(choices[half:]), self._chosen(choices[:half]))

    def _register(self, value: Value, name: str) -> Signal:
        return later(self._m, value, f"{self._name}_{name}")

    def _step(self) -> None:
        self.latency += 1
        if len(self._us) > 1:
            self.select = self._register(self.select, f"select{self.latency}")
