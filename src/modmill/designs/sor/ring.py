# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Sum of residues on a ring of rowers: our own schedule of the improved SOR algorithm, multipliers always busy.

Source:  M. A. Mehrabi, Improved Sum of Residues Modular Multiplication Algorithm, Cryptography 3 (2019) 14,
         Algorithm 2, for the algorithm; the machine and its schedule are ours.
Formula: Z = X Y,  gamma_i = Z M_i^-1 mod m_i,  z = sum gamma_i <M_i>_p + alpha <-M>_p - kappa p
Range:   X Y < (1 - d/2^q) M gives 0 <= z < beta p, beta exact (numbers.rns.sum_of_residues); z = X Y (mod p).

N channels of at most 17 bits have one DSP block each. The gamma_i travel in a ring, one channel a cycle, so that no
wire reaches more than one neighbour; each rower adds up gamma_i <<M_i>_p>_mj lazily and reduces once, by a folding loop
beside the multiplier. Taps on the ring compute alpha and kappa while the sums run; both come back over a registered
bus. A product needs N + 3 + (words of kappa) slots, and products follow one another at that interval or a few cycles
more. alpha is multiplied by <-M>_p instead of looked up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal

from modmill.design import Cost, Design, Multiplier, Setting, Source
from modmill.designs.sor.improved import SumOfResiduesDesign
from modmill.designs.sor.ring_rower import ACCUMULATE, CLEAR, PRODUCT, Programme, Rower, Slot, fold_cycles
from modmill.numbers.folding import fold_bounds, reduce
from modmill.numbers.rns.residues import Base, growing_bases, pseudo_mersenne, signed_digits
from modmill.numbers.rns.sum_of_residues import SumOfResidues, solve_over
from modmill.rtl.periodic import Period
from modmill.rtl.product import Tile
from modmill.schedule import Schedule, ScheduleError, Step

ALPHA = 3
"""Cycles from the tap's last gamma to alpha in its register: tap, sum of taps, alpha's sum, register."""

KAPPA = 7
"""Cycles from the tap's last gamma to kappa in its register: tap, DSP block, words, taps, K, register."""

BUS = 2
"""Cycles from a value to the rowers' operand multiplexers."""

FIFO = 1
"""Cycles through the empty output queue."""


# ---------------------------------------------------------------------------------------------- parameters


@dataclass(frozen=True)
class Params:
    """The constants, and the number of taps on the ring that share the work on alpha and kappa."""

    rns: SumOfResidues
    taps: int

    @property
    def base(self) -> Base:
        """The channels."""
        return self.rns.base

    @property
    def words(self) -> int:
        """Channel-wide words of kappa."""
        return -(-self.rns.kappa_bits // self.base.w)

    @property
    def digits(self) -> int:
        """Signed digits that the folding loops are built for."""
        return max(len(signed_digits(u)) for u in self.base.u)

    @property
    def segments(self) -> list[range]:
        """Channels whose gamma each tap sees; it sits on the last of them."""
        n, t = self.base.n, self.taps
        return [range(i * n // t, (i + 1) * n // t) for i in range(t)]

    @property
    def turns(self) -> int:
        """Cycles until the taps have seen every gamma."""
        return max(len(s) for s in self.segments)

    @cached_property
    def sum_bound(self) -> int:
        """Exclusive bound of any channel's lazy sum or single product."""
        top = (1 << self.base.w) - 1
        return top * top * (self.base.n + 1 + self.words) + 1

    @cached_property
    def passes(self) -> int:
        """Passes of the folding loop, enough for every channel."""
        return max(len(fold_bounds(self.sum_bound, self.base.w, u)) for u in self.base.u)


@dataclass(frozen=True)
class Constants:
    """rows[i][j] = <<M_i>_p>_mj, minus_m[j] = <<-M>_p>_mj, minus_p[word][j] = <-p 2^(w word)>_mj; times M_j^-1 when
    scaled."""

    inverses: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]
    minus_m: tuple[int, ...]
    minus_p: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, p: Params, scaled: bool) -> Constants:
        """Tables for ``p``."""
        base = p.base
        return cls(
            inverses=base.inverses,
            rows=tuple(base.row(x, scaled=scaled) for x in p.rns.r),
            minus_m=base.row(-base.M % p.rns.p, scaled=scaled),
            minus_p=tuple(base.row(-p.rns.p << (base.w * word), scaled=scaled) for word in range(p.words)),
        )


# ---------------------------------------------------------------------------------------------- schedule


@dataclass(frozen=True)
class Times:
    """Cycle of every slot of one product (cycle 0: its operands are accepted)."""

    interval: int
    gamma: int
    ring: int
    alpha: int
    kappa: tuple[int, ...]


def steps(p: Params, t: Times) -> Schedule:
    """The schedule with these slots. Raises ScheduleError when the machine could not run it."""
    n, fold = p.base.n, fold_cycles(p.digits)
    reduction = p.passes * fold
    out: list[Step] = []

    def reduced(name: str, start: int, reads: tuple[str, ...]) -> str:
        """The passes of one reduction; the loop starts one step a cycle, so each pass is busy for one."""
        for i in range(p.passes):
            out.append(Step(f"{name}/{i + 1}", "fold", start + i * fold, fold, reads, busy=1))
            reads = (f"{name}/{i + 1}",)
        return reads[0]

    def slot(name: str, start: int, reads: tuple[str, ...] = ()) -> None:
        out.append(Step(name, "mul", start, PRODUCT, reads, busy=1))

    slot("Z", 0)
    z = reduced("Zr", PRODUCT, ("Z",))
    slot("G", t.gamma, (z,))
    g = reduced("Gr", t.gamma + PRODUCT, ("G",))
    out.append(Step("ring", "ring", t.ring - 1, 1, (g,), busy=n))
    for i in range(n):
        slot(f"L{i + 1}", t.ring + i, ("ring",))
    last = t.ring + p.turns - 1
    out.append(Step("alpha", "alpha", t.ring, last + 1 + ALPHA - t.ring, ("ring",), busy=p.turns))
    out.append(Step("kappa", "kappa", t.ring, last + 1 + KAPPA - t.ring, ("ring",), busy=p.turns))
    out.append(Step("bus AL", "bus", t.alpha - BUS, BUS, ("alpha",), busy=1))
    slot("AL", t.alpha, ("bus AL",))
    for word, cycle in zip("PQRS", t.kappa, strict=False):
        out.append(Step(f"bus K{word}", "bus", cycle - BUS, BUS, ("kappa",), busy=1))
        slot(f"K{word}", cycle, (f"bus K{word}",))
    slots = [s for s in out if s.unit == "mul" and s.name not in ("Z", "G")]
    first, end = t.ring, max(s.start for s in slots)
    out.append(Step("A", "sum", first + PRODUCT - CLEAR, end + ACCUMULATE - first + CLEAR, ("ring",)))
    reduced("zr", end + PRODUCT + ACCUMULATE, tuple(s.name for s in slots))
    out.append(Step("z", "queue", end + PRODUCT + ACCUMULATE + reduction, FIFO, (f"zr/{p.passes}",), busy=1))
    captured = Step("hold Z", "hold", PRODUCT + reduction, t.gamma - PRODUCT - reduction, (z,))
    held = Step("wait G", "wait", t.gamma + PRODUCT + reduction, t.ring - 1 - t.gamma - PRODUCT - reduction, (g,))
    return Schedule((*out, captured, held), t.interval)


def search(p: Params) -> tuple[Times, Schedule]:
    """The least interval, and for it the least latency, over the slots of gamma, the ring, alpha and kappa."""
    n = p.base.n
    reduction = p.passes * fold_cycles(p.digits)
    for interval in range(n + 3 + p.words, 2 * n + 40):
        for gamma in range(PRODUCT + reduction + 1, PRODUCT + reduction + 1 + interval):
            if gamma % interval == 0:
                continue
            soonest = gamma + PRODUCT + reduction + 2
            for ring in range(soonest, soonest + interval):
                taken = {0, gamma % interval, *((ring + i) % interval for i in range(n))}
                if len(taken) != n + 2:
                    continue
                cycle = ring + p.turns + ALPHA + BUS
                slots = []
                for ready in (cycle, *[ring + p.turns + KAPPA + BUS] * p.words):
                    cycle = max(cycle, ready)
                    while cycle % interval in taken and cycle < ring + interval:
                        cycle += 1
                    taken.add(cycle % interval)
                    slots.append(cycle)
                if slots[-1] >= ring + interval or len(taken) != n + 3 + p.words:
                    continue
                times = Times(interval, gamma, ring, slots[0], tuple(slots[1:]))
                try:
                    return times, steps(p, times)
                except ScheduleError:
                    continue
    raise ValueError(f"no schedule for {n} channels with an interval below {2 * n + 40}")


# ---------------------------------------------------------------------------------------------- algorithm


class SorRing(SumOfResiduesDesign):
    """SOR on a ring of rowers for one modulus."""

    def __init__(self, params: Params, settings: dict[str, Any]) -> None:
        self.params = params
        self.rns = params.rns
        self.p = params.rns.p
        self.settings = settings
        self.times, self._schedule = search(params)
        self.period = self.times.interval

    @property
    def schedule(self) -> Schedule:
        return self._schedule

    @property
    def kappa_tiles(self) -> int:
        """DSP blocks of one tap."""
        return -(-self.params.rns.constant_bits // self.params.base.w)

    @cached_property
    def cost(self) -> Cost:
        """One DSP block a channel, and the taps' blocks; constants: N(N + 2 + words) w bits and N words of kappa's."""
        p = self.params
        n, w = p.base.n, p.base.w
        return Cost(
            dsp=n + p.taps * self.kappa_tiles,
            memory_bits=n * ((n + 2 + p.words) * w + p.rns.constant_bits),
            multiplications=n * (n + 3 + p.words),
        )

    def trace(self, a: int, b: int, *, scaled: bool = False) -> Iterator[tuple[str, Any]]:
        p, base, rns = self.params, self.params.base, self.params.rns
        k = Constants.of(p, scaled)
        form = self.representation
        x, y = form.unpack(a), form.unpack(b)
        channels = range(base.n)

        def mod(j: int, t: int) -> int:
            return reduce(t, p.sum_bound, base.w, base.u[j])

        z = [mod(j, x[j] * y[j]) for j in channels]
        yield "Z", z
        gamma = [mod(j, z[j] * k.inverses[j]) for j in channels]
        yield "G", gamma
        alpha = rns.alpha(gamma)
        yield "alpha", alpha
        kappa = rns.kappa(gamma, alpha)
        yield "kappa", kappa
        mask = (1 << base.w) - 1
        total = [
            sum(gamma[i] * k.rows[i][j] for i in channels)
            + alpha * k.minus_m[j]
            + sum((kappa >> (base.w * word) & mask) * k.minus_p[word][j] for word in range(p.words))
            for j in channels
        ]
        yield "A", total
        yield "z", form.pack([mod(j, t) for j, t in zip(channels, total, strict=True)])

    def component(self, *, scaled: bool = False) -> Multiplier:
        return Machine(self, scaled)

    def facts(self) -> list[tuple[str, str]]:
        p, rns = self.params, self.params.rns
        return [
            ("base", f"N = {p.base.n} moduli 2^{p.base.w} - u, u = {', '.join(map(str, p.base.u))}"),
            ("range M", f"{p.base.M.bit_length()} bits"),
            ("taps on the ring", f"{p.taps}, {self.kappa_tiles} DSP block(s) each"),
            ("folding", f"{p.passes} passes of {fold_cycles(p.digits)} cycles, u of at most {p.digits} signed digits"),
            ("alpha", f"q = {rns.q}, offset d = {rns.d} / 2^{rns.q}; alpha <= {rns.alpha_max}"),
            ("kappa", f"T = {rns.T}, constants of {rns.constant_bits} bits; {rns.kappa_bits} bits, {p.words} word(s)"),
            ("result z < beta p", f"beta ~ {float(rns.beta):.9f} (exact fraction in contract.json)"),
            ("operands", f"below {float(self.bounds[0]):.6g} p each"),
            ("slots", f"{p.base.n + 3 + p.words} of {self.times.interval} are used"),
        ]


# ---------------------------------------------------------------------------------------------- machine


class Machine(Multiplier):
    """N rowers in a ring, taps for alpha and kappa, and a queue for the results.

    Operands are accepted every ``interval`` cycles, when there is room for the result: the machine itself never
    stalls, results wait in the queue. Timing does not depend on values.
    """

    def __init__(self, fitted: SorRing, scaled: bool) -> None:
        self._fitted = fitted
        self._scaled = scaled
        width = fitted.representation.width
        super().__init__(width, width, width, period=fitted.times.interval)

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        fitted = self._fitted
        p, t, plan = fitted.params, fitted.times, fitted.schedule
        base, rns = p.base, p.rns
        n, w, interval = base.n, base.w, t.interval
        k = Constants.of(p, self._scaled)

        arrival = plan["z"].start
        period = Period(m, self, interval, arrival)
        phase, strobe = period.phase, period.strobe

        # ---- rowers
        hold, wait = (frozenset({plan[s].start % interval}) for s in ("hold Z", "wait G"))
        folds = {s.start % interval: "loop" for s in plan.on("fold")}
        folds |= {plan["Zr/1"].start % interval: "product", plan["Gr/1"].start % interval: "product"}
        folds[plan["zr/1"].start % interval] = "sum"
        buses = []
        for g in range(0, n, 4):  # one register for four rowers
            buses.append(Signal(w, name=f"bus{g // 4}", reset_less=True))
        rowers = []
        for j in range(n):
            slots = {0: Slot("in", None), t.gamma % interval: Slot("hold", k.inverses[j])}
            for i in range(n):
                slots[(t.ring + i) % interval] = Slot("ring", k.rows[(j - i) % n][j], "first" if i == 0 else "add")
            slots[t.alpha % interval] = Slot("bus", k.minus_m[j], "add")
            for word, cycle in enumerate(t.kappa):
                slots[cycle % interval] = Slot("bus", k.minus_p[word][j], "add")
            programme = Programme(interval, slots, folds, hold, wait, frozenset({(t.ring - 1) % interval}))
            rower = Rower(w, base.u[j], programme, digits=p.digits, offset=j)
            m.submodules[f"rower{j}"] = rower
            m.d.comb += [
                rower.x.eq(self.i_a.word_select(j, w)),
                rower.y.eq(self.i_b.word_select(j, w)),
                rower.bus.eq(buses[j // 4]),
            ]
            rowers.append(rower)
        for j in range(n):
            m.d.comb += rowers[j].ring_in.eq(rowers[j - 1].ring)

        # ---- taps: alpha from the top bits of each gamma, kappa from its products with c_i
        tops, products = [], []
        tiles = fitted.kappa_tiles
        for i, segment in enumerate(p.segments):
            tap = Signal(w, name=f"tap{i}", reset_less=True)
            m.d.sync += tap.eq(rowers[segment[-1]].ring)
            seen = [(t.ring + s) % interval for s in range(len(segment))]
            top = Signal(rns.q, name=f"tap{i}_top")
            m.d.comb += top.eq(Mux(strobe(f"tap{i}_seen", *(c + 1 for c in seen)), tap[w - rns.q :], 0))
            tops.append(top)
            parts = []
            for word in range(tiles):
                constant = Signal(w, name=f"tap{i}_c{word}", reset_less=True)
                with m.Switch(phase):
                    for s, cycle in enumerate(seen):
                        with m.Case(cycle):
                            m.d.sync += constant.eq(rns.c[segment[-1] - s] >> (w * word) & ((1 << w) - 1))
                    with m.Default():
                        m.d.sync += constant.eq(0)
                tile = Tile(w, w, 3)
                m.submodules[f"tap{i}_tile{word}"] = tile
                m.d.comb += [tile.a.eq(tap), tile.b.eq(constant)]
                parts.append(tile.p << (w * word))
            product = Signal(w + rns.constant_bits, name=f"tap{i}_product", reset_less=True)
            m.d.sync += product.eq(sum(parts[1:], parts[0]))
            products.append(product)
        top_sum = Signal(rns.q + p.taps.bit_length(), reset_less=True)
        alpha_sum = Signal(range(n * ((1 << rns.q) - 1) + rns.d + 1), reset_less=True)
        alpha = Signal(range(max(2, rns.alpha_max + 1)), reset_less=True)
        m.d.sync += [
            top_sum.eq(sum(tops[1:], tops[0])),
            alpha_sum.eq(Mux(strobe("alpha_first", t.ring + 2), rns.d, alpha_sum) + top_sum),
        ]
        alpha_at = plan["alpha"].end
        with m.If(strobe("alpha_now", alpha_at - 1)):
            m.d.sync += alpha.eq(alpha_sum >> rns.q)
        e = Signal(max(1, max(x.bit_length() for x in rns.e)), reset_less=True)
        with m.Switch(alpha):
            for i, offset in enumerate(rns.e):
                with m.Case(i):
                    m.d.sync += e.eq(offset)
        total_width = ((rns.kappa_max + 1) << rns.T).bit_length()
        product_sum = Signal(len(products[0]) + p.taps.bit_length(), reset_less=True)
        k_sum = Signal(total_width, reset_less=True)
        k_total = Signal(total_width)
        kappa = Signal(p.words * w, reset_less=True)
        m.d.sync += [
            product_sum.eq(sum(products[1:], products[0])),
            k_sum.eq(Mux(strobe("kappa_first", t.ring + 6), 0, k_sum) + product_sum),
        ]
        m.d.comb += k_total.eq(k_sum + e)
        with m.If(strobe("kappa_now", plan["kappa"].end - 1)):
            m.d.sync += kappa.eq(k_total >> rns.T)

        # ---- bus: alpha or a word of kappa
        source = Signal(w, reset_less=True)
        m.d.sync += source.eq(alpha)
        for word, cycle in enumerate(t.kappa):
            with m.If(strobe(f"bus_word{word}", cycle - BUS)):
                m.d.sync += source.eq(kappa.word_select(word, w))
        for bus in buses:
            m.d.sync += bus.eq(source)

        period.finish(Cat(*(r.result for r in rowers)))
        self.probes = [
            ("Z", [r.held for r in rowers], plan["hold Z"].start + 1),
            ("G", [r.waiting for r in rowers], plan["wait G"].start + 1),
            ("alpha", alpha, alpha_at),
            ("kappa", kappa, plan["kappa"].end),
            ("A", [r.total for r in rowers], plan["zr/1"].start),
        ]
        return m


# ---------------------------------------------------------------------------------------------- design


OPERAND_MAX = 1 << 16
"""Largest multiple of the modulus for operands: as for a modulus 16 bits longer."""
LEAST_CHANNELS = 4
"""Channels at least, and so the most taps."""


def fit(p: int, *, w: int, taps: int, operand: int, digits: int) -> SorRing:
    """Least N for which the constants exist, over moduli 2^w - u with few signed digits in u."""
    size = Fraction(operand)
    reason: ValueError | None = None
    for few in [digits] if digits else [3, 7]:
        try:
            bases = growing_bases(
                w, pseudo_mersenne(w, digits=few), int((size * p) ** 2), least=LEAST_CHANNELS, count=7
            )
            rns = solve_over(bases, p, operand=size, multiplied=True, offset=True)
            break
        except ValueError as error:
            reason = error
    else:
        raise reason or ValueError("no base")
    params = Params(rns, min(taps, rns.base.n))
    if params.words > 4:
        raise ValueError(f"kappa has {rns.kappa_bits} bits, more than four channels of {w}")
    return SorRing(params, {"w": w, "taps": taps, "operand": operand, "digits": digits})


DESIGNS = (
    Design(
        name="sor-ring",
        page="sor-ring",
        title="Improved SOR on a ring of 17-bit rowers, several products in flight",
        source=Source(
            "M. A. Mehrabi",
            "Improved Sum of Residues Modular Multiplication Algorithm",
            "Cryptography 3(2):14",
            2019,
            "Algorithm 2; machine and schedule are ours",
        ),
        needs="any odd modulus of at least 2 bits, as long as enough coprime channel moduli exist (about 1,000 bits)",
        settings=(
            Setting("w", int, 17, "bits of a channel, at most one DSP block", least=12, most=17),
            Setting("taps", int, 2, "taps on the ring that compute alpha and kappa", least=1, most=LEAST_CHANNELS),
            Setting(
                "operand", int, 4, "operands up to this multiple of the modulus must be accepted",
                least=1, most=OPERAND_MAX,
            ),
            Setting(
                "digits", int, 0, "largest number of signed digits in u, 0 for the fewest that serve", least=0, most=9,
                depends="u is odd, so that 1 digit leaves one modulus; u is below 2^(w - 1), so that none has more",
                limits=lambda p, settings: (2, (settings["w"] + 1) // 2),
            ),
        ),
        solve=fit,
    ),
)  # fmt: skip
