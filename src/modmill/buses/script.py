# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Messages that a front sends to its device by itself, to zeroise it and to test it: a script in a block RAM.

The block RAM begins with the constant registers, which would cost a lookup table for most of their bits. An entry of a
script is an operation and a word:

    COMMAND   begins a message with the word, when a command is accepted
    WORD      writes the word as a data word
    ZEROS     writes data words 0 until the message is complete
    CUT       does the same, and aborts when the device has taken them
    EXPECT    takes a word of the answer and compares it with the word
    DROP      takes the other words of the answer
    SWEEP     overwrites both buffers, then aborts
    END       ends the script when a command is accepted
    AGAIN     goes back to the entry with the word as its place, once for each machine but the first
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.buses.device import WORD, Device, Sent
from modmill.buses.registers import RegisterMap
from modmill.rtl.delay import later
from modmill.rtl.memory import DEPTHS, BlockRam

COMMAND, DATA, ZEROS, CUT, EXPECT, DROP, SWEEP, END, AGAIN = range(9)
"""Operations, in the order above."""
BANK = DEPTHS[-1]
KNOWN_WORDS = 4 * BANK
"""Most words of a self-test."""
Entry = tuple[int, int]


def _entries(messages: Iterable[Sent], start: int, machines: int, *, wipes: bool) -> list[Entry]:
    """The entries of a script that begins at the place ``start``."""
    found: list[Entry] = []

    def each(operation: int, words: Sequence[int]) -> None:
        """The words once for each machine."""
        first = start + len(found)
        found.extend((operation, word) for word in words)
        if words and machines > 1:
            found.append((AGAIN, first))

    if wipes:  # the device may see what is left in the buffer behind the last word
        found.append((SWEEP, 0))
    for message in messages:
        found.append((COMMAND, message.command))
        found += [(DATA, word) for word in message.words]
        each(DATA, message.part)
        if message.zeros:
            found.append((CUT if message.cut else ZEROS, 0))
        each(EXPECT, message.answer)
        if not message.cut:
            found.append((DROP, 0))
    if wipes:
        found.append((SWEEP, 0))
    return [*found, (END, 0)]


def scripts(device: Device, registers: RegisterMap) -> tuple[list[Entry], int]:
    """The words of the constant registers, then the entries of the script that zeroises, then those of the one that
    tests; and the place of the latter."""
    constants = {r.offset // 4: (0, r.reset) for r in registers.registers if r.constant}
    first, machines = [constants.get(k, (0, 0)) for k in range(1 << registers.place_bits)], device.machines
    first += _entries(device.zeroise, len(first), machines, wipes=True)
    second = _entries(device.selftest, len(first), machines, wipes=False) if device.selftest else []
    return [*first, *second], len(first)


class ScriptPlayer(wiring.Component):
    """Play one of the two scripts of a device through the control of its messages.

    ``zeroise``, ``selftest``: start; the former also while the other is played. ``stop`` ends the latter, ``halt`` (of
    a device with an alarm) either, and nothing is ``ended`` then. State of the control: ``ready`` for a command,
    ``opened`` for data words, ``room`` for one; ``fed``: the device has all words of a job; ``there``: ``answer`` is a
    word of an answer; ``expected``: ``data``, if a script is played; ``swept``: both buffers are full. To it:
    ``command``, ``word`` with ``data``, ``pop``, ``abort``, ``sweeping``. ``playing``: a script, ``zeroising``: the
    first one. ``ended``: at its end, with ``failed`` if an answer differs. ``constant``: the constant register with
    number ``place`` two cycles ago, 0 for others.

    Cost on ECP5: about 100 LUTs and 2 block RAMs. Latency: that of the memory and its control, 6 cycles an entry.
    """

    def __init__(self, device: Device, registers: RegisterMap) -> None:
        (self._entries, self._test), self._place_bits = scripts(device, registers), registers.place_bits
        self._machines, self._alarm = device.machines, device.alarm
        self._operations = AGAIN + (device.machines > 1)
        super().__init__({
            "zeroise": In(1), "selftest": In(1), "stop": In(1),
            "ready": In(1), "opened": In(1), "room": In(1), "fed": In(1), "there": In(1), "answer": In(WORD),
            "expected": In(WORD),
            "swept": In(1),
            "command": Out(1), "word": Out(1), "pop": Out(1), "abort": Out(1), "sweeping": Out(1), "data": Out(WORD),
            "playing": Out(1), "zeroising": Out(1), "ended": Out(1), "failed": Out(1),
            "place": In(self._place_bits), "constant": Out(WORD), **({"halt": In(1)} if device.alarm else {}),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        zeroise, selftest, stop = (Signal(name=f"{name}_begins") for name in ("zeroise", "selftest", "stop"))
        m.d.sync += [
            zeroise.eq(self.zeroise), selftest.eq(self.selftest & ~self.playing),
            stop.eq(self.stop & ~self.zeroising),
        ]  # fmt: skip
        at = Signal(range(len(self._entries)), name="entry")
        entry = self._memory(m, at)
        settled, step = Signal(5, name="entry_settled"), Signal(name="step")
        here = Signal(self._operations, name="operation", reset_less=True)  # one-hot, one cycle after the entry
        m.d.sync += here.eq(Cat(entry[WORD:] == k for k in range(self._operations)))
        m.d.comb += self.data.eq(entry[:WORD])
        there = self.there
        for stage in ("answer_there", "answer_compared"):
            there &= later(m, there, stage)
        acts, answer = settled[-1], later(m, self.answer, "answer_kept")
        again, passed = (acts & here[AGAIN], Signal(name="passed")) if self._machines > 1 else (Const(0), Const(0))
        bytes_ = [slice(k, k + 8) for k in range(0, WORD, 8)]
        differs = later(m, Cat(answer[b] != self.expected[b] for b in bytes_), "differs").any()
        expected = here[EXPECT] & (there | self.ready)
        more = (here[ZEROS] | here[CUT]) & self.opened & self.room
        commands, ends = here[COMMAND] & self.ready, here[END] & self.ready
        aborts = here[CUT] & self.fed | here[SWEEP] & self.swept
        steps = (
            commands | (here[DATA] & self.room) | (here[ZEROS] & ~self.opened) | aborts | expected
            | (here[DROP] & self.ready) | (here[AGAIN] & passed if self._machines > 1 else 0)
        )  # fmt: skip
        # conditions in registers: they last, and none is left of the entry before when this one acts
        command, word, compares, abort, end, goes = (
            later(m, condition, f"{name}_due") for name, condition in (
                ("command", commands), ("word", here[DATA] & self.opened & self.room | more),
                ("compare", Cat(expected, here[EXPECT] & there)), ("abort", aborts), ("end", ends), ("step", steps),
            )
        )  # fmt: skip
        m.d.comb += [
            self.command.eq(acts & command), self.word.eq(acts & word),
            self.sweeping.eq(acts & here[SWEEP]),
            self.abort.eq(acts & abort), self.ended.eq(acts & end), step.eq(acts & goes),
        ]  # fmt: skip
        m.d.sync += [
            settled.eq(Cat(self.playing, settled)), self.pop.eq(acts & (compares[1] | here[DROP] & there & ~self.pop)),
        ]  # fmt: skip
        # a wrong word or none; a word too many, or one of an answer that nothing is known of
        wrong = later(m, acts & (compares[0] & (differs | self.ready) | here[DROP] & there), "wrong_word")
        with m.If(wrong):
            m.d.sync += self.failed.eq(1)
        with m.If(step):
            m.d.sync += at.eq(at + 1)
        with m.If(step | self.word | zeroise | selftest):
            m.d.sync += settled.eq(0)
        with m.If(self.ended | stop | self.halt if self._alarm else self.ended | stop):
            m.d.sync += [self.playing.eq(0), self.zeroising.eq(0), settled.eq(0)]
        with m.If(selftest):
            m.d.sync += [at.eq(self._test), self.playing.eq(1), self.failed.eq(0)]
        if self._machines > 1:
            self._again(m, at, settled, again, passed)
        with m.If(zeroise):
            m.d.sync += [at.eq(1 << self._place_bits), self.playing.eq(1), self.zeroising.eq(1), self.failed.eq(0)]
        return m

    def _again(self, m: Module, at: Signal, settled: Signal, again: Value, passed: Signal) -> None:
        """Go back, ``again``, unless it was done for all machines, ``passed``."""
        left = Signal(range(self._machines), name="machines_left", init=self._machines - 1)
        m.d.comb += passed.eq(left == 0)
        with m.If(again & ~passed):
            m.d.sync += [at.eq(self.expected[: len(at)]), settled.eq(0), left.eq(left - 1)]
        with m.If((again & passed) | ~self.playing):
            m.d.sync += left.eq(self._machines - 1)

    def _memory(self, m: Module, at: Signal) -> Signal:
        """The entry at an address, three cycles later; 0 while nothing is played."""
        words = [operation << WORD | word for operation, word in self._entries]
        width, found = (self._operations - 1).bit_length() + WORD, []
        for number, first in enumerate(range(0, len(words), BANK)):
            bank = words[first : first + BANK]
            depth = max(DEPTHS[0], 1 << (len(bank) - 1).bit_length())
            m.submodules[f"script_{number}"] = ram = BlockRam(width, depth, bank)
            m.d.comb += [
                ram.a_address.eq(at[: depth.bit_length() - 1]), ram.b_address.eq(self.place), ram.b_write.eq(0),
                ram.b_d.eq(0),
            ]  # fmt: skip
            if number == 0:
                m.d.comb += self.constant.eq(ram.b_q)
            found.append(ram.a_q)
        bank = at[BANK.bit_length() - 1 :]  # a reset, which costs no LUT, keeps the others out
        return reduce(or_, (
            later(m, Mux((bank == k) & self.playing, q, 0), f"entry_word{k}") for k, q in enumerate(found)
        ))  # fmt: skip
