# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The registers of every bus front, described once. RTL, SystemRDL, C, Python, Markdown, HTML and IP-XACT
come from this.

All registers have 32 bits and are accessed as a whole. Access of a field:

    ro    read only
    rw    read and written
    wo    written only, reads are refused
    w1c   read; a bit that is written as 1 is cleared
    pop   read only, and reading takes a word from the answer
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from modmill.buses.device import KINDS, WORD, Device

MAGIC = int.from_bytes(b"MMIL", "little")
ABORT, ZEROISE, SELFTEST = 1, 2, 4
"""The bits of CONTROL."""
VERSION = 1, 1
"""Major and minor version of the registers; with those of key slots the minor one is one more."""
USE = 1 << 8
"""The bit of KEY_USE."""
KEY_COMMAND, KEY_LOCK = 8, 16
"""Lowest bit of the command in KEY_FILL and in the first word of the key manager, and the bit of its lock there."""
KEY_REGISTERS = "KEYS", "KEY_FILL", "KEY_WORD", "KEY_USE", "KEY_SLOTS"
"""The registers of key slots, behind the others."""
PLACE = 4
"""Bits of the number of a register, which is its address in words, without key slots."""
SPAN = 4096
"""Bytes of the address space of a front."""

CAUSES = (
    ("NONE", "no error"),
    ("COMMAND", "the device has no such command"),
    ("BUSY", "a command while a job ran or its answer was not read, or any word while zeroising or testing"),
    ("SHORT", "a command before the message was complete; that message is aborted"),
    ("LONG", "a word after the end of a message, or before a command"),
    ("FULL", "a word while the buffer was full; the word is lost"),
    ("EMPTY", "a word was read when there was none; it reads as 0"),
    ("SETUP", "a command that needs command 0 first"),
    ("VALUE", "a count of the message is out of range; the message is aborted"),
)
"""Causes of an error, in the order of their numbers."""
PACKET_CAUSES = (
    ("PART", "a word without all of its bytes (TKEEP)"),
    ("ABORTED", "abort, zeroise or selftest came while the job ran"),
)
"""Further causes, of packets."""
ALARM_CAUSE = ("ALARM", "the device has raised its alarm, or is to work after it")
"""The cause behind those of packets, of a device with an alarm."""
KEY_CAUSES = (
    ("SLOT", "the key slot is empty or not there, or its key or words do not belong to the command or the modulus"),
    ("LOCKED", "the key slot is in use, or belongs to the key manager"),
)
"""The causes behind that, of a device with key slots."""
NUMBERS = {name: number for number, (name, _) in enumerate((*CAUSES, *PACKET_CAUSES, ALARM_CAUSE, *KEY_CAUSES))}
"""The number of each cause."""


def causes(device: Device) -> tuple[tuple[str, str], ...]:
    """Causes of an error of this device behind a bus with registers, in the order of their numbers."""
    without = tuple((name, "not with registers") for name, _ in PACKET_CAUSES)
    alarm = ALARM_CAUSE if device.alarm else (ALARM_CAUSE[0], "not of this device")
    if device.key_slots:
        return (*CAUSES, *without, alarm, *KEY_CAUSES)
    return (*CAUSES, *without, alarm) if device.alarm else CAUSES


@dataclass(frozen=True)
class Field:
    """Bits ``low`` to ``low + width - 1`` of a register; ``access`` as above; ``reset``: value after a reset.

    ``constant``: whether it always has that value. ``values``: (name, meaning) of the values from 0 on.
    """

    name: str
    low: int
    width: int
    access: str
    reset: int
    meaning: str
    constant: bool = False
    values: tuple[tuple[str, str], ...] = ()

    @property
    def mask(self) -> int:
        """Its bits in the register."""
        return ((1 << self.width) - 1) << self.low


@dataclass(frozen=True)
class Register:
    """The register at byte address ``offset``."""

    name: str
    offset: int
    meaning: str
    fields: tuple[Field, ...]

    @property
    def readable(self) -> bool:
        """Whether it can be read."""
        return any(field.access != "wo" for field in self.fields)

    @property
    def writable(self) -> bool:
        """Whether it can be written."""
        return any(field.access in ("rw", "wo", "w1c") for field in self.fields)

    @property
    def constant(self) -> bool:
        """Whether it always has the same value."""
        return all(field.constant for field in self.fields)

    @property
    def reset(self) -> int:
        """Its value after a reset."""
        return sum(field.reset << field.low for field in self.fields)


@dataclass(frozen=True)
class RegisterMap:
    """All registers of a front, by ascending offset."""

    registers: tuple[Register, ...]

    def __getitem__(self, name: str) -> Register:
        return next(register for register in self.registers if register.name == name)

    @property
    def place_bits(self) -> int:
        """Bits of the number of a register."""
        return max(PLACE, (len(self.registers) - 1).bit_length())

    def fields(self) -> Iterator[tuple[Register, Field]]:
        """Every field with its register."""
        return ((register, field) for register in self.registers for field in register.fields)


def _fixed(name: str, low: int, width: int, value: int, meaning: str, **more: tuple[tuple[str, str], ...]) -> Field:
    return Field(name, low, width, "ro", value, meaning, constant=True, **more)


def register_map(device: Device) -> RegisterMap:
    """The registers of a front for this device."""
    digest = int(device.digest.removeprefix("sha256:")[:8], 16)
    kinds = (("NONE", "not used"), *((kind.upper(), f"a device of this kind: {kind}") for kind in KINDS))
    whole = lambda name, access, meaning: (Field(name, 0, WORD, access, 0, meaning),)  # noqa: E731
    alarm = lambda low, access, meaning: (Field("alarm", low, 1, access, 0, meaning),) * device.alarm  # noqa: E731
    found = [
        ("MAGIC", "Says that this is a device of Modmill.", (_fixed("value", 0, 32, MAGIC, "MMIL in ASCII"),)),
        ("VERSION", "Version of the registers.", (
            _fixed("minor", 0, 16, VERSION[1] + bool(device.key_slots), "grows when registers are added"),
            _fixed("major", 16, 16, VERSION[0], "grows when a driver must change"),
        )),
        ("DIGEST", "Which core or engine.", (_fixed("value", 0, 32, digest, "first 32 bits of its digest"),)),
        ("KIND", "What kind of device.", (
            _fixed("kind", 0, 8, 1 + KINDS.index(device.kind), "kind of the device", values=kinds),
            _fixed("commands", 8, 8, device.commands[-1].number, "number of the last command"),
            _fixed("threads", 16, 8, device.threads, "runs in a job, of all machines"),
            _fixed("setup", 24, 1, int(device.setup is not None), "command 0 is needed before the others"),
            _fixed("selftest", 25, 1, int(bool(device.selftest)), "it has a self-test"),
            _fixed("others", 26, 6, device.machines - 1, "machines besides the first one"),
        )),
        ("SIZE", "Sizes of numbers.", (
            _fixed("bits", 0, 16, device.bits, "bits of the modulus"),
            _fixed("words", 16, 16, device.number_words, "words of a number"),
        )),
        ("BUFFERS", "Sizes of the buffers in words.", (
            _fixed("in", 0, 16, device.in_words, "words before the engine"),
            _fixed("out", 16, 16, device.out_words, "words behind the engine"),
        )),
        ("CONTROL", "Control; a bit that is written as 1 acts once.", (
            Field("abort", 0, 1, "wo", 0, "end the message or job, empty the buffers, reset the engine"),
            Field("zeroise", 1, 1, "wo", 0, "abort, then overwrite all memories and registers that held data"),
            Field("selftest", 2, 1, "wo", 0, "abort, then run the known answer, if KIND.selftest is 1"),
        )),
        ("STATUS", "State of the device.", (
            Field("ready", 0, 1, "ro", 0, "a command is accepted"),
            Field("receiving", 1, 1, "ro", 0, "words of a message are expected"),
            Field("busy", 2, 1, "ro", 1, "the engine works, or is being reset, zeroised or tested"),
            Field("done", 3, 1, "ro", 0, "an answer can be read"),
            Field("loaded", 4, 1, "ro", int(device.setup is None), "command 0 is done, or not needed"),
            Field("error", 5, 1, "ro", 0, "an access was refused; IRQ_STATUS.error clears it"),
            Field("tested", 6, 1, "ro", 0, "the self-test that was started last has ended"),
            Field("passed", 7, 1, "ro", 0, "its answers were right"),
            Field("cause", 8, 4, "ro", 0, "cause of the first error", values=causes(device)),
            Field("zeroised", 12, 1, "ro", 0, "zeroised, and no message or self-test since then"),
            *alarm(13, "ro", "the device has raised its alarm; only a reset ends that"),
        )),
        ("IRQ_ENABLE", "Events that raise the interrupt.", (
            Field("done", 0, 1, "rw", 0, "the end of a message or job"), Field("error", 1, 1, "rw", 0, "an error"),
            *alarm(2, "rw", "the alarm"),
        )),
        ("IRQ_STATUS", "Events that happened.", (
            Field("done", 0, 1, "w1c", 0, "a message without answer or CONTROL is done, or an answer can be read"),
            Field("error", 1, 1, "w1c", 0, "an error; clearing it clears STATUS.error and STATUS.cause"),
            *alarm(2, "w1c", "the alarm; clearing it leaves STATUS.alarm"),
        )),
        ("JOBS", "Answers since the reset.", whole("count", "ro", "number of complete answers, modulo 2^32")),
        ("COMMAND", "Begins a message.", whole("command", "wo", "number of the command; data words follow")),
        ("DATA_IN", "Words of a message.", whole("word", "wo", "the next data word, the least significant one first")),
        ("DATA_OUT", "Words of an answer.", whole("word", "pop", "the next word, least significant first")),
        ("LEVEL", "Levels of the buffers.", (
            Field("free", 0, 16, "ro", device.in_words, "words that DATA_IN accepts now"),
            Field("words", 16, 16, "ro", 0, "words that DATA_OUT has now"),
        )),
        ("ZEROISE", "Time of CONTROL.zeroise.", (
            _fixed("cycles", 0, 32, device.zeroise_cycles, "most cycles until STATUS.zeroised"),
        )),
        *(_key_registers(device) if device.key_slots else ()),
    ]  # fmt: skip
    return RegisterMap(tuple(Register(name, 4 * k, meaning, fields) for k, (name, meaning, fields) in enumerate(found)))


def _key_registers(device: Device) -> Iterator[tuple[str, str, tuple[Field, ...]]]:
    """Name, meaning and fields of each register of key slots."""
    meanings = (
        "Sizes of key slots.", "Empties a key slot and begins to fill it; its words follow.", "Words of a key.",
        "The key of the messages that follow, until an abort.", "State of the key slots, a bit for each.",
    )  # fmt: skip
    fields = (
        (_fixed("slots", 0, 8, device.key_slots, "number of slots"),
         _fixed("words", 16, 16, device.key_words, "most words of a slot")),
        (Field("slot", 0, 4, "wo", 0, "number of the slot"),
         Field("command", KEY_COMMAND, 4, "wo", 0, "the only command that the key is for")),
        (Field("word", 0, WORD, "wo", 0, "the next word, least significant first"),),
        (Field("slot", 0, 4, "wo", 0, "number of the slot"),
         Field("use", 8, 1, "wo", 0, "messages take their secret words from the slot")),
        (Field("filled", 0, 16, "ro", 0, "it holds a whole key"),
         Field("locked", 16, 16, "ro", 0, "its key is the key manager's, and cannot be overwritten by the bus")),
    )  # fmt: skip
    yield from zip(KEY_REGISTERS, meanings, fields, strict=True)
