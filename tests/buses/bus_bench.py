# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""cocotb tests of a bus front with the stub behind it; BUS in the environment names the bus, SEPARATE the period of the
stub's own clock in ps, SLOTS the number of its key slots, OWN whether each has a setup."""

import os
import random
from dataclasses import replace
from functools import partial

import cocotb
from amaranth.lib.wiring import In
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge, with_timeout
from masters import MASTERS
from stub_engine import ECHO, KEY, ONE, SUM, answer, keyed, several

from modmill.buses.adapters import find_bus
from modmill.buses.crossing import DEPTH
from modmill.buses.registers import causes, register_map
from modmill.buses.slots import SIDELOAD

BUS, MACHINES = os.environ["BUS"], int(os.environ["MACHINES"])
SEPARATE = int(os.environ.get("SEPARATE", 0))
SLOTS, OWN = int(os.environ.get("SLOTS", 0)), "OWN" in os.environ
DEVICE = replace(several(MACHINES), separate=bool(SEPARATE))
if SLOTS:
    DEVICE = keyed(DEVICE, SLOTS, OWN)
SLOWER = max(1, -(-SEPARATE // 10_000))  # cycles of the bus in one of the slower clock
COUNTED = DEVICE.counted
answer = partial(answer, machines=MACHINES)
REGISTERS = register_map(DEVICE)
CAUSE = {name: number for number, (name, _) in enumerate(causes(DEVICE))}
DONE, ERROR = 1, 2
ABORT, ZEROISE, SELFTEST = 1, 2, 4


def stubs(dut):
    """The engines."""
    return [getattr(dut, f"core{k}_inside") for k in range(MACHINES)] if MACHINES > 1 else [dut.stub_inside]


def hold(dut, value):
    """Whether the engines take no words."""
    for stub in stubs(dut):
        stub.hold.value = value


def bits(register, field, value):
    found = next(f for f in REGISTERS[register].fields if f.name == field)
    return (value & found.mask) >> found.low


class Driver:
    """A driver on one master, as simple as can be."""

    def __init__(self, dut, master):
        self.dut, self.master, self.key = dut, master, 0

    async def read(self, name, **more):
        return await self.master.read(REGISTERS[name].offset, **more)

    async def write(self, name, word, **more):
        await self.master.write(REGISTERS[name].offset, word, **more)

    async def status(self, field):
        return bits("STATUS", field, await self.read("STATUS"))

    async def until(self, field):
        for _ in range(200 * MACHINES * SLOWER):
            if await self.status(field):
                return
        raise AssertionError(f"never {field}")

    async def send(self, command, words):
        await self.write("COMMAND", command)
        for word in words:
            while not bits("LEVEL", "free", await self.read("LEVEL")):
                pass
            await self.write("DATA_IN", word)

    async def answer(self, count):
        found = []
        await self.until("done")
        while len(found) < count:
            level = bits("LEVEL", "words", await self.read("LEVEL"))
            found += [await self.read("DATA_OUT") for _ in range(level)]
        return found

    async def setup(self, words):
        await self.until("ready")
        await self.send(KEY, words)
        await self.until("ready")
        self.key = sum(words) % 2**32

    async def job(self, command, words):
        await self.until("ready")
        await self.send(command, words)
        wanted = answer(self.key, command, words)
        assert await self.answer(len(wanted)) == wanted, f"wrong answer to command {command}"
        assert await self.read("LEVEL") >> 16 == 0

    async def failed(self, cause):
        """Check the cause of an error, clear it."""
        status = await self.read("STATUS")
        assert bits("STATUS", "error", status) and bits("STATUS", "cause", status) == CAUSE[cause], (
            f"cause is not {cause}"
        )
        assert bits("IRQ_STATUS", "error", await self.read("IRQ_STATUS"))
        await self.write("IRQ_STATUS", ERROR)
        status = await self.read("STATUS")
        assert not bits("STATUS", "error", status) and not bits("STATUS", "cause", status)


def drawn(rnd, command):
    if command == SUM:
        count = rnd.randrange(1, COUNTED.most + 1)
        varying = COUNTED.varying(count)
        return [count, varying, *(rnd.getrandbits(32) for _ in range(COUNTED.words(count) - 2))]
    return [rnd.getrandbits(32) for _ in range(DEVICE.commands[command].words)]


async def reset(dut, cycles):
    await FallingEdge(dut.clk)
    dut.rst.value = 1
    for _ in range(cycles):
        await FallingEdge(dut.clk)
    dut.rst.value = 0


async def started(dut, seed, **more):
    """Drivers with each master of this bus, one after another in turn from the same seed."""
    Clock(dut.clk, 10, "ns").start()
    if SEPARATE:
        dut.engine_clk.value = 0
        Clock(dut.engine_clk, SEPARATE, "ps").start()
    for name, port in (find_bus(BUS).adapter.ports | (SIDELOAD if SLOTS else {})).items():
        if port.flow == In:
            getattr(dut, name).value = int(name == "hready")
    dut.rst.value = 1
    hold(dut, 0)
    await FallingEdge(dut.clk)  # Icarus loses what the masters drive at once at time 0
    masters = [kind(dut, seed, **more) for kind in MASTERS[BUS]]
    await reset(dut, 3)
    return [Driver(dut, master) for master in masters]


def for_each(body, milliseconds=3, skip=False):
    """A cocotb test of ``body`` for each master of the bus, with a limit of time."""

    async def run(dut):
        for driver in await started(dut, 1):
            await reset(dut, 1)
            await with_timeout(body(dut, driver, random.Random(2)), milliseconds, "ms")

    run.__name__ = run.__qualname__ = body.__name__
    return cocotb.test(skip=skip)(run)


@for_each
async def registers(dut, driver, rnd):
    """Reset values, refused accesses, fields that are written."""
    await driver.until("ready")
    changing = {"STATUS": bits("STATUS", "ready", -1) and 1, "LEVEL": DEVICE.in_words}
    for r in REGISTERS.registers:
        if r.readable and r.name != "DATA_OUT":
            assert await driver.read(r.name) == changing.get(r.name, r.reset), r.name
    for r in REGISTERS.registers:
        if not r.readable:
            await driver.read(r.name, error=True)
        if not r.writable:
            await driver.write(r.name, 0xFFFFFFFF, error=True)
    for address in (4 * len(REGISTERS.registers), 0x400, 0xFFC):
        await driver.master.read(address, error=True)
        await driver.master.write(address, 1, error=True)
    assert await driver.read("STATUS") == 1 and await driver.read("JOBS") == 0
    for word, wanted in ((0xFFFFFFFF, 3), (2, 2), (0, 0)):
        await driver.write("IRQ_ENABLE", word)
        assert await driver.read("IRQ_ENABLE") == wanted
    await driver.write("IRQ_ENABLE", 3, error=True, bytes_=1)
    assert await driver.read("IRQ_ENABLE") == 0


@for_each
async def jobs(dut, driver, rnd):
    """Jobs of all kinds; the counter; the interrupt."""
    done = await driver.read("JOBS")
    await driver.write("IRQ_ENABLE", DONE)
    await driver.setup(drawn(rnd, KEY))
    for k in range(6):
        if k == 3:
            await driver.setup(drawn(rnd, KEY))
        await driver.write("IRQ_STATUS", DONE)
        assert dut.irq.value == 0
        await driver.job(*(lambda c: (c, drawn(rnd, c)))((ECHO, ONE, SUM)[k % 3]))
        assert dut.irq.value == 1
    assert await driver.read("JOBS") == done + 6 and not await driver.status("error")


@partial(for_each, milliseconds=100, skip="LONG" not in os.environ)
async def in_a_row(dut, driver, rnd):
    """1,000 jobs one after another."""
    await driver.setup(drawn(rnd, KEY))
    for _ in range(1000):
        command = rnd.choice((ECHO, ONE, ONE, SUM))
        await driver.job(command, drawn(rnd, command))
    assert await driver.read("JOBS") == 1000 and not await driver.status("error")


@for_each
async def refused(dut, driver, rnd):
    """Every cause of an error, and a right job after it."""
    await driver.until("ready")
    await driver.write("COMMAND", ONE)
    await driver.failed("SETUP")
    await driver.setup(drawn(rnd, KEY))
    assert await driver.read("DATA_OUT") == 0
    await driver.failed("EMPTY")
    for wrong in (4, 8, 16, 0x80000001):
        await driver.write("COMMAND", wrong)
        await driver.failed("COMMAND")
    await driver.write("DATA_IN", 5)
    await driver.failed("LONG")
    await driver.job(ECHO, drawn(rnd, ECHO))
    assert await driver.read("DATA_OUT") == 0
    await driver.failed("EMPTY")
    await driver.send(ONE, MACHINES * [9])
    await driver.write("DATA_IN", 10)
    await driver.failed("LONG")
    await driver.write("COMMAND", ONE)
    await driver.failed("BUSY")
    await driver.until("done")
    await driver.write("COMMAND", ONE)
    await driver.failed("BUSY")
    assert await driver.answer(MACHINES) == answer(driver.key, ONE, MACHINES * [9])
    for command, words, cause in ((ECHO, [1, 2, 3], "SHORT"), (SUM, [10, 5], "VALUE"), (SUM, [4, 3], "VALUE")):
        await driver.send(command, words[:-1])
        await driver.write("DATA_IN", words[-1])
        if cause == "SHORT":
            await driver.write("COMMAND", ONE)
        await driver.failed(cause)
        await driver.until("ready")
        assert not await driver.status("loaded")
        await driver.setup(drawn(rnd, KEY))
        await driver.job(SUM, drawn(rnd, SUM))


@for_each
async def full(dut, driver, rnd):
    """The buffer before the engine fills: a word more is lost and reported, and can be sent again."""
    await driver.setup(drawn(rnd, KEY))
    hold(dut, 1)
    await driver.write("COMMAND", ECHO)
    words = drawn(rnd, ECHO)
    waiting = DEPTH if SEPARATE else 0 if MACHINES == 1 else 1  # behind the buffer, of the command and the first words
    room = DEVICE.in_words - 1 + waiting
    await ClockCycles(dut.clk, 8)
    for k, word in enumerate(words[:room]):
        await ClockCycles(dut.clk, 8 if SEPARATE else 1)  # the word goes on to the queue
        assert await driver.read("LEVEL") == min(DEVICE.in_words, room - k)
        await driver.write("DATA_IN", word)
    await driver.write("DATA_IN", 1)
    await driver.failed("FULL")
    hold(dut, 0)
    for word in words[room:]:
        while not await driver.read("LEVEL"):
            pass
        await driver.write("DATA_IN", word)
    wanted = answer(driver.key, ECHO, words)
    assert await driver.answer(len(wanted)) == wanted


@for_each
async def aborts(dut, driver, rnd):
    """An abort or a reset at any time: no word of the old job is in the next answer."""
    for k in range(4):
        await driver.setup(drawn(rnd, KEY))
        words = drawn(rnd, ECHO)
        await driver.send(ECHO, words[: rnd.choice((3, len(words), len(words)))])
        for _ in range(rnd.randrange(200)):
            await RisingEdge(dut.clk)
        if k % 3 == 2 and await driver.status("done"):
            await driver.read("DATA_OUT")
        if k % 2:
            await driver.write("CONTROL", 1)
        else:
            await reset(dut, rnd.randrange(1, 4))
            assert await driver.read("JOBS") == 0
        await driver.until("ready")
        assert await driver.read("LEVEL") == DEVICE.in_words
        assert not await driver.status("loaded") and not await driver.status("error")
        await driver.setup(drawn(rnd, KEY))
        await driver.job(*((ECHO, drawn(rnd, ECHO)) if k % 2 else (ONE, MACHINES * [k])))


async def busy(dut, driver):
    """Check that messages are refused and words are not shown while the device works by itself."""
    await driver.write("COMMAND", KEY)
    await driver.failed("BUSY")
    await driver.write("DATA_IN", 1)
    await driver.failed("BUSY")
    assert await driver.read("DATA_OUT") == 0
    await driver.failed("EMPTY")
    status = await driver.read("STATUS")
    assert bits("STATUS", "busy", status), "not busy"
    assert not any(bits("STATUS", f, status) for f in ("ready", "receiving", "done", "zeroised", "tested"))


@for_each
async def zeroises(dut, driver, rnd):
    """Zeroising at any time: the stub has no word of a former message; an abort or a test does not end it."""
    for k in range(3):
        done = await driver.read("JOBS")
        await driver.setup(drawn(rnd, KEY))
        await driver.job(ECHO, drawn(rnd, ECHO))
        if k == 1:
            await driver.send(SUM, drawn(rnd, SUM)[:-1])
        elif k == 2:
            await driver.send(ECHO, drawn(rnd, ECHO))
        await driver.write("IRQ_ENABLE", DONE)
        await driver.write("CONTROL", ZEROISE | (k and SELFTEST))
        await busy(dut, driver)
        await driver.write("CONTROL", (ABORT, SELFTEST, ABORT | SELFTEST)[k])
        cycles = 0
        while dut.irq.value == 0:
            await RisingEdge(dut.clk)
            cycles += 1
            assert cycles <= DEVICE.zeroise_cycles * SLOWER
        for stub in stubs(dut):
            assert stub.key.value == 0 and not any(stub.words[k].value for k in range(24))
        status = await driver.read("STATUS")
        assert (
            bits("STATUS", "zeroised", status)
            and bits("STATUS", "ready", status)
            and not bits("STATUS", "loaded", status)
        )
        assert await driver.read("JOBS") == done + 1 and await driver.read("LEVEL") == DEVICE.in_words
        await driver.write("IRQ_STATUS", DONE)
        await driver.write("COMMAND", ONE)
        await driver.failed("SETUP")
        await driver.setup(drawn(rnd, KEY))
        await driver.job(SUM, drawn(rnd, SUM))
        assert not await driver.status("zeroised")


@for_each
async def tests_itself(dut, driver, rnd):
    """The self-test at any time; an abort and zeroising end it."""
    for k in range(3):
        done = await driver.read("JOBS")
        await driver.setup(drawn(rnd, KEY))
        await driver.write("COMMAND", ECHO)
        await driver.write("IRQ_ENABLE", DONE)
        await driver.write("CONTROL", SELFTEST)
        await busy(dut, driver)
        if k == 2:
            await driver.write("CONTROL", ABORT)
            await driver.until("ready")
            assert not await driver.status("tested") and dut.irq.value == 0
        await driver.until("tested" if k < 2 else "ready")
        assert await driver.status("passed") == (k < 2) and dut.irq.value == (k < 2)
        assert not await driver.status("loaded") and not await driver.status("error")
        await driver.until("ready")
        await driver.setup(drawn(rnd, KEY))
        await driver.job(SUM, drawn(rnd, SUM))
        assert await driver.read("JOBS") == done + 1
        assert await driver.status("passed") == (k < 2)
    await driver.write("CONTROL", SELFTEST)
    await driver.write("CONTROL", ZEROISE)
    await driver.until("zeroised")
    assert not await driver.status("tested")


@for_each
async def resets(dut, driver, rnd):
    """A reset in any cycle of an access leaves a bus that works."""
    for k in range(8):
        access = cocotb.start_soon(driver.read("STATUS") if k % 2 else driver.write("DATA_IN", 1))
        for _ in range(k // 2 + 1):
            await RisingEdge(dut.clk)
        access.cancel() if BUS == "axi4-lite" else await with_timeout(access, 3, "us")
        await reset(dut, 1)
        await driver.until("ready")
        assert await driver.read("MAGIC") == REGISTERS["MAGIC"].reset and not await driver.status("error")
        await driver.setup([1, 2, 3])
        await driver.job(ONE, MACHINES * [k])


@cocotb.test(skip=BUS != "wishbone")
async def no_cycle(dut):
    """Without cyc a strobe is no access, and a cycle that ends early gets no acknowledge."""
    driver, _ = await started(dut, 3)
    await driver.setup([1, 2, 3])
    await FallingEdge(dut.clk)
    dut.wb_cyc_i.value, dut.wb_stb_i.value, dut.wb_we_i.value = 0, 1, 1
    dut.wb_adr_i.value, dut.wb_dat_i.value = REGISTERS["COMMAND"].offset, ONE
    for _ in range(20):
        await FallingEdge(dut.clk)
        assert dut.wb_ack_o.value == 0 and dut.wb_err_o.value == 0
    dut.wb_stb_i.value = 0
    assert await driver.status("loaded") and not await driver.status("error")
    for wait in range(1, 7):
        await FallingEdge(dut.clk)
        dut.wb_cyc_i.value, dut.wb_stb_i.value, dut.wb_we_i.value, dut.wb_adr_i.value = 1, 1, 0, 0
        for _ in range(wait):
            await FallingEdge(dut.clk)
            if dut.wb_ack_o.value == 1:
                break
        dut.wb_cyc_i.value, dut.wb_stb_i.value = 0, 0
        await FallingEdge(dut.clk)
        dut.wb_cyc_i.value = 1
        for _ in range(10):
            await FallingEdge(dut.clk)
            assert dut.wb_ack_o.value == 0, "an acknowledge of an access that was withdrawn"
        dut.wb_cyc_i.value = 0
        assert await driver.read("MAGIC") == REGISTERS["MAGIC"].reset


@cocotb.test(skip=BUS != "wishbone")
async def back_to_back(dut):
    """A classic master that changes the access in the cycle after each acknowledge."""
    driver, _ = await started(dut, 3)
    await driver.setup([1, 2, 3])
    words = [(REGISTERS["COMMAND"].offset, ECHO), *((REGISTERS["DATA_IN"].offset, k) for k in range(24))]
    await FallingEdge(dut.clk)
    dut.wb_cyc_i.value, dut.wb_stb_i.value, dut.wb_we_i.value, dut.wb_sel_i.value = 1, 1, 1, 15
    for address, word in words:
        dut.wb_adr_i.value, dut.wb_dat_i.value = address, word
        await FallingEdge(dut.clk)
        while dut.wb_ack_o.value == 0:
            await FallingEdge(dut.clk)
        await RisingEdge(dut.clk)
        await FallingEdge(dut.clk)
    dut.wb_cyc_i.value, dut.wb_stb_i.value = 0, 0
    assert await driver.answer(24) == answer(driver.key, ECHO, list(range(24)))
    assert not await driver.status("error")
