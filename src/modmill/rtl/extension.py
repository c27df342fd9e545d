# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A base extension on two rowers, each of which serves half of the channels: Kawamura's (KBE) or hierarchical (HBE).

Source:  S. Kawamura, M. Koike, F. Sano, A. Shimbo: Cox-Rower Architecture for Fast Parallel Montgomery Multiplication.
         EUROCRYPT, 2000, Section 3; L. Djath, K. Bigou, A. Tisserand: Hierarchical Approach in RNS Base Extension for
         Asymmetric Cryptography. ARITH, 2019, Algorithms 1 and 2. The machine and its schedule are ours.
Formula: xi_i = x_i T_i mod a_i                                        m = n / 2 multiplications in each rower
         X_r  = xi_2r a_(2r+1) + xi_(2r+1) a_2r, not reduced   (HBE)   m multiplications; KBE: X_i = xi_i
         x_j  = sum_r X_r C_(r,j) - h A mod b_j                        S for each of the rower's targets, S = n or n / 2

Channel k of either base belongs to rower k mod 2. So xi_2r and xi_(2r+1) arrive at the same time, and one addition of
their products yields X_r. The rowers of both designs have the same multiplier, memory, accumulator and fold. HBE adds
one adder for X_r, and a fold in each rower that accepts an X_r in every cycle. Folds multiply by u in logic (radix-4
Booth), so that one circuit serves every modulus 2^w - u. Sums are lazy: one reduction for each target. -h A is read
from a table and added before that reduction. The block RAM holds the constants in the order of the slots.

    slot s                   operands at the tile; the address was at the block RAM in slot s - 2
    slot s + P               product (P = 2, or 3 for a product of several tiles)
    slot s + P + 1           sum including that product, or X_r
    1 slot later             in the entry register of the fold
    F slots later            residue

An extension takes D + m S + 1 slots, where D covers the xi and X; the next one starts where it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from modmill.contract import Timing
from modmill.interface import Multiplier
from modmill.rtl.booth_fold import Fold, fold_ranges
from modmill.rtl.extension_shape import ROWERS, TILE, Kind, Shape
from modmill.rtl.fold import bits
from modmill.rtl.memory import DEPTHS, BlockRam
from modmill.rtl.periodic import Period
from modmill.rtl.product import tiled_evenly
from modmill.schedule import Operation


class Rower(wiring.Component):
    """A multiplier, the block RAM of its constants, a lazy sum, a fold, the memory of its xi; HBE: a fold of X_r.

    ``x``: the input word; ``hat``: X_r from its memory (HBE); ``other``: the other rower's xi (KBE). One of them is
    multiplied by the constant of the slot. ``contents``: words of the block RAMs, from `BaseExtension.contents`.
    """

    def __init__(self, shape: Shape, rower: int, contents: Sequence[int]) -> None:
        self._shape, self._rower, self._contents = shape, rower, contents
        s = shape
        address = s.depth.bit_length() - 1
        table = max(1, (max(s.tables, 2) - 1).bit_length())
        index = max(1, (s.m - 1).bit_length())
        entries = max(1, (s.m + s.targets - 1).bit_length())
        super().__init__({
            "x": In(s.w), "hat": In(s.hat_bits), "other": In(s.w),
            "slot": In(address), "table": In(table),
            "take_x": In(1), "take_xi": In(1), "take_other": In(1), "read": In(index),
            "write": In(1), "at": In(index), "target": In(s.target_bits), "clear": In(1),
            "catch": In(1), "entry": In(entries),
            "xi": Out(s.w), "product": Out(2 * s.w), "residue": Out(s.w),
        })  # fmt: skip
        self.xis = memory.Memory(shape=s.w, depth=1 << index, init=[])
        self.operand = Signal(s.w)
        self.total = Signal(bits(s.sum_bound), reset_less=True)

    @property
    def latency(self) -> int:
        """Cycles from the operands to their product."""
        return self._shape.product

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        s = self._shape
        w = s.w
        own_a, own_b = s.u_a[self._rower :: ROWERS], s.u_b[self._rower :: ROWERS]
        words = self._contents[s.tables :] if s.apart else self._contents
        m.submodules.constants = constants = table = BlockRam(w, s.depth, words)
        if s.apart:
            rounded = max(DEPTHS[0], 1 << (s.tables - 1).bit_length())
            m.submodules.table = table = BlockRam(w, rounded, self._contents[: s.tables])
        m.d.comb += [constants.a_address.eq(self.slot), table.b_address.eq(self.table)]

        # ---- operand and product
        m.submodules.xis = xis = self.xis
        read, write = xis.read_port(domain="comb"), xis.write_port()
        m.d.comb += [
            read.addr.eq(self.read), self.xi.eq(read.data),
            write.addr.eq(self.at), write.data.eq(self.residue), write.en.eq(self.write & ~ResetSignal()),
        ]  # fmt: skip
        if s.columns == 1:
            stored: Value = Mux(self.take_other, self.other, self.xi)
        else:
            u = self._chosen(m, own_b, self.target, "hat_u")
            fold = Fold(m, self.hat, s.hat_stages, w, own_b, u, "hat", s.reducer)
            stored = Mux(self.take_xi, self.xi, fold.out)
        m.d.comb += self.operand.eq(Mux(self.take_x, self.x, stored))
        m.d.comb += self.product.eq(tiled_evenly(m, self.operand, constants.a_q, s.block, TILE))

        # ---- lazy sum, entry of the fold
        total = self.total
        m.d.sync += total.eq(Mux(self.clear, 0, total) + self.product)
        entry = Signal(len(total), reset_less=True)
        minus: Value = table.b_q if s.fraction else Const(0, 1)
        m.d.sync += entry.eq(Mux(self.catch, total + minus, self.product))
        u = self._chosen(m, (*own_a, *own_b), self.entry, "fold_u")
        m.d.comb += self.residue.eq(Fold(m, entry, s.stages, w, s.u_a + s.u_b, u, "fold", s.reducer).out)
        return m

    def _chosen(self, m: Module, us: Sequence[int], index: Value, name: str) -> Signal:
        """The u of the channel with that index, one cycle later."""
        u = Signal(max(max(self._shape.u_a), max(self._shape.u_b)).bit_length(), name=name, reset_less=True)
        m.d.sync += u.eq(Array([Const(v, len(u)) for v in us])[index])
        return u


@dataclass(frozen=True)
class Tables:
    """Constants: ``xi[i]`` = T_i; ``partner[i]`` = modulus of the channel that shares a row with a_i (HBE);
    ``sums[r][j]`` = C_(r,j); ``minus[j]`` = -A mod b_j; ``start[j]``: factor of a word of the input (a reduction)."""

    xi: Sequence[int]
    partner: Sequence[int]
    sums: Sequence[Sequence[int]]
    minus: Sequence[int]
    start: Sequence[int] = ()


class Cycles(Period):
    """A period with counters, and with strobes of several equidistant cycles."""

    def counter(self, name: str, zero: int, step: Value, width: int) -> Signal:
        """A counter of ``width`` bits that is 0 in cycle ``zero`` and increments after each cycle with ``step``."""
        q = Signal(width, name=name)
        self._m.d.sync += q.eq(Mux(self.strobe(f"{name}_zero", zero - 1), 0, q + step))
        return q

    def slots(self, name: str, first: int, count: int, step: int = 1) -> Signal:
        """High in ``count`` cycles, the first and then every ``step``-th."""
        return self.strobe(name, *range(first, first + count * step, step))


@dataclass(frozen=True)
class Sources:
    """Operands of the rowers: in the sums X_r from ``hat`` (HBE), or xi at address ``read`` (KBE), with
    ``take_other`` that of the other rower; with ``take_xi`` their own xi, for X_r. ``tops``: the bits that the cox adds
    up in cycles with ``tops_now``, from cycle ``first`` on."""

    hat: Value
    read: Value
    take_xi: Value
    take_other: Value
    target: Value
    tops_now: Value
    tops: list[Value]
    first: int


class BaseExtension(Multiplier):
    """The machine with the multiplier interface and one operand: residues over A in, residues over B out.

    ``moduli_b``: moduli of B. Cost: two multipliers, two block RAMs, a queue of results. Latency: D + m S + P + F + 3
    cycles.
    """

    def __init__(self, shape: Shape, tables: Tables, moduli_b: Sequence[int]) -> None:
        self._shape, self._tables, self._moduli_b = shape, tables, moduli_b
        self._registers: dict[Any, Any] = {}
        super().__init__(shape.n * shape.w, 0, len(shape.u_b) * shape.w, period=shape.interval)
        self.ranges = {("h", ""): {0: shape.h_max + 1}} if shape.fraction else {}
        for k in range(ROWERS):
            self.ranges |= fold_ranges(f"rower{k}", self._bounds(k), len(shape.stages), shape.w)
            if shape.columns > 1:
                hats = dict.fromkeys(shape.u_b[k::ROWERS], shape.hat_bound)
                self.ranges |= fold_ranges(f"rower{k}", hats, len(shape.hat_stages), shape.w, "hat", "hat")

    def _bounds(self, rower: int) -> dict[int, int]:
        """For each u the exclusive bound of what enters the fold: T_i x_i, or a sum and -h A mod b_j."""
        s, t = self._shape, self._tables
        bounds = dict[int, int]()
        for i in range(rower, s.n, ROWERS):
            bounds[s.u_a[i]] = t.xi[i] * ((1 << s.w) - 1) + 1
        for j in range(rower, len(s.u_b), ROWERS):
            bound = sum(t.sums[r][j] for r in range(s.steps)) * ((1 << s.w) - 1) + self._moduli_b[j]
            bounds[s.u_b[j]] = max(bound, bounds.get(s.u_b[j], 0))
        return bounds

    def contents(self, rower: int) -> list[int]:
        """Words of the block RAM of a rower (0 or 1): the tables of -h A, then the constants in the order of slots.

        If the tables have a block RAM of their own, the words of both follow each other.
        """
        s, t = self._shape, self._tables
        own = range(rower, len(s.u_b), ROWERS)
        counted = range(1 << s.h_bits if s.fraction else 0)
        words = [h * t.minus[j] % self._moduli_b[j] for j in own for h in counted]
        slots = [0] * s.slots
        for k in range(s.m):
            slots[k] = t.xi[ROWERS * k + rower]
            if s.columns > 1:
                slots[s.hats + k] = t.partner[ROWERS * k + rower]
        for place, j in enumerate(own):
            for r in range(s.steps):
                slots[s.sums + place * s.steps + r] = t.sums[r][j]
        return words + slots

    @property
    def timing(self) -> Timing:
        return self._shape.schedule.timing

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        s = self._shape
        w, p, fold = s.w, s.product, s.fold
        cycles = Cycles(m, self, s.interval, s.schedule.latency - 1)
        rowers = [Rower(s, k, self.contents(k)) for k in range(ROWERS)]
        for k, rower in enumerate(rowers):
            m.submodules[f"rower{k}"] = rower
        residues = [rower.residue for rower in rowers]

        # ---- operand, word after word, and constants
        x = Signal(s.n * w, reset_less=True)
        m.d.sync += x.eq(Mux(cycles.strobe("load", 0), self.i_a, x[ROWERS * w :]))
        take_x = cycles.slots("take_x", 1, s.m)
        slot = Signal(len(rowers[0].slot))
        m.d.sync += slot.eq(Mux(cycles.strobe("restart", s.interval - 2), 0 if s.apart else s.tables, slot + 1))

        # ---- xi, X, sums
        xi_at = 1 + p + 1 + fold
        xi_write = cycles.slots("xi_write", xi_at, s.m)
        written = cycles.counter("written", xi_at, xi_write, len(rowers[0].at))
        if s.columns == 1:
            sources = self._from_xi(m, cycles, rowers, xi_write, xi_at)
        else:
            sources = self._from_sums(m, cycles, rowers)
        catch = cycles.strobe("catch", *(s.caught(j) for j in range(s.targets)))
        clear = cycles.slots("clear", 1 + s.sums + p, s.targets, s.steps)
        first = 1 + p  # the first product that enters the fold
        entering = cycles.slots("entering", first, s.m)
        entry = cycles.counter("entry", first, entering | catch, len(rowers[0].entry))
        table = self._cox(m, cycles, sources, catch) if s.fraction else Const(0, 1)

        # ---- rowers
        for k, rower in enumerate(rowers):
            m.d.comb += [
                rower.x.eq(x.word_select(k, w)), rower.hat.eq(sources.hat), rower.slot.eq(slot), rower.table.eq(table),
                rower.take_x.eq(take_x), rower.take_xi.eq(sources.take_xi), rower.read.eq(sources.read),
                rower.take_other.eq(sources.take_other ^ k if s.columns == 1 else 0), rower.other.eq(rowers[1 - k].xi),
                rower.write.eq(xi_write), rower.at.eq(written), rower.target.eq(sources.target),
                rower.clear.eq(clear), rower.catch.eq(catch), rower.entry.eq(entry),
            ]  # fmt: skip

        # ---- results
        pair = Cat(*residues)
        done = Signal(len(pair) * (s.targets - 1), reset_less=True)
        with m.If(cycles.strobe("collect", *(s.caught(j) + 1 + fold for j in range(s.targets - 1)))):
            m.d.sync += done.eq(Cat(done[len(pair) :], pair))
        cycles.finish(Cat(done, pair))
        self.probes = [(step.name, self._register(step.does, rowers, done), step.end) for step in s.schedule.steps]
        return m

    def _register(self, operation: Operation, rowers: Sequence[Rower], done: Value) -> Any:
        """The register of an operation's result. ``done``: residues of all targets except the last."""
        w, targets = self._shape.w, self._shape.targets
        match operation:
            case Operation(Kind.XI | Kind.PARTNERS | Kind.TERM):
                return [rower.product for rower in rowers]
            case Operation(Kind.XI_RESIDUE, (k,)):
                return [rower.xis.data[k - 1] for rower in rowers]
            case Operation(Kind.HAT_RESIDUE):
                return [rower.operand for rower in rowers]
            case Operation(Kind.SUM):
                return [rower.total for rower in rowers]
            case Operation(Kind.RESIDUE, (j,)):
                out = self.o_r if j == targets else done
                return [out[len(out) - w * k :][:w] for k in (2, 1)]
            case _:
                return self._registers[operation.kind]

    def _from_xi(self, m: Module, cycles: Cycles, rowers: Sequence[Rower], xi_write: Value, xi_at: int) -> Sources:
        """Kawamura's extension: each rower alternates between its own xi and the other rower's."""
        s = self._shape
        target = Signal(s.target_bits)
        again = cycles.strobe("again", *(s.sums + s.n * j for j in range(s.targets)))
        step = Signal((s.n - 1).bit_length())
        m.d.sync += step.eq(Mux(again, 0, step + 1))
        tops = [r.residue[s.w - s.fraction :] for r in rowers]
        return Sources(Const(0, s.w), step[1:], Const(0, 1), step[0], target, xi_write, tops, xi_at)

    def _from_sums(self, m: Module, cycles: Cycles, rowers: Sequence[Rower]) -> Sources:
        """The hierarchical extension: X_r from the products of both rowers, through a memory."""
        s = self._shape
        target = Signal(s.target_bits)
        take_xi = cycles.slots("take_xi", 1 + s.hats, s.m)
        hat_now, hat_taken = (Signal(s.hat_bits, name=f"hat_{name}", reset_less=True) for name in ("made", "taken"))
        making = rowers[0].product + rowers[1].product
        m.d.sync += hat_now.eq(making)
        hat_at = 1 + s.hats + s.product + 1
        hat_write = cycles.slots("hat_write", hat_at, s.m)
        made = cycles.counter("made", hat_at, hat_write, (s.m - 1).bit_length())
        m.submodules.hats = hats = memory.Memory(shape=s.hat_bits, depth=1 << len(made), init=[])
        hat_read, port = hats.read_port(domain="comb"), hats.write_port()
        first_read = s.sums - s.hat_fold  # first read of the memory, into a register
        last = cycles.strobe("last", *(first_read + s.steps * j - 1 for j in range(1, s.targets)))
        start = cycles.strobe("start", first_read - 1)
        step = Signal((s.steps - 1).bit_length())
        m.d.sync += [step.eq(Mux(start | last, 0, step + 1)), target.eq(Mux(start, 0, target + last))]
        m.d.comb += [
            port.addr.eq(made), port.data.eq(hat_now), port.en.eq(hat_write & ~ResetSignal()),
            hat_read.addr.eq(step),
        ]  # fmt: skip
        taken: Value = hat_read.data
        if s.spare == 0:
            taken = Mux(cycles.slots("hat_made", hat_at - 1, s.m), making, taken)
        elif s.spare == 1:
            taken = Mux(hat_write, hat_now, taken)
        m.d.sync += hat_taken.eq(taken)
        read = cycles.counter("read", 1 + s.hats, take_xi, len(rowers[0].read))
        self._registers[Kind.HAT] = [hat_now]
        tops = [hat_now[s.hat_bits - s.top_bits :]]
        return Sources(hat_taken, read, take_xi, Const(0, 1), target, hat_write, tops, hat_at)

    def _cox(self, m: Module, cycles: Cycles, sources: Sources, catch: Value) -> Value:
        """The address of -h A in the table of the target whose sum is complete: h, and the target's number above."""
        s, tops, end = self._shape, sources.tops, sources.first + self._shape.m
        h = Signal(max(1, s.h_bits), reset_less=True)
        cox = Signal((s.steps * ((1 << s.top_bits) - 1) + s.offset).bit_length(), reset_less=True)
        before = Mux(cycles.strobe("cox_first", sources.first), s.offset, cox)
        with m.If(sources.tops_now):
            m.d.sync += cox.eq(before + sum(tops[1:], tops[0]))
        with m.If(cycles.strobe("cox_done", end)):
            m.d.sync += h.eq(cox[s.fraction :])
        self._registers[Kind.H] = h
        return Cat(h, cycles.counter("row", s.caught(-1) + 1, catch, s.target_bits))
