# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""One message at a time: from the registers to the engine, and its answer back.

    COMMAND, DATA_IN -> buffer -> words i -> engine -> words o -> buffer -> DATA_OUT

States: RESET (the engine is held in reset), IDLE, OPEN (words of the message are written), FEEDING (all are written),
BUSY (the engine has them all), ANSWER (the whole answer is in the buffer). Every refused access has a cause
(`registers.CAUSES`) and changes nothing else, except that a command before the end of a message and a wrong count
abort the message. After an abort and after a reset the engine is reset, both buffers are empty, and command 0 is due.
Zeroising and the self-test are messages that `script` sends the same way; meanwhile words of the bus are refused.

An alarm of the device aborts everything and lasts until the reset of the front: messages and self-tests are refused, no
word of an answer is left. Zeroising resets the device, then works, unless the alarm comes again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.buses.accesses import lower
from modmill.buses.device import RESET_CYCLES, SPARE, WORD, Command, Device
from modmill.buses.registers import ABORT, NUMBERS, SELFTEST, ZEROISE, RegisterMap
from modmill.buses.script import ScriptPlayer
from modmill.buses.slots import SIDELOAD, KeySlots
from modmill.contract import ALARM
from modmill.rtl.counting import SerialCounter, following
from modmill.rtl.delay import later
from modmill.rtl.memory import BlockRam
from modmill.rtl.one_hot import OneHot


class _Buffer:
    """A buffer of words of ``width`` bits in a block RAM, cleared by its pointers: ``push`` and ``pop`` act in the
    cycle in which they are high; ``word`` is the oldest one while ``there`` is high, which it is at most 4 cycles late.
    ``sweep`` fills it with ``data`` in two cycles a word, and no word is ``there``. ``count``: the number of words, or,
    with ``free``, of those that it still takes; so one of ``empty`` and ``full`` costs no LUT."""

    def __init__(
        self, m: Module, name: str, depth: int, clear: Value, sweep: Value, width: int = WORD, *, free: bool = False
    ) -> None:
        ram = BlockRam(width, depth, ())
        m.submodules[f"{name}_words"] = ram
        bits = depth.bit_length() - 1
        written, read = Signal(bits, name=f"{name}_written"), Signal(bits, name=f"{name}_read")
        self.data, self.push, self.pop = (
            Signal(n, name=f"{name}_{x}") for n, x in ((width, "data"), (1, "push"), (1, "pop"))
        )
        first = depth if free else 0
        self.count = Signal(bits + 1, name=f"{name}_{'free' if free else 'level'}", init=first)
        ends = self.count == 0, self.count[-1]
        self.full, self.empty = ends if free else ends[::-1]
        settled, sweeps = Signal(3, name=f"{name}_settled"), Signal(name=f"{name}_sweeps")
        self.word, self.there = ram.a_q, settled[-1]
        push = Signal(name=f"{name}_written_now")
        m.d.sync += sweeps.eq(sweep & ~self.full & ~sweeps)
        m.d.comb += [
            push.eq(self.push | sweeps),
            ram.a_address.eq(read), ram.b_address.eq(written), ram.b_write.eq(push), ram.b_d.eq(self.data),
        ]  # fmt: skip
        m.d.sync += settled.eq(Cat(~self.empty & ~sweep, settled))
        with m.If(push):
            m.d.sync += written.eq(following(written))
        with m.If(self.pop):
            m.d.sync += [read.eq(following(read)), settled.eq(0)]
        with m.If(push ^ self.pop):
            m.d.sync += self.count.eq(self.count + Mux(push if free else self.pop, Const(-1, bits + 1), 1))
        with m.If(clear):
            m.d.sync += [written.eq(0), read.eq(0), self.count.eq(first), settled.eq(0)]


class JobControl(wiring.Component):
    """Control of messages and jobs behind the registers of `register_map`; ``write_...`` and ``read_...`` come and
    ``value_...`` go as in `RegisterAccess`; ``data`` is the word that is written.

    Engine: streams of words ``i`` and ``o``, with ``o_last`` at the last word of an answer, and ``engine_rst``.
    Several machines: ``i_every`` and ``i_closes`` as of `Dealer`. Separate clock: ``rest`` and ``drained`` as of
    `Crossing`. Alarm: ``o_alarm``, a register or two away from one. ``irq`` is high while an enabled event stands in
    IRQ_STATUS. ``forget``: what was read is to be overwritten. ``constant``: as of `ScriptPlayer`.

    Cost on ECP5: about 300 LUTs and 6 block RAMs with the scripts. Latency: 8 cycles from the write of a word to the
    engine.
    """

    def __init__(self, device: Device, registers: RegisterMap) -> None:
        self._device, self._registers = device, registers
        live = [r for r in registers.registers if r.readable and not r.constant]
        super().__init__({
            "data": In(WORD), **{f"write_{lower(r)}": In(1) for r in registers.registers if r.writable},
            "read_data_out": In(1), **{f"value_{lower(r)}": Out(WORD) for r in live}, "irq": Out(1),
            "engine_rst": Out(1, init=1), "forget": Out(1), "place": In(registers.place_bits), "constant": Out(WORD),
            "i_valid": Out(1), "i_ready": In(1), "i_data": Out(WORD),
            "o_valid": In(1), "o_ready": Out(1), "o_data": In(WORD), "o_last": In(1),
            **({"i_every": Out(1), "i_closes": Out(1)} if device.machines > 1 else {}),
            **({"rest": In(1), "drained": In(1)} if device.separate else {}),
            **({ALARM: In(1)} if device.alarm else {}), **(SIDELOAD if device.key_slots else {}),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._ends, self._setup_ends, self._abort = (Signal(name=name) for name in ("ends", "setup_ends", "abort"))
        self._machine = machine = OneHot(m, "state")
        self._resets = machine.ongoing("RESET")
        self._error, self._cause = Signal(name="error"), Signal(4, name="cause")
        self._counted = Signal(name="message_counted")
        self._loaded = Signal(name="loaded", init=self._device.setup is None)
        self._filled = Signal(name="filled")
        self._faults: list[tuple[str, Value]] = []
        self._alarmed, self._raised = Signal(name="alarmed"), Signal(name="raised")  # until the reset, and now
        m.submodules.script = self._script = ScriptPlayer(self._device, self._registers)
        m.d.comb += [self._script.place.eq(self.place), self.constant.eq(self._script.constant)]
        self._data = Signal(WORD, name="word")  # of the bus or the script
        m.d.comb += self._data.eq(self._script.data | Mux(self._script.playing, 0, self.data))
        self._word = later(m, self._data, "word_kept")
        m.d.comb += self._script.expected.eq(self._word)
        self._marks = [Signal(name=name) for name in ("every", "closes")][: 2 * (self._device.machines > 1)]
        width = WORD + len(self._marks)
        self._in = _Buffer(m, "in", self._device.in_words, self._resets, self._script.sweeping, width, free=True)
        self._out = _Buffer(m, "out", self._device.out_words, self._resets, self._script.sweeping)
        self._jobs = SerialCounter(m, WORD, "jobs")
        self._keys = self._key_slots(m) if self._device.key_slots else None
        self._feed(m)
        self._collect(m)
        self._message(m)
        self._states(m)
        self._events(m)
        self._values(m)
        return m

    def _feed(self, m: Module) -> None:
        """Send the words of the buffer to the engine."""
        words = self._in
        way = (lambda name: getattr(self, f"i_{name}")) if self._keys is None else self._through_slots(m, self._keys)
        m.d.comb += [
            way("valid").eq(words.there), way("data").eq(words.word[:WORD]), words.pop.eq(words.there & way("ready")),
            words.data.eq(Cat(self._word, *self._marks)),
        ]  # fmt: skip
        if self._marks:
            m.d.comb += [way("every").eq(words.word[WORD]), way("closes").eq(words.word[WORD + 1])]

    def _through_slots(self, m: Module, keys: KeySlots) -> Callable[[str], Signal]:
        """The stream to the key slots, which goes on to the engine."""
        for name in ("valid", "data", *(("every", "closes") if self._marks else ())):
            m.d.comb += getattr(self, f"i_{name}").eq(getattr(keys, f"i_{name}"))
        m.d.comb += keys.i_ready.eq(self.i_ready)
        return lambda name: getattr(keys, f"in_{name}")

    def _key_slots(self, m: Module) -> KeySlots:
        """The key slots, their registers and ports, and their faults."""
        m.submodules.keys = keys = KeySlots(self._device)
        machine, script = self._machine, self._script
        same = (*SIDELOAD, "write_key_fill", "write_key_word", "write_key_use", "value_key_slots", "data")
        for name in same:
            ours, theirs = getattr(self, name), getattr(keys, name)
            m.d.comb += theirs.eq(ours) if keys.signature.members[name].flow == In else ours.eq(theirs)
        m.d.comb += [
            keys.command.eq(self._data[: len(keys.command)]), keys.shut.eq(script.playing),
            keys.open.eq(machine.ongoing("OPEN") | machine.ongoing("FEEDING")), keys.resets.eq(self._resets),
            keys.sweeps.eq(script.sweeping),
        ]  # fmt: skip
        self._keyed = keys.uses & ~script.playing
        written = self.write_key_fill | self.write_key_word | self.write_key_use
        self._faults += [
            ("SLOT", keys.wrong), ("LOCKED", keys.locked), ("LONG", keys.stray), ("BUSY", written & script.playing),
        ]  # fmt: skip
        return keys

    def _collect(self, m: Module) -> None:
        """Store the words of the answer; a word that is read from an empty buffer is 0."""
        words, script = self._out, self._script
        shown = words.there & ~script.playing
        readable = later(m, shown, "readable")  # in time: reads are 6 cycles apart
        near_end = later(m, words.full | words.count[SPARE.bit_length() - 1 : -1].all(), "near_end")
        taken = self.o_valid & self.o_ready
        word, last = later(m, self.o_data, "answer"), Signal(name="last")
        m.d.comb += [
            self.o_ready.eq(self._machine.ongoing("BUSY") & ~near_end & ~last & ~self._jobs.busy), words.data.eq(word),
            words.pop.eq((self.read_data_out & readable) | script.pop),
            self.value_data_out.eq(Mux(shown, words.word, 0)),
            script.there.eq(words.there), script.answer.eq(words.word),
            self._ends.eq(last & self._machine.ongoing("BUSY")),
        ]  # fmt: skip
        m.d.sync += [words.push.eq(taken), last.eq(taken & self.o_last)]
        with m.If(near_end):
            m.d.sync += self._filled.eq(1)
        with m.If(self._machine.ongoing("IDLE") | self._resets):
            m.d.sync += self._filled.eq(0)
        self._faults.append(("EMPTY", self.read_data_out & ~readable))

    def _chosen(self, value: Callable[[Command], int]) -> Value:
        """A number of the command that is written; 0 for one that the device does not have."""
        commands = self._device.commands
        bits = max(1, commands[-1].number.bit_length())
        numbers = {c.number: value(c) for c in commands}
        width = max(1, max(numbers.values()).bit_length())
        found: Value = Const(0, width)
        for number, n in numbers.items():
            found = found | Mux(self._data[:bits] == number, Const(n, width), 0)
        return found

    def _message(self, m: Module) -> None:
        """Count the words of a message and refuse those that do not belong."""
        device, machine = self._device, self._machine
        opened, idle = machine.ongoing("OPEN"), machine.ongoing("IDLE")
        script, data = self._script, self._data
        self._low_bits = max(4, self._thread_bits, *(c.counted.most.bit_length() for c in device.commands if c.counted))
        # of the bus's word alone, which stands three cycles before its message: the script's are right
        self._high = later(m, self.data[self._low_bits :] != 0, "high")  # neither a command nor a count
        low = self.data[: self._low_bits]
        number = Cat(low[:4] == c.number for c in device.commands).any()
        low_known = later(m, (low[4:] == 0) & number, "low_known")
        known = later(m, low_known & ~self._high, "known")
        setup = later(m, data[:4] == 0, "setup")
        machines = device.machines
        length = later(m, Mux(opened, 0, self._chosen_words()), "length")
        self.left, self.job = Signal(max(len(length), self._thread_bits), name="left"), Signal(name="job")
        self._restarts, self._lengths = list[Value](), [length]  # of `left`; all lengths but one are 0
        full = later(m, self._in.full, "full")
        own_command, own_word = Signal(name="own_command"), Signal(name="own_word")
        m.d.sync += [
            own_command.eq(self.write_command & ~script.playing), own_word.eq(self.write_data_in & ~script.playing)
        ]  # fmt: skip
        word = own_word | script.word
        allowed = later(m, known & (setup | self._loaded), "allowed")
        refused = self._alarmed if device.alarm else Const(0)
        accepted, taken = Signal(name="accepted"), Signal(name="taken")
        if self._keys is not None:
            refused |= self._without_key(m, self._keys, own_command, idle & allowed, accepted)
        m.d.comb += [
            accepted.eq((own_command & idle & allowed & ~refused) | script.command), taken.eq(word & opened & ~full),
        ]  # fmt: skip
        m.d.sync += self._in.push.eq(accepted | taken)
        self._accepted, self._taken, self._empty = accepted, taken, later(m, length == 0, "no_words")
        self._faults += [
            ("SHORT", own_command & opened), ("BUSY", own_command & ~opened & ~idle),
            ("BUSY", (self.write_command | self.write_data_in) & script.playing),
            ("COMMAND", own_command & idle & ~known), ("SETUP", own_command & idle & known & ~allowed),
            ("LONG", own_word & ~opened), ("FULL", own_word & opened & full),
        ]  # fmt: skip
        with m.If(accepted):
            m.d.sync += self.job.eq(~setup)
        one = later(m, self.left == 1, "one_left")
        if machines > 1 and (device.key_slots or not all(c.counted for c in device.commands if c.number)):
            part = Signal(len(length), name="part", reset_less=True)  # words of a job for each machine
            with m.If(accepted):
                m.d.sync += part.eq(length)
            self._restarts.append(taken & one)
            self._lengths.append(Mux(opened & ~self._counted, part, 0))
        last_word, head, bad = self._counting(m, one) if device.counted else (one, Const(0, 1), Const(0, 1))
        # a cycle late: words are further apart
        with m.If(later(m, Cat(accepted, *self._restarts).any(), "restarts")):
            m.d.sync += self.left.eq(reduce(or_, self._lengths))
        with m.Elif(taken):
            m.d.sync += self.left.eq(self.left - 1)
        self._written = taken & last_word
        if machines > 1:
            self._deal(m, last_word, head)
        if device.counted:
            self._faults.append(("VALUE", bad))
        swept = self._in.full & self._out.full
        if self._keys is not None:
            swept &= self._keys.swept
        m.d.comb += [
            script.ready.eq(idle), script.opened.eq(opened), script.room.eq(~full),
            script.fed.eq(self._machine.ongoing("BUSY") | self._machine.ongoing("ANSWER")),
            script.swept.eq(later(m, swept, "swept")),
        ]  # fmt: skip
        self._control(m, (own_command & opened) | bad)

    def _chosen_words(self) -> Value:
        """Number of words of a message for a machine, 1 for a count; with a key slot, of those that are not secret."""
        device = self._device
        machines, threads = device.machines, device.threads
        chosen = self._chosen(lambda c: 1 if c.counted else c.words // (machines if c.number else 1))
        if self._keys is None:
            return chosen
        return Mux(
            self._keyed, self._chosen(lambda c: c.secret and threads // machines * c.open_words(threads)), chosen
        )

    def _without_key(self, m: Module, keys: KeySlots, comes: Value, allowed: Value, accepted: Value) -> Value:
        """Whether the message is to use a key slot that does not fit; ``comes``: its command does, which is
        ``allowed`` otherwise."""
        wrong = self._keyed & ~keys.right
        m.d.comb += [keys.comes.eq(comes), keys.accepted.eq(accepted), keys.keyed.eq(self._keyed)]
        self._faults.append(("SLOT", comes & allowed & wrong))
        return wrong

    def _deal(self, m: Module, last_word: Value, head: Value) -> None:
        """Say which words are for all machines, and where the part of each one ends. ``last_word``: the next word is
        the last one of a machine; ``head``: it is in front of the first part."""
        every, closes = self._marks
        left, others = Signal(range(self._device.machines), name="machines_left"), Signal(name="other_machines")
        to_all = self._accepted | ~self.job | head
        m.d.comb += others.eq(left != 0)
        m.d.sync += [every.eq(to_all), closes.eq(last_word & ~to_all)]  # with the push of the word
        with m.If(self._accepted):
            m.d.sync += left.eq(Mux(self._data[:4] == 0, 0, self._device.machines - 1))
        with m.Elif(self._written):
            m.d.sync += left.eq(left - 1)
        self._written = self._written & ~others

    def _control(self, m: Module, wrong: Value) -> None:
        """The bits of CONTROL; ``wrong``: a message is aborted."""
        script = self._script
        bits = later(m, Mux(self.write_control, self.data[:3], 0), "controls")
        asked = lambda bit: bits[bit.bit_length() - 1]  # noqa: E731
        self._tests = Signal(name="test_ends")
        tests = asked(SELFTEST) & ~script.playing & ~script.zeroise if self._device.selftest else Const(0)
        if self._device.alarm:
            self._alarm(m)
            self._faults.append(("ALARM", (self.write_command | self.write_data_in | tests) & self._alarmed))
            tests &= ~self._alarmed
        # no access is so near that it could come between
        aborts = later(
            m, wrong | script.zeroise | (script.stop & ~script.zeroising) | script.selftest | script.abort, "aborts"
        )
        m.d.comb += [
            script.zeroise.eq(asked(ZEROISE)), script.stop.eq(asked(ABORT)), script.selftest.eq(tests),
            self.forget.eq(script.zeroise), self._tests.eq(script.ended & ~script.zeroising),
            self._abort.eq(aborts | self._tests | self._raised),
        ]  # fmt: skip

    def _alarm(self, m: Module) -> None:
        """Keep the alarm. While the device is held in reset, its alarm may be anything."""
        raised = later(m, getattr(self, ALARM), "device_alarm") & ~self._resets
        m.d.sync += self._raised.eq(raised)
        m.d.comb += self._script.halt.eq(self._raised)
        with m.If(self._raised):
            m.d.sync += self._alarmed.eq(1)
        self._faults.append(("ALARM", self._raised & ~self._alarmed))

    @property
    def _thread_bits(self) -> int:
        """Bits of the number of words of a thread in a message whose length depends on a count."""
        counted = (c.counted for c in self._device.commands if c.counted)
        return max((each.varying(each.most) + each.numbers for each in counted), default=1).bit_length()

    def _counting(self, m: Module, one: Value) -> tuple[Value, Value, Value]:
        """Messages whose length depends on a count: whether the next word is the last one (of a machine), whether it is
        in front of those of the first thread, and whether a word that is taken is a wrong count."""
        shape = self._device.counted
        assert shape is not None
        limits = {
            "most": lambda c: c.counted.most, "plus": lambda c: c.counted.plus, "numbers": lambda c: c.counted.numbers,
            "counted": lambda c: 1,
        }  # fmt: skip
        kept = dict[str, Value]()
        counted = [c for c in self._device.commands if c.counted]
        for name, get in limits.items():
            if name != "counted" and len(same := {get(c) for c in counted}) == 1:
                kept[name] = Const(same.pop())  # does not depend on the command
                continue
            value = self._chosen(lambda c, get=get: get(c) if c.counted else 0)  # type: ignore[misc]
            if self._keys is not None:  # the count is in the key slot
                value = Mux(self._keyed, 0, value)
            kept[name] = stored = Signal(len(value), name=name, reset_less=True)
            with m.If(self._accepted):
                m.d.sync += stored.eq(value)
        m.d.comb += self._counted.eq(kept["counted"])
        bits = len(most := kept["most"])
        first, second, begun, fresh = (Signal(name=name) for name in ("at_count", "at_repeat", "begun", "fresh"))
        each, machines = shape.threads // self._device.machines, self._device.machines
        threads, varying = Signal(range(each + 1), name="threads"), Signal(self._thread_bits, name="varying")
        data = self.data[: self._low_bits]  # of the bus: what the script sends is right
        low = data[:bits]
        largest = isinstance(most, Const) and most.value == (1 << bits) - 1  # no count of these bits is above it
        above = (data[bits:] != 0) | (Const(0) if largest else low > most)
        wrong = self._high | later(m, above | ((low == 0) & most.any()), "wrong_count")
        computed = later(m, (self._data[:bits] * shape.times + kept["plus"]) >> shape.shift, "computed")
        differs = self._high | later(m, data != varying, "differs")
        within = self._machine.ongoing("OPEN") & kept["counted"]
        length = later(m, Mux(within, varying + kept["numbers"], 0), "thread_words")
        last_thread = later(m, threads == 1, "last_thread")
        m.d.sync += [begun.eq(self._accepted), fresh.eq(self._taken & first)]
        reloads = later(m, fresh, "reloads")  # when thread_words follows from the count; no word comes so soon
        with m.If(begun):
            m.d.sync += [first.eq(kept["counted"]), second.eq(0), threads.eq(each)]
        with m.Elif(self._taken & first):
            m.d.sync += [first.eq(0), second.eq(shape.stated), varying.eq(computed)]
        with m.Elif(self._taken & second):
            m.d.sync += second.eq(0)
        with m.Elif(self._taken & one):
            m.d.sync += threads.eq(threads - 1 if machines == 1 else Mux(last_thread, each, threads - 1))
        self._restarts.append(reloads | (self._taken & (second | (one & kept["counted"]))))
        self._lengths.append(length)
        body = ~first & ~second & one
        bad = self._taken & ~self._script.playing & ((first & wrong) | (second & differs))
        return body & (~kept["counted"] | last_thread), first | second, bad

    def _states(self, m: Module) -> None:
        """The states, in the order of a job; an abort leads from every state to RESET."""
        cycles = 1 + max(self._device.power_up, RESET_CYCLES)
        held = Signal(range(cycles), name="held", init=cycles - 1)
        fed = later(m, self._given(m) & self._machine.ongoing("FEEDING"), "fed")
        empty = self._out.empty & ~self._out.push
        emptied = later(m, empty & self._machine.ongoing("ANSWER"), "emptied")
        if self._device.separate:
            reset_ends = self._released(m)
        else:
            reset_ends = held == 0
            m.d.sync += self.engine_rst.eq(self._resets & ~reset_ends)
        ways: Mapping[str, list[tuple[Value | int, str]]] = {
            "RESET": [(reset_ends, "IDLE")],
            "IDLE": [(self._accepted, "OPEN"), (self._accepted & self._empty, "FEEDING")],
            "OPEN": [(self._written, "FEEDING")],
            "FEEDING": [(fed & self.job, "BUSY"), (fed & ~self.job, "IDLE")],
            "BUSY": [(self._ends, "ANSWER")],
            "ANSWER": [(emptied, "IDLE")],
        }  # fmt: skip
        with self._machine as machine:
            for state, following in ways.items():
                with machine.state(state):
                    for condition, other in following:
                        with m.If(condition):
                            machine.next(other)
                    with m.If(self._abort):
                        machine.next("RESET")
        m.d.comb += self._setup_ends.eq(self._machine.ongoing("FEEDING") & fed & ~self.job)
        if not self._device.separate:
            m.d.sync += held.eq(Mux(self._resets, held - 1, cycles - 1))
        with m.If(self._setup_ends):
            m.d.sync += self._loaded.eq(1)
        with m.If(self._resets):
            m.d.sync += self._loaded.eq(int(self._device.setup is None))

    def _given(self, m: Module) -> Value:
        """Whether the device has all words of the buffer."""
        empty = self._in.empty & ~self._in.push
        if self._keys is not None:
            empty &= ~self._keys.sends
        if not self._device.separate:
            return empty
        for k in range(2):  # until ``drained`` counts the last one
            empty = later(m, empty & self._machine.ongoing("FEEDING"), f"empty_{k}")
        return empty & self.drained

    def _released(self, m: Module) -> Value:
        """Reset an engine with a clock of its own until it says that this was long enough; whether it has left the
        reset."""
        released = Signal(name="released")
        with m.If(self._resets & self.rest):
            m.d.sync += released.eq(1)
        with m.If(self._abort | ~self._resets):
            m.d.sync += released.eq(0)
        m.d.sync += self.engine_rst.eq(self._resets & ~released)
        return released & ~self.rest

    def _events(self, m: Module) -> None:
        """Events, errors, interrupt and the number of jobs."""
        events = len(self._registers["IRQ_STATUS"].fields)
        enable, happened = Signal(events, name="enabled"), Signal(events, name="happened")
        with m.If(self.write_irq_enable):
            m.d.sync += enable.eq(self.data[:events])
        with m.If(self.write_irq_status):
            m.d.sync += happened.eq(happened & ~self.data[:events])
        with m.If(later(m, self.write_irq_status & self.data[1], "clears")):
            m.d.sync += [self._error.eq(0), self._cause.eq(0)]
        was_filled = later(m, self._filled, "was_filled")
        own = ~self._script.playing
        with m.If((self._ends | self._setup_ends | (self._filled & ~was_filled)) & own):
            m.d.sync += happened[0].eq(1)
        with m.If(self._ends & own):
            m.d.comb += self._jobs.count.eq(1)
        with m.If(self._abort):
            m.d.sync += happened[0].eq(0)
        with m.If(self._script.ended):
            m.d.sync += happened[0].eq(1)
        if self._device.alarm:
            with m.If(self._raised):
                m.d.sync += happened[2].eq(1)
        self._errors(m, happened[1])
        m.d.sync += self.irq.eq((happened & enable).any())
        m.d.comb += [
            self.value_irq_enable.eq(enable),
            self.value_irq_status.eq(happened),
            self.value_jobs.eq(self._jobs.value),
        ]

    def _errors(self, m: Module, happened: Value) -> None:
        """The first error and its cause. No two accesses are so near that two of them could be wrong in one cycle, but
        an alarm may come at any time."""
        faults = [(name, Signal(name=f"fault_{name.lower()}")) for name, _ in self._faults]
        m.d.sync += [fault.eq(condition) for (_, fault), (_, condition) in zip(faults, self._faults, strict=True)]
        of_accesses = (Mux(fault, NUMBERS[name], 0) for name, fault in faults if name != "ALARM")
        cause = reduce(or_, of_accesses, Const(0, len(self._cause)))
        for alarm in (fault for name, fault in faults if name == "ALARM"):
            cause = Mux(alarm, NUMBERS["ALARM"], cause)
        with m.If(Cat(fault for _, fault in faults).any()):
            m.d.sync += [happened.eq(1), self._error.eq(1)]
            with m.If(~self._error):
                m.d.sync += self._cause.eq(cause)

    def _values(self, m: Module) -> None:
        """The values of STATUS and LEVEL."""
        on = self._machine.ongoing
        script, own = self._script, ~self._script.playing
        tested, passed, zeroised = (Signal(name=name) for name in ("tested", "passed", "zeroised"))
        with m.If(self._tests):
            m.d.sync += [tested.eq(1), passed.eq(~script.failed)]
        with m.If(script.selftest):
            m.d.sync += [tested.eq(0), passed.eq(0)]
        with m.If(script.ended & script.zeroising):
            m.d.sync += zeroised.eq(1)
        with m.If(later(m, self._accepted | script.selftest | script.zeroise, "no_zeros")):
            m.d.sync += zeroised.eq(0)
        fields: dict[tuple[str, str], Value] = {
            ("STATUS", "ready"): on("IDLE") & own, ("STATUS", "receiving"): on("OPEN") & own,
            ("STATUS", "busy"): on("RESET") | on("FEEDING") | on("BUSY") | script.playing,
            ("STATUS", "done"): (on("ANSWER") | self._filled) & own, ("STATUS", "loaded"): self._loaded,
            ("STATUS", "error"): self._error, ("STATUS", "cause"): self._cause,
            ("STATUS", "tested"): tested, ("STATUS", "passed"): passed, ("STATUS", "zeroised"): zeroised,
            ("STATUS", "alarm"): self._alarmed,
            ("LEVEL", "free"): self._in.count, ("LEVEL", "words"): self._out.count,
        }  # fmt: skip
        if self._device.alarm:
            fields["STATUS", "ready"] &= ~self._alarmed
        for register, field in self._registers.fields():
            if (register.name, field.name) in fields:
                value = fields[register.name, field.name]
                port = getattr(self, f"value_{lower(register)}")
                m.d.comb += port[field.low : field.low + field.width].eq(value)
