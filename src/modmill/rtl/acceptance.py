# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The front of a machine that never stalls: when it takes operands, and when it takes a modulus."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Signal, Value

from modmill.design import Multiplier


class Acceptance:
    """Operands are accepted when the machine is free and a place for their result is left.

    ``places``: results that the machine can hold, those under way included. ``free`` (give it to ``connect``): whether
    the machine can start in this cycle. ``accept`` is high in the cycle of an acceptance. For a core with stream k,
    ``modulus`` is a register for its one word of ``bits``, and operands wait until it was loaded; else it is ``p``.
    Cost: a counter, and the register.
    """

    def __init__(self, m: Module, core: Multiplier, p: int, bits: int, places: int) -> None:
        self._m, self._core = m, core
        self._room = Signal(range(places + 1), init=places)
        self.accept = Signal()
        self._loadable = hasattr(core, "k_valid")
        empty = self._room == places
        if self._loadable:
            register = Signal(bits, name="modulus", reset_less=True)
            self._loaded = Signal()
            m.d.comb += core.k_ready.eq(empty)
            with m.If(core.k_valid & core.k_ready):
                m.d.sync += [register.eq(core.k_m), self._loaded.eq(1)]
            self.modulus: Value = register
        else:
            self.modulus = Const(p, bits)

    def connect(self, free: Value) -> None:
        """Connect i_ready and the count of places."""
        m, core = self._m, self._core
        ready = free & (self._room != 0)
        if self._loadable:
            ready = ready & self._loaded & ~core.k_valid
        m.d.comb += [core.i_ready.eq(ready), self.accept.eq(core.i_valid & ready)]
        m.d.sync += self._room.eq(self._room - self.accept + (core.o_valid & core.o_ready))
