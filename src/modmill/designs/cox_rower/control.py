# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The control of a cox-rower machine: one control word for all rowers in each cycle of a period, from its program."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from amaranth.hdl import Cat, Module, Signal
from amaranth.hdl import Value as Bits
from amaranth.lib import data, wiring

from modmill.designs.cox_rower.operations import OPERANDS, Kind, Operation, Value
from modmill.designs.cox_rower.schedule import Program
from modmill.designs.cox_rower.shape import OPERAND, PRODUCT, TREE, Shape
from modmill.rtl import periodic
from modmill.schedule import ScheduleError


class Word(data.StructLayout):
    """The control word of the rowers in one cycle. ``depth``: words of a block RAM, a power of two."""

    def __init__(self, depth: int, shape: Shape) -> None:
        address, channels_per_rower = depth.bit_length() - 1, shape.channels_per_rower
        self.h_source = len(OPERANDS) * channels_per_rower
        self.modulus_source = self.h_source + 1
        super().__init__({
            "constant": address, "word": address,  # ports A and B
            "write": 1,
            "outside": 1,  # write the word from outside, else the residue
            "source": self.modulus_source.bit_length(),  # the word from outside: an operand's, h, or a constant
            "h": max(1, shape.h_max.bit_length()),
            "ring": 1,  # multiply the value of the ring, else the word from the memory
            "clear": 1, **({"start": 1} if shape.of(Kind.START) else {}), "add": 1, "catch_product": 1, "catch_sum": 1,
            **({"catch_pair": 1, "enter_pair": 1} if shape.pair else {}),
            "enter_product": 1, "enter_sum": 1,
            "base": (2 * channels_per_rower - 1).bit_length(),  # modulus of the fold: of the rower's a_i, b_i
            "wait": 1, "hat": 1, "hat_first": 1, "load": 1,
            "out_w": channels_per_rower, "out_zeta": channels_per_rower,  # one bit for each channel
            **({"bases": 1} if shape.either else {}),  # the word from outside exchanges moduli
        })  # fmt: skip


class Phase(periodic.Phase):
    """The cycle of the period: 0 after reset and in cycle ``p.accept`` of the program."""

    def __init__(self, m: Module, p: Program) -> None:
        super().__init__(m, p.interval)
        self._accept = p.accept

    def at(self, cycle: int) -> Bits:
        """High in the given cycle of the program, modulo the interval (combinational)."""
        return self.signal == (cycle - self._accept) % self._interval


def announce(m: Module, core: wiring.Component, arriving: Bits) -> None:
    """Set ``o_valid`` two cycles after ``arriving``; it stays until the result is taken."""
    arrive = Signal()
    m.d.sync += arrive.eq(arriving)
    with m.If(arrive):
        m.d.sync += core.o_valid.eq(1)
    with m.Elif(core.o_ready):
        m.d.sync += core.o_valid.eq(0)


class Control:
    """The fields of the control word over the cycles of a period: ``put`` collects them, ``drive`` makes the logic.

    ``signal``, a `Word` for block RAMs of ``depth`` words, reaches the rowers TREE cycles later.
    """

    def __init__(self, p: Program, depth: int, phase: Phase) -> None:
        self.program, self.depth, self.at, self._phase = p, depth, phase.at, phase.signal
        self.word = Word(depth, p.shape)
        self.signal = Signal(self.word, name="control")
        self.fields: dict[str, dict[int, int | Bits]] = {name: {} for name in self.word.members}

    def put(self, field: str, cycle: int, value: int | Bits = 1) -> None:
        """Set a field for a cycle of the program at the rowers.

        Raises ScheduleError if the field is already set in that cycle of the period.
        """
        p = self.program
        key = (cycle - TREE - 1 - p.accept) % p.interval
        if key in self.fields[field]:
            raise ScheduleError(f"{field} is set twice in cycle {key} of {p.interval}")
        self.fields[field][key] = value

    def store(self, address: Bits, cycle: int, *, source: int | None = None) -> None:
        """Write the residue to ``address``, or the word from outside with the number ``source``."""
        self.put("word", cycle, address)
        self.put("write", cycle)
        if source is not None:
            self.put("outside", cycle)
            self.put("source", cycle - 1, source)

    def product(self, held: Callable[[Value, int], Bits], summed: Callable[[int], Bits] | None = None) -> None:
        """Set the fields of all operations of one product except TAKE and GIVE.

        ``held(value, cycle)``: the address of a word of the product in that cycle at the rowers. ``summed(cycle)``: the
        signal that adds the second product of MULTIPLY_TWO; default: always.
        """
        p, shape, put = self.program, self.program.shape, self.put
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
            put("enter_sum", p.start(op, "fold"))
            self._reduce(op, held)
        for op in shape.of(Kind.START):
            self._start(op, held)
        for op in shape.of(Kind.COX, Kind.SHARE):
            self.store(held(op.result, p.start(op)), p.start(op), source=self.word.h_source)

    def _start(self, op: Operation, held: Callable[[Value, int], Bits]) -> None:
        """Read the word or the constant with which a sum starts, through the port of the words."""
        p, t = self.program, self.program.start(op)
        self.put("word", t, held(op.reads[0], t) if op.reads else p.shape.address(op))
        for field in ("clear", "start"):
            self.put(field, t + OPERAND - 1)

    def _reduce(self, op: Operation, held: Callable[[Value, int], Bits]) -> None:
        """Set the modulus for each pass of the fold, and store the residue."""
        p, base = self.program, self._base(op)
        for entry in p.entries(op) if base else ():
            self.put("base", entry, base)
        self.store(held(op.result, p.residue(op)), p.residue(op))

    def _base(self, op: Operation) -> int:
        return op.over_b * self.program.shape.channels_per_rower + op.k

    def _multiply(
        self, op: Operation, held: Callable[[Value, int], Bits], summed: Callable[[int], Bits] | None
    ) -> None:
        """Set the fields of MULTIPLY or MULTIPLY_TWO."""
        p, shape, put, t = self.program, self.program.shape, self.put, self.program.start(op)
        if op.kind is Kind.MULTIPLY:
            put("word", t, held(op.reads[0], t))
            put("constant", t, shape.address(op) if op.table else held(op.reads[1], t))
            put("catch_product", t + PRODUCT)
            put("enter_product", p.start(op, "fold"))
        else:
            for k, (one, other) in enumerate((op.reads[:2], op.reads[2:])):
                put("word", t + k, held(one, t + k))
                put("constant", t + k, held(other, t + k))
                put("add", t + k + PRODUCT, summed(t + k + PRODUCT) if k and summed else 1)
            put("clear", t + PRODUCT - 1)
            register = "pair" if shape.pair else "sum"
            put(f"catch_{register}", p.start(op, "catch"))
            put(f"enter_{register}", p.start(op, "fold"))
        self._reduce(op, held)

    def _ring(self, op: Operation, held: Callable[[Value, int], Bits]) -> None:
        """Set the fields of ROW_SUM, LOAD or TERMS."""
        p, shape, put = self.program, self.program.shape, self.put
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
                        put("word", p.start(op, "read") + k, held(value, p.start(op, "read") + k))
                        put("wait", p.start(op, "read") + k + OPERAND - 1)
                    put("load", p.start(op) + k)
            case _:
                for step in range(shape.steps):
                    slot = p.first(op) + step
                    if not shape.loop and self._base(op):
                        put("base", p.start(op) + 1 + step, self._base(op))
                    put("constant", slot, shape.address(op, step))
                    put("ring", slot + OPERAND - 1)
                    put("add", slot + PRODUCT)

    def load(
        self, m: Module, addresses: Sequence[int], valid: Signal, ready: Signal, idle: Bits, loading: Signal
    ) -> None:
        """Write words of stream k to ``addresses`` in all rowers, one word in each period.

        A word is written in a cycle of the period in which no product uses the port, and ``ready`` is set when the
        rowers read it. The first word waits for ``idle``; ``loading`` is set from then until the last word. With loaded
        bases the first word exchanges moduli.
        """
        interval = self.program.interval
        busy = set(self.fields["word"]) | {(k + 1) % interval for k in self.fields["source"]}
        spare = next(k for k in range(interval) if k not in busy)
        index = Signal(range(len(addresses) + 1))
        writing = Signal()
        decide = (spare - 3) % interval  # decide here; ``writing`` then stays for one period
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
        if self.program.shape.either:
            self.fields["bases"][spare] = writing & (index == 0)
        self.fields["source"][(spare - 1) % interval] = self.word.modulus_source
        taken = Signal()
        m.d.sync += taken.eq((self._phase == (spare + TREE - 1) % interval) & writing)
        m.d.comb += ready.eq(taken)
        with m.If(taken):
            m.d.sync += index.eq(index + 1)
            with m.If(index == len(addresses) - 1):
                m.d.sync += [index.eq(0), loading.eq(0)]

    def drive(self, m: Module, idle: int, *, clear: bool = False) -> None:
        """Make a register for every field except h. ``idle``: the address in cycles that set none.

        ``clear``: bits that no cycle sets are 0. Otherwise they keep their power-up value, for a machine to which they
        do not matter.
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
