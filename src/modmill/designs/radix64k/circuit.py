# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The paper's circuit for powers: the multiplier's result is an operand of the next product, which starts at once.

Source:  K. Nakano, K. Kawakami, K. Shigemoto: RSA Encryption and Decryption using the Redundant Number System on the
         FPGA. IPDPS Workshops, 2009, Section 4 (the algorithm) and Section 6 (Theorem 11)
Formula: C = R mod M;  P' = P (R^2 mod M) / R;  for each bit of E, the highest first: C = C C / R, and for a bit 1
         C = C P' / R;  C = C 1 / R mod M
Range:   P < M; the last C is at most M, because (C + k M) / R <= (2 M + (R - 1) M) / R < M + 1. So M becomes 0, and
         every other number is canonical. The paper adds zero d times, adds -M and adds zero d times again

    words i -> N -----> X, Y -> DigitLoop -> result --> X, Y          one, square, 1, B = P', result -> Y
               ^                               |
    words o <- N <----- digits of B, carries <-+

A job of constant time squares and multiplies for every bit: by P' for a bit 1, by R mod M for a bit 0. A job of
variable time multiplies for a bit 1 only, and does not square before the first 1: for exponents that are public.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from modmill.designs.radix64k.machine import DigitLoop, split
from modmill.designs.radix64k.shape import Shape
from modmill.rtl.one_hot import OneHot

SETUP, SECRET, PUBLIC = range(3)
"""The first word of a message: constants of the modulus; a power in constant time; a power in variable time."""
COUNT_BITS = 16
"""Bits of the number of bits of an exponent."""


def products(exponent: int, bits: int, *, variable: bool) -> int:
    """Products of a power for an exponent of ``bits`` bits; ``variable``: of a job whose time depends on it."""
    if not variable:
        return 2 * bits + 2
    return bits - (exponent >> (bits - 1)) + exponent.bit_count() + 2


def cycles(shape: Shape, multiplied: int) -> int:
    """Cycles from the last word of a job to the first word of its answer, for that many products: one for the number
    register, then the products, the digits (with redundancy), the comparison with M, and the word at the port."""
    return multiplied * (shape.first + shape.steps - 1) + shape.m.d * shape.redundant + 3


class PowerCircuit(wiring.Component):
    """Powers modulo M, one at a time. ``bits``: longest exponent; ``word``: bits of a word of the streams, 16 to 64.

    Messages at ``i``; a number has ceil(bits of M / word) words, the least significant first:

    SETUP    if the modulus is loaded, its digits of r bits, one a word, the lowest first; R mod M; R^2 mod M
    SECRET, PUBLIC    number of bits of E; its bits packed into words, the highest bit of E in bit 0 of the first word;
                      P. At ``o``: the words of P^E mod M; ``o_last`` accompanies the last one

    A message is accepted while no power is computed. The first job after SETUP waits until the multiplier is ready.
    Latency: `cycles`. Cost besides the loop: four registers as wide as a number and the memory of the exponent.
    Raises ValueError for a multiplier without feedback.
    """

    kept = DigitLoop.kept

    def __init__(self, shape: Shape, bits: int, word: int) -> None:
        if not shape.m.feedback:
            raise ValueError("the circuit needs a multiplier with feedback=true")
        self._shape, self._bits, self._word = shape, bits, word
        self._words = -(-shape.bits // word)
        super().__init__({
            "i_valid": In(1), "i_ready": Out(1), "i_data": In(word),
            "o_valid": Out(1), "o_ready": In(1), "o_data": Out(word), "o_last": Out(1),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m, q = Module(), self._shape
        m.submodules.multiplier = self._loop = loop = DigitLoop(q)
        size = max(self._words * self._word, q.m.r * q.m.d if q.redundant else 0)
        self._number = Signal(size, name="N", reset_less=True)
        self._base = Signal(len(loop.i_a), name="B", reset_less=True)
        self._one, self._square = (Signal(q.bits, name=name, reset_less=True) for name in ("one", "square"))
        self._variable, self._setup = Signal(name="variable"), Signal(name="setup")
        self._index = Signal(range(max(2, self._words, len(q.m.modulus_digits), q.m.d)), name="index")
        self._start, self._last_word = Signal(name="start"), Signal(name="last_word")
        m.d.comb += [loop.o_ready.eq(1), self._last_word.eq(self._index == self._words - 1)]
        self._exponent(m)
        with OneHot(m, "circuit") as machine:
            self._receive(m, machine)
            self._run(m, machine)
            self._answer(m, machine)
        return m

    def _exponent(self, m: Module) -> None:
        """The memory of the exponent, its current bit, and the number of bits that are left."""
        depth = -(-self._bits // self._word) + 1
        m.submodules.exponent = store = memory.Memory(shape=self._word, depth=depth, init=[])
        write, read = store.write_port(), store.read_port(domain="comb")
        self._at, self._place = Signal(range(depth), name="at"), Signal(range(self._word), name="place")
        self._left, self._bit = Signal(COUNT_BITS, name="left"), Signal(name="bit", reset_less=True)
        self._store, self._next_bit, self._rewind = (Signal(name=name) for name in ("store", "next_bit", "rewind"))
        m.d.comb += [
            write.addr.eq(self._at), write.data.eq(self.i_data), write.en.eq(self._store), read.addr.eq(self._at),
        ]  # fmt: skip
        m.d.sync += self._bit.eq(read.data.bit_select(self._place, 1))
        last = self._place == self._word - 1
        with m.If(self._rewind):
            m.d.sync += [self._at.eq(0), self._place.eq(0)]
        with m.Elif(self._store):
            m.d.sync += self._at.eq(self._at + 1)
        with m.Elif(self._next_bit):
            m.d.sync += [
                self._place.eq(Mux(last, 0, self._place + 1)), self._at.eq(self._at + last),
                self._left.eq(self._left - 1),
            ]  # fmt: skip

    def _receive(self, m: Module, machine: OneHot) -> None:
        """Receive a message."""
        q, loop, index = self._shape, self._loop, self._index
        waiting = Signal(COUNT_BITS, name="waiting", reset_less=True)
        with machine.state("COMMAND"):
            m.d.comb += [self.i_ready.eq(1), self._rewind.eq(1)]
            m.d.sync += [self._setup.eq(self.i_data == SETUP), self._variable.eq(self.i_data == PUBLIC), index.eq(0)]
            with m.If(self.i_valid):
                machine.next("COUNT")
                with m.If(self.i_data == SETUP):
                    machine.next("KEY" if q.loadable else "NUMBER")
        if q.loadable:
            with machine.state("KEY"):
                m.d.comb += [loop.k_valid.eq(self.i_valid), loop.k_m.eq(self.i_data), self.i_ready.eq(loop.k_ready)]
                with m.If(self.i_valid & loop.k_ready):
                    m.d.sync += index.eq(index + 1)
                    with m.If(index == len(q.m.modulus_digits) - 1):
                        m.d.sync += index.eq(0)
                        machine.next("NUMBER")
        with machine.state("COUNT"):
            m.d.comb += self.i_ready.eq(1)
            m.d.sync += [self._left.eq(self.i_data), waiting.eq(self.i_data)]
            with m.If(self.i_valid):
                machine.next("EXPONENT")
        with machine.state("EXPONENT"):
            m.d.comb += [self.i_ready.eq(1), self._store.eq(self.i_valid)]
            with m.If(self.i_valid):
                m.d.sync += waiting.eq(waiting - self._word)
                with m.If(waiting <= self._word):
                    m.d.comb += self._rewind.eq(1)
                    machine.next("NUMBER")
        with machine.state("NUMBER"):
            m.d.comb += self.i_ready.eq(1)
            with m.If(self.i_valid):
                m.d.sync += [self._shifted(self.i_data), index.eq(Mux(self._last_word, 0, index + 1))]
                with m.If(self._last_word):
                    machine.next("START")
                    with m.If(self._setup):
                        machine.next("ONE")
        self._keep(m, machine)

    def _shifted(self, word: Value) -> Value:
        """Shift the number by a word."""
        return self._number.eq(Cat(self._number[self._word : self._words * self._word], word))

    def _keep(self, m: Module, machine: OneHot) -> None:
        """Keep the two constants."""
        second = Signal(name="second")
        with machine.state("ONE"):
            m.d.sync += second.eq(~second)
            with m.If(second):
                m.d.sync += self._square.eq(self._number)
                machine.next("COMMAND")
            with m.Else():
                m.d.sync += self._one.eq(self._number)
                machine.next("NUMBER")

    def _operand(self, x: Value) -> Value:
        """A binary number as an operand."""
        if not self._shape.redundant:
            return x
        r = self._shape.m.r
        return Cat(*(Cat(digit, Const(0, r + 2))[: r + 2] for digit in split(x[: self._shape.bits], r)))

    def _run(self, m: Module, machine: OneHot) -> None:
        """The products; while ``converting`` P' is computed, then squares and products for each bit, then the last."""
        loop, ends, result = self._loop, self._loop.ends, self._loop.result
        names = ("converting", "squaring", "multiplying", "leaving")
        now = {name: Signal(name=name) for name in names}
        then = {name: Signal(name=f"then_{name}") for name in names}
        multiply = ~self._variable | self._bit
        finished = now["multiplying"] | (now["squaring"] & ~multiply)
        last = Signal(name="last_bit")
        m.d.comb += [
            last.eq(self._left == 1),
            then["converting"].eq(self._start),
            then["multiplying"].eq(
                (now["squaring"] & multiply) | (now["converting"] & self._variable & self._bit)
            ),
            then["squaring"].eq(
                (finished & ~last) | (now["converting"] & ~(self._variable & self._bit))
            ),
            then["leaving"].eq(finished & last),
            self._next_bit.eq(ends & finished),
        ]  # fmt: skip
        one, base = self._operand(self._one), self._base
        factor = Mux(now["converting"], result, Mux(self._bit, base, one))
        m.d.comb += [
            loop.i_a.eq(Mux(self._start, self._operand(self._number), Mux(now["converting"], one, result))),
            loop.i_b.eq(
                Mux(self._start, self._operand(self._square), 0)
                | Mux(~self._start & then["multiplying"], factor, 0)
                | Mux(~self._start & then["squaring"], loop.i_a, 0)
                | (~self._start & then["leaving"])
            ),
            loop.i_valid.eq(self._start | (ends & ~now["leaving"])),
        ]
        with m.If(Mux(self._start, loop.i_ready, ends)):
            m.d.sync += [now[name].eq(then[name]) for name in names]
        with machine.state("START"):
            m.d.comb += self._start.eq(1)
            with m.If(loop.i_ready):
                machine.next("RUN")
        with machine.state("RUN"):
            with m.If(ends & now["converting"]):
                m.d.sync += base.eq(result)
            with m.If(ends & now["leaving"]):
                m.d.sync += self._index.eq(0)
                m.d.sync += base.eq(result) if self._shape.redundant else self._number.eq(result)
                machine.next("DIGITS" if self._shape.redundant else "COMPARE")

    def _answer(self, m: Module, machine: OneHot) -> None:
        """Resolve the carries, digit by digit; replace M by 0; send the words."""
        q, index = self._shape, self._index
        zero = Signal(name="zero", reset_less=True)
        if q.redundant:
            r, d = q.m.r, q.m.d
            carry, digit = Signal(3, name="carry", reset_less=True), Signal(r + 3, name="digit")
            m.d.comb += digit.eq(self._base[: r + 2] + carry)
            m.d.sync += carry.eq(0)
            with machine.state("DIGITS"):
                m.d.sync += [
                    self._base.eq(self._base[r + 2 :]), carry.eq(digit[r:]),
                    self._number.eq(Cat(self._number[r : r * d], digit[:r])), index.eq(index + 1),
                ]  # fmt: skip
                with m.If(index == d - 1):
                    m.d.sync += index.eq(0)
                    machine.next("COMPARE")
        with machine.state("COMPARE"):
            m.d.sync += zero.eq(self._number[: q.bits] == self._loop.modulus)
            machine.next("GIVE")
        with machine.state("GIVE"):
            m.d.comb += [
                self.o_valid.eq(1), self.o_last.eq(self._last_word),
                self.o_data.eq(Mux(zero, 0, self._number[: self._word])),
            ]  # fmt: skip
            with m.If(self.o_ready):
                m.d.sync += [self._shifted(Const(0, self._word)), index.eq(Mux(self._last_word, 0, index + 1))]
                with m.If(self._last_word):
                    machine.next("COMMAND")
