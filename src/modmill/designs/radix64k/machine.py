# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The machine that multiplies digit by digit, one iteration in each cycle: loop, loading of a modulus, binary form.

Source: Section 5 and Figures 1 to 3 of the paper, with the deviations that designs.radix64k.design lists. The
arithmetic is numbers.redundant_digits.Montgomery; its ``quotient`` selects the source of k M.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.contract import Timing
from modmill.designs.radix64k.blocks import (
    DigitsToBinary,
    DigitSums,
    Inverse,
    Multiples,
    SubtractOnce,
    factor_of_last,
    joined,
    total,
)
from modmill.designs.radix64k.shape import Kind, Shape
from modmill.interface import Multiplier
from modmill.numbers.redundant_digits import TABLE
from modmill.rtl.product import Tile, one_tile


def look(
    m: Module, shape: Shape, table: Multiples, step: Value, first: Value, digit: Value, product: Value,
    words: Sequence[Value],
) -> Value:  # fmt: skip
    """Connect the addresses of a table's first reader. Returns the carry out of digit 0 for the words at its outputs.

    z = ``digit`` + ``product`` + ``words`` + carry, modulo 2^r. ``digit``: the lowest digit of C in the registers;
    ``product``: X_0 y; ``words``: the table's outputs, which arrive late. So digit and product are added while the
    table is read. Then the words are added in one carry-save step and one sum, in which the two carry bits take free
    places.
    """
    q = shape.m
    r, half = q.r, q.half
    early, z = Signal(r, name="early"), Signal(r, name="z")
    seen = Signal(r if q.quotient == TABLE else half + 1, name="seen", reset_less=True)
    if q.quotient == TABLE:
        following: Value = z
        carries: list[Value] = [seen.any(), Const(0, 1)]
        m.d.comb += table.a_address.word_select(0, r).eq(z)
    else:
        following = Signal(half + 1, name="upper")
        carries = [seen[:half].any(), seen[half]]
        m.d.comb += [
            table.g_address.eq(z[:half]),
            following.eq(z[half:] + table.g_q + z[:half].any()),
            table.a_address.word_select(0, half).eq(z[:half]),
            table.b_address.word_select(0, half).eq(following[:half]),
        ]
    u, v, low, high = (Mux(first, 0, x) for x in (words[0][:r], words[1][:r], *carries))
    majority = (early & u) | (early & v) | (u & v)
    m.d.comb += [
        early.eq(Mux(first, 0, digit) + product[:r]),
        z.eq((Cat(Const(1, 1), early ^ u ^ v) + Cat(low, high, majority[: r - 1]))[1:]),
    ]
    with m.If(step):
        m.d.sync += seen.eq(following)
    return carries[0] + carries[1]


class Lookup(wiring.Component):
    """A copy of the logic for z, placed near a distant share of the table, which it addresses.

    It computes everything that z depends on: the lowest digit of C, which is ``low`` + ``high`` registered in a
    ``step``; the product of ``x`` and ``y``; and the lowest columns of the table. The addresses equal those of `look`,
    in the same cycle. Cost: a DSP block, ceil(2 r / 18) block RAMs, about 200 LUTs.
    """

    def __init__(self, shape: Shape, low: int, high: int) -> None:
        self._shape = shape
        bits = shape.table_bits
        super().__init__({
            "step": In(1), "first": In(1), "low": In(low), "high": In(high),
            "x": In(shape.x_digits[0]), "y": In(shape.y_digit),
            "start": In(1), "m": In(shape.lookup_bits),
            "a_address": Out(bits), "b_address": Out(bits),
        })  # fmt: skip

    @property
    def latency(self) -> int:
        """Cycles from ``low`` and ``high`` to the addresses."""
        return 1

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        table = self._shape.table(len(self.m))
        m.submodules.multiples = table
        m.submodules.xy = tile = Tile(len(self.x), len(self.y), int(self._shape.registered))
        low, high = (Signal(len(x), name=f"{x.name}_q", reset_less=True) for x in (self.low, self.high))
        m.d.comb += [
            table.start.eq(self.start), table.m.eq(self.m), tile.a.eq(self.x), tile.b.eq(self.y),
            self.a_address.eq(table.a_address), self.b_address.eq(table.b_address),
        ]  # fmt: skip
        with m.If(self.step):
            m.d.sync += [low.eq(self.low), high.eq(self.high)]
        look(m, self._shape, table, self.step, self.first, low + high, tile.p, self._shape.addends(table))
        return m


class DigitLoop(Multiplier):
    """d digit multipliers for X y_i, and the loop: k M, and a sum for each digit into the registers T or C.

    The result stays in the loop's registers until it is taken. The operands of the next product are accepted from the
    last but one iteration on; the product waits before its first iteration while the registers hold a result. Timing
    does not depend on values. With a loadable modulus, ``k_m`` accepts its digits, the lowest first.
    Latency: n + 2 cycles, with tables n + 3; interval: 2 cycles less. With feedback and tables: latency n + 2, interval
    n + 1, and operands are accepted in the last cycle of the loop. ``late``: operands are accepted that many cycles
    later. Cost: d DSP blocks; for k M one for each digit of M and one for k, or the table; with redundant digits an
    adder of five terms for each digit, and d (r + 2) flip-flops each for X, Y and the loop.
    """

    kept = ("lookup",)

    def __init__(self, shape: Shape, *, late: int = 0) -> None:
        self._shape, self._late = shape, late
        width = shape.form.width
        self.modulus = Signal(shape.bits, name="modulus")
        self.waits = Signal(name="waits")
        """Driven by the parent: high while it still holds results of this machine, so no modulus is loaded."""
        self.ends, self.result = Signal(name="ends"), Signal(width, name="result")
        """With feedback: ``ends`` is high in the last cycle of the loop, in which ``result`` has the result and can be
        an operand."""
        super().__init__(width, width, width, k=shape.m.r if shape.loadable else 0)

    @property
    def timing(self) -> Timing:
        return self._shape.schedule.timing

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        q = self._shape
        self._control(m)
        self._products(m)
        if q.loadable:
            self._loading(m)
        else:
            m.d.comb += self.modulus.eq(q.m.M)
        (self._digits if q.redundant else self._plain)(m)
        return m

    def _control(self, m: Module) -> None:
        q = self._shape
        last = q.steps - 1
        self._accept, self._fresh, self._step = Signal(name="accept"), Signal(name="fresh"), Signal(name="step")
        active, self._first = Signal(name="active"), Signal(name="first")
        place = Signal(range(q.steps), name="place")
        self._ready = Signal(name="may_accept")
        earliest = last - q.registered + self._late
        accepting = active & (place >= earliest) if earliest else self._step  # lint rejects a comparison with zero
        self._last = place == last
        m.d.comb += [
            self._first.eq(place == 0),
            self._step.eq(active & ~(self._first & self.o_valid & ~self.o_ready)),
            self._ready.eq(~self._fresh & (~active | accepting)),
            self._accept.eq(self.i_valid & self.i_ready),
        ]
        self._idle = ~active & ~self._fresh & ~self.o_valid & ~self.waits
        if q.registered:
            m.d.sync += self._fresh.eq(self._accept)
        ends = self._step & (place == last)
        if q.m.feedback:
            m.d.comb += self.ends.eq(ends)
        with m.If(self._fresh if q.registered else self._accept):
            m.d.sync += active.eq(1)
        with m.Elif(ends):
            m.d.sync += active.eq(0)
        with m.If(self._step):
            m.d.sync += place.eq(Mux(place == last, 0, place + 1))
        with m.If(ends):
            m.d.sync += self.o_valid.eq(1)
        with m.Elif(self.o_ready):
            m.d.sync += self.o_valid.eq(0)
        if not q.loadable:
            m.d.comb += self.i_ready.eq(self._ready)

    def _loading(self, m: Module) -> None:
        """Load the register of the modulus, then start the unit that computes constants from it."""
        q = self._shape
        words, r = len(q.m.modulus_digits), q.m.r
        register = Signal(r * words, name="modulus_words", reset_less=True)
        word, loaded = Signal(range(words), name="word"), Signal(name="loaded")
        self._start, self._prepared = Signal(name="start_preparing"), Signal(name="prepared")
        preparing = Signal(name="preparing")
        m.d.comb += [
            self.modulus.eq(register),
            self.k_ready.eq(self._idle & ~preparing),
            self.i_ready.eq(self._ready & loaded & ~self.k_valid),
        ]
        m.d.sync += self._start.eq(0)
        with m.If(self.k_valid & self.k_ready):
            m.d.sync += [register.eq(Cat(register[r:], self.k_m)), loaded.eq(0), word.eq(word + 1)]
            with m.If(word == words - 1):
                m.d.sync += [word.eq(0), preparing.eq(1), self._start.eq(1)]
        with m.If(self._prepared):
            m.d.sync += [preparing.eq(0), loaded.eq(1)]

    def _products(self, m: Module) -> None:
        """X y_i, in the multipliers' output registers."""
        q = self._shape
        x = Signal(len(self.i_a), name="X", reset_less=True)
        wide = q.y_digit
        y = Signal(wide * max(2, q.y_digits), name="Y", reset_less=True)
        digit = Signal(wide, name="y")
        second = y[wide : 2 * wide] if q.registered else y[:wide]  # without registers, X y_i is used in the same cycle
        m.d.comb += digit.eq(Mux(self._step & ~self._fresh, second, y[:wide]))
        with m.If(self._accept):
            m.d.sync += [x.eq(self.i_a), y.eq(self._spaced(self.i_b))]
        with m.Elif(self._step & ~self._fresh):
            m.d.sync += y.eq(y[wide:])
        self._xy: list[Value] = []
        low = 0
        for j, bits in enumerate(q.x_digits):
            self._xy.append(one_tile(m, x[low : low + bits], digit, int(q.registered), f"xy{j}"))
            low += bits
        self._x0, self._y0 = x[: q.x_digits[0]], digit
        spaced = not q.redundant and wide > q.m.r
        whole = Cat(
            *(y[low : low + q.m.r] for low in range(0, wide * (q.y_digits - 1), wide)),
            y[wide * (q.y_digits - 1) : wide * q.y_digits],
        )
        self._registers: dict[Any, Value | list[Value]] = {
            Kind.OPERANDS: [x, whole if spaced else y], Kind.PRODUCT: self._xy,
        }  # fmt: skip

    def _spaced(self, y: Value) -> Value:
        """Y with its digits at the distance of the widest one."""
        q = self._shape
        r, high = q.m.r, q.m.r * (q.y_digits - 1)
        if q.redundant or q.y_digit == r:
            return y
        return Cat(*(Cat(y[low : low + r], Const(0, q.y_digit - r)) for low in range(0, high, r)), y[high:])

    def _multiplied(self, m: Module, z: Value) -> tuple[list[Value], list[Value], Value]:
        """k M by multipliers: low and high parts of each k M_j, and the carry out of digit 0; combinational."""
        q = self._shape.m
        r = q.r
        m.submodules.quotient = quotient = Tile(r, r, 0)
        if self._shape.loadable:
            m.submodules.inverse = inverse = Inverse(r)
            m.d.comb += [inverse.start.eq(self._start), inverse.m.eq(self.modulus[:r]), self._prepared.eq(inverse.done)]
            factor: Value = inverse.x
        else:
            factor = Const(q.inverse, r)
        k = Signal(r, name="k")
        m.d.comb += [quotient.a.eq(z), quotient.b.eq(factor), k.eq(quotient.p[:r])]
        parts: list[Value] = []
        size = self._shape.m_size
        for j, bits in enumerate(self._shape.m_digits):
            parts.append(one_tile(m, k, self.modulus[size * j : size * j + bits], 0, f"km{j}"))
        low = [p[:size] for p in parts]
        high = [Const(0, 1), *(p[size:] if len(p) > size else Const(0, 1) for p in parts)]
        return low, high, z.any()

    def _table(self, m: Module, digit: Value) -> tuple[tuple[Value, Value], Value]:
        """The table of multiples, and the addresses of its first share for the lowest ``digit`` of C. Returns the words
        at its outputs, one cycle after the addresses, and their carry out of digit 0."""
        q = self._shape
        self._multiples = table = q.table(q.bits, readers=q.lookups)
        m.submodules.multiples = table
        if q.loadable:
            m.d.comb += [table.start.eq(self._start), table.m.eq(self.modulus), self._prepared.eq(table.done)]
        words = q.addends(table)
        self._registers[Kind.MULTIPLE] = list(words)
        return words, look(m, q, table, self._step, self._first, digit, self._xy[0], words)

    def _look_elsewhere(self, m: Module, low: Value, high: Value) -> None:
        """Connect the addresses of the other shares. ``low`` + ``high``: the next lowest digit of C."""
        q, table = self._shape, self._multiples
        for share in range(1, q.lookups):
            m.submodules[f"lookup{share}"] = lookup = Lookup(q, len(low), len(high))
            m.d.comb += [
                lookup.step.eq(self._step), lookup.first.eq(self._first), lookup.low.eq(low), lookup.high.eq(high),
                lookup.x.eq(self._x0), lookup.y.eq(self._y0),
                lookup.start.eq(self._start if q.loadable else 0), lookup.m.eq(self.modulus),
                table.a_address.word_select(share, q.table_bits).eq(lookup.a_address),
                table.b_address.word_select(share, q.table_bits).eq(lookup.b_address),
            ]  # fmt: skip

    def _digits(self, m: Module) -> None:
        """The loop on redundant digits."""
        q = self._shape.m
        t_limits, c_limits = q.digit_limits()
        sums = DigitSums(m, q.r)
        name, limits = ("T", t_limits) if self._shape.tables else ("C", c_limits)
        if q.feedback:
            limits = tuple(map(max, zip_longest(limits, q.last_limits(), fillvalue=0)))
        state = [Signal(max(1, v.bit_length()), name=f"{name}_{i}", reset_less=True) for i, v in enumerate(limits)]
        if self._shape.tables:
            words, carry = self._table(m, sums.low(state[1]) + sums.high(state[0]))
            u, v = (split(word, q.r) for word in words)
            c = sums.reduce(state, [Const(0, 1), *u], [Const(0, 1), *v], carry, c_limits, "C")
            following = sums.product_sum(self._xy, [Mux(self._first, 0, x) for x in c], t_limits, "next_T")
            self._look_elsewhere(m, sums.low(following[1]), sums.high(following[0]))
        else:
            t = sums.product_sum(self._xy, [Mux(self._first, 0, x) for x in state], t_limits, "T")
            low, high, carry = self._multiplied(m, t[0][: q.r])
            c = following = sums.reduce(t, low, high, carry, c_limits, "next_C")
        stored: Sequence[Value] = following
        if q.feedback:
            last = sums.last(c, self.modulus, q.rest, q.last_limits())
            m.d.comb += self.result.eq(joined(last, q.r, q.d))
            pairs = zip_longest(following, last, fillvalue=Const(0, 1))
            stored = [Mux(self._last, final, x) for x, final in pairs]
        with m.If(self._step):
            m.d.sync += [digit.eq(x) for digit, x in zip(state, stored, strict=True)]
        m.d.comb += self.o_r.eq(joined(state, q.r, q.d))
        self._probe(state)

    def _plain(self, m: Module) -> None:
        """The loop with carries."""
        q = self._shape.m
        r, tile = q.r, self._shape.x_size
        add = partial(total, m=m, chain=self._shape.chain)
        size = q.sum_limit(redundant=False).bit_length() + r
        xy = Signal(size, name="Xy")
        low, high = Cat(*(p[:tile] for p in self._xy)), Cat(*(_filled(p[tile:], tile) for p in self._xy))
        m.d.comb += xy.eq(add([low, high << tile]))
        name = "T" if self._shape.tables else "C"
        state = Signal(size, name=name, reset_less=True)
        if self._shape.tables:
            words, carry = self._table(m, state[r : 2 * r])
            c, following = Signal(size - r, name="C"), Signal(size, name="next_T")
            m.d.comb += [c.eq(add([state[r:], *words, carry])), following.eq(add([Mux(self._first, 0, c), xy]))]
            self._look_elsewhere(m, following[r : 2 * r], Const(0, 1))
        else:
            t, following = Signal(size, name="T"), Signal(size - r, name="next_C")
            m.d.comb += t.eq(add([Mux(self._first, 0, state), xy]))
            lows, highs, _ = self._multiplied(m, t[:r])
            m_size = self._shape.m_size
            m.d.comb += following.eq(add([t, Cat(*lows), Cat(*(_filled(x, m_size) for x in highs[1:])) << m_size]) >> r)
            c = following
        stored: Value = following
        if q.feedback:
            factor = factor_of_last(c, self.modulus, q.rest)
            multiples = [Mux(factor[i], self.modulus << i, 0) for i in range(q.rest)]
            m.d.comb += self.result.eq(add([c, *multiples]) >> q.rest)
            stored = Mux(self._last, self.result, following)
        with m.If(self._step):
            m.d.sync += state.eq(stored)
        m.d.comb += self.o_r.eq(state)
        self._probe(state)

    def _probe(self, state: Any) -> None:
        """Add a probe for every operation of the schedule; ``state``: the registers T or C."""
        registers = self._registers | dict.fromkeys((Kind.SUM, Kind.ITERATION), state)
        self.probes = [(step.name, registers[step.does.kind], step.end) for step in self._shape.schedule.steps]


def _filled(x: Value, bits: int) -> Value:
    """``x``, filled up with zeros."""
    return Cat(x, Const(0, bits - len(x))) if len(x) < bits else x


def split(word: Value, r: int) -> list[Value]:
    """Digits of r bits; the last one may be shorter."""
    return [word[i : i + r] for i in range(0, len(word), r)]


class Canonical(Multiplier):
    """The machine with binary operands below M and canonical results.

    Digits of a binary operand are valid redundant digits. Redundant results are converted digit by digit (d + 1
    cycles); others pass one conditional subtraction (1 cycle).
    Latency: the sum of machine and conversion; interval: the longer of the two.
    """

    kept = DigitLoop.kept

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._machine = DigitLoop(shape, late=max(0, self._after(shape) - shape.steps))
        super().__init__(shape.bits, shape.bits, shape.bits, k=shape.m.r if shape.loadable else 0)

    @staticmethod
    def _after(shape: Shape) -> int:
        return shape.m.d + 1 if shape.redundant else 1

    @classmethod
    def timing_of(cls, shape: Shape) -> Timing:
        """Timing of machine and conversion together."""
        latency = shape.first + shape.steps + cls._after(shape)
        interval = max(shape.steps, cls._after(shape))
        return Timing(latency, interval, -(-latency // interval))

    @property
    def timing(self) -> Timing:
        return self.timing_of(self._shape)

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        q, machine = self._shape, self._machine
        after: DigitsToBinary | SubtractOnce = (
            DigitsToBinary(q.m.r, q.m.d, q.bits) if q.redundant else SubtractOnce(q.form.width, q.bits, q.chain)
        )
        m.submodules.multiplier = machine
        m.submodules.to_binary = after

        def operand(x: Value) -> Value:
            if not q.redundant:
                return x
            return Cat(*(Cat(digit, Const(0, q.m.r + 2))[: q.m.r + 2] for digit in split(x, q.m.r)))

        m.d.comb += [
            machine.i_valid.eq(self.i_valid), self.i_ready.eq(machine.i_ready),
            machine.i_a.eq(operand(self.i_a)), machine.i_b.eq(operand(self.i_b)),
            after.i_valid.eq(machine.o_valid), machine.o_ready.eq(after.i_ready), after.i_x.eq(machine.o_r),
            after.m.eq(machine.modulus), machine.waits.eq(after.busy),
            self.o_valid.eq(after.o_valid), after.o_ready.eq(self.o_ready), self.o_r.eq(after.o_r),
        ]  # fmt: skip
        if q.loadable:
            m.d.comb += [machine.k_valid.eq(self.k_valid), machine.k_m.eq(self.k_m), self.k_ready.eq(machine.k_ready)]
        return m
