# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The quotient of a Montgomery multiplication modulo a sparse prime, and its result, digit by digit.

    V = x y + sum of +-Q 2^e over the terms + p R, if it is added;  Q = V mod R,  R = 2^(17 (n + 1));  v = (V - Q) / R

Position k of V is a digit of x y, for each term a digit of Q 2^e, and the carry of position k - 1. Q 2^e is there by
wires: bits of two neighbouring digits of Q, floor(e / 17) and one more positions lower. Positions k and n + k are added
in the same cycle, for two products, each in a tree of its own; a term joins its tree as late as the tree permits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed

from modmill.designs.karatsuba.product import DIGIT, tree
from modmill.designs.solinas.sparse_quotient import Term
from modmill.rtl.delay import DelayLines, later

NEAREST = 3
"""Least floor(e / 17) of a term: a digit passes the mask, the last addition and the carry."""
DEPTH_MAX = 6
"""Most levels of additions."""


def depths(distances: Sequence[int], others: int) -> list[int]:
    """For each term, floor(e / 17) being in ``distances``, and then for ``others`` more numbers, how many additions
    before the sum it is added. Raises ValueError if the terms are too near."""
    for levels in range(1, DEPTH_MAX + 1):
        found = [min(a - NEAREST + 1, levels) for a in distances] + [levels] * others
        if sum(1 << levels - depth for depth in found) <= 1 << levels:
            return found
    raise ValueError(f"{len(distances)} terms {', '.join(map(str, distances))} digits away cannot be added in time")


class DigitQuotient:
    """Q and v.

    ``low``: digit k of x y in cycle ``start`` + k, for k < n; ``high``: numbers whose sum is digit n + k, in cycle
    ``start`` + n + k; ``added``: p R is added, with this p, or 0; ``at(c, ...)`` is high in cycles c modulo n.
    ``carries``: the range of the carries out of the lower n positions, and of the higher ones.
    ``low_sum``, ``high_sum``: sums of positions k and n + k without the carry, in cycle first - 1 + k and
    first - 1 + n + k, where first is start + 1 + `levels`. ``q``: digit k of Q in cycle first + k for k < n, and
    ``z`` digit n in cycle first + n. ``out``: digit j of v in cycle first + n + 2 + j, the highest with all remaining
    bits.
    Cost: for each term about 17 LUTs for each half in which it has digits, and 17 for its mask.
    """

    def __init__(
        self, m: Module, low: Value, high: Sequence[Value], n: int, terms: Sequence[Term], added: int, *,
        start: int, carries: Sequence[tuple[int, int]], width: int, at: Callable[..., Value],
    ) -> None:  # fmt: skip
        self._m, self._n, self._at = m, n, at
        self._lines = DelayLines(m, n, name="quotient")
        entering = [*depths([term.e // DIGIT for term in terms], len(high) + (added > 0))]
        levels = entering[-1]
        self._first = first = start + 1 + levels
        self.q, self.z = (Signal(DIGIT, name=name, reset_less=True) for name in ("q", "z"))
        self._last = Signal(DIGIT, name="q_last", reset_less=True)
        with m.If(at(first + n)):
            m.d.sync += self._last.eq(self.z)

        # ---- both sums
        inside: list[tuple[Value, int, int]] = [(low, 1, levels)]
        beyond: list[tuple[Value, int, int]] = [(number, 1, levels) for number in high]
        if added:
            beyond.append((self._constant(added << DIGIT, first - 1 - levels), 1, levels))
        for k, (term, depth) in enumerate(zip(terms, entering, strict=False)):
            sign = -1 if term.negative else 1
            own, passed = self._digits(term, depth, f"term{k}")
            inside += [(own, sign, depth)] if own is not None else []
            beyond.append((passed, sign, depth))
        self.low_sum, self.high_sum = tree(m, inside, "low_sum"), tree(m, beyond, "high_sum")

        # ---- carries
        shapes = [
            signed(1 + max(low.bit_length() if low >= 0 else (~low).bit_length(), high.bit_length()))
            for low, high in carries
        ]
        over, middle, higher = (
            Signal(shape, name=name, reset_less=True)
            for name, shape in (("low_carry", shapes[0]), ("middle_carry", shapes[0]), ("high_carry", shapes[1]))
        )
        lower, upper = self.low_sum + over, self.high_sum + Mux(at(first + n - 1), middle, higher)
        m.d.sync += [self.q.eq(lower), over.eq(lower >> DIGIT), self.z.eq(upper), higher.eq(upper >> DIGIT)]
        with m.If(at(first + n - 2)):
            m.d.sync += [over.eq(0), middle.eq(lower >> DIGIT)]
        highest = tree(m, [(higher, 1, 1), *self._above(terms, added)], "highest")
        self.out = Signal(width, name="v_digit", reset_less=True)
        m.d.sync += self.out.eq(Mux(at(first + 2 * n), highest, self.z))

    def _digits(self, term: Term, depth: int, name: str) -> tuple[Value | None, Value]:
        """The digits of Q 2^e for positions k and n + k, ``depth`` cycles before those of the sums; None: all are zero.

        Position k takes digit k - a of Q, a = floor(e / 17), and the highest bits of the digit before it. The digits of
        two products follow each other: those of this one belong to positions k >= a and n + k <= n + a.
        """
        m, n, at = self._m, self._n, self._at
        a, b = divmod(term.e, DIGIT)
        start, waits = self._first - 2 - depth, a - 2 - depth
        raw = self._lines.line(self.q, waits, name=name)
        parts: list[Value] = []
        values = (raw, Mux(at(start + a), self._last if waits else self.z, raw)) if a < n else (raw,)
        cleared = (range(a), range(a + 1, n)) if a < n else ((),)
        for half, value, zeros in zip(("low", "high")[-len(values) :], values, cleared, strict=True):
            digit = Signal(DIGIT, name=f"{name}_{half}", reset_less=True)
            m.d.sync += digit.eq(value)
            if zeros:
                with m.If(at(*(start + k for k in zeros))):
                    m.d.sync += digit.eq(0)
            parts.append(digit)
        if b:
            before: list[Value] = [Const(0, b), *(part[DIGIT - b :] for part in parts)]
            for k, part in enumerate(parts):
                rest = Signal(b, name=f"{name}_rest{k}", reset_less=True)
                m.d.sync += rest.eq(Mux(at(start), before[k], before[k + 1]))
                parts[k] = Cat(rest, part[: DIGIT - b])
        return (parts[0] if a < n else None), parts[-1]

    def _constant(self, number: int, start: int) -> Value:
        """The digits of ``number``, digit k in cycle ``start`` + k."""
        cycles = [[start + k for k in range(self._n) if number >> DIGIT * k + i & 1] for i in range(DIGIT)]
        return Cat(*(self._at(*these) if these else Const(0, 1) for these in cycles))

    def _above(self, terms: Sequence[Term], added: int) -> list[tuple[Value, int, int]]:
        """What is added to the carry beyond position 2 n - 1: the bits of each Q 2^e and of p R there."""
        m, n = self._m, self._n
        kept = Signal(DIGIT, name="q_before_last", reset_less=True)
        before = later(m, self.q, "q_before")
        with m.If(self._at(self._first + n)):
            m.d.sync += kept.eq(before)
        found: list[tuple[Value, int]] = []
        for term in terms:
            if bits := max(0, term.e - DIGIT * (n - 1)):
                found.append((Cat(kept, self._last)[2 * DIGIT - bits :], -1 if term.negative else 1))
        if top := added >> DIGIT * (n - 1):
            found.append((Const(top), 1))
        return [(value, sign, 1 + (len(found) - 1).bit_length()) for value, sign in found]
