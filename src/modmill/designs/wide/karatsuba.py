# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A multiplier of long numbers by Karatsuba's method over explicit tiles, pipelined or combinational.

a b = P0 + (PM - P0 - P1) 2^h + P1 2^(2h),  P0 = a0 b0,  P1 = a1 b1,  PM = (a0 + a1)(b0 + b1), halves of h bits.
The carries of the two sums are added after PM, so all three products have operands of h bits. Each level of splitting
has three multipliers of half the length instead of four: 256 bits take 81 tiles of 16 bits after four levels.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Signal, Value

from modmill.rtl.delay import later
from modmill.rtl.product import DspBlock, tile_rows, tiled
from modmill.rtl.words import widened

LEVEL = 4
"""Cycles of one level of splitting: sums of halves; carries of PM and P0 + P1; the middle term; the product."""
TILE = 2
"""Registers of a tile."""


@dataclass(frozen=True)
class Karatsuba:
    """A multiplier of two numbers of ``width`` bits, split at most ``levels`` times, and only if wider than a tile.

    ``pipelined``: with registers in and between the tiles; otherwise combinational.
    """

    width: int
    levels: int
    block: DspBlock
    pipelined: bool = True

    @property
    def splits(self) -> int:
        """Number of levels of splitting, at most ``levels``."""
        width, levels = self.width, 0
        while levels < self.levels and width > min(self.block.a, self.block.b):
            width, levels = -(-width // 2), levels + 1
        return levels

    @property
    def leaf(self) -> int:
        """Bits of the operands of the innermost products."""
        return -(-self.width >> self.splits)

    @property
    def tiles(self) -> int:
        """Number of DSP blocks."""
        return 3**self.splits * self.block.tiles(self.leaf, self.leaf)

    @property
    def latency(self) -> int:
        """Cycles from the operands to the product, 0 if combinational; operands are accepted in every cycle."""
        if not self.pipelined:
            return 0
        added_up = len(tile_rows(self.leaf, self.leaf, self.block)) > 1
        return TILE + added_up + LEVEL * self.splits

    def build(self, m: Module, a: Value, b: Value, name: str = "k") -> Value:
        """a * b, ``latency`` cycles later. ``a`` and ``b`` have ``width`` bits; ``name``: prefix of the signals.

        Cost: ``tiles`` DSP blocks; a product of 2 h bits takes about 9 h LUTs in adders, and each level has three times
        as many products.
        """

        def registered(value: Value, what: str, cycles: int = 1) -> Value:
            if not self.pipelined:  # a name, or Amaranth writes the whole expression again wherever it is used
                net = Signal(len(value), name=f"{name}_{what}")
                m.d.comb += net.eq(value)
                return net
            for k in range(cycles):
                value = later(m, value, f"{name}_{what}_{k}" if cycles > 1 else f"{name}_{what}")
            return value

        if self.splits == 0:
            product = tiled(m, a, b, self.block, TILE if self.pipelined else 0, name=name)
            return registered(product, "p") if self.latency > TILE else product
        h = -(-self.width // 2)
        inner = Karatsuba(h, self.splits - 1, self.block, self.pipelined)
        a0, b0 = registered(a[:h], "a0"), registered(b[:h], "b0")
        a1, b1 = registered(widened(a[h:], h), "a1"), registered(widened(b[h:], h), "b1")
        sa, sb = registered(a[:h] + a[h:], "sa"), registered(b[:h] + b[h:], "sb")
        pairs = ((a0, b0), (a1, b1), (sa[:h], sb[:h]))
        p0, p1, pm = (inner.build(m, x, y, f"{name}{k}") for k, (x, y) in enumerate(pairs))
        cross = (sb[:h] & sa[h].replicate(h)) + (sa[:h] & sb[h].replicate(h)) + ((sa[h] & sb[h]) << h)
        cross = registered(cross[: h + 2], "cross", inner.latency)
        raised, both = registered((pm + (cross << h))[: 2 * h + 2], "pm"), registered(p0 + p1, "both")
        ends = registered(Cat(p0, p1), "ends", 2)
        middle = registered((raised - both)[: 2 * h + 1], "middle")
        return registered((ends + (middle << h))[: 2 * self.width], "p")
