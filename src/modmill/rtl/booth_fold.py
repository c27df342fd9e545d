# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Reduction modulo 2^w - u by folding, where u is a signal: one circuit for every modulus.

The high bits are multiplied by u with radix-4 Booth digits. For a constant u see ``fold``.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from modmill.numbers.folding import fold_bound
from modmill.rtl.fold import bits
from modmill.rtl.product import carry_save

FINAL = 4
"""Most high bits that the last stage of a fold accepts."""


def booth_terms(x: Value, u: Value, width: int) -> list[Value]:
    """Terms whose sum modulo 2^width is x u, for unsigned ``x`` and ``u``: one row for each radix-4 Booth digit of u.

    A negative digit inverts its row and adds a carry. The bit above each row is its inverted sign; one constant
    corrects this for all rows.
    """
    size = len(x) + 1
    padded = Cat(Const(0, 1), u, Const(0, 2))
    terms: list[Value] = []
    signs: list[Value] = []
    constant = 0
    for k in range(len(u) // 2 + 1):
        low, middle, high = padded[2 * k], padded[2 * k + 1], padded[2 * k + 2]
        one, two = low ^ middle, Mux(high, ~(low | middle), low & middle)
        negative = high & ~(low & middle)
        row = (Cat(x, Const(0, 1)) & one.replicate(size)) | (Cat(Const(0, 1), x) & two.replicate(size))
        row = row ^ negative.replicate(size)
        if 2 * k < width:
            terms.append(Cat(Const(0, 2 * k), row, ~negative))
        signs += [negative, Const(0, 1)]
        constant -= 1 << (2 * k + size)
    terms.append(Cat(*signs))
    terms.append(Const(constant % (1 << width), width))
    return terms


class Fold:
    """Reduction modulo 2^w - u, where u is a signal; fully pipelined.

    ``t`` is below bounds[0]; ``bounds`` are the exclusive bounds before each stage except the last; ``us`` are all
    values that ``u`` can have. ``out`` is a lazy residue, below 2^w, as many cycles later as there are ``bounds``: each
    stage except the last ends in a register. The last stage folds up to FINAL high bits, and folds once more if the
    sum is 2^w or more.
    Cost: in each stage about (w + 3) LUTs for two bits of u.
    """

    def __init__(
        self, m: Module, t: Value, bounds: Sequence[int], w: int, us: Sequence[int], u: Value, name: str
    ) -> None:
        for k, bound in enumerate(bounds):
            after = max(fold_bound(bound, w, v) for v in us)
            width = bits(max(after, 1 << w))
            high, low = t[w : bits(bound)], t[:w]
            q = Signal(width, name=f"{name}_{k}", reset_less=True)
            m.d.sync += q.eq(carry_save(m, [*booth_terms(high, u, width), low], width, f"{name}_{k}"))
            later = Signal.like(u, name=f"{name}_u{k}", reset_less=True)
            m.d.sync += later.eq(u)
            t, u = q, later
        high, low = t[w:], t[:w]
        rows: list[Value] = [Cat(Const(0, k), u & high[k].replicate(len(u))) for k in range(len(high))]
        once = Signal(w + 1, name=f"{name}_once")
        twice = Signal(w + 1, name=f"{name}_twice")
        m.d.comb += [
            once.eq(carry_save(m, [*rows, low], w + 1, f"{name}_one")),
            twice.eq(carry_save(m, [*rows, low, u], w + 1, f"{name}_two")),
        ]
        self.out = Mux(once[w], twice[:w], once[:w])
