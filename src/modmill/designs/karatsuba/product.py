# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The full product of two numbers of n digits, n odd, by Karatsuba's trick for every pair of digits.

    D_u = x_u y_u;  P_(i,j) = (x_i + x_j) (y_i + y_j) = x_i y_j + x_j y_i + D_i + D_j
    column k of x y = sum of P_(i,j) over i < j, i + j = k;  + 2 D_(k/2) for even k;  - sum of D_i, 0 <= i, k - i < n

That are n squares D and n (n - 1) / 2 pairs: (n + 1) / 2 DSP blocks, each busy in every cycle, take a product every n
cycles. Block e multiplies the digits u - e and u + e modulo n, for all u, and block 0 the squares. All of them belong
to column 2 u modulo n: to the lower one, 2 u mod n, or to the higher one, n above it. The indices of block e wrap
around unless e <= min(u, n - 1 - u). Up to this block the sums belong to one of the two columns, then to the other.

    cycle u                  digit u is in the first register of a line through which both operands pass
    cycle u + e              sums of two digits in the input register of block e; for u < e they are those of the
                             product before, because u - e + n and u + e are its digits
    cycle u + e + 5          their product is added to the chain, one register a block
    cycle END + u            both parts of column 2 u
    cycle READ + c           columns c and n + c, through a memory that puts them in order
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.memory import Memory

from modmill.numbers.rns.residues import signed_digits
from modmill.rtl.delay import DelayLines, later
from modmill.rtl.free_running import free_running
from modmill.rtl.mux_adder import chosen_sum
from modmill.rtl.product import one_tile

DIGIT = 17
"""Bits of a digit; the sum of two digits fits an operand of a DSP block."""
LONG = 65
"""Fewest digits of a long product, for 1,072 bits and more: strobes come from a ring of registers, since the bits of a
counter would reach too many LUTs, and what has more terms takes a cycle more."""
DIGITS_MIN = 5
"""Fewest digits."""
TILE = 3
"""Registers of a DSP block."""
SUM = 2 + TILE
"""Cycles from a digit's last register to its product at the chain: the sum, the block, a register behind it."""


def blocks(n: int) -> int:
    """DSP blocks for n digits."""
    return (n + 1) // 2


def end(n: int) -> int:
    """END."""
    return n // 2 + SUM + 2


def read(n: int) -> int:
    """READ."""
    return end(n) + n + 2


def made(n: int) -> int:
    """Cycle in which the square of digit 0 is in its register."""
    return n // 2 + SUM + 1


def largest(n: int) -> tuple[int, int]:
    """The largest sum of the P of a column together with 2 D, and the largest sum of all D."""
    top = 1 << DIGIT
    return (n // 2) * (2 * top - 1) ** 2 + 2 * top**2, n * top**2


class Columns:
    """The columns of a product by sums of pairs of digits, one product after another; abstract.

    ``at``: returns a registered strobe of the given cycles, modulo n. A subclass defines the sums of digits that each
    block multiplies (`_sums`) and, of the square of digit u in cycle u + `made`, what belongs to column 2 u
    (`_with_square`). Cost: for each block an adder and a multiplexer of a column.
    """

    def __init__(self, m: Module, n: int, at: Callable[..., Value]) -> None:
        if n < DIGITS_MIN or n % 2 == 0:
            raise ValueError(f"the number of digits must be odd and at least {DIGITS_MIN}, not {n}")
        self._m, self._n, self._at = m, n, at
        self._lines = DelayLines(m, n + 2, name="columns")
        self._wide = largest(n)[0].bit_length()

    def _sums(self, e: int) -> tuple[Value, Value]:
        """The two numbers that block e multiplies, in registers: in cycle u + e + 1 those of the digits u - e and u +
        e."""
        raise NotImplementedError

    def _with_square(self, hold: Value) -> Value:
        """``hold`` and twice the square."""
        raise NotImplementedError

    def _taps(self, name: str, digit: Value) -> list[Value]:
        """Register k has the digit of k cycles ago."""
        line: list[Value] = [later(self._m, digit, f"{name}0")]
        for k in range(1, self._n + 1):
            line.append(later(self._m, line[-1], f"{name}{k}"))
        return line

    def _chain(self, wide: int) -> tuple[Value, Value]:
        """Both parts of column 2 u in cycle END + u: with the square, and the rest."""
        m, n, at = self._m, self._n, self._at
        acc: Value = Const(0)
        hold: Value = Const(0)
        for e in range(1, n // 2 + 1):
            product = later(m, one_tile(m, *self._sums(e), TILE, f"pairs{e}"), f"P{e}")
            total = Signal(wide, name=f"total{e}")
            m.d.comb += total.eq(acc + product)
            acc, before = Signal(wide, name=f"acc{e}", reset_less=True), hold
            hold = Signal(wide, name=f"hold{e}", reset_less=True)
            complete = at(2 * e + SUM, n - 1 + SUM)  # of u = e and u = n - 1 - e
            m.d.sync += [acc.eq(Mux(complete, 0, total)), hold.eq(Mux(complete, total, before))]
            if e == 1:  # u = 0 and u = n - 1 have only their square; the others are complete later
                m.d.sync += hold.eq(Mux(at(1 + SUM, n + SUM), 0, total))
        first = Signal(wide, name="first_part", reset_less=True)
        m.d.sync += first.eq(self._with_square(hold))
        return first, later(m, acc, "rest_part")

    def _columns(self) -> tuple[Value, Value]:
        """Both columns 2 u, the lower and the higher, in cycle END + u + 1 (for u <= n / 2 END + n + u + 1), without
        the corrections. To be called once.

        For u <= n / 2 the first part is the lower column of this product, and the rest the higher column of the product
        before.
        """
        m, n = self._m, self._n
        first, rest = self._chain(self._wide)
        lower_first = self._at(*(end(n) + u for u in range(n // 2 + 1)))
        waited = self._lines.line(first, n, name="first_waited")
        low, high = (Signal(self._wide, name=f"{name}_column", reset_less=True) for name in ("low", "high"))
        m.d.sync += [low.eq(Mux(lower_first, waited, rest)), high.eq(Mux(lower_first, rest, first))]
        return low, high

    def _ordered(self, columns: Value, late: int) -> Value:
        """``columns``, which come ``late`` cycles after those of `_columns`: column c in cycle READ + late + 1 + c."""
        m, n, at = self._m, self._n, self._at
        m.submodules.order = order = Memory(shape=len(columns), depth=n, init=[])
        write, port = order.write_port(), order.read_port(domain="comb")
        written, reading = (free_running(range(n), name=name) for name in ("column_written", "column_read"))
        m.d.sync += [
            written.eq(Mux(at(end(n) + n // 2 + 1 + late), 1, Mux(written == n - 2, 0, written + 2))),
            reading.eq(Mux(at(read(n) + late - 1), 0, reading + 1)),
        ]
        m.d.comb += [write.addr.eq(written), write.data.eq(columns), write.en.eq(1), port.addr.eq(reading)]
        return later(m, port.data, "columns_in_order")


class Pairs(Columns):
    """The product of the digits at ``x`` and ``y``, where digit u arrives in cycle u - 1.

    ``low``, ``high``: digits of the result, two in each cycle; `FoldedProduct` and `Halves` define them. The highest
    digit of each operand is at most 2^DIGIT. Cost: `blocks` (n); for each an adder for every sum of digits.
    """

    low: Value
    high: Value

    def __init__(self, m: Module, x: Value, y: Value, n: int, at: Callable[..., Value]) -> None:
        super().__init__(m, n, at)
        self.taps = [self._taps(name, digit) for name, digit in (("x", x), ("y", y))]
        x_u, y_u = (line[n // 2 + 2] for line in self.taps)
        self.square = later(m, one_tile(m, x_u, y_u, TILE, "squares"), "D")

    def _sums(self, e: int) -> tuple[Value, Value]:
        wrapped, sums = self._at(*range(2 * e)), []
        for k, line in enumerate(self.taps):
            total = chosen_sum(self._m, line[2 * e], wrapped, line[self._n], line[0], DIGIT + 1, number=2 * e + k)
            sums.append(later(self._m, total, f"{'xy'[k]}_sum{e}"))
        return sums[0], sums[1]

    def _with_square(self, hold: Value) -> Value:
        return hold + (self.square << 1)


class FoldedProduct(Pairs):
    """low + ``C`` high, where x y = low + 2^(n DIGIT) high, with the sums low of the lower columns and high of the
    higher ones, and C > 1 of at most DIGIT bits: column c is

        V_c = (sum of the P of column c) + C (sum of the P of column n + c) + (C - 1) (D_0 + ... + D_c) - C (all D)

    ``low``, ``high``: digits c and n + c of the result, in cycle `folded` (n, C) + c.
    Cost beyond `Pairs`: five adders of a column, and one for each signed digit of C and of C - 1.
    """

    def __init__(self, m: Module, x: Value, y: Value, n: int, at: Callable[..., Value], C: int) -> None:
        super().__init__(m, x, y, n, at)
        late, width = levels(C), column_bits(n, C)
        low, high = self._columns()
        multiples = ((Cat(Const(0, k), high), sign, late) for k, sign in signed_digits(C))
        v = Signal(width, name="V")
        m.d.comb += v.eq(tree(m, [(low, 1, late), *multiples], "V"))
        in_order = self._ordered(v, late)
        self.in_order: list[Value] = [in_order]
        """V_c without the corrections, modulo 2^width, in cycle READ + levels + 1 + c."""

        # ---- corrections: they begin with - C (all D), and (C - 1) D_c is added for each column
        less = levels(C - 1, other=False)
        scaled = Signal(width, name="D_scaled")
        parts = [(Cat(Const(0, k), self.square), sign, less) for k, sign in signed_digits(C - 1)]
        m.d.comb += scaled.eq(tree(m, parts, "D_scaled"))
        square = self.square
        for k in range(less):
            square = later(m, square, f"D_later{k}")
        multiple = later(m, (scaled + square)[:width], "D_multiple")
        less_all = self._less_all(multiple, made(n) + less + 1, width)
        start = read(n) + late
        waited: Value = scaled
        for k in range(start - made(n) - less - n - 2):  # in registers; for n = 15 they would double the RAM
            waited = later(m, waited, f"D_scaled_waited_{k}")
        waited = self._lines.line(waited, min(start - made(n) - less, n + 2), name="D_scaled_waited")
        correction, exact = (Signal(width, name=name, reset_less=True) for name in ("correction", "exact"))
        m.d.sync += [
            correction.eq(chosen_sum(m, waited, at(start), less_all, correction, width, number=0)),
            exact.eq(in_order + correction),
        ]
        self.exact: list[Value] = [exact]
        """V_c in cycle READ + levels + 2 + c."""

        # ---- carries
        carry, beyond = (Signal(width - DIGIT, name=name, reset_less=True) for name in ("carry", "beyond"))
        sum_, digit = Signal(width, name="sum"), Signal(DIGIT, name="digit", reset_less=True)
        m.d.comb += sum_.eq(exact + carry)
        m.d.sync += [digit.eq(sum_), carry.eq(sum_ >> DIGIT), beyond.eq(beyond >> DIGIT)]
        with m.If(at(start + n + 1)):
            m.d.sync += [carry.eq(0), beyond.eq(sum_ >> DIGIT)]
        self.high = beyond[:DIGIT]
        self.low = self._lines.line(digit, n - 1, name="low_waited")

    def _less_all(self, value: Value, first: int, width: int) -> Value:
        """Minus the sum of ``value`` in the n cycles from ``first`` on, modulo 2^width. It stays for n cycles from
        ``first`` + n on."""
        m, n = self._m, self._n
        total, whole = (Signal(width, name=name, reset_less=True) for name in ("D_total", "D_whole"))
        following = Signal(width, name="D_following")
        m.d.comb += following.eq(total - value)
        m.d.sync += total.eq(following)
        with m.If(self._at(first + n - 1)):
            m.d.sync += [total.eq(0), whole.eq(following)]
        return whole


def levels(constant: int, *, other: bool = True) -> int:
    """Levels of the adder tree for a multiple of a number by ``constant``, and with ``other`` for one more term."""
    return max(1, (len(signed_digits(constant)) + other - 1).bit_length())


def column_bits(n: int, C: int) -> int:
    """Bits of the sums of `FoldedProduct`: of V_c with its carry, and of the sums without corrections."""
    return ((1 + C) * largest(n)[0]).bit_length() + 1


def folded(n: int, C: int) -> int:
    """Cycle of the lowest digits of `FoldedProduct`."""
    return read(n) + n + 2 + levels(C)


def tree(m: Module, leaves: Sequence[tuple[Value, int, int]], name: str) -> Value:
    """The sum of (value, sign, depth), ``depth`` cycles after the value, with all its bits; one sign is positive."""
    nodes: list[tuple[Value, int]] = []
    for depth in range(max(depth for *_, depth in leaves), 0, -1):
        nodes += [(value, sign) for value, sign, at in leaves if at == depth]
        nodes.sort(key=lambda node: -node[1])
        half = (len(nodes) + 1) // 2
        following: list[tuple[Value, int]] = []
        for k, ((value, sign), *second) in enumerate(nodes[j::half] for j in range(half)):
            for other, other_sign in second:
                value = value + other if other_sign == sign else value - other
            out = Signal(value.shape(), name=f"{name}{depth}_{k}", reset_less=True)
            m.d.sync += out.eq(value)
            following.append((out, sign))
        nodes = following
    ((value, _),) = nodes
    return value
