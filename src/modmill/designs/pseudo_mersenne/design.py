# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Multiplication modulo p = 2^k - c on a pipelined linear array: the full product, then folds without multipliers.

Source:  R. E. Crandall: Method and Apparatus for Public Key Exchange in a Cryptographic System. US patent 5159632,
         1992, for the reduction. Array, digits, interleaving and the serial folds are ours.
Formula: v = x y;  then v <- v mod 2^n + floor(v / 2^n) C, n = 17 d, C = 2^(n - k) c, until v < 2^(n + 1)
Range:   x, y < 2^(n + 1) give v < 2^(n + 1) after the last fold, v = x y (mod p); the bound after each fold is exact

d columns of one DSP block each accept a product every d cycles. The product with C needs no multiplier: its signed
digits are shifts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import gcd
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Value

from modmill.contract import Binary, Timing, UnsupportedError
from modmill.design import Cost, Design, DesignInstance, Setting, Source
from modmill.designs.pseudo_mersenne.product_array import DIGIT, HIGHEST, LOW, STREAMS_MIN, ProductArray
from modmill.designs.pseudo_mersenne.shape import Kind, Params
from modmill.interface import Multiplier
from modmill.numbers.folding import fold
from modmill.numbers.rns.residues import signed_digits
from modmill.rtl.conditional_subtract import LEAD, ConditionalSubtract
from modmill.rtl.delay import DelayLines, later
from modmill.rtl.digit_serial import DIGITS_MIN, Control, DigitSerial, least_streams
from modmill.rtl.digits import MEMORY, DigitMemory
from modmill.rtl.free_running import free_running
from modmill.schedule import Operation, Schedule

TERMS_MAX = 16
"""Most signed digits of C."""
STREAMS_MAX = 271
"""Most products interleaved, as in montgomery_array."""


class PseudoMersenne(DesignInstance):
    """The array and its folds for one modulus."""

    factor = 1
    one_block = True

    def __init__(self, p: int, params: Params, settings: dict[str, Any]) -> None:
        self.p, self.params, self.settings = p, params, settings

    @property
    def schedule(self) -> Schedule:
        return self.params.schedule

    @property
    def starts(self) -> int:
        return self.params.starts

    @property
    def representation(self) -> Binary:
        return Binary(self.params.operand_bits)

    @property
    def bounds(self) -> tuple[Fraction, Fraction, Fraction]:
        operand = Fraction(self.params.limit, self.p)
        return operand, operand**2, Fraction(self.params.bounds[-1], self.p)

    @property
    def cost(self) -> Cost:
        """One DSP block for each digit; constants are shifts."""
        d = self.params.digits
        return Cost(dsp=d, memory_bits=0, multiplications=d * d)

    def trace(self, a: int, b: int) -> Iterator[tuple[str, Any]]:
        p, mask = self.params, (1 << DIGIT) - 1

        def digits(v: int) -> list[int]:
            """Digits of ``v``, the lowest first; the last has all remaining bits."""
            return [v >> DIGIT * j & (mask if j < p.digits - 1 else -1) for j in range(p.digits)]

        yield from self.multiplied(digits(a), digits(b))
        name, v = self.folded(a, b)
        high, low = v >> p.n, v & (1 << p.n) - 1
        yield from ((f"{name}{j}", list(pair)) for j, pair in enumerate(zip(digits(low), digits(high), strict=True)))
        for k in range(p.included + 1, p.folds + 1):
            v = fold(v, p.cut, p.C)
            high, low = v >> p.n, v & (1 << p.n) - 1
            over = digits(high)
            for j, digit in enumerate(digits(v if k == p.folds else low)):
                yield f"v{k}.{j}", [digit] if k == p.folds else [digit, over[j]]
        yield "v", v

    def folded(self, a: int, b: int) -> tuple[str, int]:
        """The value that enters the folds, and the name of its digits."""
        return "x y", a * b

    def multiplied(self, x: Sequence[int], y: Sequence[int]) -> Iterator[tuple[str, Any]]:
        """The intermediates of the product of two numbers with these digits."""
        mask, total = (1 << DIGIT) - 1, 0
        a = sum(digit << DIGIT * j for j, digit in enumerate(x))
        for i, digit in enumerate(y):
            yield f"xy{i}", x[0] * digit
            lowest = (x[0] * digit & mask) + (total & mask)
            yield f"T{i}.0", lowest
            yield (
                f"T{i}.1",
                (x[1] * digit & mask) + (x[0] * digit >> DIGIT) + (total >> DIGIT & mask) + (lowest >> DIGIT),
            )
            total = (total + a * digit) >> DIGIT
            yield f"S{i}", total >> DIGIT * (len(x) - 1)
        for j in range(len(x)):
            yield f"high{j}", total >> DIGIT * j & (mask if j < len(x) - 1 else -1)

    def component(self, *, scaled: bool = False) -> Multiplier:
        return self.machine(self.params)

    def facts(self) -> list[tuple[str, str]]:
        p = self.params
        signed = " ".join(f"{'+-'[sign < 0]} 2^{k}" for k, sign in signed_digits(p.C)).removeprefix("+ ")
        return [
            ("modulus", f"2^{p.k} - c, c = {p.c if p.c.bit_length() < 80 else hex(p.c)}"),
            ("digits", f"d = {p.digits} of {DIGIT} bits, the highest {HIGHEST}; folds at 2^{p.cut}"),
            ("C", signed),
            ("after each fold", ", ".join(f"{(b - 1).bit_length()} bits" for b in p.bounds[1:])),
            ("operands", f"below 2^{p.cut + 1}, about {float(self.bounds[0]):.6g} p"),
            ("interleaved", f"{p.streams} streams; a product every {p.interval} cycles"),
        ]

    def corners(self) -> list[tuple[int, int]]:
        """Operands at the ends of the range, products near multiples of 2^n, folds with carries through all digits."""
        params, p = self.params, self.p
        top, edge, half = params.limit - 1, 1 << params.cut, params.cut // 2
        special = [0, 1, 2, p - 1, p, p + 1, 2 * p, edge - 1, edge, edge + 1, top, top - 1, top >> 1, params.C]
        special += [int("10" * half, 2), (1 << half) - 1, 1 << half]
        special = [x for x in dict.fromkeys(special) if x <= top]
        out = [(x, y) for x in special for y in special]
        modulus = edge - params.C
        for target in (edge - 1, edge, modulus, top, modulus - 1):
            # if x y mod (2^n - C) is small, v after the folds differs from it by at most a few C
            for y in (3, top - 6, edge + 2):
                if gcd(y, modulus) == 1:
                    out.append((target * pow(y, -1, modulus) % modulus, y))
        return out

    def binary_timing(self) -> Timing:
        return self.params.binary_frame.timing

    def binary_component(self) -> Multiplier:
        return self.machine(self.params, binary=True)

    @property
    def machine(self) -> type[Machine]:
        """The class of the machine."""
        return Machine


class Machine(DigitSerial):
    """The array, a memory for each half of the products, and the folds, with the multiplier interface.

    ``binary``: operands and results are below p; a fold at 2^k and a conditional subtraction follow.
    """

    def __init__(self, params: Params, *, binary: bool = False, k: int = 0) -> None:
        """``k``: width of the words that load the modulus, 0 if it is built in."""
        self._params, self._binary = params, binary
        super().__init__(params.binary_frame if binary else params.frame, width=params.k if binary else None, k=k)
        self._folds = list(params.placed_folds())

    def connect(self, m: Module, control: Control) -> tuple[Value, Value]:
        p = self._params
        low, high = self.product(m, control)

        # ---- folds
        low_digit, high_digit = low, high
        for k, at, unit in self._folds:
            m.submodules[f"fold{k}"] = unit
            low_digit, high_digit = self.entering(m, control, k, at, low_digit, high_digit)
            m.d.comb += [unit.first.eq(control.at(at)), unit.low.eq(low_digit), unit.high.eq(high_digit)]
            low_digit = unit.o_low
            if not unit.final:
                high_digit = unit.o_high
        if self._binary:
            low_digit = self._reduced(m, control, low_digit)
        else:
            self.probes = [(step.name, self._register(step.does, [low, high]), step.end) for step in p.schedule.steps]
        return low_digit, self.begun(m, control, p.starts)

    def entering(self, m: Module, control: Control, k: int, at: int, low: Value, high: Value) -> tuple[Value, Value]:
        """The digits that enter the k-th fold from cycle ``at`` on, from those that left the one before `Params.gap`
        cycles earlier."""
        return low, high

    def product(self, m: Module, control: Control) -> tuple[Value, Value]:
        """The lower and the higher digits of x y, from cycle ``folding`` on."""
        p, frame = self._params, self.frame
        m.submodules.array = array = self._array = ProductArray(p.digits, p.streams)
        m.d.comb += [
            array.x.eq(later(m, control.x, "x")),
            array.y.eq(control.y),
            array.first.eq(control.first),
            array.last.eq(control.last),
        ]

        # ---- both halves of the product through memories, because the folds read them in another order
        m.submodules.low = low = DigitMemory(DIGIT, p.digits, frame.numbers)
        m.submodules.high = high = DigitMemory(HIGHEST + 1, p.digits, frame.numbers)
        lines = DelayLines(m, LOW + MEMORY, name="low")
        turn = lines.line(control.turn, LOW + MEMORY, name="low_turn")
        width = len(control.number)
        m.d.comb += [
            low.w_number.eq(turn[:width]),
            low.w_digit.eq(turn[width:]),
            low.w_d.eq(array.low),
            low.w_enable.eq(turn[width:] < p.digits),
        ]
        place = free_running(range(p.interval), name="high_place")
        number = free_running(width, name="high_number")
        m.d.sync += place.eq(place - 1)
        with m.If(control.at(p.product - 1)):
            m.d.sync += [place.eq(p.digits - 1), number.eq(self._number(control, p.product - 1))]
        m.d.comb += [
            high.w_number.eq(number),
            high.w_digit.eq(place),
            high.w_d.eq(array.high),
            high.w_enable.eq(place < p.digits),
        ]
        taken = p.folding - MEMORY
        digit = free_running(range(p.interval), name="digit")
        whole = free_running(width, name="whole_number")
        m.d.sync += digit.eq(digit + 1)
        with m.If(control.at(taken - 1)):
            m.d.sync += [digit.eq(0), whole.eq(self._number(control, taken - 1))]
        for memory in (low, high):
            m.d.comb += [memory.r_number.eq(whole), memory.r_digit.eq(digit)]
        # once every stream has begun a product since the reset, none overwrites another's low digits
        return low.q, high.q

    def _register(self, operation: Operation, halves: list[Value]) -> Any:
        """The register of an operation's result. ``halves``: digits of the product."""
        match operation:
            case Operation(Kind.READ):
                return halves
            case Operation(Kind.FOLD, (k, _)) if k <= self._params.included:
                return halves
            case Operation(Kind.FOLD, (k, j)):
                _, _, unit = self._folds[k - 1 - self._params.included]
                if unit.final:
                    return [unit.o_low if j == self._params.digits - 1 else unit.o_low[: self._params.bits]]
                return [unit.o_low, unit.o_high]
            case Operation(Kind.RESULT):
                return self.o_r
        return self.product_register(operation)

    def product_register(self, operation: Operation) -> Any:
        """The register of the result of one of `Params.product_steps` before the digits."""
        array = self._array
        if operation.kind is Kind.COLUMN:
            column = array.columns[operation.numbers[1]]
            return Cat(column.t, column.o_k)
        registers: dict[Any, Any] = {
            Kind.PRODUCT: array.columns[0].product, Kind.TOP: array.top, Kind.HIGH: array.high,
        }  # fmt: skip
        return registers[operation.kind]

    def _reduced(self, m: Module, control: Control, digit: Value) -> Value:
        """v mod p. The digits wait for the highest ones, which have the bits from 2^k on."""
        p, bits = self._params, self._params.bits
        start = p.folded + p.digits
        lines = DelayLines(m, p.digits, name="top")
        waited = lines.line(digit, p.digits, name="waited")
        last = control.at(start + p.digits - 1)
        if p.highest > 0:
            beyond: Value = later(m, digit[p.highest :], "beyond")
            low: Value = Mux(last, waited[: p.highest], waited[:bits])
        else:  # they begin in the digit before the last
            own = p.highest + bits
            before = later(m, later(m, digit[own:bits], "before"), "before_last")
            beyond = Cat(before, later(m, digit, "beyond"))
            low = Mux(last, 0, Mux(control.at(start + p.digits - 2), waited[:own], waited[:bits]))
        m.submodules.top_fold = fold = p.top_fold()
        m.d.comb += [
            fold.first.eq(control.at(start)), fold.low.eq(low), fold.high.eq(Mux(fold.first, beyond, 0)),
        ]  # fmt: skip
        last_mask = (1 << bits + p.top) - 1
        modulus = [
            ((1 << p.k) - p.c) >> bits * j & (last_mask if j == p.digits - 1 else last_mask >> p.top)
            for j in range(p.digits)
        ]
        m.submodules.subtract = subtract = ConditionalSubtract(bits + 1 + p.top, p.digits, modulus, rising=True)
        m.d.comb += [
            subtract.coming.eq(control.at(start + fold.latency - LEAD)),
            subtract.digit.eq(Mux(control.at(start + fold.latency + p.digits - 1), fold.o_low, fold.o_low[:bits])),
        ]
        return subtract.out

    def _number(self, control: Control, cycle: int) -> Value:
        """Number of the product that was accepted ``cycle`` cycles ago."""
        return control.number - (cycle - (2 - self._params.digits)) // self._params.interval


def fit(p: int, *, streams: int) -> PseudoMersenne:
    """The design for p, with the fewest digits that hold p. ``streams``: products interleaved, 0: the fewest. Raises
    UnsupportedError for a p that is too short, or whose c is too wide or has too many signed digits."""
    k = p.bit_length()
    c = (1 << k) - p
    d = -(-k // DIGIT)
    if d < DIGITS_MIN:
        raise UnsupportedError(f"the modulus must have at least {DIGIT * (DIGITS_MIN - 1) + 1} bits, this one has {k}")
    found, interval = least_streams(d, STREAMS_MIN)
    params = Params(k, c, d, streams or found, interval)
    count = len(signed_digits(params.C))
    if count > TERMS_MAX:
        raise UnsupportedError(f"c = 2^{k} - p has {count} signed digits, at most {TERMS_MAX} are accepted")
    try:
        params.frame  # noqa: B018 - checks its conditions
    except ValueError as error:
        raise UnsupportedError(str(error)) from error
    if params.top_bound > 2 * p:
        raise UnsupportedError(
            f"c = 2^{k} - p has {c.bit_length()} bits: a fold at 2^{k} leaves more than 2 p; c must be narrower"
        )
    return PseudoMersenne(p, params, {"streams": streams})


DESIGNS = (
    Design(
        name="pseudo-mersenne", page="pseudo-mersenne",
        title="Multiplication modulo 2^k - c on an interleaved linear array, folds by shifts",
        source=Source(
            "R. E. Crandall", "Method and Apparatus for Public Key Exchange in a Cryptographic System",
            "US patent 5159632", 1992, "the reduction; array, digits, interleaving and folds are ours",
        ),
        needs="p = 2^k - c with c of less than about half of p's bits and few signed digits",
        settings=(
            Setting(
                "streams", int, 0, "products interleaved; 0: the fewest that suit", least=0, most=STREAMS_MAX,
                depends="the next iteration of a product needs the sums of this one; more streams only add latency",
                limits=lambda p, settings: (STREAMS_MIN, STREAMS_MAX),
            ),
        ),
        solve=fit,
    ),
)  # fmt: skip
