# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Orup's Montgomery multiplication with quotient pipelining: a quotient digit is used d iterations after it is known.

Source:  H. Orup: Simplifying Quotient Determination in High-Radix Modular Multiplication. ARITH, 1995.
Formula: Mt = (-M^-1 mod 2^(k(d+1))) M,  Mb = (Mt + 1) / 2^(k(d+1));  S = 0; for i = 0 ... n + d:
         q_i = S mod 2^k,  S <- floor(S / 2^k) + q_(i-d) Mb + b_i A;  V = 2^(k d) S + sum q_(n+1+j) 2^(k j), j < d
Range:   for 4 Mt < 2^(k n), A, B < 2 Mt give V < 2 Mt with V = A B 2^(-k n) (mod M). q_i is S mod 2^k, without a
         multiplication. S < 2^k (Mb + A).

S is stored in columns of k bits, each with a carry of three bits, so a carry moves one column in each cycle. The delay
d covers the registers of the DSP blocks: products of q_i are added d cycles later. After the last iteration S is only
shifted. The digits that leave are those of V; its lowest digits are the last quotients.

The forms with binary operands reduce V, below 2 Mt with Mt up to 2^(k(d+1)) M, in d + 2 cells of `rtl.excess` and a
subtraction: V 2^(-k(d+2)) (mod M) is below 2^(1-k) M + M. So they leave the factor 2^(-k(n+d+2)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value

from modmill.contract import Load, Timing
from modmill.design import Cost, Design, Setting, Source
from modmill.designs.digit_serial import LOADABLE, DigitSerial, SerialMachine, put
from modmill.interface import Multiplier
from modmill.numbers.montgomery import edges
from modmill.rtl.acceptance import Acceptance
from modmill.rtl.canonical import Canonical
from modmill.rtl.product import one_tile
from modmill.schedule import Operation, Operations, Schedule, Step

DIGIT_MAX = 17
"""Bits of an unsigned operand of one DSP block."""

CARRY = 3
"""Bits of a column above its k bits: the sum of five digits and a carry below 8 is below 8 * 2^k."""

TILE_REGISTERS = 3
"""Registers of a DSP block. A longer delay puts a register behind the sum of a column's products."""


@dataclass(frozen=True)
class Params:
    """Digits of ``k`` bits, delay ``d`` in iterations, modulus of ``bits`` bits."""

    k: int
    d: int
    bits: int

    @property
    def shift(self) -> int:
        """k (d + 1): Mt has at most this many bits more than M."""
        return self.k * (self.d + 1)

    @property
    def operand_bits(self) -> int:
        """Bits of an operand, which is below 2 Mt."""
        return self.bits + self.shift + 1

    @property
    def n(self) -> int:
        """Least n with 4 Mt < 2^(k n) for every modulus of ``bits`` bits."""
        return -(-(self.bits + self.shift + 2) // self.k)

    @property
    def digits(self) -> int:
        """Digits of A and of V."""
        return -(-self.operand_bits // self.k)

    @property
    def modulus_digits(self) -> int:
        """Digits of Mb, which is at most M."""
        return -(-self.bits // self.k)

    @property
    def cells(self) -> int:
        """Digits by which V is shortened in the forms with binary operands."""
        return self.d + 2

    @property
    def columns(self) -> int:
        """Columns of S."""
        return self.digits + 1

    @property
    def iterations(self) -> int:
        """Number of iterations, n + d + 1."""
        return self.n + self.d + 1


class Kind(Operations):
    """The operations of the loop and of the output."""

    DIGIT_A = "b{} A"  # products of b_i and the digits of A
    DIGIT_M = "q{} M"  # products of q_i and the digits of Mb
    GATHER = "P{}"  # sums of the products that the columns add in iteration i, if d > TILE_REGISTERS
    ITERATION = "S{}"  # the columns after i iterations
    SHIFT = "S/{}"  # the second columns after i digits have left them
    DIGIT = "v{}"


class Orup(DigitSerial):
    """Quotient pipelining for one modulus, or for all moduli of at most its width.

    ``mu``: Mt / M; ``scaled``: Mt; ``M_bar``: Mb.
    """

    def __init__(self, p: int, settings: dict[str, Any], bits: int = 0) -> None:
        super().__init__(p, settings, bits)
        self.params = Params(settings["digit"], settings["delay"], self.bits)
        two_power = 1 << self.params.shift
        self.mu = -pow(p, -1, two_power) % two_power
        self.scaled = self.mu * p
        self.M_bar = (self.scaled + 1) >> self.params.shift

    @property
    def R(self) -> int:
        return 1 << self.params.k * self.params.n

    @property
    def operand_bits(self) -> int:
        return self.params.operand_bits

    @property
    def bounds(self) -> tuple[Fraction, Fraction, Fraction]:
        operand = Fraction(2 * self.mu)
        return operand, operand**2, operand**2 * self.gain + self.mu

    @property
    def load(self) -> Load | None:
        return Load(self.bits, (self.M_bar,), 1) if self.loadable else None

    @cached_property
    def schedule(self) -> Schedule:
        q = self.params
        delay = min(q.d, TILE_REGISTERS)
        of_a = [put(Kind.DIGIT_A(i), "tiles of A", 1 + i, cycles=delay, busy=1) for i in range(q.n)]
        of_m: list[Step] = []  # q_0 is 0
        gathered: list[Step] = []
        s: list[Step] = []
        for i in range(q.iterations):
            at = 1 + q.d + i  # b_0 A is computed before
            if 1 <= i <= q.n:
                of_m.append(put(Kind.DIGIT_M(i), "tiles of M", at, s[-1:], cycles=delay, busy=1))
            products = [*of_a[i : i + 1], *(of_m[i - q.d - 1 : i - q.d] if i > q.d else ())]
            if q.d > delay:
                products = [put(Kind.GATHER(i), "sums of products", at - 1, products)]
                gathered += products
            s.append(put(Kind.ITERATION(i + 1), "columns", at, (*s[-1:], *products)))
        left = s[q.n :]  # their lowest digits are the digits of V
        for j in range(q.d + 1, q.digits):
            left.append(put(Kind.SHIFT(j - q.d), "second columns", left[-1].end, left[-1:]))
        v = [put(Kind.DIGIT(j), "digits", one.end, (one,)) for j, one in enumerate(left)]
        made = [*of_a, *of_m, *gathered, *s, *left[q.d + 1 :], *v, *self.subtraction(v)]
        return self.planned(sorted(made, key=lambda step: (step.end, step.start)), q.iterations)

    @property
    def cost(self) -> Cost:
        """A DSP block for each digit of A and of Mb, and no table."""
        q = self.params
        return Cost(q.digits + q.modulus_digits, 0, q.n * (q.digits + q.modulus_digits))

    def evaluate(self, op: Operation, read: Mapping[Operation, Any], a: int, b: int) -> Any:
        q = self.params
        mask = (1 << q.k) - 1
        match op.kind:
            case Kind.DIGIT_A:
                return [(b >> q.k * op.numbers[0] & mask) * (a >> q.k * j & mask) for j in range(q.digits)]
            case Kind.DIGIT_M:
                ((low, *_),) = read.values()
                return [(low & mask) * (self.M_bar >> q.k * j & mask) for j in range(q.modulus_digits)]
            case Kind.GATHER | Kind.ITERATION | Kind.SHIFT:
                columns = [0] * (q.columns + 1)
                for one, values in read.items():
                    lower = one.kind in (Kind.ITERATION, Kind.SHIFT)  # shifted; columns[-1] takes the digit that leaves
                    for j, value in enumerate(values):
                        high = 0 if one.kind is Kind.GATHER else value >> q.k
                        columns[j - lower] += value - (high << q.k)
                        columns[j - lower + 1] += high
                return columns[:-1]
            case Kind.DIGIT:
                return [s[0] & mask for s in read.values()]
            case _:
                return self.ended(op, read, q.k)

    def component(self, *, scaled: bool = False) -> Multiplier:
        return Machine(self)

    @property
    def width(self) -> int:
        return self.bits

    @property
    def binary_factor(self) -> int:
        return pow(self.R << self.params.k * self.params.cells, -1, self.p)

    @property
    def binary_load(self) -> Load | None:
        k = self.params.k
        words = (self.M_bar, self.p, -pow(self.p, -1, 1 << k) % (1 << k))
        return Load(max(self.bits, k), words, len(words)) if self.loadable else None

    def binary_component(self) -> Multiplier:
        return Reduced(self)

    def binary_timing(self) -> Timing:
        return Canonical.timing_of(self.schedule.timing, self.bits, self.params.k, self.params.cells)

    def corners(self) -> list[tuple[int, int]]:
        return edges(self.scaled, self.R, 2 * self.scaled)

    def facts(self) -> list[tuple[str, str]]:
        q = self.params
        return [
            ("digits", f"k = {q.k} bits, n = {q.n}, delay d = {q.d}"),
            ("Mt", f"mu M of {self.scaled.bit_length()} bits, 4 Mt < 2^{q.k * q.n} = R"),
            ("Mb", f"(Mt + 1) / 2^{q.shift}, {q.modulus_digits} digits"),
            ("iterations", f"n + d + 1 = {q.iterations}"),
            ("columns", f"{q.columns} of {q.k} + {CARRY} bits"),
            ("modulus", "loaded, one word: Mb" if self.loadable else "built in"),
        ]


class Control:
    """Counters of the cycle since acceptance and of the iteration.

    ``at``: iteration, n + d + 1 while idle; ``go``: iteration 0 starts in the next cycle; ``quotient_counts``: the
    lowest digit of S is a quotient; ``ending``: last iteration.
    """

    def __init__(self, m: Module, front: Acceptance, q: Params, interval: int) -> None:
        cycle, at = Signal(range(interval + 1)), Signal(range(q.iterations + 1), init=q.iterations)
        front.connect((cycle == 0) | (cycle == interval))
        with m.If(front.accept):
            m.d.sync += cycle.eq(1)
        with m.Elif(cycle == interval):
            m.d.sync += cycle.eq(0)
        with m.Elif(cycle != 0):
            m.d.sync += cycle.eq(cycle + 1)
        go: Value = front.accept
        for stage in range(q.d):
            later = Signal(name=f"go{stage}")
            m.d.sync += later.eq(go)
            go = later
        quotient_counts, ending = Signal(), Signal()
        m.d.comb += ending.eq(at == q.iterations - 1)
        with m.If(go):
            m.d.sync += [at.eq(0), quotient_counts.eq(1)]
        with m.Elif(at != q.iterations):
            m.d.sync += at.eq(at + 1)
            with m.If(at == q.n):
                m.d.sync += quotient_counts.eq(0)
        self.at, self.go, self.quotient_counts, self.ending = at, go, quotient_counts, ending


class Machine(SerialMachine):
    """A tile for each digit of A and of Mb, the columns of S behind them, and a second row of columns for the output.

    Cost: a DSP block for each tile, about 4 adders of k + 3 bits for each column.
    """

    _fitted: Orup

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        fitted, q = self._fitted, self._fitted.params
        front = self.acceptance(m, fitted.M_bar, q.bits)
        control = Control(m, front, q, fitted.schedule.interval)
        a, b = (Signal(q.operand_bits, name=name, reset_less=True) for name in "AB")
        with m.If(front.accept):
            m.d.sync += [a.eq(self.i_a), b.eq(self.i_b)]
        with m.Else():
            m.d.sync += b.eq(b >> q.k)
        s = [Signal(q.k + CARRY, name=f"S{j}", reset_less=True) for j in range(q.columns)]
        late = Signal(q.k, name="q")
        m.d.comb += late.eq(s[0][: q.k] & control.quotient_counts.replicate(q.k))
        products: list[list[Value]] = [[] for _ in s]
        tiles_a = self._tiles(m, "A", b[: q.k], a, q.digits, products)
        tiles_m = self._tiles(m, "M", late, front.modulus, q.modulus_digits, products)
        sums: list[Signal] = []
        gathered: list[Value] = []
        for j, (column, added) in enumerate(zip(s, products, strict=True)):
            if q.d > TILE_REGISTERS:
                gathered.append(Signal(q.k + 2, name=f"products{j}", reset_less=True))
                m.d.sync += gathered[j].eq(sum(added[1:], added[0]))
                added = gathered[j:]
            terms = [column[q.k :], *(one[: q.k] for one in s[j + 1 : j + 2]), *added]
            sums.append(Signal(q.k + CARRY, name=f"sum{j}"))
            m.d.comb += sums[j].eq(sum(terms[1:], terms[0]))
            m.d.sync += column.eq(Mux(control.go, 0, sums[j]))
        drain, v, valid, last = self._output(m, control, s[0], sums)
        where: dict[Any, Any] = {Kind.DIGIT_A: tiles_a, Kind.DIGIT_M: tiles_m, Kind.GATHER: gathered}
        where |= {Kind.ITERATION: s, Kind.ITERATION(q.iterations): drain, Kind.SHIFT: drain, Kind.DIGIT: [v]}
        self.finish(m, v, Const(0, q.k), valid, last, q.digits, where)
        return m

    def _tiles(
        self, m: Module, name: str, digit: Value, other: Value, count: int, products: list[list[Value]]
    ) -> list[Value]:
        """Products of ``digit`` and each of the ``count`` digits of ``other``; their halves are appended to
        ``products``, which has a list for each column."""
        k, d = self._fitted.params.k, self._fitted.params.d
        tiles = []
        for j in range(count):
            other_digit = other[k * j : k * (j + 1)]
            product = one_tile(m, digit, other_digit, min(d, TILE_REGISTERS), f"tile_{name}{j}")
            tiles.append(product)
            products[j].append(product[:k])
            if len(product) > k:
                products[j + 1].append(product[k:])
        return tiles

    def _output(
        self, m: Module, control: Control, lowest: Value, sums: Sequence[Value]
    ) -> tuple[list[Signal], Signal, Signal, Signal]:
        """Digits of V: the last quotients, then the columns, which are copied to a second row and shifted out.

        Returns that row, the digit, and whether the digit is valid and the last one.
        """
        q, at = self._fitted.params, control.at
        k = q.k
        left = Signal(range(q.digits + 1))
        drain = [Signal(k + CARRY, name=f"drain{j}", reset_less=True) for j in range(q.columns)]
        with m.If(control.ending):
            m.d.sync += [left.eq(q.digits - q.d), *(one.eq(total) for one, total in zip(drain, sums, strict=True))]
        with m.Else():
            for j, one in enumerate(drain):
                above: Value = drain[j + 1][:k] if j + 1 < q.columns else Const(0, 1)
                m.d.sync += one.eq(one[k:] + above)
            with m.If(left != 0):
                m.d.sync += left.eq(left - 1)
        v, valid, last = Signal(k, name="v", reset_less=True), Signal(name="v_valid"), Signal(name="v_last")
        m.d.sync += [
            v.eq(Mux(left != 0, drain[0][:k], lowest[:k])),
            valid.eq((left != 0) | ((at > q.n) & (at != q.iterations))),
            last.eq(left == 1),
        ]
        return drain, v, valid, last


class Reduced(Canonical):
    """The machine with operands and results below M. If the modulus is loaded, stream k has three words: Mb, M, and
    -M^-1 mod 2^k."""

    def __init__(self, fitted: Orup) -> None:
        q = fitted.params
        self._k = q.k
        super().__init__(
            Machine(fitted), fitted.p, fitted.bits, fitted.binary_timing(), word=q.k, cells=q.cells,
            load=fitted.binary_load,
        )  # fmt: skip

    def loaded(self, m: Module, empty: Value) -> tuple[Value, Value, Value]:
        modulus = Signal(len(self.o_r), name="M", reset_less=True)
        inverse = Signal(self._k, name="inverse", reset_less=True)
        place, complete = Signal(range(3), name="word"), Signal(name="complete")
        m.d.comb += [
            self.native.k_m.eq(self.k_m), self.native.k_valid.eq(self.k_valid & empty & (place == 0)),
            self.k_ready.eq(empty & (self.native.k_ready | (place != 0))),
        ]  # fmt: skip
        with m.If(self.k_valid & self.k_ready):
            m.d.sync += [place.eq(Mux(place == 2, 0, place + 1)), complete.eq(place == 2), inverse.eq(self.k_m)]
            with m.If(place == 1):
                m.d.sync += modulus.eq(self.k_m)
        return modulus, inverse, complete & ~self.k_valid


DESIGNS = (
    Design(
        name="orup", page="orup", title="high-radix Montgomery multiplication with quotient pipelining",
        source=Source(
            "H. Orup", "Simplifying Quotient Determination in High-Radix Modular Multiplication", "ARITH", 1995,
            "the algorithm with quotient pipelining; machine and schedule are ours",
        ),
        needs="any odd modulus",
        settings=(
            Setting("digit", int, DIGIT_MAX, "k, bits of a digit; a DSP block multiplies two digits",
                    least=2, most=DIGIT_MAX, smaller="raise"),
            Setting("delay", int, TILE_REGISTERS, "d, iterations from a quotient digit to its use", (0, 1, 2, 3, 4)),
            LOADABLE,
        ),
        solve=lambda p, **settings: Orup(p, settings),
    ),
)  # fmt: skip
