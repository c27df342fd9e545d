# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A linear array for Montgomery multiplication: one column for each digit of 17 bits, many products interleaved.

All products use the same columns. Iteration i of a product (digit y_i) occupies each column for one cycle; the next
iteration of the same product follows ``streams`` cycles later, when its S is ready. Other products use the cycles
between. A product starts every ``interval`` cycles. It never collides with iterations of other products if ``interval``
is at least the number of digits and coprime to ``streams``.

    head      t = (S + x_0 y_i) mod 2^17,  q = t m' mod 2^17,  m' = -M^-1 mod 2^17
    column j  T = lo(x_j y_i) + hi(x_(j-1) y_i) + lo(q M_j) + hi(q M_(j-1)) + S_j + carry of column j - 1
              lo(T) is S_(j-1) of the next iteration, the rest (3 bits) goes to column j + 1

y moves one column in each cycle and x one column in two cycles, most significant digit first. So x_j meets y_0 in
column j, where it is kept. Results move at half speed too and leave most significant digit first, one digit in each
cycle. All nets except the clock connect neighbouring columns only.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Member, Out

from modmill.rtl.delay import DelayLines, later
from modmill.rtl.product import one_tile

DIGIT = 17
"""Bits of a digit."""
PRODUCT = 4
"""Cycles from the operands to a product: three registers in the DSP block and one behind it."""
ENTRY = 2
"""Cycles from the array's port y to the head's operands."""
HEAD = 2 * PRODUCT + 1
"""Cycles in the head until q is known: x_0 y_i, t, q."""
SUM = PRODUCT + 4
"""Cycles from a column's operands to T."""
STREAMS_MIN = HEAD + SUM - PRODUCT + 2
"""Fewest streams: t of the next iteration needs T of column 1."""


def latency(digits: int, turn: int, columns: int) -> int:
    """Cycles from the start of a product to the first digit of its result, for an array of ``columns`` columns.
    ``turn``: cycles from one iteration of a product to the next."""
    return ENTRY + (digits - 1) * turn + HEAD + columns + SUM + 1


def _product(m: Module, a: Value, b: Value, name: str) -> Signal:
    """a * b in one DSP block, with a fabric register behind it; PRODUCT cycles later."""
    return later(m, one_tile(m, a, b, 3, name), name)


def carried(groups: int) -> dict[str, int]:
    """Bits of each input of a column from the previous column; ``groups``: digits that a column serves.

    If the column's operands are in its registers in cycle 0, the inputs arrive in these cycles: ``y`` and ``q`` in -1;
    ``first``, ``load`` and, with several groups, ``group`` in -2; ``xy`` and ``qm``, the high halves of products, in 3;
    ``clear`` in 4; ``last`` and the carry ``k`` in 7. ``x`` and ``z`` pass two registers.
    """
    ports: dict[str, int] = {
        "x": DIGIT, "y": DIGIT, "q": DIGIT, "first": 1, "load": 1, "clear": 1, "last": 1, "xy": DIGIT, "qm": DIGIT,
        "k": 3, "z": DIGIT,
    }  # fmt: skip
    if groups > 1:
        ports["group"] = (groups - 1).bit_length()
    return ports


class Head(wiring.Component):
    """Column 0, which computes the digits q. ``modulus``: M_0 of a fixed modulus, or None.

    ``x``, ``y`` and the flags ``first``, ``last`` and ``load`` are as in MontgomeryArray; ``s`` is T of column 1.
    ``turn``: cycles from one iteration of a product to the next.
    Cost: 3 DSP blocks, about 150 LUTs.
    """

    def __init__(self, turn: int, modulus: int | None, groups: int = 1) -> None:
        self.turn, self.groups = turn, groups
        self.constants = None if modulus is None else (modulus, -pow(modulus, -1, 1 << DIGIT) % (1 << DIGIT))
        """(M_0, m') of a fixed modulus."""
        self.low = Signal(DIGIT, name="low")
        """t; in cycle 7 after y_i entered."""
        self.quotient = Signal(DIGIT, name="quotient", reset_less=True)
        """q; in cycle 11 after y_i entered."""
        self.product = Signal(2 * DIGIT, name="xy", reset_less=True)
        """x_0 y_i; in cycle 6 after y_i entered."""
        ports = carried(groups)
        names = ("x", "y", "first", "last", "group")
        self.inputs: dict[str, Member] = {name: In(ports[name]) for name in names if name in ports}
        """The array's inputs."""
        if modulus is None:
            self.inputs |= {"load": In(1), "inverse": In(DIGIT)}
        super().__init__(self.inputs | {"s": In(DIGIT)} | {f"o_{name}": Out(bits) for name, bits in ports.items()})

    @property
    def latency(self) -> int:
        """Cycles from a digit of y to the digit of q."""
        return ENTRY + HEAD

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        turn = self.turn
        lines = DelayLines(m, max(turn, SUM + HEAD), name="head")
        x = later(m, self.x, "x_in")
        y = later(m, later(m, self.y, "y_in"), "y0")
        first = later(m, self.first, "first0")
        kept = lines.ring(first, x, turn, name="x0")
        group = later(m, self.group, "group0") if self.groups > 1 else None
        if self.constants is None:
            load = later(m, self.load, "load0")
            digit = Signal(DIGIT, name="m0", reset_less=True)
            with m.If(load if group is None else load & (group == 0)):
                m.d.sync += digit.eq(x)
            inverse: Value = self.inverse
        else:
            load = Signal(name="load0")
            digit = Signal(DIGIT, name="m0")
            inverse = Signal(DIGIT, name="inverse0")
            m.d.comb += [digit.eq(self.constants[0]), inverse.eq(self.constants[1])]
        xy = self.product
        m.d.sync += xy.eq(one_tile(m, kept, y, 3, "xy"))
        clear = lines.line(first, PRODUCT, name="clear0")
        s = lines.line(self.s, turn + PRODUCT - HEAD - SUM - 1, name="s0", clear=clear)
        w = Signal(DIGIT + 1, reset_less=True)
        m.d.sync += w.eq(xy[:DIGIT] + s)
        m.d.comb += self.low.eq(w[:DIGIT])
        m.d.sync += self.quotient.eq(one_tile(m, self.low, inverse, 3, "q_tile")[:DIGIT])
        qm = _product(m, self.quotient, digit, "qm")
        # the low half of w + q M_0 is zero, so its carry is 1 unless the low half of w is zero
        parts = later(m, Cat(*(self.low[i : i + 4].any() for i in range(0, DIGIT, 4))), "parts")
        nonzero = later(m, parts.any(), "nonzero")
        high = later(m, later(m, w[DIGIT], "high"), "high_later")
        carry = Signal(2, reset_less=True)
        m.d.sync += carry.eq(nonzero + high)
        # these wait for q
        waiting = Cat(x, y, first, load, carry, xy[DIGIT:])
        out = Cat(self.o_x, self.o_y, self.o_first, self.o_load, self.o_k[:2], self.o_xy)
        if group is not None:
            waiting, out = Cat(waiting, group), Cat(out, self.o_group)
        last = later(m, later(m, self.last, "last0"), "last1")
        m.d.comb += [
            out.eq(lines.line(waiting, HEAD, name="waiting")),
            self.o_q.eq(self.quotient),
            self.o_qm.eq(qm[DIGIT:]),
            self.o_clear.eq(lines.line(self.o_first, PRODUCT + 2, name="clear1")),
            self.o_last.eq(lines.line(last, HEAD + SUM, name="last2")),
        ]
        return m


class Column(wiring.Component):
    """The column of one digit, or of one digit of each group. ``modulus``: its digits of a fixed modulus, or None.

    Ports ``i_*``: from the previous column, ``o_*``: to the next; ``s``: T of the next column, ``t``: T of this one.
    ``turn``: cycles from one iteration of a product to the next; ``wait``: cycles from ``s`` to its use as S, turn - 3
    if it comes from the next column. With ``edge`` the last group has no S.
    Cost: 2 DSP blocks, about 190 LUTs and 350 flip-flops.
    """

    def __init__(
        self, turn: int, modulus: Sequence[int] | None, groups: int = 1, *, wait: int | None = None, edge: bool = False
    ) -> None:
        self.turn, self.modulus, self.groups, self.edge = turn, modulus, groups, edge
        self.wait = turn - 3 if wait is None else wait
        ports = carried(groups).items()
        inputs = {f"i_{name}": In(bits) for name, bits in ports}
        outputs = {f"o_{name}": Out(bits) for name, bits in ports}
        super().__init__(inputs | outputs | {"s": In(DIGIT), "t": Out(DIGIT)})

    @property
    def latency(self) -> int:
        """Cycles from the operands in their registers to T."""
        return SUM

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        lines = DelayLines(m, self.turn, name="column")
        x = later(m, later(m, self.i_x, "x_half"), "x_in")
        y, q = later(m, self.i_y, "y"), later(m, self.i_q, "q")
        first, load = later(m, self.i_first, "first"), later(m, self.i_load, "load")
        clear, last = later(m, self.i_clear, "clear"), later(m, self.i_last, "last")
        kept = lines.ring(first, x, self.turn, name="x")
        digit = Signal(DIGIT, name="m", reset_less=True)
        if self.groups > 1:
            group = later(m, self.i_group, "group")
            digits = Memory(shape=DIGIT, depth=self.groups, init=self.modulus or [])
            m.submodules.digits = digits
            read = digits.read_port(domain="comb")
            m.d.comb += read.addr.eq(group)
            if self.modulus is None:
                write = digits.write_port()
                m.d.comb += [write.addr.eq(group), write.data.eq(x), write.en.eq(load)]
            m.d.sync += digit.eq(read.data)
            if self.edge:
                highest = lines.line(group == self.groups - 1, PRODUCT + 2, name="highest")
                clear = Cat(clear, highest).any()
        elif self.modulus is None:
            with m.If(load):
                m.d.sync += digit.eq(x)
        else:
            m.d.comb += digit.eq(self.modulus[0])
        xy, qm = _product(m, kept, y, "xy"), _product(m, q, digit, "qm")
        xy_below, qm_below = later(m, self.i_xy, "xy_below"), later(m, self.i_qm, "qm_below")
        s = lines.line(self.s, self.wait, name="s_kept", clear=clear)
        one, two = Signal(DIGIT + 1, reset_less=True), Signal(DIGIT + 1, reset_less=True)
        both, more = Signal(DIGIT + 2, reset_less=True), Signal(DIGIT + 3, reset_less=True)
        total = Signal(DIGIT + 3, reset_less=True)
        m.d.sync += [
            one.eq(xy[:DIGIT] + xy_below),
            two.eq(qm[:DIGIT] + qm_below),
            both.eq(one + two),
            more.eq(both + s),
            total.eq(more + self.i_k),
        ]
        z = Signal(DIGIT, name="z", reset_less=True)
        m.d.sync += z.eq(Mux(last, total, later(m, self.i_z, "z_half")))
        m.d.comb += [
            self.o_x.eq(x), self.o_y.eq(y), self.o_q.eq(q), self.o_first.eq(first), self.o_load.eq(load),
            self.o_clear.eq(clear), self.o_last.eq(last), self.o_xy.eq(xy[DIGIT:]), self.o_qm.eq(qm[DIGIT:]),
            self.o_k.eq(total[DIGIT:]), self.o_z.eq(z), self.t.eq(total),
        ]  # fmt: skip
        if self.groups > 1:
            m.d.comb += self.o_group.eq(group)
        return m


class Top(wiring.Component):
    """The column behind the last one: the sum of the high halves and the carry is the highest digit. No DSP block."""

    def __init__(self) -> None:
        inputs = {f"i_{name}": In(bits) for name, bits in carried(1).items()}
        super().__init__(inputs | {"t": Out(DIGIT), "z": Out(DIGIT), "z_first": Out(1)})

    @property
    def latency(self) -> int:
        """Cycles from the high halves to T."""
        return SUM - PRODUCT + 1

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        last = later(m, self.i_last, "last")
        halves = Signal(DIGIT, reset_less=True)
        m.d.sync += halves.eq(later(m, self.i_xy, "xy_below") + later(m, self.i_qm, "qm_below"))
        waiting = later(m, later(m, halves, "halves_later"), "halves_last")
        total = Signal(DIGIT, reset_less=True)
        m.d.sync += total.eq(waiting + self.i_k)
        z = Signal(DIGIT, reset_less=True)
        m.d.sync += z.eq(Mux(last, total, later(m, self.i_z, "z_half")))
        m.d.comb += [self.t.eq(total), self.z.eq(z), self.z_first.eq(later(m, last, "z_first"))]
        return m


class MontgomeryArray(wiring.Component):
    """S = x y 2^(-17 d) (mod M), not reduced: x < 2^(17 d) - M and y < 2^(17 d) give S < x y / 2^(17 d) + M.

    d = ``digits`` >= 2. A product starts in some cycle s. Digit y_i enters at ``y`` in cycle s + i * ``streams``, x_j
    at ``x`` in cycle s - j; ``first`` is set in cycle s and ``last`` in cycle s + (d - 1) * ``streams``. Digit j of S
    leaves at ``z`` in cycle s + `latency` + d - 1 - j; ``z_first`` is set in the first of these d cycles.

    ``modulus``: M, odd; or None if it is loaded. Then its digits enter like those of x, with ``load`` in cycle s, and
    ``inverse`` must be -M^-1 mod 2^17 from then on.
    Latency: (d - 1) streams + d + 20. Cost: 2 d + 1 DSP blocks. Raises ValueError for too few digits or streams.
    """

    def __init__(self, digits: int, streams: int, modulus: int | None = None) -> None:
        if digits < 2:
            raise ValueError(f"the array needs at least 2 digits, not {digits}")
        if streams < STREAMS_MIN:
            raise ValueError(f"the array needs at least {STREAMS_MIN} streams, not {streams}")
        parts = [None] * digits if modulus is None else [modulus >> DIGIT * j & (1 << DIGIT) - 1 for j in range(digits)]
        self.head = Head(streams, parts[0])
        self.stages: list[Column | Top] = [Column(streams, None if part is None else [part]) for part in parts[1:]]
        self.stages.append(Top())
        super().__init__(self.head.inputs | {"z": Out(DIGIT), "z_first": Out(1)})

    @property
    def latency(self) -> int:
        """Cycles from the start of a product to the first digit of its result."""
        return latency(len(self.stages), self.head.turn, len(self.stages))

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        m.submodules.head = head = self.head
        m.d.comb += [getattr(head, name).eq(getattr(self, name)) for name in head.inputs]
        m.submodules.top = top = self.stages[-1]
        for j, (before, column) in enumerate(pairwise([head, *self.stages]), 1):
            if isinstance(column, Column):
                m.submodules[f"column{j}"] = column
            m.d.comb += [getattr(column, f"i_{name}").eq(getattr(before, f"o_{name}")) for name in carried(1)]
            m.d.comb += before.s.eq(column.t)
        m.d.comb += [self.z.eq(top.z), self.z_first.eq(top.z_first)]
        return m


class NegativeInverse(wiring.Component):
    """-m^-1 mod 2^17 of the odd digit ``m``, which is read in the cycle of ``start``; one bit in each cycle.

    m q + 1 is divided by 2 repeatedly; each bit of q is chosen so that the dividend is even.
    Latency: DIGIT + 1 cycles; then ``inverse`` is stable until the next start. Cost: about 40 LUTs.
    """

    def __init__(self) -> None:
        super().__init__({"m": In(DIGIT), "start": In(1), "inverse": Out(DIGIT)})

    @property
    def latency(self) -> int:
        """Cycles from ``start`` to the inverse."""
        return DIGIT + 1

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        digit = Signal(DIGIT, reset_less=True)
        rest = Signal(DIGIT + 1, reset_less=True)
        left = Signal(range(DIGIT + 1))
        with m.If(self.start):
            m.d.sync += [digit.eq(self.m), rest.eq(1), left.eq(DIGIT)]
        with m.Elif(left != 0):
            m.d.sync += [
                left.eq(left - 1),
                rest.eq((rest + Mux(rest[0], digit, 0)) >> 1),
                self.inverse.eq(Cat(self.inverse[1:], rest[0])),
            ]
        return m
