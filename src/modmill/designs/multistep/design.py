# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Multi-step radix-2 Montgomery multiplication: s bits of x in each clock, in carry-save, without DSP blocks.

Source:  X. Zhang, X. Dong: A high speed Montgomery processor of 256-bit on FPGA. 2016, Algorithms 2 and 3, Figures 2
         and 3.
Formula: p <- (p + x_i y + q m) / 2,  q = (p + x_i y) mod 2,  for i = 0 ... k - 1, k = s t + r;  z = p or p - m
Range:   p < m + y at every step, so x, y < m give z < m after one subtraction. Without the subtraction, k + 2 steps
         give z < 2 m for x, y < 2 m; k + 1 steps do not.

Deviations from the paper:
- Algorithm 3 uses i for both loops, and its inner loop ends at k - 1. The bit index is i s + j for j < s, and t s + j
  for j < r in the remainder.
- The paper counts only the clocks of the loop, t + [r > 0]. The carry-save result must still be added and compared with
  m. Here this is done word by word during the next product's loop, and it is included in the latency.

The paper's table and claims are in `studies.papers.multistep`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.design import Design, Setting, Source
from modmill.designs.digit_serial import LOADABLE, SUBTRACT, DigitSerial, SerialMachine, put, scanned_bits, word_setting
from modmill.interface import Multiplier
from modmill.numbers.moduli import MAX_BITS
from modmill.schedule import Operation, Operations, Schedule, Step

LEAST_WORD = 16
"""Bits of the final adder, unless a wider adder is needed to finish within the next product's loop."""


@dataclass(frozen=True)
class Params:
    """``k`` steps, ``s`` in each clock; ``word``: bits of the final adder, 0: `adder` chooses."""

    k: int
    s: int
    operand_bits: int
    word: int

    @property
    def loop(self) -> int:
        """Clocks of the loop: t + [r > 0] for k = s t + r."""
        return -(-self.k // self.s)

    @property
    def width(self) -> int:
        """Bits of S and of C, whose sum is below m + y."""
        return self.operand_bits + 1

    @property
    def adder(self) -> int:
        """Bits that the final adder adds in each cycle: ``word``, or the fewest that end within the next loop.

        The latency of 3 + loop + words is then below 2 loops.
        """
        return min(self.word or max(LEAST_WORD, -(-self.width // max(1, self.loop - 4))), self.width)

    @property
    def words(self) -> int:
        """Cycles of the final addition."""
        return -(-self.width // self.adder)


def majority(a: int, b: int, c: int) -> int:
    """Bitwise majority: the carries of a carry-save addition."""
    return a & b | a & c | b & c


def step(s: int, c: int, xy: int, m: int) -> tuple[int, int]:
    """One step on the pair (S, C): add ``xy`` = x_i y, add q ``m``, divide by 2."""
    s, c = s ^ c ^ xy, majority(s, c, xy) << 1
    qm = m if s & 1 else 0
    return (s ^ c ^ qm) >> 1, majority(s, c, qm)


class Kind(Operations):
    """The operation of the loop: s steps, or r, in one clock."""

    STEPS = "p{}"  # the pair (S, C) after i steps


class Multistep(DigitSerial):
    """Multi-step Montgomery multiplication for one modulus, or for all moduli of at most its width."""

    @cached_property
    def params(self) -> Params:
        """Steps and widths."""
        k = scanned_bits(self.bits, self.settings)
        return Params(k, self.settings["s"], self.operand_bits, self.settings["word"])

    @property
    def R(self) -> int:
        return 1 << self.params.k

    @cached_property
    def schedule(self) -> Schedule:
        q = self.params
        loop: list[Step] = []
        for clock in range(1, q.loop + 1):
            loop.append(put(Kind.STEPS(min(clock * q.s, q.k)), "steps", clock, loop[-1:]))
        return self.planned(loop + self.addition(loop[-1], q.words), max(q.loop, q.words))

    def evaluate(self, op: Operation, read: Mapping[Operation, Any], a: int, b: int) -> Any:
        if op.kind is not Kind.STEPS:
            return self.ended(op, read, self.params.adder)
        s, c = next(iter(read.values()), (0, 0))
        (done,) = op.numbers
        for i in range((done - 1) // self.params.s * self.params.s, done):
            s, c = step(s, c, b if a >> i & 1 else 0, self.p)
        return [s, c]

    @property
    def size(self) -> int:
        """Proportional to s steps of the operand's width."""
        return min(self.params.s, self.params.k) * self.params.width // 32

    @property
    def predicted_luts(self) -> int:
        """LUTs of four inputs in the loop: sum and carry of each bit in two carry-save additions for each step."""
        return 4 * self.operand_bits * self.params.s

    def component(self, *, scaled: bool = False) -> Multiplier:
        return Machine(self)

    def facts(self) -> list[tuple[str, str]]:
        q = self.params
        return [
            ("steps", f"k = {q.k} = {q.s} * {q.k // q.s} + {q.k % q.s}: {q.loop} clocks"),
            ("R", f"2^{q.k}"),
            ("operands", "below p" if self.subtract else "below 2 p"),
            ("final adder", f"{q.adder} bits a cycle, {q.words} cycles"),
            ("LUTs of the loop", f"4 * {self.operand_bits} * {q.s} = {self.predicted_luts}"),
            ("modulus", "loaded, one word" if self.loadable else "built in"),
        ]


class CarrySaveAdder(wiring.Component):
    """sum + 2 carry = s + c + ``on`` a, for numbers of ``width`` bits; no carry propagates.

    `Machine.kept` keeps it through synthesis: when a chain of them is flattened, synthesis restructures it for depth
    with wide LUTs, and it takes four times the area.
    Combinational. Cost: 2 LUTs of four inputs for each bit.
    """

    def __init__(self, width: int) -> None:
        ports = {"s": In(width), "c": In(width), "a": In(width), "on": In(1), "sum": Out(width), "carry": Out(width)}
        super().__init__(ports)

    @property
    def latency(self) -> int:
        return 0

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        added = self.a & self.on.replicate(len(self.a))
        m.d.comb += [
            self.sum.eq(self.s ^ self.c ^ added),
            self.carry.eq((self.s & self.c) | (self.s & added) | (self.c & added)),
        ]
        return m


class Machine(SerialMachine):
    """A chain of s steps with registers for (S, C), a final adder and a subtractor.

    Latency: 3 + loop + words. Cost: about 4 s + 4 LUTs for each bit.
    """

    kept = ("add_xy", "add_qm")

    _fitted: Multistep

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        fitted, q = self._fitted, self._fitted.params
        interval = fitted.schedule.interval
        front = self.acceptance(m, fitted.p, fitted.bits)
        modulus = front.modulus

        # ---- control: idle in clock 0; clocks 1 ... loop are the loop; a product ends in clock ``interval``
        clock = Signal(range(interval + 1))
        last = Signal()
        with m.If(front.accept):
            m.d.sync += clock.eq(1)
        with m.Elif(clock == interval):
            m.d.sync += clock.eq(0)
        with m.Elif(clock != 0):
            m.d.sync += clock.eq(clock + 1)
        m.d.comb += last.eq(clock == q.loop)
        front.connect((clock == 0) | (clock == interval))

        # ---- the loop
        x = Signal(max(1, q.k), name="x", reset_less=True)
        y = Signal(fitted.operand_bits, name="y", reset_less=True)
        s, c = Signal(q.width, name="S", reset_less=True), Signal(q.width, name="C", reset_less=True)
        pairs = self._steps(m, s, c, x, y, modulus)
        after_s, after_c = pairs[-1]
        if q.k % q.s and q.loop > 1:
            rest_s, rest_c = pairs[q.k % q.s - 1]
            after_s, after_c = Mux(last, rest_s, after_s), Mux(last, rest_c, after_c)
        with m.If(front.accept):
            m.d.sync += [x.eq(self.i_a), y.eq(self.i_b), s.eq(0), c.eq(0)]
        with m.Else():
            m.d.sync += [x.eq(x >> q.s), s.eq(after_s), c.eq(after_c)]

        # ---- final addition and subtraction
        pair, where = Kind.STEPS(q.k), {Kind.STEPS: [s, c]}
        self.add_and_finish(m, last, after_s, after_c, modulus, q.adder, q.words, pair, where)
        return m

    def _steps(self, m: Module, s: Value, c: Value, x: Value, y: Value, modulus: Value) -> list[tuple[Signal, Signal]]:
        """The pair (S, C) after each step of one clock."""
        width = self._fitted.params.width
        pairs = []
        for j in range(min(self._fitted.params.s, self._fitted.params.k)):
            m.submodules[f"add_xy{j}"] = one = CarrySaveAdder(width + 1)
            m.submodules[f"add_qm{j}"] = two = CarrySaveAdder(width + 1)
            m.d.comb += [one.s.eq(s), one.c.eq(c), one.a.eq(y), one.on.eq(x[j])]
            m.d.comb += [two.s.eq(one.sum), two.c.eq(one.carry << 1), two.a.eq(modulus), two.on.eq(one.sum[0])]
            s, c = Signal(width, name=f"S{j + 1}"), Signal(width, name=f"C{j + 1}")
            m.d.comb += [s.eq(two.sum[1:]), c.eq(two.carry)]
            pairs.append((s, c))
        return pairs


PRINTED_CLOCKS, PRINTED_MHZ, PRINTED_ALUTS = 16, 76.8, 17161
"""Table 1 and Section 4: 256 bits, s = 16, Stratix III. The clocks of the loop are reproduced; frequency and area apply
to another device."""

DESIGNS = (
    Design(
        name="multistep", page="multistep", title="multi-step radix-2 Montgomery multiplication in carry-save",
        source=Source(
            "X. Zhang, X. Dong", "A high speed Montgomery processor of 256-bit on FPGA", "(venue not printed)", 2016,
            "Algorithms 2 and 3, corrected, Figures 2 and 3",
        ),
        needs="any odd modulus",
        settings=(
            Setting(
                "s", int, 16, "steps (bits of x) in each clock", least=1, most=MAX_BITS + 2,
                depends="there are as many steps as bits of x: those of p, 2 more without subtract",
                limits=lambda p, settings: (1, scanned_bits(p.bit_length(), settings)), smaller="lower",
            ),
            word_setting("word", 0, "bits of the final adder in each cycle; 0: the fewest that end within a loop"),
            SUBTRACT, LOADABLE,
        ),
        solve=lambda p, **settings: Multistep(p, settings),
    ),
)  # fmt: skip
