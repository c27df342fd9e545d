# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Multiple-word radix-2 Montgomery multiplication (MWR2MM): a row of processing elements, each for one bit of x.

Source:  A. F. Tenca, C. K. Koc: A Scalable Architecture for Modular Multiplication Based on Montgomery's Algorithm.
         IEEE Transactions on Computers 52(9), 2003, algorithm MWR2MM.
Formula: for each bit i: q = (S + x_i Y) mod 2,  S <- (S + x_i Y + q M) / 2, in words of w bits, one in each cycle
Range:   S < Y + M at every step. A sum of three words and a carry has a carry of at most 2. x, y < p give z < p after
         one subtraction. Without it, two more bits take operands below 2 p to results below 2 p.

An element accepts one of the e words of S, Y and M in each cycle and passes them on two cycles later, with S halved. P
elements process P bits in one pass; k passes process all bits. A pass takes max(e + 1, 2 P + 1) cycles: an element is
busy for e + 1 cycles, and the first words return to the first element after 2 P + 1 cycles.

Deviations from the paper:
- Words are added with carry propagation instead of carry-save, because FPGAs have carry chains.
- k P bits are processed even if k P exceeds the operand's width: R = 2^(k P).
- The subtraction follows the last element, one word in each cycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from modmill.design import Design, Setting, Source
from modmill.designs.digit_serial import LOADABLE, SUBTRACT, DigitSerial, SerialMachine, put, scanned_bits, word_setting
from modmill.interface import Multiplier
from modmill.numbers.moduli import MAX_BITS
from modmill.rtl.acceptance import Acceptance
from modmill.rtl.delay import later
from modmill.rtl.words import widened
from modmill.schedule import Operation, Operations, Schedule, Step

DELAY = 2
"""Cycles from a word at an element to the same word at the next element."""


@dataclass(frozen=True)
class Params:
    """``w`` bits of a word, ``pes`` elements; at least ``steps`` bits of x; operands of ``operand_bits`` bits."""

    w: int
    pes: int
    steps: int
    operand_bits: int

    @property
    def e(self) -> int:
        """Words of S, Y and M; S is below Y + M."""
        return -(-(self.operand_bits + 1) // self.w)

    @property
    def passes(self) -> int:
        """k: passes through the row."""
        return -(-self.steps // self.pes)

    @property
    def period(self) -> int:
        """Cycles of a pass."""
        return max(self.e + 1, DELAY * self.pes + 1)

    @property
    def cycles(self) -> int:
        """Cycles from the first word at the first element to the last word at the output of the last element."""
        if self.e + 1 >= 2 * self.pes + 1:
            return self.passes * (self.e + 1) + 2 * (self.pes - 1)
        return self.passes * (2 * self.pes + 1) + self.e - 2

    @property
    def held(self) -> int:
        """Words in the queue between the last element and the first."""
        return self.period - DELAY * self.pes

    @property
    def returns(self) -> bool:
        """Whether S must be blocked from returning after the last pass.

        No q clears its lowest bit then. That bit would enter as the lowest bit of word ``period`` and move down by one
        bit in each element. It would end in the e words of the result if fewer bits than elements are between them.
        """
        return (self.period - self.e) * self.w < self.pes


class Kind(Operations):
    """The operations of the row. Their words of S leave one in each cycle, the first at the step's end."""

    BIT = "x{}"  # q, and S after bit i of x
    QUEUE = "S{}"  # S after i passes, back at the first element


class TencaKoc(DigitSerial):
    """The systolic row for one modulus, or for all moduli of at most its width."""

    @cached_property
    def params(self) -> Params:
        """Words, elements and passes."""
        steps = scanned_bits(self.bits, self.settings)
        return Params(self.settings["w"], self.settings["pes"], steps, self.operand_bits)

    @property
    def R(self) -> int:
        return 1 << self.params.passes * self.params.pes

    @cached_property
    def schedule(self) -> Schedule:
        q = self.params
        made: list[Step] = []
        for i in range(q.passes * q.pes):
            done, place = divmod(i, q.pes)
            start = 1 + done * q.period + DELAY * place
            if done and not place:
                wait = {"cycles": q.held, "busy": min(q.e, q.period)}
                made.append(put(Kind.QUEUE(done), "queue", made[-1].end, made[-1:], **wait))
            made.append(put(Kind.BIT(i), f"element {place + 1}", start, made[-1:], cycles=DELAY, busy=q.e + 1))
        return self.planned(made + self.subtraction([made[-1]] * q.e), q.passes * q.period)

    def evaluate(self, op: Operation, read: Mapping[Operation, Any], a: int, b: int) -> Any:
        w = self.params.w
        match op.kind:
            case Kind.BIT:
                s = next(iter(read.values()), [0])[-1] + b * (a >> op.numbers[0] & 1)
                q = s & 1
                return [q, (s + self.p * q) >> 1]
            case Kind.QUEUE:
                return next(iter(read.values()))[-1:]
            case _:
                words = {
                    one: [value[-1] >> w * op.numbers[0] & (1 << w) - 1] if one.kind is Kind.BIT else value
                    for one, value in read.items()
                }
                return self.ended(op, words, w)

    def standing(self, op: Operation, value: Any) -> Any:
        return [*value[:-1], value[-1] & (1 << self.params.w) - 1] if isinstance(op.kind, Kind) else value

    @property
    def size(self) -> int:
        """A word in each element, and the passes in the schedule."""
        q = self.params
        return q.pes * (q.w + 16) // 32 + q.passes

    def component(self, *, scaled: bool = False) -> Multiplier:
        return Machine(self)

    def facts(self) -> list[tuple[str, str]]:
        q = self.params
        rule = "k (e + 1) + 2 (P - 1)" if q.e + 1 >= 2 * q.pes + 1 else "k (2 P + 1) + e - 2"
        return [
            ("words", f"e = {q.e} of w = {q.w} bits"),
            ("elements", f"P = {q.pes}, k = {q.passes} passes of {q.period} cycles"),
            ("cycles", f"{rule} = {q.cycles}"),
            ("R", f"2^{q.passes * q.pes}"),
            ("operands", "below p" if self.subtract else "below 2 p"),
            ("modulus", "loaded, one word" if self.loadable else "built in"),
        ]


@dataclass(frozen=True)
class Link:
    """The inputs or outputs of an element: a word of S, of Y and of M, and flags for the first word, for a word of the
    result, and for the last word of the result."""

    s: Value
    y: Value
    modulus: Value
    first: Value
    result: Value
    last: Value


def element(m: Module, i: Link, bit: Value, name: str) -> tuple[Link, Signal]:
    """One processing element: (S + ``bit`` Y + q M) / 2 word by word, and q. ``bit`` is read with the first word.

    Latency: 2 cycles. Cost: two adders of w bits, 4 w flip-flops.
    """
    w = len(i.s)
    held, q = Signal(name=f"{name}_x", reset_less=True), Signal(name=f"{name}_q", reset_less=True)
    x, odd = Signal(name=f"{name}_x_now"), Signal(name=f"{name}_q_now")
    m.d.comb += [x.eq(Mux(i.first, bit, held)), odd.eq(Mux(i.first, i.s[0] ^ (bit & i.y[0]), q))]
    m.d.sync += [held.eq(x), q.eq(odd)]
    carry = Signal(2, name=f"{name}_carry", reset_less=True)
    total = Signal(w + 2, name=f"{name}_total")
    kept = carry & (~i.first).replicate(2)
    m.d.comb += total.eq(i.s + (i.y & x.replicate(w)) + (i.modulus & odd.replicate(w)) + kept)
    low = Signal(w, name=f"{name}_low", reset_less=True)
    s = Signal(w, name=f"{name}_S", reset_less=True)
    m.d.sync += [carry.eq(total[w:]), low.eq(total), s.eq(Cat(low[1:], total[0]))]

    passed: list[Value] = []  # DELAY registers of each; those of flags have a reset
    for kind, value in (("y", i.y), ("m", i.modulus), ("first", i.first), ("result", i.result), ("last", i.last)):
        for k in range(DELAY):
            following = Signal(len(value), name=f"{name}_{kind}{k}", reset_less=kind in ("y", "m"))
            m.d.sync += following.eq(value)
            value = following
        passed.append(value)
    return Link(s, *passed), q


class Control:
    """Counters of the cycle in a pass and of the pass, and the flags of the first element's words.

    ``slot``: cycle of a pass; ``turn``: number of the pass. ``words``: a word of Y and M enters, ``first``: it is the
    lowest one. ``begun``: words of S come back from the last element.
    """

    def __init__(self, m: Module, front: Acceptance, q: Params, interval: int) -> None:
        cycle = Signal(range(interval + 1))
        slot, turn = Signal(range(q.period + 1)), Signal(range(q.passes + 1))
        running, first, words, begun = Signal(), Signal(), Signal(), Signal()
        front.connect((cycle == 0) | (cycle == interval))
        with m.If(front.accept):
            m.d.sync += [cycle.eq(1), slot.eq(0), turn.eq(0), running.eq(1), first.eq(1), words.eq(1), begun.eq(0)]
        with m.Else():
            with m.If(cycle == interval):
                m.d.sync += cycle.eq(0)
            with m.Elif(cycle != 0):
                m.d.sync += cycle.eq(cycle + 1)
            m.d.sync += first.eq(0)
            with m.If(slot == q.e - 1):
                m.d.sync += words.eq(0)
            with m.If(slot == q.period - 1):
                m.d.sync += [slot.eq(0), turn.eq(turn + 1), begun.eq(1)]
                with m.If(turn == q.passes - 1):
                    m.d.sync += [running.eq(0), first.eq(0), words.eq(0)]
                    if q.returns:
                        m.d.sync += begun.eq(0)
                with m.Elif(running):
                    m.d.sync += [first.eq(1), words.eq(1)]
            with m.Elif(running):
                m.d.sync += slot.eq(slot + 1)
        self.slot, self.turn, self.first, self.words, self.begun = slot, turn, first, words, begun


class Machine(SerialMachine):
    """P elements in a row, a queue from the last to the first, and a subtractor behind the last.

    Latency: `Params.cycles` + 3. Cost: two adders of w bits and about 4 w flip-flops for each element; a register of e
    words for Y; a multiplexer for the words of the modulus.
    """

    _fitted: TencaKoc

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        fitted, q = self._fitted, self._fitted.params
        front = self.acceptance(m, fitted.p, fitted.bits)
        control = Control(m, front, q, fitted.schedule.interval)
        y, modulus = self._words(m, front, control)
        w, words, final = q.w, control.words, control.turn == q.passes - 1
        back, x = Signal(w, name="S_back"), Signal(q.passes * q.pes, name="x", reset_less=True)
        mask = words.replicate(w)
        link = Link(
            back & control.begun.replicate(w), y[:w] & mask, modulus & mask,
            control.first, words & final, words & final & (control.slot == q.e - 1),
        )  # fmt: skip
        starts: list[Value] = []
        results: list[list[Value]] = []  # q and the word of S of every element
        for i in range(q.pes):
            starts.append(link.first)
            link, odd = element(m, link, x[0], f"e{i + 1}")
            results.append([odd, link.s])
        shift = Signal()
        m.d.comb += shift.eq(Cat(*starts).any())
        with m.If(front.accept):
            m.d.sync += x.eq(self.i_a)
        with m.Elif(shift):
            m.d.sync += x.eq(x >> 1)
        value: Value = link.s  # through the queue
        for k in range(q.held):
            value = later(m, value, f"held{k}")
        m.d.comb += back.eq(value)
        bits = {Kind.BIT(i): results[i % q.pes] for i in range(q.passes * q.pes)}
        self.finish(m, link.s, link.modulus, link.result, link.last, q.e, {Kind.QUEUE: [back], **bits})
        return m

    def _words(self, m: Module, front: Acceptance, control: Control) -> tuple[Signal, Signal]:
        """Y, with the word for the first element in its lowest bits, and the word of M."""
        q = self._fitted.params
        w, e = q.w, q.e
        y = Signal(w * e, name="Y", reset_less=True)
        with m.If(front.accept):
            m.d.sync += y.eq(self.i_b)
        with m.Elif(control.words):
            m.d.sync += y.eq(Cat(y[w:], y[:w]))
        modulus = Signal(w, name="M", reset_less=True)
        following = Signal(range(e + 1))
        whole = widened(front.modulus, w * (e + 1))
        with m.If(front.accept | (control.slot == q.period - 1)):
            m.d.sync += [modulus.eq(whole[:w]), following.eq(1)]
        with m.Else():
            m.d.sync += modulus.eq(whole.word_select(following, w))
            with m.If(following != e):
                m.d.sync += following.eq(following + 1)
        return y, modulus


DESIGNS = (
    Design(
        name="tenca-koc", page="tenca-koc",
        title="multiple-word radix-2 Montgomery multiplication on a row of processing elements",
        source=Source(
            "A. F. Tenca, C. K. Koc",
            "A Scalable Architecture for Modular Multiplication Based on Montgomery's Algorithm",
            "IEEE Transactions on Computers 52(9)", 2003,
            "the algorithm MWR2MM and its pipeline; [6] of Zhang and Dong",
        ),
        needs="any odd modulus",
        settings=(
            word_setting("w", 16, "bits of a word", smaller="lower"),
            Setting(
                "pes", int, 16, "P, processing elements, each for one bit of x", least=1, most=MAX_BITS + 2,
                depends="at most one for each bit of x: those of p, and 2 more without subtract",
                limits=lambda p, settings: (1, scanned_bits(p.bit_length(), settings)), smaller="lower",
            ),
            SUBTRACT, LOADABLE,
        ),
        solve=lambda p, **settings: TencaKoc(p, settings),
    ),
)  # fmt: skip
