# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Montgomery multiplication for any odd modulus: three products by Karatsuba's trick for all pairs of digits.

Source:  P. L. Montgomery: Modular Multiplication Without Trial Division. Mathematics of Computation 44, 1985, for the
         method; `karatsuba` for the product; H. Orup: Simplifying Quotient Determination in High-Radix Modular
         Multiplication. ARITH, 1995, for the first step. Half products in one set of blocks and their carry are ours.
Formula: T = x y;  t = T mod 2^17, P = (p mu + 1) / 2^17, mu = -p^-1 mod 2^17:  r = floor(T / 2^17) + t P
         M = 2^(17 n), f = -p^-1 mod M:  q = r f mod M,  v = (r + q p) / M;  R = 2^17 M
Range:   x, y < B = 2^(17 n + s) with s <= 4 give v <= B^2 / R + p (1 + 2^17 / M) < B for p < B / 2, because
         B / R <= 2^-13; v = x y / R (mod p)

The first step makes the quotient a digit longer than those of M, without a longer product: its digit t is a digit of T.
Of r f only the low half is needed, and of q p only the high half: n (n - 1) / 2 multiplications for all pairs of both,
on (n - 1) / 2 blocks, and n for each of the squares of both, for a carry, and for t P. So n + 4 blocks take a product
every n cycles.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from modmill.contract import Load, UnsupportedError
from modmill.design import Cost, Design, DesignInstance, Source, loadable_modulus
from modmill.designs.digit_serial import LOADABLE
from modmill.designs.karatsuba import design as karatsuba
from modmill.designs.karatsuba.complement import (
    MODULUS,
    Complement,
    HalfProducts,
    bound_of_sum,
    carried_at,
    constants,
    corner_bits,
    quotient_at,
    second,
)
from modmill.designs.karatsuba.halves import digits_at
from modmill.designs.karatsuba.product import DIGIT, DIGITS_MIN, SUM, TILE, blocks, made, read, tree
from modmill.designs.karatsuba.shape import MASK, QuotientParams, columns, digits_of, halves, interval
from modmill.designs.karatsuba.shape import Kind as Product
from modmill.designs.karatsuba.solinas import SPARE, QuotientMachine, QuotientMontgomery, digits_for
from modmill.designs.karatsuba.tables import LoadedTables, Table, Tables, multiples
from modmill.designs.pseudo_mersenne.shape import Kind as Folds
from modmill.numbers.progression import first_within
from modmill.rtl.conditional_subtract import ConditionalSubtract
from modmill.rtl.delay import DelayLines, later
from modmill.rtl.digit_serial import Control
from modmill.rtl.product import one_tile
from modmill.schedule import Operation, Operations, Step

STEP = TILE + 4
"""Cycles from a digit of T to the digit of r in its line: a block, a register behind it, two additions, the line."""
TOP_LEVELS = 2
"""Levels of the additions for the bits of P above the digits, of which there are at most `ABOVE_MAX`."""
DIGITS_MOST = 241
"""Most digits, for 4,096 bits."""

EDGES = 640
"""Edges of the carry that are looked for, times the number of digits."""
STEP_DIGIT = "P_digit"
"""Name of the table of the digits of P."""
MODULUS_DIGIT = f"{MODULUS}_constant"
"""Name of the table of the digits of p."""
TRIES = 32
"""Operands that are tried for a quotient."""


class Kind(Operations):
    """The operations behind those of the product, for digit j and column c."""

    STEP = "r{}"  # digit j of r, j < n
    ADDED = "e{}"  # what is added to digit j of v: the digits of r from n on
    SQUARE_A = "rf{}"  # the squares: digit j of r times that of f, and of q and p
    SQUARE_Q = "qp{}"
    LOW = "L{}"  # column c of r f, with the squares in its pairs
    HIGH = "H{}"  # column n + c of q p, likewise
    QUOTIENT = "q{}"
    CARRY = "C"
    OUT = "v{}"


@dataclass(frozen=True)
class MontgomeryParams(QuotientParams):
    """Sizes, constants and times behind both halves of the product. ``loadable``: p is loaded, at most ``k`` bits."""

    loadable: bool = False

    @property
    def p(self) -> int:
        """The modulus."""
        return (1 << self.k) - self.c

    @cached_property
    def mu(self) -> int:
        """mu."""
        return -pow(self.p, -1, 1 << DIGIT) % (1 << DIGIT)

    @cached_property
    def P(self) -> int:
        """P."""
        return (self.p * self.mu + 1) >> DIGIT

    @cached_property
    def f(self) -> int:
        """f."""
        return -pow(self.p, -1, 1 << self.n) % (1 << self.n)

    @property
    def beyond(self) -> int:
        """Bits of the largest p, and of its P, above their digits."""
        return max(0, self.k - self.n)

    @property
    def begun(self) -> int:
        """Cycle of the product's strobes in which digit 0 of r is in the first register of its line."""
        return digits_at(self.digits) + STEP + 1

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The numbers that depend on the cycle, in cycles of the product's strobes."""
        P, f, g = (digits_of(number, self.digits, whole=False) for number in (self.P, self.f, self.p))
        first = Table(STEP_DIGIT, DIGIT, tuple(P), digits_at(self.digits) + 1)
        made = (replace(table, cycle=table.cycle + self.begun) for table in constants(self.digits, f, g))
        return first, *made

    @property
    def word(self) -> int:
        """Bits of the words that load p."""
        return DIGIT + max(1, self.beyond)

    @property
    def words(self) -> tuple[int, ...]:
        """What loads p: the values of all tables. The highest digits of p and P are whole."""
        last = {STEP_DIGIT: self.P, MODULUS_DIGIT: self.p}
        found: list[int] = []
        for table in self.tables:
            found += table.values
            if table.name in last:
                found[-1] = last[table.name] >> DIGIT * (self.digits - 1)
        return tuple(found)

    @property
    def first(self) -> int:
        """Cycle in which digit 0 of r is in its register, the first of the line of digits."""
        return self.digit + STEP + 1

    @property
    def second(self) -> int:
        """Cycle in which digit 0 of q is in the first register of its line."""
        return self.first + second(self.digits)

    @property
    def result(self) -> int:
        return self.second + quotient_at(self.digits)

    @property
    def quotient_most(self) -> int:
        """The largest quotient: t mu + 2^17 q."""
        return MASK * self.mu + (((1 << self.n) - 1) << DIGIT)

    def steps(self) -> Iterator[Step]:
        """Both halves of T; digits of r, q and v; the result through its memory. An operation does not list carries
        among its reads."""
        n, d = self.digits, self.digit
        late = (n + 1) // 2
        yield from self.product_steps()
        for j in range(n):
            reads = [Product.DIGIT(0), Product.DIGIT(j + 1), *([Product.CARRY(0)] if j == n - 1 else [])]
            yield Kind.STEP(j).on("first step", d + 1 + j, STEP, reads, busy=1)
        for j in range(n - 1):
            reads = [Product.DIGIT(n + 1 + j), *([Product.CARRY(1)] if j == 0 else [])]
            yield Kind.ADDED(j).on("added", d + n + 1 + j, STEP - 1, reads, busy=1)
        for kind, unit, at, digit in (
            (Kind.SQUARE_A, "squares of r", self.first, Kind.STEP),
            (Kind.SQUARE_Q, "squares of q", self.second, Kind.QUOTIENT),
        ):
            for j in range(n):
                yield kind(j).on(unit, at + made(n) + j - SUM + 1, SUM - 1, [digit(j)], busy=1)
        ordered = read(n) + 1
        for c in range(n):
            squares = [Kind.SQUARE_A(c // 2)] * (c % 2 == 0)
            yield Kind.LOW(c).on("low pairs", self.first + made(n) + c, ordered - made(n), squares, busy=1)
            reads = [Kind.LOW(c), *map(Kind.SQUARE_A, range(c + 1))]
            yield Kind.QUOTIENT(c).on("q", self.first + ordered + c, 2, reads, busy=1)
            squares = [Kind.SQUARE_Q((n + c) // 2)] * ((n + c) % 2 == 0)
            at = self.second + made(n) + late + c
            yield Kind.HIGH(c).on("high pairs", at, ordered - made(n) - late, squares, busy=1)
        carried = self.second + carried_at(n)
        yield Kind.CARRY().on("carry", carried - 2, 2, [Kind.STEP(n - 1), *map(Kind.QUOTIENT, range(n))], busy=1)
        for c in range(n):
            reads = [Kind.HIGH(c), *map(Kind.SQUARE_Q, range(n)), *map(Kind.ADDED, range(c, min(c + 1, n - 1)))]
            yield Kind.OUT(c).on(
                "v", self.second + ordered + c, 2, [*reads, *([Kind.CARRY()] if c == 0 else [])], busy=1
            )
        last = self.result + n - 1
        yield Folds.RESULT().on("results", last, self.frame.timing.latency - last, map(Kind.OUT, range(n)))


class KaratsubaMontgomery(QuotientMontgomery):
    """The blocks for one modulus."""

    params: MontgomeryParams

    def __init__(self, p: int, params: MontgomeryParams, settings: dict[str, Any]) -> None:
        super().__init__(p, params, settings)
        self.bits = params.k

    @property
    def width(self) -> int:
        return self.bits

    @property
    def load(self) -> Load | None:
        if not self.loadable:
            return None
        words, interval = self.params.words, self.params.interval
        return Load(self.params.word, words, (-(-(len(words) - 1) // interval) + 1) * interval)

    def at(self, p: int) -> DesignInstance:
        if not self.loadable:
            return super().at(p)
        c = (1 << self.bits) - loadable_modulus(p, self.bits)
        return KaratsubaMontgomery(p, replace(self.params, c=c), self.settings)

    @property
    def bounds(self) -> tuple[Fraction, Fraction, Fraction]:
        operand = Fraction(1 << self.operand_bits, self.p)
        return operand, operand**2, operand**2 * self.gain + Fraction(self.params.quotient_most, self.R)

    @property
    def cost(self) -> Cost:
        """A DSP block for two digits, for half the pairs of two digits, and four more."""
        n = self.params.digits
        kept = n * sum(table.bits for table in self.params.tables) if self.loadable else 0
        return Cost(dsp=2 * blocks(n) + 3, memory_bits=kept, multiplications=n * (n + 1) + 3 * n)

    def trace(self, a: int, b: int) -> Iterator[tuple[str, Any]]:
        p = self.params
        n = p.digits
        low, high = yield from halves(p, a, b)
        T = low + (high << p.n)
        r = (T >> DIGIT) + (T & MASK) * p.P
        q = r * p.f % (1 << p.n)
        v = (r + q * p.p) >> p.n
        yield from ((f"r{j}", digit) for j, digit in enumerate(digits_of(r, n, whole=False)))
        yield from ((f"e{j}", number) for j, number in enumerate(self._added(low, high)))
        parts = [digits_of(number, n, whole=False) for number in (r, p.f, q, p.p)]
        for name, k in (("rf", 0), ("qp", 2)):
            yield from (
                (f"{name}{j}", one * other) for j, (one, other) in enumerate(zip(*parts[k : k + 2], strict=True))
            )
        yield from ((f"L{c}", value) for c, (value, _) in zip(range(n), columns(*parts[:2]), strict=False))
        yield from ((f"q{c}", digit) for c, digit in enumerate(parts[2]))
        made = list(columns(*parts[2:]))
        yield from ((f"H{c}", value) for c, (value, _) in enumerate(made[n:]))
        below = sum(exact << DIGIT * k for k, (_, exact) in enumerate(made[:n]))
        yield "C", (below + r % (1 << p.n)) >> p.n
        yield from ((f"v{c}", digit) for c, digit in enumerate(digits_of(v, n)))
        yield "v", v

    def _added(self, low: int, high: int) -> list[int]:
        """The numbers that are added to the digits of v, but for the highest: digits of T, and of t P at the first."""
        p = self.params
        n, rest = p.digits, low >> p.n
        numbers = digits_of(high, n)
        numbers[0] += rest & MASK
        numbers[1] += rest >> DIGIT
        inside = (low & (1 << p.n) - 1) >> DIGIT
        over = inside + (numbers[0] << DIGIT * (n - 1)) + (low & MASK) * p.P >> p.n
        return [numbers[1] + over, *numbers[2:]]

    @property
    def machine(self) -> type[QuotientMachine]:
        return Machine

    def corners(self) -> list[tuple[int, int]]:
        """Those of a Montgomery multiplication; quotients of digits that are all ones, or ones in one digit; sums at
        the edges of the carry."""
        p, found = self.params, super().corners()
        M = 1 << p.n
        for q in (
            M - 1,
            1,
            M >> 1,
            *(MASK << DIGIT * k for k in range(p.digits)),
            *(M - 1 ^ MASK << DIGIT * k for k in range(p.digits)),
            *self._carry_edges(),
        ):
            found += self._with_quotient(q)
        return list(dict.fromkeys(found))

    def _with_quotient(self, q: int) -> list[tuple[int, int]]:
        """Operands with this quotient q: x y = -p (t mu + 2^17 q) modulo 2^(17 (n + 1)), with the t that makes x small;
        none if there is none for `TRIES` numbers y."""
        p, N = self.params, 1 << self.params.n + DIGIT
        for y in range(p.limit - 1, p.limit - 1 - 2 * TRIES, -2):
            by = -p.p * pow(y, -1, N)
            start, step = (by * factor % N for factor in (q << DIGIT, p.mu))
            t = first_within(step, N, -start % N, p.limit)
            if t is not None and t <= MASK:
                return [((start + t * step) % N, y)]
        return []

    def _carry_edges(self) -> Iterator[int]:
        """Quotients for which the sum that gives the carry is close to its bound, or far above it: for each digit and
        each value of its highest bits, or some of them (`EDGES`), the best one of some. The highest bits of the other
        digits are 0, the same, or random; the highest digit moves the sum modulo 2^17 as far as it can."""
        p, rnd = self.params, random.Random(self.params.p)
        n, M, rest = p.digits, 1 << p.n, DIGIT - corner_bits(p.digits)
        highest, by = DIGIT * (n - 1), pow(p.p, -1, 1 << DIGIT)

        def over(q: int) -> int:
            return -bound_of_sum(q, -q * p.p % M, p.p, n) & MASK

        places = [(k, top) for k in range(n - 1) for top in range(1 << DIGIT - rest)]
        for k, top in rnd.sample(places, min(EDGES // n, len(places))):
            others = [[x] * (n - 1) for x in (0, top)] + [rnd.choices(range(1 << DIGIT - rest), k=n - 1) for _ in "12"]
            for best, low in ((min, 0), (max, (1 << rest) - 1)):
                found = []
                for tops in others:
                    lower = sum((x << rest | low) << DIGIT * j for j, x in enumerate([*tops[:k], top, *tops[k + 1 :]]))
                    wanted = ((1 << j) - 1 ^ (MASK if best is max else 0) for j in range(0, DIGIT, 2))
                    found += [lower | ((over(lower) - x) * by & MASK) << highest for x in wanted]
                yield best(found, key=over)

    def facts(self) -> list[tuple[str, str]]:
        p = self.params
        n = p.digits
        bits = f" and {p.above} bit{'s' * (p.above > 1)} above them" if p.above else ""
        return [
            ("r", "floor(x y / 2^17) + t P, t = x y mod 2^17"),
            ("v", f"(r + q p) / 2^{p.n}, q = r f mod 2^{p.n}"),
            ("R", f"2^{p.r}"),
            ("digits", f"n = {n} of {DIGIT} bits{bits}"),
            ("slots", f"x y: {karatsuba.slots(n)}; r f and q p: {n * (n - 1) // 2} pairs on {n // 2}, "
             f"{2 * n} squares on 2; {n} for a carry on 1, {n} for t P on 1"),
            ("operands", f"below 2^{self.operand_bits}, about {float(self.bounds[0]):.6g} p"),
            *([("modulus", f"loaded: {len(load.words)} words, {load.cycles} cycles")] if (load := self.load) else []),
        ]  # fmt: skip


class Machine(QuotientMachine):
    """The product, the first step, and both half products, with the multiplier interface. Stream k accepts the values
    of all tables while no product is under way."""

    _params: MontgomeryParams
    _tables: Tables

    def __init__(self, params: MontgomeryParams, *, binary: bool = False) -> None:
        super().__init__(params, binary=binary, k=params.word if params.loadable else 0)

    @property
    def _built_in(self) -> int:
        return 0 if self._params.loadable else super()._built_in

    def connect(self, m: Module, control: Control) -> tuple[Value, Value]:
        digit, permitted = super().connect(m, control)
        return digit, permitted & self._loaded & ~self.k_valid if self._params.loadable else permitted

    def _made_tables(self, m: Module, control: Control, at: Callable[..., Value]) -> Tables:
        """The tables and, if p is loaded, what loads them."""
        p, n = self._params, self._params.digits
        if not p.loadable:
            return Tables(m, n, at, p.tables)
        last = len(p.tables) - 1
        filling, may, self._loaded = Signal(name="filling"), Signal(name="may_load"), Signal(name="loaded")
        digit, table = Signal(range(n), name="loading_digit"), Signal(range(last + 1), name="loading_table")
        take = self.k_valid & self.k_ready
        m.d.sync += may.eq(control.at(-1) & control.idle)
        m.d.comb += self.k_ready.eq(filling | may)
        with m.If(take):
            m.d.sync += [digit.eq(digit + 1), filling.eq(1), self._loaded.eq(0)]
            with m.If(digit == n - 1):
                m.d.sync += [digit.eq(0), table.eq(table + 1)]
                with m.If(table == last):
                    m.d.sync += [table.eq(0), filling.eq(0), self._loaded.eq(1)]
        return LoadedTables(m, n, at, p.tables, take=take, table=table, digit=digit, word=self.k_m)

    def _above(self, number: int, name: str) -> int | Value:
        """The bits of p or P above the digits of this table."""
        p = self._params
        if not isinstance(self._tables, LoadedTables):
            return number >> p.n
        return self._tables.highest(name, p.beyond) if p.beyond else 0

    def _modulus(self, m: Module, subtract: ConditionalSubtract) -> None:
        if isinstance(tables := self._tables, LoadedTables):
            place, word = tables.port(MODULUS_DIGIT)
            m.d.comb += [
                subtract.w_enable.eq(tables.written(MODULUS_DIGIT)), subtract.w_digit.eq(place), subtract.w_d.eq(word),
            ]  # fmt: skip

    def product(self, m: Module, control: Control) -> tuple[Value, Value]:
        p, n, d = self._params, self._params.digits, digits_at(self._params.digits)
        low, high = super().product(m, control)
        at = self._strobes(control)
        self._tables = tables = self._made_tables(m, control, at)
        lines = DelayLines(m, n, name="first")
        t, kept = (Signal(DIGIT, name=name, reset_less=True) for name in ("t", "t_kept"))
        begins = at(d)
        with m.If(begins):
            m.d.sync += [t.eq(low), kept.eq(t)]

        # ---- digits of r: those of T from the second on, and of t P
        tile = one_tile(m, t, tables.register(STEP_DIGIT), TILE, "first_step")
        number = Signal(len(high) + 1, name="T_high")
        m.d.comb += number.eq(lines.line(high, n, name="high_waited") + self._halves.carry)
        entering = lines.line(Mux(begins, number, low), TILE + 1, name="T_digit")
        before = Signal(2 * DIGIT + 1, name="r_before", reset_less=True)
        sum_ = Signal(2 * DIGIT + 2, name="r_sum")
        carry = Signal(len(sum_) - DIGIT, name="r_carry", reset_less=True)
        m.d.comb += sum_.eq(before + carry)
        m.d.sync += [before.eq(later(m, tile, "t_P") + entering), carry.eq(sum_ >> DIGIT)]
        over = Signal(len(carry), name="r_over", reset_less=True)
        with m.If(at(d + n + STEP - 2)):
            m.d.sync += [carry.eq(0), over.eq(sum_ >> DIGIT)]

        # ---- the digits beyond wait for those of v
        waiting = lines.line(Mux(begins, 0, number), STEP - 3, name="T_beyond")
        above = [*multiples(kept, self._above(p.P, STEP_DIGIT))]
        if above:
            beyond = [(Cat(Const(0, k), value), 1, TOP_LEVELS) for k, value in above]
            waiting = waiting + Mux(at(d + n + STEP - 2), tree(m, beyond, "t_top"), 0)
        waiting = later(m, waiting, "T_beyond_last")
        self._added = Signal(max(len(waiting), len(over)) + 1, name="added_beyond", reset_less=True)
        m.d.sync += self._added.eq(waiting + Mux(at(d + n + STEP - 1), over, 0))
        begun = p.begun
        waits = begun + second(n) + read(n) - 1 - (d + n + STEP)
        added = DelayLines(m, waits, name="beyond").line(self._added, waits, name="beyond_waited")
        inside = Module()
        m.submodules.constants = HalfProducts(inside, n)
        self._constants = Complement(
            inside, later(m, sum_[:DIGIT], "r"), n, self._above(p.p, MODULUS_DIGIT), added,
            above_v=p.above, table=tables.register, at=lambda *cycles: at(*(begun + c for c in cycles)),
        )  # fmt: skip
        return self._constants.v, self._constants.v

    def product_register(self, operation: Operation) -> Any:
        part = self._constants
        registers: dict[Any, Any] = {
            Kind.STEP: part.taps[0][0], Kind.ADDED: self._added, Kind.SQUARE_A: part.squares[0],
            Kind.SQUARE_Q: part.squares[1], Kind.LOW: part.in_order[0], Kind.HIGH: part.in_order[1],
            Kind.QUOTIENT: part.q, Kind.CARRY: part.carry, Kind.OUT: part.v,
        }  # fmt: skip
        return registers[operation.kind] if operation.kind in registers else super().product_register(operation)


def fit(p: int, *, loadable: bool, spare: int) -> KaratsubaMontgomery:
    """The design for p, which is built in, or ``loadable``. ``spare``: bits of operands above those of p at least.
    Raises UnsupportedError for a p that is too short or too long."""
    k = p.bit_length()
    least, most = DIGIT * (DIGITS_MIN - 2) + 1, DIGIT * DIGITS_MOST
    if not least <= k <= most:
        raise UnsupportedError(f"the modulus must have {least} to {most} bits, this one has {k}")
    n = digits_for(k)
    params = MontgomeryParams(k, (1 << k) - p, n, 1, interval(n), max(0, k + spare - DIGIT * n), loadable)
    return KaratsubaMontgomery(p, params, {"loadable": loadable, "spare": spare})


DESIGNS = (
    Design(
        name="karatsuba-montgomery", page="karatsuba-montgomery",
        title="Montgomery multiplication by Karatsuba's trick for all pairs of digits, for any odd modulus",
        source=Source(
            "P. L. Montgomery; A. A. Karatsuba, Y. P. Ofman; H. Orup",
            "Modular Multiplication Without Trial Division; Multiplication of Multidigit Numbers on Automata; "
            "Simplifying Quotient Determination in High-Radix Modular Multiplication",
            "Mathematics of Computation 44; Soviet Physics Doklady 7; ARITH", 1985,
            "for method, product and first step; the half products and the machine are ours",
        ),
        needs="any odd modulus of 52 bits or more",
        settings=(LOADABLE, SPARE),
        solve=fit,
    ),
)  # fmt: skip
