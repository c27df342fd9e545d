# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Conversions: binary to residues, and residues to the canonical binary number below p.

Binary to residues: for X = sum d_i 2^(w i), Horner's rule t <- t u + d_i (mod m), because 2^w = u (mod m) for
m = 2^w - u. It takes shifts and additions only. A residue can then be multiplied by a constant of its channel.
Residues to binary: from gamma_j = x_j M_j^-1 mod m_j, X = sum gamma_j M_j - alpha M modulo 2^(17 L) with L columns
of 17-bit tiles; then X <- X - 2^i p for i = i_max ... 0 if that is not negative. Exact for X <= x_max.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.contract import Load, Timing, UnsupportedError
from modmill.interface import Multiplier
from modmill.numbers.rns.residues import Base
from modmill.numbers.rns.sum_of_residues import alpha_limit, alpha_offset
from modmill.rtl import fold
from modmill.rtl.product import DspBlock, one_tile, tiled_evenly

DIGIT = 17
"""Bits of an operand of one tile."""
TILE = 3
"""Registers of the tiles of a `Scaling`."""


def one_at_a_time(m: Module, core: wiring.Component, latency: int, name: str) -> tuple[Signal, Value]:
    """Connect the handshake of streams ``i`` and ``o`` of a core that processes one number at a time.

    Returns a counter of the cycles since acceptance, 0 while idle, and whether a number is accepted in this cycle.
    """
    cycle = Signal(range(latency + 1), name=name)
    m.d.comb += core.i_ready.eq((cycle == 0) & (~core.o_valid | core.o_ready))
    accept = core.i_valid & core.i_ready
    with m.If(core.o_ready):
        m.d.sync += core.o_valid.eq(0)
    if latency == 1:
        with m.If(accept):
            m.d.sync += core.o_valid.eq(1)
    else:
        with m.If(cycle == latency - 1):
            m.d.sync += [cycle.eq(0), core.o_valid.eq(1)]
        with m.Elif((cycle != 0) | accept):
            m.d.sync += cycle.eq(cycle + 1)
    return cycle, accept


class BinaryToResidues(wiring.Component):
    """Binary numbers of ``bits`` bits to lazy residues over ``base``, ``count`` numbers at a time.

    Stream ``i`` carries the numbers, the first in the least significant bits; stream ``o`` carries their residue
    vectors. Latency and interval: 2 ceil(bits / w) - 1 cycles. Cost for each channel and number: about w LUTs for every
    signed digit of u, and w for each fold.
    """

    def __init__(self, base: Base, bits: int, count: int = 1) -> None:
        self.base, self.bits, self.count = base, bits, count
        self.digits = -(-bits // base.w)
        self.latency = 2 * self.digits - 1
        super().__init__({
            "i_valid": In(1), "i_ready": Out(1), "i_x": In(bits * count),
            "o_valid": Out(1), "o_ready": In(1), "o_r": Out(base.w * base.n * count),
        })  # fmt: skip

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        w, digits = self.base.w, self.digits
        step, accept = one_at_a_time(m, self, self.latency, "step")
        words = []
        for c in range(self.count):
            x = self.i_x.word_select(c, self.bits)
            top = self.bits - (digits - 1) * w
            rest = Signal(max(1, (digits - 1) * w), name=f"rest{c}", reset_less=True)
            digit = rest[-w:]
            with m.If(accept):
                m.d.sync += rest.eq(x)
            with m.Elif(step[0] == 0):
                m.d.sync += rest.eq(rest << w)
            for j, u in enumerate(self.base.u):
                value = Signal(w, name=f"x{c}_{j}", reset_less=True)
                bound = ((1 << w) - 1) * u + (1 << w)
                sum_ = Signal(fold.bits(bound), name=f"t{c}_{j}", reset_less=True)
                m.d.sync += sum_.eq(fold.times(value, u) + digit)
                folded = fold.reduce(m, sum_, bound, w, u, name=f"t{c}_{j}")
                with m.If(accept):
                    m.d.sync += value.eq(x[-top:])
                if digits > 1:
                    with m.Elif((step != 0) & (step[0] == 0)):
                        m.d.sync += value.eq(folded)
                words.append(value)
        m.d.comb += self.o_r.eq(Cat(*words))
        return m


class Scaling(wiring.Component):
    """x times a constant modulo 2^w - u, a lazy residue; fully pipelined.

    ``latency``: cycles from ``x`` to ``out``. Cost: a multiplier of w x w bits, tiled to ``block``, and two folds.
    """

    def __init__(self, w: int, u: int, factor: int, block: DspBlock) -> None:
        self._u, self._factor, self._block = u, factor, block
        self.latency = TILE + (w > min(block.a, block.b)) + 1
        super().__init__({"x": In(w), "out": Out(w)})

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        w, u, factor = len(self.x), self._u, self._factor
        product = tiled_evenly(m, self.x, Const(factor, w), self._block, TILE)
        t, bound = fold.fold_step(m, product, ((1 << w) - 1) * factor + 1, w, u, name="first_fold")
        total = Signal(len(t), name="total", reset_less=True)
        m.d.sync += total.eq(t)
        m.d.comb += self.out.eq(fold.reduce(m, total, bound, w, u, name="total"))
        return m


class ScaledResidues(wiring.Component):
    """`BinaryToResidues` for two numbers; then the residue of each of the first channels is multiplied by its factor.

    ``factors``: for the first channels of ``base``, not 0. Latency and interval: those of `BinaryToResidues` and
    `Scaling`, and three more. Cost beyond `BinaryToResidues`: a `Scaling` for each factor, which serves both numbers,
    and four registers of a word.
    """

    def __init__(self, base: Base, bits: int, factors: Sequence[int], block: DspBlock) -> None:
        self._residues = BinaryToResidues(base, bits, 2)
        self._scalings = [Scaling(base.w, u, factor, block) for u, factor in zip(base.u, factors, strict=False)]
        self.latency = self._residues.latency + self._scalings[0].latency + 3
        super().__init__(self._residues.signature)

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        m.submodules.residues = residues = self._residues
        w, n, before = residues.base.w, residues.base.n, residues.latency
        cycle, accept = one_at_a_time(m, self, self.latency, "cycle")
        m.d.comb += [residues.i_valid.eq(accept), residues.i_x.eq(self.i_x), residues.o_ready.eq(1)]
        held = Signal(len(residues.o_r), name="held", reset_less=True)
        with m.If(residues.o_valid):
            m.d.sync += held.eq(residues.o_r)
        words: list[Value] = [held.word_select(k, w) for k in range(2 * n)]
        for j, scaling in enumerate(self._scalings):
            m.submodules[f"scaling{j}"] = scaling
            m.d.comb += scaling.x.eq(Mux(cycle == before + 1, words[j], words[n + j]))
            for c in range(2):
                scaled = Signal(w, name=f"x{c}_{j}", reset_less=True)
                with m.If(cycle == before + 1 + scaling.latency + c):
                    m.d.sync += scaled.eq(scaling.out)
                words[c * n + j] = scaled
        m.d.comb += self.o_r.eq(Cat(*words))
        return m


class ToBinary:
    """Sizes and timing of ResiduesToBinary.

    ``q``: highest bits of each gamma_j that are added up for alpha; ``d``: offset of alpha; ``passes``: subtractions;
    ``columns``: columns of 17 bits; ``gamma_digits``: digits of 17 bits of each gamma_j.
    Raises UnsupportedError when alpha cannot be exact for ``x_max`` over this base.
    """

    def __init__(self, base: Base, p: int, x_max: int) -> None:
        for q in range(1, base.w + 1):
            d = alpha_offset(base, q, lazy=True)
            if x_max < alpha_limit(base, q, d):
                break
        else:
            raise UnsupportedError(
                f"{base.n} moduli of {base.w} bits cannot convert numbers of {x_max.bit_length()} bits to binary "
                "exactly: take --io native, or moduli with more bits (a larger w)"
            )
        self.q, self.d = q, d
        self.passes = max(1, (x_max // p).bit_length())
        self.columns = -(-(max(x_max, p << (self.passes - 1)).bit_length()) // DIGIT)
        self.gamma_digits = -(-base.w // DIGIT)
        self.alpha_slot = base.n * self.gamma_digits + 2
        self.resolve = 1 + self.alpha_slot + 6
        """First cycle of carry resolution: the last product takes 6 cycles from its operands to its column."""
        self.latency = self.resolve + self.columns + 2 + self.passes * (self.columns + 1)
        """Cycles: the products, one cycle a column for the carries, columns + 1 cycles for each subtraction."""


class ResiduesToBinary(wiring.Component):
    """A number X <= ``x_max``, given as lazy gamma_j = x_j M_j^-1 mod m_j, to X mod p, canonical.

    ``loaded``: the modulus is at port ``p``, and the argument ``p`` is the largest one; X / modulus must not exceed
    x_max / p. Latency and interval: ``plan.latency``. Cost: L = ceil(bits / 17) DSP blocks, a table of 17 L (N + 1)
    bits, and about 150 LUTs for each column.
    Raises UnsupportedError when alpha cannot be exact for ``x_max`` over this base.
    """

    def __init__(self, base: Base, p: int, x_max: int, *, loaded: bool = False) -> None:
        self.base, self._modulus, self._loaded = base, p, loaded
        self.plan = ToBinary(base, p, x_max)
        self.latency = self.plan.latency
        super().__init__({
            "i_valid": In(1), "i_ready": Out(1), "i_r": In(base.w * base.n),
            "o_valid": Out(1), "o_ready": In(1), "o_r": Out(p.bit_length()),
            **({"p": In(p.bit_length())} if loaded else {}),
        })  # fmt: skip

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        n, w = self.base.n, self.base.w
        cycle, accept = one_at_a_time(m, self, self.plan.latency, "cycle")
        gamma = [Signal(w, name=f"gamma{j}", reset_less=True) for j in range(n)]  # the channels rotate
        for j in range(n):
            with m.If(accept):
                m.d.sync += gamma[j].eq(self.i_r.word_select(j, w))
            with m.Elif(cycle != 0):
                m.d.sync += gamma[j].eq(gamma[(j + 1) % n])
        digit, row, flags = self._operands(m, cycle, accept, gamma[0])
        columns = self._columns(m, digit, row, flags)
        m.d.comb += self.o_r.eq(self._resolved(m, cycle, columns))
        return m

    def _operands(self, m: Module, cycle: Signal, accept: Value, gamma: Signal) -> tuple[Signal, Signal, Value]:
        """The operand that all tiles share, the row of constants for it, and flags that arrive with the product.

        Digit e of all channels comes before digit e - 1; alpha comes last. The flags: the product is used; it is the
        first one; the columns move up by one digit before it is added.
        """
        plan, n, w, parts = self.plan, self.base.n, self.base.w, self.plan.gamma_digits
        channel = Signal(range(n + 1))
        part = Signal(range(parts + 1))
        with m.If(cycle == 0):
            m.d.sync += [channel.eq(0), part.eq(parts - 1)]
        with m.Elif(channel == n - 1):
            m.d.sync += [channel.eq(0), part.eq(part - 1)]
        with m.Else():
            m.d.sync += channel.eq(channel + 1)
        alpha_sum = Signal(range(n * ((1 << plan.q) - 1) + plan.d + 1))
        with m.If(accept):
            m.d.sync += alpha_sum.eq(plan.d)
        with m.Elif((cycle >= 1) & (cycle <= n)):
            m.d.sync += alpha_sum.eq(alpha_sum + gamma[w - plan.q :])
        is_alpha = cycle == 1 + plan.alpha_slot
        digit = Signal(DIGIT, reset_less=True)
        with m.If(is_alpha):
            m.d.sync += digit.eq(alpha_sum >> plan.q)
        with m.Else():
            with m.Switch(part):
                for e in range(parts):
                    with m.Case(e):
                        m.d.sync += digit.eq(gamma[e * DIGIT : (e + 1) * DIGIT])
        row = Signal(DIGIT * plan.columns, reset_less=True)
        index = Signal(range(n + 1))
        m.d.comb += index.eq(Mux(is_alpha, n, channel))
        with m.Switch(index):
            for i, constant in enumerate([*self.base.cofactors, -self.base.M]):
                with m.Case(i):
                    m.d.sync += row.eq(constant % (1 << len(row)))
        used, first, shift = (Signal(name=name) for name in ("used", "first", "shift"))
        m.d.sync += [
            used.eq(((cycle >= 1) & (cycle <= n * parts)) | is_alpha),
            first.eq(cycle == 1),
            shift.eq((channel == 0) & (cycle > 1) & ~is_alpha),
        ]
        flags: Value = Cat(used, first, shift)
        for stage in range(3):  # the tile's registers
            delayed = Signal(3, name=f"flags{stage + 1}")
            m.d.sync += delayed.eq(flags)
            flags = delayed
        return digit, row, flags

    def _columns(self, m: Module, digit: Signal, row: Signal, flags: Value) -> list[Signal]:
        """Accumulators of the products, one for each 17 bits of the number."""
        n, parts, columns = self.base.n, self.plan.gamma_digits, self.plan.columns
        used, first, shift = flags
        width = 2 * DIGIT + (n * parts + 1).bit_length()
        acc = [Signal(width, name=f"column{c}", reset_less=True) for c in range(columns)]
        for c, column in enumerate(acc):
            term = one_tile(m, digit, row.word_select(c, DIGIT), 3, f"tile{c}")
            below = acc[c - 1] if c else Const(0, 1)
            kept = Signal(width, name=f"kept{c}")
            m.d.comb += kept.eq(Mux(first, 0, Mux(shift, below, column) if parts > 1 else column))
            with m.If(used):
                m.d.sync += column.eq(kept + term)
        return acc

    def _resolved(self, m: Module, cycle: Signal, acc: Sequence[Signal]) -> Signal:
        """X mod p: the carries are resolved at one column a cycle, then each subtraction takes one column a cycle."""
        plan, columns, width = self.plan, self.plan.columns, len(acc[0])
        place = Signal(range(columns + 2))
        resolving = (cycle >= plan.resolve) & (cycle < plan.resolve + columns)
        start = plan.resolve + columns + 2
        number, difference = (Signal(DIGIT * columns, name=n, reset_less=True) for n in ("number", "difference"))
        column = Signal(width, reset_less=True)
        with m.Switch(place):
            for c in range(columns):
                with m.Case(c):
                    m.d.sync += column.eq(acc[c])
        carry = Signal(width - DIGIT)
        total = Signal(width + 1)
        m.d.comb += total.eq(column + carry)
        adding = Signal()
        m.d.sync += adding.eq(resolving)
        turn = Signal(range(plan.passes + 1))
        subtracting = Signal()
        borrow = Signal()
        minus = self._subtrahend(m, place, turn)
        less = Signal(DIGIT + 1)
        m.d.comb += less.eq(number[:DIGIT] - minus - borrow)
        with m.If(cycle == 0):
            m.d.sync += [place.eq(0), turn.eq(0), carry.eq(0), borrow.eq(0), subtracting.eq(0)]
        with m.If(resolving):
            m.d.sync += place.eq(place + 1)
        with m.If(adding):
            m.d.sync += [number.eq(Cat(number[DIGIT:], total[:DIGIT])), carry.eq(total >> DIGIT)]
        with m.If(cycle == start - 1):
            m.d.sync += [place.eq(0), subtracting.eq(1)]
        with m.If(subtracting):
            with m.If(place == columns):
                m.d.sync += [place.eq(0), borrow.eq(0), turn.eq(turn + 1)]
                with m.If(~borrow):
                    m.d.sync += number.eq(difference)
                with m.If(turn == plan.passes - 1):
                    m.d.sync += subtracting.eq(0)
            with m.Else():
                m.d.sync += [
                    place.eq(place + 1),
                    number.eq(Cat(number[DIGIT:], number[:DIGIT])),
                    difference.eq(Cat(difference[DIGIT:], less[:DIGIT])),
                    borrow.eq(less[DIGIT]),
                ]
        return number

    def _subtrahend(self, m: Module, place: Signal, turn: Signal) -> Signal:
        """The digit of 2^i p at ``place``; i decreases with ``turn``."""
        plan = self.plan
        minus = Signal(DIGIT)
        with m.Switch(Cat(place, turn)):
            for i in range(plan.passes):
                shift = plan.passes - 1 - i
                for c in range(plan.columns):
                    with m.Case(c | i << len(place)):
                        if self._loaded:
                            shifted = Cat(Const(0, shift), self.p, Const(0, DIGIT * plan.columns))
                            m.d.comb += minus.eq(shifted.word_select(c, DIGIT))
                        else:
                            m.d.comb += minus.eq(self._modulus << shift >> (DIGIT * c) & ((1 << DIGIT) - 1))
        return minus


class BinaryShell(Multiplier):
    """A native multiplier over residues between the two conversions: operands below p, canonical results.

    ``before``: two binary numbers to operands; ``after``: from gamma_j, which ``native`` delivers in the most
    significant bits of its result. ``timing`` is what `timing_of` returns for them. The three stages work on three
    products at once. Operands are spaced by the interval and aligned to the native core's period, so that no product
    waits for a stage and the latency is constant.
    Latency: the sum of the three stages. Interval: the longest stage, rounded up to the native core's period.
    ``load``: of the whole, `load`; the words of p follow those of ``native`` on stream k.
    """

    def __init__(
        self, native: Multiplier, before: BinaryToResidues | ScaledResidues, after: ResiduesToBinary, timing: Timing,
        load: Load | None = None,
    ) -> None:  # fmt: skip
        self._native, self._before, self._after, self._timing, self._load = native, before, after, timing, load
        self.kept = native.kept
        width = len(after.o_r)
        super().__init__(width, width, width, k=load.width if load else 0, alarm=native.alarm)
        self.native_period = native.period
        """Operands are accepted only in one cycle of each such period; it need not be the first cycle after reset."""

    @staticmethod
    def timing_of(native: Timing, before: int, after: int, period: int = 1, lead: int = 0) -> Timing:
        """Timing of the whole, from the native core's timing, ``period`` and ``lead`` (see Multiplier), and the
        latencies of the conversions, in cycles."""
        start = before + lead
        latency = start + native.latency + after
        interval = -(-max(start, native.interval, after) // period) * period
        return Timing(latency, interval, -(-latency // interval))

    @staticmethod
    def load(native: Load, p: int, bits: int, period: int, interval: int) -> Load:
        """What loads ``p``, of at most ``bits`` bits: the words of ``native``, then those of p.

        ``period``: of the native core; ``interval``: of the whole.
        """
        width = native.width
        words = [p >> k & (1 << width) - 1 for k in range(0, bits, width)]
        return Load(width, (*native.words, *words), native.cycles + len(words) + period + interval)

    @property
    def timing(self) -> Timing:
        return self._timing

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        m.submodules.binary_to_residues = before = self._before
        m.submodules.multiplier = native = self._native
        m.submodules.residues_to_binary = after = self._after
        half = len(native.i_a)
        period, interval = native.period, self._timing.interval
        spacing = Signal(range(interval))
        accept = self.i_valid & self.i_ready
        with m.If(accept):
            m.d.sync += spacing.eq(interval - 1)
        with m.Elif(spacing != 0):
            m.d.sync += spacing.eq(spacing - 1)
        open_ = Signal()
        may: Value = spacing == 0
        if self._load:
            may = may & self._loading(m, accept)
        if period == 1:
            m.d.comb += open_.eq(may)
        else:
            phase = Signal(range(period))
            m.d.sync += phase.eq(Mux(phase == period - 1, 0, phase + 1))
            at = -(before.latency + native.lead) % period
            m.d.comb += open_.eq(may & (phase == at))
        m.d.comb += [
            before.i_valid.eq(self.i_valid & open_), self.i_ready.eq(before.i_ready & open_),
            before.i_x.eq(Cat(self.i_a, self.i_b)),
            native.i_valid.eq(before.o_valid), before.o_ready.eq(native.i_ready),
            native.i_a.eq(before.o_r[:half]), native.i_b.eq(before.o_r[half:]),
            after.i_valid.eq(native.o_valid), native.o_ready.eq(after.i_ready),
            after.i_r.eq(native.o_r[-len(after.i_r) :]),
            self.o_valid.eq(after.o_valid), after.o_ready.eq(self.o_ready), self.o_r.eq(after.o_r),
            *([self.o_alarm.eq(native.o_alarm)] if self.alarm else []),
        ]  # fmt: skip
        return m

    def _loading(self, m: Module, accept: Value) -> Value:
        """Stream k, while no product is in the core. Returns whether operands may be accepted."""
        load, native = self._load, self._native
        assert load
        own = -(-len(self.o_r) // load.width)  # words of p
        inner = len(load.words) - own
        inside = Signal(range(self._timing.in_flight + 3), name="inside")
        m.d.sync += inside.eq(inside + accept - (self.o_valid & self.o_ready))
        place, complete = Signal(range(inner + own), name="word"), Signal(name="complete")
        p = Signal(own * load.width, name="modulus", reset_less=True)
        empty, of_native = inside == 0, place < inner
        m.d.comb += [
            native.k_m.eq(self.k_m), native.k_valid.eq(self.k_valid & empty & of_native),
            self.k_ready.eq(empty & (native.k_ready | ~of_native)), self._after.p.eq(p),
        ]  # fmt: skip
        with m.If(self.k_valid & self.k_ready):
            last = place == inner + own - 1
            m.d.sync += [place.eq(Mux(last, 0, place + 1)), complete.eq(last)]
            with m.If(~of_native):
                m.d.sync += p.eq(Cat(p, self.k_m)[load.width :])
        return complete & ~self.k_valid
