# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Packets instead of registers: a front with two AXI4-Streams. Every packet in has one packet out, in order.

    in     a header, then data words, the least significant one first; TLAST at the last one
    out    a word of status, then the words of the answer; TLAST at the last one

A header is the number of a command of the device (a message), or that of `CONTROLS`:

    abort, zeroise, selftest    end what the device does, then do it; no data words
    identify                    the answer has the words of the registers 0 to 15: constants, JOBS, 0 for others

The word of status is the register STATUS. An error has its cause there, and no other words; then the device is ready,
and after an error in a message behind its header command 0 is due. While a job runs, the next header is taken: one of
abort, zeroise or selftest ends the job, whose packet then has the cause ABORTED; any other one waits. After an alarm
every message has the error ALARM, and an answer that was on its way ends early, with a word 0.

Source: ARM: AMBA AXI-Stream Protocol Specification, IHI 0051, Sections 2.2 to 2.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Any, ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.buses.device import WORD, Device
from modmill.buses.registers import (
    ABORT,
    ALARM_CAUSE,
    CAUSES,
    NUMBERS,
    PACKET_CAUSES,
    PLACE,
    SELFTEST,
    ZEROISE,
    Field,
    RegisterMap,
)
from modmill.rtl.delay import later
from modmill.rtl.one_hot import OneHot

CONTROL = 0x100
"""The header of a control packet, without the bits of the register CONTROL."""
CONTROLS = {
    "identify": CONTROL, "abort": CONTROL | ABORT, "zeroise": CONTROL | ABORT | ZEROISE,
    "selftest": CONTROL | ABORT | SELFTEST,
}  # fmt: skip
"""Headers of control packets. All that act have the bit of an abort."""
_BITS = ABORT | ZEROISE | SELFTEST
_MEANINGS = {
    "SHORT": "TLAST before the message was complete", "LONG": "words behind the end of a message",
    **dict.fromkeys(("BUSY", "FULL", "EMPTY"), "not with packets"),
}  # fmt: skip
STREAM_CAUSES = (*((name, _MEANINGS.get(name, meaning)) for name, meaning in CAUSES), *PACKET_CAUSES)
"""Causes of an error in a word of status; those that are not of the registers stand behind them."""
PACKET_CYCLES = 32
"""Most cycles of a packet of one word, and of its answer of one, besides those of what it does."""
WORDS = 1 << PLACE
"""Words of the answer to identify, without the one of status."""


def stream_causes(device: Device) -> tuple[tuple[str, str], ...]:
    """Causes of an error in a word of status of this device."""
    return (*STREAM_CAUSES, ALARM_CAUSE) if device.alarm else STREAM_CAUSES


class AxiStream(wiring.Component):
    """A front with two AXI4-Streams, in place of a bus adapter and `RegisterAccess`: it writes to `JobControl` what a
    driver would write to registers. A word of a packet with a bit of ``s_axis_tkeep`` at 0 is refused.

    Cost on ECP5: about 190 LUTs. Latency: 4 cycles from a word to its write. Throughput: a word every 5 cycles in, and
    every 6 out.
    """

    ports: ClassVar[Mapping[str, Any]] = {
        "s_axis_tvalid": In(1), "s_axis_tready": Out(1), "s_axis_tdata": In(WORD), "s_axis_tkeep": In(WORD // 8),
        "s_axis_tlast": In(1),
        "m_axis_tvalid": Out(1), "m_axis_tready": In(1), "m_axis_tdata": Out(WORD), "m_axis_tlast": Out(1),
    }  # fmt: skip

    def __init__(self, registers: RegisterMap) -> None:
        self._registers = registers
        super().__init__({
            **self.ports, "data": Out(WORD),
            **{f"write_{name}": Out(1) for name in ("command", "data_in", "control", "irq_status")},
            "read_data_out": Out(1), **{f"value_{name}": In(WORD) for name in ("status", "level", "data_out", "jobs")},
            "place": Out(PLACE, init=self._place("DATA_OUT")), "constant": In(WORD),
        })  # fmt: skip

    def _place(self, register: str) -> int:
        return self._registers[register].offset // 4

    def _error(self, cause: str) -> int:
        """The bits of STATUS for an error with this cause."""
        error, causes = (self._found("STATUS", name) for name in ("error", "cause"))
        return error.mask | NUMBERS[cause] << causes.low

    def _found(self, register: str, name: str) -> Field:
        return next(field for field in self._registers[register].fields if field.name == name)

    def _field(self, register: str, name: str) -> Value:
        """A field of the value of a register."""
        field = self._found(register, name)
        value: Value = getattr(self, f"value_{register.lower()}")
        return value[field.low : field.low + field.width]

    def elaborate(self, platform: object) -> Module:
        m = self._m = Module()
        names = "ready", "receiving", "busy", "done", "error"
        self._status = status = {name: self._field("STATUS", name) for name in names}
        self._alarm: Value | None = None
        if any(field.name == "alarm" for field in self._registers["STATUS"].fields):
            self._alarm = self._field("STATUS", "alarm")
            status["ready"] = status["ready"] | (self._alarm & ~status["busy"])  # a command is taken, and is an error
        # a word is held, the last one of its packet, without all bytes
        self._held, self._last, self._part = (Signal(name=name) for name in ("held", "last", "part"))
        # of a packet: it has data words, a control packet acted, its job was ended, a word is incomplete, it identifies
        self._entered, self._acted, self._aborted, self._incomplete, self._tells = self._flags = [
            Signal(name=name) for name in ("entered", "acted", "aborted", "incomplete", "tells")
        ]
        self._begins = Signal(name="begins", init=1)  # the next word out is that of status
        settled, taken = Signal(4, name="settled"), Signal(name="taken")
        self._moves = Signal(name="moves")
        moved = Cat(later(m, self._moves, "moved"), later(m, taken, "came")).any()
        self._soon, self._still = settled[0] & ~moved, settled[-1] & ~moved  # since the last word, write or state
        self._drained, self._cleared = Signal(name="drained"), Signal(name="cleared")  # at the end of an error
        writes = ("command", "data_in", "control", "irq_status")
        self._writes = {name: Signal(name=f"{name}_due") for name in writes}
        m.d.sync += [getattr(self, f"write_{name}").eq(due) for name, due in self._writes.items()]
        m.d.sync += settled.eq(Mux(moved, 0, Cat(1, settled)))
        self._machine = OneHot(m, "packet")
        self._take(taken)
        self._controls = self._marked()
        with self._machine:
            self._header()
            self._data_words()
            self._job()
            self._answer()
        self._end_errors()
        return m

    def _end_errors(self) -> None:
        """Write what ends an error, in the cycle after it was dropped or told; no word is taken then."""
        m = self._m
        for ended, name, word, condition in (
            (self._drained, "control", ABORT, self._entered),
            (self._cleared, "irq_status", self._found("IRQ_STATUS", "error").mask, Const(1)),
        ):
            with m.If(later(m, ended, f"{name}_ends")):
                m.d.sync += self.data.eq(word)
                m.d.comb += self._writes[name].eq(condition)

    def _take(self, taken: Signal) -> None:
        """Take a word in the states that want one."""
        m, open_ = self._m, Signal(name="open")  # low during a reset, and while an error is cleared
        states = [self._machine.ongoing(state) for state in ("HEAD", "DATA", "RUN", "DRAIN")]
        m.d.sync += open_.eq(~self._cleared)
        m.d.comb += [
            self.s_axis_tready.eq(open_ & ~self._held & Cat(states).any()),
            taken.eq(self.s_axis_tvalid & self.s_axis_tready),
        ]  # fmt: skip
        with m.If(taken):
            m.d.sync += [
                self.data.eq(self.s_axis_tdata), self._last.eq(self.s_axis_tlast), self._held.eq(1),
                self._part.eq(~self.s_axis_tkeep.all()),
            ]  # fmt: skip
        with m.If(self.write_data_in & ~self._last):
            m.d.sync += self._held.eq(0)

    def _go(self, state: str) -> None:
        self._m.d.comb += self._moves.eq(1)
        self._machine.next(state)

    def _write(self, name: str) -> None:
        self._m.d.comb += [self._moves.eq(1), self._writes[name].eq(1)]

    def _marked(self) -> Value:
        """Whether the word is one of `CONTROLS`."""
        m, low, half = self._m, _BITS.bit_length(), WORD // 2
        return Cat(
            later(m, self.data[half:] == 0, "small"), later(m, self.data[low:half] == CONTROL >> low, "marked"),
            later(m, self.data[0] | (self.data[:low] == 0), "meant"),
        ).all()  # fmt: skip

    def _header(self) -> None:
        """The state in which a header is awaited, and the one in which what was written last has its effect."""
        m, status, last = self._m, self._status, self._last
        with self._machine.state("HEAD"), m.If(self._held & self._soon):
            with m.If(self._part):
                m.d.sync += self._incomplete.eq(1)
                self._go("DRAIN")
            with m.Elif(self._controls & last):
                m.d.comb += self._writes["control"].eq(~self._acted)
                m.d.sync += self._tells.eq(~self.data[0])
                self._go("END")
            with m.Elif(self._controls):
                self._write("data_in")  # which is an error
                self._go("TAKEN")
            with m.Elif(status["ready"]):
                self._write("command")
                self._go("TAKEN")
        with self._machine.state("TAKEN"), m.If(self._still):
            with m.If(status["error"]):
                self._go("DRAIN")
            with m.Elif(~last):
                m.d.sync += [self._held.eq(0), self._entered.eq(1)]
                self._go("DATA")
            with m.Elif(status["receiving"]):
                self._write("command")  # which is an error, and aborts
            with m.Else():
                m.d.sync += self._held.eq(0)
                self._go("RUN")

    def _data_words(self) -> None:
        """The states in which data words are written, and in which those behind an error are dropped."""
        m, status = self._m, self._status
        room = later(m, self._field("LEVEL", "free") != 0, "room")
        with self._machine.state("DATA"):
            with m.If(status["error"]):
                self._go("DRAIN")
            with m.Elif(self._held & self._soon & self._part):
                m.d.sync += self._incomplete.eq(1)
                self._go("DRAIN")
            with m.Elif(self._held & self._soon & (room | ~status["receiving"])):
                self._write("data_in")
                with m.If(self._last):
                    self._go("TAKEN")
        with self._machine.state("DRAIN"), m.If(self._held):
            m.d.sync += self._held.eq(0)
            with m.If(self._last):
                m.d.comb += self._drained.eq(1)
                self._go("END")

    def _job(self) -> None:
        """The states in which a job runs, and in which the device is awaited after an error or a control packet."""
        m, status = self._m, self._status
        acts = self._controls & self.data[0] & self._last & ~self._part
        with self._machine.state("RUN"), m.If(self._still):
            with m.If(status["done"] | status["ready"]):
                self._go("ANSWER")
            with m.Elif(self._held & acts):
                self._write("control")
                m.d.sync += [self._acted.eq(1), self._aborted.eq(1)]
                self._go("ANSWER")
        with self._machine.state("END"), m.If(self._still & status["ready"]):
            m.d.sync += [self._held.eq(0), self._acted.eq(0)]
            self._go("ANSWER")

    def _answer(self) -> None:
        """The state in which the words of an answer are given."""
        m, status, begins, tells = self._m, self._status, self._begins, self._tells
        own = Mux(self._incomplete, self._error("PART"), 0) | Mux(self._aborted, self._error("ABORTED"), 0)
        banks = [  # of which all but one are 0; a reset, which costs no LUT, selects it
            later(m, Mux(begins, self.value_status | own, 0), "bank_status"),
            later(m, Mux(begins, 0, self.value_data_out), "bank_data_out"),
            later(m, Mux(self.place == self._place("JOBS"), self.value_jobs, 0), "bank_jobs"),
        ]
        levels, pops = self._field("LEVEL", "words"), Signal(name="pops")
        some, final = levels != 0, status["done"] & ~status["busy"] & (levels == 1)
        for k in range(4):  # a word is in its bank so much later
            some = later(m, some, f"some_{k}")
        pop = ~begins & ~tells
        if self._alarm is not None:
            cut = self._alarm & ~status["done"]  # the words that are left were dropped
            some, final, pop = some | cut, final | cut, pop & ~cut
        m.d.sync += self.read_data_out.eq(pops)
        alone = ~tells & (~status["done"] | self._aborted)
        with self._machine.state("ANSWER"):
            with m.If(~self.m_axis_tvalid & self._still & (tells | begins | some)):
                m.d.comb += [self._moves.eq(1), pops.eq(pop)]
                m.d.sync += [
                    self.m_axis_tdata.eq(reduce(or_, banks, self.constant)), self.m_axis_tvalid.eq(1), begins.eq(0),
                    self.m_axis_tlast.eq(Mux(begins, alone, Mux(tells, self.place.all(), final))),
                ]  # fmt: skip
                with m.If(tells):
                    m.d.sync += self.place.eq(Mux(begins, 0, self.place + 1))
            with m.If(self.m_axis_tvalid & self.m_axis_tready):
                m.d.sync += self.m_axis_tvalid.eq(0)
                with m.If(self.m_axis_tlast):
                    m.d.sync += [flag.eq(0) for flag in self._flags if flag is not self._acted]
                    m.d.sync += [self.place.eq(self._place("DATA_OUT")), begins.eq(1)]
                    m.d.comb += self._cleared.eq(status["error"])
                    self._go("HEAD")
