# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""cocotb tests of a front of packets with the stub behind it, driven by the source and sink of cocotbext-axi."""

import os
import random
from dataclasses import replace
from functools import partial

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge, with_timeout
from cocotb.utils import get_sim_time
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from stub_engine import COUNTED, ECHO, KEY, ONE, SUM, answer, several

from modmill.buses.registers import register_map
from modmill.buses.stream import CONTROLS, STREAM_CAUSES, WORDS

MACHINES, SEPARATE = int(os.environ["MACHINES"]), "SEPARATE" in os.environ
LONG = "LONG" in os.environ
DEVICE = replace(several(MACHINES), separate=SEPARATE)
answer = partial(answer, machines=MACHINES)
REGISTERS = register_map(DEVICE)
CAUSE = {name: number for number, (name, _) in enumerate(STREAM_CAUSES)}
NAMES = [name for name, _ in STREAM_CAUSES]


def status(word):
    """The fields of a word of status that are not 0."""
    fields = {f.name: (word & f.mask) >> f.low for f in REGISTERS["STATUS"].fields}
    found = {name: value for name, value in fields.items() if value}
    return found | ({"cause": NAMES[found["cause"]]} if "cause" in found else {})


def stubs(dut):
    """The engines."""
    return [getattr(dut, f"core{k}_inside") for k in range(MACHINES)] if MACHINES > 1 else [dut.stub_inside]


def hold(dut, value):
    """Whether the engines take no words."""
    for stub in stubs(dut):
        stub.hold.value = value


def drawn(rnd, command):
    """Data words of a message."""
    if command == SUM:
        count = rnd.randrange(1, DEVICE.counted.most + 1)
        left = DEVICE.counted.words(count) - 2
        return [count, COUNTED.varying(count), *(rnd.getrandbits(32) for _ in range(left))]
    return [rnd.getrandbits(32) for _ in range(DEVICE.commands[command].words)]


class Host:
    """Both ends of the streams."""

    def __init__(self, dut, seed, pauses=0.3):
        self.dut, self.key, self.tested = dut, 0, {}
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        for k, end in enumerate((self.source, self.sink)):
            end.log.setLevel("ERROR")
            end.set_pause_generator(self.pausing(random.Random(seed + k), pauses))
        cocotb.start_soon(self.watch())

    @staticmethod
    def pausing(rnd, pauses):
        while True:
            yield rnd.random() < pauses

    async def watch(self):
        """The rules of a source: a word stays until it is taken; none in a reset."""
        dut, before = self.dut, None
        while True:
            await RisingEdge(dut.clk)
            if dut.rst.value == 1:
                before = None
                continue
            now = [int(getattr(dut, f"m_axis_t{name}").value) for name in ("valid", "data", "last")]
            assert before is None or now == before, "a word that changes before it is taken"
            before = now if now[0] and not dut.m_axis_tready.value else None

    async def send(self, header, words=(), lost=None):
        """Send a packet; ``lost``: the place of a byte that is not kept."""
        data = b"".join(word.to_bytes(4, "little") for word in (header, *words))
        kept = [int(k != lost) for k in range(len(data))]
        await self.source.send(AxiStreamFrame(data, tkeep=kept))

    async def receive(self):
        """The status and the words of the next packet."""
        data = bytes((await self.sink.recv()).tdata)
        words = [int.from_bytes(data[k : k + 4], "little") for k in range(0, len(data), 4)]
        return status(words[0]), words[1:]

    async def exchange(self, header, words=(), **more):
        await self.send(header, words, **more)
        return await self.receive()

    def forget(self):
        """Drop what was sent and received."""
        self.source.clear()
        self.sink.clear()

    async def setup(self, words):
        assert await self.exchange(KEY, words) == ({"ready": 1, "loaded": 1, **self.tested}, [])
        self.key = sum(words) % 2**32

    def right(self, found, command, words):
        """Check the answer to a message; the engine may be busy with the end of a long one."""
        found[0].pop("busy", None)
        assert found == ({"done": 1, "loaded": 1, **self.tested}, answer(self.key, command, words))

    async def job(self, command, words):
        self.right(await self.exchange(command, words), command, words)

    async def jobs(self):
        found, words = await self.exchange(CONTROLS["identify"])
        assert found["ready"] and len(words) == WORDS
        return words[REGISTERS["JOBS"].offset // 4]

    async def failed(self, found, cause, loaded, **more):
        """Check a packet of an error; load the key again."""
        stands = {"loaded": 1} if loaded else {}
        assert found == ({"ready": 1, "error": 1, "cause": cause, **stands, **self.tested, **more}, [])
        if not loaded:
            await self.setup([1, 2, 3])


async def reset(dut, cycles):
    await FallingEdge(dut.clk)
    dut.rst.value = 1
    for _ in range(cycles):
        await FallingEdge(dut.clk)
        assert dut.s_axis_tready.value == 0 and dut.m_axis_tvalid.value == 0, "a handshake in a reset"
    dut.rst.value = 0


async def started(dut, seed, **more):
    Clock(dut.clk, 10, "ns").start()
    if SEPARATE:
        dut.engine_clk.value = 0
        Clock(dut.engine_clk, 73010, "ps").start()  # words of an answer come later than they are taken
    for name in ("s_axis_tvalid", "s_axis_tdata", "s_axis_tkeep", "s_axis_tlast", "m_axis_tready"):
        getattr(dut, name).value = 0
    dut.rst.value = 1
    hold(dut, 0)
    await FallingEdge(dut.clk)  # Icarus loses what is driven at once at time 0
    host = Host(dut, seed, **more)
    await reset(dut, 5)
    return host


def bench(body, milliseconds=30 if SEPARATE else 3, skip=False):
    """A cocotb test of ``body`` with a limit of time."""

    async def run(dut):
        host = await started(dut, 1)
        await with_timeout(body(dut, host, random.Random(2)), milliseconds, "ms")

    run.__name__ = run.__qualname__ = body.__name__
    return cocotb.test(skip=skip)(run)


@bench
async def identifies(dut, host, rnd):
    """Constant registers, and 0 for others."""
    found, words = await host.exchange(CONTROLS["identify"])
    assert found == {"ready": 1} and len(words) == WORDS
    for r in REGISTERS.registers:
        assert words[r.offset // 4] == (r.reset if r.constant else 0), r.name


@bench
async def jobs(dut, host, rnd):
    """Messages of all kinds; the counter."""
    await host.setup(drawn(rnd, KEY))
    for k in range(6):
        if k == 3:
            await host.setup(drawn(rnd, KEY))
        command = (ECHO, ONE, SUM)[k % 3]
        await host.job(command, drawn(rnd, command))
        assert await host.jobs() == k + 1


@partial(bench, milliseconds=100, skip=not LONG)
async def in_a_row(dut, host, rnd):
    """1,000 jobs one after another, at most four of them on the way."""
    await host.setup(drawn(rnd, KEY))
    sent = []
    for k in range(1004):
        if k < 1000:
            command = rnd.choice((ECHO, ONE, ONE, SUM))
            sent.append((command, drawn(rnd, command)))
            await host.send(*sent[-1])
        if k >= 4:
            host.right(await host.receive(), *sent[k - 4])
    assert await host.jobs() == 1000 % 2**32


@bench
async def refused(dut, host, rnd):
    """Every cause of an error, and a right job after it."""
    await host.failed(await host.exchange(ONE, MACHINES * [1]), "SETUP", False)
    for header in (4, 8, 16, 0x80000001, CONTROLS["identify"] | 2, CONTROLS["abort"] | 8, 0x10000 | CONTROLS["abort"]):
        for count in (0, 1, 30):
            await host.failed(await host.exchange(header, count * [1]), "COMMAND", True)
        await host.job(ONE, MACHINES * [header])
    for command in (KEY, ECHO, ONE, SUM):
        words = drawn(rnd, command)
        for short in {0, 1, len(words) - 1} - {len(words)}:
            await host.failed(await host.exchange(command, words[:short]), "SHORT", False)
        for more in (1, 40):
            await host.failed(await host.exchange(command, words + more * [7]), "LONG", False)
        await host.job(ECHO, drawn(rnd, ECHO))
        for lost in (0, 4 * rnd.randrange(1, len(words) + 1) + 1, 4 * len(words) + 3):
            await host.failed(await host.exchange(command, words, lost=lost), "PART", not lost)
            await host.job(SUM, drawn(rnd, SUM))
    for wrong in ([10, 5], [4, 3], [0, 0], [1 << 20 | 4, 2]):
        await host.failed(await host.exchange(SUM, wrong + 8 * [0]), "VALUE", False)
        await host.failed(await host.exchange(SUM, wrong), "VALUE", False)
    for header in CONTROLS.values():
        for count in (1, 20):
            await host.failed(await host.exchange(header, count * [3]), "LONG", True)
            await host.failed(await host.exchange(header, count * [3], lost=1), "PART", True)
        await host.job(ONE, MACHINES * [5])


@bench
async def full(dut, host, rnd):
    """The buffer before the engine fills: no word more is taken, and none is lost."""
    await host.setup(drawn(rnd, KEY))
    hold(dut, 1)
    words = drawn(rnd, ECHO)
    await host.send(ECHO, words)
    await ClockCycles(dut.clk, (4000 if SEPARATE else 400) * MACHINES)
    assert not host.source.empty() or dut.s_axis_tvalid.value == 1, "all words are taken"
    hold(dut, 0)
    host.right(await host.receive(), ECHO, words)


@bench
async def many_at_once(dut, host, rnd):
    """Packets that nobody waits for, right and wrong ones: their answers come in order. The sink takes none for a
    while."""
    await host.setup(drawn(rnd, KEY))
    wait = host.sink._pause_generator
    host.sink.set_pause_generator(None)
    host.sink.pause = True
    sent = []
    for k in range(12):
        command = (ECHO, SUM, ONE, 9)[k % 4]
        sent.append((command, drawn(rnd, command) if command < 9 else []))
        await host.send(*sent[-1])
    await ClockCycles(dut.clk, 5000 if SEPARATE else 500)
    assert host.sink.empty() and dut.m_axis_tvalid.value == 1
    host.sink.pause = False
    host.sink.set_pause_generator(wait)
    for command, words in sent:
        found = await host.receive()
        if command == 9:
            await host.failed(found, "COMMAND", True)
        else:
            host.right(found, command, words)


@bench
async def ends(dut, host, rnd):
    """Abort, zeroise and self-test at any time of a job, and instead of one. Zeroising leaves no word in the stub."""
    for k in range(9):
        name = ("abort", "zeroise", "selftest")[k % 3]
        await host.setup(drawn(rnd, KEY))
        if runs := k % 4:
            await host.send(ECHO, words := drawn(rnd, ECHO))
            while not host.source.idle():
                await RisingEdge(dut.clk)
            await ClockCycles(dut.clk, rnd.randrange(60))
        await host.send(CONTROLS[name])
        if runs:
            found = await host.receive()
            assert (found[0].get("cause") == "ABORTED" and not found[1]) or found[1] == answer(host.key, ECHO, words)
        start = get_sim_time("ns")
        if name == "selftest":
            host.tested = {"tested": 1, "passed": 1}
        stands = {"zeroised": 1} if name == "zeroise" else {}
        assert await host.receive() == ({"ready": 1, **host.tested, **stands}, [])
        if name == "zeroise":
            assert get_sim_time("ns") - start < (73.01 if SEPARATE else 10) * DEVICE.zeroise_cycles
            for stub in stubs(dut):
                assert stub.key.value == 0 and not any(stub.words[k].value for k in range(24))
        await host.failed(await host.exchange(ONE, MACHINES * [1]), "SETUP", False, **stands)
        await host.job(SUM, drawn(rnd, SUM))


@bench
async def resets(dut, host, rnd):
    """A reset at any time of a packet, in or out: the next ones are right, no word of the old job is in them."""
    for k in range(24 if LONG else 6):
        await host.setup([1, 2, 3])
        await host.send(ECHO, drawn(rnd, ECHO))
        await host.send(ECHO, drawn(rnd, ECHO))
        await ClockCycles(dut.clk, rnd.randrange(600 * MACHINES))
        await reset(dut, rnd.randrange(1, 4))
        await RisingEdge(dut.clk)
        host.forget()
        assert await host.jobs() == 0
        await host.failed(await host.exchange(ONE, MACHINES * [1]), "SETUP", False)
        await host.job(ONE, MACHINES * [k])
