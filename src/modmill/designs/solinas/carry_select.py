# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A long addition in chunks: two sums of each chunk, for both carries in; one short addition of all carries; selection.

Let g_k be the carry out of chunk k without a carry in, and h_k the carry out with a carry in; h_k = 1 if g_k = 1. The
carry into chunk k + 1 is g_k | (h_k & carry into chunk k). These are the carries of the sum of the numbers (g_k) and
(h_k).
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from modmill.rtl.delay import later

LATENCY = 2
"""Cycles from the operands to the sum; the selection follows the second register."""


def carry_select_sum(m: Module, a: Value, b: Value, carry: int, chunk: int, name: str) -> tuple[Value, Value]:
    """(a + b + ``carry``) mod 2^(bits of a), and the carry out; after LATENCY cycles and a multiplexer.

    ``a`` and ``b`` have the same width; ``carry`` is 0 or 1; ``chunk``: bits of a chunk. Cost: 5 LUTs and 5 registers
    for each bit.
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
