# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A long addition in chunks: two sums of each chunk, for both carries in; one short addition of all carries; selection.

Let g_k be the carry out of chunk k without a carry in, and h_k the carry out with a carry in; h_k = 1 if g_k = 1. The
carry into chunk k + 1 is g_k | (h_k & carry into chunk k). These are the carries of the sum of the numbers (g_k) and
(h_k). The carry into the lowest chunk is known; it has one sum, and g_0 = h_0.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from modmill.rtl.delay import later

LATENCY = 2
"""Cycles from the operands to the sum; the selection follows the second register."""


def carry_select_sum(
    m: Module, a: Value, b: Value, carry: int, chunk: int, name: str, *, out: bool = True
) -> tuple[Value, Value]:
    """(a + b + ``carry``) mod 2^(bits of a), and with ``out`` the carry out; after LATENCY cycles and a multiplexer.

    ``a`` and ``b`` have the same width; ``carry`` is 0 or 1; ``chunk``: bits of a chunk. Cost: 5 LUTs and 5 registers
    for each bit, in the lowest chunk 2.
    """
    chunks = []
    for k in range(0, len(a), chunk):
        one, two = a[k : k + chunk], b[k : k + chunk]
        sums = []
        for c in (0, 1) if k else (carry,):
            sums.append(Signal(len(one) + 1, name=f"{name}{k}_{c}", reset_less=True))
            m.d.sync += sums[-1].eq((Cat(Const(1, 1), one) + Cat(Const(1, 1), two))[1:] if c else one + two)
        chunks.append(sums)
    ends = chunks if out else chunks[:-1]
    generated, passed = (Cat(*(sums[c][-1] for sums in ends)) for c in (0, -1))
    into = (generated + passed)[1:] ^ Cat((generated ^ passed)[1:], Const(0, 1))
    carries = later(m, into, f"{name}_carries")
    parts = []
    for k, sums in enumerate(chunks):
        kept = [later(m, value[:-1], f"{name}{k}_kept_{c}") for c, value in enumerate(sums)]
        parts.append(Mux(carries[k - 1], kept[1], kept[0]) if k else kept[0])
    return Cat(*parts), carries[-1] if out else Const(0)
