# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Modular exponentiation as instructions of one product each, for any multiplier with a contract.

A program has instructions before, in and after a loop. A digit of the exponent selects the slot that an instruction
reads, or with `with_selections` what selections keep, never whether an instruction is executed. So the fixed window and
the ladder compute the same number of products for every exponent of a given length. `left_to_right` makes a program for
one exponent, which need not be secret. Constants of the modulus are in shared slots.

    f = factor of the multiplier, R = 1 / f mod p
    into the domain      base * (R^2 mod p) * f = base R            not needed if f = 1
    out of the domain    x R * 1 * f = x
    at the end           p is subtracted as often as the bound of the result requires

Sources: fixed window and left-to-right binary, A. Menezes, P. van Oorschot, S. Vanstone: Handbook of Applied
Cryptography, CRC Press, 1996, 14.82 and 14.79; ladder, P. L. Montgomery: Speeding the Pollard and elliptic curve
methods of factorization, Mathematics of Computation 48(177), 1987, 10.3.1; left-to-right with R mod p and R^2 mod p
given, K. Nakano, K. Kawakami, K. Shigemoto: RSA Encryption and Decryption using the Redundant Number System on the
FPGA, Section 4 (which calls it right-to-left); powers of two bases with the same squares, B. Moeller: Algorithms for
multi-exponentiation, SAC 2001, Section 3.2; blinding of messages, P. C. Kocher: Timing attacks on implementations of
Diffie-Hellman, RSA, DSS, and other systems, CRYPTO 1996, Section 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

from modmill.contract import Contract, UnsupportedError
from modmill.engines.microcode.bounds import program_bounds
from modmill.engines.microcode.field_program import Domain
from modmill.engines.microcode.interpreter import Product, largest, run
from modmill.engines.microcode.program import (
    ENTRY,
    FIXED,
    PAIR,
    DatapathSpec,
    Instruction,
    OperandAddress,
    Program,
    Task,
)
from modmill.engines.ranges import require_range
from modmill.numbers.shown import shortened
from modmill.rtl.memory import DEPTHS

STARTS = ("one", "skip", "base")
WINDOW_MAX = 8
PUBLIC = 65537
"""The public exponent for which engines have a program of their own."""
BASE = "base"
"""Name of the input of each thread."""
FACTOR = "factor"
"""Name of the random number with which a program of `blinded_window` blinds the base, an input before it."""
SELECTIONS = 16
"""Most selections in an instruction of a program of `with_selections`."""
_ONE, _SQUARE, _RADIX = (OperandAddress(k, shared=True) for k in range(3))
_UNIT = DatapathSpec(0, 1, 1, DEPTHS[-1], DEPTHS[-1])
"""A unit on which the next instruction can read a product."""


@dataclass(frozen=True)
class PowerProgram:
    """An exponentiation, for a unit on which the next instruction can read each product.

    ``constants``: names of the numbers in the shared slots 0, 1, ...: ``one`` = 1, ``square`` = R^2 mod p, ``radix`` =
    R mod p. ``base``: slot of the input. ``result``: slot of the power at the end. ``window``: bits of a digit, 0 for a
    program without digits. ``gray``: the digits are those of the Gray code of twice the exponent. ``exponent``: the
    only exponent of a program without digits. ``check``: slot of the number that must be the base at the end, None
    without one; ``check_exponent``: the exponent with which the program computes it from the result. ``factor``: slot
    of the random factor of the base, None without one; with one there are two exponents, whose digits take turns, and
    the base is multiplied by its power with ``factor_exponent``.
    """

    name: str
    constants: tuple[str, ...]
    base: int
    before: tuple[Instruction, ...]
    loop: tuple[Instruction, ...]
    after: tuple[Instruction, ...]
    result: int
    window: int = 0
    gray: bool = False
    exponent: int = 0
    check: int | None = None
    check_exponent: int = 0
    factor: int | None = None
    factor_exponent: int = 0

    @property
    def exponents(self) -> int:
        """Number of exponents of a run."""
        return 1 if self.factor is None else 2

    @property
    def written(self) -> tuple[Instruction, ...]:
        """The instructions of all parts, the loop once."""
        return (*self.before, *self.loop, *self.after)

    @property
    def selections(self) -> int:
        """Most selections in an instruction."""
        return max(len(step.sums) for step in self.written)

    @property
    def _each(self) -> int:
        """Number of digits of an exponent that one pass of the loop uses."""
        return sum(instruction.advance for instruction in self.loop) // self.exponents

    def passes(self, bits: int) -> int:
        """Number of passes of the loop for exponents of ``bits`` bits."""
        if not self.window:
            return 0
        digits = max(2, -(-bits // self.window))
        return -(-digits // self._each) if self.gray else digits - 1

    def digit_count(self, bits: int) -> int:
        """Number of digits of an exponent of ``bits`` bits."""
        return self._each * self.passes(bits) + 1 if self.window else 0

    def products(self, bits: int) -> int:
        """Number of products for exponents of ``bits`` bits."""
        before, loop, after = (
            sum(s.product is not None for s in part) for part in (self.before, self.loop, self.after)
        )
        return before + self.passes(bits) * loop + after

    def digits(self, exponent: int, bits: int, other: int | None = None) -> tuple[int, ...]:
        """Digits of the exponent in order of use, or of two exponents by turns. Raises UnsupportedError for an exponent
        outside [0, 2^bits); a program without digits accepts only its own."""
        if other is not None:
            both = zip(self.digits(exponent, bits), self.digits(other, bits), strict=True)
            return tuple(digit for pair in both for digit in pair)
        require_range([exponent], 1 << bits, f"exponents must be in [0, 2^{bits})")
        if not self.window:
            if exponent != self.exponent:
                raise UnsupportedError(f"the exponent of this program must be {self.exponent}, got {exponent}")
            return ()
        value = exponent ^ exponent << 1 if self.gray else exponent
        count, mask = self.digit_count(bits), (1 << self.window) - 1
        return tuple(value >> (self.window * k) & mask for k in reversed(range(count)))


def _constants(converted: bool) -> tuple[str, ...]:
    return ("one", "square") if converted else ("one",)


def _instruction(
    destination: OperandAddress, a: OperandAddress, b: OperandAddress, advance: bool = False
) -> Instruction:
    return Instruction(Task("mul", destination, a, b), advance=advance)


def _table(entries: Sequence[OperandAddress]) -> Iterator[Instruction]:
    """The powers of the second entry from its square on."""
    for k in range(2, len(entries)):
        a, b = (entries[k - 1], entries[1]) if k % 2 else (entries[k // 2], entries[k // 2])
        yield _instruction(entries[k], a, b)


def fixed_window(window: int, converted: bool = True) -> PowerProgram:
    """2^w-ary exponentiation with ``window`` = w bits a digit, 1 to `WINDOW_MAX`.

    A table of base^0 ... base^(2^w - 1), then for every digit w squarings and one product by the entry that the digit
    selects, also if the entry is 1. ``converted``: with conversion into and out of the multiplier's domain, for a
    factor other than 1.
    Products for n digits: (2 into the domain, or 1) + 2^w - 2 + 1 + (n - 1)(w + 1) + (1 out of the domain).
    Raises UnsupportedError for a window out of range.
    """
    if not 1 <= window <= WINDOW_MAX:
        raise UnsupportedError(f"a window must have 1 to {WINDOW_MAX} bits, got {window}")
    size = 1 << window
    entries, picked = [OperandAddress(k) for k in range(size)], OperandAddress(0, ENTRY, size=size)
    base, power = (OperandAddress(size), OperandAddress(size + 1)) if converted else (entries[1], OperandAddress(size))
    before = [_instruction(entries[0], _ONE, _SQUARE if converted else _ONE)]
    if converted:
        before.append(_instruction(entries[1], base, _SQUARE))
    before += _table(entries)
    before.append(_instruction(power, entries[0], picked, advance=True))
    loop = (*[_instruction(power, power, power)] * window, _instruction(power, power, picked, advance=True))
    return PowerProgram(
        f"window-{window}", _constants(converted), base.number, tuple(before), loop,
        (_instruction(power, power, _ONE),) if converted else (), power.number, window,
    )  # fmt: skip


def blinded_window(window: int, exponent: int = PUBLIC, converted: bool = True) -> PowerProgram:
    """Two exponentiations of ``window`` bits a digit at once: (x u^e)^k u^m for a base x, a random factor u of it, and
    e = ``exponent``.

    The power is x^k for a k and m with e k + m = 0 modulo the order of u. For an inverse d of e they are k = d + r N
    and m = r' N - 1 with N = e d - 1, r and r' random, r' not 0. So nothing but d is needed, and neither u^-1 nor a
    number of a former run. ``converted`` as in `fixed_window`.
    Products besides those of `fixed_window`, for n digits of each exponent, and h ones among the b bits of e: b + h - 1
    for x u^e, 2^w - 1 for the other table, n, and 1 into the domain. Raises UnsupportedError for a window out of range.
    """
    made, size = fixed_window(window, converted), 1 << window
    tables = [[OperandAddress(base + k) for k in range(size)] for base in (0, size)]
    (_, x, *_), (_, u, *_) = tables
    picked = [OperandAddress(table[0].number, ENTRY, size=size) for table in tables]
    given, base, power = (
        (OperandAddress(2 * size + k) for k in range(3)) if converted else (u, x, OperandAddress(2 * size))
    )
    ones = [_instruction(table[0], _ONE, _SQUARE if converted else _ONE) for table in tables]
    into = [_instruction(u, given, _SQUARE), _instruction(x, base, _SQUARE)] if converted else []
    chain, held = list[Instruction](), u
    for bit in f"{exponent:b}"[1:]:
        chain.append(_instruction(power, held, held))
        held = power
        if bit == "1":
            chain.append(_instruction(power, power, u))
    blinds = _instruction(x, x, power)
    first = _instruction(power, tables[0][0], picked[0], advance=True)
    loop = [_instruction(power, power, power)] * window
    loop += [_instruction(power, power, entry, advance=True) for entry in picked]
    return replace(
        made, name=f"{made.name}-blinded", base=base.number, result=power.number, loop=tuple(loop),
        before=(*ones, *into, *chain, blinds, *_table(tables[0]), *_table(tables[1]), first, loop[-1]),
        after=(_instruction(power, power, _ONE),) if converted else (), factor=given.number,
        factor_exponent=exponent,
    )  # fmt: skip


def ladder(converted: bool = True) -> PowerProgram:
    """Montgomery ladder: x^k and x^(k+1), two products a bit, one of them a square.

    The product of the two is written to one slot, the square to another. Which of the two is squared depends on whether
    the bit differs from the one before: a digit of the Gray code selects the slot that the square reads. A pass
    processes two bits, after which the pair is in its first slots again. The two products of a bit are independent.
    ``converted`` as in `fixed_window`.
    Products for n bits, n even: 2 n + 1 + (2 into the domain, or 1); an odd length is padded with a zero.
    """
    second, first, fourth, third = (OperandAddress(k) for k in range(4))
    either, other = OperandAddress(second.number, PAIR), OperandAddress(fourth.number, PAIR)
    base = OperandAddress(4) if converted else first
    loop = (
        _instruction(third, first, second), _instruction(fourth, either, either, advance=True),
        _instruction(first, third, fourth), _instruction(second, other, other, advance=True),
    )  # fmt: skip
    before = [_instruction(first, base, _SQUARE)] if converted else []
    before.append(_instruction(second, _ONE, _SQUARE if converted else _ONE))
    last = OperandAddress(second.number, ENTRY, size=2)  # ``first`` if the last bit is 1
    after = (_instruction(third, _ONE, last, advance=True),)
    return PowerProgram(
        "ladder", _constants(converted), base.number, tuple(before), loop, after, third.number, window=1, gray=True
    )


def left_to_right(exponent: int, *, start: str = "base", bits: int = 0, converted: bool = True) -> PowerProgram:
    """Square and multiply for one exponent, which determines the number of products.

    ``start``: ``one``: the algorithm of Section 4 of the paper; it starts from R mod p and also squares for the leading
    zeros of ``bits`` bits. ``skip``: the same without squares of 1. ``base``: start from the base.
    Products for an exponent of n bits with h ones and a factor other than 1: bits + h + 2, n + h + 1, n + h.
    Raises UnsupportedError for another start, and for an exponent below 1 or longer than ``bits`` (0: its own length).
    """
    if start not in STARTS:
        raise UnsupportedError(f"start must be one of {', '.join(STARTS)}, not {shortened(start)}")
    bits = bits or exponent.bit_length()
    if exponent < 1 or exponent.bit_length() > bits:
        raise UnsupportedError(f"the exponent must be at least 1 and have at most {bits} bits, got {exponent}")
    x, power = OperandAddress(int(converted)), OperandAddress(1 + converted)
    before = [_instruction(x, OperandAddress(0), _SQUARE)] if converted else []
    constants = ["one", "square"] if converted else []
    held, done = x, exponent.bit_length() - 1
    if start != "base":
        held, done = (_RADIX if converted else _ONE), bits
        constants.append("radix" if converted else "one")
    for k in reversed(range(done)):
        if not held.shared or start == "one":
            before.append(_instruction(power, held, held))
            held = power
        if exponent >> k & 1:
            before.append(_instruction(power, held, x))
            held = power
    if converted:
        before.append(_instruction(power, held, _ONE))
        held = power
    name = f"power-{exponent}" if exponent < 1 << 32 else f"power-of-{exponent.bit_length()}-bits"
    return PowerProgram(name, tuple(constants), 0, tuple(before), (), (), held.number, exponent=exponent)


def with_selections(made: PowerProgram) -> PowerProgram:
    """The same program, in which selections replace addresses that a digit selects.

    For each operand that a digit selects all entries of its table are read, or both slots of its pair. A tree of
    selections keeps one, the lowest bit of the digit first, in the instructions before that of the operand, which
    follow the last write of an entry. Where there are too few, instructions without a product are added. The tree takes
    3/4 of the size of the table in slots more.
    """
    end = 1 + max(slot for step in made.written for task in step.tasks for slot in _slots(task))
    parts = [_with_selections(part, end) for part in (made.before, made.loop, made.after)]
    return replace(made, before=parts[0], loop=parts[1], after=parts[2])


def _slots(task: Task) -> Iterator[int]:
    """The slots of the thread that a task may read or write."""
    for address in (task.destination, *task.reads):
        yield from (slot for shared, slot in address.all if not shared)


def _with_selections(part: Iterable[Instruction], end: int) -> tuple[Instruction, ...]:
    """The instructions of a part, with selections in slots from ``end`` on."""
    out: list[Instruction] = []
    for step in part:
        task = step.product
        picked = next((address for address in task.reads if address.pick != FIXED), None) if task else None
        if task is None or picked is None:
            out.append(step)
            continue
        kept, rounds = _tree(picked, end)
        first = len(out)
        while first and not out[first - 1].advance and not {*out[first - 1].written} & {*picked.all}:
            first -= 1
        first = max(first, len(out) - len(rounds))
        out[first:first] = [Instruction()] * (len(rounds) - len(out) + first)
        for k, sums in enumerate(rounds, len(out) - len(rounds)):
            out[k] = replace(out[k], sums=out[k].sums + sums)
        a, b = (kept if address == picked else address for address in (task.a, task.b))
        out.append(replace(step, product=replace(task, a=a, b=b)))
    return tuple(out)


def _tree(picked: OperandAddress, end: int) -> tuple[OperandAddress, list[tuple[Task, ...]]]:
    """The slot in which the operand is after the selections, and these, by instruction. Two areas of slots from ``end``
    on take the results by turns, so that no selection reads what another one of its instruction writes."""
    kept = [OperandAddress(slot, shared=shared) for shared, slot in picked.all]
    rounds, half = list[tuple[Task, ...]](), len(kept) // 2
    for bit in range(half.bit_length()):
        base = end + half * (bit % 2)
        made = [
            Task("select", OperandAddress(base + k), a, b, bit=bit)
            for k, (a, b) in enumerate(zip(kept[1::2], kept[::2], strict=True))
        ]
        rounds += [tuple(made[k : k + SELECTIONS]) for k in range(0, len(made), SELECTIONS)]
        kept = [task.destination for task in made]
    return kept[0], rounds


def checked(made: PowerProgram, exponent: int = PUBLIC) -> PowerProgram:
    """A program with digits and a check of its result: at the end it also computes result^``exponent`` mod p, from the
    result itself, which must be the base. ``made``: of `fixed_window` or `ladder`.

    It is the base if the exponent of the run is an inverse of ``exponent`` modulo the order of the base, as that of an
    RSA key is. Products besides those of ``made``: those of `left_to_right`. The numbers stand in the first two slots,
    which are free after the result is written, so that the program needs no slot more.
    """
    chain = left_to_right(exponent, converted="square" in made.constants)
    slots = (made.result, 0, 1)  # of the base, and of the numbers of the chain

    def moved(address: OperandAddress) -> OperandAddress:
        return address if address.shared else OperandAddress(slots[address.number])

    tasks = (task for step in chain.before for task in step.tasks)
    after = (_instruction(moved(task.destination), moved(task.a), moved(task.b)) for task in tasks)
    return replace(
        made, name=f"{made.name}-checked", after=(*made.after, *after), check=slots[chain.result],
        check_exponent=exponent,
    )  # fmt: skip


class Exponentiation:
    """A program on a multiplier: base^exponent mod p for exponents of at most ``bits`` bits.

    ``subtractions``: maximum number of subtractions of p from the last product. Raises UnsupportedError if the program
    could overflow the multiplier, with the instruction and its bounds; for a program without conversion if the factor
    requires one; and for a core with one operand, or whose results cannot be operands.
    """

    def __init__(self, program: PowerProgram, contract: Contract, bits: int) -> None:
        if bits < 1:
            raise UnsupportedError(f"exponents must have at least 1 bit, got {bits}")
        self._domain = Domain.of(contract)
        if not self._domain.plain and "square" not in program.constants:
            raise UnsupportedError(
                "the multiplier has a factor other than 1: its program must convert into and out of its domain"
            )
        self.program, self.contract, self.bits = program, contract, bits
        self.subtractions = ceil(contract.result_bound) - 1  # sufficient for any product, until the bound is known
        self.subtractions = ceil(max(program_bounds(self.instructions(), contract).results)) - 1

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Constants of the modulus by name: one, square, radix."""
        radix = self._domain.one
        return {"one": 1, "square": radix * radix % self.contract.p, "radix": radix}

    @property
    def products(self) -> int:
        """Number of products of one power."""
        return self.program.products(self.bits)

    def instructions(self, distance: int = 1, subtractions: int = 0, selected: int = 1) -> Program:
        """The instructions, with wait states, for a unit on which a product can be read ``distance`` instructions
        later, and a selection ``selected`` instructions later. ``subtractions``: number of possible subtractions of p
        from the result, if more than the bounds require.
        """
        p, most = self.program, max(self.subtractions, subtractions)
        before, loop, after = (_waiting(part, distance, selected) for part in (p.before, p.loop, p.after))
        factor = [] if p.factor is None else [(p.factor, 0)]
        names = [(slot, FACTOR) for slot, _ in factor]
        shared = tuple(enumerate(self.numbers[name] for name in p.constants))
        return Program(
            name=p.name, inputs=(*names, (p.base, BASE)), shared=shared,
            before=before, loop=loop, after=after, passes=p.passes(self.bits),
            results=((p.result, most),), window=p.window,
            checks=() if p.check is None else (*factor, (p.check, most)), matched=p.check is not None,
        )  # fmt: skip

    def power(
        self, base: int, exponent: int, multiply: Callable[[int, int], int] | None = None,
        blind: tuple[int, int] | None = None,
    ) -> int:  # fmt: skip
        """base^exponent mod p, in [0, p), by the program's instructions. ``blind``: (u, m) of `blinded_window`.

        ``multiply``: the design's bit-exact algorithm (``DesignInstance.multiply``). By default every product is the
        largest number that the contract allows, which tests the bounds. 0 if the program has a check and it is wrong.
        Raises UnsupportedError for a base outside [0, p) and an exponent of more than ``bits`` bits.
        """
        factor, other = blind or (0, None)
        digits = self.program.digits(exponent, self.bits, other)
        product: Product = (lambda _, x: multiply(*x)) if multiply else self._largest
        (result,) = run(self.instructions(), _UNIT, self.contract, {BASE: base, FACTOR: factor}, digits, product)
        return result

    @cached_property
    def _largest(self) -> Product:
        return largest(self.instructions(), self.contract)


def _waiting(steps: Iterable[Instruction], distance: int, selected: int) -> tuple[Instruction, ...]:
    """The instructions of a part with wait states, which have no tasks; all results can be read at its end."""
    instructions: list[Instruction] = []
    readable: dict[tuple[bool, int], int] = {}

    def wait(until: int) -> None:
        instructions.extend([Instruction()] * (until - len(instructions)))

    for step in steps:
        places = (place for task in step.tasks for place in (task.destination, *task.reads))
        wait(max((readable.get(slot, 0) for place in places for slot in place.all), default=0))
        instructions.append(step)
        for task in step.tasks:
            later = len(instructions) - 1 + (distance if task.kind == "mul" else selected)
            readable |= dict.fromkeys(task.destination.all, later)
    wait(max(readable.values(), default=0))
    return tuple(instructions)
