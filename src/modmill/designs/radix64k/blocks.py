# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Blocks for redundant radix-2^r numbers: digit sums without carries, tables of multiples of M, -M^-1, conversion.

Source: Sections 2 and 5 of the paper; the formulas are in numbers.redundant_digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from modmill.numbers.redundant_digits import Montgomery
from modmill.rtl.memory import DEPTHS, BlockRam

COLUMN = 18
"""Bits of a column of a table: the word of one block RAM with two ports."""


def columns(bits: int) -> int:
    """Number of block RAMs for words of ``bits`` bits."""
    return -(-bits // COLUMN)


ZERO = Const(0, 1)
"""A constant zero, which `total` leaves out."""


def total(terms: Sequence[Value], *, m: Module | None = None, chain: int = 0) -> Value:
    """The sum of the terms, without constant zeros (an expression). ``chain``: most bits of a carry chain, whose
    adders are in ``m``; 0 for no limit."""
    left = [t for t in terms if not (isinstance(t, Const) and t.value == 0)]
    if not left:
        return ZERO
    if not chain or m is None:
        return sum(left[1:], left[0])
    found = left[0]
    for term in left[1:]:
        found = cut_sum(m, found, term, chain)
    return found


def cut_sum(m: Module, a: Value, b: Value, chain: int, carry: Value = ZERO) -> Value:
    """a + b + carry, one bit wider than the wider term, in carry chains of at most ``chain`` bits (carry-select adder).

    Each piece above the first is added twice, without and with a carry in, and the carry out of the piece below selects
    one of the sums; so a path has one piece and a LUT for each piece above it. Cost: about three LUTs a bit, not one.
    """
    width = max(len(a), len(b))
    a, b = (Cat(x, Const(0, width))[:width] for x in (a, b))
    pieces: list[Value] = []
    for low in range(0, width, chain):
        high = min(low + chain, width)
        sums = []
        for entering in [carry] if low == 0 else [Const(0, 1), Const(1, 1)]:
            piece = Signal(high - low + 2, name="piece")
            m.d.comb += piece.eq(Cat(Const(1, 1), a[low:high]) + Cat(entering, b[low:high]))
            sums.append(piece[1:])
        chosen = sums[0] if low == 0 else Mux(carry, sums[1], sums[0])
        pieces.append(chosen[: high - low])
        carry = Signal(name="carry_out")
        m.d.comb += carry.eq(chosen[high - low])
    return Cat(*pieces, carry)


def factor_of_last(c: Value, modulus: Value, rest: int) -> Value:
    """The factor q of M with c + q M = 0 (mod 2^rest), for ``rest`` up to 2: q = -c M^-1, and M^-1 = M (mod 4)."""
    return Cat(c[0], c[1] ^ (c[0] & ~modulus[1]))[:rest]


@dataclass(frozen=True)
class DigitSums:
    """The combinational adders of Lemma 3 and of the reduction, one for each digit; no carry propagates between digits.

    ``m``: the module that gets the adders; ``r``: bits of a principal part. Digits are as wide as their largest values.
    """

    m: Module
    r: int

    def low(self, x: Value) -> Value:
        """The principal bits of a digit."""
        return x[: self.r]

    def high(self, x: Value) -> Value:
        """The redundant bits of a digit."""
        return x[self.r :] if len(x) > self.r else ZERO

    def product_sum(
        self, products: Sequence[Value], c: Sequence[Value], limits: Sequence[int], name: str
    ) -> list[Signal]:
        """T = X y + C from the digit products X_i y and the d + 1 digits of C; ``limits``: largest digits of T."""
        d = len(products)
        padded = [ZERO, ZERO, *products, ZERO, ZERO]
        out = []
        for i in range(d + 2):
            terms = [
                padded[i][2 * self.r :] if len(padded[i]) > 2 * self.r else ZERO,
                padded[i + 1][self.r : 2 * self.r] if len(padded[i + 1]) > self.r else ZERO,
                self.low(padded[i + 2]),
                self.high(c[i - 1]) if i else ZERO,
                self.low(c[i]) if i <= d else ZERO,
            ]
            out.append(self._digit(terms, limits[i], f"{name}{i}"))
        return out

    def reduce(
        self, t: Sequence[Value], u: Sequence[Value], v: Sequence[Value], carry: Value, limits: Sequence[int], name: str
    ) -> list[Signal]:
        """C = (T + U + V) / 2^r; ``carry``: carry out of digits 0; ``limits``: largest digits of C."""
        out = []
        for i in range(1, len(t)):
            last = i == len(t) - 1
            terms = [
                t[i] if last else self.low(t[i]),
                self.high(t[i - 1]),
                u[i] if i < len(u) else ZERO,
                v[i] if i < len(v) else ZERO,
                carry if i == 1 else ZERO,
            ]
            out.append(self._digit(terms, limits[i - 1], f"{name}{i - 1}"))
        return out

    def last(self, c: Sequence[Value], modulus: Value, rest: int, limits: Sequence[int]) -> list[Signal]:
        """(C + q M) / 2^rest: M is added for bit 0 of q and 2 M for bit 1, and each digit gives its lowest ``rest``
        bits to the next lower one; ``limits``: largest digits of the result."""
        factor = factor_of_last(c[0], modulus, rest)
        summed = []
        for i, digit in enumerate(c):
            parts = [digit]
            for bit in range(rest):
                multiple = Cat(Const(0, bit), modulus)[self.r * i : self.r * (i + 1)]
                parts.append(Mux(factor[bit], multiple, 0) if len(multiple) else ZERO)
            summed.append(Signal(max(self.r + 3, len(digit) + 1), name=f"last_sum{i}"))
            self.m.d.comb += summed[i].eq(total(parts))
        out = []
        for i, limit in enumerate(limits):
            above = summed[i + 1][:rest] if i + 1 < len(summed) else ZERO
            shifted = Cat(Const(0, self.r - rest), above) if rest else ZERO
            out.append(self._digit([summed[i][rest:], shifted], limit, f"last{i}"))
        return out

    def _digit(self, terms: Sequence[Value], limit: int, name: str) -> Signal:
        digit = Signal(max(1, limit.bit_length()), name=name)
        self.m.d.comb += digit.eq(total(terms))
        return digit


def joined(digits: Sequence[Value], r: int, d: int) -> Value:
    """A number of d + 1 digits as ``d`` digits of r + 2 bits: digit d becomes redundant bits of digit d - 1. The number
    must fit ``d`` digits."""
    wide = [Cat(x, Const(0, r + 2))[: r + 2] for x in digits]
    top = (wide[d - 1][r:] + wide[d][:2])[:2]
    return Cat(*wide[: d - 1], wide[d - 1][:r], top)


class Inverse(wiring.Component):
    """x = -m^-1 mod 2^r for an odd ``m`` of r bits, one bit in each cycle from ``start`` on; ``m`` must be stable.

    t <- (t + x_i m) / 2 with x_i = t mod 2, from t = 1: after r steps 1 + x m = 0 (mod 2^r).
    ``done`` is high in the cycle of the last bit, r after start; ``x`` is valid from the next cycle on.
    Cost: an adder of r bits, 2 r flip-flops.
    """

    def __init__(self, r: int) -> None:
        self.r = r
        super().__init__({"start": In(1), "m": In(r), "x": Out(r), "done": Out(1)})

    @property
    def latency(self) -> int:
        """Cycles from ``start`` to ``x``."""
        return self.r + 1

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        t, x = Signal(self.r + 1, reset_less=True), Signal(self.r, reset_less=True)
        left = Signal(range(self.r + 1))
        with m.If(self.start):
            m.d.sync += [t.eq(1), left.eq(self.r)]
        with m.Elif(left != 0):
            m.d.sync += [t.eq((t + Mux(t[0], self.m, 0))[1:]), x.eq(Cat(x[1:], t[0])), left.eq(left - 1)]
        m.d.comb += [self.x.eq(x), self.done.eq(left == 1)]
        return m


class Multiples(wiring.Component):
    """A table of multiples of M in block RAM: word z is (k M) >> bits for the k < 2^bits with z + k M = 0 (mod 2^bits).

    Ports A and B each read a word in every cycle, one cycle after its address. ``g_q``, with ``with_g``, is the lower
    ``bits`` bits of the word at ``g_address``, in the same cycle.
    With ``fixed`` the contents are constants. Otherwise they are computed from ``m``, which must be stable. After a
    strobe at ``start``, word -k M mod 2^bits is written for k = 0, 1, ..., and M is added in each cycle. Each column of
    18 bits works one cycle after the column below it. So carries pass one register, and wires only reach the next
    column. ``done`` is high in the cycle in which the last word is written, ``cycles`` after start. The table must not
    be read while it is filled. With several ``readers``, the address ports have the addresses of all readers, the first
    in the lowest bits; each reader reads its share of the columns, the first the lowest ones.
    Cost: ceil(width / 18) block RAMs of 2^bits words; without ``fixed`` also an adder and about 50 flip-flops for each.
    """

    def __init__(
        self, modulus_bits: int, bits: int, *, fixed: Montgomery | None, with_g: bool, readers: int = 1
    ) -> None:
        assert 1 << bits in DEPTHS
        self.bits, self._fixed, self._with_g, self._readers = bits, fixed, with_g, readers
        super().__init__({
            "start": In(1), "m": In(modulus_bits), "done": Out(1),
            "a_address": In(bits * readers), "a_q": Out(modulus_bits),
            "b_address": In(bits * readers), "b_q": Out(modulus_bits),
            "g_address": In(bits), "g_q": Out(bits),
        })  # fmt: skip

    @property
    def latency(self) -> int:
        """Cycles from an address to its word."""
        return 1

    @staticmethod
    def cycles(modulus_bits: int, bits: int) -> int:
        """Cycles from start to done."""
        return (1 << bits) + columns(modulus_bits)

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        words = self._fixed.words(self.bits) if self._fixed else []
        modulus = Cat(self.m, Const(0, self.bits + COLUMN))  # M, extended with zeros
        start, valid, last, address, carry = self._lowest(m, modulus)
        width, count = len(self.m), columns(len(self.m))
        for c in range(count):
            low, size = c * COLUMN, min(COLUMN, width - c * COLUMN)
            part = [word >> low & (1 << size) - 1 for word in words]
            ram = BlockRam(size, 1 << self.bits, part, registers=1)
            m.submodules[f"column{c}"] = ram
            reader = c * self._readers // count
            a_address, b_address = (x.word_select(reader, self.bits) for x in (self.a_address, self.b_address))
            m.d.comb += [
                ram.a_address.eq(a_address), self.a_q[low : low + size].eq(ram.a_q),
                ram.b_address.eq(Mux(valid, address, b_address)), self.b_q[low : low + size].eq(ram.b_q),
            ]  # fmt: skip
            number, above = Signal(size, name=f"kM{c}", reset_less=True), Signal(name=f"carry{c}", reset_less=True)
            if c == 0 and self._with_g:
                self._add_g(m, words, address, number, valid)
            if self._fixed:
                continue
            here = Signal(size + 1, name=f"sum{c}")
            first = low + self.bits
            m.d.comb += [
                here.eq(number + modulus[first : first + size] + carry),
                ram.b_write.eq(valid), ram.b_d.eq(number),
            ]  # fmt: skip
            m.d.sync += [number.eq(Mux(start, 0, here)), above.eq(here[size])]
            m.d.comb += self.done.eq(last) if c == count - 1 else []
            start, valid, last, address = (
                self._delayed(m, c, name, x)
                for name, x in (("start", start), ("valid", valid), ("last", last), ("address", address))
            )
            carry = above
        return m

    def _add_g(self, m: Module, words: Sequence[int], address: Value, number: Value, valid: Value) -> None:
        """The memory of the lowest bits, with asynchronous read."""
        mask = (1 << self.bits) - 1
        m.submodules.g = g = memory.Memory(shape=self.bits, depth=1 << self.bits, init=[word & mask for word in words])
        look = g.read_port(domain="comb")
        m.d.comb += [look.addr.eq(self.g_address), self.g_q.eq(look.data)]
        if not self._fixed:
            write = g.write_port()
            m.d.comb += [write.addr.eq(address), write.data.eq(number), write.en.eq(valid)]

    def _lowest(self, m: Module, modulus: Value) -> tuple[Value, ...]:
        """Count k and compute k M mod 2^bits. Returns start, write, last, address and carry for the first column."""
        if self._fixed:
            return (ZERO,) * 5
        bits = self.bits
        left = Signal(range((1 << bits) + 1))
        number, here = Signal(bits, name="kM_low", reset_less=True), Signal(bits + 1)
        first, valid, last, carry = Signal(), Signal(), Signal(), Signal(name="carry_low", reset_less=True)
        address = Signal(bits, reset_less=True)
        m.d.comb += here.eq(number + modulus[:bits])
        with m.If(self.start):
            m.d.sync += [left.eq(1 << bits), number.eq(0)]
        with m.Else():
            m.d.sync += number.eq(here)
            with m.If(left != 0):
                m.d.sync += left.eq(left - 1)
        m.d.sync += [
            first.eq(self.start), valid.eq(left != 0), last.eq(left == 1), address.eq(-number), carry.eq(here[bits]),
        ]  # fmt: skip
        return first, valid, last, address, carry

    def _delayed(self, m: Module, c: int, name: str, x: Value) -> Signal:
        """``x`` one cycle later, for the next column."""
        q = Signal(len(x), name=f"{name}{c}", reset_less=name == "address")
        m.d.sync += q.eq(x)
        return q


class DigitsToBinary(wiring.Component):
    """A redundant number below 2 M to binary modulo M: carries are resolved and M is subtracted, digit by digit.

    Stream ``i``: d digits of r + 2 bits; ``m``: M of ``bits`` bits, which must be stable; stream ``o``: the canonical
    number.
    Latency and interval: d + 1 cycles. Cost: two adders of r + 3 bits, d (3 r + 2) flip-flops.
    """

    def __init__(self, r: int, d: int, bits: int) -> None:
        self.r, self.d, self.bits = r, d, bits
        super().__init__({
            "i_valid": In(1), "i_ready": Out(1), "i_x": In((r + 2) * d), "m": In(bits), "busy": Out(1),
            "o_valid": Out(1), "o_ready": In(1), "o_r": Out(bits),
        })  # fmt: skip

    @property
    def latency(self) -> int:
        return self.d + 1

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        r, d, wide = self.r, self.d, self.r + 2
        left = Signal(range(d + 1))
        x = Signal(wide * d, reset_less=True)
        modulus, less = Signal(r * d, reset_less=True), Signal(r * d, reset_less=True)
        carry, borrow = Signal(3, reset_less=True), Signal(reset_less=True)
        digit, difference = Signal(r + 3), Signal(r + 1)
        m.d.comb += [
            self.i_ready.eq((left == 0) & (~self.o_valid | self.o_ready)),
            digit.eq(x[:wide] + carry),
            difference.eq(digit[:r] - modulus[:r] - borrow),
            self.busy.eq((left != 0) | self.o_valid),
        ]
        with m.If(self.o_ready):
            m.d.sync += self.o_valid.eq(0)
        with m.If(self.i_valid & self.i_ready):
            m.d.sync += [x.eq(self.i_x), modulus.eq(self.m), carry.eq(0), borrow.eq(0), left.eq(d)]
        with m.Elif(left != 0):
            m.d.sync += [
                x.eq(Cat(x[wide:], digit[:r], Const(0, 2))), modulus.eq(modulus[r:]),
                less.eq(Cat(less[r:], difference[:r])), left.eq(left - 1),
                carry.eq(digit[r:]), borrow.eq(difference[r]),
            ]  # fmt: skip
            with m.If(left == 1):
                m.d.sync += self.o_valid.eq(1)
        number = Cat(*(x.word_select(i, wide)[:r] for i in range(d)))
        m.d.comb += self.o_r.eq(Mux(borrow & (carry == 0), number, less))
        return m


class SubtractOnce(wiring.Component):
    """A binary number below 2 M to the number modulo M, by one subtraction of full width.

    Stream ``i``: numbers of ``width`` bits; ``m``: M of ``bits`` bits, which must be stable; stream ``o``: canonical
    numbers. ``chain``: most bits of a carry chain, 0 for no limit.
    Latency and interval: 1 cycle. Cost: an adder of width + 1 bits, a register of ``bits``.
    """

    def __init__(self, width: int, bits: int, chain: int = 0) -> None:
        self._chain = chain
        super().__init__({
            "i_valid": In(1), "i_ready": Out(1), "i_x": In(width), "m": In(bits), "busy": Out(1),
            "o_valid": Out(1), "o_ready": In(1), "o_r": Out(bits),
        })  # fmt: skip

    @property
    def latency(self) -> int:
        return 1

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        result = Signal(len(self.o_r), reset_less=True)
        less = Signal(len(self.i_x) + 1)
        minus = Cat(~self.m, Const(-1, len(less)))[: len(less)]
        difference = cut_sum(m, self.i_x, minus, self._chain, Const(1, 1)) if self._chain else self.i_x - self.m
        m.d.comb += [
            self.i_ready.eq(~self.o_valid | self.o_ready), less.eq(difference), self.o_r.eq(result),
            self.busy.eq(self.o_valid),
        ]  # fmt: skip
        with m.If(self.i_ready):
            m.d.sync += [self.o_valid.eq(self.i_valid), result.eq(Mux(less[-1], self.i_x, less))]
        return m
