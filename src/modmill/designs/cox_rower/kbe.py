# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""RNS Montgomery multiplication with Kawamura's base extension on the cox-rower machine.

Source:  S. Kawamura, M. Koike, F. Sano, A. Shimbo: Cox-Rower Architecture for Fast Parallel Montgomery Multiplication.
         EUROCRYPT, 2000, Sections 3 and 4 (base extension, cox-rower machine).
         F. Gandino, F. Lamberti, P. Montuschi, J.-C. Bajard: A General Approach for Improving RNS Montgomery
         Exponentiation Using Pre-processing. ARITH, 2011 (order of the operations).
         The machine and its schedule are ours.
Formula: s = x y,  xi_i = s |-p^-1 A_i^-1| mod a_i,  zeta_j = x~ y~ |B_j A^-1| + sum xi_i |p a_i^-1 B_j^-1| mod b_j,
         w_i = sum zeta_j |B_j| - h |B| mod a_i,  h = floor((sum trunc(zeta_j) + d) / 2^t)
Range:   x, y < lambda p gives w < lambda p, w = x y A^-1 (mod p); lambda exact (numbers.rns.base_pairs.Sufficiency).

A base extension multiplies its operand by |B_j^-1| first. Residues over B are therefore kept as x~_j = x |B_j^-1|. The
first extension has no cox. It returns Q + h A with an unknown h <= n; the proof of the bases includes this. The second
extension is exact. A product takes 2 n + 5 multiplications in every rower. With several products in flight the
interval is 2 n + 5 cycles. With n / m rowers each serves m channels of each base and multiplies m (2 n + 5) times.

With a check one rower more, for r = 2^w, gets the same control words and computes the result modulo r twice:
    S_r = x_r y_r |A^-1| + sum xi_i |p a_i^-1|     in the first extension
    T_r = sum zeta_j |B_j| - h |B|                 in the second
Since r exceeds every a_i, and B is odd, they differ for every wrong word of one channel that does harm, except w_i,
which the next product finds. The proof is in docs/designs/kbe.md.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

from modmill.contract import Load, ResiduePair, Timing, UnsupportedError
from modmill.design import IO, Cost, Design, DesignInstance, Setting, Source
from modmill.designs.cox_rower.chart import chart
from modmill.designs.cox_rower.constants import Tables
from modmill.designs.cox_rower.edges import edge_numbers
from modmill.designs.cox_rower.model import Model
from modmill.designs.cox_rower.multiplier import CoxRower
from modmill.designs.cox_rower.operations import H, Kind, Value
from modmill.designs.cox_rower.schedule import (
    BLOCK_WORDS,
    LEAST_SLOTS,
    Program,
    label,
    memory_plan,
    memory_words,
    program,
)
from modmill.designs.cox_rower.shape import TREE, Shape
from modmill.designs.cox_rower.slot_machine import CoxSlots
from modmill.interface import Multiplier
from modmill.numbers.primes import prev_prime
from modmill.numbers.rns.base_pairs import BasePair, Sufficiency, approximate, base_pair, sufficiency
from modmill.numbers.rns.cox import Cox
from modmill.numbers.rns.cox_edges import edge_zeta
from modmill.numbers.rns.residues import Base
from modmill.numbers.shown import shortened
from modmill.rtl.convert import BinaryShell, BinaryToResidues, ResiduesToBinary, ScaledResidues
from modmill.rtl.fold import multiplexers
from modmill.rtl.product import BLOCKS, DSP18, DspBlock
from modmill.schedule import Schedule, ScheduleError


@dataclass(frozen=True)
class Params:
    """A base pair with the proof that it suffices for p.

    ``channels_per_rower``: the number of channels of each base that a rower serves. ``block``: the DSP block that the
    multipliers are tiled to. ``checked``: with the redundant modulus 2^w. ``exchanged``: with loaded bases, whether the
    moduli of each channel have changed places; else empty.
    """

    pair: BasePair
    proof: Sufficiency
    channels_per_rower: int = 1
    block: DspBlock = DSP18
    checked: bool = False
    exchanged: tuple[bool, ...] = ()

    @property
    def a(self) -> Base:
        """Base A: its product is the Montgomery factor."""
        return self.pair.a

    @property
    def b(self) -> Base:
        """Base B."""
        return self.pair.b

    @property
    def over_a(self) -> Base:
        """Base A, and behind it the redundant modulus."""
        return Base(self.a.w, (*self.a.moduli, 1 << self.a.w)) if self.checked else self.a

    @property
    def cox(self) -> Cox:
        """The cox of the second extension; the first computes no h."""
        return self.proof.coxes[1]

    @cached_property
    def shape(self) -> Shape:
        """The structure of the machine."""
        rowers, either = self.pair.n // self.channels_per_rower, bool(self.exchanged)
        home = self.choose(0).pair if either else self.pair
        u = tuple((*home.a.u[i::rowers], *home.b.u[i::rowers]) for i in range(rowers))
        return Shape(
            self.pair.w, self.pair.columns, u, self.proof.t, self.proof.offset, block=self.block, checked=self.checked,
            either=either,
        )  # fmt: skip

    def choose(self, choice: int) -> Params:
        """The same machine with other bases: the moduli of channel k change places if bit k of ``choice`` is set.

        ``pair`` of choice 0 stands in the machine. The bounds of the proof are the same for every choice.
        """
        exchanged = tuple(bool(choice >> k & 1) for k in range(self.pair.n))
        channels = zip(self.a.moduli, self.b.moduli, self.exchanged, exchanged, strict=True)
        a, b = zip(*((x, y) if was == now else (y, x) for x, y, was, now in channels), strict=True)
        pair = BasePair(Base(self.a.w, a), Base(self.a.w, b), self.pair.columns)
        return replace(self, pair=pair, proof=replace(self.proof, pair=pair), exchanged=exchanged)


def tables(p: int, q: Params, *, plain: bool) -> Tables:
    """Constants of the machine for modulus p. ``plain``: operands are residues x mod b_j, not x~_j = x |B_j^-1|."""
    a, b = q.a, q.b
    of_a, of_b = q.proof.coxes
    scaled = [pow(a.M, -1, m) * (1 if plain else x) % m for x, m in zip(b.cofactors, b.moduli, strict=True)]
    if plain:
        scaled = [x * k % m for x, k, m in zip(scaled, b.inverses, b.moduli, strict=True)]
    made = Tables(
        xi=[-pow(p, -1, m) * k % m for k, m in zip(a.inverses, a.moduli, strict=True)],
        wt=scaled,
        h=[-b.M % m for m in a.moduli],
        partner_a=of_a.cofactors,
        partner_b=of_b.cofactors,
        first=[
            [p * pow(row, -1, m) * k % m for k, m in zip(b.inverses, b.moduli, strict=True)] for row in of_a.products
        ],
        second=[[b.M // row % m for m in a.moduli] for row in of_b.products],
    )
    return _with_check(p, q, made) if q.checked else made


def _with_check(p: int, q: Params, made: Tables) -> Tables:
    """The constants, with those of the rower modulo r = 2^w: |A^-1|, |-B|, |p A_r^-1|, |B / B_r|. Its residues s and xi
    go nowhere; all its channels compute the same."""
    a, b, r = q.a.M, q.b.M, 1 << q.a.w
    of_a, of_b = (cox.products for cox in q.proof.coxes)

    def more(table: Sequence[int], constant: int) -> list[int]:
        return [*table, *[constant % r] * q.channels_per_rower]

    return replace(
        made, xi=more(made.xi, 0), wt=more(made.wt, pow(a, -1, r)), h=more(made.h, -b),
        partner_a=more(made.partner_a, 0), partner_b=more(made.partner_b, 0),
        first=[more(own, p * pow(row, -1, r)) for own, row in zip(made.first, of_a, strict=True)],
        second=[more(own, b // row) for own, row in zip(made.second, of_b, strict=True)],
    )  # fmt: skip


class RnsMontgomery(DesignInstance):
    """RNS Montgomery multiplication on the cox-rower machine for one modulus; KBE if the rows have one modulus, else
    HBE."""

    forms = IO

    power_up = 1 + TREE
    """The reset lasts until the power-up contents of the control word's registers have left them. Otherwise these
    contents could overwrite constants in the block RAMs."""

    def __init__(self, p: int, params: Params, settings: dict[str, Any], bits: int = 0) -> None:
        """``bits``: width of the largest modulus of the core; 0: the width of p."""
        self.p, self.params, self.settings = p, params, settings
        self.loadable = bool(settings.get("loadable"))
        self.bits = bits or p.bit_length()
        if params.exchanged:
            self.forms = ("native",)  # the conversions of the others have their moduli built in

    @property
    def choices(self) -> int:
        return 1 << len(self.params.exchanged)

    @property
    def choice(self) -> int:
        return sum(exchanged << k for k, exchanged in enumerate(self.params.exchanged))

    def choose(self, choice: int) -> RnsMontgomery:
        super().choose(choice)
        if not self.params.exchanged:
            return self
        return RnsMontgomery(self.p, self.params.choose(choice), self.settings, self.bits)

    def others(self) -> list[DesignInstance]:
        """The edge moduli, and with loaded bases some other bases: all channels exchanged, the first one, and random
        ones, for this modulus and for the edge moduli."""
        found, last = super().others(), self.choices - 1
        if not last:
            return found
        rnd = random.Random(1)
        own = [self.choose(choice) for choice in dict.fromkeys((last, 1, rnd.randrange(last)))]
        return [*(other.choose(rnd.randrange(last + 1)) for other in found), *own]

    @cached_property
    def program(self) -> Program:
        """The operations of one product in their cycles."""
        return placed(self.params.shape, self.settings["interval"], loadable=self.loadable)

    def tables(self, *, plain: bool = False) -> Tables:
        """The constants of the machine; ``plain`` as in the function `tables`."""
        return tables(self.p, self.params, plain=plain)

    @cached_property
    def _tables(self) -> Tables:
        return self.tables()

    @property
    def period(self) -> int:
        """Cycles between accepted operands."""
        return self.program.interval

    @property
    def places(self) -> int:
        return memory_plan(self.program)[2] + 1  # a slot is free when its result stands at the port

    @property
    def factor(self) -> int:
        return pow(self.params.a.M, -1, self.p)

    @cached_property
    def schedule(self) -> Schedule:
        return chart(self.program)

    @property
    def alarm(self) -> bool:
        return self.params.checked

    @property
    def representation(self) -> ResiduePair:
        return ResiduePair(self.params.over_a, self.params.b)

    @cached_property
    def bounds(self) -> tuple[Fraction, Fraction, Fraction]:
        proof = self.params.proof
        return proof.operand, proof.operand**2, proof.result

    @property
    def gain(self) -> Fraction:
        return Fraction(self.p, self.params.proof.loop.a.M)

    @cached_property
    def cost(self) -> Cost:
        shape, rowers = self.params.shape, len(self.params.shape.all_rowers)
        return Cost(
            dsp=rowers * shape.tiles,
            memory_bits=rowers * shape.w * shape.constants,
            multiplications=rowers * shape.least_interval,
        )

    def combine(self, a: int, b: int, c: int, e: int) -> int:
        """(a b + c e) A^-1 in the algorithm of the slot machine; all are port values."""
        *_, (_, result) = self.trace(a, b, c, e)
        return result

    def trace(self, a: int, b: int, *others: int) -> Iterator[tuple[str, Any]]:
        """The intermediates of a b A^-1, or with ``others`` c and e of (a b + c e) A^-1 on the slot machine."""
        q, form = self.params, self.representation
        shape = replace(q.shape, numbered=True) if others else q.shape
        places = [shape.places(i) for i in shape.all_rowers]
        inputs = {}
        for letter, number in zip("xyvz", (a, b, *others), strict=False):
            words = form.unpack(number)
            for side, k in product((0, 1), range(shape.channels_per_rower)):
                inputs[Value(letter + "ab"[side], k)] = [words[own[side][k]] for own in places]
        model = Model(shape, self._tables, q.cox, None if others else self.program, q.exchanged)
        held: dict[Value, list[int]] = {}
        for op, unit, number, made in model.run(inputs):
            held[op.result] = made
            yield label(shape, op, unit, number), made[0] if op.result == H else made
        out = [0] * shape.number_words
        for side, k in product((0, 1), range(shape.channels_per_rower)):  # zeta last: the word of a redundant modulus
            given = shape.of(Kind.GIVE)[(1 - side) * shape.channels_per_rower + k].result
            for own, x in zip(places, held[given], strict=True):
                out[own[side][k]] = x
        yield "out", form.pack(out)

    def slot_machine(self, numbers: int) -> CoxSlots:
        """The machine with ``numbers`` slots, which adds two products before it reduces them.

        Raises UnsupportedError if the bases are too small for two products, if a rower serves several channels, if the
        block RAMs are too small, or if there is no schedule with the interval that was set.
        """
        if self.params.proof.largest_products < 2:
            raise UnsupportedError(
                f"the bases suffice for one product before a reduction, not for two; take n = {self.params.a.n + 1}"
            )
        if self.params.channels_per_rower > 1:
            raise UnsupportedError(
                f"the slot machine needs a rower for every channel: {self.params.a.n}, not {self.params.shape.rowers}"
            )
        plan = placed(replace(self.params.shape, numbered=True), self.settings["interval"], loadable=self.loadable)
        return CoxSlots(plan, self._tables, numbers, loadable=self.loadable, exchanged=self.params.exchanged)

    def component(self, *, scaled: bool = False) -> CoxRower:
        tables, exchanged = self.tables(plain=scaled), self.params.exchanged
        return CoxRower(self.program, tables, loadable=self.loadable, exchanged=exchanged)

    @property
    def load(self) -> Load | None:
        return self._load_of(self.component()) if self.loadable else None

    def _load_of(self, core: CoxRower) -> Load:
        rowers = len(self.params.shape.all_rowers)
        width, words = rowers * self.params.a.w, tuple(core.modulus_words())
        return Load(width, words, core.load_cycles, choices=self.choices)

    def at(self, p: int) -> RnsMontgomery:
        if not self.loadable:
            raise UnsupportedError("the modulus of this core is built in")
        if p < 3 or p % 2 == 0:
            raise UnsupportedError(f"the modulus must be odd and at least 3, got {shortened(p)}")
        try:
            proof = replace(self.params.proof, p=p).require()
        except ValueError as error:
            raise UnsupportedError(f"the bases of this core do not serve {shortened(p)}: {error}") from error
        return RnsMontgomery(p, replace(self.params, proof=proof), self.settings, self.bits)

    @property
    def _largest(self) -> int:
        """The largest modulus of the core."""
        return (1 << self.bits) - 1 if self.loadable else self.p

    @cached_property
    def _binary_top(self) -> int:
        """The largest result for operands below the modulus; with a loaded modulus a bound for all of them."""
        p = self._largest
        return min(int((self.params.proof.gain + Fraction(p, self.params.a.M)) * p), self.params.proof.limit - 1)

    def _to_residues(self) -> BinaryToResidues | ScaledResidues:
        """From two binary numbers to the operands of the core with ``scaled`` results."""
        return BinaryToResidues(Base(self.params.a.w, self.representation.moduli), self.bits, 2)

    def _to_binary(self) -> ResiduesToBinary:
        return ResiduesToBinary(self.params.b, self._largest, self._binary_top, loaded=self.loadable)

    def binary_component(self) -> Multiplier:
        native, timing = self.component(scaled=True), self.binary_timing()
        return BinaryShell(native, self._to_residues(), self._to_binary(), timing, self.binary_load)

    @property
    def width(self) -> int:
        return self.bits

    @property
    def binary_load(self) -> Load | None:
        if not self.loadable:
            return None
        native, timing = self._load_of(self.component(scaled=True)), self.binary_timing()
        return BinaryShell.load(native, self.p, self.bits, self.period, timing.interval)

    def binary_timing(self) -> Timing:
        before, after = self._to_residues().latency, self._to_binary().latency
        return BinaryShell.timing_of(self.contract("native").timing, before, after, self.period, self.program.lead)

    def corners(self) -> list[tuple[int, int]]:
        encode = self.representation.encode
        return [(encode(x), encode(y)) for x, y in edge_numbers(self)]

    def second_extension(self) -> tuple[str, str]:
        """What makes the second extension exact: a line of `facts`."""
        proof, h = self.params.proof, self.params.shape.h_max
        return "cox of the second", f"t = {proof.t}, offset d = {proof.offset} / 2^{proof.t}; h <= {h}"

    def edge_result(self, rnd: random.Random) -> int:
        """A number at the edge of the second extension; most are results of small operands."""
        q = self.params
        size = q.proof.gain * self.p / q.b.M * rnd.randrange(256, 768) / 1024
        return q.b.from_gammas(edge_zeta(q.cox, size, rnd))

    def edge_quotients(self, rnd: random.Random) -> list[list[int]]:
        """Values of xi, congruent modulo a_i, at the edges of the first extension."""
        moduli = self.params.a.moduli
        return [[m - 1 for m in moduli], [1] * len(moduli), [rnd.choice((0, m - 1)) for m in moduli]]

    def facts(self) -> list[tuple[str, str]]:
        q, shape, plan, proof = self.params, self.params.shape, self.program, self.params.proof
        return [
            ("base A", f"n = {q.a.n} moduli 2^{shape.w} - u, u = {', '.join(map(str, q.a.u))}"),
            ("base B", f"u = {', '.join(map(str, q.b.u))}"),
            ("rows", f"{shape.steps} of {shape.columns}"),
            *([("rowers", f"{shape.rowers}, {shape.channels_per_rower} channels of each base")]
              if shape.channels_per_rower > 1 else []),
            ("first extension", f"without a cox: below {approximate(proof.gain)} A"),
            self.second_extension(),
            ("operands", f"below lambda = {approximate(proof.operand)} p, results below {approximate(proof.result)} p"),
            ("products added up", f"up to {proof.largest_products} before one reduction"),
            ("slots", f"{shape.least_interval} multiplications of each rower a product, interval {plan.interval}"),
            ("one product alone", f"first to last multiplication {plan.last_slot + 1} cycles"),
            *([("check", f"modulo 2^{shape.w}, by one rower more")] if shape.checked else []),
            *([("modulus", f"loaded: {len(self.load.words)} words, {self.load.cycles} cycles")] if self.load else []),
            *([("bases", self._shown_bases(self.load))] if q.exchanged and self.load else []),
        ]  # fmt: skip

    def _shown_bases(self, load: Load) -> str:
        """The choices of bases, and the size of the constants of one of them and of all."""
        size = len(load.words) * load.width
        return (
            f"loaded with the modulus: 2^{self.params.a.n} choices, with the same bounds and cycles, of {size:,} bits "
            f"each; all of them {approximate(size << self.params.a.n)} bits"
        )


def fit(
    p: int, columns: int, *, w: int, n: int, interval: int, rowers: int, moduli: str, dsp: str, loadable: bool,
    check: bool = False, bases: str = "fixed",
) -> RnsMontgomery:  # fmt: skip
    """The instance for modulus ``p`` with the least n for which condition C4 holds, a multiple of ``rowers``.

    The moduli are those of `MODULI`. With ``loadable`` the bases are chosen for the largest prime as
    wide as p, so they depend only on the width. With ``bases`` loaded they suffice for all 2^n choices. Raises
    UnsupportedError if the settings do not fit together, and ValueError if there are no such bases.
    """
    either = bases == "loaded"
    if either and not loadable:
        raise UnsupportedError("bases=loaded needs loadable=true: the constants are loaded with the modulus")
    if rowers % columns:
        raise UnsupportedError(f"rowers must fill rows of {columns}, got rowers = {rowers}")
    if rowers and n % rowers:
        raise UnsupportedError(f"n must be a multiple of rowers, got n = {n} and rowers = {rowers}")
    served = prev_prime(1 << p.bit_length()) if loadable else p
    pair, proof = _pair(served, columns, w, n, moduli, either)
    if rowers and pair.n % rowers:
        pair, proof = _pair(served, columns, w, -(-pair.n // rowers) * rowers, moduli, either)
    channels_per_rower = pair.n // rowers if rowers else 1
    alike = dealt_alike(pair, channels_per_rower)
    better = sufficiency(alike, served, either=either)
    if better.holds:
        pair, proof = alike, better
    settings = {
        "w": w, "n": n, "interval": interval, "rowers": rowers, "moduli": moduli, "dsp": dsp, "loadable": loadable,
        **({"check": True} if check else {}), **({"bases": bases} if either else {}),
    }  # fmt: skip
    params = Params(pair, proof, channels_per_rower, BLOCKS[dsp], check, (False,) * (pair.n * either))
    shape, fitted = params.shape, RnsMontgomery(served, params, settings)
    if memory_words(shape, LEAST_SLOTS) > BLOCK_WORDS:
        raise UnsupportedError(
            f"n = {pair.n} moduli on rowers = {shape.rowers} need {shape.constants:,} constants in each block RAM, and "
            f"{shape.slot} words for each product; it has room for {BLOCK_WORDS:,}: lower n or raise rowers"
        )
    if interval:
        placed(shape, interval, loadable=loadable)
    return fitted.at(p) if loadable else fitted


def placed(shape: Shape, interval: int, *, loadable: bool = False) -> Program:
    """The program with the given interval, 0 for the least. Raises UnsupportedError, with an interval that is accepted,
    if none is found."""
    try:
        return program(shape, interval, loadable=loadable)
    except ScheduleError as error:
        if not interval or shape.channels_per_rower > 1:
            hint = "take a longer one, or 0 for the least that is found" if interval else "change rowers"
        else:
            hint = f"take {program(shape, loadable=loadable).interval} or 0, the least"
        raise UnsupportedError(f"interval = {interval} does not serve n = {shape.n}: {error}; {hint}") from error


MODULI: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "near": ({"digits": 3}, {"digits": 7}), "light": ({"light": True}, {"digits": 3}, {"digits": 7}), "short": ({},),
}  # fmt: skip
"""Arguments of `base_pair` for each choice of moduli; the next are taken where those before have none that suffice."""


def _pair(p: int, columns: int, w: int, n: int, moduli: str, either: bool) -> tuple[BasePair, Sufficiency]:
    """A pair of bases of ``n`` moduli, 0 for the fewest. Raises ValueError if there is none."""
    *first, last = MODULI[moduli]
    for how in first:
        with suppress(ValueError):
            return base_pair(p, w, columns, n=n or None, even=False, either=either, **how)
    return base_pair(p, w, columns, n=n or None, even=False, either=either, **last)


def dealt_alike(pair: BasePair, channels_per_rower: int) -> BasePair:
    """The same moduli in another order: the u of one rower share many signed digits, by a greedy choice."""
    left = sorted(pair.a.u + pair.b.u)
    a: list[list[int]] = []
    b: list[list[int]] = []
    while left:
        own = [left.pop()]
        while len(own) < 2 * channels_per_rower:
            own.append(min(left, key=lambda v: (multiplexers((*own, v)), -v)))
            left.remove(own[-1])
        for base, us in zip((a, b) if len(a) % 2 else (b, a), (own[::2], own[1::2]), strict=True):
            base.append([(1 << pair.w) - u for u in us])
    both = (Base(pair.w, tuple(own[k] for k in range(channels_per_rower) for own in base)) for base in (a, b))
    return BasePair(next(both), next(both), pair.columns)


SEARCHED = 8
"""Largest n for which the least interval is searched, which then takes seconds."""
N_MAX, INTERVAL_MAX = 128, 1 << 14
"""Largest n, about the number of 17-bit moduli for 2,048 bits, and the longest interval in cycles."""
SHARE_MAX = 4
"""Most channels of each base for one rower. With more, the search for a schedule takes minutes and mostly fails."""


def fewest(p: int, settings: Mapping[str, Any]) -> int:
    """The fewest moduli in each base that suffice for p with these settings."""
    given = {name: settings[name] for name in ("w", "moduli", "dsp", "loadable", "bases")}
    return fit(p, settings.get("columns", 1), n=0, interval=0, rowers=0, **given).params.pair.n


def rower_limits(p: int, settings: Mapping[str, Any]) -> tuple[int, int]:
    """The limits of the setting ``rowers``: the fewest for the moduli in each base, a multiple of the columns."""
    columns = settings.get("columns", 1)
    return -(-(settings["n"] or fewest(p, settings)) // (SHARE_MAX * columns)) * columns, N_MAX


def interval_limits(p: int, settings: Mapping[str, Any]) -> tuple[int, int]:
    """The limits of the setting ``interval``: the least interval with a schedule, and four times the multiplications of
    one product in each rower.

    The search takes up to minutes if rowers serve several channels or n exceeds SEARCHED. Then the first limit is the
    number of multiplications, which may be slightly too small, and `fit` refuses an interval without a schedule.
    """
    given = {name: settings[name] for name in ("w", "n", "rowers", "moduli", "dsp", "loadable", "bases")}
    shape = fit(p, settings.get("columns", 1), interval=0, **given).params.shape
    searched = shape.channels_per_rower == 1 and shape.n <= SEARCHED
    least = placed(shape, 0, loadable=settings["loadable"]).interval if searched else shape.least_interval
    return least, max(least, 4 * shape.least_interval)


SETTINGS = (
    Setting("w", int, 17, "bits of a channel, up to four DSP blocks", least=12, most=34),
    Setting(
        "n", int, 0, "moduli in each base, 0 for the fewest that suffice", least=0, most=N_MAX,
        depends="condition C4 sets the least; rows and rowers must be full",
        limits=lambda p, settings: (fewest(p, settings), N_MAX), smaller="lower",
    ),
    Setting(
        "interval", int, 0, "cycles between products, 0 for the fewest", least=0, most=INTERVAL_MAX,
        depends="the least with a schedule, and four times the multiplications of a product in each rower, with which "
        "products hardly overlap", limits=interval_limits,
    ),
    Setting(
        "rowers", int, 0, "rowers, each for the same number of moduli of each base; 0: one rower for each modulus",
        least=0, most=N_MAX,
        depends=f"they must fill rows, n must be a multiple of them, and each serves at most {SHARE_MAX} of each base",
        limits=rower_limits, smaller="lower",
    ),
    Setting(
        "moduli", str, "near", "moduli 2^w - u: near: smallest u of three signed digits; light: fewest signed digits; "
        "short: smallest u", tuple(MODULI),
    ),
    Setting("dsp", str, "18x18", "DSP block that multipliers are tiled to", tuple(BLOCKS)),
    Setting("loadable", bool, False, "load the modulus at run time, any of the same width"),
    Setting("check", bool, False, "compute every product modulo 2^w too, compare, and raise o_alarm if it differs"),
    Setting(
        "bases", str, "fixed", "loaded: load with the modulus which modulus of each channel is in A, and which in B; "
        "only with loadable=true, and in the form native", ("fixed", "loaded"),
    ),
)  # fmt: skip

DESIGNS = (
    Design(
        name="kbe",
        page="kbe",
        title="RNS Montgomery multiplication with Kawamura's base extension on the cox-rower machine",
        source=Source(
            "S. Kawamura, M. Koike, F. Sano, A. Shimbo",
            "Cox-Rower Architecture for Fast Parallel Montgomery Multiplication",
            "EUROCRYPT",
            2000,
            "Sections 3 and 4; machine and schedule are ours",
        ),
        needs="any odd modulus of at least 2 bits, as long as enough coprime channel moduli exist",
        settings=SETTINGS,
        solve=lambda p, **settings: fit(p, 1, **settings),
    ),
)
