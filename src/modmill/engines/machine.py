# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The exponentiation engine in hardware: a slot memory, a sequencer and any multiplier, behind two streams of words.

    words i -> number register -> slot memory -> a, b -> multiplier -> slot memory -> number register -> words o
               digits of the exponents ----^ addresses

Several exponentiations, the contexts, run in step: each step of the programme is done for all of them before the next,
so that a multiplier with several products in flight has work in every interval. The programme lies in a table; the
exponents' digits choose slots to read, and nothing else depends on them. A design with a slot machine of its own keeps
the numbers itself (numbered.py) instead of the slot memory.

Messages at ``i``, in words; numbers least significant word first, each filled up to whole words:

    SETUP                the modulus and the words of stream k, where it is loaded; then each number of ``commons``
    1 + programme        passes of the loop, number of digits; then for each context its digits, one a word, the first
                         used first, and its base
    at ``o``             for each context the power; ``o_last`` goes with the last word

All bases and powers are at the ports as the multiplier has them: binary, or residues in one vector. A binary power is
the least one: p is subtracted word by word as often as the programme's bounds ask for, always in the same time.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from modmill.engines.layout import COUNT_BITS, SETUP, words_of
from modmill.engines.numbered import NumberedSequencer
from modmill.engines.sequencer import Sequencer, choice
from modmill.rtl.stream_register import StreamRegister
from modmill.rtl.word_register import WordRegister


class Machine(wiring.Component):
    """The engine around a sequencer. Streams of words ``i`` and ``o`` as described above; one message at a time.

    ``multiplex``: where a step squares one of two slots, both are read and a multiplexer chooses, so that no address
    depends on the exponent there.

    Cost beside the multiplier: 2 registers as wide as a number, ceil(width / 18) block RAMs on ECP5, a table and the
    digits' memory. Latency: below ``Layout.cycles``, and the same for all exponents of one length.
    """

    def __init__(self, sequencer: Sequencer | NumberedSequencer) -> None:
        self.sequencer, self.core, self.layout = sequencer, sequencer.core, sequencer.layout
        self.kept = (*getattr(self.core, "kept", ()), "slice", *WordRegister.kept)
        layout = sequencer.layout
        word = layout.word
        super().__init__({
            "i_valid": In(1), "i_ready": Out(1), "i_data": In(word),
            "o_valid": Out(1), "o_ready": In(1), "o_data": Out(word), "o_last": Out(1),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lay, word, words = self.layout, self.layout.word, self.layout.number_words
        m.submodules.sequencer = run = self.sequencer
        count = Signal(range(max(2, words, lay.key_words)))
        context = Signal(range(max(2, lay.contexts)))
        index = Signal(COUNT_BITS)
        digits = Signal(COUNT_BITS, reset_less=True)
        m.submodules.entrance = entrance = StreamRegister(word)
        m.d.comb += [
            entrance.i_valid.eq(self.i_valid), self.i_ready.eq(entrance.i_ready), entrance.i_data.eq(self.i_data),
        ]  # fmt: skip
        valid, ready, given = entrance.o_valid, entrance.o_ready, entrance.o_data
        take = valid & ready
        last_word, last_context = count == words - 1, context == lay.contexts - 1
        bases = [lay.place({n: s for s, n in e.programme.loads}["base"]) for e in lay.engines]
        results = [lay.place(e.programme.result) for e in lay.engines]
        commons = [lay.place(slot) for slot, _ in lay.commons]
        storing = Signal(len(run.s_address))
        programme, passes = (Signal(len(x), reset_less=True) for x in (run.programme, run.passes))

        # ---- the number: it shifts, or is loaded, two cycles after it is told to
        m.submodules.number = register = WordRegister(words, word)
        number, acts = register.number, register.acts
        shift, load, comparing, subtracting = (Signal(name=n) for n in ("shift", "load", "compare", "subtract"))
        mode = Signal(2)
        entering, earlier, held = (Signal(word, name=n, reset_less=True) for n in ("entering", "earlier", "held"))
        quiet = Signal()
        m.d.sync += [
            register.shift.eq(shift), register.load.eq(load), earlier.eq(given), held.eq(earlier),
            mode.eq(Cat(comparing, subtracting)),
        ]  # fmt: skip
        modes = Signal(2)  # what the word that acts is shifted for
        m.d.sync += modes.eq(mode)
        with m.If(shift):
            m.d.sync += count.eq(Mux(last_word, 0, count + 1))
        m.d.comb += [
            entering.eq(held), register.enter.eq(entering), register.whole.eq(run.s_q), quiet.eq(register.quiet),
            run.s_data.eq(number), run.s_address.eq(storing + context), run.programme.eq(programme),
            run.s_read.eq(choice(programme, results) + context), run.passes.eq(passes),
            run.d_data.eq(given), run.d_address.eq(Cat(index[: (lay.digits - 1).bit_length()], context)),
            self.o_data.eq(number[:word]), self.o_last.eq(last_word & last_context),
        ]  # fmt: skip
        if lay.contract.load or lay.subtractions:
            init = () if lay.contract.load else words_of(lay.contract.p, words, word)
            m.submodules.modulus = modulus = memory.Memory(shape=word, depth=max(2, words), init=init)
        if lay.subtractions:
            self._subtract(m, modulus.read_port(domain="comb"), number, acts, modes, entering)
        if lay.contract.load:
            write = modulus.write_port()
            m.d.comb += [write.addr.eq(count), write.data.eq(given)]
            m.submodules.key = key = WordRegister(lay.key_words, word)
            shift_key = Signal()
            m.d.sync += key.shift.eq(shift_key)
            m.d.comb += [key.enter.eq(held), self.core.k_m.eq(key.number)]

        with m.FSM(name="message"):
            with m.State("COMMAND"):
                m.d.comb += ready.eq(1)
                with m.If(take):
                    m.d.sync += programme.eq(given - 1)
                    m.next = "PASSES"
                    with m.If(given == SETUP):
                        m.next = "MODULUS" if lay.contract.load else "COMMON"
            with m.State("COMMON"):
                m.d.comb += [ready.eq(1), shift.eq(take)]
                with m.If(take & last_word):
                    m.next = "COMMON IN"
            with m.State("COMMON IN"):
                with m.If(quiet):
                    m.next = "SPREAD"
            with m.State("SPREAD"):  # one number to the same slot of all contexts
                m.d.comb += [run.s_write.eq(1), storing.eq(choice(index, commons))]
                with m.If(run.s_ready):
                    m.d.sync += context.eq(context + 1)
                    with m.If(last_context):
                        m.d.sync += [context.eq(0), index.eq(index + 1)]
                        m.next = "COMMON"
                        with m.If(index == len(lay.commons) - 1):
                            m.d.sync += index.eq(0)
                            m.next = "COMMAND"
            with m.State("PASSES"):
                m.d.comb += ready.eq(1)
                with m.If(take):
                    m.d.sync += passes.eq(given)
                    m.next = "COUNT"
            with m.State("COUNT"):
                m.d.comb += ready.eq(1)
                with m.If(take):
                    m.d.sync += digits.eq(given)
                    m.next = "DIGITS"
            with m.State("DIGITS"):
                m.d.comb += ready.eq(index != digits)
                with m.If(index == digits):
                    m.d.sync += index.eq(0)
                    m.next = "BASE"
                with m.Elif(take):
                    m.d.comb += run.d_write.eq(1)
                    m.d.sync += index.eq(index + 1)
            with m.State("BASE"):
                m.d.comb += [ready.eq(1), shift.eq(take)]
                with m.If(take & last_word):
                    m.next = "BASE IN"
            with m.State("BASE IN"):
                with m.If(quiet):
                    m.next = "STORE"
            with m.State("STORE"):
                m.d.comb += [run.s_write.eq(1), storing.eq(choice(programme, bases))]
                with m.If(run.s_ready):
                    m.d.sync += context.eq(Mux(last_context, 0, context + 1))
                    m.next = "DIGITS"
                    with m.If(last_context):
                        m.next = "START"
            with m.State("START"):
                m.d.comb += run.start.eq(1)
                m.next = "RUN"
            with m.State("RUN"):
                with m.If(~run.busy):
                    m.next = "READ"
            with m.State("READ"):
                m.d.comb += [run.s_ask.eq(1), load.eq(run.s_valid)]
                with m.If(run.s_valid):
                    m.next = "LOAD"
            with m.State("LOAD"):
                with m.If(quiet):
                    m.next = "COMPARE" if lay.subtractions else "GIVE"
            with m.State("GIVE"):
                m.d.comb += [self.o_valid.eq(quiet), shift.eq(quiet & self.o_ready)]
                with m.If(shift):
                    with m.If(last_word):
                        m.d.sync += context.eq(Mux(last_context, 0, context + 1))
                        m.next = "READ"
                        with m.If(last_context):
                            m.next = "COMMAND"
            if lay.contract.load:
                self._load(m, write, take, ready, count, last_word, index, shift_key, key.quiet)
            if lay.subtractions:
                done = Signal(range(lay.subtractions + 1))
                with m.State("COMPARE"):
                    m.d.comb += [shift.eq(1), comparing.eq(1)]
                    with m.If(last_word):
                        m.next = "SUBTRACT"
                with m.State("SUBTRACT"):
                    m.d.comb += [shift.eq(1), subtracting.eq(1)]
                    with m.If(last_word):
                        m.d.sync += done.eq(done + 1)
                        m.next = "COMPARE"
                        with m.If(done == lay.subtractions - 1):
                            m.d.sync += done.eq(0)
                            m.next = "GIVE"
        return m

    def _load(
        self, m: Module, modulus: memory.WritePort, take: Value, ready: Signal, count: Signal, last_word: Value,
        index: Signal, shift_key: Signal, quiet: Value,
    ) -> None:  # fmt: skip
        """States that keep the modulus and pass the multiplier's own words on to it."""
        lay, core = self.layout, self.core
        assert lay.contract.load is not None
        with m.State("MODULUS"):
            m.d.comb += [ready.eq(1), modulus.en.eq(take)]
            with m.If(take):
                m.d.sync += count.eq(Mux(last_word, 0, count + 1))
                with m.If(last_word):
                    m.next = "KEY"
        with m.State("KEY"):
            m.d.comb += ready.eq(1)
            with m.If(take):
                m.d.comb += shift_key.eq(1)
                m.d.sync += count.eq(count + 1)
                with m.If(count == lay.key_words - 1):
                    m.d.sync += count.eq(0)
                    m.next = "KEPT"
        with m.State("KEPT"):
            with m.If(quiet):
                m.next = "PASS"
        with m.State("PASS"):
            m.d.comb += core.k_valid.eq(1)
            with m.If(core.k_ready):
                m.d.sync += index.eq(index + 1)
                m.next = "KEY"
                with m.If(index == len(lay.contract.load.words) - 1):
                    m.d.sync += index.eq(0)
                    m.next = "COMMON"

    def _subtract(
        self, m: Module, modulus: memory.ReadPort, number: Value, acts: Value, modes: Signal, entering: Signal
    ) -> None:
        """Subtract p where it goes into the number, as it shifts round: once to compare, once to subtract p or 0."""
        word, words = self.layout.word, self.layout.number_words
        comparing, subtracting = modes[0], modes[1]
        borrow, small = Signal(), Signal(reset_less=True)
        turn = Signal(range(max(2, words)))
        difference = Signal(word + 1)
        m.d.comb += [
            modulus.addr.eq(turn),
            difference.eq(number[:word] - Mux(subtracting & small, 0, modulus.data) - borrow),
        ]
        with m.If(comparing):
            m.d.comb += entering.eq(number[:word])
        with m.If(subtracting):
            m.d.comb += entering.eq(difference[:word])
        with m.If(acts & modes.any()):
            m.d.sync += [turn.eq(turn + 1), borrow.eq(difference[-1])]
            with m.If(turn == words - 1):
                m.d.sync += [turn.eq(0), borrow.eq(0)]
                with m.If(comparing):
                    m.d.sync += small.eq(difference[-1])
