# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Accesses to registers: the decoder that follows from the description of the registers.

cycle   request    registers
0       1          address, data and the rest come from registers of the bus adapter and stay until ``done``
1                  whether the access is refused
2                  write_NAME or read_NAME of one register; the value of one register, gathered
3       done       read_data, error
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.buses.device import WORD
from modmill.buses.registers import SPAN, Register, RegisterMap
from modmill.rtl.delay import later

ADDRESS = (SPAN // 4 - 1).bit_length()
"""Bits of the address of a word."""
_HALF = WORD // 2


def lower(register: Register) -> str:
    """The register's name in a port's name."""
    return register.name.lower()


def popped(register: Register) -> bool:
    """Whether reading the register takes a word."""
    return any(field.access == "pop" for field in register.fields)


class RegisterAccess(wiring.Component):
    """Decode accesses to registers, one at a time.

    ``write_NAME`` and ``read_NAME`` are high for one cycle for an accepted write, or for a read that takes a word;
    ``value_NAME`` is the value of a register that is not constant, ``constant`` that of the constant one with number
    ``place`` two cycles ago. Refused with ``error``: an address without a
    register, writes that are not of a whole word, writes to registers that are only read, and the reverse.
    ``forget``: ``read_data`` becomes 0 as soon as no response with it is ``pending``.

    Cost on ECP5: about 70 LUTs. Latency: 3 cycles from ``request`` to ``done``.
    """

    def __init__(self, registers: RegisterMap) -> None:
        self._registers = registers
        super().__init__({
            "request": In(1), "write": In(1), "whole": In(1), "address": In(ADDRESS), "pending": In(1), "forget": In(1),
            "done": Out(1), "error": Out(1), "read_data": Out(WORD),
            "place": Out(registers.place_bits), "constant": In(WORD),
            **{f"write_{lower(r)}": Out(1) for r in registers.registers if r.writable},
            **{f"read_{lower(r)}": Out(1) for r in registers.registers if popped(r)},
            **{f"value_{lower(r)}": In(WORD) for r in registers.registers if r.readable and not r.constant},
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        registers = self._registers.registers
        bits = (len(registers) - 1).bit_length()
        place, near = self.address[:bits], Signal()
        m.d.comb += self.place.eq(self.address)
        m.d.comb += near.eq(self.address[bits:] == 0)

        def one_of(some: Iterable[Register]) -> Value:
            return reduce(or_, (place == r.offset // 4 for r in some), Const(0, 1))

        readable, writable = (one_of(r for r in registers if getattr(r, kind)) for kind in ("readable", "writable"))
        allowed = near & Mux(self.write, self.whole & writable, readable)
        writes, reads, asked, gathered = (Signal(name=name) for name in ("writes", "reads", "asked", "gathered"))
        m.d.sync += [
            writes.eq(self.request & self.write & self.whole & near), reads.eq(self.request & ~self.write & near),
            asked.eq(self.request), gathered.eq(asked),
        ]  # fmt: skip
        refused = later(m, ~allowed, "refused")
        here = {
            r.name: later(m, near & (place == r.offset // 4), f"at_{lower(r)}")
            for r in registers if r.readable and not r.constant
        }  # fmt: skip
        for r in registers:
            if r.writable:
                m.d.sync += getattr(self, f"write_{lower(r)}").eq(writes & (place == r.offset // 4))
            if popped(r):
                m.d.sync += getattr(self, f"read_{lower(r)}").eq(reads & (place == r.offset // 4))
        banks = self._banks(m, here)
        forgetting = Signal(name="forgetting")
        read = gathered & ~self.write
        with m.If(read):
            m.d.sync += self.read_data.eq(reduce(or_, banks))
        with m.If(forgetting & ~self.pending):
            m.d.sync += forgetting.eq(0)
        with m.If(forgetting & ~self.pending & ~read):  # a reset of the register, which costs no LUT
            m.d.sync += self.read_data.eq(0)
        with m.If(self.forget):
            m.d.sync += forgetting.eq(1)
        m.d.sync += [self.done.eq(gathered), self.error.eq(refused)]
        return m

    def _banks(self, m: Module, here: dict[str, Signal]) -> list[Value]:
        """Registers, of which all but one are 0 while a register is read: a value that fills its register has one of
        its own, whose reset selects it and costs no LUT; the others share one."""
        banks, shared = [], list[Value]()
        for r in self._registers.registers:
            if not r.readable or r.constant:
                continue
            value = getattr(self, f"value_{lower(r)}")
            if r.fields[0].width == WORD:
                banks.append(later(m, Mux(here[r.name], value, 0), f"bank_{lower(r)}"))
                continue
            shared.append(Mux(here[r.name], value[:_HALF], 0))
            if any(field.low >= _HALF for field in r.fields):
                banks.append(later(m, Mux(here[r.name], value[_HALF:], 0) << _HALF, f"bank_{lower(r)}"))
        return [*banks, later(m, reduce(or_, shared), "bank"), self.constant]
