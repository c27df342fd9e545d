# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The end of a multiplication, word by word: carry-save to binary, and one conditional subtraction."""

from __future__ import annotations

from types import SimpleNamespace

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from modmill.interface import Multiplier


def widened(value: Value, bits: int) -> Value:
    """``value`` extended with zeros to at least ``bits`` bits."""
    return Cat(value, Const(0, bits - len(value))) if len(value) < bits else value


class CarrySaveWords:
    """Adds a pair (S, C): the ``count`` words of S + C, of ``word`` bits each, the lowest first, one in each cycle.

    The pair is at ``s`` and ``c`` in the cycle in which ``take`` is high. Word j is in ``z`` j + 2 cycles later, with
    ``valid`` high, for the last word also ``last``; ``modulus_word`` has the same word of ``modulus``. ``pair``: the
    registers of S and C; ``registers``: z and its carry.
    Cost: two registers of all words with a multiplexer, an adder of one word.
    """

    def __init__(self, m: Module, take: Value, s: Value, c: Value, modulus: Value, *, word: int, count: int) -> None:
        width = word * count
        sums, carries = (Signal(width, name=f"adder_{name}", reset_less=True) for name in "sc")
        adding, final = Signal(), Signal()
        index = Signal(range(max(2, count)))
        carry = Signal()
        total = Signal(word + 1, name="v_total")
        self.z = Signal(word, name="v", reset_less=True)
        self.pair, self.registers = [sums, carries], [self.z, carry]
        self.valid, self.last = Signal(name="v_valid"), Signal(name="v_last")
        self.modulus_word = Signal(word, name="v_modulus", reset_less=True)
        words = widened(modulus, width)
        m.d.comb += [final.eq(adding & (index == count - 1)), total.eq(sums[:word] + carries[:word] + carry)]
        m.d.sync += [
            self.valid.eq(adding),
            self.last.eq(final),
            self.modulus_word.eq(words.word_select(index, word) if count > 1 else words),
            self.z.eq(total),
        ]
        with m.If(take):
            m.d.sync += [sums.eq(s), carries.eq(c), adding.eq(1), index.eq(0), carry.eq(0)]
        with m.Else():
            m.d.sync += [sums.eq(sums >> word), carries.eq(carries >> word), carry.eq(total[word])]
            with m.If(final):
                m.d.sync += adding.eq(0)
            with m.Elif(adding):
                m.d.sync += index.eq(index + 1)


class WordSubtraction:
    """Reduces V < 2 p, which arrives in words, the lowest first, to [0, p), and drives the stream ``o`` of ``core``.

    In each cycle in which ``valid`` is high, ``z`` has a word of V and ``modulus_word`` the same word of p; ``last``
    marks the last of ``count`` words. There may be pauses between the words of a number. Without ``subtract`` the
    result is V. The result is in ``core.o_r`` two cycles after its last word, or as soon as the previous result has
    been taken; this must happen before the first word of the next number arrives.
    ``registers``: the latest words, of V and, with ``subtract``, of V - p, and the inverted borrow of the latter.
    Cost: two registers of all words (one without ``subtract``), a subtractor of one word, a multiplexer of the result.
    """

    def __init__(
        self, m: Module, core: Multiplier | SimpleNamespace, z: Value, modulus_word: Value, valid: Value, last: Value,
        *, count: int, subtract: bool,
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
            no_borrow, fits = Signal(name="no_borrow", init=1), Signal(name="fits", reset_less=True)
            total = Signal(word + 1, name="difference_total")
            m.d.comb += total.eq(z + ~modulus_word + no_borrow)
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
