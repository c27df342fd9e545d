# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A base extension on two rowers that serve all channels one after another: Kawamura's (KBE) or hierarchical (HBE).

Source:  S. Kawamura et al., Cox-Rower Architecture for Fast Parallel Montgomery Multiplication, EUROCRYPT 2000;
         L. Djath, K. Bigou, A. Tisserand, Hierarchical Approach in RNS Base Extension for Asymmetric Cryptography,
         ARITH 2019, Algorithms 1 and 2. The machine and its schedule are ours.
Formula: xi_i = x_i T_i mod a_i                                        m = n / 2 multiplications of each rower
         X_r  = xi_2r a_(2r+1) + xi_(2r+1) a_2r, not reduced   (HBE)   m multiplications; KBE: X_i = xi_i
         x_j  = sum_r X_r C_(r,j) - h A mod b_j                        S for each of the rower's targets, S = n or n / 2

Channel k of either base belongs to rower k mod 2, so xi_2r and xi_(2r+1) come at the same time and their products need
one addition to become X_r. Both designs have the same multiplier, memory, accumulator and fold in each rower; HBE has
beside them one adder for X_r and, in each rower, a fold that takes an X_r every cycle. Folds multiply by u in logic
(radix-4 Booth), so that they serve every modulus 2^w - u. Sums are lazy: one reduction for each target. -h A stands in
a table and is added on the way to that reduction. The block RAM gives the constants in the order of the slots.

    slot s                   operands at the tile; the block RAM was addressed in s - 2
    slot s + P               product (P = 2, or 3 where it is made of several tiles)
    slot s + P + 1           sum with that product, or X_r
    one later                in the entry register of the fold
    F later                  residue

An extension takes D + m S + 1 slots, where D covers the xi and X, and the next one starts where it ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from amaranth.hdl import Array, Cat, Const, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from modmill.design import Multiplier
from modmill.numbers.folding import fold_bound
from modmill.rtl.fold import bits
from modmill.rtl.memory import DEPTHS, BlockRam
from modmill.rtl.periodic import Period
from modmill.rtl.product import DspBlock, Tile
from modmill.schedule import Schedule, Step

ROWERS = 2
"""Rowers, and for HBE the columns of a row."""

LEAST = 6
"""Fewest moduli of a base: the table of -h A is read while the sum of the target before is in the fold."""

FINAL = 4
"""High bits that the last stage of a fold takes."""

TILE = 2
"""Registers of a tile: operands and product."""


@dataclass(frozen=True)
class Shape:
    """What the machine's structure and schedule depend on.

    ``w``: bits of a channel, ``columns``: 1 (KBE) or 2 (HBE), ``u_a``, ``u_b``: distances of the moduli to 2^w,
    ``fraction`` and ``offset``: t and d of the cox; fraction 0: no cox.
    """

    w: int
    columns: int
    u_a: tuple[int, ...]
    u_b: tuple[int, ...]
    fraction: int
    offset: int
    block: DspBlock

    def __post_init__(self) -> None:
        for u in (self.u_a, self.u_b):
            if len(u) < LEAST or len(u) % ROWERS:
                raise ValueError(f"a base must have an even number of moduli, at least {LEAST}, got {len(u)}")
        if max(self.tables, self.slots) > DEPTHS[-1]:
            raise ValueError(
                f"{self.tables} words for -h A and {self.slots} for all slots: a block RAM has {DEPTHS[-1]} at most"
            )
        _ = self.stages, self.hat_stages  # refuses a u too large now

    @property
    def n(self) -> int:
        """Moduli of A."""
        return len(self.u_a)

    @property
    def m(self) -> int:
        """Channels of A that each rower serves."""
        return self.n // ROWERS

    @property
    def targets(self) -> int:
        """Channels of B that each rower serves."""
        return len(self.u_b) // ROWERS

    @property
    def steps(self) -> int:
        """S, multiplications for each target."""
        return self.n // self.columns

    @property
    def hat_bits(self) -> int:
        """Bits of X_r."""
        return self.w if self.columns == 1 else 2 * self.w + 1

    @property
    def top_bits(self) -> int:
        """Bits of X_r that the cox sees."""
        return self.hat_bits - self.columns * self.w + self.fraction

    @cached_property
    def h_max(self) -> int:
        """Largest h of the cox."""
        return (self.steps * ((1 << self.top_bits) - 1) + self.offset) >> self.fraction if self.fraction else 0

    @property
    def h_bits(self) -> int:
        """Bits of h."""
        return self.h_max.bit_length()

    @property
    def tables(self) -> int:
        """Words of the tables of -h A."""
        return self.targets << self.h_bits if self.fraction else 0

    @property
    def sum_bound(self) -> int:
        """Exclusive bound of what enters the fold: a lazy sum and -h A mod b_j."""
        top = (1 << self.w) - 1
        return (top * self.steps + 1) * top + 1

    @property
    def hat_bound(self) -> int:
        """Exclusive bound of X_r for HBE."""
        return 2 * ((1 << self.w) - 1) ** 2 + 1

    @cached_property
    def stages(self) -> tuple[int, ...]:
        """Exclusive bounds before each stage of the fold but the last; their number is its latency."""
        return self._stages(self.sum_bound, (*self.u_a, *self.u_b))

    @cached_property
    def hat_stages(self) -> tuple[int, ...]:
        """The same for the fold of X_r; empty for KBE."""
        return self._stages(self.hat_bound, self.u_b) if self.columns > 1 else ()

    def _stages(self, bound: int, us: Sequence[int]) -> tuple[int, ...]:
        found = []
        while bound > 1 << (self.w + FINAL) or (((bound - 1) >> self.w) + 1) * max(us) > 1 << self.w:
            found.append(bound)
            smaller = max(fold_bound(bound, self.w, u) for u in us)
            if smaller >= bound:
                raise ValueError(f"folding modulo 2^{self.w} - {max(us)} makes no progress below {bound}")
            bound = smaller
        return tuple(found)

    @property
    def product(self) -> int:
        """P, slots from operands to their product."""
        return TILE + (self.block.tiles(self.w, self.w) > 1)

    @property
    def xi_ready(self) -> int:
        """Slots from the multiplication that makes a xi to the first that can take it."""
        return self.product + 2 + len(self.stages)

    @property
    def hat_ready(self) -> int:
        """Slots from the multiplications that make an X_r to the first that can take it."""
        return self.product + 1 + len(self.hat_stages)

    @property
    def spare(self) -> int:
        """Cycles for which an X_r waits before the first target takes it; 0 and 1: it gets there past the memory."""
        return self.sums - self.hats - self.hat_ready

    @property
    def hats(self) -> int:
        """First slot of the multiplications that make the X_r (HBE)."""
        return max(self.m, self.xi_ready)

    @property
    def sums(self) -> int:
        """D, first slot of the sums."""
        return self.hats if self.columns == 1 else self.hats + max(self.m, self.hat_ready)

    @property
    def interval(self) -> int:
        """Cycles between extensions: one more than the slots, as the last sum and the next product share the fold."""
        return self.sums + self.targets * self.steps + 1

    @property
    def multiplications(self) -> int:
        """Multiplications of each rower."""
        return self.m * self.columns + self.targets * self.steps

    @property
    def slots(self) -> int:
        """Slots of an extension, idle ones included: words of the constants in their order."""
        return self.sums + self.targets * self.steps

    @property
    def apart(self) -> bool:
        """Whether the tables of -h A need a block RAM of their own."""
        return self.tables + self.slots > DEPTHS[-1]

    @property
    def depth(self) -> int:
        """Words of the block RAM: tables of -h A unless they stand apart, then a word for every slot."""
        return max(DEPTHS[0], 1 << (self.slots + self.tables * (not self.apart) - 1).bit_length())

    def caught(self, target: int) -> int:
        """Cycle after acceptance in which the sum of a target is whole."""
        return 1 + self.sums + (target + 1) * self.steps + self.product

    @property
    def arrival(self) -> int:
        """Cycle after acceptance in which the last residues are there."""
        return self.caught(self.targets - 1) + 1 + len(self.stages)

    @cached_property
    def schedule(self) -> Schedule:
        """The steps of one extension on each rower's units, cycle 0 the accepted operand."""
        return Schedule(tuple(_steps(self)), self.interval)


def _steps(s: Shape) -> Iterator[Step]:
    fold, p = len(s.stages), s.product
    for k in range(s.m):
        yield Step(f"xi{k + 1}", "multiplier", 1 + k, p, (), 1)
        yield Step(f"xi{k + 1} mod", "fold", 1 + k + p, fold + 2, (f"xi{k + 1}",), 1)
    sources = [f"xi{k // 2 + 1} mod" for k in range(s.n)]
    if s.columns > 1:
        for k in range(s.m):
            yield Step(f"X{k + 1}", "multiplier", 1 + s.hats + k, p, (f"xi{k + 1} mod",), 1)
            yield Step(f"X{k + 1} sum", "adder", 1 + s.hats + k + p, 1, (f"X{k + 1}",), 1)
        sources = [f"X{k + 1} sum" for k in range(s.m)]
    if s.fraction:
        last = sources[-1]
        ready = 1 + (s.hats + s.m + p + 1 if s.columns > 1 else s.m - 1 + s.xi_ready)
        yield Step("h", "cox", ready, 1, (last,) if s.columns == 1 else (), 1)
    for j in range(s.targets):
        names = []
        for k in range(s.steps):
            names.append(f"x{j + 1} {k + 1}")
            slot = 1 + s.sums + j * s.steps + k
            if s.columns > 1:
                start = slot - len(s.hat_stages)
                yield Step(f"X{k + 1} mod {j + 1}", "X fold", start, len(s.hat_stages), (sources[k],), 1)
                yield Step(names[-1], "multiplier", slot, p, (f"X{k + 1} mod {j + 1}",), 1)
            else:
                yield Step(names[-1], "multiplier", slot, p, (sources[k],), 1)
        yield Step(f"sum{j + 1}", "sum", s.caught(j) - s.steps, s.steps, (), s.steps)
        late = (f"sum{j + 1}", *(("h",) if s.fraction else ()))
        cycles = fold + (2 if j == s.targets - 1 else 1)
        yield Step(f"x{j + 1} mod", "fold", s.caught(j), cycles, late, 1)


# ---------------------------------------------------------------------------------------------- components


def carry_save(m: Module, terms: Sequence[Value], width: int, name: str) -> Value:
    """Sum of ``terms`` modulo 2^width by carry-save adders and one carry chain (an expression)."""
    left = [Cat(t, Const(0, width))[:width] if len(t) < width else t[:width] for t in terms]
    level = 0
    while len(left) > 2:
        following: list[Value] = []
        for k in range(0, len(left) - 2, 3):
            a, b, c = left[k : k + 3]
            one, two = (Signal(width, name=f"{name}_{word}{level}_{k}") for word in ("sum", "carry"))
            m.d.comb += [one.eq(a ^ b ^ c), two.eq(Cat(Const(0, 1), (a & b) | (a & c) | (b & c)))]
            following += [one, two]
        left = following + left[len(left) - len(left) % 3 :]
        level += 1
    return (left[0] + left[1])[:width] if len(left) == 2 else left[0]


def booth_terms(x: Value, u: Value, width: int) -> list[Value]:
    """Terms whose sum modulo 2^width is x u: radix-4 Booth digits of the unsigned ``u``, chosen in logic.

    A negative digit inverts its row and adds a carry; the bit above a row is its inverted sign, which one constant for
    all rows makes good.
    """
    size = len(x) + 1
    padded = Cat(Const(0, 1), u, Const(0, 2))
    terms: list[Value] = []
    signs: list[Value] = []
    constant = 0
    for k in range(len(u) // 2 + 1):
        low, middle, high = padded[2 * k], padded[2 * k + 1], padded[2 * k + 2]
        one, two = low ^ middle, Mux(high, ~(low | middle), low & middle)
        negative = high & ~(low & middle)
        row = (Cat(x, Const(0, 1)) & one.replicate(size)) | (Cat(Const(0, 1), x) & two.replicate(size))
        row = row ^ negative.replicate(size)
        if 2 * k < width:
            terms.append(Cat(Const(0, 2 * k), row, ~negative))
        signs += [negative, Const(0, 1)]
        constant -= 1 << (2 * k + size)
    terms.append(Cat(*signs))
    terms.append(Const(constant % (1 << width), width))
    return terms


class Fold:
    """Reduction modulo 2^w - u with u a signal: one register behind each stage but the last, which has none.

    ``out`` is a lazy residue of ``t`` < bounds[0] so many cycles later as there are ``bounds``. The last stage takes up
    to FINAL high bits, folds them, and folds once more where that passes 2^w.
    Cost: for each stage about (w + 3) LUTs for each two bits of u.
    """

    def __init__(
        self, m: Module, t: Value, bounds: Sequence[int], w: int, us: Sequence[int], u: Value, name: str
    ) -> None:
        for k, bound in enumerate(bounds):
            after = max(fold_bound(bound, w, v) for v in us)
            width = bits(max(after, 1 << w))
            high, low = t[w : bits(bound)], t[:w]
            q = Signal(width, name=f"{name}_{k}", reset_less=True)
            m.d.sync += q.eq(carry_save(m, [*booth_terms(high, u, width), low], width, f"{name}_{k}"))
            later = Signal.like(u, name=f"{name}_u{k}", reset_less=True)
            m.d.sync += later.eq(u)
            t, u = q, later
        high, low = t[w:], t[:w]
        rows: list[Value] = [Cat(Const(0, k), u & high[k].replicate(len(u))) for k in range(len(high))]
        once = Signal(w + 1, name=f"{name}_once")
        twice = Signal(w + 1, name=f"{name}_twice")
        m.d.comb += [
            once.eq(carry_save(m, [*rows, low], w + 1, f"{name}_one")),
            twice.eq(carry_save(m, [*rows, low, u], w + 1, f"{name}_two")),
        ]
        self.out = Mux(once[w], twice[:w], once[:w])


class Rower(wiring.Component):
    """A multiplier, the block RAM of its constants, a lazy sum, a fold, its xi, and for HBE a fold of X_r.

    ``x``: the word that is multiplied; ``hat``: the X_r that is read (HBE), ``other``: the other rower's xi (KBE).
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
            "write": In(1), "at": In(index), "target": In(max(1, (s.targets - 1).bit_length())), "clear": In(1),
            "catch": In(1), "entry": In(entries),
            "xi": Out(s.w), "product": Out(2 * s.w), "residue": Out(s.w),
        })  # fmt: skip

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
        m.submodules.xis = xis = memory.Memory(shape=w, depth=1 << len(self.read), init=[])
        read, write = xis.read_port(domain="comb"), xis.write_port()
        m.d.comb += [
            read.addr.eq(self.read), self.xi.eq(read.data),
            write.addr.eq(self.at), write.data.eq(self.residue), write.en.eq(self.write & ~ResetSignal()),
        ]  # fmt: skip
        if s.columns == 1:
            stored: Value = Mux(self.take_other, self.other, self.xi)
        else:
            u = self._chosen(m, own_b, self.target, "hat_u")
            fold = Fold(m, self.hat, s.hat_stages, w, own_b, u, "hat")
            stored = Mux(self.take_xi, self.xi, fold.out)
        operand = Signal(w)
        m.d.comb += operand.eq(Mux(self.take_x, self.x, stored))
        m.d.comb += self.product.eq(tiled(m, operand, constants.a_q, s.block))

        # ---- lazy sum, entry of the fold
        total = Signal(bits(s.sum_bound), reset_less=True)
        m.d.sync += total.eq(Mux(self.clear, 0, total) + self.product)
        entry = Signal(len(total), reset_less=True)
        minus: Value = table.b_q if s.fraction else Const(0, 1)
        m.d.sync += entry.eq(Mux(self.catch, total + minus, self.product))
        u = self._chosen(m, (*own_a, *own_b), self.entry, "fold_u")
        m.d.comb += self.residue.eq(Fold(m, entry, s.stages, w, s.u_a + s.u_b, u, "fold").out)
        return m

    def _chosen(self, m: Module, us: Sequence[int], index: Value, name: str) -> Signal:
        """The u of that channel, one cycle later."""
        u = Signal(max(max(self._shape.u_a), max(self._shape.u_b)).bit_length(), name=name, reset_less=True)
        m.d.sync += u.eq(Array([Const(v, len(u)) for v in us])[index])
        return u


def tiled(m: Module, a: Value, b: Value, block: DspBlock, registers: int = TILE) -> Value:
    """a * b from DSP blocks with so many registers, and one more behind the sum where there are several blocks."""
    rows, columns = -(-len(a) // block.a), -(-len(b) // block.b)
    high, wide = -(-len(a) // rows), -(-len(b) // columns)
    parts: list[tuple[int, Value]] = []
    for j in range(columns):
        for i in range(rows):
            x, y = a[i * high : (i + 1) * high], b[j * wide : (j + 1) * wide]
            m.submodules[f"tile{i}{j}"] = tile = Tile(len(x), len(y), registers)
            m.d.comb += [tile.a.eq(x), tile.b.eq(y)]
            parts.append((i * high + j * wide, tile.p))
    if len(parts) == 1:
        return parts[0][1]
    width = len(a) + len(b)
    rows_: list[list[tuple[int, Value]]] = []
    for shift, p in sorted(parts, key=lambda part: part[0]):  # products that do not overlap share a row
        for row in rows_:
            if row[-1][0] + len(row[-1][1]) <= shift:
                row.append((shift, p))
                break
        else:
            rows_.append([(shift, p)])
    terms = []
    for row in rows_:
        filled: list[Value] = []
        at = 0
        for shift, p in row:
            filled += [Const(0, shift - at), p]
            at = shift + len(p)
        terms.append(Cat(*filled))
    product = Signal(width, name="product_sum", reset_less=True)
    m.d.sync += product.eq(carry_save(m, terms, width, "product"))
    return product


@dataclass(frozen=True)
class Tables:
    """Constants: ``xi[i]`` = T_i; ``partner[i]``: modulus of a_i's partner in the row (HBE); ``sums[r][j]`` = C_(r,j);
    ``minus[j]`` = -A mod b_j."""

    xi: Sequence[int]
    partner: Sequence[int]
    sums: Sequence[Sequence[int]]
    minus: Sequence[int]


class BaseExtension(Multiplier):
    """The machine with the multiplier interface; one operand: residues over A in, residues over B out.

    Cost: two multipliers, two block RAMs, a queue of results. Latency: D + m S + P + F + 3 cycles.
    """

    def __init__(self, shape: Shape, tables: Tables, moduli_b: Sequence[int]) -> None:
        self._shape, self._tables, self._moduli_b = shape, tables, moduli_b
        super().__init__(shape.n * shape.w, 0, len(shape.u_b) * shape.w, period=shape.interval)

    def contents(self, rower: int) -> list[int]:
        """Words of a rower's block RAM, or of the two: the tables of -h A, then the constants in the order of slots."""
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

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        s = self._shape
        w, p, fold = s.w, s.product, len(s.stages)
        period = Period(m, self, s.interval, s.arrival)
        rowers = [Rower(s, k, self.contents(k)) for k in range(ROWERS)]
        for k, rower in enumerate(rowers):
            m.submodules[f"rower{k}"] = rower

        def counter(name: str, zero: int, step: Value, width: int) -> Signal:
            """A counter that is 0 from that cycle on, one more after each cycle with ``step``."""
            q = Signal(width, name=name)
            m.d.sync += q.eq(Mux(period.strobe(f"{name}_zero", zero - 1), 0, q + step))
            return q

        def slots(name: str, first: int, count: int, step: int = 1) -> Signal:
            """High in ``count`` cycles, the first and then every ``step``-th."""
            return period.strobe(name, *range(first, first + count * step, step))

        # ---- operand, word after word
        x = Signal(s.n * w, reset_less=True)
        m.d.sync += x.eq(Mux(period.strobe("load", 0), self.i_a, x[ROWERS * w :]))
        take_x = slots("take_x", 1, s.m)

        # ---- constants
        address = len(rowers[0].slot)
        slot = Signal(address)
        m.d.sync += slot.eq(Mux(period.strobe("restart", s.interval - 2), 0 if s.apart else s.tables, slot + 1))

        # ---- xi, X
        xi_at = 1 + p + 1 + fold
        xi_write = slots("xi_write", xi_at, s.m)
        written = counter("written", xi_at, xi_write, len(rowers[0].at))
        index = max(1, (s.targets - 1).bit_length())
        target = Signal(index)
        if s.columns == 1:
            again = period.strobe("again", *(s.sums + s.n * j for j in range(s.targets)))
            step = Signal((s.n - 1).bit_length())
            m.d.sync += step.eq(Mux(again, 0, step + 1))
            hat: Value = Const(0, w)
            read: Value = step[1:]
            take_other, take_xi = step[0], Const(0, 1)
            tops_at, tops = xi_write, [r.residue[w - s.fraction :] for r in rowers] if s.fraction else []
            tops_first, tops_end = xi_at, xi_at + s.m
        else:
            take_xi = slots("take_xi", 1 + s.hats, s.m)
            take_other = Const(0, 1)
            hat_now, hat_taken = (Signal(s.hat_bits, name=f"hat_{name}", reset_less=True) for name in ("made", "taken"))
            making = rowers[0].product + rowers[1].product
            m.d.sync += hat_now.eq(making)
            hat_at = 1 + s.hats + p + 1
            hat_write = slots("hat_write", hat_at, s.m)
            made = counter("made", hat_at, hat_write, (s.m - 1).bit_length())
            m.submodules.hats = hats = memory.Memory(shape=s.hat_bits, depth=1 << len(made), init=[])
            hat_read, port = hats.read_port(domain="comb"), hats.write_port()
            first_read = s.sums - len(s.hat_stages)  # of the memory, into a register
            last = period.strobe("last", *(first_read + s.steps * j - 1 for j in range(1, s.targets)))
            start = period.strobe("start", first_read - 1)
            step = Signal((s.steps - 1).bit_length())
            m.d.sync += [step.eq(Mux(start | last, 0, step + 1)), target.eq(Mux(start, 0, target + last))]
            m.d.comb += [
                port.addr.eq(made), port.data.eq(hat_now), port.en.eq(hat_write & ~ResetSignal()),
                hat_read.addr.eq(step),
            ]  # fmt: skip
            taken: Value = hat_read.data
            if s.spare == 0:
                taken = Mux(slots("hat_made", hat_at - 1, s.m), making, taken)
            elif s.spare == 1:
                taken = Mux(hat_write, hat_now, taken)
            m.d.sync += hat_taken.eq(taken)
            hat = hat_taken
            read = counter("read", 1 + s.hats, take_xi, len(rowers[0].read))
            tops_at, tops = hat_write, [hat_now[s.hat_bits - s.top_bits :]] if s.fraction else []
            tops_first, tops_end = hat_at, hat_at + s.m

        # ---- cox and table of -h A
        catch = period.strobe("catch", *(s.caught(j) for j in range(s.targets)))
        clear = slots("clear", 1 + s.sums + p, s.targets, s.steps)
        first = 1 + p  # the first product that enters the fold
        entering = slots("entering", first, s.m)
        entry = counter("entry", first, entering | catch, len(rowers[0].entry))
        h = Signal(max(1, s.h_bits), reset_less=True)
        table: Value = Const(0, 1)
        if s.fraction:
            sum_bits = (s.steps * ((1 << s.top_bits) - 1) + s.offset).bit_length()
            cox = Signal(sum_bits, reset_less=True)
            before = Mux(period.strobe("cox_first", tops_first), s.offset, cox)
            with m.If(tops_at):
                m.d.sync += cox.eq(before + sum(tops[1:], tops[0]))
            with m.If(period.strobe("cox_done", tops_end)):
                m.d.sync += h.eq(cox[s.fraction :])
            row = counter("row", s.caught(-1) + 1, catch, index)
            table = Cat(h, row)

        # ---- rowers
        for k, rower in enumerate(rowers):
            m.d.comb += [
                rower.x.eq(x.word_select(k, w)), rower.hat.eq(hat), rower.slot.eq(slot), rower.table.eq(table),
                rower.take_x.eq(take_x), rower.take_xi.eq(take_xi), rower.read.eq(read),
                rower.take_other.eq(take_other ^ k if s.columns == 1 else 0), rower.other.eq(rowers[1 - k].xi),
                rower.write.eq(xi_write), rower.at.eq(written), rower.target.eq(target),
                rower.clear.eq(clear), rower.catch.eq(catch), rower.entry.eq(entry),
            ]  # fmt: skip

        # ---- results
        pair = Cat(*(rower.residue for rower in rowers))
        done = Signal(len(pair) * (s.targets - 1), reset_less=True)
        with m.If(period.strobe("collect", *(s.caught(j) + 1 + fold for j in range(s.targets - 1)))):
            m.d.sync += done.eq(Cat(done[len(pair) :], pair))
        period.finish(Cat(done, pair))
        residues = [rower.residue for rower in rowers]
        self.probes = [(f"xi_{k + 1}", residues, xi_at + k) for k in range(s.m)]
        if s.columns > 1:
            self.probes += [(f"X_{k + 1}", hat_now, hat_at + k) for k in range(s.m)]
        if s.fraction:
            self.probes.append(("h", h, tops_end + 1))
        self.probes += [(f"x_{j + 1}", residues, s.caught(j) + 1 + fold) for j in range(s.targets)]
        return m
