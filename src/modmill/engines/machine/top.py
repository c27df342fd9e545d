# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A coprocessor: a field unit that runs programs for curves or for powers, behind two streams of words.

    words i -> number register -> slot memory -> a, b -> multiplier -> slot memory -> number register -> words o
                                       ^--------- adder ---------^
    digits of scalars or exponents ------^ addresses

Several runs, the threads, are interleaved: each instruction is executed for all of them before the next one, so that a
pipelined multiplier has an operation in every interval.

Messages at ``i``, in words; each number is filled up to whole words and sent least significant word first:

    SETUP            if the modulus is loaded: the multiples 2^k p of the modulus that are subtracted from results, the
                     largest first, then the words of stream k; then each constant; then the multiples of p that
                     differences add; then, if the modulus is loaded, those of conditional subtractions.
                     `MicrocodeLayout.setup` makes this message.
    1 + program      with counted passes: the passes of the loop and the number of words of digits of a thread; then for
                     each thread its digits, packed into words, and its numbers
    at ``o``         for each thread its results; ``o_last`` accompanies the last word

If programs have checks, those of a thread are read before its results, and each must be 1. If one is not, ``o_alarm``
is high from then on until the reset, and all words at ``o`` are 0; they come when they would come without an alarm.
After a SETUP whose constants are all 0, which overwrites them, a check must be 0: then a job of zeros, which overwrites
numbers, raises no alarm. The alarm of a slot machine that checks its operations does the same, and so does that of
parity. Checks of powers must be
the inputs instead of 1: their words wait in a memory of their own from where they enter to the comparison.

At the ports, numbers have the multiplier's form: binary, or residues in one vector. Binary results are in [0, p): the
multiples 2^k p that the program's bounds require are subtracted word by word, in constant time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from modmill.contract import ALARM
from modmill.engines.machine.io_register import ROUND, NumberRegister
from modmill.engines.machine.layout import COUNT_BITS, PACK, SETUP
from modmill.engines.machine.program_memory import chosen
from modmill.engines.machine.sequencer import Sequencer
from modmill.engines.machine.word_register import WordRegister
from modmill.rtl.delay import later
from modmill.rtl.one_hot import OneHot

_GIVING = 4
"""Cycles in which a word of a number is given, or compared."""
_BETWEEN = 4
"""Cycles from the last word of a number to the first word of the next one, besides reading and subtracting."""
_PARITY = 2
"""Cycles that the alarm of a number's parity needs before its first word, if nothing is subtracted."""


class Coprocessor(wiring.Component):
    """The coprocessor around a sequencer: streams of words ``i`` and ``o`` as described above, one message at a time.

    Cost besides the field unit: a register as wide as a number with 1 LUT for each bit, the program table, the memory
    of digits. Latency: the cycles of each program, as in the data sheet, from the last word of a job to the first word
    of its results.
    """

    def __init__(self, sequencer: Sequencer) -> None:
        self.sequencer, self.core, self.layout = sequencer, sequencer.core, sequencer.layout
        self.kept = (*getattr(self.core, "kept", ()), "slice", *WordRegister.kept)
        word = self.layout.word
        super().__init__({
            "i_valid": In(1), "i_ready": Out(1), "i_data": In(word),
            "o_valid": Out(1), "o_ready": In(1), "o_data": Out(word), "o_last": Out(1),
            **({ALARM: Out(1)} if self.layout.checked or sequencer.alarmed else {}),
        })  # fmt: skip

    @property
    def parity_cycles(self) -> int:
        """Cycles for which a number that was read waits for the alarm of its parity."""
        return _PARITY if self.layout.timing.parity and not self.layout.rounds else 0

    def cycles(self, program: int, passes: int | None = None) -> int:
        """Cycles from the last word of a job, sent without a pause, to the first word of its results.

        ``passes``: of the loop, the program's own by default. A last word that is a whole number waits in the word
        register while the number before it is stored, and, if no digits precede it, until the machine reads it.
        """
        lay, run = self.layout, self.sequencer
        waits = 0
        if lay.number_words == 1 and len(lay.programs[program].inputs) > 1:
            waits = run.store_cycles - 1
        elif lay.number_words == 1 and not lay.digit_words(program):
            waits = 2 + run.store_cycles * (lay.threads > 1)
        last = run.store_cycles + 8 + waits
        reading = run.read_cycles + 2 * lay.rounds * lay.number_words * ROUND - bool(lay.rounds) + self.parity_cycles
        checking = len(lay.programs[program].checks) * (reading + _GIVING * lay.number_words + _BETWEEN)
        return last + run.cycles(program, passes) + checking + reading

    @property
    def settling(self) -> int:
        """Cycles after a reset in which the first word of a message waits, so that no run starts before the timing's
        ``earliest``; 0 if no job is so short."""
        return max(0, self.layout.timing.earliest - min(map(self._received, range(len(self.layout.programs)))))

    def _received(self, program: int) -> int:
        """Least cycles from the first word of a job to the start of its run: two states for each word of a thread, and
        the accesses that store its numbers."""
        lay, p = self.layout, self.layout.programs[program]
        inputs, passes = len(p.inputs), min(1, p.passes) if lay.counted else None
        words = lay.digit_words(program, passes) + inputs * lay.number_words
        return lay.threads * (2 * words + inputs * self.sequencer.store_cycles)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lay = self.layout
        m.submodules.sequencer = self.sequencer
        m.submodules.number = number = NumberRegister(
            lay.number_words, lay.word, modulus=None if lay.contract.load else lay.contract.p, rounds=lay.rounds
        )
        _Messages(m, self, number).states()
        return m


class _Messages:
    """Control of a coprocessor: counters, and a state machine that receives messages and sends answers.

    Each word waits in a register until a state processes it. Commands from states to counters act one cycle later, from
    registers. Values that the counters select are registered several cycles before their use.
    """

    def __init__(self, m: Module, coprocessor: Coprocessor, number: NumberRegister) -> None:
        self.m, self.ports, self.number = m, coprocessor, number
        self.layout, self.run = coprocessor.layout, coprocessor.sequencer
        self.load = self.layout.contract.load
        self.waiting, self.clear = Signal(name="waiting"), Signal(name="clear")
        self.word = Signal(self.layout.word, reset_less=True)
        self.program = Signal(len(self.run.programme), name="programme")
        self.shift, self.counted = Signal(name="shift"), Signal(name="counted")
        self.shared, self.given, self.starting = (Signal(name=name) for name in ("shared", "given", "starting"))
        self._commands: dict[str, Signal] = {}
        self.last_word = self._take_words()
        self.begins = self._settled()
        self._choose()
        self._step()

    def _take_words(self) -> Signal:
        """Receive words, and count those of a number; return whether this word is its last one."""
        m, ports, waiting, words = self.m, self.ports, self.waiting, self.layout.number_words
        m.d.comb += ports.i_ready.eq(~waiting)
        with m.If(~waiting):
            m.d.sync += [waiting.eq(ports.i_valid), self.word.eq(ports.i_data)]
        with m.Elif(self.clear):
            m.d.sync += waiting.eq(0)
        count, last_word = Signal(range(max(2, words))), Signal(init=words == 1)
        self.first_word = count == 0
        with m.If(self.shift | self.counted):
            m.d.sync += [count.eq(Mux(last_word, 0, count + 1)), last_word.eq(count == words - 2 if words > 1 else 1)]
        return last_word

    def _settled(self) -> Value:
        """Whether the first word of a message waits and may be processed."""
        m, cycles = self.m, self.ports.settling
        if not cycles:
            return self.waiting
        left = Signal(range(cycles + 1), init=cycles, name="settling")
        with m.If(left != 0):
            m.d.sync += left.eq(left - 1)
        return self.waiting & (left == 0)

    def _choose(self) -> None:
        """Add the counters of digits, inputs and results, and the signals for the last one of each."""
        m, lay, programs = self.m, self.layout, self.layout.programs
        self.digit_words = [lay.digit_words(k) for k in range(len(programs))]
        self.input_slots = [[slot for slot, _ in p.inputs] for p in programs]
        self.result_slots = [[slot for slot, _ in p.answers] for p in programs]
        self.multiples = lay.constants + len(lay.offset_multiples)
        constants = self.multiples + (len(lay.conditional_subtracts) if self.load else 0)
        inputs, outputs = [*map(len, self.input_slots)], [*map(len, self.result_slots)]
        most = max(constants, *self.digit_words, *inputs, *outputs, 2)
        self.index = Signal(range(most + 1), reset_less=True)
        self.thread = Signal(range(max(2, lay.threads)), name="context", reset_less=True)
        self.digits = Signal(range(max(self.digit_words) + 1), name="digit_words", reset_less=True)  # if counted
        self.last_digits = Signal()

        def last_of(counts: Sequence[int]) -> Value:
            return self.index == chosen(self.program, [count - 1 for count in counts])

        self.busy = later(m, self.run.busy, "busy")
        self.last_thread = later(m, self.thread == lay.threads - 1, "last_context")
        self.last_constant = later(m, self.index == constants - 1, "last_constant")
        self.last_input = later(m, last_of(inputs), "last_input")
        self.last_result = later(m, last_of(outputs), "last_result")
        checks = chosen(self.program, [len(p.checks) for p in programs])
        self.checking = later(m, self.index < checks, "checking") if lay.checked else Signal()
        self.compared = Signal(name="compared")  # a word of a check stands in the number register
        self.one = Signal(name="one", reset_less=True)  # a constant of the last SETUP is not 0
        self.no_digits = later(m, self._words_of_digits(lambda n: n == 0), "no_digits")
        self.setup = later(m, self.word == SETUP, "setup")
        self.only_digits = later(m, self._words_of_digits(lambda n: n == 1), "only_digits")

    def _words_of_digits(self, what: Callable[[Value | int], Value | int]) -> Value:
        """Apply ``what`` to the number of words of digits of a thread."""
        if self.layout.counted:
            return Value.cast(what(self.digits))
        return chosen(self.program, [what(n) for n in self.digit_words])

    def _step(self) -> None:
        """Add the steps of the counters and the addresses that they select."""
        m, lay, run, number, ports = self.m, self.layout, self.run, self.number, self.ports
        index, thread, shared = self.index, self.thread, self.shared
        digits_at = Signal(len(run.d_address), reset_less=True)
        first_digits = Signal(len(run.d_address), reset_less=True)  # of the next thread
        slots_at, place, result, constant, read_at, write_at = (
            Signal(len(run.s_read), name=name, reset_less=True)
            for name in ("slots_at", "place", "result", "constant", "read_at", "write_at")
        )
        for name, does in (
            ("next_index", [index.eq(index + 1)]),
            ("index_0", [index.eq(0)]),
            ("next_context", [
                thread.eq(thread + 1), slots_at.eq(slots_at + lay.slots), first_digits.eq(first_digits + lay.stride),
            ]),
            ("context_0", [thread.eq(0), slots_at.eq(0)]),
            ("next_digits", [digits_at.eq(digits_at + 1)]),
            ("digits_end", [digits_at.eq(first_digits)]),
            ("first", [digits_at.eq(0), first_digits.eq(lay.stride)]),
        ):  # fmt: skip
            self._commands[name] = Signal(name=name)
            with m.If(later(m, self._commands[name], f"{name}_now")):
                m.d.sync += does
        trims = (
            later(m, shared & (index == self.multiples + k), f"trim_{k}") for k in range(len(lay.conditional_subtracts))
        )
        m.d.comb += [
            number.i_data.eq(self.word), number.shift.eq(self.shift), number.whole.eq(run.s_q),
            run.s_data.eq(number.number), run.start.eq(self.starting), run.programme.eq(self.program),
            run.s_trim.eq(Cat(*trims)), run.d_address.eq(digits_at), run.d_data.eq(self.word[:PACK]),
            ports.o_data.eq(self._released(number.number[: lay.word])), run.s_address.eq(write_at),
            run.s_read.eq(read_at),
        ]  # fmt: skip

        def of(lists: list[list[int]]) -> Value:
            return chosen(self.program, [chosen(index, each) for each in lists])

        m.d.sync += [
            place.eq(of(self.input_slots)), result.eq(of(self.result_slots)), constant.eq(lay.shared_base + index),
            write_at.eq(Mux(shared, constant, place + slots_at)), read_at.eq(result + slots_at),
        ]  # fmt: skip

    def _released(self, word: Value) -> Value:
        """What leaves of the lowest word of a number: nothing but 0 after an alarm."""
        checked, alarmed = self.layout.checked, self.run.alarmed
        if not checked and not alarmed:
            return word
        m = self.m
        alarm, calm = Signal(name="alarm"), Signal(name="calm", init=1)
        raised = alarm | ~calm
        causes: Value = self.run.o_alarm if alarmed else Const(0)
        if checked:
            wrong = self.compared & later(m, word != self._wanted(), "wrong")
            causes = wrong | causes if alarmed else wrong
        with m.If(causes | raised):  # one of the two is enough
            m.d.sync += [alarm.eq(1), calm.eq(0)]
        m.d.comb += getattr(self.ports, ALARM).eq(raised)
        return Mux(raised, 0, word)

    def _wanted(self) -> Value:
        """What the next word of a check must be. Words of inputs are written as they enter, and read in the same order
        after the run; one is there two cycles after the comparison of the word before it."""
        m, lay = self.m, self.layout
        if not lay.matched:
            with m.If(self.shared & self.shift & self.word.any()):
                m.d.sync += self.one.eq(1)
            return self.one & self.first_word
        depth = max(lay.threads * len(p.inputs) for p in lay.programs) * lay.number_words
        m.submodules.inputs = inputs = memory.Memory(shape=lay.word, depth=max(2, depth), init=[])
        write, read = inputs.write_port(), inputs.read_port()
        at = Signal(range(max(2, depth)), name="input_word", reset_less=True)
        enters = Signal(name="input_enters")
        m.d.comb += [
            enters.eq(self.shift & self.clear & ~self.shared),
            write.addr.eq(at), write.data.eq(self.word), write.en.eq(enters), read.addr.eq(at),
        ]  # fmt: skip
        with m.If(self.starting | self._commands["first"]):
            m.d.sync += at.eq(0)
        with m.Elif(enters | self.compared):
            m.d.sync += at.eq(at + 1)
        return read.data

    def _command_counters(self, *counters: str) -> None:
        """Command the counters; they step in the next cycle."""
        self.m.d.comb += [self._commands[name].eq(1) for name in counters]

    def states(self) -> None:
        """Add all states, in the order of a message."""
        with OneHot(self.m, "message") as machine:
            self._command(machine)
            if self.layout.counted:
                self._take_counts(machine)
            self._take_digits(machine)
            self._take_numbers(machine)
            self._start(machine)
            self._answer(machine)
            if self.layout.rounds:
                self._subtract(machine)
            if self.load:
                self._take_modulus(machine)

    def _wait(self, machine: OneHot, state: str) -> None:
        """Wait for a word."""
        with machine.state(state):
            with self.m.If(self.waiting):
                machine.next(f"{state} TAKEN")

    def _pass(self, machine: OneHot, *states: str) -> None:
        """Go through these states, one cycle in each but the last."""
        for state, following in pairwise(states):
            with machine.state(state):
                machine.next(following)

    def _command(self, machine: OneHot) -> None:
        """Receive the first word of a message."""
        m, lay = self.m, self.layout
        with machine.state("COMMAND"):
            self._command_counters("first", "index_0", "context_0")
            m.d.sync += self.shared.eq(0)
            with m.If(self.begins):
                machine.next("COMMANDED")
        with machine.state("COMMANDED"):
            m.d.comb += self.clear.eq(1)
            m.d.sync += [self.program.eq(self.word - 1), self.shared.eq(self.setup)]
            machine.next("PASSES" if lay.counted else "CONTEXT")
            with m.If(self.setup):
                machine.next("MODULUS" if self.load else "NUMBER")
                if lay.checked and not lay.matched:
                    m.d.sync += self.one.eq(0)

    def _take_counts(self, machine: OneHot) -> None:
        """Receive the passes of the loop and the number of words of digits of a thread."""
        m = self.m
        passes = Signal(COUNT_BITS, name="passes", reset_less=True)
        m.d.comb += self.run.passes.eq(passes)
        for name, kept, following in (("PASSES", passes, "COUNT"), ("COUNT", self.digits, "CONTEXT")):
            self._wait(machine, name)
            with machine.state(f"{name} TAKEN"):
                m.d.comb += self.clear.eq(1)
                m.d.sync += kept.eq(self.word)
                machine.next(following)

    def _take_digits(self, machine: OneHot) -> None:
        """Receive the digits of a thread."""
        m, lay, index = self.m, self.layout, self.index
        self._pass(machine, "CONTEXT", "BEGIN")  # wait for the values that the program selects
        with machine.state("BEGIN"):
            self._command_counters("index_0")
            m.d.sync += self.last_digits.eq(self.only_digits)
            machine.next("DIGITS")
            with m.If(self.no_digits):
                machine.next("INPUTS")
        self._wait(machine, "DIGITS")
        with machine.state("DIGITS TAKEN"):
            m.d.comb += [self.clear.eq(1), self.run.d_write.eq(1)]
            self._command_counters("next_index", "next_digits")
            last = self._words_of_digits(lambda n: index == n - 2 if lay.counted or n > 1 else 0)
            m.d.sync += self.last_digits.eq(last)
            machine.next("DIGITS")
            with m.If(self.last_digits):
                machine.next("INPUTS")
        with machine.state("INPUTS"):
            self._command_counters("index_0", "digits_end")
            machine.next("NUMBER")

    def _take_numbers(self, machine: OneHot) -> None:
        """Receive the numbers of a thread, or the constants."""
        m, run = self.m, self.run
        self._wait(machine, "NUMBER")
        with machine.state("NUMBER TAKEN"):
            m.d.comb += [self.clear.eq(1), self.shift.eq(1)]
            machine.next("NUMBER")
            with m.If(self.last_word):
                machine.next("STORE")
        with machine.state("STORE"):
            m.d.comb += run.s_write.eq(1)
            with m.If(run.s_ready):
                self._command_counters("next_index")
                machine.next("NUMBER")
                with m.If(Mux(self.shared, self.last_constant, self.last_input)):
                    self._command_counters("index_0")
                    machine.next("NEXT")
        with machine.state("NEXT"):
            self._command_counters("next_context")
            machine.next("BEGIN")
            with m.If(self.shared):
                machine.next("COMMAND")
            with m.Elif(self.last_thread):
                self._command_counters("context_0")
                machine.next("START")

    def _start(self, machine: OneHot) -> None:
        """Start the sequencer and wait for its end."""
        m = self.m
        with machine.state("START"):
            m.d.sync += self.starting.eq(1)
            machine.next("STARTED")
        with machine.state("STARTED"):
            m.d.sync += self.starting.eq(0)
            machine.next("RUN")
        with machine.state("RUN"):
            with m.If(~self.busy):
                machine.next("READ")

    def _answer(self, machine: OneHot) -> None:
        """Send the results of all threads, word by word; compare the words of checks instead."""
        m, run, ports, checked = self.m, self.run, self.ports, self.layout.checked
        with machine.state("READ"):
            m.d.comb += [run.s_ask.eq(1), self.number.load.eq(run.s_valid)]
            with m.If(run.s_valid):
                machine.next("LOAD")
        waits = (f"PARITY {k}" for k in range(ports.parity_cycles))
        self._pass(machine, "LOAD", "LOADED", *waits, "COMPARE" if self.layout.rounds else "GIVE")
        with machine.state("GIVE"):
            m.d.comb += [
                ports.o_valid.eq(~self.checking if checked else 1),
                ports.o_last.eq(self.last_word & self.last_result & self.last_thread),
            ]
            with m.If(ports.o_ready | self.checking if checked else ports.o_ready):
                machine.next("TAKEN")
        with machine.state("TAKEN"):
            m.d.comb += [self.shift.eq(1), *([self.compared.eq(self.checking)] if checked else [])]
            m.d.sync += self.given.eq(self.last_word)
            machine.next("SHIFTED")
        self._pass(machine, "SHIFTED", "SETTLED")
        with machine.state("SETTLED"):
            m.d.sync += self.given.eq(0)
            machine.next("GIVE")
            with m.If(self.given):
                self._command_counters("next_index")
                machine.next("GIVEN")
                with m.If(self.last_result):
                    self._command_counters("index_0", "next_context")
                    with m.If(self.last_thread):
                        machine.next("COMMAND")
        self._pass(machine, "GIVEN", "CHOOSE", "READ")  # the counters step; wait for the next address

    def _subtract(self, machine: OneHot) -> None:
        """Subtract each multiple 2^k p from a result that is not below it."""
        m, rounds, shift = self.m, self.layout.rounds, self.shift
        done = Signal(range(rounds + 1))
        pace = Signal(range(ROUND))
        m.d.sync += pace.eq(0)
        with machine.state("COMPARE"):
            m.d.sync += pace.eq(pace + 1)
            m.d.comb += [shift.eq(pace == 0), self.number.comparing.eq(1)]
            with m.If(shift & self.last_word):
                machine.next("SUBTRACT")
        with machine.state("SUBTRACT"):
            m.d.sync += pace.eq(pace + 1)
            m.d.comb += [shift.eq(pace == 0), self.number.subtracting.eq(1)]
            with m.If(shift & self.last_word):
                m.d.sync += done.eq(done + 1)
                machine.next("COMPARE")
                with m.If(done == rounds - 1):
                    m.d.sync += done.eq(0)
                    machine.next("SHIFTED")

    def _take_modulus(self, machine: OneHot) -> None:
        """Receive the modulus, then the words of stream k, which are sent to the multiplier."""
        m, lay, core = self.m, self.layout, self.ports.core
        assert lay.contract.load is not None
        last_key = len(lay.contract.load.words) - 1
        m.submodules.key = key = WordRegister(lay.key_words, lay.word)
        shift_key = Signal()
        count, place = Signal(range(max(2, lay.key_words))), Signal(range(last_key + 1))
        multiple = Signal(range(lay.rounds + 1))
        m.d.sync += key.shift.eq(shift_key)
        m.d.comb += [key.enter.eq(self.number.held), core.k_m.eq(key.number)]
        self._wait(machine, "MODULUS")
        with machine.state("MODULUS TAKEN"):
            m.d.comb += [self.clear.eq(1), self.number.m_write.eq(1), self.counted.eq(1)]
            machine.next("MODULUS")
            with m.If(self.last_word):
                m.d.sync += multiple.eq(multiple + 1)
                with m.If(multiple == max(1, lay.rounds) - 1):
                    m.d.sync += multiple.eq(0)
                    machine.next("KEY")
        self._wait(machine, "KEY")
        with machine.state("KEY TAKEN"):
            m.d.comb += [self.clear.eq(1), shift_key.eq(1)]
            m.d.sync += count.eq(count + 1)
            machine.next("KEY")
            with m.If(count == lay.key_words - 1):
                m.d.sync += count.eq(0)
                machine.next("KEPT")
        with machine.state("KEPT"):
            with m.If(key.quiet):
                machine.next("PASS")
        with machine.state("PASS"):
            m.d.comb += core.k_valid.eq(1)
            with m.If(core.k_ready):
                m.d.sync += place.eq(place + 1)
                machine.next("KEY")
                with m.If(place == last_key):
                    m.d.sync += place.eq(0)
                    machine.next("NUMBER")
