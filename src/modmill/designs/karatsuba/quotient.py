# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The quotient of a Montgomery multiplication modulo a sparse prime, and its result, digit by digit.

Each position of V, as in `positions`, is the sum of numbers of the product, for each term of a digit of Q 2^e, and of
the carry. Q 2^e is there by wires: bits of two neighbouring digits of Q, floor(e / h) and one more positions lower.
Positions k and n + k are added in the same cycle, for two products, each in a tree of its own; a term joins its tree as
late as the tree permits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed

from modmill.designs.karatsuba.positions import Kind, Positions
from modmill.designs.karatsuba.product import tree
from modmill.designs.solinas.sparse_quotient import Term
from modmill.rtl.delay import DelayLines, later
from modmill.schedule import Operation


class DigitQuotient:
    """Q and v.

    ``positions``: sizes and terms, with n or n + 1 digits of Q. ``low``: what the product adds to position
    k in cycle ``start`` + k, for k < n; ``high``: numbers whose sum it adds to position n + k, in cycle ``start`` + n +
    k; ``at(c, ...)`` is high in cycles c modulo n.
    ``low_sum``, ``high_sum``: sums of positions k and n + k without the carry, in cycle first - 1 + k and
    first - 1 + n + k, where first is start + 1 + `levels`. ``q``: position k in cycle first + k for k < n, and ``z`` in
    cycle first + k from n on: digits of Q, then of v. ``out``: digit j of v in cycle first + n + j; with n + 1 digits
    of Q two cycles later, and of ``width`` bits, because position 2 n has all remaining ones.
    Cost: for each term about h LUTs for each half in which it has digits, and h for its mask.
    """

    def __init__(
        self, m: Module, low: Value, high: Sequence[Value], positions: Positions, *,
        start: int, width: int, at: Callable[..., Value],
    ) -> None:  # fmt: skip
        n, bits, terms = positions.count, positions.bits, positions.terms
        self._m, self._positions, self._at = m, positions, at
        self._lines = DelayLines(m, n, name="quotient")
        entering, levels = positions.entering, positions.levels
        self._first = first = start + 1 + levels
        self.q, self.z = (Signal(bits, name=name, reset_less=True) for name in ("q", "z"))
        if positions.quotient > n:
            self._last = Signal(bits, name="q_last", reset_less=True)
            with m.If(at(first + n)):
                m.d.sync += self._last.eq(self.z)

        # ---- both sums
        inside: list[tuple[Value, int, int]] = [(low, 1, levels)]
        beyond: list[tuple[Value, int, int]] = [(number, 1, levels) for number in high]
        if positions.added:
            constant = positions.added << positions.r - bits * n
            beyond.append((self._constant(constant, first - 1 - levels), 1, levels))
        for k, (term, depth) in enumerate(zip(terms, entering, strict=False)):
            sign = -1 if term.negative else 1
            own, passed = self._digits(term, depth, f"term{k}")
            inside += [(own, sign, depth)] if own is not None else []
            beyond.append((passed, sign, depth))
        self.low_sum, self.high_sum = tree(m, inside, "low_sum"), tree(m, beyond, "high_sum")

        # ---- carries
        shapes = [
            signed(1 + max(low.bit_length() if low >= 0 else (~low).bit_length(), high.bit_length()))
            for low, high in positions.carries
        ]
        over, middle, higher = (
            Signal(shape, name=name, reset_less=True)
            for name, shape in (("low_carry", shapes[0]), ("middle_carry", shapes[0]), ("high_carry", shapes[1]))
        )
        lower, upper = self.low_sum + over, self.high_sum + Mux(at(first + n - 1), middle, higher)
        m.d.sync += [self.q.eq(lower), over.eq(lower >> bits), self.z.eq(upper), higher.eq(upper >> bits)]
        with m.If(at(first + n - 2)):
            m.d.sync += [over.eq(0), middle.eq(lower >> bits)]
        self.out = self.z
        if positions.quotient > n:
            highest = tree(m, [(higher, 1, 1), *self._above()], "highest")
            self.out = Signal(width, name="v_digit", reset_less=True)
            m.d.sync += self.out.eq(Mux(at(first + 2 * n), highest, self.z))

    def register(self, operation: Operation) -> Value | None:
        """The register of the result of an operation, None if it is none of `Kind`."""
        high = operation.numbers[0] >= self._positions.count
        registers: dict[Any, Value] = {
            Kind.SUM: self.high_sum if high else self.low_sum, Kind.QUOTIENT: self.z if high else self.q,
            Kind.OUT: self.out,
        }  # fmt: skip
        return registers.get(operation.kind)

    def _digits(self, term: Term, depth: int, name: str) -> tuple[Value | None, Value]:
        """The digits of Q 2^e for positions k and n + k, ``depth`` cycles before those of the sums; None: all are zero.

        Position k takes digit k - a of Q, a = floor(e / h), and the highest bits of the digit before it. The digits of
        two products follow each other: those of this one belong to positions k >= a and n + k <= n + a.
        """
        m, n, bits, at = self._m, self._positions.count, self._positions.bits, self._at
        a, b = divmod(term.e, bits)
        start, waits = self._first - 2 - depth, a - 2 - depth
        raw = self._lines.line(self.q, waits, name=name)
        parts: list[Value] = []
        past = self._positions.quotient - n  # digits of Q among the upper positions
        upper = Mux(at(start + a), self._last if waits else self.z, raw) if a < n and past > 0 else raw
        values = (raw, upper) if a < n else (raw,)
        used = min(n, past + self._positions.result)  # upper positions of v
        cleared = (range(a), range(a + past, used)) if a < n else ((),)
        for half, value, zeros in zip(("low", "high")[-len(values) :], values, cleared, strict=True):
            digit = Signal(bits, name=f"{name}_{half}", reset_less=True)
            m.d.sync += digit.eq(value)
            if zeros:
                with m.If(at(*(start + k for k in zeros))):
                    m.d.sync += digit.eq(0)
            parts.append(digit)
        if b:
            before: list[Value] = [Const(0, b), *(part[bits - b :] for part in parts)]
            for k, part in enumerate(parts):
                rest = Signal(b, name=f"{name}_rest{k}", reset_less=True)
                m.d.sync += rest.eq(Mux(at(start), before[k], before[k + 1]))
                parts[k] = Cat(rest, part[: bits - b])
        return (parts[0] if a < n else None), parts[-1]

    def _constant(self, number: int, start: int) -> Value:
        """The digits of ``number``, digit k in cycle ``start`` + k."""
        n, bits = self._positions.count, self._positions.bits
        cycles = [[start + k for k in range(n) if number >> bits * k + i & 1] for i in range(bits)]
        return Cat(*(self._at(*these) if these else Const(0, 1) for these in cycles))

    def _above(self) -> list[tuple[Value, int, int]]:
        """What is added to the carry beyond position 2 n - 1: the bits of each Q 2^e and of p R there."""
        m, n, bits = self._m, self._positions.count, self._positions.bits
        kept = Signal(bits, name="q_before_last", reset_less=True)
        before = later(m, self.q, "q_before")
        with m.If(self._at(self._first + n)):
            m.d.sync += kept.eq(before)
        found: list[tuple[Value, int]] = []
        for term in self._positions.terms:
            if above := max(0, term.e - bits * (n - 1)):
                found.append((Cat(kept, self._last)[2 * bits - above :], -1 if term.negative else 1))
        if top := self._positions.added >> bits * (n - 1):
            found.append((Const(top), 1))
        return [(value, sign, 1 + (len(found) - 1).bit_length()) for value, sign in found]
