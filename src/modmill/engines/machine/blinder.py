# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Blinding in front of a coprocessor: plain secret scalars come in, digits of blinded ones go to the machine.

    message in           command, then for each thread: k, the flag of its order, its numbers
    words to the machine command, then for each thread: the digits of k' = k + r N, b, its numbers

r has ``bits`` random bits from the port of `RandomPort`, new ones for each thread of each job. N is a multiple of the
order of the point, so k' P = k P. A ladder takes points of two curves, which have different orders: there the lowest
bit of a word behind k, the flag, chooses the order. SETUP and jobs without a secret scalar pass unchanged.

b is the random factor of the projective coordinates, the first number of each program with a secret scalar. It is
odd, so never 0, and has ``factor_bits`` bits, one less than p, so that it is below p; its other bits are random.
Without ``factor_bits`` a message has this factor among its numbers. If there is no other number, a word of any value
is in the place of the numbers: so each message has a word that the block takes after b.

For powers N = e k - 1, ``inverse`` = e. It is a multiple of the order of the base if k is an inverse of e modulo that
order, as the private exponent of an RSA key is. Nothing but k is needed for it: bit i of N is a_i + k_i e modulo 2,
where a_0 = -1 and a_(i+1) = (a_i + k_i e) / 2, rounded down. Jobs have a count then:

    message in           command, words of digits of a thread, words of k, then for each thread: k, its base
    words to the machine command, passes of the loop, words of digits, then for each thread: the digits of k', its base

All words of digits are full. A job with fewer words than the most has the last rows of the table. The sum has all bits.

With ``factor_bits`` powers have b too, in front of the base, and a second exponent r' N - 1, r' odd and as long as r:
its sum follows the first one, with -1 in place of k, and its digits take turns with those of k'.

For each thread, in cycles that depend on no number if random words are there when they are wanted:

    take k            a word a cycle into a memory
    take r            a random word a cycle into a register
    sum               a bit a cycle, the lowest first: bits of r N from a multiplier with N in series and r in parallel,
                      of k, and of the constant of the recoding (`serial`), added with carries, into a
                      memory; a ladder stores differences of neighbouring bits
    digits            each word of digits is gathered bit by bit, then sent
    b                 each word of it is taken from the port, then sent
    numbers           pass

The sums and the digits of a program are rows of one table, in this order: the bits of the orders and of the constants,
or the place of a bit. A word of digits has PACK rows. r and the partial product are cleared after the sum, and the
last word of b after it is given.

An alarm, of a health test or because no random word comes, lasts until the reset; then nothing enters the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from modmill.contract import ALARM
from modmill.engines.machine.layout import PACK, SETUP, MicrocodeLayout
from modmill.engines.machine.program_memory import chosen
from modmill.engines.machine.random_port import PORTS, RANDOM_WORD, HealthTests, RandomPort
from modmill.engines.machine.serial import Serial
from modmill.engines.machine.top import Coprocessor
from modmill.rtl.delay import later


@dataclass(frozen=True)
class Blinding:
    """What a `Blinder` does. ``bits``: of r. ``scalar_bits``: of k. ``orders``: the multiples N, one or two, or none
    with an ``inverse`` e: then N is e k - 1, the programs are powers, and their recodings have no constant.
    ``recodings``: of each program the recoding of its secret scalar, None if it passes. ``tests``: of random words.
    ``factor_bits``: of b, 0 if messages have b."""

    bits: int
    scalar_bits: int
    orders: tuple[int, ...]
    recodings: tuple[Serial | None, ...]
    tests: HealthTests
    factor_bits: int = 0
    inverse: int = 0

    def scalar_words(self, word: int) -> int:
        """Number of words of k, for words of ``word`` bits."""
        return -(-self.scalar_bits // word)

    @property
    def flagged(self) -> bool:
        """Whether a word behind k chooses the order."""
        return len(self.orders) > 1

    @property
    def by_parity(self) -> bool:
        """Whether a constant of a recoding depends on the parity of the scalar."""
        return any(recoding.even != recoding.odd for recoding in self.recodings if recoding)

    @property
    def random_words(self) -> int:
        """Number of random words for each scalar."""
        return -(-self.bits // RANDOM_WORD)

    def factor_words(self, layout: MicrocodeLayout) -> int:
        """Number of random words for each b."""
        return -(-self.factor_bits // layout.word) * -(-layout.word // RANDOM_WORD)

    def number_words(self, program: int, layout: MicrocodeLayout) -> int:
        """Words of the numbers of a thread, of a message to the blinder; 1 if it has none."""
        if self.alone(program, layout):
            return 1
        drawn = bool(self.factor_bits and self.recodings[program])
        return (len(layout.programs[program].inputs) - drawn) * layout.number_words

    def alone(self, program: int, layout: MicrocodeLayout) -> bool:
        """Whether a program has no number but b. Then a message has a word, of any value, in place of the numbers."""
        return bool(self.factor_bits and self.recodings[program]) and len(layout.programs[program].inputs) == 1

    @property
    def length(self) -> int:
        """Number of bits of the longest sum, or of both sums together."""
        return max(recoding.length for recoding in self.recodings if recoding)

    @property
    def sums(self) -> int:
        """Number of sums for each scalar or exponent."""
        return 2 if self.inverse and self.factor_bits else 1

    def passes(self, program: int, layout: MicrocodeLayout, count: int) -> int:
        """Passes of the loop of a job with ``count`` words of digits, all of which are full."""
        return count * layout.per_word // sum(step.advance for step in layout.programs[program].loop) - 1

    @property
    def widest(self) -> int:
        """The program with the longest sum, a job of which overwrites all that the block remembers."""
        return max((r.length, k) for k, r in enumerate(self.recodings) if r)[1]

    def extra_words(self, program: int, layout: MicrocodeLayout) -> int:
        """Words of a thread in front of its numbers, of a message to the blinder."""
        if self.recodings[program] is None:
            return layout.digit_words(program)
        return self.scalar_words(layout.word) + self.flagged

    def cycles(self, program: int, layout: MicrocodeLayout) -> int:
        """Most cycles of the block for a job of a program, besides those of its words, if no random word is awaited."""
        recoding = self.recodings[program]
        if recoding is None:
            return 0
        given = (layout.number_words + self.factor_words(layout)) * 4 if self.factor_bits else 0
        sent = layout.digit_words(program) * (PACK + 6)
        return layout.threads * (recoding.length + sent + (16 + self.random_words) * self.sums + given)


class _Table:
    """The rows of all programs. ``starts``: index of the first row of each one."""

    def __init__(self, blinding: Blinding, layout: MicrocodeLayout) -> None:
        self.rows, self.starts, self.of_sums = list[int](), list[int](), bool(blinding.orders)
        self.absent = 1 << max(1, (blinding.length - 1).bit_length())  # as a place: the bit is 0
        for program, recoding in enumerate(blinding.recodings):
            self.starts.append(len(self.rows))
            if recoding is None:
                continue
            numbers = (*blinding.orders, recoding.even, *([recoding.odd] if blinding.by_parity else []))
            if self.of_sums:
                self.rows += [sum((x >> i & 1) << k for k, x in enumerate(numbers)) for i in range(recoding.length)]
            flat = [None] * (layout.digit_words(program) * PACK)
            for number, digit in enumerate(recoding.places):
                at = number // layout.per_word * PACK + number % layout.per_word * layout.digit_bits
                flat[at : at + len(digit)] = digit  # type: ignore[assignment]
            self.rows += [self.absent if place is None else place for place in flat]
        self.width = max((len(blinding.orders) + 1 + blinding.by_parity) * self.of_sums, self.absent.bit_length())


class Blinder(wiring.Component):
    """The block in front of a machine of a ``layout``: stream ``i`` as above, ``c`` to the machine, and random words.

    ``setup``: number of words of SETUP. Words that pass do so in the same cycle.
    Cost on ECP5 in an engine for P-256 with 64 bits of r: 813 LUTs, 429 registers, a block RAM; for
    powers by 512 bits 747 LUTs, 471 registers, 2 block RAMs. Latency: 0 cycles of words that pass.
    """

    def __init__(self, blinding: Blinding, layout: MicrocodeLayout, setup: int) -> None:
        self.blinding, self.layout, self._setup = blinding, layout, setup
        word = layout.word
        super().__init__({
            "i_valid": In(1), "i_ready": Out(1), "i_data": In(word),
            "c_valid": Out(1), "c_ready": In(1), "c_data": Out(word), **PORTS, ALARM: Out(1),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.port = self._port = port = RandomPort(self.blinding.tests)
        alarm, calm = Signal(name="alarm"), Signal(name="calm", init=1)
        raised = alarm | ~calm
        causes = port.repeated | port.frequent | port.missing | port.torn
        with m.If(causes | raised):  # one of the two is enough
            m.d.sync += [alarm.eq(1), calm.eq(0)]
        m.d.comb += [
            port.random_valid.eq(self.random_valid), port.random_data.eq(self.random_data),
            self.random_ready.eq(port.random_ready), port.stop.eq(raised), getattr(self, ALARM).eq(raised),
        ]  # fmt: skip
        self._passing, self._taking, self._giving = (Signal(name=name) for name in ("passing", "taking", "giving"))
        self._gathered = Signal(PACK, name="gathered", reset_less=True)
        m.d.comb += [
            self.i_ready.eq((self._taking | (self._passing & self.c_ready)) & ~raised),
            self.c_valid.eq((self._giving | (self._passing & self.i_valid)) & ~raised),
            self.c_data.eq(Mux(self._passing, self.i_data, self._gathered)),
        ]  # fmt: skip
        self._entered = self.i_valid & self.i_ready
        _States(m, self).states()
        return m


class _States:
    """Control and registers of a `Blinder`."""

    def __init__(self, m: Module, of: Blinder) -> None:
        blinding, layout = of.blinding, of.layout
        self.m, self.of, self.blinding, self.layout = m, of, blinding, layout
        self.entered, self.port = of._entered, of._port
        self.table = table = _Table(blinding, layout)
        self.program = Signal(range(max(2, len(blinding.recodings))), name="program", reset_less=True)
        self.setup = Signal(name="is_setup", reset_less=True)
        self.parts = -(-layout.word // RANDOM_WORD)  # random words that fill a word
        self.secret = ~self.setup & self._of_program([int(bool(recoding)) for recoding in blinding.recodings])
        self.numbers = [blinding.number_words(k, layout) for k in range(len(layout.programs))]
        head = 2 * layout.counted
        self.plain = [head + layout.threads * (layout.digit_words(k) + n) for k, n in enumerate(self.numbers)]
        most = max(of._setup, *self.plain)
        self.left = Signal(range(max(most, blinding.length) + 1), name="left", reset_less=True)
        self.thread = Signal(range(max(2, layout.threads)), name="thread", reset_less=True)
        self.at = Signal(range(len(table.rows) + 1), name="at", reset_less=True)
        self.last_thread = later(m, self.thread == layout.threads - 1, "last_thread")
        self.count = Signal(range(layout.digit_words(0) + 1), name="count", reset_less=True)  # of powers
        self.summing, self.clear = Signal(name="summing"), Signal(name="clear")
        self.second = Signal(name="second_sum") if blinding.sums > 1 else Const(0)
        m.submodules.table = rows = memory.Memory(shape=table.width, depth=len(table.rows), init=table.rows)
        read = rows.read_port()
        m.d.comb += read.addr.eq(self.at)
        self.row = read.data
        self._scalar()
        self._factor()
        self._sum()
        self._gather()

    def _of_program(self, values: Sequence[int]) -> Any:
        """The value of the program that runs."""
        return chosen(self.program, values)

    def _scalar(self) -> None:
        """The memory of k, and its bits in turn: ``bit`` while summing."""
        m, word = self.m, self.layout.word
        words = self.blinding.scalar_words(word)
        m.submodules.scalar = kept = memory.Memory(shape=word, depth=max(2, words), init=[])
        write, read = kept.write_port(), kept.read_port()
        self.write, self.place = write, Signal(range(words + 1), name="scalar_word", reset_less=True)
        rest = Signal(word, name="rest", reset_less=True)
        turn = Signal(range(word), name="turn")
        now = Mux(turn == 0, Mux(self.place == words, 0, read.data), rest)
        self.bit = now[0]
        m.d.comb += [write.addr.eq(self.place), write.data.eq(self.of.i_data), read.addr.eq(self.place)]
        with m.If(self.summing):
            m.d.sync += [rest.eq(now >> 1), turn.eq(Mux(turn == word - 1, 0, turn + 1))]
            with m.If((turn == 0) & (self.place != words)):
                m.d.sync += self.place.eq(self.place + 1)
        with m.If(self.clear):
            m.d.sync += [rest.eq(0), turn.eq(0)]

    def _factor(self) -> None:
        """r, and the bits of r N in turn: ``product``."""
        m, blinding = self.m, self.blinding
        size = max(blinding.random_words, self.parts) * RANDOM_WORD
        words, part = Signal(size, name="factor", reset_less=True), Signal(blinding.bits, name="part")
        with m.If(self.port.there):
            m.d.sync += words.eq(Cat(words, self.port.word)[RANDOM_WORD:])
        factor = words[-blinding.random_words * RANDOM_WORD :][: blinding.bits]
        self.words, self.factor = words, factor | self.second if blinding.sums > 1 else factor
        self.flag = Signal(name="flag", reset_less=True)
        order = self._order()
        total = Signal(blinding.bits + 1, name="total")
        m.d.comb += total.eq(part + Mux(order, self.factor, 0))
        self.product = part[0] ^ (order & self.factor[0])
        with m.If(self.summing):
            m.d.sync += part.eq(total >> 1)
        with m.If(self.clear):
            m.d.sync += [words.eq(0), part.eq(0)]

    def _order(self) -> Value:
        """The bits of N in turn."""
        m, blinding, e = self.m, self.blinding, self.blinding.inverse
        if not e:
            return Mux(self.flag, self.row[1], self.row[0]) if blinding.flagged else self.row[0]
        multiple = Signal(signed(e.bit_length() + 1), name="multiple", init=-1)
        with m.If(self.summing):
            m.d.sync += multiple.eq((multiple + Mux(self.bit, e, 0)) >> 1)
        with m.If(self.clear):
            m.d.sync += multiple.eq(-1)
        return multiple[0] ^ self.bit  # e is odd

    def _sum(self) -> None:
        """The bits of the sum, into their memory."""
        m, depth = self.m, self.blinding.length
        m.submodules.bits = bits = memory.Memory(shape=1, depth=max(2, depth), init=[])
        write, self.bits = bits.write_port(), bits.read_port()
        place, carry = Signal(range(max(2, depth)), name="bit_place"), Signal(2, name="carry")
        before, total = Signal(name="bit_before"), Signal(3, name="bit_sum")
        added = self.bit | self.second if self.blinding.sums > 1 else self.bit
        m.d.comb += total.eq(added + self.product + self._constant() + carry)
        gray = self._of_program([int(bool(r and r.gray)) for r in self.blinding.recodings])
        m.d.comb += [
            write.addr.eq(place), write.data.eq(total[0] ^ (before & gray)), write.en.eq(self.summing),
        ]  # fmt: skip
        with m.If(self.summing):
            m.d.sync += [place.eq(place + 1), carry.eq(total >> 1), before.eq(total[0])]
        with m.If(self.clear):
            again = self.blinding.sums > 1
            m.d.sync += [place.eq(Mux(self.second, 0, place) if again else 0), carry.eq(0), before.eq(0)]

    def _constant(self) -> Value:
        """The bits of the constant in turn; its parity is known from the first bit on."""
        m, at = self.m, len(self.blinding.orders)
        if not self.table.of_sums:
            return Const(0)
        if not self.blinding.by_parity:
            return self.row[at]
        parity, first = Signal(name="parity", reset_less=True), Signal(name="first", init=1)
        now = Mux(first, self.bit ^ self.product, parity)
        with m.If(self.summing):
            m.d.sync += [parity.eq(now), first.eq(0)]
        with m.If(self.clear):
            m.d.sync += [parity.eq(0), first.eq(1)]
        return Mux(now, self.row[at + 1], self.row[at])

    def _gather(self) -> None:
        """Digits from bits: a bit is asked for in each of PACK cycles, and comes into ``gathered`` two cycles later."""
        m, absent = self.m, self.table.absent
        self.asks = Signal(name="asks")
        asked = later(m, self.asks, "asked")
        comes, none = later(m, asked, "comes"), later(m, self.row[absent.bit_length() - 1], "none")
        m.d.comb += self.bits.addr.eq(self.row[: len(self.bits.addr)])
        with m.If(comes):
            m.d.sync += self.of._gathered.eq(Cat(self.of._gathered, self.bits.data & ~none)[1:])

    def states(self) -> None:
        """Add all states, in the order of a message."""
        with self.m.FSM(name="blinder"):
            self._command()
            if self.layout.counted:
                self._take_count()
            self._take()
            self._add()
            self._give()
            if self.blinding.factor_bits:
                self._draw()
            self._pass()

    def _command(self) -> None:
        """The first word of a message passes."""
        m, of = self.m, self.of
        with m.State("COMMAND"):
            m.d.comb += of._passing.eq(1)
            m.d.sync += self.thread.eq(0)
            with m.If(self.entered):
                m.d.sync += [self.setup.eq(of.i_data == SETUP), self.program.eq(of.i_data - 1)]
                m.next = "CHOOSE"
        with m.State("CHOOSE"):
            plain = Mux(self.setup, of._setup, self._of_program(self.plain))
            m.d.sync += [self.left.eq(plain), self.place.eq(0)]
            m.next = "PASS"
            with m.If(self.secret):
                m.next = "COUNT" if self.layout.counted else "SCALAR"
            with m.Elif(plain == 0):
                m.next = "COMMAND"

    def _take_count(self) -> None:
        """The count enters, and the words that the machine has in its place are given."""
        m, of = self.m, self.of
        passes = self.blinding.passes(0, self.layout, 1) + 1
        with m.State("COUNT"):
            m.d.comb += of._taking.eq(1)
            with m.If(self.entered):
                m.d.sync += self.count.eq(of.i_data)
                m.next = "WORDS OF SCALAR"
        with m.State("WORDS OF SCALAR"):
            m.d.comb += of._taking.eq(1)
            with m.If(self.entered):
                m.next = "PASSES"
        for state, word, following in (
            ("PASSES", self.count * passes - 1, "WORDS"), ("WORDS", self.count, "SCALAR"),
        ):  # fmt: skip
            with m.State(state):
                m.d.comb += [of._giving.eq(1), of.c_data.eq(word)]
                with m.If(of.c_valid & of.c_ready):
                    m.next = following

    def _take(self) -> None:
        """k, the flag and r enter."""
        m, blinding = self.m, self.blinding
        words = blinding.scalar_words(self.layout.word)
        with m.State("SCALAR"):
            m.d.comb += [self.of._taking.eq(1), self.write.en.eq(self.entered)]
            m.d.sync += self.left.eq(blinding.random_words)
            with m.If(self.entered):
                m.d.sync += self.place.eq(self.place + 1)
                with m.If(self.place == words - 1):
                    m.next = "FLAG" if blinding.flagged else "RANDOM"
        if blinding.flagged:
            with m.State("FLAG"):
                m.d.comb += self.of._taking.eq(1)
                with m.If(self.entered):
                    m.d.sync += self.flag.eq(self.of.i_data[0])
                    m.next = "RANDOM"
        with m.State("RANDOM"):
            m.d.comb += self.port.take.eq(1)
            m.d.sync += [self.place.eq(0), self.at.eq(self._start())]
            with m.If(self.port.there):
                m.d.sync += self.left.eq(self.left - 1)
                with m.If(self.left == 1):
                    m.next = "BEGIN"

    def _start(self) -> Value:
        """The first row of the table for a job: with fewer words of digits than the most it has the last rows."""
        if self.layout.counted:
            return Value.cast((self.layout.digit_words(0) - self.count) * PACK)
        return Value.cast(self._of_program(self.table.starts))

    def _add(self) -> None:
        """The sum; a row of the table comes a cycle after its address."""
        m, at, left, step = self.m, self.at, self.left, int(self.table.of_sums)
        with m.State("BEGIN"):  # the first row and the first word of k are read
            m.d.sync += [
                at.eq(at + step),
                left.eq(
                    self._of_program([r.length // self.blinding.sums if r else 0 for r in self.blinding.recodings])
                ),
            ]
            m.next = "SUM"
        with m.State("SUM"):
            m.d.comb += self.summing.eq(1)
            m.d.sync += left.eq(left - 1)
            with m.If(left == 1):
                m.next = "SUMMED"
            with m.Else():
                m.d.sync += at.eq(at + step)
        with m.State("SUMMED"):
            m.d.comb += self.clear.eq(1)
            digit_words = [self.layout.digit_words(k) for k in range(len(self.numbers))]
            m.d.sync += left.eq(self.count if self.layout.counted else self._of_program(digit_words))
            m.next = "GATHER"
            if self.blinding.sums > 1:
                m.d.sync += self.second.eq(~self.second)
                with m.If(~self.second):
                    m.d.sync += left.eq(self.blinding.random_words)
                    m.next = "RANDOM"

    def _give(self) -> None:
        """Words of digits are gathered and given."""
        m, at, left = self.m, self.at, self.left
        count = Signal(range(PACK + 2), name="asked_bits")
        with m.State("GATHER"):
            m.d.comb += self.asks.eq(count < PACK)
            m.d.sync += count.eq(count + 1)
            with m.If(self.asks):
                m.d.sync += at.eq(at + 1)
            with m.If(count == PACK + 1):
                m.d.sync += count.eq(0)
                m.next = "GIVE"
        with m.State("GIVE"):
            m.d.comb += self.of._giving.eq(1)
            with m.If(self.of.c_valid & self.of.c_ready):
                m.d.sync += left.eq(left - 1)
                m.next = "GATHER"
                with m.If(left == 1):
                    if self.blinding.factor_bits:
                        m.d.sync += left.eq(self.layout.number_words)
                        m.next = "DRAW"
                    else:
                        m.d.sync += left.eq(self._of_program(self.numbers))
                        m.next = "PASS"

    def _pass(self) -> None:
        """The numbers of a thread pass, or all that is left of a message without secret scalars."""
        m, left = self.m, self.left
        again = later(m, self.secret, "secret_program")
        with m.State("PASS"):
            m.d.comb += self.of._passing.eq(1)
            with m.If(self.entered):
                m.d.sync += left.eq(left - 1)
                with m.If(left == 1):
                    self._next_thread(again)

    def _next_thread(self, secret: Value) -> None:
        """After the last word of a thread: the next message, or the scalar of the next thread."""
        m = self.m
        m.d.sync += [self.thread.eq(self.thread + 1), self.place.eq(0)]
        m.next = "COMMAND"
        with m.If(secret & ~self.last_thread):
            m.next = "SCALAR"

    def _draw(self) -> None:
        """The words of b, each from new random words; those beyond its bits are 0."""
        m, left, count = self.m, self.left, self.layout.number_words
        unfilled = count - -(-self.blinding.factor_bits // self.layout.word)
        drawn = Signal(range(max(2, self.parts)), name="drawn_words")
        alone = [self.blinding.alone(k, self.layout) for k in range(len(self.numbers))]
        none = later(m, self._of_program(alone), "no_numbers")
        with m.State("DRAW"):
            m.d.comb += self.port.take.eq(1)
            with m.If(self.port.there):
                m.d.sync += drawn.eq(drawn + 1)
                with m.If(drawn == self.parts - 1):
                    m.d.sync += drawn.eq(0)
                    m.next = "FACTOR"
        ends = [self.blinding.factor_bits - (count - at) * self.layout.word for at in range(count + 1)]
        masks = [(1 << max(0, min(self.layout.word, bits))) - 1 for bits in ends]  # by the words that are left
        word = self.words[-self.parts * RANDOM_WORD :][: self.layout.word] & chosen(left, masks) | (left == count)
        with m.State("FACTOR"):
            m.d.comb += [self.of._giving.eq(1), self.of.c_data.eq(word)]
            with m.If(self.of.c_valid & self.of.c_ready):
                m.d.sync += left.eq(left - 1)
                m.next = "DRAW"
                if unfilled:
                    with m.If(left <= 1 + unfilled):
                        m.next = "FACTOR"
                with m.If(left == 1):
                    m.d.comb += self.clear.eq(1)
                    m.d.sync += left.eq(self._of_program(self.numbers))
                    m.next = "PASS"
                    if any(alone):
                        with m.If(none):
                            m.next = "DROP"
        if any(alone):
            with m.State("DROP"):
                m.d.comb += self.of._taking.eq(1)
                with m.If(self.entered):
                    self._next_thread(Const(1))


class BlindedCoprocessor(wiring.Component):
    """A coprocessor behind a `Blinder`, as one machine. ``setup``: number of words of SETUP.

    Cost: that of both. Latency: that of the coprocessor.
    """

    def __init__(self, inside: Coprocessor, blinding: Blinding, setup: int) -> None:
        self.inside, self.blinding, self._setup = inside, blinding, setup
        self.sequencer, self.core, self.layout, self.kept = inside.sequencer, inside.core, inside.layout, inside.kept
        members = {name: member for name, member in inside.signature.members.items() if name != ALARM}
        super().__init__({**members, **PORTS, ALARM: Out(1)})

    def cycles(self, program: int, passes: int | None = None) -> int:
        """Cycles from the last word of a job to the first word of its results. A word in place of numbers is taken a
        cycle after the last word of b."""
        return self.inside.cycles(program, passes) - self.blinding.alone(program, self.layout)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.machine = inside = self.inside
        m.submodules.blinder = blinder = Blinder(self.blinding, self.layout, self._setup)
        for name in ("valid", "data"):
            m.d.comb += [
                getattr(blinder, f"i_{name}").eq(getattr(self, f"i_{name}")),
                getattr(inside, f"i_{name}").eq(getattr(blinder, f"c_{name}")),
                getattr(self, f"o_{name}").eq(getattr(inside, f"o_{name}")),
                getattr(blinder, f"random_{name}").eq(getattr(self, f"random_{name}")),
            ]  # fmt: skip
        alarm = getattr(blinder, ALARM)
        if ALARM in inside.signature.members:
            alarm = alarm | getattr(inside, ALARM)
        m.d.comb += [
            self.i_ready.eq(blinder.i_ready), blinder.c_ready.eq(inside.i_ready), inside.o_ready.eq(self.o_ready),
            self.o_last.eq(inside.o_last), self.random_ready.eq(blinder.random_ready),
            getattr(self, ALARM).eq(alarm),
        ]  # fmt: skip
        return m
