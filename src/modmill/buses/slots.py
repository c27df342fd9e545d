# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Key slots: secrets that are written once, used by number, and never read back.

    KEY_FILL, KEY_WORD of the bus, or packets of the key manager -> memory -> between the buffer and the engine

A slot holds the secret words of a job: a count in front of the runs, then those of a run, and the words of command 0 in
front of them if the modulus is loaded. Otherwise command 0 has the words that the device was built with, in the same
memory. Each word that ends a part has a mark. A register for each slot has its command and whether it is filled.

A message that uses a slot has the other words alone. Behind its command come the words in front of the runs, then
those of the slot, the words of the first run that are not secret, the words of the slot again, and so on. Command 0 has
no words of the bus. A job is refused unless the slot is filled, for this command, and with its own command 0 done
before: else a host could compute with the key in a group in which logarithms are easy.

The key manager sends packets: the word of KEY_FILL with a bit for the lock, then the words, ``key_last`` with the last
one. It ends what the bus fills. A packet of another length leaves the slot empty. While a message takes the words of a
slot, the bus cannot fill it (LOCKED), and the key manager waits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.buses.adapters import Bus
from modmill.buses.device import KEY_SLOTS, WORD, Device
from modmill.buses.registers import KEY_COMMAND, KEY_LOCK, USE
from modmill.contract import UnsupportedError
from modmill.rtl.delay import later
from modmill.rtl.memory import DEPTHS, BlockRam
from modmill.rtl.one_hot import OneHot

SIDELOAD = {"key_valid": In(1), "key_ready": Out(1), "key_data": In(WORD), "key_last": In(1)}
"""Ports of the key manager: a word moves in every cycle in which valid and ready are high."""
_BANK = DEPTHS[-1]
_SETTLED = 4
_PAUSE = 6
"""Least cycles between two words of the key manager, as between two of the bus."""
_NUMBER = 4


def check_slots(slots: int, bus: Bus | None) -> None:
    """Raise UnsupportedError unless a front of this bus (None: there is none) can have so many key slots."""
    if not slots:
        return
    if not 0 < slots <= KEY_SLOTS:
        raise UnsupportedError(f"a front has at most {KEY_SLOTS} key slots, not {slots}")
    if bus is None:
        raise UnsupportedError("key slots are in the front of an engine behind a bus; give --bus too")
    if bus.packets:
        raise UnsupportedError(f"key slots are filled through registers; {bus.name} has packets")


class KeySlots(wiring.Component):
    """Key slots of a device with ``key_slots``.

    Bus: ``data`` with ``write_key_...`` as in `JobControl`; ``shut``: the bus and the key manager are refused, because
    a script is played. ``wrong``, ``locked``, ``stray``: faults SLOT, LOCKED and LONG.
    Messages: ``uses``: the next one takes a slot. ``command`` is its number at least three cycles before ``comes``,
    when it is written; ``right``: the slot may be used for it. ``accepted``: it begins, with the slot if ``keyed``.
    ``open``: words of the message are still to come or to be sent. ``resets``: the engine is reset. ``sends``: words of
    the slot are due. ``sweeps``: overwrite the memory, until it is ``swept``.
    Words: ``in_...`` from the buffer, ``i_...`` to the engine, with the marks of `Dealer` for several machines.

    Cost on ECP5: in docs/buses.md. Latency: no cycle for the words of the buffer; a word of a slot in 5 cycles.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        marks = ("every", "closes") if device.machines > 1 else ()
        forward = {"valid": 1, "data": WORD, **dict.fromkeys(marks, 1)}
        super().__init__({
            **SIDELOAD, "data": In(WORD), "command": In(_NUMBER), "value_key_slots": Out(WORD),
            **{f"in_{name}": In(bits) for name, bits in forward.items()}, "in_ready": Out(1),
            **{f"i_{name}": Out(bits) for name, bits in forward.items()}, "i_ready": In(1),
            **{f"write_key_{name}": In(1) for name in ("fill", "word", "use")},
            **{name: In(1) for name in ("shut", "comes", "accepted", "keyed", "open", "resets", "sweeps")},
            **{name: Out(1) for name in ("uses", "right", "sends", "swept", "wrong", "locked", "stray")},
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        device, slots = self._device, self._device.key_slots
        self._filled, self._locks = (Signal(slots, name=name) for name in ("slots_filled", "slots_locked"))
        self._commands = [Signal(_NUMBER, name=f"command_of_{k}") for k in range(slots)]
        self._chosen, self._used = (Signal(_NUMBER, name=name) for name in ("chosen_slot", "used_slot"))
        self._slot, self._of = (Signal(_NUMBER, name=name) for name in ("slot", "slot_command"))  # to be filled
        self._begins, self._acts = Signal(name="fill_begins"), Signal(name="fill_acts")
        self._sender, self._filler = OneHot(m, "send"), OneHot(m, "fill")
        self._off, _ = self._sender.ongoing("OFF"), self._filler.ongoing("IDLE")  # the states after a reset
        self._at = Signal(range(device.key_memory), name="read_at")
        self._offset = Signal(range(device.key_stride), name="offset")
        self._written, self._stop = Signal(WORD, name="key_written", reset_less=True), Signal(name="stop")
        self._memory(m)
        self._choose(m)
        self._send(m)
        self._fill(m)
        kept = (self._filled, self._locks, *self._commands, self._chosen, self._used, self._slot, self._of, self._at,
                self._offset, self.uses)  # fmt: skip
        with m.If(self.sweeps):
            m.d.sync += [register.eq(0) for register in kept]
        m.d.comb += [self.value_key_slots[:16].eq(self._filled), self.value_key_slots[16:].eq(self._locks)]
        return m

    def _memory(self, m: Module) -> None:
        """The memory: ``_word`` and its mark, 3 cycles after a place; and what is written or overwrites it."""
        device, found = self._device, list[Value]()
        size, base, setup = device.key_memory, device.key_base, device.key_setup
        own = [word | (k == len(setup) - 1) << WORD for k, word in enumerate(setup)]
        wipe, at = Signal(range(size), name="wipe_at", init=base), Signal(range(size), name="write_at")
        write = Signal(name="writes")
        m.d.comb += [
            at.eq(Mux(self.sweeps, wipe, self._place(self._slot, self._offset))),
            # at power-up other registers contain anything, and the words of command 0 are here
            write.eq((self.sweeps | self._acts) & ~ResetSignal()),
        ]  # fmt: skip
        m.d.sync += [
            self.swept.eq(self.sweeps & (wipe == size - 1)),
            wipe.eq(Mux(self.sweeps, wipe + (wipe != size - 1), base)),
        ]  # fmt: skip
        data = Mux(self.sweeps, 0, Cat(self._written, self._stop))
        for number, first in enumerate(range(0, size, _BANK)):
            depth = max(DEPTHS[0], 1 << (min(size - first, _BANK) - 1).bit_length())
            bits = min(depth.bit_length() - 1, len(at))
            here = lambda place, k=number: place[_BANK.bit_length() - 1 :] == k  # noqa: E731
            m.submodules[f"keys_{number}"] = ram = BlockRam(WORD + 1, depth, own[first : first + _BANK])
            m.d.comb += [
                ram.a_address.eq(self._at[:bits]), ram.b_address.eq(at[:bits]), ram.b_d.eq(data),
                ram.b_write.eq(write & here(at) if size > _BANK else write),
            ]  # fmt: skip
            word = Mux(here(self._at), ram.a_q, 0) if size > _BANK else ram.a_q
            found.append(later(m, word, f"key_word{number}"))
        self._word = reduce(or_, found)

    def _place(self, slot: Value, offset: Value) -> Value:
        """The place of a word of a slot."""
        return Cat(offset, slot)[: len(self._at)] | self._device.key_base

    def _of_slot(self, slot: Value, value: Callable[[int], Value]) -> Value:
        """What a slot has, 0 for one that is not there."""
        return reduce(or_, (Mux(slot == k, value(k), 0) for k in range(self._device.key_slots)))

    def _choose(self, m: Module) -> None:
        """The slot of the messages, whether it may be used, and the one whose command 0 is done."""
        with m.If(self.write_key_use & ~self.shut):
            m.d.sync += [self.uses.eq((self.data & USE).any()), self._chosen.eq(self.data[:_NUMBER])]
        of = later(m, self._of_slot(self._chosen, lambda k: Cat(self._commands[k], self._filled[k])), "chosen_key")
        loaded, whose = Signal(name="own_loaded"), Signal(_NUMBER, name="loaded_slot")
        setup, matches = later(m, self.command == 0, "at_setup"), later(m, of[:_NUMBER] == self.command, "matches")
        # all slots have the same command 0, or each its own
        own = loaded if self._device.key_setup else later(m, loaded & (whose == self._chosen), "own_setup")
        fits = later(m, of[_NUMBER] & (setup | (matches & own)), "fits")
        m.d.comb += self.right.eq(fits & self._of_slot(self._chosen, lambda k: self._filled[k]))
        with m.If(self.accepted):
            with m.If(self.command == 0):
                m.d.sync += [loaded.eq(self.keyed), whose.eq(self._chosen)]
            with m.If(self.keyed):
                m.d.sync += self._used.eq(self._chosen)
        forgotten = self.resets | self.sweeps
        if not self._device.key_setup:  # the engine has the former command 0 of the slot
            forgotten |= self._begins & (self._slot == whose)
        with m.If(forgotten):
            m.d.sync += [loaded.eq(0), whose.eq(0)]
        with m.If(self.resets):
            m.d.sync += self.uses.eq(0)

    def _send(self, m: Module) -> None:
        """Pass the words of the buffer on, and those of the slot at their places."""
        device, machine = self._device, self._sender
        machines, threads, own = device.machines, device.threads, device.key_own_setup
        opens = {c.number: c.open_words(threads) for c in device.keyed}
        each, left = (Signal(range(max(opens.values()) + 1), name=name) for name in ("open_words", "words_left"))
        setup, counted = Signal(name="of_setup"), Signal(name="has_count")
        settled = Signal(_SETTLED, name="key_settled")
        sends, blocked = Signal(name="sends_key"), machine.ongoing("WAIT")
        there, passes = sends & settled[-1], self.in_valid & self.in_ready
        taken = there & self.i_ready
        ends = taken & self._word[WORD]
        m.d.comb += [
            sends.eq(machine.ongoing("SETUP") | machine.ongoing("HEAD") | machine.ongoing("KEY")),
            self.sends.eq(sends | machine.ongoing("COMMAND")), self.in_ready.eq(self.i_ready & ~sends & ~blocked),
            self.i_valid.eq(Mux(sends, settled[-1], self.in_valid & ~blocked)),
            self.i_data.eq(Mux(sends, self._word[:WORD], self.in_data)),
        ]  # fmt: skip
        if machines > 1:
            m.d.comb += [
                self.i_every.eq(Mux(sends, ~machine.ongoing("KEY"), self.in_every)),
                self.i_closes.eq(self.in_closes & ~sends),
            ]  # fmt: skip
        m.d.sync += settled.eq(Mux(sends & ~taken, Cat(1, settled), 0))
        with m.If(self.accepted):
            m.d.sync += [
                setup.eq(self.command == 0), counted.eq(self._any_of(self.command, counted=True)),
                each.eq(reduce(or_, (Mux(self.command == k, n, 0) for k, n in opens.items()))),
            ]  # fmt: skip
        with m.If(taken):
            m.d.sync += self._at.eq(self._at + 1)
        place = lambda offset: self._place(self._used, Const(offset, len(self._offset)))  # noqa: E731
        first, behind = place(own), place(own + max(c.head for c in device.keyed))
        m.d.sync += left.eq(Mux(machine.ongoing("PASS"), left - passes, each))
        ways: dict[str, list[tuple[Value, str, Value | int | None]]] = {
            "OFF": [(self.accepted & self.keyed, "COMMAND", None)],
            "COMMAND": [(passes & setup, "SETUP", 0 if device.key_setup else place(0)),
                        (passes & ~setup & counted, "HEAD", first), (passes & ~setup & ~counted, "WAIT", None)],
            "SETUP": [(ends, "WAIT", None)],
            "HEAD": [(ends, "WAIT", None)],
            "WAIT": [(self.in_valid, "KEY", Mux(counted, behind, first))],
            "KEY": [(ends, "PASS", None)],
            "PASS": [(passes & (left == 1), "WAIT", None)],
        }  # fmt: skip
        with machine:
            for state, following in ways.items():
                with machine.state(state):
                    for condition, other, start in following:
                        with m.If(condition):
                            machine.next(other)
                            if start is not None:
                                m.d.sync += self._at.eq(start)
                    if state != "OFF":
                        with m.If(~self.open):
                            machine.next("OFF")

    def _any_of(self, command: Value, *, counted: bool = False) -> Value:
        """Whether a command has secret words, and a count if ``counted``."""
        numbers = [c.number for c in self._device.keyed if c.counted or not counted]
        return reduce(or_, (command == number for number in numbers), Const(0, 1))

    def _listen(self, m: Module, asked: Value, drops: Signal) -> tuple[Value, Value, Value, Value, Value]:
        """A word that came a cycle ago; whether it is a slot's first one or another one of the bus, or one of the key
        manager that is not dropped; and whether it ends a packet."""
        pause, side = Signal(range(_PAUSE + 1), name="pause"), Signal(name="side_taken")
        of_bus, header, of_side = (Signal(name=name) for name in ("of_bus", "of_header", "of_side"))
        of_this_cycle = self.write_key_fill | self.write_key_word | header  # the bus goes first
        m.d.comb += [
            self.key_ready.eq((pause == 0) & ~self.shut & ~of_this_cycle & (drops | ~asked)),
            side.eq(self.key_valid & self.key_ready),
        ]  # fmt: skip
        m.d.sync += [
            pause.eq(Mux(side, _PAUSE, pause - (pause != 0))), of_side.eq(side & ~drops),
            of_bus.eq(self.write_key_word & ~self.shut), header.eq(self.write_key_fill & ~self.shut),
        ]  # fmt: skip
        with m.If(side & self.key_last):
            m.d.sync += drops.eq(0)
        word = later(m, Mux(side, self.key_data, self.data), "key_word_taken")
        return word, header, of_bus, of_side, later(m, self.key_last & side, "side_last")

    def _fill(self, m: Module) -> None:
        """Take the words of the bus and of the key manager: first the word that says which slot, then its words."""
        machine, slots = self._filler, self._device.key_slots
        by_side, lock, ended, drops = (Signal(name=name) for name in ("by_side", "lock", "packet_ended", "drops"))
        asked, fills = machine.ongoing("ASKED"), machine.ongoing("WORDS")
        word, header, of_bus, of_side, last = self._listen(m, asked, drops)
        m.d.sync += self._written.eq(word)
        goes = of_bus & fills & ~by_side | of_side & fills & by_side
        begins = header & ~asked & ~(fills & by_side) | of_side & ~(fills & by_side)
        at_last = later(m, last, "at_last")
        bad, at_end = self._judge(m, word, begins)
        bad |= by_side & (at_end ^ at_last)
        number, command = word[:_NUMBER], word[KEY_COMMAND : KEY_COMMAND + _NUMBER]
        wrong, locked = Signal(name="no_such_slot"), Signal(name="slot_locked")
        in_use = ~self._off & (self._slot == self._used)
        decides = ~(by_side & (in_use | self.comes))
        refused = ~by_side & (locked | in_use)
        m.d.sync += self._acts.eq(goes)
        m.d.comb += [
            self._begins.eq(asked & decides & ~wrong & ~refused),
            self.wrong.eq(~by_side & (asked & decides & wrong | self._acts & bad)),
            self.locked.eq(asked & decides & ~wrong & refused | header & ~begins), self.stray.eq(of_bus & ~goes),
        ]  # fmt: skip
        with m.If(begins):
            m.d.sync += [
                self._slot.eq(number), self._of.eq(command), lock.eq(word[KEY_LOCK] & of_side), by_side.eq(of_side),
                wrong.eq(~self._any_of(command) | (number >= slots)), ended.eq(last),
                locked.eq(self._of_slot(number, lambda k: self._locks[k])),
            ]  # fmt: skip
        with m.If(by_side & ((asked & decides & wrong & ~ended) | (self._acts & bad & ~at_last))):
            m.d.sync += drops.eq(1)
        with m.If(self.sweeps):
            m.d.sync += [flag.eq(0) for flag in (by_side, lock, ended, wrong, locked)]
            with m.If(by_side & (fills | (asked & ~ended))):
                m.d.sync += drops.eq(1)
        ways = {
            "IDLE": [(begins, "ASKED")],
            "ASKED": [(decides, "IDLE"), (self._begins & ~ended, "WORDS")],
            "WORDS": [(self._acts & (bad | at_end), "IDLE"), (begins, "ASKED")],
        }  # fmt: skip
        with machine:
            for state, following in ways.items():
                with machine.state(state):
                    for condition, other in (*following, (self.sweeps, "IDLE")):
                        with m.If(condition):
                            machine.next(other)
        self._mark(m, self._acts & fills & at_end & ~bad, lock)

    def _judge(self, m: Module, word: Value, begins: Value) -> tuple[Value, Value]:
        """Whether a word is a wrong count, and whether it is the last one of its slot, when it is written; ``word`` is
        there a cycle before."""
        device, offset = self._device, self._offset
        own = device.key_own_setup
        ends = {c.number: own + c.head + c.secret - 1 for c in device.keyed}
        end: Value = reduce(or_, (Mux(self._of == k, at, 0) for k, at in ends.items()))
        bad: Value = Const(0)
        stops = [offset == own - 1] if own else []
        for counted in (c for c in device.keyed if c.counted):
            shape, varying = counted.counted, Signal(range(counted.secret + 1), name="varying")
            assert shape is not None
            this, bits = self._of == counted.number, max(1, shape.most.bit_length())
            at_count, at_repeat = (
                later(m, this & (offset == own + k), f"at_{n}") for k, n in enumerate(("count", "repeat"))
            )
            computed = later(m, (word[:bits] * shape.times + shape.plus) >> shape.shift, "words_of_count")
            none = (word == 0) & bool(shape.most)
            bad |= at_count & later(m, none | (word > shape.most), "bad_count")
            if shape.stated:
                bad |= at_repeat & later(m, word != varying, "bad_repeat")
            with m.If(self._acts & at_count):
                m.d.sync += varying.eq(computed)
            with m.If(begins):  # until the count is there, the end is behind it
                m.d.sync += varying.eq(1)
            with m.If(self.sweeps):
                m.d.sync += varying.eq(0)
            end = Mux(this, varying + (own + counted.head - 1), end)
            stops.append(this & (offset == own + counted.head - 1))
        here = offset == later(m, end, "end")
        at_end = later(m, here, "at_end")
        m.d.sync += self._stop.eq(reduce(or_, stops, here))
        with m.If(self._acts):
            m.d.sync += offset.eq(offset + 1)
        with m.If(begins):
            m.d.sync += offset.eq(0)
        return bad, at_end

    def _mark(self, m: Module, ends: Value, lock: Value) -> None:
        """Mark the slot: empty when its filling begins, filled when it ends."""
        for k in range(self._device.key_slots):
            with m.If(self._slot == k):
                with m.If(self._begins):
                    m.d.sync += [self._filled[k].eq(0), self._locks[k].eq(0)]
                with m.If(ends):
                    m.d.sync += [self._filled[k].eq(1), self._locks[k].eq(lock), self._commands[k].eq(self._of)]
