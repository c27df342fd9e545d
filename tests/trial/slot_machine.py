# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Case 4: a slot machine made from any multiplier. Numbers stay in the core's own representation between operations."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from modmill.contract import Binary
from modmill.rtl import fold

KINDS = ("mul", "add", "sub", "load", "store")


class SlotMachine(wiring.Component):
    """Operations enter at ``i`` (for a load with the number, in the core's form); stores leave at ``o``, in order.

    One operation at a time. ``program``: rows whose slots and multiples of p for differences it has; an operation
    names such a multiple by its index.
    """

    def __init__(self, core, contract, program):
        self.core, self.form, self.p = core, contract.operand, contract.p
        self.lifts = sorted(
            {0, *(task.offset_multiple for _, _, instruction in program.executed() for task in instruction.sums)}
        )
        self.slots = program.slots
        address = (self.slots - 1).bit_length()
        width = self.form.width
        super().__init__({
            "i_valid": In(1), "i_ready": Out(1), "i_kind": In(range(len(KINDS))), "i_destination": In(address),
            "i_a": In(address), "i_b": In(address), "i_lift": In(range(max(2, len(self.lifts)))), "i_number": In(width),
            "o_valid": Out(1), "o_ready": In(1), "o_number": Out(width),
        })  # fmt: skip

    def offers(self, program, inputs):
        """Loads, the rows' operations and stores as payloads of ``i``."""
        operations = [("load", slot, 0, 0, 0, self.form.encode(inputs[name])) for slot, name in program.inputs]
        for task in (task for _, _, row in program.executed() for task in row.tasks):
            operations.append(
                (task.kind, task.destination.number, task.a.number, task.b.number, task.offset_multiple, 0)
            )
        operations += [("store", 0, slot, 0, 0, 0) for slot, _ in program.results]
        names = ("i_kind", "i_destination", "i_a", "i_b", "i_lift", "i_number")
        return [
            ("i", dict(zip(names, (KINDS.index(kind), *slots, self.lifts.index(lift), number), strict=True)))
            for kind, *slots, lift, number in operations
        ]

    def elaborate(self, _platform):
        m = Module()
        core, form = self.core, self.form
        m.submodules.core = core
        m.submodules.slots = memory = Memory(shape=form.width, depth=self.slots, init=[])
        write = memory.write_port()
        a, b = memory.read_port(domain="comb"), memory.read_port(domain="comb")
        kinds = {kind: self.i_kind == code for code, kind in enumerate(KINDS)}
        total, difference = Signal(form.width), Signal(form.width)
        self._sums(m, a.data, b.data, total, difference)
        waiting = Signal()  # for a product
        m.d.comb += [
            a.addr.eq(self.i_a), b.addr.eq(self.i_b), write.addr.eq(self.i_destination),
            core.i_a.eq(a.data), core.i_b.eq(b.data), core.i_valid.eq(self.i_valid & kinds["mul"] & ~waiting),
            core.o_ready.eq(waiting), self.o_number.eq(a.data), self.o_valid.eq(self.i_valid & kinds["store"]),
        ]  # fmt: skip
        with m.If(core.i_valid & core.i_ready):
            m.d.sync += waiting.eq(1)
        with m.If(core.o_valid & core.o_ready):
            m.d.sync += waiting.eq(0)
        with m.Switch(self.i_kind):
            for kind, done, value in (
                ("mul", core.o_valid & waiting, core.o_r), ("add", 1, total), ("sub", 1, difference),
                ("load", 1, self.i_number), ("store", self.o_ready, 0),
            ):  # fmt: skip
                with m.Case(KINDS.index(kind)):
                    m.d.comb += [self.i_ready.eq(done), write.data.eq(value)]
        m.d.comb += write.en.eq(self.i_valid & self.i_ready & ~kinds["store"])
        return m

    def _sums(self, m, a, b, total, difference):
        """a + b and a - b + lift p: wide in binary, channel by channel with residues."""
        if isinstance(self.form, Binary):
            lifted = Signal(self.form.width)
            with m.Switch(self.i_lift):
                for i, lift in enumerate(self.lifts):
                    with m.Case(i):
                        m.d.comb += lifted.eq(lift * self.p)
            m.d.comb += [total.eq(a + b), difference.eq(a + lifted - b)]
            return
        base = self.form.base
        w, sums, differences = base.w, [], []
        for j, (modulus, u) in enumerate(zip(base.moduli, base.u, strict=True)):
            x, y = a.word_select(j, w), b.word_select(j, w)
            # lift p plus a multiple of the modulus, so that no residue b below 2^w makes it negative
            constants = [lift * self.p % modulus + 2 * modulus for lift in self.lifts]
            lifted = Signal(fold.bits(max(constants) + 1), name=f"lifted{j}")
            with m.Switch(self.i_lift):
                for i, constant in enumerate(constants):
                    with m.Case(i):
                        m.d.comb += lifted.eq(constant)
            bound = (1 << w) + max(constants)
            low, high = Signal(w + 1, name=f"sum{j}"), Signal(fold.bits(bound), name=f"difference{j}")
            m.d.comb += [low.eq(x + y), high.eq(x + lifted - y)]
            sums.append(fold.reduce(m, low, 2 << w, w, u, name=f"sum{j}"))
            differences.append(fold.reduce(m, high, bound, w, u, name=f"difference{j}"))
        m.d.comb += [total.eq(Cat(*sums)), difference.eq(Cat(*differences))]
