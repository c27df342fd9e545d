# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Reduction modulo 2^w - u by folding with u a signal: one piece of logic for every modulus.

The product of the high bits and u is made of radix-4 Booth digits; see ``fold`` for a u that is a constant.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from modmill.numbers.folding import fold_bound
from modmill.rtl.fold import bits
from modmill.rtl.product import carry_save

FINAL = 4
"""High bits that the last stage of a fold takes."""


def booth_terms(x: Value, u: Value, width: int) -> list[Value]:
    """Terms whose sum modulo 2^width is x u: radix-4 Booth digits of the unsigned ``u``, chosen in logic.

    A negative digit inverts its row and adds a carry; the bit above a row is its inverted sign, which one constant for
    all rows makes good.
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
    """Reduction modulo 2^w - u with u a signal: one register behind each stage but the last, which has none.

    ``out`` is a lazy residue of ``t`` < bounds[0] so many cycles later as there are ``bounds``. The last stage takes up
    to FINAL high bits, folds them, and folds once more where that passes 2^w.
    Cost: for each stage about (w + 3) LUTs for each two bits of u.
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
