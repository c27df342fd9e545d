# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Reduction modulo 2^w - u by folding, where u is a signal: one circuit for every modulus.

The high bits are multiplied by u with radix-4 Booth digits in logic, or in DSP blocks. For a constant u see ``fold``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from modmill.contract import Ranges
from modmill.numbers.folding import fold_bound
from modmill.rtl.delay import later
from modmill.rtl.fold import bits
from modmill.rtl.product import DspBlock, carry_save, one_tile

FINAL = 4
"""Most high bits that the last stage of a fold accepts."""


def booth_terms(m: Module, x: Value, u: Value, width: int, name: str) -> list[Value]:
    """Terms whose sum modulo 2^width is x u, for unsigned ``x`` and ``u``: one row for each radix-4 Booth digit of u.

    A negative digit inverts its row and adds a carry. The bit above each row is its inverted sign; one constant
    corrects this for all rows. Digits and rows are signals, named ``name`` and a number: an expression is emitted again
    at each use.
    """
    size = len(x) + 1
    padded = Cat(Const(0, 1), u, Const(0, 2))
    terms: list[Value] = []
    signs: list[Value] = []
    constant = 0
    for k in range(len(u) // 2 + 1):
        low, middle, high = padded[2 * k], padded[2 * k + 1], padded[2 * k + 2]
        one, two, negative = (Signal(name=f"{name}_{word}{k}") for word in ("one", "two", "minus"))
        row = Signal(size, name=f"{name}_row{k}")
        either = (Cat(x, Const(0, 1)) & one.replicate(size)) | (Cat(Const(0, 1), x) & two.replicate(size))
        m.d.comb += [
            one.eq(low ^ middle), two.eq(Mux(high, ~(low | middle), low & middle)), negative.eq(high & ~(low & middle)),
            row.eq(either ^ negative.replicate(size)),
        ]  # fmt: skip
        if 2 * k < width:
            terms.append(Cat(Const(0, 2 * k), row, ~negative))
        signs += [negative, Const(0, 1)]
        constant -= 1 << (2 * k + size)
    terms.append(Cat(*signs))
    terms.append(Const(constant % (1 << width), width))
    return terms


def stage_cycles(block: DspBlock | None) -> int:
    """Cycles of a stage of `Fold`: with DSP blocks one for the tiles and one for their sum."""
    return 1 if block is None else 2


def tile_places(high: int, u: int, block: DspBlock) -> list[tuple[int, int]]:
    """Tiles (first bit of the high part, first bit of u) of a product of ``high`` x ``u`` bits in DSP blocks. Up to
    FINAL last bits of the high part are left to logic, where they save a block."""
    count = max(1, -(-(high - FINAL) // block.b))
    return [(i * block.b, j) for i in range(count) for j in range(0, u, block.a)]


def tiled_terms(m: Module, high: Value, u: Value, block: DspBlock, name: str) -> list[Value]:
    """Terms whose sum is high * u, one cycle later: the products of `tile_places`, and a row for each bit left."""
    places = tile_places(len(high), len(u), block)
    rest = high[(places[-1][0] + block.b) :]
    terms = [
        Cat(Const(0, i + j), one_tile(m, u[j : j + block.a], high[i : i + block.b], 1, f"{name}_tile{i}_{j}"))
        for i, j in places
    ]
    if len(rest):
        u_rest = later(m, u, f"{name}_rest_u")
        bits_rest = later(m, rest, f"{name}_rest")
        at = len(high) - len(rest)
        terms += [Cat(Const(0, at + k), u_rest & bits_rest[k].replicate(len(u))) for k in range(len(rest))]
    return terms


def fold_ranges(
    path: str, bounds: Mapping[int, int], stages: int, w: int, t: str = "entry", name: str = "fold"
) -> Ranges:
    """Ranges of the registers of a `Fold` in logic called ``name``, in the instance ``path``: of ``t`` before it, with
    ``bounds``, exclusive, for each u, and of each stage. ``stages``: without the last."""
    found, u = {}, f"{name}_u"
    for k in range(stages + 1):
        found[f"{path}.{t}", f"{path}.{u}"] = bounds
        bounds = {one: fold_bound(bound, w, one) for one, bound in bounds.items()}
        t, u = f"{name}_{k}", f"{name}_u{k}"
    return found


class Fold:
    """Reduction modulo 2^w - u, where u is a signal; fully pipelined.

    ``t`` is below bounds[0]; ``bounds`` are the exclusive bounds before each stage except the last; ``us`` are all
    values that ``u`` can have. ``out`` is a lazy residue, below 2^w: each stage except the last ends in a register and
    takes `stage_cycles`. The last stage folds up to FINAL high bits, and folds once more if the sum is 2^w or more.
    ``block``: the DSP block that multiplies by u in each stage except the last; None: logic.
    Cost: in each stage in logic about (w + 3) LUTs for two bits of u; with DSP blocks those of `tile_places`.
    """

    def __init__(
        self, m: Module, t: Value, bounds: Sequence[int], w: int, us: Sequence[int], u: Value, name: str,
        block: DspBlock | None = None,
    ) -> None:  # fmt: skip
        for k, bound in enumerate(bounds):
            after = max(fold_bound(bound, w, v) for v in us)
            width = bits(max(after, 1 << w))
            high, low = t[w : bits(bound)], t[:w]
            q = Signal(width, name=f"{name}_{k}", reset_less=True)
            if block is None:
                terms = booth_terms(m, high, u, width, f"{name}_{k}")
            else:
                terms = tiled_terms(m, high, u, block, f"{name}_{k}")
                low, u = later(m, low, f"{name}_low{k}"), later(m, u, f"{name}_tile_u{k}")
            m.d.sync += q.eq(carry_save(m, [*terms, low], width, f"{name}_{k}"))
            t, u = q, later(m, u, f"{name}_u{k}")
        high, low = t[w:], t[:w]
        rows: list[Value] = [Cat(Const(0, k), u & high[k].replicate(len(u))) for k in range(len(high))]
        once = Signal(w + 1, name=f"{name}_once")
        twice = Signal(w + 1, name=f"{name}_twice")
        m.d.comb += [
            once.eq(carry_save(m, [*rows, low], w + 1, f"{name}_one")),
            twice.eq(carry_save(m, [*rows, low, u], w + 1, f"{name}_two")),
        ]
        self.out = Mux(once[w], twice[:w], once[:w])
