# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""RNS Montgomery multiplication with a Montgomery reduction in every channel, for any odd moduli of w bits.

Source: J.-C. Bajard, N. Merkiche: Double Level Montgomery Cox-Rower Architecture, New Bounds. CARDIS, 2014 (bounds and
constants are our derivation).

Sums of products T in a channel of modulus m are reduced to T 2^-W2 mod m:

    R = (T + (-T m^-1 mod 2^W2) m) / 2^W2 < 2 m      for T < (n + 2) 2^w m, 2^W2 >= (n + 2) 2^w
    R - m if R >= 2^w, else R                        so residues stay below 2^w: lazy, E for x^ up to 2^w - 1

Only the product of the operands has a factor 2^-W2 that the constants must cancel: the constant after it contains
2^(2 W2), all others 2^W2; no product is added. Otherwise Gandino's order: B stored as x B_j^-1.
Cost: 2 n^2 + 4 n MM, with 5 n reductions of sums. KBE for moduli close to 2^w, FixedPoint for any others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from modmill.numbers.rns.conditions import Condition
from modmill.numbers.rns.counting import Tally
from modmill.numbers.rns.extension import CoxExtension
from modmill.numbers.rns.fixed_point import FixedPoint
from modmill.numbers.rns.residues import Base
from modmill.numbers.rns.rns_montgomery import Gandino, Pair, least_t, pair_of


@dataclass(frozen=True)
class DoubleLevel(Gandino):
    """``W2``: inner radix 2^W2; None takes the least, w + ceil(log2(n + 2)). c = 1, with lazy residues."""

    W2: int | None = None

    @classmethod
    def of(
        cls,
        p: int,
        a: Base,
        b: Base,
        t: int | None = None,
        c: int = 1,
        operand: Fraction | None = None,
        W2: int | None = None,
    ) -> Self:
        """With KBE for lazy residues and t bits in the cox; None takes the least t that satisfies `conditions`."""
        return least_t(lambda bits: cls(p, *pair_of(a, b, bits, c, lazy=True), operand, W2), a.w * c, t)

    @classmethod
    def fixed_point(
        cls, p: int, a: Base, b: Base, s: int, u: int = 0, operand: Fraction | None = None, W2: int | None = None
    ) -> Self:
        """With a fixed-point cox: constants of s fraction bits; u low bits of each residue are ignored."""
        first = FixedPoint.of(a, b.moduli, s, u, 0, lazy=True)
        return cls(p, first, FixedPoint.of(b, a.moduli, s, u, lazy=True), operand, W2)

    @property
    def inner(self) -> int:
        """W2 in use, in bits."""
        return self.W2 if self.W2 is not None else self.a.w + (max(self.a.n, self.b.n) + 1).bit_length()

    def conditions(self) -> list[Condition]:
        """Conditions of the base class; then those on the moduli, the coxes and W2."""
        n, w = max(self.a.n, self.b.n), self.a.w
        even = next((m for m in (*self.a.moduli, *self.b.moduli) if m % 2 == 0), 0)
        coxes = (self.first.cox, self.second.cox)
        return [
            *super().conditions(),
            Condition(not even, "all moduli odd", f"{even} is even"),
            Condition(all(c.lazy for c in coxes), "both coxes for lazy residues", "x^ reaches 2^w - 1"),
            Condition(all(c.columns == 1 for c in coxes), "c = 1", f"c = {coxes[0].columns}, {coxes[1].columns}"),
            Condition(self.a.w == self.b.w, "A and B have the same w", f"w = {self.a.w}, {self.b.w}"),
            Condition((n + 2) << w <= 1 << self.inner, "2^W2 >= (n + 2) 2^w", f"W2 = {self.inner}, n = {n}, w = {w}"),
            Condition(2 * n <= 1 << w, "2 n <= 2^w", f"n = {n}, w = {w}"),
        ]

    def reduction(self, total: int, m: int) -> int:
        """total 2^-W2 mod m, below 2^w. Raises ValueError unless 0 <= total < (n + 2) 2^w m."""
        n, w, radix = max(self.a.n, self.b.n), self.a.w, 1 << self.inner
        if not 0 <= total < ((n + 2) << w) * m:
            raise ValueError(f"a sum of {total.bit_length()} bits is not in 0 ... ({n} + 2) 2^{w} {m} - 1")
        result = (total + total * pow(-m, -1, radix) % radix * m) >> self.inner
        return result - m if result >> w else result

    def _product(self, x: int, y: int, m: int, tally: Tally) -> int:
        return self.reduction(tally.mac(0, x, y), m)

    def reduce(self, s: Pair, tally: Tally | None = None) -> Pair:
        """The stored result from ``s``, the channels' products times 2^-W2."""
        tally = tally or self.tally()
        first, second = self.extensions
        parts = zip(s[0], self.k, self.a.moduli, strict=True)
        xhat = [self._product(x, self._lifted(k, 2, m), m, tally) for x, k, m in parts]
        parts = zip(s[1], self.e, self.b.moduli, strict=True)
        start = [tally.mac(0, x, self._lifted(e, 2, m)) for x, e, m in parts]
        zeta = self._spread(first, xhat, start, tally)
        return self._spread(second, zeta, [0] * self.a.n, tally), zeta

    def _spread(self, extension: CoxExtension, xhat: Sequence[int], start: Sequence[int], tally: Tally) -> list[int]:
        """The extension with one reduction of each target's sum, all constants times 2^W2."""
        h = extension.h(xhat, tally)
        out = []
        parts = zip(start, extension.weights, extension.factors, extension.target, strict=True)
        for total, weights, factor, m in parts:
            minus = self._lifted(-extension.source.M * factor, 1, m)
            for x, h_i, weight in zip(xhat, h, weights, strict=True):
                total = tally.mac(total, x, self._lifted(weight, 1, m)) + h_i * minus
            out.append(self.reduction(total, m))
        return out

    def _lifted(self, constant: int, times: int, m: int) -> int:
        return (constant << times * self.inner) % m
