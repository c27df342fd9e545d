# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A long addition in chunks: each chunk's sum for both carries into it, all carries in one short addition, the choice.

With g_k the carry out of chunk k without a carry into it, h_k that with one (h_k = 1 wherever g_k = 1), the carry into
chunk k + 1 is g_k or h_k and the carry into k: the carries of the addition of the numbers (g_k) and (h_k).
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from modmill.rtl.delay import later

LATENCY = 2
"""Cycles from the operands to the sum, which is chosen in the cycle after the second register."""


def carry_select_sum(m: Module, a: Value, b: Value, carry: int, chunk: int, name: str) -> tuple[Value, Value]:
    """(a + b + ``carry``) mod 2^(bits of a), and the carry out of it; LATENCY cycles later, and a choice behind them.

    a and b have the same width. Cost: 5 LUTs and 5 registers for each bit.
    """
    pairs = []
    for k in range(0, len(a), chunk):
        one, two = a[k : k + chunk], b[k : k + chunk]
        without, with_one = (Signal(len(one) + 1, name=f"{name}{k}_{c}", reset_less=True) for c in (0, 1))
        m.d.sync += [without.eq(one + two), with_one.eq((Cat(Const(1, 1), one) + Cat(Const(1, 1), two))[1:])]
        pairs.append((without, with_one))
    generated, passed = (Cat(*(pair[c][-1] for pair in pairs)) for c in (0, 1))
    into = generated + passed + carry
    carries = later(m, into ^ Cat(generated ^ passed, Const(0, 1)), f"{name}_carries")
    parts = []
    for k, pair in enumerate(pairs):
        without, with_one = (later(m, value[:-1], f"{name}{k}_kept_{c}") for c, value in enumerate(pair))
        parts.append(Mux(carries[k], with_one, without))
    return Cat(*parts), carries[len(pairs)]
