# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""cocotb tests of the key slots of a bus front with the stub behind it; the environment is that of `bus_bench`, and
the key manager is a coroutine here."""

import cocotb
from bus_bench import (
    ABORT,
    COUNTED,
    DEVICE,
    OWN,
    REGISTERS,
    SELFTEST,
    SLOTS,
    SLOWER,
    ZEROISE,
    answer,
    bits,
    drawn,
    for_each,
    hold,
    reset,
)
from cocotb.triggers import ClockCycles, FallingEdge, Timer
from stub_engine import ECHO, KEY, ONE, SETUP, SUM

from modmill.buses.registers import KEY_COMMAND, KEY_LOCK, USE

KEYED = ECHO, SUM


class Key:
    """A random key of a command, with the setup of its slot: ``filled`` has the words of the slot, ``words`` those that
    are sent with it; ``right``: the answer."""

    def __init__(self, rnd, command, setup=None):
        self.command = command
        self.setup = list(SETUP) if not OWN else setup or drawn(rnd, KEY)
        message = drawn(rnd, command)
        self.secret, self.words = DEVICE.key_message(message, command)
        self.filled = [*(self.setup if OWN else ()), *self.secret]
        whole = DEVICE.key_sent(self.secret, self.words, command)
        self.right = answer(sum(self.setup) % 2**32, command, whole)


async def fill(driver, slot, key):
    await driver.write("KEY_FILL", slot | key.command << KEY_COMMAND)
    for word in key.filled:
        await driver.write("KEY_WORD", word)


async def offered(dut, words, rnd, pauses=0.3, *, end=True):
    """The key manager offers words, the last of which ends a packet if ``end``, with pauses; until all are taken."""
    await FallingEdge(dut.clk)
    for k, word in enumerate(words):
        while rnd.random() < pauses:
            await FallingEdge(dut.clk)
        dut.key_valid.value, dut.key_data.value, dut.key_last.value = 1, word, int(end and k == len(words) - 1)
        taken = False
        while not taken:
            await Timer(1, "ns")
            taken = dut.key_ready.value == 1  # until the rising edge
            await FallingEdge(dut.clk)
        dut.key_valid.value, dut.key_data.value = 0, rnd.getrandbits(32)


def packet(slot, key, lock=False):
    return [slot | key.command << KEY_COMMAND | lock << KEY_LOCK, *key.filled]


async def sideload(dut, slot, key, rnd, lock=False):
    await offered(dut, packet(slot, key, lock), rnd)
    await ClockCycles(dut.clk, 6)


async def used(driver, slot, key, *, setup=True):
    """A job with the key of a slot, whose answer is right."""
    await driver.write("KEY_USE", USE | slot)
    await driver.until("ready")
    if setup:
        await driver.send(KEY, [])
        await driver.until("ready")
    await driver.send(key.command, key.words)
    assert await driver.answer(len(key.right)) == key.right, f"wrong answer with the key of slot {slot}"
    await driver.write("KEY_USE", 0)


async def holds(driver, filled, locked=0):
    found = await driver.read("KEY_SLOTS")
    assert found == filled | locked << 16, f"KEY_SLOTS is {found:#x}"


@for_each
async def fill_and_use(dut, driver, rnd):
    """Slots are filled by the bus and by the key manager, used with either command, and filled again; between them
    there are messages without a slot."""
    await driver.until("ready")
    keys = {}
    for k in range(8):
        slot, key = rnd.randrange(SLOTS), Key(rnd, KEYED[k % 2])
        if k % 4 < 2:
            await fill(driver, slot, key)
        else:
            await sideload(dut, slot, key, rnd)
        keys[slot] = key
        await holds(driver, sum(1 << n for n in keys))
        slot = rnd.choice(list(keys))
        await used(driver, slot, keys[slot])
        await used(driver, slot, keys[slot], setup=False)
        await driver.setup(drawn(rnd, KEY))
        await driver.job(*(lambda c: (c, drawn(rnd, c)))((ECHO, ONE, SUM)[k % 3]))
    assert not await driver.status("error")


@for_each
async def wrong_uses(dut, driver, rnd):
    """A job with an empty slot, the key of another command, another setup, or none; the front goes on as before."""
    await driver.until("ready")
    key, other = Key(rnd, ECHO), Key(rnd, SUM)
    await fill(driver, 0, key)
    await fill(driver, SLOTS - 1, other)
    await driver.setup(list(SETUP))

    async def refused(slot, command, cause="SLOT"):
        await driver.write("KEY_USE", USE | slot)
        await driver.write("COMMAND", command)
        await driver.failed(cause)
        await driver.write("KEY_USE", 0)

    for slot in (1, SLOTS, 15):
        await refused(slot, KEY)
        await refused(slot, ECHO)
    await refused(0, ECHO)  # the setup is right, but not of the slot
    for slot, mine, wrong in ((0, key, SUM), (SLOTS - 1, other, ECHO)):
        await used(driver, slot, mine)
        await refused(slot, wrong)
        await refused(slot, ONE)
        await refused(slot, 4, "COMMAND")
        await used(driver, slot, mine, setup=False)
    if OWN:
        await refused(0, ECHO)  # the setup is that of the other slot
    await used(driver, 0, key)
    again = Key(rnd, ECHO)
    await fill(driver, 0, again)
    if OWN:
        await refused(0, ECHO)  # the setup is what the slot had before
    await used(driver, 0, again)
    await driver.setup([1, 2, 3])
    await driver.job(ECHO, drawn(rnd, ECHO))
    assert not await driver.status("error")


@for_each
async def wrong_keys(dut, driver, rnd):
    """Slots and commands that are not there, wrong counts, words too many: the slot stays empty."""
    await driver.until("ready")
    for slot, command in ((SLOTS, ECHO), (15, SUM), (0, ONE), (0, KEY), (0, 4), (SLOTS, ONE)):
        await driver.write("KEY_FILL", slot | command << KEY_COMMAND)
        await driver.failed("SLOT")
        await driver.write("KEY_WORD", 1)
        await driver.failed("LONG")
    setup = [5, 6, 7] if OWN else []
    for count, repeat in ((0, 0), (COUNTED.most + 1, 5), (1 << 31, 1), (4, COUNTED.varying(4) + 1)):
        await driver.write("KEY_FILL", SUM << KEY_COMMAND)
        for word in (*setup, count, *([repeat] if 0 < count <= COUNTED.most else [])):
            await driver.write("KEY_WORD", word)
        await driver.failed("SLOT")
        await driver.write("KEY_WORD", 1)
        await driver.failed("LONG")
        await holds(driver, 0)
    for command in KEYED:
        key = Key(rnd, command)
        await fill(driver, 1, key)
        await holds(driver, 2)
        await driver.write("KEY_WORD", 1)
        await driver.failed("LONG")
        await used(driver, 1, key)
        await driver.write("KEY_FILL", 1 | command << KEY_COMMAND)
        await holds(driver, 0)
        for word in key.filled[:-1]:
            await driver.write("KEY_WORD", word)
        await holds(driver, 0)
        await driver.write("KEY_WORD", key.filled[-1])
        await holds(driver, 2)


@for_each
async def locked(dut, driver, rnd):
    """The bus cannot fill a slot that the key manager locked, nor one in use; the key manager waits for that."""
    await driver.until("ready")
    for k in range(4):
        key, other, last = Key(rnd, KEYED[k % 2]), Key(rnd, KEYED[k // 2]), Key(rnd, KEYED[k % 2])
        await sideload(dut, 2, key, rnd, lock=True)
        await holds(driver, 4, 4)
        await driver.write("KEY_FILL", 2 | other.command << KEY_COMMAND)
        await driver.failed("LOCKED")
        await used(driver, 2, key)
        await sideload(dut, 2, key, rnd)
        await holds(driver, 4)
        await driver.write("KEY_USE", USE | 2)
        await driver.until("ready")
        await driver.send(KEY, [])
        await driver.until("ready")
        hold(dut, 1)
        await driver.send(key.command, key.words[:1])
        await driver.write("KEY_FILL", 2 | other.command << KEY_COMMAND)
        await driver.failed("LOCKED")
        waits = cocotb.start_soon(offered(dut, packet(2, last), rnd, pauses=0))
        await ClockCycles(dut.clk, 40)
        assert dut.key_valid.value == 1 and dut.key_ready.value == 0
        await holds(driver, 4)
        hold(dut, 0)
        for word in key.words[1:]:
            while not bits("LEVEL", "free", await driver.read("LEVEL")):
                pass
            await driver.write("DATA_IN", word)
        assert await driver.answer(len(key.right)) == key.right
        await waits
        await ClockCycles(dut.clk, 6)
        await used(driver, 2, last)
        await driver.until("ready")
        await driver.write("KEY_USE", 0)
        await fill(driver, 0, other)
        await used(driver, 0, other)
        await driver.write("KEY_FILL", ECHO << KEY_COMMAND)  # which empties it


@for_each
async def packets(dut, driver, rnd):
    """The key manager ends what the bus fills; packets of another length, or for no slot, leave nothing."""
    await driver.until("ready")
    key, other = Key(rnd, ECHO), Key(rnd, SUM)
    await driver.write("KEY_FILL", ECHO << KEY_COMMAND)
    await driver.write("KEY_WORD", key.filled[0])
    await offered(dut, packet(1, other)[:3], rnd)  # too short
    await driver.write("KEY_WORD", key.filled[1])
    await driver.failed("LONG")
    for wrong in (
        [*packet(1, other), 1], packet(1, other)[:-1], [1 | SUM << KEY_COMMAND], [SLOTS, 1, 2, 3],
        [1 | ONE << KEY_COMMAND, 1, 2], [1 | SUM << KEY_COMMAND, *other.filled[: 3 * OWN], 0, 9, 9],
    ):  # fmt: skip
        await offered(dut, packet(1, other), rnd)
        await ClockCycles(dut.clk, 8)
        await holds(driver, 2)
        await offered(dut, wrong, rnd)
        await ClockCycles(dut.clk, 8)
        await holds(driver, 2 if wrong[0] in (SLOTS, 1 | ONE << KEY_COMMAND) else 0)
    for _ in range(3):
        whole = packet(1, other)
        sends = cocotb.start_soon(offered(dut, whole, rnd))
        await ClockCycles(dut.clk, 30)
        await driver.write("KEY_FILL", ECHO << KEY_COMMAND)
        await driver.failed("LOCKED")
        await sends
        await ClockCycles(dut.clk, 8)
        await fill(driver, 0, key)
        await used(driver, 1, other)
        await used(driver, 0, key)


@for_each
async def together(dut, driver, rnd):
    """Keys come from the key manager at any time while the bus uses other slots."""
    await driver.until("ready")
    key = Key(rnd, ECHO)
    await fill(driver, 0, key)
    stop, keys = [], {}

    async def manager():
        while not stop:
            slot, new = rnd.randrange(1, SLOTS), Key(rnd, rnd.choice(KEYED))
            keys.pop(slot, None)
            await offered(dut, packet(slot, new), rnd)
            keys[slot] = new

    ends = cocotb.start_soon(manager())
    for _ in range(8):
        await used(driver, 0, key)
    stop.append(True)
    await ends
    await ClockCycles(dut.clk, 8)
    for slot, new in keys.items():
        await used(driver, slot, new)
    assert not await driver.status("error")


@for_each
async def ends(dut, driver, rnd):
    """An abort or a reset in the middle of a job with a slot: no word of it is left; a reset empties all slots."""
    for k in range(6):
        key, other = Key(rnd, KEYED[k % 2]), Key(rnd, KEYED[k % 2])
        await driver.until("ready")
        await fill(driver, 0, key)
        await driver.write("KEY_USE", USE)
        await driver.send(KEY, [])
        await driver.until("ready")
        await driver.send(key.command, key.words[: rnd.choice((1, len(key.words), len(key.words)))])
        await ClockCycles(dut.clk, rnd.randrange(1, 160))
        if k % 3 < 2:
            await driver.write("CONTROL", ABORT)
            await driver.until("ready")
            await holds(driver, 1)
            await driver.write("COMMAND", key.command)
            await driver.failed("SETUP")
            assert await driver.read("LEVEL") == DEVICE.in_words
            await driver.setup(drawn(rnd, KEY))
            await driver.job(ECHO, drawn(rnd, ECHO))  # the slot is not in use
            await used(driver, 0, key)
        else:
            await reset(dut, rnd.randrange(1, 4))
            await driver.until("ready")
            await holds(driver, 0)
            await driver.setup(drawn(rnd, KEY))
            await driver.job(ECHO, drawn(rnd, ECHO))  # the slot is not in use
            await driver.write("KEY_USE", USE)
            await driver.write("COMMAND", KEY)
            await driver.failed("SLOT")
        await fill(driver, 0, other)
        await used(driver, 0, other)
        await driver.write("KEY_USE", 0)


@for_each
async def zeroises_slots(dut, driver, rnd):
    """Zeroising overwrites all words of all slots; the rest of a packet that it interrupts is no packet; meanwhile
    the bus is refused, and the key manager waits. A self-test changes no slot."""
    words = dut.front_inside.jobs.keys.keys_0.block.words
    for k in range(3):
        await driver.until("ready")
        keys = [Key(rnd, rnd.choice(KEYED)) for _ in range(SLOTS)]
        for slot, key in enumerate(keys):
            await sideload(dut, slot, key, rnd, lock=slot == 0)
        await used(driver, 0, keys[0])
        await driver.write("CONTROL", SELFTEST)
        await driver.write("KEY_USE", USE)
        await driver.failed("BUSY")
        await driver.until("tested")
        await driver.until("ready")
        await holds(driver, (1 << SLOTS) - 1, 1)
        new, rest = Key(rnd, ECHO), None
        if k:  # what is left of the packet looks like another one
            rest = packet(1, new)
            begun = [2 | SUM << KEY_COMMAND, *[1] * 3 * OWN, COUNTED.most]
            await offered(dut, begun[: k + 1], rnd, end=False)
            await ClockCycles(dut.clk, 9)
        if k < 2:
            await driver.write("KEY_USE", USE)
        await driver.write("CONTROL", ZEROISE)
        await driver.write("KEY_FILL", ECHO << KEY_COMMAND)
        await driver.failed("BUSY")
        await driver.write("KEY_WORD", 1)
        await driver.failed("BUSY")
        if not k:
            waits = cocotb.start_soon(offered(dut, packet(1, new), rnd))
        for _ in range(DEVICE.zeroise_cycles * SLOWER):
            if await driver.status("zeroised"):
                break
        assert await driver.status("zeroised")
        first, size = (DEVICE.key_base if k else DEVICE.key_base + 2 * DEVICE.key_stride), DEVICE.key_memory
        assert not any(int(words[n].value) for n in range(first, size)), "words of a key are left"
        assert [int(words[n].value) % 2**32 for n in range(len(DEVICE.key_setup))] == list(DEVICE.key_setup)
        if k:
            await offered(dut, rest, rnd)
            await ClockCycles(dut.clk, 8)
            await holds(driver, 0)
            await driver.setup(drawn(rnd, KEY))
            await driver.job(ECHO, drawn(rnd, ECHO))
            await sideload(dut, 1, new, rnd)
        else:
            await waits
            await ClockCycles(dut.clk, 8)
        await holds(driver, 2)
        await used(driver, 1, new)


@for_each
async def never_read(dut, driver, rnd):
    """No access gives a secret word, at rest, while a message takes it, or after its job."""
    await driver.until("ready")
    key = Key(rnd, ECHO)
    secrets = [rnd.getrandbits(31) | 1 << 31 for _ in key.secret]
    key.secret, key.filled = secrets, [*(key.setup if OWN else ()), *secrets]
    await fill(driver, 1, key)

    async def look():
        for r in REGISTERS.registers:
            if r.readable:
                assert await driver.read(r.name) not in secrets, f"{r.name} has a word of a key"
        for address in (0x44, 0x48, 0x4C, 0x54, 0x7C, 0x80):
            assert await driver.master.read(address, error=True) not in secrets
        await driver.write("IRQ_STATUS", 3)

    await look()
    await driver.write("KEY_USE", USE | 1)
    await driver.send(KEY, [])
    await driver.until("ready")
    hold(dut, 1)
    await driver.send(ECHO, key.words[:2])
    await look()
    hold(dut, 0)
    await look()
    await driver.write("CONTROL", ABORT)
    await driver.until("ready")
    await look()
