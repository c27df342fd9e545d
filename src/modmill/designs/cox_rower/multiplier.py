# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The cox-rower machine: RNS Montgomery multiplication on rowers of one multiplier and one block RAM each, in a ring.

Base A of n moduli a_i and base B of n moduli b_i; rower i serves a_i and b_i. Rowers stand in rows of ``columns``
(1: Kawamura's base extension, KBE; 2 and more: the hierarchical one, HBE). One product, in cycles of the multiplier:

    s    = x y              in A        w~  = x~ y~               in B      (x~_j = x B_j^-1 mod b_j)
    xi   = s |-p^-1 A_i^-1|
    zeta = w~ |B_j A^-1| + sum over the ring of X |p A_r^-1 B_j^-1|          (first extension, no cox)
    w    = sum over the ring of Z |B_r| + h |-B|        in A                 (second extension, exact by the cox)

X and Z are xi and zeta themselves (KBE, n steps), or for HBE the unreduced X_r = sum_j xi_(r,j) A_r / a_(r,j) of a row,
which each rower folds modulo its own modulus (n / columns steps). The ring passes them on, one row a cycle, so no data
wire reaches more than one neighbour. Sums are lazy: reduced once, when they are whole. KBE folds in a loop beside the
multiplier, HBE in a pipeline that takes a value every cycle.

With n / m rowers each serves m channels of either base, k n / m + i for k < m. It has m places in the ring, loaded one
after another, so that the ring holds everything as before; everything then passes m times, once for each channel.

The machine runs a periodic programme: a control word each cycle, made from the phase and from the number of the slot
that each product under way occupies, reaches the rowers through a tree of registers. Nothing in it depends on data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from amaranth.hdl import Cat, Const, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.design import Multiplier
from modmill.designs.cox_rower import operations
from modmill.designs.cox_rower.constants import Constants, Tables
from modmill.designs.cox_rower.control import Control, Phase, Word
from modmill.designs.cox_rower.operations import Kind
from modmill.designs.cox_rower.schedule import Programme, memory_plan
from modmill.designs.cox_rower.shape import OPERAND, TREE, Shape
from modmill.numbers.folding import fold_bound
from modmill.rtl.fold import SelectedFold, bits
from modmill.rtl.memory import BlockRam
from modmill.rtl.product import Tile, tiled_evenly


class Rower(wiring.Component):
    """Channels of each base: a multiplier of one DSP block or several, a block RAM, a lazy sum and a fold.

    ``x``: ``sources`` words from outside (xa, xb, ya, yb of every channel, and where the modulus is loadable a
    constant). ``ring`` is the ring's value beside this rower. ``w_out`` and ``zeta_out`` keep the words of a result.
    Cost (w = 17, one channel of each base): one DSP block, one block RAM, about 375 (KBE) or 480 (HBE) LUTs.
    """

    def __init__(
        self, shape: Shape, u: tuple[int, ...], memory: Sequence[int], depth: int, word: Word, sources: int
    ) -> None:
        self._shape, self._u, self._memory, self._depth, self._sources = shape, u, memory, depth, sources
        self._word = word
        self.residue = Signal(shape.w, name="residue")
        self.total = Signal(bits(shape.sum_bound), name="total", reset_less=True)
        w = shape.w
        super().__init__({
            "control": In(word), "x": In(sources * w), "ring": In(shape.hat_bits),
            "waiting": Out(w), "product": Out(2 * w),
            "w_out": Out(shape.share * w), "zeta_out": Out(shape.share * w), "local": Out(word),
        })  # fmt: skip

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        shape = self._shape
        w = shape.w
        c = Signal(self.control.shape(), reset_less=True)
        m.d.sync += c.eq(self.control)
        m.d.comb += self.local.eq(c)

        # ---- memory
        m.submodules.memory = memory = BlockRam(w, self._depth, self._memory)
        outside = Signal(w, reset_less=True)
        with m.Switch(c.source):
            for k in range(self._sources):
                with m.Case(k if k < self._word.h_source else self._word.modulus_source):
                    m.d.sync += outside.eq(self.x.word_select(k, w))
            with m.Default():
                m.d.sync += outside.eq(c.h)
        m.d.comb += [
            memory.a_address.eq(c.constant),
            memory.b_address.eq(c.word),
            memory.b_write.eq(c.write & ~ResetSignal()),  # registers may hold anything before the first cycle
            memory.b_d.eq(Mux(c.outside, outside, self.residue)),
        ]

        # ---- multiplier and lazy sum
        a, b = Signal(w, reset_less=True), Signal(w, reset_less=True)
        m.d.sync += [a.eq(Mux(c.ring, self.ring if shape.loop else self.residue, memory.b_q)), b.eq(memory.a_q)]
        product: Value
        if shape.tiles == 1:
            product = Signal(2 * w, name="product", reset_less=True)
            m.submodules.tile = tile = Tile(w, w, 3)
            m.d.comb += [tile.a.eq(a), tile.b.eq(b)]
            m.d.sync += product.eq(tile.p)
        else:
            product = tiled_evenly(m, a, b, shape.block, 3)
        m.d.comb += self.product.eq(product)
        total = self.total
        with m.If(c.clear):
            m.d.sync += total.eq(0)
        with m.Elif(c.add):
            m.d.sync += total.eq(total + product)
        caught_product = Signal(2 * w, reset_less=True)
        caught_sum = Signal(len(total), reset_less=True)
        with m.If(c.catch_product):
            m.d.sync += caught_product.eq(product)
        with m.If(c.catch_sum):
            m.d.sync += caught_sum.eq(total)
        if shape.pair:
            caught_pair = Signal(bits(shape.pair_bound), reset_less=True)
            with m.If(c.catch_pair):
                m.d.sync += caught_pair.eq(total)

        # ---- fold
        bound = shape.fold_bound
        entry = Signal(bits(bound), reset_less=True)
        if shape.loop:
            folded = Signal(bits(max(max(fold_bound(bound, w, u) for u in self._u), 1 << w)))
            other: Value = folded
        else:
            other = self.ring
        caught = Mux(c.enter_sum, caught_sum, caught_product)
        if shape.pair:
            other = Mux(c.enter_pair, caught_pair, other)
        m.d.sync += entry.eq(Mux(c.enter_sum | c.enter_product, caught, other))
        base = Signal(len(c.base), reset_less=True)
        m.d.sync += base.eq(c.base)
        if shape.loop:
            fold = SelectedFold(m, entry, bound, w, self._u, base, name="fold", register=True)
            out = fold.out
            spare = shape.loop_pass - 1 - fold.latency
            m.d.comb += [folded.eq(_delayed(m, out, spare, "fold")), self.residue.eq(folded[:w])]
        else:
            value: Value = entry
            select: Value = base
            spent = 1
            for k, limit in enumerate(shape.bounds(bound)):
                tree = max(1, shape.digits.bit_length())
                wanted = 1 if limit <= 2 << w else tree + (k == 0)
                if bound > 1 << w:
                    fold = SelectedFold(
                        m, value, bound, w, self._u, select, name=f"fold{k + 1}", register=k == 0 and limit > 2 << w
                    )
                    value, select, bound = fold.out, fold.select, fold.after
                    value = _delayed(m, value, wanted - fold.latency, f"fold{k + 1}")
                    select = _delayed(m, select, wanted - fold.latency, f"select{k + 1}")
                else:
                    value = _delayed(m, value, wanted, f"fold{k + 1}")
                spent += wanted
            assert spent == shape.fold_latency
            m.d.comb += self.residue.eq(value[:w])

        # ---- to the ring and to the output
        with m.If(c.wait):
            m.d.sync += self.waiting.eq(memory.b_q)
        for k in range(shape.share):
            with m.If(c.out_w[k]):
                m.d.sync += self.w_out.word_select(k, w).eq(memory.b_q)
            with m.If(c.out_zeta[k]):
                m.d.sync += self.zeta_out.word_select(k, w).eq(memory.b_q)
        return m


def _delayed(m: Module, value: Value, cycles: int, name: str) -> Value:
    """``value`` after so many registers without reset."""
    for k in range(cycles):
        q = Signal(len(value), name=f"{name}_delay{k}", reset_less=True)
        m.d.sync += q.eq(value)
        value = q
    return value


class Row(wiring.Component):
    """``columns`` rowers and their places in the ring; for HBE also the row's sums of products, X_r.

    The rowers see the first of the places, ``ring`` is the last. Cost beside the rowers: the places, and for HBE an
    adder and as many registers of the same width.
    """

    def __init__(self, shape: Shape, rowers: Sequence[Rower], word: Word, sources: int) -> None:
        self._shape, self.rowers, self._sources = shape, tuple(rowers), sources
        self.hat = Signal(shape.hat_bits, name="hat", reset_less=True)
        w, c = shape.w, shape.columns
        super().__init__({
            "control": In(word), "x": In(sources * w * c), "ring_in": In(shape.hat_bits), "ring": Out(shape.hat_bits),
            "w_out": Out(shape.share * w * c), "zeta_out": Out(shape.share * w * c),
        })  # fmt: skip

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        shape = self._shape
        w = shape.w
        places = _places(shape, "ring")
        for k, rower in enumerate(self.rowers):
            m.submodules[f"rower{k}"] = rower
            m.d.comb += [
                rower.control.eq(self.control),
                rower.x.eq(self.x.word_select(k, self._sources * w)),
                rower.ring.eq(places[0]),
                self.w_out.word_select(k, shape.share * w).eq(rower.w_out),
                self.zeta_out.word_select(k, shape.share * w).eq(rower.zeta_out),
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
            with m.If((local.hat & local.hat_first) | local.load):  # a new one comes, or the oldest goes
                m.d.sync += [hats[k].eq(hats[k - 1]) for k in range(1, shape.share)]
            loaded = hats[-1]
        m.d.sync += places[0].eq(Mux(local.load, loaded, self.ring_in))
        m.d.sync += [places[k].eq(places[k - 1]) for k in range(1, shape.share)]
        m.d.comb += self.ring.eq(places[-1])
        return m


def _places(shape: Shape, name: str) -> list[Signal]:
    """Registers for what one row of rowers brings into the ring."""
    return [
        Signal(shape.hat_bits, name=shape.named(name, k).replace(" ", ""), reset_less=True) for k in range(shape.share)
    ]


class Branch(wiring.Component):
    """One register of the tree that carries the control word."""

    def __init__(self, word: Word) -> None:
        super().__init__({"i": In(word), "o": Out(word)})

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        q = Signal(self.i.shape(), reset_less=True)
        m.d.sync += q.eq(self.i)
        m.d.comb += self.o.eq(q)
        return m


class Chain:
    """The rows of rowers in their ring, the tree that carries the control word to them, and the cox.

    ``contents``: of every rower's block RAM; ``sources``: words from outside that a rower takes.
    """

    def __init__(
        self, p: Programme, phase: Phase, control: Control, word: Word, contents: Sequence[Sequence[int]], sources: int
    ) -> None:
        self._programme, self._phase, self._control, self._word = p, phase, control, word
        self._contents, self._sources = contents, sources
        self._rows: list[Row] = []
        shape = p.shape
        self.known = p.load(2) + shape.cox_cycles
        """Cycle in which h is visible; the tree's sums come before."""
        self.h = Signal(max(1, shape.h_max.bit_length()), reset_less=True)

    def build(self, m: Module, depth: int, connect: Callable[[int], None]) -> None:
        """Add all of it to a module, with block RAMs of so many words; ``connect`` is called with every rower's number,
        to connect what is `outside` and its `result`."""
        shape, word = self._programme.shape, self._word
        per_branch = max(1, 8 // shape.columns)
        branch: Branch | None = None
        for r in range(shape.rows):
            if r % per_branch == 0:
                m.submodules[f"branch{r // per_branch}"] = branch = Branch(word)
                m.d.comb += branch.i.eq(self._control.signal)
            members = range(r * shape.columns, (r + 1) * shape.columns)
            rowers = [Rower(shape, shape.u[i], self._contents[i], depth, word, self._sources) for i in members]
            row = Row(shape, rowers, word, self._sources)
            m.submodules[f"row{r}"] = row
            assert branch is not None
            m.d.comb += row.control.eq(branch.o)
            self._rows.append(row)
            for i in members:
                connect(i)
        for r, row in enumerate(self._rows):
            m.d.comb += row.ring_in.eq(self._rows[r - 1].ring)
        self._cox(m)

    def channels(self, i: int) -> range:
        """Channels of each base that rower i serves."""
        shape = self._programme.shape
        return range(i, shape.n, shape.rowers)

    def outside(self, i: int) -> Value:
        """Where rower i takes its words from outside."""
        shape = self._programme.shape
        return self._rows[i // shape.columns].x.word_select(i % shape.columns, self._sources * shape.w)

    def result(self, i: int, place: int) -> tuple[Value, Value]:
        """The words over A and over B that rower i gives out for the channel at that place among its own."""
        shape = self._programme.shape
        row, k = self._rows[i // shape.columns], i % shape.columns * shape.share + place
        return row.w_out.word_select(k, shape.w), row.zeta_out.word_select(k, shape.w)

    @property
    def probes(self) -> list[tuple[str, Signal | list[Signal], int]]:
        """Intermediates of a product under the algorithm's names, with their cycles after its acceptance."""
        p, shape = self._programme, self._programme.shape
        residues = [r.residue for row in self._rows for r in row.rowers]
        hats = [row.hat for row in self._rows]
        found: list[tuple[str, Signal | list[Signal], int]] = []
        for op in shape.operations:
            name = shape.shown(op.result)
            match op.kind:
                case Kind.MULTIPLY | Kind.REDUCE if op.result.letter != "w":  # w is the result itself
                    found.append((name, residues, p.residue(op) - p.accept))
                case Kind.ROW_SUM:
                    found.append((name, hats, p.start(op) + shape.hat_cycles - p.accept))
                case Kind.COX:
                    found.append((name, self.h, self.known - p.accept))
        return found

    def _cox(self, m: Module) -> None:
        shape, share, at, h, known = (
            self._programme.shape,
            self._programme.shape.share,
            self._phase.at,
            self.h,
            self.known,
        )
        level: list[Value] = []
        for r, row in enumerate(self._rows):
            tap = Signal(shape.top_bits, name=f"cox_{r}", reset_less=True)
            m.d.sync += tap.eq(row.ring[shape.hat_bits - shape.top_bits :])
            level.append(tap)
        for depth in range(shape.cox_levels):
            summed: list[Value] = []
            for k in range(0, len(level), 2):
                pair = level[k : k + 2]
                total = sum(pair[1:], pair[0])
                q = Signal(len(total), name=f"cox{depth}_{k}", reset_less=True)
                m.d.sync += q.eq(total)
                summed.append(q)
            level = summed
        now = Signal()
        m.d.sync += now.eq(Cat(*(at(known - 2 - k) for k in range(share))).any() if share > 1 else at(known - 2))
        if share == 1:
            with m.If(now):
                m.d.sync += h.eq((level[0] + shape.offset) >> shape.fraction)
        else:
            summed_up = Signal(len(h) + shape.fraction, reset_less=True)
            first = Signal()
            m.d.sync += first.eq(at(known - 1 - share))
            with m.If(now):
                m.d.sync += summed_up.eq(Mux(first, shape.offset, summed_up) + level[0])
            m.d.comb += h.eq(summed_up >> shape.fraction)
        m.d.comb += self._control.signal.h.eq(h)


class CoxRower(Multiplier):
    """The whole machine with the multiplier interface: operands and results are residues over A, then zeta over B.

    Operands are taken word by word before they are accepted, and results wait in their slots until they are read, so
    there are no queues. Cost: one DSP block (several where w > 17) and one block RAM a rower.

    ``loadable``: a third stream k brings the constants of another modulus, one word for every rower at a time in the
    order of `modulus_words`. It is served only when no product is under way, a word every interval, and no operands
    are accepted until all have come. Cost: a word's multiplexer in every rower.
    """

    kept = ("row", "rower", "branch")

    def __init__(self, p: Programme, tables: Tables, *, loadable: bool = False) -> None:
        self._programme, self._constants, self._loadable = p, Constants(p, tables), loadable
        width = 2 * p.shape.n * p.shape.w
        super().__init__(
            width, width, width, period=p.interval, lead=p.lead, k=p.shape.rowers * p.shape.w if loadable else 0
        )

    def modulus_words(self) -> list[int]:
        """What stream k must bring."""
        return self._constants.modulus_words()

    @property
    def load_cycles(self) -> int:
        """At most so many cycles from the first word accepted to the first operands accepted."""
        return len(self._constants.modulus_addresses) * self._programme.interval + self._programme.lead

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        p = self._programme
        shape, interval = p.shape, p.interval
        w, n, share = shape.w, shape.n, shape.share
        depth, first_slot, slots = memory_plan(p)
        address = depth.bit_length() - 1
        word_bits = shape.slot.bit_length() - 1
        slot_bits = address - word_bits
        trash = depth // shape.slot - 1
        word = Word(address, max(1, shape.h_max.bit_length()), share)

        # ---- phase: cycle 0 after reset is cycle `accept` of the first product
        phase = Phase(m, p)
        at = phase.at

        # ---- slots of the products under way
        oldest = -(-(p.valid - p.origin) // interval) + 1
        ages = [Signal(slot_bits, name=f"slot{k}", init=trash) for k in range(oldest)]
        full = [Signal(name=f"full{k}") for k in range(oldest)]
        next_in, next_out = (Signal(slot_bits, name=f"next_{s}", init=first_slot) for s in ("in", "out"))
        room = Signal(range(slots + 1), init=slots)
        decided = p.origin - 1
        taking = Signal()
        freed = Signal()

        def following(s: Signal) -> Value:
            return Mux(s == trash - 1, first_slot, s + 1)

        take = Signal()
        loading = Signal()
        may_take = at(decided) & self.i_valid & (room != 0)
        m.d.comb += take.eq(may_take & ~loading & ~self.k_valid if self._loadable else may_take)
        with m.If(at(decided)):
            m.d.sync += [taking.eq(take), ages[0].eq(Mux(take, next_in, trash)), full[0].eq(take)]
            for k in range(1, oldest):
                m.d.sync += [ages[k].eq(ages[k - 1]), full[k].eq(full[k - 1])]
        with m.If(take):
            m.d.sync += next_in.eq(following(next_in))
        m.d.sync += room.eq(room - take + freed)
        ready = Signal()
        m.d.sync += ready.eq(at(p.accept - 1) & taking)
        m.d.comb += self.i_ready.eq(ready)

        # ---- results: finished products wait in their slots
        reading = min(p.outputs) - TREE - 2  # the decision; the slot's number is then visible
        age = (reading - p.origin) // interval
        waiting = Signal(range(slots + 2))
        going = Signal()
        leave = Signal()
        m.d.comb += [
            leave.eq(at(reading) & ((waiting != 0) | full[age]) & (~self.o_valid | self.o_ready)),
            freed.eq(leave),
        ]
        with m.If(at(reading)):
            m.d.sync += going.eq(leave)
        m.d.sync += waiting.eq(waiting + (at(reading) & full[age]) - leave)
        slot_out = Signal(slot_bits)
        with m.If(leave):
            m.d.sync += [slot_out.eq(next_out), next_out.eq(following(next_out))]
        arrive = Signal()
        m.d.sync += arrive.eq(at(p.valid - 2) & going)
        with m.If(arrive):
            m.d.sync += self.o_valid.eq(1)
        with m.Elif(self.o_ready):
            m.d.sync += self.o_valid.eq(0)

        # ---- the control word
        control = Control(p, word, phase)

        def word_of(slot: Value, value: operations.Value) -> Value:
            """Address of a word of a product's slot."""
            return Cat(Const(shape.words.index(value), word_bits), slot)

        def held(value: operations.Value, cycle: int) -> Value:
            """Address of a word of the product under way, for the rowers' cycle."""
            return word_of(ages[(cycle - TREE - 1 - p.origin) // interval], value)

        for k, op in enumerate(shape.of(Kind.TAKE)):
            control.store(held(op.result, p.start(op)), p.start(op), source=k)
        control.product(held)
        for op in shape.of(Kind.GIVE):
            control.put("word", p.start(op), word_of(slot_out, op.result))
            control.put(f"out_{op.result.letter}", p.start(op) + OPERAND - 1, going.shift_left(op.k))
        if self._loadable:
            idle = (room == slots) & (waiting == 0) & ~take & ~going & ~self.o_valid
            control.load(m, self._constants.modulus_addresses, self.k_valid, self.k_ready, idle, loading)
        control.drive(m, trash << word_bits)

        # ---- rows, the tree of control, the ring, the cox
        contents = self._constants.contents(blank=self._loadable)
        chain = Chain(p, phase, control, word, contents, word.h_source + int(self._loadable))

        def connect(i: int) -> None:
            own = chain.channels(i)
            parts = [port.word_select(j, w) for port in (self.i_a, self.i_b) for j in (*own, *(n + x for x in own))]
            parts += [self.k_m.word_select(i, w)] if self._loadable else []
            m.d.comb += chain.outside(i).eq(Cat(*parts))
            for place, j in enumerate(own):
                over_a, over_b = chain.result(i, place)
                m.d.comb += [self.o_r.word_select(j, w).eq(over_a), self.o_r.word_select(n + j, w).eq(over_b)]

        chain.build(m, depth, connect)
        self.probes = chain.probes
        return m
