# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Redundant radix-2^r numbers, whose digits of r + 2 bits make sums carry-free, and Montgomery multiplication on them.

Source: K. Nakano, K. Kawakami, K. Shigemoto: RSA Encryption and Decryption using the Redundant Number System on the
        FPGA. IPDPS Workshops, 2009, Sections 2 to 6.

A number is a tuple of digits X_0, X_1, ... with value sum X_i 2^(r i). The low r bits of a digit are its principal
bits, the two above them its redundant bits. `Radix` has every formula and evaluates it on digits or on the largest
values of digits; the latter proves that no sum exceeds r + 2 bits.

The paper's rule against overflow (add -M if the redundant bits of the highest digit are not zero) is wrong;
`printed_product` implements it for the erratum that refutes it. `Montgomery` runs one more iteration instead: with
R = 2^(r n) >= 4 M, operands below 2 M give results below 2 M, without any subtraction. With ``feedback`` it runs d
iterations and cancels two more bits in the cycle in which the paper adds -M: R = 2^(r d + 2) >= 4 M.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

Number = tuple[int, ...]

MULTIPLIERS, TABLE, HALF_TABLES = "multipliers", "table", "half tables"


def value(x: Sequence[int], r: int) -> int:
    """The value of the digits: sum x_i 2^(r i)."""
    return sum(digit << (r * i) for i, digit in enumerate(x))


def digits(x: int, r: int, d: int) -> Number:
    """``x`` in ``d`` digits; from the highest digit on, each is as large as possible. Lower digits have nonzero
    redundant bits only if the highest digit is full. Raises ValueError if x is negative or does not fit."""
    out, left = [], x
    for i in reversed(range(d)):
        out.append(min(left >> (r * i), (1 << (r + 2)) - 1))
        left -= out[-1] << (r * i)
    if x < 0 or left:
        raise ValueError(f"{x} does not fit in {d} digits of {r + 2} bits each")
    return tuple(reversed(out))


def _lent(x: Sequence[int], r: int, choose: Callable[[int], int]) -> Number:
    """The same number after each digit, from the highest on, lent ``choose(most)`` <= most to the next lower digit."""
    out = list(x)
    for i in reversed(range(1, len(out))):
        lent = choose(min(((1 << (r + 2)) - 1 - out[i - 1]) >> r, out[i]))
        out[i] -= lent
        out[i - 1] += lent << r
    return tuple(out)


def spread(x: Sequence[int], r: int, rnd: random.Random) -> Number:
    """A random representation of the same number: digits lend to the digits below them."""
    return _lent(x, r, lambda most: rnd.randint(0, most))


def largest_spread(x: Sequence[int], r: int) -> Number:
    """The representation in which each digit, from the highest on, lends as much as the next lower digit can take."""
    return _lent(x, r, lambda most: most)


@dataclass(frozen=True)
class Radix:
    """The paper's digit formulas for radix 2^r. With ``largest`` they map the largest values of digits to the largest
    values of the result's digits: the formulas are monotonic, so these are upper bounds."""

    r: int
    largest: bool = False

    def low(self, x: int) -> int:
        """Principal bits [r-1, 0]."""
        mask = (1 << self.r) - 1
        return min(x, mask) if self.largest else x & mask

    def high(self, x: int) -> int:
        """The bits above the principal bits."""
        return x >> self.r

    def fits(self, x: Sequence[int]) -> bool:
        """Whether every digit has at most r + 2 bits."""
        return all(digit >> (self.r + 2) == 0 for digit in x)

    @property
    def full(self) -> int:
        """The largest digit."""
        return (1 << (self.r + 2)) - 1

    def add(self, x: Sequence[int], y: Sequence[int]) -> Number:
        """Lemma 1: x + y in d + 1 digits; the highest consists of redundant bits only. Fits for r >= 2."""
        places = zip((*x, 0), (*y, 0), (0, *x), (0, *y), strict=True)
        return tuple(self.low(a) + self.low(b) + self.high(u) + self.high(v) for a, b, u, v in places)

    def scale(self, x: Sequence[int], y: int) -> Number:
        """Lemma 2: x times one digit, d + 2 digits. Fits for r >= 3."""
        return self.product_sum(x, y, (0,) * (len(x) + 1))

    def product_sum(self, x: Sequence[int], y: int, c: Sequence[int]) -> Number:
        """Lemma 3: x y + c for c of d + 1 digits, d + 2 digits. Fits for r >= 4 (the paper says 5)."""
        low, high, p = self.low, self.high, [0, 0, *(digit * y for digit in x), 0, 0]
        places = zip(p[:-2], p[1:-1], p[2:], (0, *c), (*c, 0), strict=True)
        return tuple(high(high(u)) + low(high(v)) + low(w) + high(below) + low(own) for u, v, w, below, own in places)

    def product(self, x: Sequence[int], y: Sequence[int]) -> Number:
        """Lemma 4: x y, digit of y by digit of y, 2 d + 1 digits (the highest is zero unless x or y overflows)."""
        c: Number = (0,) * (len(x) + 1)
        out = []
        for digit in y:
            lowest, *rest = self.product_sum(x, digit, c)
            out.append(lowest)
            c = tuple(rest)
        return (*out, *c)

    def three(self, x: Sequence[int], y: Sequence[int], c: Sequence[int], carry: int) -> Number:
        """ADD(2, 2, 2, r, r, r) in every place: x + y + c from digit 1 on, for a digit 0 that is zero modulo 2^r.
        ``carry``, the sum of the principal parts of digit 0 divided by 2^r, is 0, 1 or 2 and enters digit 1."""
        size = max(map(len, (x, y, c)))
        numbers = [(*n, *(0,) * (size - len(n))) for n in (x, y, c)]
        out = [sum(self.low(n[i]) + self.high(n[i - 1]) for n in numbers) for i in range(1, size)]
        out[0] += carry
        out[-1] += sum(self.high(n[-1]) << self.r for n in numbers)
        return tuple(out)

    def reduce(self, t: Sequence[int], u: Sequence[int], v: Sequence[int], carry: int) -> Number:
        """(t + u + v) / 2^r for redundant t of d + 2 digits and u, v of d + 1 digits without redundant bits. The
        principal parts of the digits 0 sum to ``carry`` 2^r. Fits for r >= 2: no digit exceeds 3 2^r."""
        u, v = (*u, 0), (*v, 0)
        out = [self.low(t[i]) + self.high(t[i - 1]) + u[i] + v[i] for i in range(1, len(t))]
        out[0] += carry
        out[-1] += self.high(t[-1]) << self.r
        return tuple(out)


def least_r(fits: Callable[[int], bool], until: int = 20) -> int:
    """The least r such that ``fits`` holds from r up to ``until``."""
    return max(r for r in range(1, until) if not fits(r)) + 1


@dataclass(frozen=True)
class Montgomery:
    """Montgomery multiplication modulo an odd M, with one digit of y in each iteration.

    ``quotient``: how k M is computed from z, the low r bits that it must cancel: ``multipliers`` (Lemma 6, Theorem 9),
    ``table`` (f of Lemma 7) or ``half tables`` (g and h of Lemma 8, Theorem 10, corrected). Operands below ``operand``
    M give results below ``operand`` M. ``least``: the least number of iterations. All sizes follow from ``bits``, the
    length of the largest modulus of the machine (default: the length of M). ``feedback``: d iterations, then `last`,
    which cancels ``rest`` more bits. Raises ValueError for an M that is even, below 3 or longer than ``bits``, an odd r
    with half tables, an r below 4, an ``operand`` below 2, and one above 2 with ``feedback``.
    """

    M: int
    r: int
    quotient: str = MULTIPLIERS
    operand: int = 2
    least: int = 1
    bits: int = 0
    feedback: bool = False

    def __post_init__(self) -> None:
        if self.M < 3 or self.M % 2 == 0:
            raise ValueError(f"the modulus must be odd and at least 3, got {self.M}")
        if self.r < 4:
            raise ValueError(f"r must be at least 4, so that r + 2 bits hold every product sum, got r = {self.r}")
        if self.quotient == HALF_TABLES and self.r % 2:
            raise ValueError(f"half tables need an even r, got r = {self.r}")
        if self.operand < 2:
            raise ValueError(f"operand must be at least 2, because results are not below M, got {self.operand}")
        if self.feedback and self.operand > 2:
            raise ValueError(f"with feedback, operand must be 2, got {self.operand}")
        if self.bits and self.M >> self.bits:
            raise ValueError(f"the modulus must be below 2^{self.bits}, got one of {self.M.bit_length()} bits")

    @cached_property
    def top(self) -> int:
        """The largest modulus of ``bits`` bits."""
        return (1 << (self.bits or self.M.bit_length())) - 1

    @cached_property
    def modulus_digits(self) -> Number:
        """M in base 2^r, with as many digits as the longest modulus has."""
        e = -(-self.top.bit_length() // self.r)
        return tuple(self.M >> (self.r * i) & (1 << self.r) - 1 for i in range(e))

    @cached_property
    def d(self) -> int:
        """Digits of a number: the fewest that hold the operands and k M / 2^r."""
        bits = max(self.top.bit_length(), (self.operand * self.top - 1).bit_length() - 2)
        return -(-bits // self.r)

    @cached_property
    def n(self) -> int:
        """Iterations: the fewest with operand^2 M / 2^(r n) + 1 <= operand. For operands below 2 M, 2^(r n) >= 4 M:
        d + 1 where r d has fewer than two bits to spare. With ``feedback`` d."""
        return max(self.least, self.d if self.feedback else -(-self._needed // self.r))

    @cached_property
    def _needed(self) -> int:
        """Least exponent e with operand^2 M / 2^e + 1 <= operand."""
        return (-(-(self.operand**2) * self.top // (self.operand - 1)) - 1).bit_length()

    @cached_property
    def rest(self) -> int:
        """Bits that `last` cancels after the iterations: 0 to 2, 0 without ``feedback``."""
        return max(0, self._needed - self.r * self.n)

    @property
    def R(self) -> int:
        """2^(r n + rest)."""
        return 1 << (self.r * self.n + self.rest)

    @cached_property
    def inverse(self) -> int:
        """-M^-1 mod 2^r."""
        return -pow(self.M, -1, 1 << self.r) % (1 << self.r)

    @property
    def half(self) -> int:
        """Bits of half a digit."""
        return self.r // 2

    def k(self, z: int) -> int:
        """The quotient digit: z + k M = 0 (mod 2^r)."""
        return z * self.inverse % (1 << self.r)

    def multiple(self, z: int, bits: int) -> int:
        """The multiple of M below 2^bits M that cancels the ``bits`` bits of z: f for bits = r, h for bits = r / 2."""
        return (z * self.inverse % (1 << bits)) * self.M

    def words(self, bits: int) -> list[int]:
        """Contents of a table of multiples: word z is multiple(z) without its low ``bits`` bits, which are -z."""
        return [self.multiple(z, bits) >> bits for z in range(1 << bits)]

    def g(self, z: int) -> int:
        """Addend to the upper half when the lower half z is cancelled: bits [r-1, r/2] of h(z), plus 1 unless z is
        0."""
        mask = (1 << self.half) - 1
        return (self.multiple(z & mask, self.half) >> self.half & mask) + (z & mask != 0)

    def upper(self, z: int) -> int:
        """The upper half of z after the lower half is cancelled."""
        return ((z >> self.half) + self.g(z)) % (1 << self.half)

    def addends(self, z: int) -> tuple[int, int]:
        """u, v with u + v = k M, as ``quotient`` computes them; their digits have no redundant bits."""
        r, mask = self.r, (1 << self.r) - 1
        if self.quotient == TABLE:
            return self.multiple(z, r), 0
        if self.quotient == HALF_TABLES:
            low = self.multiple(z % (1 << self.half), self.half)
            return low, self.multiple(self.upper(z), self.half) << self.half
        products = [digit * self.k(z) for digit in self.modulus_digits]
        return value([p & mask for p in products], r), value([p >> r for p in products], r) << r

    def iterate(self, c: Sequence[int], x: Sequence[int], y: int) -> tuple[Number, Number]:
        """One iteration: t = x y + c and (t + k M) / 2^r, both redundant. ``c`` has d + 1 digits, ``x`` d."""
        arithmetic = Radix(self.r)
        t = arithmetic.product_sum(x, y, c)
        z = arithmetic.low(t[0])
        u, v = (digits(a, self.r, self.d + 1) for a in self.addends(z))
        carry, rest = divmod(z + u[0] + v[0], 1 << self.r)
        assert rest == 0 and carry <= 2, "the digit does not cancel"
        return t, arithmetic.reduce(t, u, v, carry)

    def factor_of_last(self, c: int) -> int:
        """The factor q of M in `last`: c + q M = 0 (mod 2^rest)."""
        return c * self.inverse % (1 << self.rest)

    def last(self, c: Sequence[int]) -> Number:
        """(c + q M) / 2^rest in d + 1 digits: each digit gives its lowest ``rest`` bits to the next lower one. q M is
        added as M for bit 0 of q and 2 M for bit 1, so no multiple needs a carry."""
        s, q = self.rest, self.factor_of_last(c[0])
        added = [digits((q & bit) * self.M, self.r, self.d + 1) for bit in (1, 2)]
        summed = [sum(place) for place in zip(c, *added, strict=True)]
        low = [*(x & (1 << s) - 1 for x in summed[1:]), 0]
        return tuple((x >> s) + (above << self.r >> s) for x, above in zip(summed, low, strict=True))

    def last_limits(self) -> Number:
        """Largest digits of `last`."""
        s, plain = self.rest, (1 << self.r) - 1
        _, c = self.digit_limits()
        largest = [(x + min(s, 2) * plain >> s) + ((1 << s) - 1 << self.r >> s) for x in c]
        return (*largest[:-1], (c[-1] + 2 * s) >> s)

    def steps(self, x: Sequence[int], y: Sequence[int]) -> Iterator[tuple[Number, Number]]:
        """t and c of each of the n iterations, for x and y of d digits each; the last c is that of `last`."""
        c: Number = (0,) * (self.d + 1)
        for i in range(self.n):
            t, c = self.iterate(c, x, y[i] if i < self.d else 0)
            yield t, self.last(c) if i == self.n - 1 else c

    def multiply(self, x: Sequence[int], y: Sequence[int]) -> Number:
        """x y / R modulo M in d digits, below ``operand`` M if x and y are, in any representation."""
        *_, (_, c) = self.steps(x, y)
        return self.joined(c)

    def joined(self, c: Sequence[int]) -> Number:
        """A number below 2^(r d + 2) of d + 1 digits in d digits: the highest digit becomes redundant bits."""
        return (*c[: self.d - 1], c[self.d - 1] + (c[self.d] << self.r))

    def plain_digit(self, y: int, i: int) -> int:
        """Digit i of y in binary: r bits; with ``feedback`` the highest of d digits has what is left."""
        if self.feedback and i >= self.d - 1:
            return y >> (self.r * i) if i == self.d - 1 else 0
        return y >> (self.r * i) & (1 << self.r) - 1

    def plain_steps(self, x: int, y: int) -> Iterator[tuple[int, int]]:
        """t and c of each of the n iterations in binary, for the digits `plain_digit` of y; the last c as in `last`."""
        c = 0
        for i in range(self.n):
            t = c + x * self.plain_digit(y, i)
            u, v = self.addends(t % (1 << self.r))
            c = (t + u + v) >> self.r
            yield t, (c + self.factor_of_last(c) * self.M) >> self.rest if i == self.n - 1 else c

    def plain(self, x: int, y: int) -> int:
        """x y / R modulo M without redundancy, below ``operand`` M if x and y are."""
        *_, (_, c) = self.plain_steps(x, y)
        return c

    def result_below(self, product: Fraction) -> Fraction:
        """Exclusive bound of the result as a multiple of M, for an operand product below ``product`` M^2."""
        return product * self.M / self.R + 1

    def sum_limit(self, *, redundant: bool = True) -> int:
        """Largest c of any iteration, over all moduli of ``bits`` bits, all x and all digits of y."""
        plain = (1 << self.r) - 1
        digit, x = plain, (1 << (self.operand * self.top - 1).bit_length()) - 1
        if self.feedback:
            digit = max(plain, x >> (self.r * (self.d - 1)))
        if redundant:
            digit = 4 * plain + 3
            x = value((digit,) * self.d, self.r)
        c = 0
        for _ in range(self.n):
            c = (c + x * digit + plain * self.top) >> self.r
        return c

    def digit_limits(self) -> tuple[Number, Number]:
        """Largest digits of t and c for any digits of x and y: the formulas evaluated on largest values."""
        arithmetic = Radix(self.r, largest=True)
        d, full, plain = self.d, arithmetic.full, (1 << self.r) - 1
        c: Number = (0,) * (d + 1)
        while True:
            t = arithmetic.product_sum((full,) * d, full, c)
            following = arithmetic.reduce(t, (plain,) * (d + 1), (plain,) * (d + 1), 2)
            following = (*following[:-1], min(following[-1], self.sum_limit() >> (self.r * d)))
            if following == c:
                return t, c
            c = tuple(map(max, c, following))


def theorem_9(m: Montgomery, c: Sequence[int], x: Sequence[int], y: int) -> Number:
    """One iteration with the adders of Theorem 9: X y and k M by Lemma 2, then one ADD(2, 2, 2, r, r, r) for each
    digit.

    The paper omits the least significant digit because it is zero. Its principal parts sum to 0, 2^r or 2 2^r, so a
    carry must enter digit 1; here it does.
    """
    arithmetic = Radix(m.r)
    xy = arithmetic.scale(x, y)
    z = (arithmetic.low(xy[0]) + arithmetic.low(c[0])) % (1 << m.r)
    km = arithmetic.scale(tuple(m.M >> (m.r * i) & (1 << m.r) - 1 for i in range(m.d)), m.k(z))
    carry = sum(arithmetic.low(n[0]) for n in (xy, km, c)) >> m.r
    return arithmetic.three(xy, km, c, carry)


def theorem_10(m: Montgomery, c: Sequence[int], x: Sequence[int], y: int) -> Number:
    """One iteration with the adders of Theorem 10: X y + c by Lemma 3, then the two words of h (half tables)."""
    return m.iterate(c, x, y)[1]


def printed_product(
    m: Montgomery,
    x: Sequence[int],
    y: Sequence[int],
    iterate: Callable[[Montgomery, Sequence[int], Sequence[int], int], Number] = theorem_9,
) -> Number:
    """Section 6 as printed: d iterations, then -M is added if the redundant bits of the highest digit are not zero.

    -M is 2^(d r) - M; the paper says that the redundant bits of the highest digit are then 00. ``iterate``: the adders,
    `theorem_9` or `theorem_10`. The rule is right for M <= 2^(d r) / 4, where it never adds. Above it can fail: a
    number can be 2^(d r) or more while those bits are zero, and the product of two such numbers can set them to 10,
    where -M would have to be added twice.
    """
    c: Number = (0,) * (m.d + 1)
    for digit in y:
        c = iterate(m, c, x, digit)
    out = m.joined(c)
    if out[-1] >> m.r:
        minus = digits((1 << (m.r * m.d)) - m.M, m.r, m.d)
        added = Radix(m.r).add(out, minus)[: m.d]
        out = (*added[:-1], added[-1] & (1 << m.r) - 1)
    return out


def multiplications(exponent: int, bits: int, *, skip_one: bool = False) -> int:
    """Montgomery multiplications of Section 4's algorithm (Lemma 5) for a scan over ``bits`` bits of the exponent. One
    converts P, one converts C back; each bit squares, each 1 multiplies. ``skip_one`` omits squarings of C = 1."""
    squarings = products = 0
    one = True
    for i in reversed(range(bits)):
        squarings += not (skip_one and one)
        if exponent >> i & 1:
            products += 1
            one = False
    return squarings + products + 2


def exponentiation_cycles(multiplied: Fraction | int, d: int, *, redundant: bool = True) -> Fraction:
    """Worst-case cycles of Section 6 for ``multiplied`` multiplications of d + 1 cycles each.

    Redundant numbers are then converted to binary by adding zero d times. If the number is not below M, -M is added,
    and zero again d times.
    """
    return Fraction(multiplied) * (d + 1) + (d + (1 + d) if redundant else 0)
