# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What stands behind the registers: a core or an engine, and the messages that it takes.

A message is a command and data words; its answer, if it has one, is of words too. All words have 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from modmill.contract import UnsupportedError

if TYPE_CHECKING:
    from modmill.buses.calls import Calls
    from modmill.buses.power_calls import PowerCalls
    from modmill.buses.product_calls import ProductCalls

WORD = 32
"""Bits of a word of the bus."""
KINDS = ("multiplier", "powers", "curve")
"""Kinds of devices; a device's number is the place in this list, counted from 1."""
SPARE = 4
"""Words of the buffer behind the engine that may be on the way when it counts as full."""
RESET_CYCLES = 4
"""Least cycles for which the engine is held in reset."""
PACE = 6
"""Most cycles between two words of a message that the front sends by itself, if it has not to wait."""
CROSSING = 24
"""Most cycles of the slower clock for a reset to a device with a clock of its own and back, or for a word to it."""
CLOCKS = SAME, SEPARATE = "same", "separate"
"""Clocks of a device: that of the bus, or one of its own."""
MACHINES = 64
"""Most machines behind a bus."""
RUNS = 255
"""Most runs of a job."""
BUFFER = 16
"""Least number of words in a buffer."""
KEY_SLOTS = 16
"""Most key slots of a front."""
KEY_WORDS = 1 << 14
"""Most words of the memory of key slots."""


def is_separate(clock: str, bus: str) -> bool:
    """Whether a device has a clock of its own. Raises UnsupportedError for an unknown clock, and without a ``bus``."""
    if clock not in CLOCKS:
        raise UnsupportedError(f"the clock behind a bus must be one of {', '.join(CLOCKS)}, not {clock}")
    if clock == SEPARATE and not bus:
        raise UnsupportedError(f"a {SEPARATE} clock is for a core or engine behind a bus; give --bus too")
    return clock == SEPARATE


@dataclass(frozen=True)
class Counted:
    """The words of a message whose length depends on its first data word, a count from 1 to ``most``; 0 if that is 0.

    For each of ``threads`` threads there are (``times`` count + ``plus``) / 2^``shift`` words, rounded down, and
    ``numbers`` words more. ``stated``: whether the second data word repeats the first of these two numbers.
    """

    most: int
    times: int
    plus: int
    shift: int
    numbers: int
    threads: int
    stated: bool

    def varying(self, count: int) -> int:
        """The number of words of a thread that depends on the count."""
        return (self.times * count + self.plus) >> self.shift

    def words(self, count: int) -> int:
        """Number of data words of the message."""
        return 1 + self.stated + self.threads * (self.varying(count) + self.numbers)


@dataclass(frozen=True)
class Command:
    """A message: its ``number``, which is the word that begins it at the engine, and its ``name``.

    ``words``: number of data words, the greatest one if it depends on a count (``counted``). ``answer``: number of
    words of the answer; 0 for a message that has none. ``secret``: number of the first words of each thread that are
    secret, so that a key slot can hold them; the greatest one if it depends on a count.
    """

    number: int
    name: str
    words: int
    answer: int
    counted: Counted | None = None
    secret: int = 0

    def dealt(self, machines: int) -> Command:
        """The message for several machines, if this is the one of each: command 0 is for all of them, a job has the
        words behind its count once for each machine, and so has its answer."""
        if machines == 1 or self.number == 0:
            return self
        shape = self.counted and replace(self.counted, threads=machines * self.counted.threads)
        words = shape.words(shape.most) if shape else machines * self.words
        return replace(self, words=words, answer=machines * self.answer, counted=shape)

    @property
    def head(self) -> int:
        """Number of data words in front of those of the first thread."""
        return 1 + self.counted.stated if self.counted else 0

    def open_words(self, threads: int) -> int:
        """Number of words of each of ``threads`` threads that are not secret."""
        return self.counted.numbers if self.counted else self.words // threads - self.secret


@dataclass(frozen=True)
class Sent:
    """A message that the front sends by itself: the data ``words``, ``part`` once for each machine, then, with
    ``zeros``, words 0 to its end; with ``cut`` its job is aborted at the start. ``answer``: the words that are expected
    of each machine, where they are compared. ``cycles``: most cycles of the device for it, besides those of its words.
    """

    command: int
    words: tuple[int, ...] = ()
    part: tuple[int, ...] = ()
    zeros: bool = False
    cut: bool = False
    answer: tuple[int, ...] = ()
    cycles: int = 0


@dataclass(frozen=True)
class Device:
    """A core or an engine behind a bus.

    ``kind``: of `KINDS`. ``top``: name of its Verilog module. ``digest``: of its netlist, ``sha256:...``. ``bits``: of
    the modulus. ``number_words``: words of a number. ``threads``: runs of a job. ``commands``: by number, without gaps;
    number 0 loads a modulus or constants, and the other commands need it first. ``power_up``: least cycles of a reset.
    ``machines``: number of equal machines, to which a job is dealt (`Command.dealt`); ``commands`` are those of all.
    ``patience``: most cycles from the last word of a message to its answer. ``operands``: bits of the ports i_a, i_b
    (0: none), o_r and k_m (0: none) of a multiplier; None for an engine with streams of words. ``buffer``: greatest
    number of words in a buffer, a power of two. ``calls``: what calls in C need, None if there are none. ``zeroise``:
    messages that overwrite everything in the device that depends on former messages. ``selftest``: messages with known
    answers, empty if there is no self-test. ``separate``: whether it has a clock of its own; cycles here are then those
    of the slower clock. ``alarm``: whether it has the output `contract.ALARM`. ``key_slots``: number of slots for keys
    in the front (`slots`); ``key_setup``: data words of command 0 that all of these keys belong to; if empty, each slot
    holds its own. ``random``: whether it has a port for random words, which is that of the whole module.

    Raises UnsupportedError for commands that do not fit.
    """

    kind: str
    top: str
    digest: str
    bits: int
    number_words: int
    threads: int
    commands: tuple[Command, ...]
    power_up: int = 1
    patience: int = 1_000_000
    operands: tuple[int, int, int, int] | None = None
    buffer: int = 512
    calls: Calls | PowerCalls | ProductCalls | None = None
    zeroise: tuple[Sent, ...] = ()
    selftest: tuple[Sent, ...] = ()
    machines: int = 1
    separate: bool = False
    alarm: bool = False
    key_slots: int = 0
    key_setup: tuple[int, ...] = ()
    random: bool = False

    def __post_init__(self) -> None:
        first = self.commands[0].number
        if [c.number for c in self.commands] != list(range(first, first + len(self.commands))) or first > 1:
            raise UnsupportedError("commands must be numbered from 0 or 1 on, without gaps")
        if max(c.number for c in self.commands) > 15:
            raise UnsupportedError(f"a bus front takes at most 15 commands, not {len(self.commands)}")
        if not 1 <= self.machines <= MACHINES:
            raise UnsupportedError(f"a bus front takes 1 to {MACHINES} machines, not {self.machines}")
        if self.threads > RUNS:
            each = f"{self.machines} machines with {self.threads // self.machines} runs each"
            raise UnsupportedError(f"a job behind a bus has at most {RUNS} runs, not {self.threads}: {each}")
        if self.key_slots:
            self._check_slots()

    def _check_slots(self) -> None:
        if not self.keyed:
            raise UnsupportedError("no operation of this engine has a secret scalar or exponent for a key slot")
        if self.key_memory > KEY_WORDS:
            most = KEY_WORDS // self.key_stride
            what = f"{self.key_slots} key slots of {self.key_stride:,} words"
            raise UnsupportedError(f"{what} do not fit {KEY_WORDS:,} words; at most {most} do")

    @property
    def setup(self) -> Command | None:
        """The command that the others need first."""
        return self.commands[0] if self.commands[0].number == 0 else None

    @cached_property
    def counted(self) -> Counted | None:
        """What the counted commands have in common (all but ``most``, ``plus`` and ``numbers``); None without them.
        Raises UnsupportedError if they differ in more."""
        found = [c.counted for c in self.commands if c.counted]
        same = {(c.times, c.shift, c.threads, c.stated) for c in found}
        if len(same) > 1:
            raise UnsupportedError("the lengths of this engine's messages depend on their counts in different ways")
        return found[0] if found else None

    @property
    def keyed(self) -> tuple[Command, ...]:
        """The commands whose secret words a key slot can hold."""
        return tuple(command for command in self.commands if command.secret)

    @property
    def key_own_setup(self) -> int:
        """Number of data words of command 0 in each key slot, in front of its other words."""
        return 0 if self.key_setup or self.setup is None else self.setup.words

    @property
    def key_words(self) -> int:
        """Most words of a key slot."""
        return self.key_own_setup + max(c.head + c.secret for c in self.keyed)

    @property
    def key_stride(self) -> int:
        """Distance of two key slots in their memory, in words; a power of two."""
        return max(2, 1 << (self.key_words - 1).bit_length())

    @property
    def key_base(self) -> int:
        """Place of the first key slot, behind ``key_setup``; a multiple of the power of two above that of the last."""
        all_slots = 1 << (self.key_slots * self.key_stride - 1).bit_length()
        return max(all_slots, 1 << (len(self.key_setup) - 1).bit_length()) if self.key_setup else 0

    @property
    def key_memory(self) -> int:
        """Number of words of the memory of key slots; 0 without them."""
        return self.key_base + self.key_slots * self.key_stride if self.key_slots else 0

    def key_message(self, words: Sequence[int], number: int) -> tuple[list[int], list[int]]:
        """The words of a key slot for a message of command ``number`` with these data ``words``, without those of
        ``key_own_setup``; and the words that are sent with this key. The secret is that of the first thread."""
        command = self.commands[number - self.commands[0].number]
        head = command.head
        each = (len(words) - head) // self.threads
        open_words = command.open_words(self.threads)
        parts = [list(words[k + each - open_words : k + each]) for k in range(head, len(words), each)]
        return list(words[: head + each - open_words]), [word for part in parts for word in part]

    def key_sent(self, key: Sequence[int], words: Sequence[int], number: int) -> list[int]:
        """The data words of a message without a key slot, which does what one with these ``words`` and this ``key`` of
        `key_message` does."""
        command = self.commands[number - self.commands[0].number]
        head, each = command.head, command.open_words(self.threads)
        parts = [words[k : k + each] for k in range(0, len(words), each)]
        return [*key[:head], *(word for part in parts for word in (*key[head:], *part))]

    def sent_words(self, sent: Sent) -> int:
        """Words of a message that the front sends by itself."""
        command = self.commands[sent.command - self.commands[0].number]
        if not sent.zeros:
            return 1 + len(sent.words) + self.machines * len(sent.part)
        return 1 + (command.counted.words(sent.words[0]) if command.counted else command.words)

    @property
    def zeroise_cycles(self) -> int:
        """Most cycles of zeroising, from the write of CONTROL to STATUS.zeroised; with a separate clock, of the slower
        one."""
        resets = (3 + sum(sent.cut for sent in self.zeroise)) * (max(self.power_up, RESET_CYCLES) + 2 * PACE)
        sent = sum(sent.cycles + PACE * (self.sent_words(sent) + 2) for sent in self.zeroise)
        crossing = CROSSING * (4 + 2 * len(self.zeroise)) if self.separate else 0
        keys = self.key_slots * self.key_stride if self.key_slots else 0
        sweeps = 2 * max(2 * self.in_words, 2 * self.out_words, keys)
        return resets + sent + crossing + sweeps + 6 * PACE

    @property
    def in_words(self) -> int:
        """Words of the buffer before the engine, a power of two."""
        return self._depth(max(1 + c.words for c in self.commands))

    @property
    def out_words(self) -> int:
        """Words of the buffer behind the engine, a power of two."""
        return self._depth(max(c.answer for c in self.commands) + SPARE)

    def _depth(self, words: int) -> int:
        return max(BUFFER, min(self.buffer, 1 << (words - 1).bit_length()))
