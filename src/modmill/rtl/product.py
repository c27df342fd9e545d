# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Multipliers, tiled explicitly for the DSP block of the target.

A DSP block multiplies ``ta`` x ``tb`` unsigned bits: 17 x 17 in a signed 18 x 18 block, 17 x 24 in a signed 25 x 18
block. An a x b product is cut into ceil(a / ta) x ceil(b / tb) tiles of one block each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


@dataclass(frozen=True)
class DspBlock:
    """Bits of the unsigned operands of one DSP block, the narrower operand first."""

    a: int
    b: int

    def tiles(self, a: int, b: int) -> int:
        """Blocks for a product of ``a`` x ``b`` bits, in the better order of the operands."""
        return min(self._tiles(a, b), self._tiles(b, a))

    def _tiles(self, a: int, b: int) -> int:
        return -(-a // self.a) * -(-b // self.b)


DSP18 = DspBlock(17, 17)
DSP25 = DspBlock(17, 24)

BLOCKS = {"18x18": DSP18, "25x18": DSP25}
"""DSP blocks by the values of the setting ``dsp``."""


def product(m: Module, a: Value, b: Value, block: DspBlock, *, name: str, register: str | None = "sync") -> Value:
    """a * b, unsigned; the rows of partial products pass a register in clock domain ``register``, unless it is None.

    Each row multiplies all digits of one operand by one digit of the other. The digits of a row are chained,
    p = x y + (previous >> digit); DSP blocks with an adder and a 17-bit shift implement this entirely. Otherwise a row
    costs an adder of a tile's width for each tile after the first. The rows are added after the register.
    Latency: 1 cycle with a register, else 0.
    """
    if block.tiles(len(a), len(b)) < block._tiles(len(a), len(b)):
        a, b = b, a
    rows = []
    for j in range(0, len(b), block.b):
        digit_b = b[j : j + block.b]
        low = []
        carry: Value | None = None
        for i in range(0, len(a), block.a):
            digit_a = a[i : i + block.a]
            last = i + block.a >= len(a)
            p = Signal(len(digit_a) + len(digit_b) + (carry is not None and not last), name=f"{name}_p{i}_{j}")
            m.d.comb += p.eq(digit_a * digit_b + (carry if carry is not None else 0))
            low.append(p if last else p[: block.a])
            carry = p[block.a :]
        row = Signal(len(a) + len(digit_b), name=f"{name}_row{j}")
        m.d[register or "comb"] += row.eq(Cat(*low))
        rows.append((j, row))
    while len(rows) > 1:
        summed = []
        for (j0, r0), (j1, r1) in zip(rows[::2], rows[1::2], strict=False):
            total = Signal(max(len(r0), len(r1) + j1 - j0) + 1, name=f"{name}_sum{j0}_{j1}")
            m.d.comb += total.eq(r0 + (r1 << (j1 - j0)))
            summed.append((j0, total))
        rows = summed + ([rows[-1]] if len(rows) % 2 else [])
    return rows[0][1][: len(a) + len(b)]


def tile_rows(a: int, b: int, block: DspBlock) -> list[list[tuple[int, int]]]:
    """Tiles (first bit of a, first bit of b) of a product of ``a`` x ``b`` bits, in few rows without overlaps.

    The products of the tiles in a row occupy disjoint bits. The rows are built greedily.
    """
    tiles = [(i, j) for i in range(0, a, block.a) for j in range(0, b, block.b)]
    rows: list[list[tuple[int, int]]] = []
    ends: list[int] = []
    for i, j in sorted(tiles, key=sum):
        row = next((k for k, end in enumerate(ends) if end <= i + j), len(rows))
        if row == len(rows):
            rows.append([])
            ends.append(0)
        rows[row].append((i, j))
        ends[row] = i + j + min(block.a, a - i) + min(block.b, b - j)
    return rows


class Tile(wiring.Component):
    """One DSP block: p = a * b, unsigned, or with ``signed`` of two's complements.

    ``registers``: 0; 1 (output); 2 (input and output); 3 (input, pipeline and output). It is also the latency.
    In Verilog the tile is an instance of module dsp_mul_<a>x<b>_r<registers>, with an s before <a> if it is signed; the
    module is in the same file, and flows replace it by the target's primitive. In Amaranth's simulator it is the
    multiplication itself.
    """

    def __init__(self, a: int, b: int, registers: int, *, signed: bool = False) -> None:
        self.registers, self.signed = registers, signed
        super().__init__({"a": In(a), "b": In(b), "p": Out(a + b)})

    @property
    def module_name(self) -> str:
        """Name of the Verilog module."""
        return f"dsp_mul_{'s' * self.signed}{len(self.a)}x{len(self.b)}_r{self.registers}"

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if platform == "verilog":
            m.submodules.block = Instance(self.module_name, i_clk=ClockSignal(), i_a=self.a, i_b=self.b, o_p=self.p)
            return m
        a, b, p = self.a, self.b, Signal(len(self.p), reset_less=True)
        if self.registers >= 2:
            a, b = Signal.like(a, name="a_q", reset_less=True), Signal.like(b, name="b_q", reset_less=True)
            m.d.sync += [a.eq(self.a), b.eq(self.b)]
        result: Value = a.as_signed() * b.as_signed() if self.signed else a * b
        if self.registers == 3:
            pipe = Signal.like(p, name="p_pipe", reset_less=True)
            m.d.sync += pipe.eq(result)
            result = pipe
        m.d["sync" if self.registers else "comb"] += p.eq(result)
        m.d.comb += self.p.eq(p)
        return m


def one_tile(m: Module, a: Value, b: Value, registers: int, name: str, *, signed: bool = False) -> Value:
    """a * b, unsigned or ``signed``, in one DSP block; ``registers`` (0 to 3) cycles later. ``name``: name of the
    submodule."""
    m.submodules[name] = tile = Tile(len(a), len(b), registers, signed=signed)
    m.d.comb += [tile.a.eq(a), tile.b.eq(b)]
    return tile.p


def _side_by_side(row: Iterable[tuple[int, int]], products: Mapping[tuple[int, int], Value]) -> Value:
    """The sum of the products of the tiles in a row of `tile_rows`."""
    parts: list[Value] = []
    filled = 0
    for tile in row:
        parts += [Const(0, sum(tile) - filled), products[tile]]
        filled = sum(tile) + len(products[tile])
    return Cat(*parts)


def tiled_rows(m: Module, a: Value, b: Value, block: DspBlock, registers: int, prefix: str = "") -> list[Value]:
    """The rows of `tile_rows` as numbers, whose sum is a * b; ``registers`` (0 to 3) cycles later."""
    rows: list[Value] = []
    for k, tiles in enumerate(tile_rows(len(a), len(b), block)):
        products = {
            (i, j): one_tile(m, a[i : i + block.a], b[j : j + block.b], registers, f"{prefix}tile{i}_{j}")
            for i, j in tiles
        }
        whole = _side_by_side(tiles, products)
        rows.append(Signal(len(whole), name=f"{prefix}row{k}"))
        m.d.comb += rows[k].eq(whole)
    return rows


def tiled(m: Module, a: Value, b: Value, block: DspBlock, registers: int, *, name: str) -> Value:
    """a * b, unsigned, in explicit tiles with ``registers`` (0 to 3) registers each, and a combinational adder tree.

    Latency: ``registers``. Cost: a tile for each pair of digits, an adder for each row of `tile_rows` after the first.
    """
    rows = tiled_rows(m, a, b, block, registers, f"{name}_")
    while len(rows) > 1:
        rows = [sum(rows[k + 1 : k + 2], rows[k]) for k in range(0, len(rows), 2)]
    return rows[0][: len(a) + len(b)]


def tiled_evenly(m: Module, a: Value, b: Value, block: DspBlock, registers: int) -> Value:
    """a * b, unsigned, in tiles of equal size, as many as in `tiled`; carry-save adders add their products.

    Latency: ``registers``, and one more if there are several tiles.
    """
    high, wide = (-(-len(x) // -(-len(x) // most)) for x, most in ((a, block.a), (b, block.b)))
    products = {
        (j, i): one_tile(m, a[i : i + high], b[j : j + wide], registers, f"tile{i // high}{j // wide}")
        for j in range(0, len(b), wide)
        for i in range(0, len(a), high)
    }
    rows = tile_rows(len(b), len(a), DspBlock(wide, high))
    terms = [_side_by_side(row, products) for row in rows]
    if len(products) == 1:
        return terms[0]
    product = Signal(len(a) + len(b), name="product_sum", reset_less=True)
    m.d.sync += product.eq(carry_save(m, terms, len(product), "product"))
    return product


def carry_save(m: Module, terms: Sequence[Value], width: int, name: str) -> Value:
    """Sum of ``terms`` modulo 2^width, by a tree of carry-save adders and one carry chain; combinational.

    ``name``: prefix of the signals. Cost: 2 LUTs for each bit and term after the second, and an adder of ``width``
    bits.
    """
    left = [Cat(t, Const(0, width))[:width] if len(t) < width else t[:width] for t in terms]
    level = 0
    while len(left) > 2:
        following: list[Value] = []
        for k in range(0, len(left) - 2, 3):
            a, b, c = left[k : k + 3]
            one, two = (Signal(width, name=f"{name}_{word}{level}_{k}") for word in ("sum", "carry"))
            m.d.comb += [one.eq(a ^ b ^ c), two.eq(Cat(Const(0, 1), (a & b) | (a & c) | (b & c)))]
            following += [one, two]
        left = following + left[len(left) - len(left) % 3 :]
        level += 1
    return (left[0] + left[1])[:width] if len(left) == 2 else left[0]
