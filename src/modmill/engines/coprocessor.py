# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""An elliptic-curve coprocessor: a field unit that runs programmes of rows, behind two streams of words.

    words i -> number register -> slot memory -> a, b -> multiplier -> slot memory -> number register -> words o
                                       ^--------- adder ---------^
               digits of the scalars ----^ addresses

Several runs, the contexts, are done in step: each row for all of them before the next, so that a multiplier with several
products in flight has work in every interval.

Messages at ``i``, in words; numbers least significant word first, each filled up to whole words:

    SETUP            the modulus and the words of stream k, where it is loaded; then each constant; then the multiples
                     of p that differences add; then, where the modulus is loaded and sums are trimmed, the
                     multiples that they are trimmed by. `RowLayout.setup` gives it.
    1 + programme    for each context its digits, packed into words, and its numbers
    at ``o``         for each context its results

All numbers are at the ports as the multiplier has them: binary, or residues in one vector. Binary results are the least
ones: p is subtracted word by word as often as the programme's bounds ask for, always in the same time.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.engines.number_register import NumberRegister
from modmill.engines.row_layout import PACK, SETUP
from modmill.engines.row_sequencer import RowSequencer, chosen
from modmill.rtl.word_register import WordRegister


class Coprocessor(wiring.Component):
    """The coprocessor around a sequencer. Streams of words ``i`` and ``o`` as described above; one message at a time.

    Cost beside the field unit: a register as wide as a number with 1 LUT a bit, the table, the digits' memory.
    The time from the last word of a job to the first word of its results is ``cycles``, whatever its numbers are.
    """

    def __init__(self, sequencer: RowSequencer) -> None:
        self.sequencer, self.core, self.layout = sequencer, sequencer.core, sequencer.layout
        self.kept = (*getattr(self.core, "kept", ()), "slice", *WordRegister.kept)
        word = self.layout.word
        super().__init__({
            "i_valid": In(1), "i_ready": Out(1), "i_data": In(word),
            "o_valid": Out(1), "o_ready": In(1), "o_data": Out(word),
        })  # fmt: skip

    def cycles(self, programme: int) -> int:
        """Cycles from the last word of a job to the first word of its results."""
        lay, run = self.layout, self.sequencer
        last = run.store_cycles + 4
        subtracting = 2 * lay.subtractions * lay.number_words + (2 if lay.subtractions else 0)
        return last + run.cycles(programme) + run.read_cycles + subtracting + 3

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lay, words = self.layout, self.layout.number_words
        load = lay.contract.load
        m.submodules.sequencer = run = self.sequencer
        m.submodules.number = number = NumberRegister(
            words, lay.word, modulus=None if load else lay.contract.p, subtractions=lay.subtractions
        )  # fmt: skip
        count = Signal(range(max(2, words, lay.key_words)))
        context = Signal(range(max(2, lay.contexts)))
        take = self.i_valid & self.i_ready
        last_word, last_context = count == words - 1, context == lay.contexts - 1
        programme = Signal(len(run.programme), reset_less=True)
        shift = Signal()
        with m.If(shift):
            m.d.sync += count.eq(Mux(last_word, 0, count + 1))

        # ---- what is counted for a message: digits, numbers in, numbers out
        programmes = lay.programmes
        digit_words = [lay.digit_words(k) for k in range(len(programmes))]
        places = [[slot for slot, _ in p.inputs] for p in programmes]
        results = [[slot for slot, _ in p.results] for p in programmes]
        kept = lay.constants + len(lay.lifts)
        constants = kept + (len(lay.trims) if load else 0)
        most = max(constants, *digit_words, *map(len, places), *map(len, results), 1)
        index = Signal(range(most + 1))
        digits_at, slots_at = Signal(len(run.d_address)), Signal(len(run.s_read))
        shared = Signal()

        def of(lists: list[list[int]]) -> Value:
            return chosen(programme, [chosen(index, each or [0]) for each in lists])

        def is_last(lists: list[list[int]]) -> Value:
            return index == chosen(programme, [max(1, len(each)) - 1 for each in lists])

        m.d.comb += [
            number.i_data.eq(self.i_data), number.shift.eq(shift), number.whole.eq(run.s_q),
            run.s_data.eq(number.number), run.programme.eq(programme),
            run.s_trim.eq(Cat(*(shared & (index == kept + k) for k in range(len(lay.trims))))),
            run.d_address.eq(digits_at + index), run.d_data.eq(self.i_data[:PACK]),
            self.o_data.eq(number.number[: lay.word]),
        ]  # fmt: skip
        # addresses are registered: what they are chosen by stands long before they are used
        m.d.sync += [
            run.s_address.eq(Mux(shared, lay.shared_base + index, of(places) + slots_at)),
            run.s_read.eq(of(results) + slots_at),
        ]
        with m.FSM(name="message"):
            with m.State("COMMAND"):
                m.d.comb += self.i_ready.eq(1)
                m.d.sync += [index.eq(0), context.eq(0), digits_at.eq(0), slots_at.eq(0), shared.eq(0)]
                with m.If(take):
                    m.d.sync += programme.eq(self.i_data - 1)
                    m.next = "DIGITS"
                    with m.If(self.i_data == SETUP):
                        m.d.sync += shared.eq(1)
                        m.next = "MODULUS" if load else "NUMBER"
            with m.State("DIGITS"):
                m.d.comb += self.i_ready.eq(index != chosen(programme, digit_words))
                with m.If(~self.i_ready):
                    m.d.sync += [index.eq(0), digits_at.eq(digits_at + lay.stride)]
                    m.next = "INPUTS"
                with m.Elif(take):
                    m.d.comb += run.d_write.eq(1)
                    m.d.sync += index.eq(index + 1)
            with m.State("INPUTS"):
                m.next = "NUMBER"
                with m.If(chosen(programme, [int(not each) for each in places])):
                    m.next = "NEXT"
            with m.State("NUMBER"):
                m.d.comb += [self.i_ready.eq(1), shift.eq(take)]
                with m.If(take & last_word):
                    m.next = "STORE"
            with m.State("STORE"):
                m.d.comb += run.s_write.eq(number.quiet)
                with m.If(run.s_ready):
                    m.d.sync += index.eq(index + 1)
                    m.next = "NUMBER"
                    with m.If(Mux(shared, index == constants - 1, is_last(places))):
                        m.d.sync += index.eq(0)
                        m.next = "NEXT"
            with m.State("NEXT"):
                m.d.sync += [context.eq(context + 1), slots_at.eq(slots_at + lay.slots)]
                m.next = "DIGITS"
                with m.If(shared):
                    m.next = "COMMAND"
                with m.Elif(last_context):
                    m.d.sync += [context.eq(0), slots_at.eq(0)]
                    m.next = "START"
            with m.State("START"):
                m.d.comb += run.start.eq(1)
                m.next = "RUN"
            with m.State("RUN"):
                with m.If(~run.busy):
                    m.next = "READ"
            with m.State("READ"):
                m.d.comb += [run.s_ask.eq(1), number.load.eq(run.s_valid)]
                with m.If(run.s_valid):
                    m.next = "LOAD"
            with m.State("LOAD"):
                m.d.comb += run.s_ask.eq(1)
                with m.If(number.quiet):
                    m.next = "COMPARE" if lay.subtractions else "GIVE"
            with m.State("GIVE"):
                m.d.comb += [self.o_valid.eq(number.quiet), shift.eq(number.quiet & self.o_ready)]
                with m.If(shift & last_word):
                    m.d.sync += index.eq(index + 1)
                    m.next = "GIVEN"
                    with m.If(is_last(results)):
                        m.d.sync += [index.eq(0), context.eq(context + 1), slots_at.eq(slots_at + lay.slots)]
                        with m.If(last_context):
                            m.next = "COMMAND"
            with m.State("GIVEN"):  # the next address is being chosen
                m.next = "READ"
            if lay.subtractions:
                done = Signal(range(lay.subtractions + 1))
                with m.State("COMPARE"):
                    m.d.comb += [shift.eq(1), number.comparing.eq(1)]
                    with m.If(last_word):
                        m.next = "SUBTRACT"
                with m.State("SUBTRACT"):
                    m.d.comb += [shift.eq(1), number.subtracting.eq(1)]
                    with m.If(last_word):
                        m.d.sync += done.eq(done + 1)
                        m.next = "COMPARE"
                        with m.If(done == lay.subtractions - 1):
                            m.d.sync += done.eq(0)
                            m.next = "GIVE"
            if load:
                self._load(m, number, take, count, last_word, index)
        return m

    def _load(
        self, m: Module, number: NumberRegister, take: Value, count: Signal, last_word: Value, index: Signal
    ) -> None:
        """States that keep the modulus and pass the multiplier's own words on to it."""
        lay, core = self.layout, self.core
        assert lay.contract.load is not None
        m.submodules.key = key = WordRegister(lay.key_words, lay.word)
        shift_key = Signal()
        place = Signal(range(len(lay.contract.load.words)))
        m.d.sync += key.shift.eq(shift_key)
        m.d.comb += [key.enter.eq(number.held), core.k_m.eq(key.number), number.m_address.eq(count)]
        with m.State("MODULUS"):
            m.d.comb += [self.i_ready.eq(1), number.m_write.eq(take)]
            with m.If(take):
                m.d.sync += count.eq(Mux(last_word, 0, count + 1))
                with m.If(last_word):
                    m.next = "KEY"
        with m.State("KEY"):
            m.d.comb += self.i_ready.eq(1)
            with m.If(take):
                m.d.comb += shift_key.eq(1)
                m.d.sync += count.eq(count + 1)
                with m.If(count == lay.key_words - 1):
                    m.d.sync += count.eq(0)
                    m.next = "KEPT"
        with m.State("KEPT"):
            with m.If(key.quiet):
                m.next = "PASS"
        with m.State("PASS"):
            m.d.comb += core.k_valid.eq(1)
            with m.If(core.k_ready):
                m.d.sync += place.eq(place + 1)
                m.next = "KEY"
                with m.If(place == len(lay.contract.load.words) - 1):
                    m.d.sync += place.eq(0)
                    m.next = "NUMBER"
