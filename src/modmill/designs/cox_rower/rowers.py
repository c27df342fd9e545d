# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The rowers, their rows, the ring, the register tree of the control word, and the cox (Figures 1 and 3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.designs.cox_rower.constants import Constants
from modmill.designs.cox_rower.control import Control, Word
from modmill.designs.cox_rower.operations import Kind
from modmill.designs.cox_rower.shape import PRODUCT, Shape
from modmill.interface import Multiplier
from modmill.numbers.folding import fold_bound
from modmill.rtl.delay import later
from modmill.rtl.fold import SelectedFold, bits
from modmill.rtl.memory import BlockRam
from modmill.rtl.product import one_tile, tiled_evenly


class Rower(wiring.Component):
    """One or more channels of each base: a multiplier, a block RAM, an accumulator for lazy sums, and a fold.

    ``u``: of the rower's moduli 2^w - u, the a_i, then the b_i. ``memory``: contents of the block RAM of ``depth``
    words. ``x``: ``sources`` words from outside (xa, xb, ya, yb of every channel; then a constant if the modulus is
    loaded). ``ring``: the value of the ring at this rower. ``w_out`` and ``zeta_out`` keep the words of a result.
    Cost (w = 17, one channel of each base): one DSP block, one block RAM, about 375 (KBE) or 480 (HBE) LUTs.
    """

    def __init__(
        self, shape: Shape, u: tuple[int, ...], memory: Sequence[int], depth: int, word: Word, sources: int
    ) -> None:
        self._shape, self._u, self._memory, self._depth, self._sources = shape, u, memory, depth, sources
        self._word = word
        self.outside = Signal(shape.w, name="outside", reset_less=True)
        self.residue = Signal(shape.w, name="residue")
        self.total = Signal(bits(shape.sum_bound), name="total", reset_less=True)
        w = shape.w
        after = max(fold_bound(shape.fold_bound, w, one) for one in u)
        self.folded = Signal(bits(max(after, 1 << w)), name="folded")
        super().__init__({
            "control": In(word), "x": In(sources * w), "ring": In(shape.hat_bits),
            "waiting": Out(w), "product": Out(2 * w),
            "w_out": Out(shape.channels_per_rower * w), "zeta_out": Out(shape.channels_per_rower * w),
            "local": Out(word),
        })  # fmt: skip

    @property
    def latency(self) -> int:
        """Cycles from an address of the block RAM to the product."""
        return PRODUCT

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        shape = self._shape
        w = shape.w
        c = Signal(self.control.shape(), reset_less=True)
        m.d.sync += c.eq(self.control)
        m.d.comb += self.local.eq(c)
        memory = self._memory_of(m, c)
        caught = self._multiply(m, c, memory)

        # ---- the value that enters the fold, and its modulus
        entry = Signal(bits(shape.fold_bound), reset_less=True)
        other: Value = self.folded if shape.loop else self.ring
        value = Mux(c.enter_sum, caught["sum"], caught["product"])
        if shape.pair:
            other = Mux(c.enter_pair, caught["pair"], other)
        m.d.sync += entry.eq(Mux(c.enter_sum | c.enter_product, value, other))
        base = Signal(len(c.base), reset_less=True)
        m.d.sync += base.eq(self._modulus(m, c) if shape.either else c.base)
        if shape.loop:
            fold = SelectedFold(m, entry, shape.fold_bound, w, self._u, base, name="fold", register=True)
            folded = _delayed(m, fold.out, shape.loop_pass - 1 - fold.latency, "fold")
            m.d.comb += [self.folded.eq(folded), self.residue.eq(self.folded[:w])]
        else:
            m.d.comb += self.residue.eq(self._pipeline(m, entry, base)[:w])

        # ---- to the ring and to the output
        with m.If(c.wait):
            m.d.sync += self.waiting.eq(memory.b_q)
        for k in range(shape.channels_per_rower):
            with m.If(c.out_w[k]):
                m.d.sync += self.w_out.word_select(k, w).eq(memory.b_q)
            with m.If(c.out_zeta[k]):
                m.d.sync += self.zeta_out.word_select(k, w).eq(memory.b_q)
        return m

    def _modulus(self, m: Module, c: Any) -> Signal:
        """The modulus of the fold after the loaded exchange: of a channel's two the other one if its bit is set."""
        places = self._shape.channels_per_rower
        exchanged = Signal(places, name="exchanged", reset_less=True)
        with m.If(c.bases & ~ResetSignal()):
            m.d.sync += exchanged.eq(self.outside[:places])
        chosen = Signal(len(c.base), name="chosen")
        with m.Switch(c.base):
            for k in range(2 * places):
                with m.Case(k):
                    m.d.comb += chosen.eq(Mux(exchanged[k % places], (k + places) % (2 * places), k))
        return chosen

    def _memory_of(self, m: Module, c: Any) -> BlockRam:
        """The block RAM: port a reads a constant; port b reads a word, or writes one from the fold or from outside."""
        w = self._shape.w
        m.submodules.memory = memory = BlockRam(w, self._depth, self._memory)
        with m.Switch(c.source):
            for k in range(self._sources):
                with m.Case(k if k < self._word.h_source else self._word.modulus_source):
                    m.d.sync += self.outside.eq(self.x.word_select(k, w))
            with m.Default():
                m.d.sync += self.outside.eq(c.h)
        m.d.comb += [
            memory.a_address.eq(c.constant),
            memory.b_address.eq(c.word),
            memory.b_write.eq(c.write & ~ResetSignal()),  # registers may hold anything before the first cycle
            memory.b_d.eq(Mux(c.outside, self.outside, self.residue)),
        ]
        return memory

    def _multiply(self, m: Module, c: Any, memory: BlockRam) -> dict[str, Signal]:
        """Multiplier and accumulator. Returns the registers before the fold: product, sum, and pair (if the shape has
        one)."""
        shape, w, total = self._shape, self._shape.w, self.total
        a, b = Signal(w, reset_less=True), Signal(w, reset_less=True)
        m.d.sync += [a.eq(Mux(c.ring, self.ring if shape.loop else self.residue, memory.b_q)), b.eq(memory.a_q)]
        if shape.tiles == 1:
            product = later(m, one_tile(m, a, b, 3, "tile"), "product")
        else:
            product = tiled_evenly(m, a, b, shape.block, 3)
        m.d.comb += self.product.eq(product)
        with m.If(c.clear):
            m.d.sync += total.eq(Mux(c.start, memory.b_q, 0) if shape.of(Kind.START) else 0)
        with m.Elif(c.add):
            m.d.sync += total.eq(total + product)
        caught = {}
        pair = [("pair", total, bits(shape.products_bound(2)))] if shape.pair else []
        for name, value, width in (("product", product, 2 * w), ("sum", total, len(total)), *pair):
            caught[name] = Signal(width, name=f"caught_{name}", reset_less=True)
            with m.If(c[f"catch_{name}"]):
                m.d.sync += caught[name].eq(value)
        return caught

    def _pipeline(self, m: Module, entry: Signal, base: Signal) -> Value:
        """The pipelined fold, which takes a value every cycle: one stage for each pass that some channel needs."""
        shape, bound = self._shape, self._shape.fold_bound
        value: Value = entry
        select: Value = base
        spent = 1
        for k, limit in enumerate(shape.bounds(bound)):
            tree = max(1, shape.digits.bit_length())
            wanted = 1 if limit <= 2 << shape.w else tree + (k == 0)
            if bound > 1 << shape.w:
                register = k == 0 and limit > 2 << shape.w
                fold = SelectedFold(m, value, bound, shape.w, self._u, select, name=f"fold{k + 1}", register=register)
                bound = fold.after
                value = _delayed(m, fold.out, wanted - fold.latency, f"fold{k + 1}")
                select = _delayed(m, fold.select, wanted - fold.latency, f"select{k + 1}")
            else:
                value = _delayed(m, value, wanted, f"fold{k + 1}")
            spent += wanted
        assert spent == shape.fold_latency
        return value


def _delayed(m: Module, value: Value, cycles: int, name: str) -> Value:
    """``value`` after ``cycles`` registers without reset."""
    for k in range(cycles):
        value = later(m, value, f"{name}_delay{k}")
    return value


class Row(wiring.Component):
    """``columns`` rowers and their registers in the ring; for HBE also the adder for X_r.

    The rowers read the first of these registers; ``ring`` is the last. Cost without the rowers: the registers, and for
    HBE an adder and the same number of registers for X_r.
    """

    def __init__(self, shape: Shape, rowers: Sequence[Rower], word: Word, sources: int) -> None:
        self._shape, self.rowers, self._sources = shape, tuple(rowers), sources
        self.hat = Signal(shape.hat_bits, name="hat", reset_less=True)
        self.places = _places(shape, "ring")
        w, c = shape.w, shape.columns
        super().__init__({
            "control": In(word), "x": In(sources * w * c), "ring_in": In(shape.hat_bits), "ring": Out(shape.hat_bits),
            **({"first": Out(shape.hat_bits)} if shape.checked else {}),
            "w_out": Out(shape.channels_per_rower * w * c), "zeta_out": Out(shape.channels_per_rower * w * c),
        })  # fmt: skip

    @property
    def latency(self) -> int:
        """Cycles from an address of the block RAMs to the products; the ring moves by one register in each cycle."""
        return PRODUCT

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        shape = self._shape
        w = shape.w
        places = self.places
        for k, rower in enumerate(self.rowers):
            m.submodules[f"rower{k}"] = rower
            m.d.comb += [
                rower.control.eq(self.control),
                rower.x.eq(self.x.word_select(k, self._sources * w)),
                rower.ring.eq(places[0]),
                self.w_out.word_select(k, shape.channels_per_rower * w).eq(rower.w_out),
                self.zeta_out.word_select(k, shape.channels_per_rower * w).eq(rower.zeta_out),
            ]
        local = self.rowers[0].local
        if shape.loop:
            loaded: Value = self.rowers[0].waiting
        else:
            total = sum((r.product for r in self.rowers[1:]), self.rowers[0].product)
            if shape.parts > 1:  # the most significant words of the cofactors come first
                row = Signal(len(total), reset_less=True)
                m.d.sync += row.eq(total)
                total = Mux(local.hat_first, 0, self.hat << w)[: shape.hat_bits] + row
            with m.If(local.hat):
                m.d.sync += self.hat.eq(total)
            hats = [self.hat, *_places(shape, "hat")[1:]]
            with m.If((local.hat & local.hat_first) | local.load):  # a new X_r arrives, or the oldest leaves
                m.d.sync += [hats[k].eq(hats[k - 1]) for k in range(1, shape.channels_per_rower)]
            loaded = hats[-1]
        m.d.sync += places[0].eq(Mux(local.load, loaded, self.ring_in))
        m.d.sync += [places[k].eq(places[k - 1]) for k in range(1, shape.channels_per_rower)]
        m.d.comb += self.ring.eq(places[-1])
        if shape.checked:
            m.d.comb += self.first.eq(places[0])
        return m


def _places(shape: Shape, name: str) -> list[Signal]:
    """One register for each value that a row loads into the ring."""
    return [
        Signal(shape.hat_bits, name=shape.named(name, k).replace(" ", ""), reset_less=True)
        for k in range(shape.channels_per_rower)
    ]


def raise_alarm(m: Module, alarm: Signal, wrong: Value) -> None:
    """Set ``alarm`` from ``wrong`` on until the reset; it is held twice, complemented."""
    held, calm = Signal(name="alarm"), Signal(name="calm", init=1)
    m.d.comb += alarm.eq(held | ~calm | wrong)
    with m.If(alarm):
        m.d.sync += [held.eq(1), calm.eq(0)]


class Branch(wiring.Component):
    """One register of the tree that carries the control word."""

    def __init__(self, word: Word) -> None:
        super().__init__({"i": In(word), "o": Out(word)})

    @property
    def latency(self) -> int:
        return 1

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        q = Signal(self.i.shape(), reset_less=True)
        m.d.sync += q.eq(self.i)
        m.d.comb += self.o.eq(q)
        return m


class CoxRowerArray:
    """The rows of rowers, connected as a ring, the register tree of the control word, and the cox.

    ``loadable``: the modulus is loaded, and not among the ``constants`` in the block RAMs.
    """

    def __init__(self, control: Control, constants: Constants, loadable: bool) -> None:
        self._control, self._program = control, control.program
        self._contents = constants.contents(blank=loadable)
        self._sources = control.word.h_source + loadable
        self._rows: list[Row] = []
        self.check: Rower | None = None
        """The rower of the redundant modulus of a check."""
        p, shape = control.program, control.program.shape
        shared = shape.of(Kind.SHARE)
        v = shape.maker(Kind.REDUCE, shared[0].reads[0]) if shared else None
        self.known = p.residue(v) + 1 if v else p.load(2) + shape.cox_cycles
        """The cycle of the program in which h is visible."""
        self.h = Signal(max(1, shape.h_max.bit_length()), reset_less=True)

    def build(self, m: Module, connect: Callable[[int], None]) -> None:
        """Add all parts to a module. ``connect`` is called with the number of each rower, to connect its `outside` and
        `result`."""
        shape, word = self._program.shape, self._control.word
        per_branch = max(1, 8 // shape.columns)
        branch: Branch | None = None
        for r in range(shape.rows):
            if r % per_branch == 0:
                m.submodules[f"branch{r // per_branch}"] = branch = Branch(word)
                m.d.comb += branch.i.eq(self._control.signal)
            members = range(r * shape.columns, (r + 1) * shape.columns)
            rowers = [self._rower(i) for i in members]
            row = Row(shape, rowers, word, self._sources)
            m.submodules[f"row{r}"] = row
            assert branch is not None
            m.d.comb += row.control.eq(branch.o)
            self._rows.append(row)
            for i in members:
                connect(i)
        for r, row in enumerate(self._rows):
            m.d.comb += row.ring_in.eq(self._rows[r - 1].ring)
        if shape.checked:
            self._beside(m)
            connect(shape.rowers)
        if shape.redundant:
            self._share(m)
        else:
            self._cox(m)

    def _rower(self, i: int) -> Rower:
        control, shape = self._control, self._program.shape
        return Rower(shape, shape.u_of(i), self._contents[i], control.depth, control.word, self._sources)

    def _beside(self, m: Module) -> None:
        """The rower of the check: it reads the ring as the rowers of row 0 do, and nothing reads it but the check. Its
        control words have a register of their own."""
        m.submodules.check_branch = branch = Branch(self._control.word)
        m.submodules.check_rower = self.check = self._rower(self._program.shape.rowers)
        m.d.comb += [
            branch.i.eq(self._control.signal),
            self.check.control.eq(branch.o),
            self.check.ring.eq(self._rows[0].first),
        ]

    def outside(self, i: int) -> Value:
        """The input of rower i for words from outside."""
        shape = self._program.shape
        if self.check and i == shape.rowers:
            return self.check.x
        return self._rows[i // shape.columns].x.word_select(i % shape.columns, self._sources * shape.w)

    def result(self, i: int, place: int) -> tuple[Value, Value]:
        """The result words of rower i over A and over B, for its channel number ``place``."""
        shape = self._program.shape
        if self.check and i == shape.rowers:
            return self.check.w_out.word_select(place, shape.w), self.check.zeta_out.word_select(place, shape.w)
        row, k = self._rows[i // shape.columns], i % shape.columns * shape.channels_per_rower + place
        return row.w_out.word_select(k, shape.w), row.zeta_out.word_select(k, shape.w)

    def registers(self, core: Multiplier) -> dict[str, Signal | list[Signal]]:
        """For each unit the registers in which an operation leaves its result: of all rowers, rows, or the machine."""
        rowers = [*(rower for row in self._rows for rower in row.rowers), *([self.check] if self.check else [])]
        places = range(self._program.shape.channels_per_rower)
        return {
            "multiplier": [rower.product for rower in rowers],
            "fold": [rower.folded if self._program.shape.loop else rower.residue for rower in rowers],
            "sum": [rower.total for rower in rowers],
            "hat": [row.hat for row in self._rows],
            "ring": [row.places[k] for k in reversed(places) for row in self._rows],
            "cox": self.h,
            "output": core.o_r,
        }

    def _share(self, m: Module) -> None:
        """h is a residue of the last rower, kept until all rowers have written it."""
        now = Signal()
        m.d.sync += now.eq(self._control.at(self.known - 2))
        with m.If(now):
            m.d.sync += self.h.eq(self._rows[-1].rowers[-1].residue)
        m.d.comb += self._control.signal.h.eq(self.h)

    def _cox(self, m: Module) -> None:
        shape, at, h, known = self._program.shape, self._control.at, self.h, self.known
        channels_per_rower, low = shape.channels_per_rower, shape.hat_bits - shape.top_bits
        level = [later(m, row.ring[low:], f"cox_{r}") for r, row in enumerate(self._rows)]
        for depth in range(shape.cox_levels):
            pairs = ((k, level[k : k + 2]) for k in range(0, len(level), 2))
            level = [later(m, sum(pair[1:], pair[0]), f"cox{depth}_{k}") for k, pair in pairs]
        now = Signal()
        m.d.sync += now.eq(
            Cat(*(at(known - 2 - k) for k in range(channels_per_rower))).any()
            if channels_per_rower > 1
            else at(known - 2)
        )
        if channels_per_rower == 1:
            with m.If(now):
                m.d.sync += h.eq((level[0] + shape.offset) >> shape.fraction)
        else:
            summed_up = Signal(len(h) + shape.fraction, reset_less=True)
            first = Signal()
            m.d.sync += first.eq(at(known - 1 - channels_per_rower))
            with m.If(now):
                m.d.sync += summed_up.eq(Mux(first, shape.offset, summed_up) + level[0])
            m.d.comb += h.eq(summed_up >> shape.fraction)
        m.d.comb += self._control.signal.h.eq(h)
