# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""TOP_calls.h and TOP_calls.c of an engine for powers: modular powers and RSA's private operation as calls in C99.

In C a modulus is prepared and loaded, so that keys need no other software. For this `loading` recognises how a
multiplier's stream k is made of the modulus, and compares with the words of contracts for several moduli; the factor of
the product is declared by the `Load`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from modmill.buses.calls import FIRST_ERROR, words_for
from modmill.buses.device import WORD
from modmill.contract import Contract
from modmill.engines.machine.layout import words_of
from modmill.engines.rsa.rsa import EXPONENT_BITS

ERRORS = (
    ("RANGE", "a number is out of range"),
    ("KEY", "the numbers of a key do not belong together"),
    ("RESULT", "a result of the engine is wrong; nothing is released"),
)
"""Names and meanings of the errors of the calls."""
BLIND_BITS = 64
"""Most bits of the random multiple of p - 1 that is added to an exponent."""
_LONG = 64
"""Most bits of -1 / p that C computes."""


@dataclass(frozen=True)
class Loading:
    """The words of stream k: ``count`` digits of ``digit`` bits of the modulus, the lowest first; with ``inverse``, the
    only word has -1 / p mod 2^inverse above the modulus. R = 2^``radix`` is 1 / factor."""

    digit: int
    count: int
    inverse: int
    radix: int

    def words(self, p: int, bits: int) -> tuple[int, ...]:
        """The words for a modulus; ``bits``: of the longest one."""
        if self.inverse:
            return (p | -pow(p, -1, 1 << self.inverse) % (1 << self.inverse) << bits,)
        return tuple(p >> self.digit * k & (1 << self.digit) - 1 for k in range(self.count))


def loading(contracts: Sequence[Contract], bits: int) -> Loading | None:
    """How a multiplier loads a modulus of at most ``bits`` bits, from its contracts for some moduli; None if the words
    are made in another way, and if R is no power of two."""
    first = contracts[0].load
    if first is None or first.radix is None:
        return None
    count, width, radix = len(first.words), first.width, first.radix
    ways = [Loading(width, count, 0, radix)]
    if count == 1 and bits < width <= bits + _LONG:
        ways.append(Loading(bits, 1, width - bits, radix))
    fits = (way for way in ways if all(c.load and c.load.words == way.words(c.p, bits) for c in contracts))
    return next(fits, None)


@dataclass(frozen=True)
class PowerCalls:
    """What the calls need to know of an engine for powers, whose numbers are binary and whose modulus is loaded.

    ``bits``, ``exponent_bits``: of the longest modulus and exponent. ``number_words``: words of a number in a message.
    ``threads``: powers of a job. ``window``, ``gray``, ``each``: bits of a digit of an exponent, whether it is of the
    Gray code, digits of a pass of the loop. ``digit_bits``: distance of two digits in a word; ``per_word``: digits of a
    word. ``rounds``: multiples of the modulus in SETUP. ``key_words``: words of SETUP for a word of stream k.
    ``constants``: names of the numbers at the end of SETUP. ``most_words``: words of the longest message or answer.
    ``checked_by``: the public exponent with which the engine checks its results, 0 for none. ``inverts``: the one whose
    inverses exponents must be, 0 for none. ``inside``: bits by which the engine makes exponents longer when it blinds
    them, 0 if it does not; then it takes them without digits, of ``exponents`` numbers each.
    """

    bits: int
    exponent_bits: int
    number_words: int
    threads: int
    window: int
    gray: bool
    each: int
    digit_bits: int
    per_word: int
    rounds: int
    key_words: int
    loading: Loading
    constants: tuple[str, ...]
    most_words: int
    checked_by: int = 0
    inverts: int = 0
    inside: int = 0
    exponents: int = 1

    TEMPLATES: ClassVar[tuple[str, str]] = ("powers.h.j2", "powers.c.j2")
    ABOUT: ClassVar[str] = "modular powers, and RSA"
    adds: ClassVar[bool] = True
    multiplies: ClassVar[bool] = True
    enters: ClassVar[bool] = True

    @property
    def messages(self) -> bool:
        """Whether the engine blinds bases too."""
        return self.exponents > 1

    @property
    def words(self) -> int:
        """Words of a modulus."""
        return words_for(self.bits)

    @property
    def exponent_words(self) -> int:
        """Words of an exponent."""
        return words_for(self.exponent_bits)

    @property
    def rsa(self) -> bool:
        """Whether there are calls for RSA: exponents may be as long as a prime."""
        return self.exponent_bits >= self.bits

    @property
    def rsa_words(self) -> int:
        """Words of the longest number in C: the product of two primes."""
        return words_for(2 * self.bits)

    @property
    def rsa_bytes(self) -> int:
        """Bytes of that number."""
        return -(-2 * self.bits // 8)

    @property
    def public_words(self) -> int:
        """Words of a public exponent."""
        return words_for(EXPONENT_BITS)

    @property
    def inverted_words(self) -> str:
        """The words of ``inverts``, in C."""
        return ", ".join(f"{word:#x}u" for word in words_of(self.inverts, self.public_words, WORD))

    @property
    def count(self) -> str:
        """Words of the digits of an exponent with ``bits`` bits that is blinded inside, in C."""
        each, more = (self.per_word, 2) if self.gray else (self.per_word // self.exponents * self.window, 0)
        return f"(bits + {self.inside + more + each - 1}u) / {each}u"

    @property
    def blind(self) -> int:
        """Bits of the random multiple of p - 1."""
        return min(BLIND_BITS, max(0, self.exponent_bits - self.bits))

    @property
    def blind_words(self) -> int:
        """Words of it."""
        return words_for(self.blind)

    @property
    def random_bytes(self) -> int:
        """Random bytes of a private operation: a factor, and a multiple for each of four exponents."""
        return WORD // 8 * (self.rsa_words + 4 * self.blind_words)

    def context(self) -> dict[str, Any]:
        """What the templates need besides the names of the device."""
        return {"c": self, "errors": ERRORS, "first_error": FIRST_ERROR}
