# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The end of a multiplication, word by word: carry-save to binary, and the one subtraction that is left to do."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from modmill.design import Multiplier


def widened(value: Value, bits: int) -> Value:
    """``value`` with zeros above it, so that it has at least so many bits."""
    return Cat(value, Const(0, bits - len(value))) if len(value) < bits else value


class CarrySaveWords:
    """A pair (S, C) becomes the words of S + C, ``word`` bits each, the least first, one a cycle.

    The pair stands at ``s`` and ``c`` in the cycle in which ``take`` is high; word j stands in ``z`` j + 2 cycles
    later, ``valid`` says so, ``last`` goes with the last of ``count`` words. ``modulus_word`` is the modulus' word
    beside z. ``pair`` are the registers that take the pair, ``registers`` z and its carry.
    Cost: two registers of all words with a multiplexer, one adder of a word.
    """

    def __init__(self, m: Module, take: Value, s: Value, c: Value, modulus: Value, *, word: int, count: int) -> None:
        width = word * count
        sums, carries = (Signal(width, name=f"adder_{name}", reset_less=True) for name in "sc")
        adding, final = Signal(), Signal()
        index = Signal(range(max(2, count)))
        carry = Signal()
        self.z = Signal(word, name="v", reset_less=True)
        self.pair, self.registers = [sums, carries], [self.z, carry]
        self.valid, self.last = Signal(name="v_valid"), Signal(name="v_last")
        self.modulus_word = Signal(word, name="v_modulus", reset_less=True)
        m.d.comb += final.eq(adding & (index == count - 1))
        m.d.sync += [self.valid.eq(adding), self.last.eq(final)]
        words = widened(modulus, width)
        m.d.sync += self.modulus_word.eq(words.word_select(index, word) if count > 1 else words)
        total = Signal(word + 1, name="v_total")
        m.d.comb += total.eq(sums[:word] + carries[:word] + carry)
        m.d.sync += self.z.eq(total)
        with m.If(take):
            m.d.sync += [
                sums.eq(s), carries.eq(c), adding.eq(1), index.eq(0), carry.eq(0),
            ]  # fmt: skip
        with m.Else():
            m.d.sync += [sums.eq(sums >> word), carries.eq(carries >> word), carry.eq(total[word])]
            with m.If(final):
                m.d.sync += adding.eq(0)
            with m.Elif(adding):
                m.d.sync += index.eq(index + 1)


class WordSubtraction:
    """Words of a number V < 2 p, the least first, become V or V - p, whichever lies in [0, p), at the output stream.

    ``z`` carries a word of V and ``modulus_word`` the word of p in each cycle in which ``valid`` is high, ``last`` goes
    with the last of ``count``; words of one number may come with pauses. Without ``subtract`` V leaves as it is.
    The number is in ``core.o_r`` two cycles after its last word, or as soon as the result before it was taken; it must
    have left its words' registers before the next number's first word comes.
    ``registers`` hold what was made of a word: that of V and, with ``subtract``, that of V - p and 0 for a borrow.
    Cost: two registers of all words (one without ``subtract``), one subtractor of a word, a multiplexer of the result.
    """

    def __init__(
        self, m: Module, core: Multiplier, z: Value, modulus_word: Value, valid: Value, last: Value, *,
        count: int, subtract: bool,
    ) -> None:  # fmt: skip
        word = len(z)
        number = Signal(word * count, name="number", reset_less=True)
        pending = Signal()
        with m.If(valid):
            m.d.sync += number.eq(Cat(number, z)[word:])
        result: Value = number
        self.registers: list[Value] = [number[-word:]]
        if subtract:
            difference = Signal(word * count, name="difference", reset_less=True)
            no_borrow = Signal(init=1)
            total = Signal(word + 1, name="difference_total")
            m.d.comb += total.eq(z + ~modulus_word + no_borrow)
            fits = Signal(reset_less=True)
            with m.If(valid):
                m.d.sync += [
                    difference.eq(Cat(difference, total[:word])[word:]),
                    no_borrow.eq(total[word] | last),
                    fits.eq(total[word]),
                ]
            result = Mux(fits, difference, number)
            self.registers += [difference[-word:], fits]
        out = Signal(len(core.o_r), name="result", reset_less=True)
        m.d.comb += core.o_r.eq(out)
        with m.If(pending & (~core.o_valid | core.o_ready)):
            m.d.sync += [out.eq(result), core.o_valid.eq(1), pending.eq(0)]
        with m.Elif(core.o_ready):
            m.d.sync += core.o_valid.eq(0)
        with m.If(valid & last):
            m.d.sync += pending.eq(1)
