# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A coprocessor: a field unit that runs programmes of rows, of points or of powers, behind two streams of words.

    words i -> number register -> slot memory -> a, b -> multiplier -> slot memory -> number register -> words o
                                       ^--------- adder ---------^
    digits of scalars or exponents ------^ addresses

Several runs, the contexts, are done in step: each row for all of them before the next, so that a multiplier with
several products in flight has work in every interval.

Messages at ``i``, in words; numbers least significant word first, each filled up to whole words:

    SETUP            where it is loaded, the multiples 2^k p of the modulus that results are reduced by, the highest
                     first, and the words of stream k; then each constant; then the multiples of p that differences
                     add; then, where the modulus is loaded and sums are trimmed, those that they are trimmed by.
                     `RowLayout.setup` gives it.
    1 + programme    where they are counted, the passes of the loop and the words of digits of a context; then for each
                     context its digits, packed into words, and its numbers
    at ``o``         for each context its results; ``o_last`` goes with the last word

All numbers are at the ports as the multiplier has them: binary, or residues in one vector. Binary results are the least
ones: multiples 2^k p are subtracted word by word, as many as the programme's bounds ask for, always in the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.engines.machine.io_register import ROUND, NumberRegister
from modmill.engines.machine.layout import COUNT_BITS, PACK, SETUP
from modmill.engines.machine.program_memory import chosen
from modmill.engines.machine.sequencer import Sequencer
from modmill.rtl.delay import later
from modmill.rtl.one_hot import OneHot
from modmill.rtl.word_register import WordRegister


class Coprocessor(wiring.Component):
    """The coprocessor around a sequencer. Streams of words ``i`` and ``o`` as described above; one message at a time.

    Cost beside the field unit: a register as wide as a number with 1 LUT a bit, the table, the digits' memory.
    The time from the last word of a job to the first word of its results is ``cycles``, whatever its numbers are.
    """

    def __init__(self, sequencer: Sequencer) -> None:
        self.sequencer, self.core, self.layout = sequencer, sequencer.core, sequencer.layout
        self.kept = (*getattr(self.core, "kept", ()), "slice", *WordRegister.kept)
        word = self.layout.word
        super().__init__({
            "i_valid": In(1), "i_ready": Out(1), "i_data": In(word),
            "o_valid": Out(1), "o_ready": In(1), "o_data": Out(word), "o_last": Out(1),
        })  # fmt: skip

    def cycles(self, programme: int, passes: int | None = None) -> int:
        """Cycles from the last word of a job, given without a pause, to the first word of its results.

        ``passes``: of the loop, where they are counted. A last word that is a whole number waits in the register of
        words while the number before it is stored, and where no digits come before it, until the machine asks for it.
        """
        lay, run = self.layout, self.sequencer
        waits = 0
        if lay.number_words == 1 and len(lay.programmes[programme].inputs) > 1:
            waits = run.store_cycles - 1
        elif lay.number_words == 1 and not lay.digit_words(programme):
            waits = 2 + run.store_cycles * (lay.contexts > 1)
        last = run.store_cycles + 8 + waits
        subtracting = 2 * lay.rounds * lay.number_words * ROUND - bool(lay.rounds)
        return last + run.cycles(programme, passes) + run.read_cycles + subtracting

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lay, words = self.layout, self.layout.number_words
        load = lay.contract.load
        m.submodules.sequencer = run = self.sequencer
        m.submodules.number = number = NumberRegister(
            words, lay.word, modulus=None if load else lay.contract.p, rounds=lay.rounds
        )  # fmt: skip
        # a word waits in a register: what is done with it follows from the state alone
        waiting, clear = Signal(name="waiting"), Signal(name="clear")
        word = Signal(lay.word, name="word", reset_less=True)
        m.d.comb += self.i_ready.eq(~waiting)
        with m.If(~waiting):
            m.d.sync += [waiting.eq(self.i_valid), word.eq(self.i_data)]
        with m.Elif(clear):
            m.d.sync += waiting.eq(0)
        programme = Signal(len(run.programme))
        shift, counted = Signal(name="shift"), Signal(name="counted")

        # ---- words of a number
        count, last_word = Signal(range(max(2, words))), Signal(init=words == 1)
        with m.If(shift | counted):
            m.d.sync += [count.eq(Mux(last_word, 0, count + 1)), last_word.eq(count == words - 2 if words > 1 else 1)]

        # ---- what is counted for a message: digits, numbers in, numbers out. It stands long before it is used, so that
        # all that is chosen by it is registered
        programmes = lay.programmes
        digit_words = [lay.digit_words(k) for k in range(len(programmes))]
        places = [[slot for slot, _ in p.inputs] for p in programmes]
        results = [[slot for slot, _ in p.results] for p in programmes]
        kept = lay.constants + len(lay.lifts)
        constants = kept + (len(lay.trims) if load else 0)
        most = max(constants, *digit_words, *map(len, places), *map(len, results), 2)
        index = Signal(range(most + 1), reset_less=True)
        context = Signal(range(max(2, lay.contexts)), reset_less=True)
        digits_at = Signal(len(run.d_address), reset_less=True)
        slots_at, place, result, constant, read_at, write_at = (
            Signal(len(run.s_read), name=name, reset_less=True)
            for name in ("slots_at", "place", "result", "constant", "read_at", "write_at")
        )
        shared, given, starting = (Signal(name=name) for name in ("shared", "given", "starting"))
        busy = later(m, run.busy, "busy")

        def of(lists: list[list[int]]) -> Value:
            return chosen(programme, [chosen(index, each) for each in lists])

        def last_of(counts: Sequence[int]) -> Value:
            return index == chosen(programme, [number - 1 for number in counts])

        last_context = later(m, context == lay.contexts - 1, "last_context")
        last_constant = later(m, index == constants - 1, "last_constant")
        last_input = later(m, last_of([*map(len, places)]), "last_input")
        last_result = later(m, last_of([*map(len, results)]), "last_result")
        digits = Signal(range(max(digit_words) + 1), name="digit_words", reset_less=True)  # where they are counted

        def words_of_digits(what: Callable[[Value | int], Value | int]) -> Value:
            """What is asked of the number of words of digits of a context."""
            return Value.cast(what(digits) if lay.counted else chosen(programme, [what(n) for n in digit_words]))

        no_digits = later(m, words_of_digits(lambda n: n == 0), "no_digits")
        setup = later(m, word == SETUP, "setup")
        only_digits = later(m, words_of_digits(lambda n: n == 1), "only_digits")
        first_digits = Signal(len(run.d_address), reset_less=True)  # of the next context
        last_digits = Signal()

        # what a state says to the counters acts a cycle later, from a register
        first, next_index, index_0, next_context, context_0, next_digits, digits_end = (
            Signal(name=name)
            for name in ("first", "next_index", "index_0", "next_context", "context_0", "next_digits", "digits_end")
        )
        with m.If(later(m, next_index, "next_index_now")):
            m.d.sync += index.eq(index + 1)
        with m.If(later(m, index_0, "index_0_now")):
            m.d.sync += index.eq(0)
        with m.If(later(m, next_context, "next_context_now")):
            m.d.sync += [context.eq(context + 1), slots_at.eq(slots_at + lay.slots)]
            m.d.sync += first_digits.eq(first_digits + lay.stride)
        with m.If(later(m, context_0, "context_0_now")):
            m.d.sync += [context.eq(0), slots_at.eq(0)]
        with m.If(later(m, next_digits, "next_digits_now")):
            m.d.sync += digits_at.eq(digits_at + 1)
        with m.If(later(m, digits_end, "digits_end_now")):
            m.d.sync += digits_at.eq(first_digits)
        with m.If(later(m, first, "first_now")):
            m.d.sync += [digits_at.eq(0), first_digits.eq(lay.stride)]

        m.d.comb += [
            number.i_data.eq(word), number.shift.eq(shift), number.whole.eq(run.s_q),
            run.s_data.eq(number.number), run.start.eq(starting), run.programme.eq(programme),
            run.s_trim.eq(Cat(*(later(m, shared & (index == kept + k), f"trim_{k}") for k in range(len(lay.trims))))),
            run.d_address.eq(digits_at), run.d_data.eq(word[:PACK]),
            self.o_data.eq(number.number[: lay.word]), run.s_address.eq(write_at), run.s_read.eq(read_at),
        ]  # fmt: skip
        m.d.sync += [
            place.eq(of(places)), result.eq(of(results)), constant.eq(lay.shared_base + index),
            write_at.eq(Mux(shared, constant, place + slots_at)), read_at.eq(result + slots_at),
        ]  # fmt: skip
        with OneHot(m, "message") as machine:
            with machine.state("COMMAND"):
                m.d.comb += [first.eq(1), index_0.eq(1), context_0.eq(1)]
                m.d.sync += shared.eq(0)
                with m.If(waiting):
                    machine.next("COMMANDED")
            with machine.state("COMMANDED"):
                m.d.comb += clear.eq(1)
                m.d.sync += [programme.eq(word - 1), shared.eq(setup)]
                machine.next("PASSES" if lay.counted else "CONTEXT")
                with m.If(setup):
                    machine.next("MODULUS" if load else "NUMBER")
            if lay.counted:
                self._counts(m, machine, (waiting, clear, word), digits)
            with machine.state("CONTEXT"):  # what depends on the programme is being chosen
                machine.next("BEGIN")
            with machine.state("BEGIN"):
                m.d.comb += index_0.eq(1)
                m.d.sync += last_digits.eq(only_digits)
                machine.next("DIGITS")
                with m.If(no_digits):
                    machine.next("INPUTS")
            with machine.state("DIGITS"):
                with m.If(waiting):
                    machine.next("DIGITS TAKEN")
            with machine.state("DIGITS TAKEN"):
                m.d.comb += [clear.eq(1), run.d_write.eq(1), next_index.eq(1), next_digits.eq(1)]
                m.d.sync += last_digits.eq(words_of_digits(lambda n: index == n - 2 if lay.counted or n > 1 else 0))
                machine.next("DIGITS")
                with m.If(last_digits):
                    machine.next("INPUTS")
            with machine.state("INPUTS"):
                m.d.comb += [index_0.eq(1), digits_end.eq(1)]
                machine.next("NUMBER")
            with machine.state("NUMBER"):
                with m.If(waiting):
                    machine.next("NUMBER TAKEN")
            with machine.state("NUMBER TAKEN"):
                m.d.comb += [clear.eq(1), shift.eq(1)]
                machine.next("NUMBER")
                with m.If(last_word):
                    machine.next("STORE")
            with machine.state("STORE"):
                m.d.comb += run.s_write.eq(1)
                with m.If(run.s_ready):
                    m.d.comb += next_index.eq(1)
                    machine.next("NUMBER")
                    with m.If(Mux(shared, last_constant, last_input)):
                        m.d.comb += index_0.eq(1)
                        machine.next("NEXT")
            with machine.state("NEXT"):
                m.d.comb += next_context.eq(1)
                machine.next("BEGIN")
                with m.If(shared):
                    machine.next("COMMAND")
                with m.Elif(last_context):
                    m.d.comb += context_0.eq(1)
                    machine.next("START")
            with machine.state("START"):
                m.d.sync += starting.eq(1)
                machine.next("STARTED")
            with machine.state("STARTED"):
                m.d.sync += starting.eq(0)
                machine.next("RUN")
            with machine.state("RUN"):
                with m.If(~busy):
                    machine.next("READ")
            with machine.state("READ"):
                m.d.comb += [run.s_ask.eq(1), number.load.eq(run.s_valid)]
                with m.If(run.s_valid):
                    machine.next("LOAD")
            with machine.state("LOAD"):
                machine.next("LOADED")
            with machine.state("LOADED"):
                machine.next("COMPARE" if lay.rounds else "GIVE")
            with machine.state("GIVE"):
                m.d.comb += [self.o_valid.eq(1), self.o_last.eq(last_word & last_result & last_context)]
                with m.If(self.o_ready):
                    machine.next("TAKEN")
            with machine.state("TAKEN"):
                m.d.comb += shift.eq(1)
                m.d.sync += given.eq(last_word)
                machine.next("SHIFTED")
            with machine.state("SHIFTED"):
                machine.next("SETTLED")
            with machine.state("SETTLED"):
                m.d.sync += given.eq(0)
                machine.next("GIVE")
                with m.If(given):
                    m.d.comb += next_index.eq(1)
                    machine.next("GIVEN")
                    with m.If(last_result):
                        m.d.comb += [index_0.eq(1), next_context.eq(1)]
                        with m.If(last_context):
                            machine.next("COMMAND")
            with machine.state("GIVEN"):  # the counters step
                machine.next("CHOOSE")
            with machine.state("CHOOSE"):  # the next address is being chosen
                machine.next("READ")
            if lay.rounds:
                done = Signal(range(lay.rounds + 1))
                pace = Signal(range(ROUND))
                m.d.sync += pace.eq(0)
                with machine.state("COMPARE"):
                    m.d.sync += pace.eq(pace + 1)
                    m.d.comb += [shift.eq(pace == 0), number.comparing.eq(1)]
                    with m.If(shift & last_word):
                        machine.next("SUBTRACT")
                with machine.state("SUBTRACT"):
                    m.d.sync += pace.eq(pace + 1)
                    m.d.comb += [shift.eq(pace == 0), number.subtracting.eq(1)]
                    with m.If(shift & last_word):
                        m.d.sync += done.eq(done + 1)
                        machine.next("COMPARE")
                        with m.If(done == lay.rounds - 1):
                            m.d.sync += done.eq(0)
                            machine.next("SHIFTED")
            if load:
                self._load(m, machine, number, (waiting, clear), counted, last_word)
        return m

    def _counts(self, m: Module, machine: OneHot, stream: tuple[Signal, Signal, Signal], digits: Signal) -> None:
        """States that take the passes of the loop and the words of digits of a context."""
        waiting, clear, word = stream
        passes = Signal(COUNT_BITS, name="passes", reset_less=True)
        m.d.comb += self.sequencer.passes.eq(passes)
        for name, kept, following in (("PASSES", passes, "COUNT"), ("COUNT", digits, "CONTEXT")):
            with machine.state(name):
                with m.If(waiting):
                    machine.next(f"{name} TAKEN")
            with machine.state(f"{name} TAKEN"):
                m.d.comb += clear.eq(1)
                m.d.sync += kept.eq(word)
                machine.next(following)

    def _load(
        self,
        m: Module,
        machine: OneHot,
        number: NumberRegister,
        word: tuple[Signal, Signal],
        counted: Signal,
        last_word: Value,
    ) -> None:
        """States that keep the modulus and pass the multiplier's own words on to it."""
        lay, core = self.layout, self.core
        assert lay.contract.load is not None
        waiting, clear = word
        m.submodules.key = key = WordRegister(lay.key_words, lay.word)
        shift_key = Signal()
        count, place = Signal(range(max(2, lay.key_words))), Signal(range(len(lay.contract.load.words)))
        multiple = Signal(range(lay.rounds + 1))
        m.d.sync += key.shift.eq(shift_key)
        m.d.comb += [key.enter.eq(number.held), core.k_m.eq(key.number)]
        with machine.state("MODULUS"):
            with m.If(waiting):
                machine.next("MODULUS TAKEN")
        with machine.state("MODULUS TAKEN"):
            m.d.comb += [clear.eq(1), number.m_write.eq(1), counted.eq(1)]
            machine.next("MODULUS")
            with m.If(last_word):
                m.d.sync += multiple.eq(multiple + 1)
                with m.If(multiple == max(1, lay.rounds) - 1):
                    m.d.sync += multiple.eq(0)
                    machine.next("KEY")
        with machine.state("KEY"):
            with m.If(waiting):
                machine.next("KEY TAKEN")
        with machine.state("KEY TAKEN"):
            m.d.comb += [clear.eq(1), shift_key.eq(1)]
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
                with m.If(place == len(lay.contract.load.words) - 1):
                    m.d.sync += place.eq(0)
                    machine.next("NUMBER")
