# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A few bits of operands above the digits of a product on two levels.

    x = x' + 2^n a,  y = y' + 2^n b,  e = a y' + b x' + 2^n a b
    x y = x' y' + 2^n e

The words of x' and y' pass one after another, and so do those of e: both halves of a word in a cycle, without a carry
between them. They wait in a memory for the higher words of x' y', to which they are added half by half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.memory import Memory

from modmill.designs.karatsuba.product import tree
from modmill.rtl.delay import later
from modmill.rtl.free_running import free_running

DEPTH = 4
"""Products whose e the memory holds."""


class TopBits:
    """``half``: half j of e in cycle ``taken`` + j, zero behind them.

    ``words``: register with word u of either operand in cycle u; ``tops``: its bits above the digits, which stand from
    cycle -1 to 8. ``count``: words of a number; ``at``: returns a registered strobe of the given cycles, modulo
    ``interval``. ``place``: of the half that is read, one cycle before it is there; 0 in cycle ``taken`` - 1.
    Cost for b bits: 2 b + 1 registers and 2 b - 1 adders of half a word in two places each; a memory of a word.
    """

    def __init__(
        self, m: Module, words: Sequence[Value], tops: Sequence[Value], half: int, count: int, *,
        at: Callable[..., Value], interval: int, taken: int, place: Value,
    ) -> None:  # fmt: skip
        a, b = (Signal(len(top), name=f"{name}_above", reset_less=True) for name, top in zip("xy", tops, strict=True))
        with m.If(at(-1)):
            m.d.sync += [a.eq(tops[0]), b.eq(tops[1])]
        both = Signal(2 * len(a), name="above_both", reset_less=True)
        m.d.sync += both.eq(sum((Mux(bit, b, 0) << i for i, bit in enumerate(a)), Const(0)))
        levels = (2 * len(a) - 1).bit_length()
        leaves: list[list[Value]] = [[], []]
        for name, top, word in (("x", b, words[0]), ("y", a, words[1])):
            for i, bit in enumerate(top):
                product = Signal(2 * half, name=f"{name}_above{i}", reset_less=True)
                m.d.sync += product.eq(word)
                with m.If(~bit):  # by the reset of the flip-flops, without a LUT
                    m.d.sync += product.eq(0)
                for k in range(2):
                    leaves[k].append(Cat(Const(0, i), product[half * k :][:half]))
        leaves[1][0] = Cat(leaves[1][0], Mux(at(count), both, 0))
        sums = [tree(m, [(leaf, 1, levels) for leaf in leaves[k]], f"above{k}_") for k in range(2)]

        # ---- word u of e in cycle written + u
        written = 1 + levels
        memory = Memory(shape=sum(map(len, sums)), depth=DEPTH * count, init=[])
        m.submodules.above_order = memory
        into, out = memory.write_port(), memory.read_port(domain="comb")
        word = free_running(range(count), name="above_word")
        number, read = (free_running(range(DEPTH), name=f"above_{name}") for name in ("number", "read"))
        m.d.sync += word.eq(word + 1)
        with m.If(at(written - 1)):
            m.d.sync += [word.eq(0), number.eq(number + 1)]
        begun = (taken - 2 - written) // interval  # products whose e has begun since
        with m.If(at(taken - 2)):
            m.d.sync += read.eq(number - begun)
        m.d.comb += [
            into.addr.eq(Cat(word, number)), into.data.eq(Cat(*sums)), out.addr.eq(Cat(place[1:], read)),
            into.en.eq(at(*(written + u for u in range(count)))),
        ]  # fmt: skip
        low = len(sums[0])
        self.half = Signal(len(sums[1]), name="above_half", reset_less=True)
        m.d.sync += self.half.eq(Mux(place[0], out.data[low:], out.data[:low]))
        with m.If(at(*(taken + c for c in range(2 * count - 1, interval - 1)))):
            m.d.sync += self.half.eq(0)


class WithTopBits:
    """``low``, ``high``: half j of the lower words, and of the higher ones with e, in cycle ``taken`` + 1 + j; the
    highest half with all remaining bits.

    ``low``, ``high``, ``above``: half j of both and of e in cycle ``taken`` + j; ``count``: their number.
    """

    def __init__(
        self, m: Module, low: Value, high: Value, above: Value, bits: int, count: int, *,
        at: Callable[..., Value], taken: int,
    ) -> None:  # fmt: skip
        last = at(taken + count - 1)
        total = Signal(max(len(high), len(above)) + 1, name="above_total")
        carry = Signal(len(total) - bits, name="above_carry", reset_less=True)
        m.d.comb += total.eq(high + above + carry)
        m.d.sync += carry.eq(total[bits:])
        with m.If(last):
            m.d.sync += carry.eq(0)
        self.low = later(m, low, "low_with_above")
        self.high = later(m, Cat(total[:bits], Mux(last, total[bits:], 0)), "high_with_above")


def latency(above: int) -> int:
    """Cycles by which a product with ``above`` bits above its digits is later."""
    return int(above > 0)
