# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""One or two base extensions on any number of rowers: KBE, or HBE in rows of c = 2, 3 or 4.

Source:  L. Djath, K. Bigou, A. Tisserand: Hierarchical Approach in RNS Base Extension for Asymmetric Cryptography.
         ARITH, 2019, Algorithms 1, 2 and 3, Figures 1 and 3: a rower for every channel, one cox, and words that one
         channel after another sends to all rowers. The schedule, and fewer rowers than channels, are ours.
Formula: as in `extension`; X_r = sum_j xi_(r,j) A_r / a_(r,j) in c - 1 multiplications by the digits of A_r / a_(r,j)

Channel k of either base belongs to rower k mod R, where c divides R, and so the channels of a row belong to neighbours.
Their products are added to X_r (HBE) in one adder for each c rowers. Source registers hold the xi (KBE) or X_r (HBE) of
all rows and rotate; every rower and the cox read the word at their head.

    slot s                   operands at the tile; the address was at the block RAM in slot s - 2
    slot s + P               product (P = 2, or 3 for a product of several tiles)
    slot s + P + 1           sum including that product, or word of the source registers
    1 slot later             in the entry register of the fold
    F slots later            residue

A rower has one fold, for its xi, for every X_r (HBE) and for its sums; an X_r of three or four digits is shortened
first: its digits above the second are multiplied by 2^(2w) and 2^(3w) modulo the channel's modulus. The rotation pauses
in the cycle in which a sum enters the fold. All control signals are functions of the cycle in the period.

A second pass runs on the same rowers, from the results of the first, which leave with its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from modmill.contract import Timing
from modmill.interface import Multiplier
from modmill.rtl.booth_fold import Fold, booth_terms, fold_ranges, tiled_terms
from modmill.rtl.delay import later
from modmill.rtl.extension import Tables
from modmill.rtl.extension_shape import TILE
from modmill.rtl.fold import bits
from modmill.rtl.memory import BlockRam
from modmill.rtl.passes_shape import Back, Shape, power
from modmill.rtl.periodic import Period
from modmill.rtl.product import carry_save, tiled_evenly
from modmill.schedule import Operation


class Rower(wiring.Component):
    """A multiplier, the block RAM of its constants, a lazy sum, a fold, the memory of its xi (HBE).

    ``x``: the input word; ``head``: the word of the source registers. ``us``: u of its channels, those of A first.
    """

    def __init__(self, shape: Shape, us: Sequence[int], contents: Sequence[int]) -> None:
        self._shape, self._us, self._contents = shape, us, contents
        s = shape
        super().__init__({
            "x": In(s.w), "head": In(s.hat_bits), "slot": In(s.depth.bit_length() - 1),
            "h_address": In(max(1, (max(s.tables, 2) - 1).bit_length())),
            "take_x": In(1), "take_xi": In(1), "write": In(1), "at": In(index_bits(s.m)), "read": In(index_bits(s.m)),
            "clear": In(1), "add": In(1), "catch": In(1), "take_head": In(1),
            "entry": In(index_bits(len(us))), "target": In(index_bits(len(us))),
            "product": Out(2 * s.w), "residue": Out(s.w),
        })  # fmt: skip
        if s.columns > 1:
            self.xis = memory.Memory(shape=s.w, depth=1 << index_bits(s.m), init=[])
        self.operand = Signal(s.w)
        self.total = Signal(bits(s.sum_bound), reset_less=True)

    @property
    def latency(self) -> int:
        """Cycles from the operands to their product."""
        return self._shape.product

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        s = self._shape
        m.submodules.constants = constants = BlockRam(s.w, s.depth, self._contents)
        m.d.comb += [constants.a_address.eq(self.slot), constants.b_address.eq(self.h_address)]

        # ---- operand and product
        stored: Value = self.head
        if s.columns > 1:
            m.submodules.xis = xis = self.xis
            read, write = xis.read_port(domain="comb"), xis.write_port()
            m.d.comb += [
                read.addr.eq(self.read), write.addr.eq(self.at), write.data.eq(self.residue),
                write.en.eq(self.write & ~ResetSignal()),
            ]  # fmt: skip
            stored = Mux(self.take_xi, read.data, self.residue)
        m.d.comb += self.operand.eq(Mux(self.take_x, self.x, stored))
        m.d.comb += self.product.eq(tiled_evenly(m, self.operand, constants.a_q, s.block, TILE))

        # ---- lazy sum, entry of the fold
        total = self.total
        with m.If(self.add):
            m.d.sync += total.eq(Mux(self.clear, 0, total) + self.product)
        widest = max(s.sum_bound, s.short_bound if s.columns > 1 else 0)
        entry = Signal(bits(widest), reset_less=True)
        entering: Value = self.product
        if s.columns > 1:
            entering = Mux(self.take_head, self._shortened(m), self.product)
        minus: Value = constants.b_q if s.fraction else Const(0, 1)
        m.d.sync += entry.eq(Mux(self.catch, total + minus, entering))
        u = self._chosen(m, self._us, self.entry, "fold_u")
        fold = Fold(m, entry, s.stages, s.w, [v for p in s.passes for v in p.u_a + p.u_b], u, "fold", s.reducer)
        m.d.comb += self.residue.eq(fold.out)
        return m

    def _chosen(self, m: Module, values: Sequence[int], index: Value, name: str) -> Value:
        """One of ``values``, one cycle later; a constant if all are the same."""
        width = max(1, max(values).bit_length())
        if len(set(values)) == 1:
            return Const(values[0], width)
        return later(m, Array([Const(v, width) for v in values])[index], name)

    def _shortened(self, m: Module) -> Value:
        """The X_r at the head; with c > 2 its first two digits and the others times their factors, two cycles later."""
        s, w = self._shape, self._shape.w
        if s.columns == 2:
            return self.head
        terms = []
        for k in range(2, s.columns):
            digit = self.head[k * w :] if k == s.columns - 1 else self.head.word_select(k, w)
            name = f"digit{k}"
            factor = self._chosen(m, [power(w, u, k) for u in self._us], self.target, f"{name}_factor")
            if s.reducer is None:
                terms += booth_terms(m, later(m, digit, name), factor, bits(s.short_bound), name)
            else:
                terms += tiled_terms(m, digit, factor, s.reducer, name)
        short = Signal(bits(s.short_bound), name="short", reset_less=True)
        low = later(m, self.head[: 2 * w], "digits_low")
        m.d.sync += short.eq(carry_save(m, [*terms, low], len(short), "short"))
        return short


def index_bits(count: int) -> int:
    """Bits of an index below ``count``, at least one."""
    return max(1, (count - 1).bit_length())


class Control(Period):
    """A period with signals that are functions of the cycle."""

    def within(self, name: str, cycles: Iterable[int]) -> Value:
        """A registered signal that is high in these cycles; 0 if there are none."""
        found = list(cycles)
        return self.strobe(name, *found) if found else Const(0)

    def word(self, name: str, width: int, values: Mapping[int, int]) -> Value:
        """A registered signal with the given value in each of these cycles, and 0 or any other in the rest."""
        return Cat(
            self.within(f"{name}{k}", sorted(at for at, value in values.items() if value >> k & 1))
            for k in range(width)
        )


class Passes(Multiplier):
    """The machine with the multiplier interface and one operand: residues over A in (with a ``start`` over B too),
    residues over B out; with a second pass over A, then over B.

    ``tables``, ``moduli``: constants and target moduli of each pass. Cost: as many multipliers and block RAMs as there
    are rowers, a register for every word of a row, a queue of results. Latency: that of the schedule.
    """

    def __init__(self, shape: Shape, tables: Sequence[Tables], moduli: Sequence[Sequence[int]]) -> None:
        self._shape, self._tables, self._moduli = shape, tables, moduli
        first, words = shape.passes[0], shape.rowers * shape.m
        operand = shape.n + words * first.start
        result = words if len(shape.passes) == 1 else shape.n + words
        super().__init__(operand * shape.w, 0, result * shape.w, period=shape.schedule.interval)
        self.ranges = {("h", ""): {0: shape.h_max + 1}} if shape.fraction else {}
        for k in range(shape.rowers):
            bounds = dict.fromkeys(self._us(k), shape.stages[0])
            self.ranges |= fold_ranges(f"rower{k}", bounds, len(shape.stages), shape.w)

    def contents(self, rower: int) -> list[int]:
        """Words of the block RAM of a rower: the tables of -h A, then the constants in the order of cycles."""
        s = self._shape
        words: list[int] = []
        slots = [0] * s.schedule.interval
        for p, t, moduli, at in zip(s.passes, self._tables, self._moduli, s.times, strict=True):
            own = range(rower, len(p.u_b), s.rowers)
            for j in own if s.fraction else ():
                minus = 0 if p.offset is None else t.minus[j]
                words += [h * minus % moduli[j] for h in range(1 << s.h_bits)]
            for i in range(s.m) if rower < s.lanes else ():
                channel = i * s.lanes + rower
                slots[at.xi[i] % len(slots)] = t.xi[channel]
                for d in range(s.columns - 1):
                    digit = t.partner[channel] >> (s.columns - 2 - d) * s.w & (1 << s.w) - 1
                    slots[at.partners[i * (s.columns - 1) + d] % len(slots)] = digit
            for place, j in enumerate(own):
                if at.starts:
                    slots[at.starts[place] % len(slots)] = t.start[j]
                for r in range(s.steps):
                    slots[at.terms[place][r] % len(slots)] = t.sums[r][j]
        return words + slots

    @property
    def timing(self) -> Timing:
        return self._shape.schedule.timing

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        s = self._shape
        w, interval = s.w, s.schedule.interval
        control = Control(m, self, interval, s.schedule.latency - 1)
        rowers = [Rower(s, self._us(k), self.contents(k)) for k in range(s.rowers)]
        for k, rower in enumerate(rowers):
            m.submodules[f"rower{k}"] = rower
        residues = Cat(rower.residue for rower in rowers)

        def strobe(name: str, cycles: Iterable[int]) -> Value:
            return control.within(name, cycles)

        # ---- operand, word after word, and constants
        first, at = s.passes[0], s.times
        x = Signal((s.n + s.n * first.start) * w, reset_less=True)
        moved = strobe("moved", [*at[0].xi, *at[0].starts][:-1])
        with m.If(strobe("load", [0])):
            m.d.sync += x.eq(self.i_a)
        with m.Elif(moved):
            m.d.sync += x.eq(x[s.lanes * w :])
        slot = Signal(len(rowers[0].slot))
        m.d.sync += slot.eq(Mux(strobe("restart", [interval - 3]), s.tables, slot + 1))

        # ---- results of each pass
        done = self._results(m, control, residues)
        from_first = strobe("from_first", at[1].xi) if len(at) > 1 else Const(0)

        # ---- control
        taken = strobe("take_x", [c for t in at for c in (*t.xi, *t.starts)])
        clear = strobe("clear", [first_of(t, j) + s.product for t in at for j in range(s.m)])
        adding = strobe("add", [c + s.product for t in at for c in (*t.starts, *(c for own in t.terms for c in own))])
        catch = strobe("catch", [c for t in at for c in t.caught])
        heads = [c for t in at for own in t.heads for c in own]
        entry, target = self._entries(control)
        head = self._sources(m, control, rowers, heads)
        table = self._cox(m, control, head) if s.fraction else Const(0, 1)
        hbe: list[tuple[str, Value]] = []
        if s.columns > 1:
            made = {c + s.product + 1 + s.fold: i for t in at for i, c in enumerate(t.xi)}
            read = {c: i // (s.columns - 1) for t in at for i, c in enumerate(t.partners)}
            hbe = [
                ("take_xi", strobe("take_xi", read)), ("read", control.word("read", index_bits(s.m), read)),
                ("write", strobe("xi_write", made)), ("at", control.word("written", index_bits(s.m), made)),
                ("take_head", strobe("take_head", [c + s.prestage for c in heads])), ("target", target),
            ]  # fmt: skip
        for k, rower in enumerate(rowers):
            own: Value = x.word_select(k, w) if k < s.lanes else Const(0, w)
            if len(at) > 1:
                own = Mux(from_first, done[0].word_select(k, w), own)
            for name, value in (
                ("x", own), ("head", head), ("slot", slot), ("h_address", table), ("take_x", taken), ("clear", clear),
                ("add", adding), ("catch", catch), ("entry", entry), *hbe,
            ):  # fmt: skip
                m.d.comb += getattr(rower, name).eq(value)
        control.finish(Cat(done[-1], residues, *done[:-1]))
        self.probes = [(step.name, self._register(step.does, rowers, done), step.end) for step in s.schedule.steps]
        return m

    def _results(self, m: Module, control: Control, residues: Value) -> list[Signal]:
        """Registers of the residues of each pass, of the last pass without those of its last target. What the second
        pass reads rotates."""
        s, at, group = self._shape, self._shape.times, len(residues)
        done = [Signal(group * (s.m - (k == len(at) - 1)), name=f"done{k}", reset_less=True) for k in range(len(at))]
        for k, register in enumerate(done):
            collected = [c + 1 + s.fold for c in at[k].caught][: len(register) // group]
            if not collected:
                continue
            collect = control.within(f"collect{k}", collected)
            again = control.within("again", at[k + 1].xi) if k < len(at) - 1 and s.m > 1 else Const(0)
            with m.If(collect | again):
                m.d.sync += register.eq(Cat(register[group:], Mux(again, register[:group], residues)))
        return done

    def _us(self, rower: int) -> list[int]:
        """u of a rower's channels: those of A, if it has any, then those of B."""
        s = self._shape
        first = s.passes[0]
        own = [*first.u_a[rower :: s.lanes]] if rower < s.lanes else [*first.u_b[rower :: s.rowers]]
        return [*own, *first.u_b[rower :: s.rowers]]

    def _entries(self, control: Control) -> tuple[Value, Value]:
        """The channels, as indices into a rower's ``us``, of the value that enters the fold and of the X_r at the head;
        the second in the cycle in which the first stage of an X_r of three or four digits needs its factors."""
        s = self._shape
        entry: dict[int, int] = {}
        target: dict[int, int] = {}
        for k, t in enumerate(s.times):
            source, sums = (s.m, 0) if k else (0, s.m)
            entry |= {c + s.product: source + i for i, c in enumerate(t.xi)}
            entry |= {c: sums + j for j, c in enumerate(t.caught)}
            if s.columns > 1:
                entry |= {c + s.prestage: sums + j for j, own in enumerate(t.heads) for c in own}
                ahead = 0 if s.reducer is None else -1
                target |= {c + ahead: sums + j for j, own in enumerate(t.heads) for c in own}
        width = index_bits(2 * s.m)
        return control.word("entry", width, entry), control.word("target", width, target) if s.prestage else Const(0)

    def _sources(self, m: Module, control: Control, rowers: Sequence[Rower], heads: Sequence[int]) -> Value:
        """The source registers, which rotate in the cycles of ``heads``. Returns their head."""
        s = self._shape
        words = [Signal(s.hat_bits, name=f"source{r}", reset_less=True) for r in range(s.steps)]
        made = [rower.residue for rower in rowers[: s.lanes]]
        if s.columns > 1:
            made = self._hats(m, control, rowers)
        rotate = control.within("rotate", (c for c in heads if c not in [t.heads[-1][-1] for t in s.times]))
        m.d.sync += [word.eq(Mux(rotate, words[(r + 1) % s.steps], word)) for r, word in enumerate(words)]
        self._places: dict[tuple[int, int], list[Signal]] = {}
        loads: dict[tuple[int, ...], list[int]] = {}
        for k, t in enumerate(s.times):
            for i, cycle in enumerate(t.loads):
                turned = max(0, sum(1 for c in t.heads[0] if c <= cycle))
                places = tuple((i * len(made) + g - turned) % s.steps for g in range(len(made)))
                self._places[k, i] = [words[place] for place in places]
                loads.setdefault(places, []).append(cycle)
        for i, (places, cycles) in enumerate(loads.items()):
            with m.If(control.strobe(f"source_load{i}", *cycles)):
                m.d.sync += [words[place].eq(value) for place, value in zip(places, made, strict=True)]
        return words[0]

    def _hats(self, m: Module, control: Control, rowers: Sequence[Rower]) -> list[Value]:
        """X_r of each group of rowers, in the cycle in which its last products are there."""
        s = self._shape
        opening = control.strobe("opening", *(c + s.product for t in s.times for c in t.partners[:: s.columns - 1]))
        out: list[Value] = []
        for g in range(s.groups):
            terms: list[Value] = [rower.product for rower in rowers[g * s.columns : (g + 1) * s.columns]]
            made = Signal(s.hat_bits, name=f"made{g}")
            if s.columns > 2:
                part = Signal(s.hat_bits - s.w, name=f"part{g}", reset_less=True)
                m.d.sync += part.eq(made)
                terms.append(Cat(Const(0, s.w), Mux(opening, 0, part)))
            m.d.comb += made.eq(carry_save(m, terms, s.hat_bits, f"hat{g}"))
            out.append(made)
        return out

    def _cox(self, m: Module, control: Control, head: Value) -> Value:
        """The address of -h A in the table of the pass and target whose sum is complete: h, and their number above."""
        s = self._shape
        cox = Signal((s.steps * ((1 << s.top_bits) - 1) + s.offset).bit_length(), name="cox", reset_less=True)
        passes = [(p, t) for p, t in zip(s.passes, s.times, strict=True) if p.offset is not None]
        offset = control.word(
            "offset", max(1, s.offset.bit_length()), {t.heads[0][0]: p.offset or 0 for p, t in passes}
        )
        before = Mux(control.strobe("cox_first", *(t.heads[0][0] for _, t in passes)), offset, cox)
        with m.If(control.strobe("cox_add", *(c for _, t in passes for c in t.heads[0]))):
            m.d.sync += cox.eq(before + head[len(head) - s.top_bits :])
        self._h = Signal(max(1, s.h_bits), name="h")
        m.d.comb += self._h.eq(cox[s.fraction :])
        rows = {c - 2: k * s.m + j for k, t in enumerate(s.times) for j, c in enumerate(t.caught)}
        h: Value = self._h[: s.h_bits]
        if len(passes) < len(s.passes):  # h of another pass, or of none; the word is 0, but not if h is unknown
            with_cox = control.strobe("with_cox", *(c - 2 for _, t in passes for c in t.caught))
            h = Mux(with_cox, h, 0)
        return Cat(h, control.word("row", index_bits(len(s.passes) * s.m), rows))

    def _register(self, operation: Operation, rowers: Sequence[Rower], done: Sequence[Value]) -> Any:
        """The register of an operation's result."""
        s, k = self._shape, int(isinstance(operation.kind, Back))
        lanes = rowers[: s.lanes]
        match operation.kind.name, operation.numbers:
            case "XI" | "PARTNERS", _:
                return [rower.product for rower in lanes]
            case "XI_RESIDUE", (slot,):
                if s.columns == 1:
                    return self._places[k, slot - 1]
                return [rower.xis.data[slot - 1] for rower in lanes]
            case "HAT", (slot,):
                return self._places[k, slot - 1]
            case "TERM" | "START", _:
                return [rower.product for rower in rowers]
            case "HAT_RESIDUE", _:
                return [rower.operand for rower in rowers]
            case "SUM", _:
                return [rower.total for rower in rowers]
            case "RESIDUE", (j,):
                last = k == len(done) - 1
                if last and j == s.m:
                    words = s.rowers * s.m
                    return [self.o_r[s.w * i :][: s.w] for i in range(words - s.rowers, words)]
                register = done[k]
                return [register[len(register) - s.w * i :][: s.w] for i in range(s.rowers, 0, -1)]
            case _:
                return self._h


def first_of(times: Any, target: int) -> int:
    """Cycle of the operands of the first product of a target's sum."""
    return int(times.starts[target] if times.starts else times.terms[target][0])
