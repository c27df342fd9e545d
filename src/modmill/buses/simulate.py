# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A core or engine behind its bus in simulation, and drivers for it.

`bus.cpp` drives the bus: one access after another, without pauses. Packets have queues on this side, which accesses
fill and empty: `PACKET_WORD`, `PACKET_LAST`, `PACKET_NEXT` are their addresses. The model is compiled as those of
`flow`. An engine with a clock of its own has one that is no rational multiple of the bus clock, as far as a simulation
goes (`PERIODS`).
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from importlib import resources
from typing import Generic, Protocol, TypeVar

from modmill.buses.adapters import BYTE_ADDRESS, Bus
from modmill.buses.device import Device
from modmill.buses.front import module_name
from modmill.buses.registers import ABORT, KEY_COMMAND, KEY_LOCK, USE, causes, register_map
from modmill.buses.stream import CONTROL, CONTROLS, stream_causes
from modmill.flow.library import U32, U64, library
from modmill.flow.tools import ToolError, step
from modmill.flow.words import SOURCES
from modmill.report.sheet import identifier

ALL_BYTES = 0xF
PERIOD = 1_000_000
"""The period of the bus clock in the unit of `PERIODS`."""
PERIODS = (1_618_033, 618_041, 7_301_003, 131_009)
"""Periods of a separate clock of an engine, by turns: slower and faster than the bus, by little and by much."""
_POLL = 16  # least cycles between two reads of STATUS
_OKAY, _REFUSED = range(2)
PACKET_WORD, PACKET_LAST, PACKET_NEXT = 0, 4, 4
"""Addresses for packets: a write of a word, or of the last one, to the device; a read of the next word from it, or of
1 if there is one and 2 more if it is the last one of its packet."""
_REGISTERS = re.compile(r"\breg\s+(?:\[[^\]]+\]\s*)?")
_REGISTER = re.compile(r"\s*(?!input\b|output\b|inout\b)\w+(?:\s*\[[^\]]+\])*")
_PUBLIC = " /*verilator public_flat_rd*/"
_Found = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p, U64)


class BusFault(RuntimeError):
    """A device that does not do what its description says; the message says what."""


def with_contents(verilog: str) -> str:
    """A Verilog text whose simulation shows all registers and memories: every ``reg`` is public."""
    parts, end = list[str](), 0
    for found in _REGISTERS.finditer(verilog):
        at = found.end()
        while name := _REGISTER.match(verilog, at):
            parts += [verilog[end : name.end()], _PUBLIC]
            end = at = name.end()
            if verilog[at] == ",":
                at += 1
    return "".join([*parts, verilog[end:]])


class BusSimulator:
    """The module ``<top>_bus`` of a Verilog text, compiled, after power-up with random contents and a reset.

    ``contents``: whether `contents` is wanted, which makes it slower. ``period``: of a separate clock of the engine, by
    default one of `PERIODS` by the ``seed``. Raises ToolError if the text does not compile.
    """

    def __init__(
        self, verilog: str, device: Device, bus: Bus, seed: int = 1, *, contents: bool = False, period: int = 0
    ) -> None:  # fmt: skip
        if contents:
            verilog = with_contents(verilog)
        self.packets = bus.packets
        self.period = (period or PERIODS[(seed - 1) % len(PERIODS)]) if device.separate else PERIOD
        texts = [f"#define MODMILL_{identifier(bus.name).upper()} 1\n"]
        texts += ["#define MODMILL_SEPARATE 1\n"] * device.separate
        texts += ["#define MODMILL_KEY_SLOTS 1\n"] * bool(device.key_slots)
        texts += ["#define MODMILL_RANDOM 1\n"] * device.random
        texts += [(resources.files("modmill.flow") / "model.cpp").read_text()]
        texts += [(resources.files("modmill.buses") / "bus.cpp").read_text()]
        self.path = library(verilog, module_name(device.top), "".join(texts))
        self._functions = functions = ctypes.CDLL(str(self.path))
        functions.modmill_bus_start.argtypes, functions.modmill_bus_start.restype = [U64], ctypes.c_void_p
        functions.modmill_bus_end.argtypes = [ctypes.c_void_p]
        functions.modmill_bus_clock.argtypes = [ctypes.c_void_p, U64]
        functions.modmill_bus_reset.argtypes = [ctypes.c_void_p, U64]
        functions.modmill_bus_cycles.argtypes, functions.modmill_bus_cycles.restype = [ctypes.c_void_p], U64
        functions.modmill_bus_wait.argtypes = [ctypes.c_void_p, U64, ctypes.c_int]
        functions.modmill_bus_wait.restype = U64
        functions.modmill_bus_contents.argtypes = [ctypes.c_void_p, _Found]
        functions.modmill_bus_access.argtypes = [ctypes.c_void_p, ctypes.c_int, U32, U32, ctypes.POINTER(U32)]
        if device.key_slots:
            functions.modmill_bus_key.argtypes = [ctypes.c_void_p, U32, ctypes.c_int]
            functions.modmill_bus_keys.argtypes, functions.modmill_bus_keys.restype = [ctypes.c_void_p], U64
        if device.random:
            functions.modmill_bus_random.argtypes = [ctypes.c_void_p, U64, ctypes.c_int]
        step("simulating")
        self._bus = functions.modmill_bus_start(seed)
        functions.modmill_bus_clock(self._bus, self.period)
        self.reset(device.power_up)

    def __del__(self) -> None:
        if getattr(self, "_bus", None):
            self._functions.modmill_bus_end(self._bus)

    def slower(self, cycles: int) -> int:
        """``cycles`` of the slower clock in cycles of the bus, rounded up."""
        return -(-cycles * max(self.period, PERIOD) // PERIOD)

    @property
    def cycles(self) -> int:
        """Cycles of the bus since power-up."""
        return int(self._functions.modmill_bus_cycles(self._bus))

    def contents(self) -> dict[str, bytes]:
        """The contents of each register and memory, by its name in the hierarchy."""
        found: dict[str, bytes] = {}

        def take(name: bytes, data: int, size: int) -> None:
            found[name.decode()] = ctypes.string_at(data, size)

        self._functions.modmill_bus_contents(self._bus, _Found(take))
        return found

    def reset(self, cycles: int) -> None:
        """Hold rst high for this number of cycles."""
        self._functions.modmill_bus_reset(self._bus, cycles)

    def wait(self, cycles: int, *, interrupt: bool = False) -> int:
        """Let cycles pass; with ``interrupt`` only until irq is high. Returns their number."""
        return int(self._functions.modmill_bus_wait(self._bus, cycles, interrupt))

    def sideload(self, slot: int, command: int, words: Sequence[int], *, lock: bool = False) -> None:
        """A packet of the key manager of a device with key slots, which waits until the device takes it; ``words``:
        those of the slot."""
        packet = [slot | command << KEY_COMMAND | lock << KEY_LOCK, *words]
        for k, word in enumerate(packet):
            self._functions.modmill_bus_key(self._bus, word, k == len(packet) - 1)

    @property
    def sideloads(self) -> int:
        """Number of words of the key manager that wait."""
        return int(self._functions.modmill_bus_keys(self._bus))

    def random(self, seed: int, source: str = SOURCES[0]) -> None:
        """Choose the random words of a device with a port for them: by a seed of 64 bits, and of a source of `SOURCES`.
        By default they are fresh ones of the seed 0: the word of each cycle follows from the cycle."""
        self._functions.modmill_bus_random(self._bus, seed, SOURCES.index(source))

    def read(self, address: int) -> tuple[int, bool]:
        """(word, whether the access was refused). Raises BusFault if the bus hangs."""
        return self._access(False, address, 0, ALL_BYTES)

    def write(self, address: int, word: int, enabled: int = ALL_BYTES) -> bool:
        """Whether the write was refused; ``enabled``: a bit for each byte. Raises BusFault if the bus hangs."""
        return self._access(True, address, word, enabled)[1]

    def _access(self, write: bool, address: int, word: int, enabled: int) -> tuple[int, bool]:
        data = U32(word)
        found = self._functions.modmill_bus_access(
            self._bus, write, address % (1 << BYTE_ADDRESS), enabled, ctypes.byref(data)
        )
        if found not in (_OKAY, _REFUSED):
            raise BusFault(f"an access to {address:#05x} has no end")
        return data.value, found == _REFUSED


class AnyBus(Protocol):
    """The way to a device: accesses to its registers, and waiting for at most some cycles or for its interrupt."""

    def read(self, address: int) -> tuple[int, bool]: ...

    def write(self, address: int, word: int) -> bool: ...

    def wait(self, cycles: int, *, interrupt: bool = ...) -> int: ...


AnyBusT = TypeVar("AnyBusT", bound=AnyBus)


class BusDriver(Generic[AnyBusT]):
    """A driver of a device by the description of its registers, as the driver in C does it. ``bus``: the way to the
    device, which is simulated here or behind a socket (`serve`), or is real (`uio`, `uart`)."""

    def __init__(self, device: Device, bus: AnyBusT) -> None:
        self.device, self.bus, self._registers = device, bus, register_map(device)
        slower = getattr(bus, "slower", int)  # what is not simulated does not say how slow an engine's clock is
        self._patience = slower(device.patience)

    def read(self, register: str, field: str = "") -> int:
        """A register, or one of its fields. Raises BusFault if the read is refused."""
        found = self._registers[register]
        word, refused = self.bus.read(found.offset)
        if refused:
            raise BusFault(f"a read of {register} is refused")
        if not field:
            return word
        (of,) = (f for f in found.fields if f.name == field)
        return (word & of.mask) >> of.low

    def write(self, register: str, word: int) -> None:
        """Write a register. Raises BusFault if the write is refused."""
        if self.bus.write(self._registers[register].offset, word):
            raise BusFault(f"a write of {register} is refused")

    def error(self) -> str:
        """The cause of the first error since the last call, cleared; NONE if there was none."""
        cause = causes(self.device)[self.read("STATUS", "cause")][0]
        if cause != "NONE":
            self.write("IRQ_STATUS", 2)
        return cause

    def ready(self) -> None:
        """Wait until the device accepts a command. Raises BusFault if it never does."""
        self._until("ready")

    def send(self, command: int, words: Sequence[int]) -> None:
        """Send a command and its data words, as fast as the buffer takes them."""
        self.write("IRQ_STATUS", 1)
        self.write("COMMAND", command)
        room = 0
        for word in words:
            left = self._patience
            while not room:
                room, left = self.read("LEVEL", "free"), left - 1
                if not left:
                    raise BusFault("the buffer stays full")
            self.write("DATA_IN", word)
            room -= 1

    def answer(self, count: int) -> list[int]:
        """Wait for the answer and read ``count`` words; with 0 until the device is ready. Raises BusFault."""
        self._until("done" if count else "ready")
        found: list[int] = []
        left = self._patience
        while len(found) < count:
            level, left = self.read("LEVEL", "words"), left - 1
            found += [self.read("DATA_OUT") for _ in range(min(level, count - len(found)))]
            if not left:
                raise BusFault(f"{len(found)} of {count} words of an answer")
        return found

    def fill(self, slot: int, command: int, words: Sequence[int]) -> None:
        """Write the words of a key slot, which is for a command. Raises BusFault for an error of the device."""
        self.write("KEY_FILL", slot | command << KEY_COMMAND)
        for word in words:
            self.write("KEY_WORD", word)
        if (cause := self.error()) != "NONE":
            raise BusFault(f"key slot {slot}: {cause}")

    def use(self, slot: int | None) -> None:
        """Let messages take their secret words from a key slot, or None."""
        self.write("KEY_USE", 0 if slot is None else USE | slot)

    def run(self, command: int, words: Sequence[int], count: int) -> list[int]:
        """Send a command, receive its answer. Raises BusFault for an error of the device."""
        self.send(command, words)
        found = self.answer(count)
        if (cause := self.error()) != "NONE":
            raise BusFault(f"command {command}: {cause}")
        return found

    def constants(self) -> list[int]:
        """The constant registers at their places, JOBS, 0 for others. Raises BusFault."""
        named = [r for r in self._registers.registers if r.constant or r.name == "JOBS"]
        found = {r.offset // 4: self.read(r.name) for r in named}
        return [found.get(k, 0) for k in range(len(self._registers.registers))]

    def act(self, bit: int, field: str) -> tuple[int, int]:
        """Do what a bit of CONTROL does: ``field`` of STATUS at its event, or when there is none for too long, and the
        cycles until then."""
        for register, word in (("IRQ_STATUS", 3), ("IRQ_ENABLE", 1), ("CONTROL", bit)):
            self.write(register, word)
        most = self.device.zeroise_cycles + self.device.patience * (1 + len(self.device.selftest))
        cycles = self.bus.wait(getattr(self.bus, "slower", int)(most), interrupt=True)
        return self.read("STATUS", field), cycles

    def _until(self, field: str) -> None:
        """Wait for a bit of STATUS, by the interrupt if it is an answer."""
        self.write("IRQ_ENABLE", 3)
        if field == "done":
            self.bus.wait(self._patience, interrupt=True)
        left = _POLL * self._patience
        while left > 0:
            if self.read("STATUS", field):
                return
            if self.read("STATUS", "error"):
                raise BusFault(f"an error instead of {field}: {self.error()}")
            if self.device.alarm and self.read("STATUS", "alarm"):
                raise BusFault(f"an alarm instead of {field}: only a reset ends it")
            left -= max(_POLL, self.bus.wait(_POLL))
        raise BusFault(f"the device never gets {field}")


class PacketDriver(Generic[AnyBusT]):
    """A driver of a device with packets, with the functions of `BusDriver` that are not for registers. ``bus``: the
    way to its queues of words, simulated here or behind a socket (`serve`)."""

    def __init__(self, device: Device, bus: AnyBusT) -> None:
        self.device, self.bus = device, bus
        slower = getattr(bus, "slower", int)
        self._patience = slower(device.patience * (1 + len(device.selftest)) + device.zeroise_cycles)
        self._status = register_map(device)["STATUS"]

    def put(self, words: Sequence[int]) -> None:
        """Send a packet; the words wait in a queue until the device takes them."""
        for k, word in enumerate(words):
            self.bus.write(PACKET_LAST if k == len(words) - 1 else PACKET_WORD, word)

    def get(self) -> list[int]:
        """The next packet. Raises BusFault if none comes."""
        self.bus.wait(self._patience, interrupt=True)
        found, last = list[int](), False
        while not last:
            there, _ = self.bus.read(PACKET_NEXT)
            if not there:
                raise BusFault(f"a packet has no end after {len(found)} words")
            found.append(self.bus.read(PACKET_WORD)[0])
            last = there > 1
        return found

    def field(self, status: int, name: str) -> int:
        """A field of a word of status."""
        (of,) = (f for f in self._status.fields if f.name == name)
        return (status & of.mask) >> of.low

    def cause(self, status: int) -> str:
        """The cause of an error in a word of status, NONE without one."""
        return stream_causes(self.device)[self.field(status, "cause")][0]

    def exchange(self, header: int, words: Sequence[int] = ()) -> tuple[int, list[int]]:
        """Send a packet; the word of status and the others of its answer. Raises BusFault if none comes."""
        self.put([header, *words])
        status, *found = self.get()
        return status, found

    def ready(self) -> None:
        """Nothing: a packet waits for the device."""

    def run(self, command: int, words: Sequence[int], count: int) -> list[int]:
        """Send a command, receive its answer. Raises BusFault for an error of the device."""
        status, found = self.exchange(command, words)
        if (cause := self.cause(status)) != "NONE":
            raise BusFault(f"command {command}: {cause}")
        if len(found) != count:
            raise BusFault(f"{len(found)} of {count} words of an answer")
        return found

    def constants(self) -> list[int]:
        """The constant registers at their places, JOBS, 0 for others. Raises BusFault."""
        return self.exchange(CONTROLS["identify"])[1]

    def act(self, bit: int, field: str) -> tuple[int, int]:
        """Do what a bit of CONTROL does: ``field`` of STATUS then, and the cycles until the answer is here. Raises
        BusFault if there is none."""
        self.put([CONTROL | ABORT | bit])
        cycles = self.bus.wait(self._patience, interrupt=True)
        return self.field(self.get()[0], field), cycles


def driver_of(device: Device, bus: Bus, way: AnyBusT) -> BusDriver[AnyBusT] | PacketDriver[AnyBusT]:
    """The driver of a device behind a bus."""
    return PacketDriver(device, way) if bus.packets else BusDriver(device, way)


__all__ = ["BusDriver", "BusFault", "BusSimulator", "PacketDriver", "ToolError", "driver_of"]
