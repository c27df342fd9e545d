# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Independent masters of each bus (cocotbext), behind one interface: read, write, each with the response expected."""

import random
from typing import ClassVar

from cocotb.triggers import RisingEdge
from cocotbext.ahb import AHBBus, AHBLiteMaster
from cocotbext.apb import ApbBus, ApbMaster
from cocotbext.axi import AxiLiteBus, AxiLiteMaster
from cocotbext.wishbone.driver import WBOp, WishboneMaster

WHOLE = 0xF


class Master:
    """A master that pauses at random between accesses."""

    def __init__(self, dut, seed, pauses=0.3):
        self.dut, self.random, self.pauses = dut, random.Random(seed), pauses

    async def pause(self):
        while self.random.random() < self.pauses:
            await RisingEdge(self.dut.clk)

    async def read(self, address, *, error=False):
        await self.pause()
        value, refused = await self.reading(address, error)
        assert refused == error, f"read of {address:#x}: {'refused' if refused else 'accepted'}"
        return value

    async def write(self, address, word, *, error=False, bytes_=WHOLE):
        await self.pause()
        refused = await self.writing(address, word, bytes_, error)
        assert refused == error, f"write of {address:#x}: {'refused' if refused else 'accepted'}"


class Axi(Master):
    def __init__(self, dut, seed, **more):
        super().__init__(dut, seed, **more)
        self.master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi"), dut.clk, dut.rst)
        write, read = self.master.write_if, self.master.read_if
        for k, channel in enumerate(
            (write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel)
        ):
            if self.pauses:
                channel.set_pause_generator(self.pausing(seed + k))

    def pausing(self, seed):
        rnd = random.Random(seed)
        while True:
            yield rnd.random() < self.pauses

    async def reading(self, address, error):
        found = await self.master.read(address, 4)
        return int.from_bytes(found.data, "little"), int(found.resp) == 2

    async def writing(self, address, word, bytes_, error):
        low = (bytes_ & -bytes_).bit_length() - 1
        data = word.to_bytes(4, "little")[low : low + bytes_.bit_count()]
        return int((await self.master.write(address + low, data)).resp) == 2


class Wishbone(Master):
    """A pipelined master, or a classic one that does not know the stall."""

    signals: ClassVar = {
        "cyc": "wb_cyc_i", "stb": "wb_stb_i", "we": "wb_we_i", "adr": "wb_adr_i", "datwr": "wb_dat_i",
        "datrd": "wb_dat_o", "ack": "wb_ack_o", "sel": "wb_sel_i", "err": "wb_err_o",
    }  # fmt: skip

    def __init__(self, dut, seed, **more):
        super().__init__(dut, seed, **more)
        self.master = WishboneMaster(dut, None, dut.clk, signals_dict=self.signals)

    async def reading(self, address, error):
        (found,) = await self.master.send_cycle([WBOp(address, idle=self.random.randrange(3), acktimeout=100)])
        return int(found.datrd), found.ack == 2

    async def writing(self, address, word, bytes_, error):
        op = WBOp(address, word, idle=self.random.randrange(3), sel=bytes_, acktimeout=100)
        (found,) = await self.master.send_cycle([op])
        return found.ack == 2


class PipelinedWishbone(Wishbone):
    signals: ClassVar = {**Wishbone.signals, "stall": "wb_stall_o"}


class Apb(Master):
    def __init__(self, dut, seed, **more):
        super().__init__(dut, seed, **more)
        self.master = ApbMaster(ApbBus(dut, None), dut.clk)
        self.master.log.setLevel("ERROR")

    async def reading(self, address, error):
        return int.from_bytes(await self.master.read(address, error_expected=error), "little"), error

    async def writing(self, address, word, bytes_, error):
        await self.master.write(address, word, strb=bytes_, error_expected=error)
        return error


class Ahb(Master):
    def __init__(self, dut, seed, **more):
        super().__init__(dut, seed, **more)
        names = ("haddr", "hsize", "htrans", "hwdata", "hrdata", "hwrite", "hresp")
        others = {name: name for name in ("hburst", "hprot", "hsel")}
        signals: ClassVar = {**{name: name for name in names}, "hready": "hreadyout", **others, "hready_in": "hready"}
        self.master = AHBLiteMaster(AHBBus(dut, None, signals=signals, optional_signals={}), dut.clk, dut.rst)

    async def reading(self, address, error):
        found = (await self.master.read(address))[0]
        return int(found["data"], 16), int(found["resp"]) == 1

    async def writing(self, address, word, bytes_, error):
        size = {WHOLE: 4, 3: 2, 1: 1}[bytes_]
        return int((await self.master.write(address, word, size=size))[0]["resp"]) == 1


MASTERS = {
    "axi4-lite": [Axi], "wishbone": [Wishbone, PipelinedWishbone], "apb": [Apb], "ahb-lite": [Ahb],
}  # fmt: skip
