# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Modular exponentiation as programmes over numbered slots, for any multiplier with a contract.

A programme is data: steps before, in and after a loop, each a product of two slots. A step may pick a slot by a digit
of the exponent; whether it is done never depends on one. So the fixed window and the ladder do the same products for
every exponent of a given length. ``left_to_right`` is made for one exponent, for those that need not be secret.

    f = factor of the multiplier, R = 1 / f mod p
    into the domain      base * (R^2 mod p) * f = base R            not where f = 1
    out of it            x R * 1 * f = x
    at the end           p is subtracted as often as the result's bound asks for

Sources: fixed window and left-to-right binary, A. Menezes, P. van Oorschot, S. Vanstone: Handbook of Applied
Cryptography, CRC Press, 1996, 14.82 and 14.79; ladder, P. L. Montgomery: Speeding the Pollard and elliptic curve
methods of factorization, Mathematics of Computation 48(177), 1987, 10.3.1; left-to-right with R mod p and R^2 mod p
given, K. Nakano, K. Kawakami, K. Shigemoto: RSA Encryption and Decryption using the Redundant Number System on the
FPGA, Section 4 (which calls it right-to-left).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property

from modmill.contract import Contract, Refusal
from modmill.numbers.shown import shortened
from modmill.slots import Bounded, Operation, bounded, run

ENTRY, EITHER = "entry", "either"
"""What a step picks: ``ENTRY`` slot b + digit as second operand; ``EITHER`` the square of slot a where the digit is 1,
of slot b where it is 0."""

STARTS = ("one", "skip", "base")
WINDOW_MAX = 8
_ROUNDING = 1 << 64


@dataclass(frozen=True)
class Step:
    """slot[destination] = slot[a] * slot[b] * factor; ``advance``: the next step sees the next digit."""

    destination: int
    a: int
    b: int
    pick: str = ""
    advance: bool = False

    def reads(self, window: int) -> range | tuple[int, ...]:
        """Slots that it reads for some digit of ``window`` bits."""
        entries = range(self.b, self.b + (1 << window)) if self.pick == ENTRY else (self.b,)
        return (self.a, *entries)

    def operation(self, digit: int) -> Operation:
        """The operation that it is for one digit."""
        if self.pick == EITHER:
            slot = self.a if digit else self.b
            return Operation("mul", self.destination, slot, slot)
        return Operation("mul", self.destination, self.a, self.b + (digit if self.pick == ENTRY else 0))


@dataclass(frozen=True)
class Programme:
    """An exponentiation.

    ``loads``: (slot, number) with the numbers ``one`` = 1, ``square`` = R^2 mod p, ``radix`` = R mod p and ``base``.
    ``result``: the slot that holds the power at the end. ``window``: bits of a digit, 0 without digits. ``each``:
    digits that one pass of the loop uses up. ``gray``: the digits are those of the Gray code of twice the exponent.
    ``exponent``: the only one it serves, where it has no digits.
    """

    name: str
    loads: tuple[tuple[int, str], ...]
    before: tuple[Step, ...]
    loop: tuple[Step, ...]
    after: tuple[Step, ...]
    result: int
    window: int = 0
    each: int = 1
    gray: bool = False
    exponent: int = 0

    @cached_property
    def slots(self) -> int:
        """Number of slots."""
        steps = (*self.before, *self.loop, *self.after)
        return 1 + max(
            self.result, *(slot for slot, _ in self.loads), *(s.destination for s in steps),
            *(slot for s in steps for slot in s.reads(self.window)),
        )  # fmt: skip

    @property
    def uniform(self) -> bool:
        """Whether the products done are the same for every exponent of a length."""
        return self.window > 0

    def passes(self, bits: int) -> int:
        """Passes of the loop for exponents of ``bits`` bits."""
        if not self.window:
            return 0
        digits = max(2, -(-bits // self.window))
        return -(-digits // self.each) if self.gray else digits - 1

    def digit_count(self, bits: int) -> int:
        """Digits of exponents of ``bits`` bits."""
        return self.each * self.passes(bits) + 1 if self.window else 0

    def products(self, bits: int) -> int:
        """Products done for exponents of ``bits`` bits."""
        return len(self.before) + self.passes(bits) * len(self.loop) + len(self.after)

    def digits(self, exponent: int, bits: int) -> tuple[int, ...]:
        """Digits of the exponent, the first used first. Raises Refusal where it is longer than ``bits`` bits."""
        if not 0 <= exponent < 1 << bits:
            raise Refusal(f"an exponent of {exponent.bit_length()} bits, but the engine is set to {bits} bits")
        if not self.window:
            if exponent != self.exponent:
                raise Refusal(f"this programme raises to the power {self.exponent}, not {exponent}")
            return ()
        value = exponent ^ exponent << 1 if self.gray else exponent
        count, mask = self.digit_count(bits), (1 << self.window) - 1
        return tuple(value >> (self.window * k) & mask for k in reversed(range(count)))

    def steps(self, passes: int) -> Iterator[Step]:
        """All steps, in order."""
        yield from self.before
        for _ in range(passes):
            yield from self.loop
        yield from self.after

    def operations(self, digits: Sequence[int], passes: int) -> Iterator[Operation]:
        """Loads, products and the store for these digits."""
        for number, (slot, _) in enumerate(self.loads):
            yield Operation("load", slot, number)
        following = iter(digits)
        digit = next(following, 0)
        for step in self.steps(passes):
            yield step.operation(digit)
            if step.advance:
                digit = next(following, 0)
        yield Operation("store", 0, self.result)


def fixed_window(window: int, converted: bool = True) -> Programme:
    """2^w-ary exponentiation with ``window`` = w bits a digit.

    A table of base^0 ... base^(2^w - 1), then for every digit w squarings and one product by the entry that the digit
    picks, the entry 1 included.

    ``converted``: into the multiplier's domain and out of it, for a factor other than 1.

    Products for n digits: (2 into the domain, or 1) + 2^w - 2 + 1 + (n - 1)(w + 1) + (1 out of it).
    """
    if not 1 <= window <= WINDOW_MAX:
        raise Refusal(f"a window has 1 to {WINDOW_MAX} bits, not {window}")
    if converted:
        one, square, base, power, table = range(5)
        loads: tuple[tuple[int, str], ...] = ((one, "one"), (square, "square"), (base, "base"))
        before = [Step(table, one, square), Step(table + 1, base, square)]
        after: tuple[Step, ...] = (Step(power, power, one),)
    else:
        table, power, one = 0, 1 << window, (1 << window) + 1
        loads, before, after = ((one, "one"), (table + 1, "base")), [Step(table, one, one)], ()
    for k in range(2, 1 << window):
        half = table + k // 2
        before.append(Step(table + k, table + k - 1, table + 1) if k % 2 else Step(table + k, half, half))
    before.append(Step(power, table, table, ENTRY, advance=True))
    loop = [*[Step(power, power, power)] * window, Step(power, power, table, ENTRY, advance=True)]
    return Programme(f"window-{window}", loads, tuple(before), tuple(loop), after, power, window)


def ladder(converted: bool = True) -> Programme:
    """Montgomery ladder: x^k and x^(k+1) side by side, two products a bit, one of them a square.

    The product of the two goes to one slot, the square to another, and which is which follows from whether the bit
    differs from the one before: a digit of the Gray code. A pass does two bits, so that the pair returns to its slots.
    The square reads either slot (EITHER). The two products of a bit do not need one another.

    Products for n bits, n even: 2 n + 1 + (2 into the domain, or 1); an odd length is filled up with a zero.
    """
    if converted:
        one, square, base, second, first, fourth, third = range(7)
        loads: tuple[tuple[int, str], ...] = ((one, "one"), (square, "square"), (base, "base"))
    else:
        one, second, first, fourth, third, base, square = range(7)
        loads = ((one, "one"), (first, "base"))
    loop = (
        Step(third, first, second), Step(fourth, first, second, EITHER, advance=True),
        Step(first, third, fourth), Step(second, third, fourth, EITHER, advance=True),
    )  # fmt: skip
    before = (Step(first, base, square), Step(second, one, square)) if converted else (Step(second, one, one),)
    after = (Step(third, one, second, ENTRY, advance=True),)  # the power stands in ``first`` where the last bit is 1
    return Programme("ladder", loads, before, loop, after, third, window=1, each=2, gray=True)


def left_to_right(exponent: int, *, start: str = "base", bits: int = 0, converted: bool = True) -> Programme:
    """Square and multiply for one exponent, which shows in the number of products.

    ``start``: ``one``, the algorithm of the paper's Section 4, which squares 1 for leading zeros of ``bits`` bits too
    and takes R mod p as a fourth number; ``skip``, the same without squares of 1; ``base``, begins with the base.
    Products for an exponent of n bits with h ones and a factor other than 1: bits + h + 2, n + h + 1, n + h.
    """
    if start not in STARTS:
        raise Refusal(f"start is one of {', '.join(STARTS)}, not {shortened(start)}")
    bits = bits or exponent.bit_length()
    if exponent < 1 or exponent.bit_length() > bits:
        raise Refusal(f"the exponent must be at least 1 and have at most {bits} bits, got {exponent}")
    one, square, base, x, power, radix = range(6)
    loads = [(base if converted else x, "base")]
    before = []
    if converted:
        loads += [(one, "one"), (square, "square")]
        before.append(Step(x, base, square))
    held, done = x, exponent.bit_length() - 1
    if start != "base":
        loads.append((radix, "radix" if converted else "one"))
        held, done = radix, bits
    for k in reversed(range(done)):
        if held != radix or start == "one":
            before.append(Step(power, held, held))
            held = power
        if exponent >> k & 1:
            before.append(Step(power, held, x))
            held = power
    if converted:
        before.append(Step(power, held, one))
        held = power
    name = f"power-{exponent}" if exponent < 1 << 32 else f"power-of-{exponent.bit_length()}-bits"
    return Programme(name, tuple(loads), tuple(before), (), (), held, exponent=exponent)


# ---------------------------------------------------------------------------------------------- bounds


class _Rounded(Contract):
    """A contract whose bounds are rounded up to multiples of 2^-64, so that thousands of products keep them short."""

    @classmethod
    def of(cls, contract: Contract) -> _Rounded:
        """The contract with its gain rounded down, which lets bounds grow."""
        values = {f.name: getattr(contract, f.name) for f in fields(Contract)}
        return cls(**values | {"gain": Fraction(contract.gain * _ROUNDING // 1, _ROUNDING)})

    def product(self, alpha: Fraction, beta: Fraction) -> Fraction:
        return min(self.result_bound, _up(super().product(alpha, beta)))


def _up(bound: Fraction) -> Fraction:
    return Fraction(-(-bound * _ROUNDING // 1), _ROUNDING)


def limits(programme: Programme, contract: Contract, bits: int) -> tuple[Bounded, ...]:
    """The whole programme on bounds, for every exponent of ``bits`` bits at once: where a digit picks a slot, the one
    with the largest bound is taken. (A product's bound grows with those of its operands, so that this covers all.)

    Raises Refusal, with the operation and the bounds, when some operands could overflow; for a contract whose results
    cannot be operands; and for one operand.
    """
    if contract.operands != 2 or contract.operand != contract.result:
        raise Refusal("an exponentiation needs a core with two operands whose results can be operands")
    rounded = _Rounded.of(contract)
    sizes = {"one": _up(Fraction(2, contract.p))}
    inputs = [sizes.get(name, Fraction(1)) for _, name in programme.loads]
    held = dict(zip((slot for slot, _ in programme.loads), inputs, strict=True))
    passes = programme.passes(bits)
    operations = [Operation("load", slot, number) for number, (slot, _) in enumerate(programme.loads)]
    for step in programme.steps(passes):
        candidates = range(1 << programme.window) if step.pick else (0,)
        worst = max((step.operation(d) for d in candidates), key=lambda op: held[op.a] * held[op.b])
        operations.append(worst)
        try:
            held[step.destination] = rounded.product(held[worst.a], held[worst.b])
        except Refusal:
            break  # refused below, with its number
    else:
        operations.append(Operation("store", 0, programme.result))
    return bounded(operations, rounded, inputs, programme.slots)


class Exponentiation:
    """A programme on a multiplier: base^exponent mod p for exponents of at most ``bits`` bits.

    ``subtractions``: how often p is to be subtracted from the last product at most. Raises Refusal when the programme
    could overflow the multiplier, or is without conversion where the factor asks for one.
    """

    def __init__(self, programme: Programme, contract: Contract, bits: int) -> None:
        if bits < 1:
            raise Refusal(f"exponents have at least 1 bit, not {bits}")
        converted = any(name == "square" for _, name in programme.loads)
        if contract.factor % contract.p != 1 and not converted:
            raise Refusal("the multiplier leaves a factor: its programme must convert")
        self.programme, self.contract, self.bits = programme, contract, bits
        self.limits = limits(programme, contract, bits)
        self.bound = self.limits[-1].bound
        self.subtractions = -(-self.bound // 1) - 1

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The numbers that belong to the modulus: one, square, radix."""
        p = self.contract.p
        radix = pow(self.contract.factor, -1, p)
        return {"one": 1, "square": radix * radix % p, "radix": radix}

    @property
    def products(self) -> int:
        """Products done for one power."""
        return self.programme.products(self.bits)

    def power(self, base: int, exponent: int, multiply: Callable[[int, int], int] | None = None) -> int:
        """base^exponent mod p, in [0, p), by the programme's own steps.

        ``multiply``: the design's bit-exact algorithm (``Fitted.multiply``). Without it every product is the largest
        number that the contract allows, which is another test of the bounds. Raises Refusal for a base outside
        [0, p) and an exponent of more than ``bits`` bits.
        """
        p = self.contract.p
        if not 0 <= base < p:
            raise Refusal(f"the base must be below the modulus of {p.bit_length()} bits, got {base.bit_length()} bits")
        digits = self.programme.digits(exponent, self.bits)
        operations = self.programme.operations(digits, self.programme.passes(self.bits))
        steps = [Bounded(op, limit.bound) for op, limit in zip(operations, self.limits, strict=True)]
        given = self.numbers | {"base": base}
        inputs = [given[name] for _, name in self.programme.loads]
        *_, result = run(steps, p, inputs, multiply or self._largest())
        for _ in range(self.subtractions):
            result -= p if result >= p else 0
        return result

    @cached_property
    def _tops(self) -> list[int]:
        p = self.contract.p
        return [-(-limit.bound * p // 1) - 1 for limit in self.limits if limit.operation.kind == "mul"]

    def _largest(self) -> Callable[[int, int], int]:
        """The largest products that the contract allows, in the programme's order."""
        p, factor, tops = self.contract.p, self.contract.factor, iter(self._tops)

        def multiply(a: int, b: int) -> int:
            top = next(tops)
            return top - (top - a * b * factor) % p

        return multiply
