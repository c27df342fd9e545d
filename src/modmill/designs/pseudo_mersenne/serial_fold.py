# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Folding digit by digit: v -> v mod 2^n + floor(v / 2^n) C, n a multiple of the digit, C with few signed digits.

Low and high digits arrive in pairs, least significant first, one number after another. For each signed digit
2^(17 a + b) of C, the high digit of a cycles ago, shifted by b bits, is added: no multiplier. The carry of a digit is
added to the next digit.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.numbers.rns.residues import signed_digits
from modmill.rtl.delay import DelayLines, later


def terms(constant: int, bits: int) -> dict[int, list[tuple[int, int]]]:
    """The signed digits of ``constant``: for each digit a of ``bits`` bits the pairs (place b in it, sign)."""
    found: dict[int, list[tuple[int, int]]] = {}
    for k, sign in sorted(signed_digits(constant)):
        found.setdefault(k // bits, []).append((k % bits, sign))
    return found


class SerialFold(wiring.Component):
    """One fold of numbers of ``digits`` low digits of ``bits`` bits, the highest with ``top`` more bits, with high
    digits of at most ``high`` bits.

    Digit j of the low and of the high half enter j cycles after ``first``. The next ``first`` comes ``digits`` cycles
    later; with ``gaps`` it may come later. Digit j of the result leaves ``latency`` + j cycles after ``first``: at
    ``o_low`` digit j of the lower half, at ``o_high`` digit j of the bits from 2^n on. A ``final`` fold has no
    ``o_high``; its highest digit has all remaining bits.

    Latency: if ``final`` 2 + ceil(log2(signed digits + 1)), otherwise ``digits`` more. Cost: an adder for each signed
    digit, two for those with a > 0, two more adders, and unless ``final`` a delay line of ``digits`` cycles.
    Raises ValueError if ``constant`` has more than ``digits`` digits.
    """

    def __init__(
        self, digits: int, bits: int, constant: int, high: int, *, final: bool, gaps: bool, top: int = 0
    ) -> None:
        self.digits, self.bits, self.final, self.gaps = digits, bits, final, gaps
        self.terms = terms(constant, bits)
        if max(self.terms) >= digits:
            raise ValueError(f"the constant has {max(self.terms) + 1} digits, at most {digits} are accepted")
        super().__init__({
            "first": In(1), "low": In(bits + top), "high": In(high),
            "o_low": Out(bits + top + 1 if final else bits), **({} if final else {"o_high": Out(bits)}),
        })  # fmt: skip

    @property
    def levels(self) -> int:
        """Levels of the adder tree."""
        return sum(map(len, self.terms.values())).bit_length()

    @property
    def latency(self) -> int:
        """Cycles from a digit to the same digit of the result."""
        return 2 + self.levels + (0 if self.final else self.digits)

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        digits, bits = self.digits, self.bits
        lines = DelayLines(m, max(digits, max(self.terms) + 1), name="fold")
        ages = Signal(digits + self.levels + 1, name="ages")  # bit k: the first digit arrived k cycles ago
        m.d.comb += ages[0].eq(self.first)
        m.d.sync += ages[1:].eq(ages)

        def within(start: int, name: str) -> Value:
            """High from ``start`` cycles after the first digit to the last digit."""
            running = Signal(name=name)
            begun = ages[start - 1] if start else self.first
            with m.If(begun):
                m.d.sync += running.eq(1)
            with m.Elif(ages[digits - 1]):
                m.d.sync += running.eq(0)
            return running if start else running | self.first

        high: Value = Mux(within(0, "running"), self.high, 0) if self.gaps else self.high
        inside: list[tuple[Value, int]] = []
        beyond: list[tuple[Value, int]] = []
        for a, shifts in self.terms.items():
            digit = lines.line(high, a, name=f"high{a}") if a else high
            parts = [(digit, inside)]
            if a:
                own = within(a, f"own{a}")
                parts = [(Mux(own, digit, 0), inside), (Mux(own, 0, digit), beyond)]
            for value, leaves in parts:
                kept = later(m, value, f"term{a}{'' if leaves is inside else '_beyond'}")
                leaves += [(Cat(Const(0, b), kept), sign) for b, sign in shifts]
        inside.append((later(m, self.low, "low_later"), 1))
        summed = self._tree(m, inside, "inside")
        total = Signal(len(summed) + 2, name="total", reset_less=True)
        signed = total.as_signed()
        m.d.sync += total.eq(summed + Mux(ages[1 + self.levels], 0, signed >> bits))
        if self.final:
            m.d.comb += self.o_low.eq(total)
            return m
        rest = self._tree(m, beyond, "beyond") if beyond else Const(0)
        over = Signal(len(total), name="over", reset_less=True)
        end = Signal(name="end")
        m.d.sync += [end.eq(ages[digits + self.levels]), over.eq(rest + (Mux(end, signed, over.as_signed()) >> bits))]
        m.d.comb += [self.o_high.eq(over), self.o_low.eq(lines.line(total[:bits], digits, name="low_kept"))]
        return m

    def _tree(self, m: Module, leaves: list[tuple[Value, int]], name: str) -> Value:
        """The signed sum of the leaves, ``levels`` registers later."""
        for level in range(self.levels):
            leaves = sorted(leaves, key=lambda leaf: -leaf[1])
            half = (len(leaves) + 1) // 2
            pairs = [leaves[k::half] for k in range(half)]
            leaves = []
            for k, pair in enumerate(pairs):
                value, sign = pair[0]
                for other, other_sign in pair[1:]:
                    value = value + other if sign == other_sign else value - other
                out = Signal(value.shape(), name=f"{name}{level}_{k}", reset_less=True)
                m.d.sync += out.eq(value)
                leaves.append((out, sign))
        ((value, sign),) = leaves
        return value if sign > 0 else -value
