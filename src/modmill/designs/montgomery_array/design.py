# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""High-radix Montgomery multiplication on a pipelined linear array; interleaved products keep all DSP blocks busy.

Source:  P. L. Montgomery: Modular Multiplication Without Trial Division. Mathematics of Computation 44, 1985, pages
         519-521, for the reduction; S. E. Eldridge, C. D. Walter: Hardware Implementation of Montgomery's Modular
         Multiplication Algorithm. IEEE Transactions on Computers 42, 1993, pages 693-699, for the array. Digits,
         interleaving and schedule are ours.
Formula: S = 0; for i = 0 ... d - 1:  t = (S + x_0 y_i) mod 2^17,  q_i = t m' mod 2^17,
         S = (S + x y_i + q_i M) / 2^17,  with m' = -M^-1 mod 2^17
Range:   x, y < lambda M give S < (lambda^2 M / R + 1) M <= lambda M, R = 2^(17 d), S = x y / R (mod M)

lambda = 2^(17 d - 1 - bits of M) is at least 2, so no final subtraction is needed. The modulus is built in, or any odd
modulus of at most that width is loaded at run time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from modmill.contract import Binary, Contract, Load, Timing, UnsupportedError
from modmill.design import IO, Cost, Design, DesignInstance, Setting, Source, loadable_modulus
from modmill.designs.montgomery_array.array import DIGIT, STREAMS_MIN, NegativeInverse
from modmill.designs.montgomery_array.folded_array import FoldedArray
from modmill.designs.montgomery_array.lanes import Lanes, starts, timing
from modmill.designs.montgomery_array.shape import Kind, Params
from modmill.interface import Multiplier
from modmill.rtl.canonical import Canonical
from modmill.rtl.conditional_subtract import LEAD, ConditionalSubtract
from modmill.rtl.delay import later
from modmill.rtl.digit_serial import DIGITS_MIN, Control, DigitSerial, least_streams
from modmill.rtl.digits import MEMORY, DigitMemory
from modmill.rtl.free_running import free_running
from modmill.schedule import Operation, Schedule

BITS_MAX = 4096
"""Most bits of a modulus."""
DIGITS_MAX = 256
"""Most digits, 14 more than the widest modulus needs."""
STREAMS_MAX = 271
"""Most interleaved products: a folded array of 255 columns needs 256. It is a prime, so intervals are coprime to it."""
LANES_MAX = 64
"""Most lanes."""


class MontgomeryMultiplication(DesignInstance):
    """The array for one modulus, built in or loaded."""

    forms = IO
    one_block = True

    def __init__(self, p: int, params: Params, settings: dict[str, Any]) -> None:
        self.p, self.params, self.settings = p, params, settings
        self.loadable: bool = settings["loadable"]
        self.lanes: int = settings["lanes"]

    @property
    def factor(self) -> int:
        return pow(self.params.R, -1, self.p)

    @property
    def schedule(self) -> Schedule:
        return self.params.schedule

    @property
    def representation(self) -> Binary:
        return Binary(self.params.operand_bits)

    @property
    def gain(self) -> Fraction:
        return Fraction(self.p, self.params.R)

    @property
    def bounds(self) -> tuple[Fraction, Fraction, Fraction]:
        limit = Fraction(1 << self.params.spare)
        return limit, limit**2, limit**2 * self.gain + 1

    @property
    def cost(self) -> Cost:
        """Constants: the modulus and m'."""
        d = self.params.digits
        return Cost(dsp=self.params.blocks * self.lanes, memory_bits=DIGIT * (d + 1), multiplications=d * (2 * d + 1))

    def trace(self, a: int, b: int) -> Iterator[tuple[str, Any]]:
        p, mask = self.params, (1 << DIGIT) - 1
        inverse = -pow(self.p, -1, 1 << DIGIT) % (1 << DIGIT)
        s = 0
        for i in range(p.digits):
            digit = b >> DIGIT * i & mask
            yield f"xy{i}", (a & mask) * digit
            low = (s + a * digit) & mask
            yield f"t{i}", low
            q = low * inverse & mask
            yield f"q{i}", q
            s = (s + a * digit + q * self.p) >> DIGIT
            for group, first, last in p.held:
                yield Kind.COLUMN(i, *group).name, s >> DIGIT * first & mask
                if last > first:
                    yield Kind.OTHERS(i, *group).name, s >> DIGIT * last & mask
        for j in range(p.digits):
            yield f"z{j}", s >> DIGIT * j & mask
        yield "S", s

    def multiply(self, a: int, b: int) -> int:
        """S without the digit loop: the digits q_i together are -a b / M mod R."""
        q = a * b * self._inverse % self.params.R
        return (a * b + q * self.p) // self.params.R

    @cached_property
    def _inverse(self) -> int:
        return -pow(self.p, -1, self.params.R) % self.params.R

    @property
    def starts(self) -> int:
        return starts(self.params.frame.starts, self.lanes)

    @property
    def places(self) -> int:
        room = self.params.frame.room
        return room if self.lanes == 1 else self.lanes * (room + 1)  # a queue for each lane behind its results

    @property
    def load(self) -> Load | None:
        if not self.loadable:
            return None
        p, feeding = self.params, self.params.frame.feeding
        words = tuple(self.p >> DIGIT * j & (1 << DIGIT) - 1 for j in range(p.digits))
        # intervals from the first word to the interval in which the digits of M start to enter the array
        intervals = -(-(p.digits + MEMORY - feeding) // p.interval) + (feeding >= 0)
        return Load(DIGIT, words, (intervals + 1) * p.interval, DIGIT * p.digits)

    def at(self, p: int) -> DesignInstance:
        if not self.loadable:
            return super().at(p)
        return MontgomeryMultiplication(loadable_modulus(p, self.params.bits), self.params, self.settings)

    def component(self, *, scaled: bool = False) -> Multiplier:
        return self._laned(binary=False)

    def binary_component(self) -> Multiplier:
        if not self.params.columns:
            return self._laned(binary=True)
        native, timing = self._laned(binary=False), self.binary_timing()
        return Subtracted(native, self.p, self.params.bits, timing, word=self._word, load=self.load)

    @property
    def _word(self) -> int:
        """Bits of a digit of the subtraction behind a folded array, whose digits leave in another order: one interval
        suffices for all."""
        return max(DIGIT, -(-(self.params.bits + 1) // (self.params.interval // self.lanes)))

    def _laned(self, *, binary: bool) -> Multiplier:
        modulus, frame = None if self.loadable else self.p, self.params.binary_frame if binary else self.params.frame
        made = [Machine(self.params, modulus, binary=binary) for _ in range(self.lanes)]
        return made[0] if self.lanes == 1 else Lanes(made, frame.room)

    def facts(self) -> list[tuple[str, str]]:
        p, load = self.params, self.load
        return [
            ("digits", f"d = {p.digits} of {DIGIT} bits, R = 2^{DIGIT * p.digits}"),
            ("operands", f"below 2^{p.spare} p, results below (2^{2 * p.spare} p / R + 1) p"),
            ("interleaved", f"{p.streams} streams; a product every {p.interval} cycles"),
            ("columns", f"{p.columns or p.digits}, each for {p.groups} digit{'s' * (p.groups > 1)}"),
            ("lanes", f"{self.lanes}, each of {p.blocks} DSP blocks; they take products in turn"),
            ("DSP blocks", f"{self.cost.dsp}, each product {self.cost.multiplications} multiplications"),
            ("modulus", f"loaded: {len(load.words)} words, {load.cycles} cycles" if load else "built in"),
        ]

    def corners(self) -> list[tuple[int, int]]:
        """Operands of all ones and of single digits; q all zeros or all ones; results at their bound, 0 and M."""
        p, R, top = self.p, self.params.R, self.contract("native").largest_operand
        special = [0, 1, p - 1, p, p + 1, 2 * p - 1, top, top - 1, (1 << DIGIT) - 1, 1 << DIGIT]
        special.append(1 << self.params.operand_bits - 1)
        special = [x for x in dict.fromkeys(special) if x <= top]
        out = [(x, y) for x in special for y in special]
        for q in (0, R - 1, 1, R >> 1, int("01" * (DIGIT * self.params.digits // 2), 2)):
            product = -q * p % R  # with x y = product (mod R) the digits q_i are q
            for y in (1, 3, top | 1):
                x = product * pow(y, -1, R) % R
                if y <= top and x <= top:
                    out.append((x, y))
        return out

    def contract(self, io: str) -> Contract:
        found = super().contract(io)
        if io == "native":
            return replace(found, timing=timing(found.timing, self.lanes))
        return found

    @property
    def width(self) -> int:
        return self.params.bits

    def binary_timing(self) -> Timing:
        if not self.params.columns:
            return timing(self.params.binary_frame.timing, self.lanes)
        return Canonical.timing_of(self.contract("native").timing, self.params.bits, self._word)


class Machine(DigitSerial):
    """The array with the multiplier interface. ``modulus``: None if it is loaded; ``binary``: operands and results
    below M, with a conditional subtraction.

    Stream k accepts the digits of M, least significant first. Meanwhile -M^-1 mod 2^17 is computed. Then the digits
    enter the array like those of an operand.
    """

    def __init__(self, params: Params, modulus: int | None, *, binary: bool = False) -> None:
        self._params, self._modulus, self._binary = params, modulus, binary
        frame = params.binary_frame if binary else params.frame
        super().__init__(frame, width=params.bits if binary else None, k=DIGIT if modulus is None else 0)
        self._array = params.array(modulus)
        if not binary:
            self.probes = [(step.name, self._register(step.does), step.end) for step in params.schedule.steps]

    def _register(self, operation: Operation) -> Value:
        """The register of an operation's result."""
        array = self._array
        if operation.kind is Kind.OTHERS:
            _, *group = operation.numbers
            _, first, last = self._params.held[group[0] if group else 0]
            return array.stages[last - first].t
        registers: dict[Any, Any] = {
            Kind.PRODUCT: array.head.product, Kind.LOW: array.head.low, Kind.QUOTIENT: array.head.quotient,
            Kind.COLUMN: array.stages[0].t, Kind.DIGIT: array.z, Kind.RESULT: self.o_r,
        }  # fmt: skip
        return registers[operation.kind]

    def connect(self, m: Module, control: Control) -> tuple[Value, Value]:
        m.submodules.array = array = self._array
        x = Signal(DIGIT, reset_less=True)
        m.d.comb += [array.x.eq(x), array.y.eq(control.y), array.first.eq(control.first), array.last.eq(control.last)]
        if isinstance(array, FoldedArray):
            m.d.comb += array.group.eq(control.group)
        permitted: Value = Const(1)
        if self._modulus is None:
            port, digit, entering, loaded = self._load(m, control)
            m.d.sync += [
                x.eq(Mux(entering, digit, control.x)),
                array.load.eq(entering & control.passes(self.frame.start - 1).any()),
            ]
            permitted = loaded & ~self.k_valid
        else:
            m.d.sync += x.eq(control.x)
            if self.frame.starts > 1:
                permitted = self.begun(m, control, self.frame.starts)
        if not self._binary:
            return array.z, permitted
        d = self._params.digits
        modulus = [(self._modulus or 0) >> DIGIT * j & (1 << DIGIT) - 1 for j in range(d)]
        m.submodules.subtract = subtract = ConditionalSubtract(DIGIT, d, modulus, rising=False)
        m.d.comb += [subtract.coming.eq(control.at(self._params.frame.arrival - LEAD)), subtract.digit.eq(array.z)]
        if self._modulus is None:
            m.d.comb += Cat(subtract.w_enable, subtract.w_digit, subtract.w_d).eq(port)
        return subtract.out, permitted

    def _load(self, m: Module, control: Control) -> tuple[Value, Value, Value, Value]:
        """The memory of M and its loading. Returns a write port (enable, place, digit) for other memories of M; the
        digit of M for the array; whether it enters the array now; whether a modulus is loaded."""
        digits = self._params.digits
        filling, pending, entering, loaded = Signal(), Signal(), Signal(), Signal()
        may = Signal()
        m.d.sync += may.eq(control.at(-1) & control.idle & ~pending & ~entering)
        m.d.comb += self.k_ready.eq(filling | may)
        take = self.k_valid & self.k_ready
        place = Signal(range(digits))
        frame = self.frame
        m.submodules.modulus = memory = DigitMemory(DIGIT, frame.places + (frame.groups > 1), 1)
        m.submodules.inverse = inverse = NegativeInverse()
        taken, lowest = Signal(), Signal()
        m.d.sync += [taken.eq(take), lowest.eq(take & ~filling)]
        word, written = later(m, self.k_m, "word"), later(m, place, "word_place")
        # the folded array reads zeros above the highest digit; writes from before a reset must not change them
        enable = taken if frame.groups == 1 else taken & (written < digits)
        port = Cat(enable, written, word)
        m.d.comb += [
            Cat(memory.w_enable, memory.w_digit[: len(written)], memory.w_d).eq(port),
            inverse.m.eq(word),
            inverse.start.eq(lowest),
            self._array.inverse.eq(inverse.inverse),
        ]
        with m.If(take):
            m.d.sync += [place.eq(place + 1), filling.eq(1), loaded.eq(0)]
            with m.If(place == digits - 1):
                m.d.sync += [place.eq(0), filling.eq(0), pending.eq(1)]
        chosen = Signal()  # one interval before the digits enter
        with m.If(control.at(frame.feeding - MEMORY)):
            m.d.sync += chosen.eq(pending)
        if frame.groups == 1:
            reading = free_running(range(digits), name="reading")
            m.d.sync += reading.eq(reading - 1)
            with m.If(control.at(frame.feeding - MEMORY)):
                m.d.sync += reading.eq(digits - 1)
            m.d.comb += memory.r_digit.eq(reading)
        else:
            m.d.comb += memory.r_digit.eq(control.x_place)
        with m.If(control.at(frame.feeding)):
            m.d.sync += entering.eq(chosen & pending)
        with m.If(control.at(0) & entering):
            m.d.sync += [pending.eq(0), loaded.eq(1)]
        return port, memory.q, entering, loaded


class Subtracted(Canonical):
    """A folded array with results below M. Stream k is that of the array; M is kept for the subtraction too."""

    def loaded(self, m: Module, empty: Value) -> tuple[Value, Value, Value]:
        native, load = self.native, self._load
        assert load
        kept = Signal(load.width * len(load.words), name="M", reset_less=True)
        m.d.comb += [
            native.k_m.eq(self.k_m), native.k_valid.eq(self.k_valid & empty), self.k_ready.eq(native.k_ready & empty),
        ]  # fmt: skip
        with m.If(self.k_valid & self.k_ready):
            m.d.sync += kept.eq(Cat(kept, self.k_m)[load.width :])
        return kept[: len(self.o_r)], Const(0, 1), ~self.k_valid


def least_digits(bits: int) -> int:
    """The fewest digits d with 2^(17 d) >= 4 * 2^bits, so that lambda >= 2."""
    return max(DIGITS_MIN, -(-(bits + 2) // DIGIT))


def folding(digits: int, columns: int) -> tuple[int, int, int]:
    """Groups of digits, columns of the folded array (0: not folded) and fewest streams. ``columns``: the setting."""
    groups = -(-digits // columns) if columns else 1
    folded = columns if groups > 1 else 0
    return groups, folded, max(folded + 1, -(-STREAMS_MIN // groups)) if folded else STREAMS_MIN


def stream_limits(p: int, settings: Mapping[str, Any]) -> tuple[int, int]:
    """Fewest and most streams for p and the settings ``digits`` and ``columns``."""
    digits = settings["digits"] or least_digits(p.bit_length())
    return folding(digits, settings["columns"])[2], STREAMS_MAX


def fit(p: int, *, loadable: bool, digits: int, streams: int, columns: int, lanes: int) -> MontgomeryMultiplication:
    """The design for p, with the fewest digits, streams and cycles for settings that are 0. Raises UnsupportedError for
    a p of more than BITS_MAX bits, and for streams that do not fit digits and interval."""
    settings = {"loadable": loadable, "digits": digits, "streams": streams, "columns": columns, "lanes": lanes}
    bits = p.bit_length()
    if bits > BITS_MAX:
        raise UnsupportedError(f"the modulus must have at most {BITS_MAX} bits, this one has {bits}")
    d = digits or least_digits(bits)
    groups, folded, fewest = folding(d, columns)
    found, interval = least_streams(d, fewest, groups, folded, lanes)
    params = Params(bits, d, streams or found, interval, folded, groups)
    try:
        params.frame  # noqa: B018 - checks its conditions
    except ValueError as error:
        raise UnsupportedError(f"streams = {streams}: {error}") from error
    return MontgomeryMultiplication(p, params, settings)


DESIGNS = (
    Design(
        name="montgomery-array", page="montgomery-array",
        title="High-radix Montgomery multiplication on an interleaved linear array, modulus loaded or built in",
        source=Source(
            "P. L. Montgomery; S. E. Eldridge, C. D. Walter",
            "Modular Multiplication Without Trial Division; Hardware Implementation of Montgomery's Algorithm",
            "Mathematics of Computation 44; IEEE Transactions on Computers 42", 1993,
            "digits, interleaving and schedule are ours",
        ),
        needs=f"any odd modulus of at most {BITS_MAX} bits",
        settings=(
            Setting("loadable", bool, True, "load the modulus at run time: any odd one of at most that width"),
            Setting(
                "digits", int, 0, "digits of 17 bits; 0: the fewest; more leave room for sums",
                least=0, most=DIGITS_MAX, depends="together at least 2 bits more than p",
                limits=lambda p, settings: (least_digits(p.bit_length()), DIGITS_MAX), smaller="lower",
            ),
            Setting(
                "streams", int, 0, "products interleaved; 0: the fewest that suit", least=0, most=STREAMS_MAX,
                depends="the next iteration of a product needs the sums of this one; more streams only add latency",
                limits=stream_limits,
            ),
            Setting(
                "columns", int, 0, "columns behind the head, fewer than digits: fewer DSP blocks, more cycles",
                least=0, most=DIGITS_MAX - 1, depends="fewer than digits",
                limits=lambda p, settings: (1, (settings["digits"] or least_digits(p.bit_length())) - 1),
            ),
            Setting(
                "lanes", int, 1, "arrays that take products in turn: more DSP blocks", least=1, most=LANES_MAX,
                smaller="lower",
            ),
        ),
        solve=fit,
    ),
)  # fmt: skip
