# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Bus adapters: each makes accesses of `RegisterAccess` from the transfers of one bus, one after another.

All buses have 32 bits of data and 12 bits of byte address, of which the lowest two are ignored. Address and data are
registered before they are decoded. A transfer that `RegisterAccess` refuses ends with the bus's error response.

Sources: ARM: AMBA AXI and ACE Protocol Specification, IHI 0022, Part B. OpenCores: Wishbone B4, Sections 3 and 5.
ARM: AMBA APB Protocol Specification, IHI 0024. ARM: AMBA 3 AHB-Lite Protocol Specification, IHI 0033.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.buses.accesses import ADDRESS
from modmill.buses.device import WORD
from modmill.buses.stream import AxiStream
from modmill.contract import UnsupportedError

BYTE_ADDRESS = ADDRESS + 2
"""Bits of a byte address."""
_STROBES = WORD // 8
_WORD_SIZE = 2  # HSIZE of a transfer of 32 bits


class Adapter(wiring.Component):
    """A bus adapter; abstract. ``request``, ``write``, ``whole``, ``address`` and ``data`` go to `RegisterAccess` and
    stay until ``done``; ``error`` and ``read_data`` come with it. All are registers. ``pending``: a response with
    ``read_data`` is not taken."""

    ports: ClassVar[Mapping[str, Any]]
    """Ports of the bus, by name."""

    def __init__(self) -> None:
        super().__init__({
            "request": Out(1), "write": Out(1), "whole": Out(1), "address": Out(ADDRESS), "data": Out(WORD),
            "done": In(1), "error": In(1), "read_data": In(WORD), "pending": Out(1), **self.ports,
        })  # fmt: skip


class AxiLite(Adapter):
    """An AXI4-Lite slave: one read and one write can wait, and they are served by turns.

    Cost on ECP5: about 40 LUTs. Latency: 6 cycles from the address to a valid response.
    """

    ports: ClassVar[Mapping[str, Any]] = {
        "s_axi_awvalid": In(1), "s_axi_awready": Out(1), "s_axi_awaddr": In(BYTE_ADDRESS), "s_axi_awprot": In(3),
        "s_axi_wvalid": In(1), "s_axi_wready": Out(1), "s_axi_wdata": In(WORD), "s_axi_wstrb": In(_STROBES),
        "s_axi_bvalid": Out(1), "s_axi_bready": In(1), "s_axi_bresp": Out(2),
        "s_axi_arvalid": In(1), "s_axi_arready": Out(1), "s_axi_araddr": In(BYTE_ADDRESS), "s_axi_arprot": In(3),
        "s_axi_rvalid": Out(1), "s_axi_rready": In(1), "s_axi_rdata": Out(WORD), "s_axi_rresp": Out(2),
    }  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        aw, w, ar = (Signal(name=f"{name}_held") for name in ("aw", "w", "ar"))
        open_ = Signal(name="open")  # low during the reset, in which AXI wants no ready
        m.d.sync += open_.eq(1)
        addresses = {}
        for name, held in (("aw", aw), ("ar", ar)):
            address = addresses[name] = Signal(ADDRESS, name=f"{name}_address", reset_less=True)
            valid, ready, given = (getattr(self, f"s_axi_{name}{x}") for x in ("valid", "ready", "addr"))
            m.d.comb += ready.eq(~held & open_)
            with m.If(valid & ready):
                m.d.sync += [held.eq(1), address.eq(given[2:])]
        m.d.comb += self.s_axi_wready.eq(~w & open_)
        with m.If(self.s_axi_wvalid & self.s_axi_wready):
            m.d.sync += [w.eq(1), self.data.eq(self.s_axi_wdata), self.whole.eq(self.s_axi_wstrb.all())]
        active = Signal(name="active")
        writes, reads = aw & w & ~self.s_axi_bvalid, ar & ~self.s_axi_rvalid
        m.d.sync += self.request.eq(0)
        with m.If(~active & (writes | reads)):
            m.d.sync += [
                active.eq(1), self.request.eq(1), self.write.eq(writes),
                self.address.eq(Mux(writes, addresses["aw"], addresses["ar"])),
            ]  # fmt: skip
        with m.If(self.s_axi_bvalid & self.s_axi_bready):
            m.d.sync += self.s_axi_bvalid.eq(0)
        with m.If(self.s_axi_rvalid & self.s_axi_rready):
            m.d.sync += self.s_axi_rvalid.eq(0)
        with m.If(self.done):
            m.d.sync += active.eq(0)
            with m.If(self.write):
                m.d.sync += [aw.eq(0), w.eq(0), self.s_axi_bvalid.eq(1), self.s_axi_bresp[1].eq(self.error)]
            with m.Else():
                m.d.sync += [ar.eq(0), self.s_axi_rvalid.eq(1), self.s_axi_rresp[1].eq(self.error)]
        m.d.comb += [self.s_axi_rdata.eq(self.read_data), self.pending.eq(self.s_axi_rvalid)]
        return m


class Wishbone(Adapter):
    """A Wishbone B4 slave for classic and for pipelined masters: it stalls from the acceptance of a transfer until its
    acknowledge, in which a classic master still shows the transfer. A transfer whose cycle ends early is not
    acknowledged.

    Cost on ECP5: about 15 LUTs. Latency: 5 cycles from the strobe to the acknowledge.
    """

    ports: ClassVar[Mapping[str, Any]] = {
        "wb_cyc_i": In(1), "wb_stb_i": In(1), "wb_we_i": In(1), "wb_adr_i": In(BYTE_ADDRESS), "wb_sel_i": In(_STROBES),
        "wb_dat_i": In(WORD), "wb_dat_o": Out(WORD), "wb_ack_o": Out(1), "wb_err_o": Out(1), "wb_stall_o": Out(1),
    }  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        alive = Signal(name="alive")
        answered = self.wb_ack_o | self.wb_err_o | (~alive & self.done)
        replies = self.done & alive & self.wb_cyc_i
        m.d.sync += [
            self.request.eq(0), self.wb_ack_o.eq(replies & ~self.error), self.wb_err_o.eq(replies & self.error)
        ]  # fmt: skip
        m.d.comb += self.wb_dat_o.eq(self.read_data)
        with m.If(~self.wb_cyc_i):
            m.d.sync += alive.eq(0)
        with m.If(self.wb_cyc_i & self.wb_stb_i & ~self.wb_stall_o):
            m.d.sync += [
                self.wb_stall_o.eq(1), self.request.eq(1), alive.eq(1), self.write.eq(self.wb_we_i),
                self.address.eq(self.wb_adr_i[2:]), self.data.eq(self.wb_dat_i), self.whole.eq(self.wb_sel_i.all()),
            ]  # fmt: skip
        with m.If(answered | (self.done & ~self.wb_cyc_i)):
            m.d.sync += self.wb_stall_o.eq(0)
        return m


class Apb(Adapter):
    """An APB slave (APB4; leave pstrb at ones and pprot open for APB3).

    Cost on ECP5: about 5 LUTs. Latency: 5 cycles from the setup phase to pready.
    """

    ports: ClassVar[Mapping[str, Any]] = {
        "psel": In(1), "penable": In(1), "pwrite": In(1), "paddr": In(BYTE_ADDRESS), "pwdata": In(WORD),
        "pstrb": In(_STROBES), "pprot": In(3), "prdata": Out(WORD), "pready": Out(1), "pslverr": Out(1),
    }  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        setup = self.psel & ~self.penable
        m.d.comb += self.prdata.eq(self.read_data)
        m.d.sync += [self.request.eq(setup), self.pready.eq(self.done), self.pslverr.eq(self.done & self.error)]
        with m.If(setup):
            m.d.sync += [
                self.write.eq(self.pwrite), self.address.eq(self.paddr[2:]), self.data.eq(self.pwdata),
                self.whole.eq(self.pstrb.all()),
            ]  # fmt: skip
        return m


class AhbLite(Adapter):
    """An AHB-Lite slave: every transfer is taken on its own, also in a burst; an error takes two cycles.

    Cost on ECP5: about 20 LUTs. Latency: 7 cycles from the address phase to hreadyout.
    """

    ports: ClassVar[Mapping[str, Any]] = {
        "hsel": In(1), "haddr": In(BYTE_ADDRESS), "htrans": In(2), "hwrite": In(1), "hsize": In(3), "hburst": In(3),
        "hprot": In(4), "hwdata": In(WORD), "hready": In(1), "hrdata": Out(WORD), "hreadyout": Out(1, init=1),
        "hresp": Out(1),
    }  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        started = Signal(name="started")
        taken = self.hsel & self.hready & self.hreadyout & self.htrans[1]
        m.d.comb += self.hrdata.eq(self.read_data)
        m.d.sync += [self.request.eq(started), started.eq(taken)]
        with m.If(taken):
            m.d.sync += [
                self.hreadyout.eq(0), self.write.eq(self.hwrite), self.address.eq(self.haddr[2:]),
                self.whole.eq(self.hsize == _WORD_SIZE),
            ]  # fmt: skip
        with m.If(started):
            m.d.sync += self.data.eq(self.hwdata)
        with m.If(self.done):
            m.d.sync += [self.hreadyout.eq(~self.error), self.hresp.eq(self.error)]
        with m.If(self.hresp):
            m.d.sync += self.hresp.eq(~self.hreadyout)
            with m.If(~self.hreadyout):
                m.d.sync += self.hreadyout.eq(1)
        return m


@dataclass(frozen=True)
class Bus:
    """A bus: ``name`` on the command line, ``title``, its adapter, or a front of packets, and its type in IP-XACT
    (vendor, library, name, version)."""

    name: str
    title: str
    adapter: type[Adapter | AxiStream]
    vlnv: tuple[str, str, str, str]

    @property
    def packets(self) -> bool:
        """Whether it has packets, and no registers or interrupt."""
        return issubclass(self.adapter, AxiStream)


BUSES = (
    Bus("axi4-lite", "AXI4-Lite", AxiLite, ("amba.com", "AMBA4", "AXI4-Lite", "r0p0_0")),
    Bus("wishbone", "Wishbone B4", Wishbone, ("opencores.org", "Wishbone", "Wishbone", "B4")),
    Bus("apb", "APB4", Apb, ("amba.com", "AMBA4", "APB4", "r0p0_0")),
    Bus("ahb-lite", "AHB-Lite", AhbLite, ("amba.com", "AMBA3", "AHBLite", "r1p0_0")),
    Bus("axi-stream", "AXI4-Stream", AxiStream, ("amba.com", "AMBA4", "AXI4Stream", "r0p0_1")),
)
"""All buses."""


def find_bus(name: str) -> Bus:
    """The bus with this name. Raises UnsupportedError for an unknown name."""
    for bus in BUSES:
        if bus.name == name:
            return bus
    raise UnsupportedError(f"bus must be one of {', '.join(bus.name for bus in BUSES)}, not {name}")
