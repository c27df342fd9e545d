# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Between a front and a device with a clock of its own: two queues for words, and the reset there and back.

    bus clock       words i -> queue -> ... words o <- queue <- ... reset -> two registers ->   <- two registers <- rest
    engine's clock             -> words i            <- words o                    -> e_rst, a count -> rest

All crossings are those of Amaranth's library: asynchronous queues with Gray-coded places, and chains of two registers.
A reset of the front is held until the device says that it has been in reset long enough (``rest``), and the front goes
on when the device says that it has left it. So both sides of each queue are in reset at the same time, whatever the two
clocks are, and no word of an old job comes out of a queue. ``rst`` reaches the device at once, also without its clock.

Source: C. E. Cummings, P. Alfke: Simulation and Synthesis Techniques for Asynchronous FIFO Design with Asynchronous
Pointer Comparisons. SNUG San Jose, 2002, Section 2; the queues are of the other style there, with places that cross.
"""

from __future__ import annotations

import re

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer, ResetSynchronizer
from amaranth.lib.fifo import AsyncFIFO
from amaranth.lib.wiring import In, Out

from modmill.buses.device import RESET_CYCLES, WORD, Device
from modmill.contract import ALARM
from modmill.flow.memories import ATTRIBUTES

CLOCK = "engine_clk"
"""The port of the engine's clock."""
DOMAIN = "engine"
"""The clock domain of the device."""
DEPTH = 4
"""Words of a queue."""
LATENCY = 1, 3
"""Most cycles of a word in a queue: of the clock that gives it, and of the one that takes it."""
QUEUES = "to_engine", "from_engine"
"""Instances of queues."""
ASYNCHRONOUS = "reset_at_once", "rst_cdc"
"""Instances of chains of registers that are set asynchronously; those of a queue end in cdc."""
CHAINS = "reset_there", "rest_back", "produce_cdc", "consume_cdc"
"""Instances of chains of registers whose first one takes what comes from another clock."""
ALARM_CHAIN = "alarm_back"
"""The instance of another one, of a device with an alarm."""


_STORAGE = re.compile(r"^ *(?=reg \[\d+:0\] storage \[)", re.MULTILINE)


def in_block_rams(verilog: str) -> str:
    """Verilog whose queues have their words in block RAMs. No word is read before it is written."""
    return _STORAGE.sub(f"  (* no_rw_check{ATTRIBUTES} *)\n\\g<0>", verilog)


class Crossing(wiring.Component):
    """Take words ``i`` of the front from the bus clock to the domain `DOMAIN`, and words ``o`` back; ``e``: both
    streams on the device's side. ``i_every``, ``i_closes``: as of `Dealer`, for several machines.

    ``reset``: a register that resets the device. ``rest``: the device has been in reset for the cycles that it needs.
    ``drained``: the device has taken all words that were given at least 3 cycles ago. ``e_rst``: reset of the device.
    `ALARM`: that of the device, if it has one, a few cycles later.

    Cost on ECP5, measured: 61 LUTs, 64 registers and two block RAMs. Latency: 1 cycle of the clock that gives a word,
    and up to 3 of the one that takes it.
    """

    def __init__(self, device: Device) -> None:
        self._cycles = max(device.power_up, RESET_CYCLES)
        to = {"i_data": WORD, **({"i_every": 1, "i_closes": 1} if device.machines > 1 else {})}
        self._to, back = tuple(to), {"o_data": WORD, "o_last": 1}
        self._back = tuple(back)
        streams = {
            "i_valid": In(1), "i_ready": Out(1), **{name: In(bits) for name, bits in to.items()},
            "o_valid": Out(1), "o_ready": In(1), **{name: Out(bits) for name, bits in back.items()},
            **({ALARM: Out(1)} if device.alarm else {}),
        }  # fmt: skip
        self._alarm = device.alarm
        super().__init__({
            "reset": In(1), "rest": Out(1), "drained": Out(1), "e_rst": Out(1), **streams,
            "e": Out(wiring.Signature(streams).flip()),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        held = self._resets(m)
        # the clocks of both sides, each with a register that is the reset of a queue
        for domain, clock, reset in (("giving", "sync", self.reset), ("answering", DOMAIN, held)):
            m.domains += ClockDomain(domain, local=True)
            m.d.comb += [ClockSignal(domain).eq(ClockSignal(clock)), ResetSignal(domain).eq(reset)]
        words, answer = Cat(getattr(self, name) for name in self._to), Cat(getattr(self.e, name) for name in self._back)
        there = AsyncFIFO(width=len(words), depth=DEPTH, w_domain="giving", r_domain=DOMAIN)
        back = AsyncFIFO(width=len(answer), depth=DEPTH, w_domain="answering", r_domain="sync")
        m.submodules.to_engine, m.submodules.from_engine = there, back
        m.d.comb += [
            there.w_en.eq(self.i_valid), self.i_ready.eq(there.w_rdy), there.w_data.eq(words),
            self.e.i_valid.eq(there.r_rdy), there.r_en.eq(self.e.i_ready),
            Cat(getattr(self.e, name) for name in self._to).eq(there.r_data), self.drained.eq(there.w_level == 0),
            back.w_en.eq(self.e.o_valid), self.e.o_ready.eq(back.w_rdy), back.w_data.eq(answer),
            self.o_valid.eq(back.r_rdy), back.r_en.eq(self.o_ready),
            Cat(getattr(self, name) for name in self._back).eq(back.r_data),
        ]  # fmt: skip
        if self._alarm:
            alarm = Signal(name="device_alarm")
            m.d[DOMAIN] += alarm.eq(getattr(self.e, ALARM))
            chain = FFSynchronizer(alarm, getattr(self, ALARM), o_domain="sync", reset_less=False)
            m.submodules[ALARM_CHAIN] = chain
        return m

    def _resets(self, m: Module) -> Signal:
        """The reset there, and that it has lasted long enough back. The registers on the device's side are reset by
        ``rst`` at once, so the device is in reset after power-up before its clock runs. Returns the register of the
        reset."""
        m.domains.resetting = ClockDomain(async_reset=True, local=True)
        m.d.comb += ClockSignal("resetting").eq(ClockSignal(DOMAIN))
        m.submodules.reset_at_once = ResetSynchronizer(ResetSignal(), domain="resetting")
        left = Signal(range(self._cycles), name="cycles_left", init=self._cycles - 1)
        held, rests = Signal(name="held"), Signal(name="rests")
        m.d.comb += self.e_rst.eq(held | ResetSignal("resetting"))  # the latter sets held, but a simulator may be late
        m.submodules.reset_there = FFSynchronizer(self.reset, held, o_domain="resetting", init=1, reset_less=False)
        m.submodules.rest_back = FFSynchronizer(rests, self.rest, o_domain="sync", reset_less=False)
        with m.If(~held):
            m.d.resetting += left.eq(self._cycles - 1)
        with m.Elif(left != 0):
            m.d.resetting += left.eq(left - 1)
        m.d.resetting += rests.eq(held & (left == 0))
        return held
