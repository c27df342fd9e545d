# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The contract of a core: its mathematics, the form of the numbers at its ports, and its timing.

Multiplier interface: operand pairs enter at ``i``, results leave at ``o`` in order, valid and ready as in
``amaranth.lib.stream``. Valid never waits for ready; a payload stays until it is taken.

The contract states what a handshake cannot: the factor of the result, the bounds of operands and results as exact
multiples of the modulus, the representation of numbers at the ports, and the timing.

A core whose modulus is loaded has a third stream, ``k``, of words that set it. While a word of ``k`` is offered, the
core accepts no operands; it accepts the word when no product is in flight. Every result therefore belongs to the
modulus that was loaded when its operands were accepted.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any, ClassVar

from modmill.numbers import redundant_digits as redundant
from modmill.numbers.rns.residues import Base
from modmill.numbers.shown import shortened

PORTS = (
    "clk", "rst", "k_valid", "k_ready", "k_m", "i_valid", "i_ready", "i_a", "i_b", "o_valid", "o_ready", "o_r",
)  # fmt: skip
"""Ports in the order of emission. A core with one operand has no i_b; only a core with a loaded modulus has k_*."""
ALARM = "o_alarm"
"""The output of a core or an engine with an alarm. It comes behind `PORTS`."""
Ranges = Mapping[tuple[str, str], Mapping[int, int]]
"""Bounds that registers with data keep while these count: for (register, selector) and each value of the selector the
exclusive bound of the register; with an empty selector one bound, for 0. Names are paths in the netlist."""


class UnsupportedError(ValueError):
    """A request that cannot be met; the message says in one line what is wrong, with the numbers."""


class Fault(RuntimeError):
    """A result failed its check and was not released."""


@dataclass(frozen=True)
class Binary:
    """A number as one unsigned binary integer of ``width`` bits.

    All forms have these methods. ``moduli``: the modulus of each word, empty for a form without residues.
    """

    width: int
    moduli: ClassVar[tuple[int, ...]] = ()

    def encode(self, x: int) -> int:
        """Port value of ``x``, 0 <= x < `end`. Raises ValueError for a number that the form cannot hold."""
        if not 0 <= x < self.end:
            raise ValueError(f"{shortened(x)} does not fit in {self.width} bits; a port takes 0 to 2^{self.width} - 1")
        return x

    def decode(self, port: int) -> int:
        """The number at a port."""
        return port

    def any(self, x: int, _rnd: random.Random) -> int:
        """Port value of ``x`` in a random representation; here it is unique."""
        return self.encode(x)

    @property
    def end(self) -> int:
        """Exclusive bound of the numbers that the form represents."""
        return 1 << self.width

    def describe(self) -> dict[str, Any]:
        """The form's entry in contract.json."""
        return {"kind": "binary", "width": self.width}


class _Words(ABC):
    """A number as words of equal size, the first word in the least significant bits."""

    @property
    @abstractmethod
    def _size(self) -> tuple[int, int]:
        """Bits of a word, and number of words."""

    @property
    def width(self) -> int:
        """Bits of the whole vector."""
        bits, count = self._size
        return bits * count

    def pack(self, words: Sequence[int]) -> int:
        """Port value of the words."""
        bits, _ = self._size
        return sum(x << (bits * i) for i, x in enumerate(words))

    def unpack(self, port: int) -> list[int]:
        """The words at a port, not reduced."""
        bits, count = self._size
        return [port >> (bits * i) & (1 << bits) - 1 for i in range(count)]


class _ResidueWords(_Words):
    """Words that are any representatives of residues."""

    @property
    @abstractmethod
    def moduli(self) -> tuple[int, ...]:
        """The modulus of each word."""

    @abstractmethod
    def words(self, x: int) -> list[int]:
        """Words of ``x``, each the least nonnegative residue."""

    def any(self, x: int, rnd: random.Random) -> int:
        end = 1 << self._size[0]
        return self.pack([rnd.randrange(r, end, m) for r, m in zip(self.words(x), self.moduli, strict=True)])


@dataclass(frozen=True)
class Residues(_ResidueWords):
    """A number as residues modulo the moduli of a base, the first modulus in the least significant bits. Each residue
    takes ``base.w`` bits and may be any representative in [0, 2^w), not only the least one."""

    base: Base

    @property
    def _size(self) -> tuple[int, int]:
        return self.base.w, self.base.n

    @property
    def moduli(self) -> tuple[int, ...]:
        return self.base.moduli

    def words(self, x: int) -> list[int]:
        return self.base.residues(x)

    @property
    def end(self) -> int:
        return self.base.M

    def encode(self, x: int) -> int:
        if not 0 <= x < self.base.M:
            raise ValueError(f"{shortened(x)} is outside [0, M) for M = {shortened(self.base.M)}")
        return self.pack(self.words(x))

    def decode(self, port: int) -> int:
        return self.base.number(self.unpack(port))

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "residues",
            "channel_bits": self.base.w,
            "moduli": [hex(m) for m in self.moduli],
            "order": "first modulus in the least significant bits",
            "residue_range": f"[0, 2^{self.base.w}), any representative",
        }


@dataclass(frozen=True)
class ResiduePair(_ResidueWords):
    """A number in two bases: its residues x mod a_i, then x~_j = x B_j^-1 mod b_j with B_j = B / b_j. The first modulus
    of A stands in the least significant bits. Each word takes w bits and may be any representative in [0, 2^w).

    ``factors``: other factors of all words, in place of 1 over A and B_j^-1 over B."""

    a: Base
    b: Base
    factors: tuple[int, ...] = ()

    @property
    def _size(self) -> tuple[int, int]:
        return self.a.w, self.a.n + self.b.n

    @property
    def moduli(self) -> tuple[int, ...]:
        return self.a.moduli + self.b.moduli

    def words(self, x: int) -> list[int]:
        return [x * f % m for f, m in zip(self.scales, self.moduli, strict=True)]

    @property
    def scales(self) -> tuple[int, ...]:
        """The factor of every word."""
        return self.factors or (*(1,) * self.a.n, *self.b.inverses)

    @cached_property
    def _plain(self) -> tuple[int, ...]:
        """The inverse of each factor."""
        return tuple(pow(f, -1, m) for f, m in zip(self.scales, self.moduli, strict=True))

    @property
    def end(self) -> int:
        """Exclusive bound of the numbers that either half represents: the product of base B."""
        return self.b.M

    def encode(self, x: int) -> int:
        """Port value of ``x``, 0 <= x < A B. Raises ValueError outside this range."""
        if not 0 <= x < self.a.M * self.b.M:
            raise ValueError(f"{shortened(x)} is outside [0, A B) for A B = {shortened(self.a.M * self.b.M)}")
        return self.pack(self.words(x))

    def decode(self, port: int) -> int:
        """The number in [0, A B) at a port; it is below B if both halves represent the same number."""
        n, a, b = self.a.n, self.a, self.b
        residues = [r * f % m for r, f, m in zip(self.unpack(port), self._plain, self.moduli, strict=True)]
        low = b.number(residues[n:])
        rest = [(r - low) * pow(b.M, -1, m) % m for r, m in zip(residues[:n], a.moduli, strict=True)]
        return low + b.M * a.number(rest)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "residues",
            "channel_bits": self.a.w,
            "moduli": [hex(m) for m in self.moduli],
            "scales": [hex(s) for s in self.scales],
            "order": "first modulus in the least significant bits; base A, then base B"
            f"{'; words are x scale' if self.factors else ' whose words are x (B / b_j)^-1'}",
            "residue_range": f"[0, 2^{self.a.w}), any representative of x * scale",
        }


@dataclass(frozen=True)
class Digits(_Words):
    """A number as ``d`` redundant digits of radix 2^``r``, the least significant digit in the least significant bits.
    Each digit takes r + 2 bits and may have any value of that size."""

    r: int
    d: int
    moduli: ClassVar[tuple[int, ...]] = ()

    @property
    def _size(self) -> tuple[int, int]:
        return self.r + 2, self.d

    @property
    def end(self) -> int:
        return redundant.value(((1 << self.r + 2) - 1,) * self.d, self.r) + 1

    def encode(self, x: int) -> int:
        """Without redundant bits unless the highest digit is full."""
        return self.pack(redundant.digits(x, self.r, self.d))

    def any(self, x: int, rnd: random.Random) -> int:
        return self.pack(redundant.spread(redundant.digits(x, self.r, self.d), self.r, rnd))

    def decode(self, port: int) -> int:
        return redundant.value(self.unpack(port), self.r)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "digits",
            "radix_bits": self.r,
            "digit_bits": self.r + 2,
            "digits": self.d,
            "order": "least significant digit in the least significant bits",
            "digit_range": f"[0, 2^{self.r + 2}), redundant: any representation",
        }


Form = Binary | Residues | ResiduePair | Digits
"""Representations of a number at a port."""


@dataclass(frozen=True)
class Timing:
    """In cycles: from an accepted operand pair to the valid result, and between operand pairs; products in flight."""

    latency: int
    interval: int
    in_flight: int


@dataclass(frozen=True)
class Load:
    """What loads a modulus into a core: the ``words`` of stream k, of ``width`` bits each. ``cycles``: the most cycles
    from the first accepted word to the first cycle that accepts operands, if words arrive without pauses. ``radix``:
    the factor of the product is 2^-radix, for every modulus that can be loaded; None: another one. ``choices``: number
    of choices of bases that the words may have, the same words but for their values; 1: they are built in."""

    width: int
    words: tuple[int, ...]
    cycles: int
    radix: int | None = None
    choices: int = 1


@dataclass(frozen=True)
class Contract:
    """o = a * b * factor (mod p), and the bounds within which this holds.

    Each operand is below ``operand_bound`` * p, or the product of the two operands is below ``product_bound`` * p^2.
    The result is then below ``result_bound`` * p. ``gain`` is the slope of this bound: a product bound that is smaller
    by d gives a result bound that is smaller by gain * d. All bounds are exclusive and exact.
    """

    p: int
    factor: int
    io: str
    operand: Form
    result: Form
    operand_bound: Fraction
    product_bound: Fraction
    result_bound: Fraction
    timing: Timing
    gain: Fraction = Fraction(0)
    operands: int = 2
    """1: the core has one operand, o = a * factor (mod p)."""
    load: Load | None = None
    """How p is loaded; the contract holds while p is loaded. None: p is built in."""
    power_up: int = 1
    """Least length of the first reset after power-up, in rising edges of clk, from arbitrary register contents."""
    alarm: bool = False
    """Whether the core checks its products and has the output `ALARM`. It is low while no check fails. It is high in
    the cycle in which a result of a failed check is valid, or earlier, and stays high until the reset: the results from
    then on do not count."""

    @property
    def largest_operand(self) -> int:
        """Largest integer below operand_bound * p: both operands may have this value."""
        return ceil(self.operand_bound * self.p) - 1

    def product(self, alpha: Fraction, beta: Fraction) -> Fraction:
        """Exclusive bound of the result, as a multiple of p, for operands below alpha * p and beta * p. Raises
        UnsupportedError when alpha * beta exceeds ``product_bound``."""
        if alpha * beta > self.product_bound:
            raise UnsupportedError(
                f"operands below {float(alpha):.6g} p and {float(beta):.6g} p exceed the core's limit of "
                f"{float(self.product_bound):.6g} p^2 for their product"
            )
        return self.result_bound - self.gain * (self.product_bound - alpha * beta)

    @property
    def closed(self) -> bool:
        """Whether results can be operands again, any number of times."""
        return self.result_bound <= self.operand_bound and self.result == self.operand

    def expect(self, a: int, b: int) -> int:
        """The least residue of a b factor modulo p; of a factor for a core with one operand."""
        return a * (b if self.operands == 2 else 1) * self.factor % self.p

    def describe(self) -> dict[str, Any]:
        """The part of contract.json that follows from the mathematics and the schedule."""
        one, load = self.operands == 1, self.load
        operand, result = self.operand.width, self.result.width
        widths = {"k_m": load.width if load else 0, "i_a": operand, "i_b": operand, "o_r": result}
        outputs = {"k_ready", "i_ready", "o_valid", "o_r", ALARM}
        absent = {*(() if load else ("k_valid", "k_ready", "k_m")), *(("i_b",) if one else ())}
        return {
            **({"operands": 1} if one else {}),
            "modulus": hex(self.p),
            "modulus_bits": self.p.bit_length(),
            "factor": hex(self.factor),
            "io": self.io,
            "statement": f"o_r = i_a * {'' if one else 'i_b * '}factor (mod modulus)",
            "operand": self.operand.describe(),
            "result": self.result.describe(),
            "operand_bound": str(self.operand_bound),
            "product_bound": str(self.product_bound),
            "result_bound": str(self.result_bound),
            "gain": str(self.gain),
            "bounds_are": "exclusive, exact fractions of the modulus (product_bound: of its square)",
            "closed": self.closed,
            "latency": self.timing.latency,
            "interval": self.timing.interval,
            "in_flight": self.timing.in_flight,
            "power_up_reset": self.power_up,
            **({"load": {
                "words": [hex(word) for word in load.words], "cycles": load.cycles,
                **({"choices_of_bases": hex(load.choices)} if load.choices > 1 else {}),
            }} if load else {}),
            **({"alarm": f"{ALARM} is high from the first result of a failed check on, until the reset; these results "
                "do not count"} if self.alarm else {}),
            "ports": {
                name: {"direction": "out" if name in outputs else "in", "width": widths.get(name, 1)}
                for name in (*PORTS, *[ALARM] * self.alarm)
                if name not in absent
            },
        }  # fmt: skip
