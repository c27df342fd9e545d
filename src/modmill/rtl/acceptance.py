# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The input side of a machine that never stalls: acceptance of operands and of a modulus."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Signal, Value

from modmill.interface import Multiplier


class Acceptance:
    """Accepts operands if the machine can start a product and there is room for its result.

    ``places``: number of results that the machine can hold, including products under way. ``accept`` is high in the
    cycle in which operands are accepted. ``modulus`` has ``bits`` bits. In a core with stream k it is a register: it
    is loaded by one word while the machine holds no result, and operands wait for the first load. In another core it
    is the constant ``p``. `connect` must be called once.
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
        """Drive i_ready and count the free places. ``free``: the machine can start a product in this cycle."""
        m, core = self._m, self._core
        ready = free & (self._room != 0)
        if self._loadable:
            ready = ready & self._loaded & ~core.k_valid
        m.d.comb += [core.i_ready.eq(ready), self.accept.eq(core.i_valid & ready)]
        m.d.sync += self._room.eq(self._room - self.accept + (core.o_valid & core.o_ready))
