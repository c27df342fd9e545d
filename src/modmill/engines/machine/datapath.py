# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Slot memory, adder and multiplier of a coprocessor, cut into slices that act one cycle after another.

    d = L + b     or  L + ~b + 1        L: a multiple of p from the slot memory, 0 for a sum
    s = d + a                           a + b, or a - b + L
    t = s - T                           conditional subtraction: T a multiple of p; t is stored if it is not negative

Each of the three is one addition in every slice. The carry goes through one register to the next slice, which acts one
cycle later. So no carry chain is longer than a slice, numbers need no registers to wait for carries, and control goes
from slice to slice through registers. Slices have no reset: they are empty before the first number after a reset
arrives. Only the multiplier's port needs all bits in the same cycle.

A selection is a sum in which one operand is 0 and L is 0.

A unit that does not add has no adders. Its slices hold bits of any form and also act one cycle after another. In its
selections, if it has any, d | a stands for s.

Residues have no carries. There a slice is a channel, all slices act in the same cycle, and s is folded below 2^w. As ~b
is 2^w - 1 - b, the constant of a difference is reduced by 2^w - 1 in each channel.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from modmill.contract import Residues
from modmill.engines.machine.program_memory import chosen
from modmill.engines.machine.timing import SUBTRACT, SUM, MachineTiming
from modmill.interface import Multiplier
from modmill.numbers.folding import fold_bounds
from modmill.rtl.delay import DelayLines, later
from modmill.rtl.fold import fold_step
from modmill.rtl.memory import BITS_MAX, WIDTH_MAX, BlockRam, even, with_parity

GUARD = 2
"""Additional bits of a sum before its conditional subtraction."""


def control(address: int, trims: int, *, selects: bool = False, parity: bool = False) -> data.StructLayout:
    """Control word of a slice, for addresses of ``address`` bits and ``trims`` multiples T; ``selects``: to select.

    ``read``: address of port A. ``place``: address of port B, at which ``write`` stores the value that was selected in
    the cycle before: the sum, with ``choose`` t instead of s, or with ``result`` the product. ``invert``: subtract the
    number that is read in this cycle. ``take``: the numbers of this and the next cycle are the operands of a product.
    ``begin``: the number of this cycle is b of a sum, the next one a. ``trim``: index of T for the sum that begins.
    ``drop``: the number that is read in this cycle is 0 in the sum, which so is the other operand. With ``parity``,
    ``used`` and ``used_b``: what ports A and B read in this cycle is used.
    """
    return data.StructLayout({
        "read": address, "place": address, "write": 1, "result": 1, "choose": 1, "invert": 1, "take": 1,
        "begin": int(trims > 0), "trim": max(0, trims - 1).bit_length(),
        **({"drop": 1} if selects else {}), **({"used": 1, "used_b": 1} if parity else {}),
    })  # fmt: skip


class _Slice(wiring.Component):
    """A slice: some bits of all numbers, with carries, or a channel of residues.

    ``control`` acts one cycle later and goes to the next slice through ``forward``. ``carries``, ``carried``: carries
    into and out of d, s and t; each arrives from the slice below in the cycle in which it is used. The operands of a
    product appear at ``a`` and ``b``; an operand that is ``moved`` appears one cycle after ``move``. The result ``r``,
    or with ``given`` the ``number``, is written with its current value, or if ``captured`` with its value in the cycle
    of ``capture``. ``multiples``: the slice's bits of each T, None if T is loaded; ``set_trim`` then loads it with the
    captured value. ``u``: of a channel modulo 2^w - u. ``low``, ``high``: whether it is the lowest or highest slice.
    ``wrong``, of a unit with parity: a number that is used had a wrong one, 4 cycles after its ``control``.

    Latency: 3 cycles from ``control`` to ``q``, 1 cycle to ``forward``.
    """

    def __init__(
        self, width: int, depth: int, timing: MachineTiming, *, low: bool, high: bool, u: int,
        multiples: Sequence[int | None], moved: tuple[bool, bool], captured: bool, selects: bool,
    ) -> None:  # fmt: skip
        self.width, self.depth, self.timing = width, depth, timing
        self.moved, self.captured = moved, captured
        self.low, self.high, self.u, self.multiples, self.selects = low, high, u, tuple(multiples), selects
        layout = self.layout = control(
            depth.bit_length() - 1, len(self.multiples), selects=selects, parity=timing.parity
        )
        super().__init__({
            "control": In(layout), "forward": Out(layout), "carries": In(3), "carried": Out(3),
            "q": Out(width), "a": Out(width), "b": Out(width), "move": In(1),
            "r": In(width), "number": In(width), "given": In(1), "capture": In(1),
            "set_trim": In(len(self.multiples)), **({"wrong": Out(1)} if timing.parity else {}),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # ---- control: acts here one cycle later
        word = Signal(self.layout, name="told", reset_less=True)
        write, take = Signal(name="write_here", reset_less=True), Signal(3, name="take_here", reset_less=True)
        invert = Signal(2, name="invert_here", reset_less=True)
        m.d.sync += [
            word.eq(self.control),
            write.eq(self.control.write),
            take.eq(Cat(self.control.take, take)),
            invert.eq(Cat(word.invert, invert)),
        ]
        m.d.comb += [self.forward.eq(word), self.forward.write.eq(write), self.forward.take.eq(take[0])]

        # ---- results and numbers from outside
        given, capture, move = (Signal(name=f"{name}_here", reset_less=True) for name in ("given", "capture", "move"))
        m.d.sync += [given.eq(self.given), capture.eq(self.capture), move.eq(self.move)]
        held: Value = Mux(given, self.number, self.r)
        if self.captured:
            arriving, held = later(m, held, "arriving"), Signal(self.width, name="held", reset_less=True)
            with m.If(capture):
                m.d.sync += held.eq(arriving)

        # ---- memory
        stored = Signal(self.width, reset_less=True)
        lift = self._memory(m, word, write, stored)
        kept_a, kept_b = (Signal(self.width, name=f"kept_{name}", reset_less=True) for name in "ab")
        taking = Signal(name="take_a", reset_less=True)
        m.d.sync += taking.eq(take[2])
        with m.If(take[2]):
            m.d.sync += kept_b.eq(self.q)
        with m.If(taking):
            m.d.sync += kept_a.eq(self.q)
        for port, kept, moved in zip((self.a, self.b), (kept_a, kept_b), self.moved, strict=True):
            if moved:
                out = Signal(self.width, name=f"{kept.name}_moved", reset_less=True)
                with m.If(move):
                    m.d.sync += out.eq(kept)
                kept = out
            m.d.comb += port.eq(kept)

        # ---- sums
        if not self.timing.sums:
            m.d.sync += stored.eq(held)
            return m
        inverting = invert[1]
        read: Value = self.q
        if self.selects:
            dropping = _in(m, word.drop, 2, "drop_here")
            read &= ~dropping.replicate(self.width)
        x = later(m, self._wide(read) ^ inverting.replicate(len(self._wide(self.q))), "x")
        if not self.timing.adders:
            total = self._selected(m, x)
        elif isinstance(self.timing.contract.operand, Residues):
            total = self._folded(m, x, lift)
        else:
            total = self._carried(m, x, lift, inverting, word, held)
        m.d.sync += stored.eq(Mux(word.result, held, total))
        return m

    def _wide(self, value: Value) -> Value:
        """Add guard bits in the highest slice of a unit with conditional subtraction."""
        return Cat(value, Const(0, GUARD)) if self.high and self.timing.conditional_subtracts else value

    def _memory(self, m: Module, word: data.View, write: Value, stored: Value) -> Value:
        """Add the block RAMs; return the output of port B."""
        size = min(WIDTH_MAX, BITS_MAX // self.depth)
        q: Value = self.q
        if self.timing.parity:
            q, stored = Cat(q, Signal(name="parity")), with_parity(stored)
        read = []
        for k, first in enumerate(range(0, len(q), size)):
            part = slice(first, min(first + size, len(q)))
            m.submodules[f"ram_{k}"] = ram = BlockRam(part.stop - part.start, self.depth, ())
            m.d.comb += [
                ram.a_address.eq(word.read), ram.b_address.eq(word.place), ram.b_write.eq(write),
                ram.b_d.eq(stored[part]), q[part].eq(ram.a_q),
            ]  # fmt: skip
            read.append(ram.b_q)
        if not self.timing.parity:
            return Cat(*read)
        self._check(m, q, Cat(*read))
        return Cat(*read)[: self.width]

    def _check(self, m: Module, q: Value, b_q: Value) -> None:
        """Check the parities of the outputs of both ports in the cycle after them, where they are used."""
        used: Value = Cat(self.control.used, self.control.used_b)
        for k in range(4):
            now = Signal(2, name=f"used_{k}")  # with a reset: after it nothing is used
            m.d.sync += now.eq(used)
            used = now
            if k == 0:
                m.d.comb += [self.forward.used.eq(now[0]), self.forward.used_b.eq(now[1])]
        m.d.comb += self.wrong.eq((used & later(m, Cat(even(q), even(b_q)), "even")).any())

    def _carried(self, m: Module, x: Value, lift: Value, inverting: Value, word: data.View, held: Value) -> Value:
        """Compute d, s and t with their carries; return the sum in the cycle before it is written."""
        timing = self.timing
        carries: list[Value] = [self.carries[k] for k in range(3)]
        if self.low:
            carries = [later(m, inverting, "plus_one"), Const(0, 1), Const(1, 1)]
        d, s, t = (Signal(len(x), name=name, reset_less=True) for name in "dst")
        outs = Signal(3, name="carries_out", reset_less=True)

        def add(k: int, name: Signal, one: Value, two: Value) -> None:
            total = (Cat(Const(1, 1), one) + Cat(carries[k], two))[1:]
            m.d.sync += [name.eq(total), outs[k].eq(total[len(x)])]

        add(0, d, self._wide(lift), x)
        if self.low:
            m.d.sync += [s.eq(total := d + x), outs[1].eq(total[len(x)])]
        else:
            add(1, s, d, x)  # x is b in one cycle, a in the next
        m.d.comb += self.carried.eq(outs)
        lines = DelayLines(m, max(4, timing.delay), name="waiting")
        if not timing.conditional_subtracts:
            return lines.straight(s[: self.width], timing.delay - SUM, name="waiting")
        add(2, t, s, ~self._wide(self._multiple(m, word, held)))
        begun = _in(m, word.begin, SUM - 1, "begun")  # s in this cycle, its t in the next one
        both = Mux(begun, s, t)[: self.width]
        return lines.either(both, (timing.delay - SUM, timing.delay - SUBTRACT), self.control.choose, name="waiting")

    def _selected(self, m: Module, x: Value) -> Value:
        """Return the operand that is not dropped in the cycle before it is written."""
        d = later(m, x, "d")
        s = later(m, d | x, "s")  # x is b in one cycle, a in the next
        lines = DelayLines(m, max(4, self.timing.delay), name="waiting")
        return lines.straight(s, self.timing.delay - SUM, name="waiting")

    def _multiple(self, m: Module, word: data.View, held: Value) -> Value:
        """Return T for the sum that is in s."""
        multiples: list[Value] = []
        for k, constant in enumerate(self.multiples):
            if constant is None:
                multiple = Signal(self.width, name=f"multiple_{k}", reset_less=True)
                with m.If(later(m, self.set_trim[k], f"set_trim_{k}")):
                    m.d.sync += multiple.eq(held)
                multiples.append(multiple)
            else:
                multiples.append(Const(constant, self.width))
        found = chosen(_in(m, word.trim, SUM - 2, "trim"), multiples)
        return later(m, found, "multiple") if len(multiples) > 1 else found

    def _folded(self, m: Module, x: Value, lift: Value) -> Value:
        """Return the folded sum of three residues in the cycle before it is written."""
        form = self.timing.contract.operand
        assert isinstance(form, Residues)
        w, u = form.base.w, self.u
        d = later(m, lift + x, "d")
        total: Value = later(m, (d + x)[: w + 2], "s")  # x is b in one cycle, a in the next
        bound = 3 << w
        steps = len(fold_bounds(bound, w, u))
        for k in range(1, steps + 1):
            folded, bound = fold_step(m, total, bound, w, u, name=f"fold{k}")
            total = later(m, folded, f"fold{k}_here")
        lines = DelayLines(m, max(4, self.timing.delay), name="waiting")
        return lines.straight(total[:w], self.timing.delay - SUM - steps, name="waiting")


def _in(m: Module, value: Value, cycles: int, name: str) -> Value:
    """Delay ``value`` by ``cycles`` cycles, for few bits."""
    for k in range(cycles):
        value = later(m, value, f"{name}_{k}")
    return value


class FieldUnit(wiring.Component):
    """A multiplier and the slices around it.

    ``control``: control word of the lowest slice. ``below``: whether a sum was below T, ``timing.least_delay`` cycles
    after the address of its b. ``q``: the number at an address, after all slices have read it. ``move``, ``given``,
    ``capture``, ``set_trim`` and ``number``: as of a slice, to all slices at once. ``wrong``: a cycle after that of any
    slice.

    Cost for numbers of w bits on ECP5 with conditional subtraction: about 9 w LUTs, 8 w flip-flops and ceil(w / 18)
    block RAMs; 2 w flip-flops more for a multiplier that does not hold its results. Latency: 3 cycles from
    ``control`` to the lowest slice of ``q``, in a chain one more for each slice above.
    """

    kept = ("slice",)

    def __init__(
        self, core: Multiplier, timing: MachineTiming, depth: int, multiples: Sequence[int | None], selects: bool
    ) -> None:
        """``depth``: of the slot memory. ``multiples``: each T, None if it is loaded. ``selects``: with selections."""
        self.core, self.timing, self.depth, self.multiples = core, timing, depth, tuple(multiples)
        self.selects, width = selects, timing.contract.operand.width
        super().__init__({
            "control": In(control(
                depth.bit_length() - 1, len(self.multiples), selects=selects, parity=timing.parity
            )),
            "below": Out(1), "q": Out(width), "number": In(width),
            "move": In(1), "given": In(1), "capture": In(1), "set_trim": In(len(self.multiples)),
            **({"wrong": Out(1)} if timing.parity else {}),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = self.core
        word: Value = self.control
        carries: Value = Const(0, 3)
        form = self.timing.contract.operand
        first, count, chained = 0, len(self.timing.slices), self.timing.chained
        wrong = []
        for k, width in enumerate(self.timing.slices):
            part = slice(first, first + width)
            piece = _Slice(
                width, self.depth, self.timing, low=k == 0, high=k == count - 1,
                u=form.base.u[k] if isinstance(form, Residues) and not chained else 0,
                multiples=[None if T is None else T >> first & ((1 << width) - 1) for T in self.multiples],
                moved=(self._moved(0, k, part), self._moved(1, k, part)), captured=self._captured(k, part),
                selects=self.selects,
            )  # fmt: skip
            m.submodules[f"slice_{k}"] = piece
            m.d.comb += [
                piece.control.eq(word), piece.carries.eq(carries), self.q[part].eq(piece.q),
                piece.move.eq(self.move), core.i_a[part].eq(piece.a), core.i_b[part].eq(piece.b),
                piece.r.eq(core.o_r[part]), piece.number.eq(self.number[part]), piece.given.eq(self.given),
                piece.capture.eq(self.capture), piece.set_trim.eq(self.set_trim),
            ]  # fmt: skip
            if chained:
                word, carries = piece.forward, piece.carried
            first += width
            wrong += [piece.wrong] if self.timing.parity else []
        if wrong:
            m.d.sync += self.wrong.eq(Cat(*wrong).any())
        m.d.comb += self.below.eq(~carries[2])
        return m

    def _moved(self, operand: int, k: int, part: slice) -> bool:
        """Whether slice k reads its next operand before the multiplier has read all bits of this one."""
        accept, kept = self.timing.accept, self.timing.kept(operand, k)
        read = [accept + cycle for bit in range(part.start, part.stop) for cycle in self.core.read_in(operand, bit)]
        return not all(cycle in kept for cycle in read)

    def _captured(self, k: int, part: slice) -> bool:
        """Whether the multiplier may no longer hold a product when slice k writes it."""
        stands = min(self.core.stands(bit) for bit in range(part.start, part.stop))
        return self.timing.written(k) - 1 - self.timing.arrive > stands
