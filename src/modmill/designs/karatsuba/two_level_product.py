# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The full product of two numbers of 16 digits, by Karatsuba's trick on two levels.

x = sum of x_(I,k) Y^I X^k, with four words I of four digits k of b bits, X = 2^b, Y = X^4. On either level

    D_i = x_i y_i;  M_(i,j) = (x_i - x_j) (y_i - y_j) = D_i + D_j - x_i y_j - x_j y_i
    coefficient c = sum of D_i over i, c - i in 0 .. 3;  - sum of M_(i,j) over i < j, i + j = c

Four squares D and six pairs M on each level: 100 multiplications. Ten DSP blocks, each busy in every cycle, take a
product every ten cycles. In cycle u all blocks have the words of outer square or pair u: word I, or the difference of
words I and J, digit by digit. Four blocks multiply its digits, six the differences of two of its digits.

    cycle u             words of outer square or pair u in their registers: D_0, ..., D_3, M_01, M_02, M_03, M_12, M_13,
                        M_23
    cycle u + SQUARE    products of digits; PAIR: of differences of digits
    cycle u + LANES[k]  w_k and w_(4 + k), the coefficients of X^k and X^(4 + k) of outer square or pair u, in lane k
    cycle LANES[k] + COLUMNS[K]   z_(K,k), the column of Y^K X^k, coefficient K of all w_k and K - 1 of all w_(4 + k)
    cycle WORD + COLUMNS[K]       word K of the product
    cycle `halved` + j            halves j of the lower four words and of the higher ones, through memories
    cycle `folding` + j           with what the bits above the words add, if operands have such bits (`top_bits`)

A difference of digits has b + 1 bits with its sign, a difference of two such differences b + 2: with b = 16 the
operands of a signed block of 18 x 18 bits. Sums are made modulo a power of 2 that is above the largest column.

Columns in lane k: let e_K be the sum of w_k of D_K and of w_(4 + k) of D_(K-1). Then z_(K,k) is R_K = e_K + e_(K-1) +
e_(K-2) + e_(K-3) less the pairs of column K. R_K = R_(K-1) + e_K - e_(K-4), from four registers with e.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.memory import Memory

from modmill.designs.karatsuba.top_bits import TopBits, WithTopBits, latency
from modmill.rtl.delay import later
from modmill.rtl.free_running import free_running
from modmill.rtl.mux_adder import chosen_sum
from modmill.rtl.product import one_tile

COUNT = 4
"""Digits of a word, and words of a number."""
DIGIT_MIN, DIGIT_MAX = 5, 16
"""Bits of a digit: what is carried from a word to the next is less than half a word; differences fit a block."""
PAIRS = tuple(combinations(range(COUNT), 2))
"""The pairs of each level in the order in which they are multiplied, that of the columns to which they belong."""
INTERVAL = COUNT + len(PAIRS)
"""Cycles of a product, and DSP blocks."""
TILE = 3
"""Registers of a DSP block."""
SQUARE = 1 + TILE + 1
PAIR = SQUARE + 1
LANES = (PAIR + 2, PAIR + 1, PAIR + 2, PAIR + 2)
COLUMNS = (6, 7, 8, 10, 11, 12, 13, 14)
"""Column 3 waits a cycle, because it has two pairs."""
BUBBLE = COLUMNS[3] - 1
WORD = PAIR + 2 + COUNT + 1
"""Of the words; the lowest COUNT words wait for the others."""


def outer(u: int, *, above: int = 0) -> tuple[int | None, int | None]:
    """The words whose difference is multiplied in cycle u; None: 0. ``above``: bits of operands above their words; with
    such bits each word of a square is the first of the two."""
    if u >= COUNT:
        return PAIRS[u - COUNT]
    return (u, None) if above or u < COUNT - 1 else (None, u)


def read_at(word: int) -> list[int]:
    """The cycles u in which this word is in its register."""
    return [u for u in range(INTERVAL) if word in outer(u)]


def belongs(u: int) -> range:
    """The columns of Y to which outer square or pair u belongs."""
    if u < COUNT:
        return range(u, u + COUNT)
    column = sum(PAIRS[u - COUNT])
    return range(column, column + 1)


def column_bits(digit: int) -> int:
    """Bits of the largest column, for digits of ``digit`` bits and a highest one of at most 2^digit."""
    most = (1 << digit) - 1
    return (COUNT**2 * most**2 + 2 * most).bit_length()


class TwoLevelWords:
    """The words of the product of the numbers ``x`` and ``y``, which stand from cycle ``start`` - 1 to ``start`` + 8.

    ``digit``: bits of a digit. ``above``: bits of operands above their words; without such bits the highest digit is at
    most 2^digit. ``at``: returns a registered strobe of the given cycles, modulo the interval. Cost: ten blocks; for
    each operand two multiplexers of a number's words and ten adders of a digit, 30 adders of a column.
    """

    above: Value
    """Halves of what the bits above the words add, if operands have such bits."""

    def __init__(
        self, m: Module, x: Value, y: Value, digit: int, at: Callable[..., Value], start: int, above: int
    ) -> None:
        self._m, self._digit, self._wide = m, digit, column_bits(digit)
        self._above, bits = above, digit * COUNT**2
        self._adders = 0
        self._at = lambda *cycles: at(*(start + c for c in cycles))
        self._tops = [number[bits:] for number in (x, y)]
        if above:
            x, y = x[:bits], y[:bits]
        self._first: list[Value] = []
        words = [self._words(name, number) for name, number in (("x", x), ("y", y))]
        self.squares = [self._product(f"D{k}", *(word[k] for word in words)) for k in range(COUNT)]
        self.pairs = {
            pair: self._product("M{}{}".format(*pair), *(self._difference(k, words[k], *pair) for k in range(2)))
            for pair in PAIRS
        }
        w = self._coefficients()
        self.columns = [self._lane(k, w[k], w[COUNT + k] if k < COUNT - 1 else None) for k in range(COUNT)]
        self.word = self._resolved()
        """The lower and the upper half of the word; the upper one with a bit more."""

    # ---- operands and products

    def _words(self, name: str, number: Value) -> list[Value]:
        """The differences of the digits of the words `outer`, one cycle after these are in their registers."""
        m, digit, bits = self._m, self._digit, COUNT * self._digit
        words = [number[bits * j :][: bits if j < COUNT - 1 else None] for j in range(COUNT)]
        chosen: list[Value] = []
        pairs = [outer(u, above=self._above) for u in range(INTERVAL)]
        for side, choices in ((0, words if self._above else words[:-1]), (1, words[1:])):
            register = Signal(max(map(len, choices)), name=f"{name}_{'ab'[side]}", reset_less=True)
            first = side
            value: Value = choices[0]
            for k, choice in enumerate(choices[1:], first + 1):
                value = Mux(self._at(*(u - 1 for u in range(INTERVAL) if pairs[u][side] == k)), choice, value)
            m.d.sync += register.eq(value)
            if zero := [u - 1 for u in range(INTERVAL) if pairs[u][side] is None]:
                with m.If(self._at(*zero)):
                    m.d.sync += register.eq(0)
            chosen.append(register)
        self._first.append(chosen[0])
        found = []
        for k in range(COUNT):
            one, two = (register[digit * k :][: digit if k < COUNT - 1 else None] for register in chosen)
            difference = Signal(digit + 1, name=f"{name}_digit{k}", reset_less=True)
            m.d.sync += difference.eq(one - two)
            found.append(difference)
        return found

    def _difference(self, operand: int, word: list[Value], i: int, j: int) -> Value:
        out = Signal(self._digit + 2, name=f"{'xy'[operand]}_pair{i}{j}", reset_less=True)
        self._m.d.sync += out.eq(word[i].as_signed() - word[j].as_signed())
        return out

    def _product(self, name: str, a: Value, b: Value) -> Signal:
        product = one_tile(self._m, a, b, TILE, f"block_{name}", signed=True).as_signed()
        out = Signal(product.shape(), name=name, reset_less=True)
        self._m.d.sync += out.eq(product)
        return out

    # ---- coefficients of X

    def _sum(self, name: str, value: Value) -> Signal:
        out = Signal(self._wide, name=name, reset_less=True)
        self._m.d.sync += out.eq(value)
        return out

    def _later(self, name: str, value: Value, cycles: int) -> Value:
        for k in range(cycles):
            value = later(self._m, value, f"{name}_{k}")
        return value

    def _coefficients(self) -> list[Value]:
        """w_0 to w_6, those of lane k in cycle LANES[k] + u."""
        D, M = self.squares, self.pairs
        # in cycle PAIR, then one later
        low, high = self._sum("D01", D[0] + D[1]), self._sum("D23", D[2] + D[3])
        ones = [self._sum(f"D{k}_later", D[k]) for k in (1, 2)]
        w2, w4 = self._sum("w2_part", ones[1] - M[0, 2]), self._sum("w4_part", ones[0] - M[1, 3])
        both = self._sum("M03_12", M[0, 3] + M[1, 2])
        all_ = self._sum("D_all", low + high)
        return [
            self._later("w0", self._sum("w0", D[0]), LANES[0] - SQUARE - 1),
            self._sum("w1", low - M[0, 1]),
            self._sum("w2", later(self._m, low, "D01_later") + w2),
            self._sum("w3", all_ - both),
            self._sum("w4", later(self._m, high, "D23_later") + w4),
            self._sum("w5", high - M[2, 3]),
            self._later("w6", self._sum("w6", D[3]), LANES[2] - SQUARE - 1),
        ]

    # ---- columns

    def _chosen(self, a: Value, choose: Value, b: Value, c: Value, width: int = 0, *, inverts: bool = False) -> Value:
        self._adders += 1
        return chosen_sum(self._m, a, choose, b, c, width or self._wide, number=self._adders, inverts=inverts)

    def _lane(self, k: int, w: Value, above: Value | None) -> Signal:
        """Column K of lane k in cycle LANES[k] + COLUMNS[K]. ``w``: w_k; ``above``: w_(4 + k)."""
        m, lane = self._m, LANES[k]
        zero = Const(0, self._wide)

        def at(*cycles: int) -> Value:
            return self._at(*(lane + c for c in cycles))

        def gated(value: Value, off: Value, name: str) -> Signal:
            """``value`` one cycle later, zero in the cycle after ``off``."""
            out = self._sum(f"lane{k}_{name}", value)
            with m.If(off):
                m.d.sync += out.eq(0)
            return out

        squares = range(COUNT)
        # ---- e_K in cycle 1 + K; for K >= 4 e_K - e_(K - 4) - 1
        before = gated(above, at(*range(COUNT, INTERVAL)), "before") if above is not None else zero
        e = Signal(self._wide, name=f"lane{k}_e", reset_less=True)
        line: list[Value] = [e]
        for j in range(COUNT):
            line.append(later(m, line[-1], f"lane{k}_e{j}"))
        others = at(*range(COUNT, INTERVAL))
        m.d.sync += e.eq(self._chosen(before, others, line[COUNT - 1], w, inverts=True))
        # ---- R_K in cycle COLUMNS[K] - 1
        late = COLUMNS[COUNT - 1] - 2  # the first cycle in which R_(COUNT - 1) is there
        total = Signal(self._wide, name=f"lane{k}_R", reset_less=True)
        choose = at(*(late - c for c in range(1, COUNT + 1)))
        added = self._chosen(
            Cat(Const(1, 1), total),
            choose,
            Cat(Const(0, 1), line[COUNT - 1]),
            Cat(Const(1, 1), line[COUNT]),
            self._wide + 1,
        )
        with m.If(~at(late)):
            m.d.sync += total.eq(added[1:])
        with m.If(at(late - COUNT - 1)):
            m.d.sync += total.eq(0)
        # ---- the pairs of column K
        second = at(COUNT + PAIRS.index((1, 2)) + 1)
        carried: Value = zero
        if above is not None:
            pairs = Signal(self._wide, name=f"lane{k}_pairs_above", reset_less=True)
            m.d.sync += pairs.eq(self._chosen(gated(above, at(*squares), "pair_above"), second, pairs, zero))
            carried = pairs
        pairs = Signal(self._wide, name=f"lane{k}_pairs", reset_less=True)
        m.d.sync += pairs.eq(self._chosen(gated(w, at(*squares), "pair"), second, pairs, carried))
        return self._sum(f"lane{k}_z", total - pairs)

    # ---- carries

    def _resolved(self) -> list[Value]:
        """Both halves of word K in cycle WORD + COLUMNS[K]."""
        m, digit, half = self._m, self._digit, 2 * self._digit
        base = LANES[0]
        digits: list[Value] = []
        carry: Value = Const(0, 1)
        for k, column in enumerate(self.columns):
            # column K of lane k in cycle base + k - 1 + COLUMNS[K]; the sum a cycle later
            waited = self._later(f"lane{k}_waited", column, base + max(0, k - 1) - LANES[k])
            total = Signal(self._wide + 1, name=f"sum{k}", reset_less=True)
            if k:
                m.d.sync += total.eq(waited + carry)
            else:
                total = waited
            carry = total[digit:]
            digits.append(self._later(f"digit{k}_waited", total[:digit], COUNT - 1 - k))

        # all digits in cycle base + COUNT - 1 + COLUMNS[K]
        def at(*cycles: int) -> Value:
            return self._at(*(base + COUNT - 1 + c for c in cycles))

        lower, upper = Cat(*digits[: COUNT // 2]), Cat(*digits[COUNT // 2 :])
        over, bit = Signal(len(carry), name="over", reset_less=True), Signal(name="word_carry", reset_less=True)
        total = Signal(half + 2, name="lower_sum")
        m.d.comb += total.eq(Cat(Const(1, 1), lower) + Cat(bit, over))
        with m.If(~at(BUBBLE)):
            m.d.sync += [over.eq(carry), bit.eq(total[-1] & upper.all())]
        with m.If(at(COLUMNS[0] - 1)):
            m.d.sync += [over.eq(0), bit.eq(0)]
        # the upper half a cycle later
        lower_later, upper_later, between, top = (
            later(m, value, f"{name}_later")
            for name, value in (
                ("lower", total[1:-1]), ("upper", upper), ("between", total[-1]),
                ("top", carry[0] & at(COLUMNS[-1])),
            )
        )  # fmt: skip
        out = Signal(half + 1, name="upper_sum", reset_less=True)
        sum_ = Signal(half + 1, name="upper_total")
        m.d.comb += sum_.eq(upper_later + between)
        m.d.sync += out.eq(Cat(sum_[:-1], (sum_[-1] & at(COLUMNS[-1] + 1)) | top))
        return [later(m, lower_later, "lower_half"), out]


class TwoLevelProduct(TwoLevelWords):
    """``low``, ``high``: halves j of the lower four words of the product and of what is above them, in cycle ``start``
    + `folding` + j; the highest half has all remaining bits. Cost beyond the words: two memories of four words;
    `TopBits`.
    """

    def __init__(
        self, m: Module, x: Value, y: Value, digit: int, at: Callable[..., Value], start: int, above: int
    ) -> None:
        super().__init__(m, x, y, digit, at, start, above)
        self.low, self.high = self.halves = self._halves()
        """``halves``: half j of the lower words and of the higher ones in cycle `halved` + j; zero behind them."""
        if above:
            times: dict[str, Any] = {"at": self._at, "taken": halved()}
            self.above = TopBits(
                m, self._first, self._tops, 2 * digit, COUNT, interval=INTERVAL, place=self._place, **times
            ).half
            both = WithTopBits(m, self.low, self.high, self.above, 2 * digit, 2 * COUNT, **times)
            self.low, self.high = both.low, both.high

    def _halves(self) -> list[Value]:
        m, half = self._m, 2 * self._digit
        write = free_running(range(2 * COUNT), name="word_written")
        self._place = read = free_running(range(2 * COUNT), name="half_read")
        m.d.sync += [
            write.eq(Mux(self._at(WORD + COLUMNS[0] - 1), 0, Mux(self._at(WORD + BUBBLE), write, write + 1))),
            read.eq(Mux(self._at(halved() - 2), 0, read + 1)),
        ]
        found: list[Value] = []
        for name, columns in (("low", COLUMNS[:COUNT]), ("high", COLUMNS[COUNT:])):
            bits = 2 * half + (name == "high")
            memory = Memory(shape=bits, depth=COUNT, init=[])
            m.submodules[f"{name}_order"] = memory
            into, out = memory.write_port(), memory.read_port(domain="comb")
            m.d.comb += [
                into.addr.eq(write), into.data.eq(Cat(*self.word)[:bits]), out.addr.eq(read[1:]),
                into.en.eq(self._at(*(WORD + c for c in columns))),
            ]  # fmt: skip
            digit = Signal(half + (name == "high"), name=f"{name}_half", reset_less=True)
            m.d.sync += digit.eq(Mux(read[0], out.data[half:], out.data[:half]))
            with m.If(self._at(*(halved() + c for c in range(2 * COUNT - 1, INTERVAL - 1)))):
                m.d.sync += digit.eq(0)
            found.append(digit)
        return found


def halved() -> int:
    """Cycle of the lowest halves: the lowest high word has passed its memory."""
    return WORD + COLUMNS[COUNT] + 2


def folding(above: int) -> int:
    """Cycle of the lowest halves that are folded, for operands with ``above`` bits above their words."""
    return halved() + latency(above)
