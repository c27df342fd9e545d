# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The control of a cox-rower machine: one word for all rowers in each cycle of a period, from its program."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from amaranth.hdl import Cat, Module, Signal
from amaranth.hdl import Value as Bits
from amaranth.lib import data, wiring

from modmill.contract import UnsupportedError
from modmill.design import unused
from modmill.designs.cox_rower.operations import OPERANDS, Kind, Operation, Value
from modmill.designs.cox_rower.schedule import Program
from modmill.designs.cox_rower.shape import OPERAND, PRODUCT, TREE
from modmill.rtl import periodic
from modmill.schedule import ScheduleError


class Word(data.StructLayout):
    """The rowers' control word of one cycle, for rowers that serve ``channels_per_rower`` channels of each base;
    ``pair``: they
    keep sums of two products in a register of their own."""

    def __init__(self, address: int, h: int, channels_per_rower: int, pair: bool = False) -> None:
        self.h_source = len(OPERANDS) * channels_per_rower
        self.modulus_source = self.h_source + 1
        super().__init__({
            "constant": address,  # port A
            "word": address,  # port B
            "write": 1,
            "outside": 1,  # write what comes from outside, not the residue
            "source": self.modulus_source.bit_length(),  # which word from outside: of the operands, h or a constant
            "h": h,
            "ring": 1,  # the multiplier takes the ring's value, not the memory's
            "clear": 1,
            "add": 1,
            "catch_product": 1,
            "catch_sum": 1,
            **({"catch_pair": 1, "enter_pair": 1} if pair else {}),
            "enter_product": 1,
            "enter_sum": 1,
            "base": (2 * channels_per_rower - 1).bit_length(),  # the fold is modulo which of the rower's a_i, b_i
            "wait": 1,
            "hat": 1,
            "hat_first": 1,
            "load": 1,
            "out_w": channels_per_rower,  # one bit for each word
            "out_zeta": channels_per_rower,
        })  # fmt: skip


class Phase(periodic.Phase):
    """The cycle of the period: 0 after reset, and whenever the program is in cycle ``p.accept``."""

    def __init__(self, m: Module, p: Program) -> None:
        super().__init__(m, p.interval)
        self._accept = p.accept

    def at(self, cycle: int) -> Bits:
        """High in that cycle of the program, modulo the interval (combinational)."""
        return self.signal == (cycle - self._accept) % self._interval


def announce(m: Module, core: wiring.Component, arriving: Bits) -> None:
    """Set ``o_valid`` two cycles after ``arriving``, until the result is taken."""
    arrive = Signal()
    m.d.sync += arrive.eq(arriving)
    with m.If(arrive):
        m.d.sync += core.o_valid.eq(1)
    with m.Elif(core.o_ready):
        m.d.sync += core.o_valid.eq(0)


class Control:
    """The word's fields over the cycles of a period, gathered by ``put`` and driven by ``drive``.

    What stands in ``signal`` in cycle t is for the rowers' cycle t + TREE.
    """

    def __init__(self, p: Program, word: Word, phase: Phase) -> None:
        self._program, self._word, self._phase = p, word, phase.signal
        self.signal = Signal(word, name="control")
        self.fields: dict[str, dict[int, int | Bits]] = {name: {} for name in word.members}

    def put(self, field: str, cycle: int, value: int | Bits = 1) -> None:
        """Set a field for the rowers' cycle. Raises ScheduleError when it is taken in that cycle of the period."""
        p = self._program
        key = (cycle - TREE - 1 - p.accept) % p.interval
        if key in self.fields[field]:
            raise ScheduleError(f"{field} is set twice in cycle {key} of {p.interval}")
        self.fields[field][key] = value

    def store(self, address: Bits, cycle: int, *, source: int | None = None) -> None:
        """Write the residue, or the word from outside with that number."""
        self.put("word", cycle, address)
        self.put("write", cycle)
        if source is not None:
            self.put("outside", cycle)
            self.put("source", cycle - 1, source)

    def product(self, held: Callable[[Value, int], Bits], summed: Callable[[int], Bits] | None = None) -> None:
        """All of one product but what comes from outside and leaves. ``held(value, cycle)``: address of one of its
        words for the rowers' cycle; ``summed(cycle)``: whether a second product is added to the first."""
        p, shape, put = self._program, self._program.shape, self.put
        for op in shape.of(Kind.MULTIPLY, Kind.MULTIPLY_TWO):
            self._multiply(op, held, summed)
        terms = sorted(shape.of(Kind.TERM), key=lambda op: op.k)
        for op in terms:
            put("word", p.start(op), held(op.reads[0], p.start(op)))
            put("constant", p.start(op), shape.address(op))
        for op in shape.of(Kind.ROW_SUM, Kind.LOAD, Kind.TERMS):
            self._ring(op, held)
        for op in terms:
            put("add", p.start(op) + PRODUCT)
        for op in sorted(shape.of(Kind.TERM, Kind.TERMS), key=lambda op: op.k):
            if op.opens:
                put("clear", (p.first(op) if op.kind is Kind.TERMS else p.start(op)) + PRODUCT - 1)
        for op in shape.of(Kind.REDUCE):
            put("catch_sum", p.start(op))
            put("enter_sum", p.fold(op))
            self._reduce(op, held)
        for op in shape.of(Kind.COX):
            self.store(held(op.result, p.start(op)), p.start(op), source=self._word.h_source)

    def _reduce(self, op: Operation, held: Callable[[Value, int], Bits]) -> None:
        """A fold modulo the rower's a_i or, from ``channels_per_rower`` on, b_i of that number."""
        p, base = self._program, self._base(op)
        for entry in p.entries(op) if base else ():
            self.put("base", entry, base)
        self.store(held(op.result, p.residue(op)), p.residue(op))

    def _base(self, op: Operation) -> int:
        return op.over_b * self._program.shape.channels_per_rower + op.k

    def _multiply(
        self, op: Operation, held: Callable[[Value, int], Bits], summed: Callable[[int], Bits] | None
    ) -> None:
        """One product or the sum of two."""
        p, shape, put, t = self._program, self._program.shape, self.put, self._program.start(op)
        if op.kind is Kind.MULTIPLY:
            put("word", t, held(op.reads[0], t))
            put("constant", t, shape.address(op) if op.table else held(op.reads[1], t))
            put("catch_product", t + PRODUCT)
            put("enter_product", p.fold(op))
        else:
            for k, (one, other) in enumerate((op.reads[:2], op.reads[2:])):
                put("word", t + k, held(one, t + k))
                put("constant", t + k, held(other, t + k))
                put("add", t + k + PRODUCT, summed(t + k + PRODUCT) if k and summed else 1)
            put("clear", t + PRODUCT - 1)
            register = "pair" if shape.pair else "sum"
            put(f"catch_{register}", p.catch(op))
            put(f"enter_{register}", p.fold(op))
        self._reduce(op, held)

    def _ring(self, op: Operation, held: Callable[[Value, int], Bits]) -> None:
        """What goes into the ring, and what the rowers multiply by what is in it."""
        p, shape, put = self._program, self._program.shape, self.put
        match op.kind:
            case Kind.ROW_SUM:
                t, made = p.start(op), shape.hat_cycles - shape.parts
                for part in range(shape.parts):
                    put("word", t + part, held(op.reads[0], t + part))
                    put("constant", t + part, shape.address(op, part))
                    put("hat", t + part + made)
                put("hat_first", t + made)
            case Kind.LOAD:
                for k, value in enumerate(op.reads):
                    if shape.loop:
                        put("word", p.read(op) + k, held(value, p.read(op) + k))
                        put("wait", p.read(op) + k + OPERAND - 1)
                    put("load", p.start(op) + k)
            case _:
                for step in range(p.n):
                    slot = p.first(op) + step
                    if not shape.loop and self._base(op):
                        put("base", p.start(op) + 1 + step, self._base(op))
                    put("constant", slot, shape.address(op, step))
                    put("ring", slot + OPERAND - 1)
                    put("add", slot + PRODUCT)

    def load(
        self, m: Module, addresses: Sequence[int], valid: Signal, ready: Signal, idle: Bits, loading: Signal
    ) -> None:
        """Words of stream k into these addresses of all rowers, one in every period, as ``loading`` then says.

        A word is written in a cycle in which no product uses the memory's port, and is ready in the cycle in which the
        rowers take it. The first waits for ``idle``. Raises UnsupportedError when the period has no such cycle.
        """
        interval = self._program.interval
        busy = set(self.fields["word"]) | {(k + 1) % interval for k in self.fields["source"]}
        spare = next((k for k in range(interval) if k not in busy), None)
        if spare is None:
            unused(m)
            raise UnsupportedError(
                f"no modulus can be loaded: products take all {interval} cycles of the block RAMs' ports; "
                f"set interval={interval + 1}"
            )
        index = Signal(range(len(addresses) + 1))
        writing = Signal()
        decide = (spare - 3) % interval  # the interval's decision; writing is then set for one period
        with m.If(self._phase == decide):
            m.d.sync += writing.eq(valid & (loading | idle))
            with m.If(valid & idle):
                m.d.sync += loading.eq(1)
        target = Signal(len(self.signal.word))
        with m.Switch(index):
            for k, address in enumerate(addresses):
                with m.Case(k):
                    m.d.comb += target.eq(address)
        self.fields["word"][spare] = target
        self.fields["write"][spare] = writing
        self.fields["outside"][spare] = 1
        self.fields["source"][(spare - 1) % interval] = self._word.modulus_source
        taken = Signal()
        m.d.sync += taken.eq((self._phase == (spare + TREE - 1) % interval) & writing)
        m.d.comb += ready.eq(taken)
        with m.If(taken):
            m.d.sync += index.eq(index + 1)
            with m.If(index == len(addresses) - 1):
                m.d.sync += [index.eq(0), loading.eq(0)]

    def drive(self, m: Module, idle: int, *, clear: bool = False) -> None:
        """Registers for all fields but h; ``idle``: the address in cycles without one.

        ``clear``: bits that no cycle sets are 0. Without it they keep whatever they hold at power-up, for machines in
        which they do not matter.
        """
        for name, values in self.fields.items():
            if name == "h":
                continue
            field = self.signal[name]
            signal = Signal(len(Bits.cast(field)), name=name, reset_less=name != "write")
            m.d.comb += field.eq(signal)
            if all(isinstance(v, int) for v in values.values()):
                for bit in range(len(signal)):
                    on = [k for k, v in values.items() if isinstance(v, int) and v >> bit & 1]
                    if on or clear:
                        m.d.sync += signal[bit].eq(Cat(*(self._phase == k for k in on)).any() if on else 0)
                continue
            with m.Switch(self._phase):
                for k, v in values.items():
                    with m.Case(k):
                        m.d.sync += signal.eq(v)
                with m.Default():
                    m.d.sync += signal.eq(idle if name == "word" else 0)
