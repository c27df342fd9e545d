# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Random moduli of every kind that may reveal arithmetic errors."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from modmill.numbers.moduli import MODULI
from modmill.numbers.primes import next_prime, prev_prime

LARGEST = 521
"""Bits of the largest drawn modulus."""
SIZES = {
    "tiny": (2, 8),
    "narrow": (9, 34),
    "word": (2, 200),
    "middle": (35, 130),
    "wide": (131, 260),
    "long": (261, LARGEST),
}
"""Least and largest number of bits of each class of sizes. ``word``: within a bit of one to three words of a design."""
WORDS = (16, 17, 18, 32, 34, 64)
"""Word lengths of designs, in addition to those of their settings."""

_SIGNS = (-1, 1)


def draw(rnd: random.Random, size: str, shape: str, words: Sequence[int] = ()) -> int:
    """An odd modulus of a class of ``SIZES`` and of one of ``SHAPES``, at least 3.

    ``words``: word lengths in bits in addition to ``WORDS``; a modulus of size ``word`` is within a bit of a multiple.
    """
    least, most = SIZES[size]
    if size == "word":
        bits = rnd.choice((*WORDS, *words, *words)) * rnd.choice((1, 1, 1, 2, 2, 3)) + rnd.choice((-1, 0, 1))
    elif size == "tiny" and rnd.random() < 0.4:
        bits = rnd.choice((2, 3))
    elif size == "long" and rnd.random() < 0.3:
        bits = rnd.choice((384, 512, LARGEST))
    else:
        bits = rnd.randint(least, most)
    return SHAPES[shape](rnd, min(max(bits, least), most))


def _dense(rnd: random.Random, bits: int) -> int:
    return 1 << bits - 1 | rnd.getrandbits(bits - 1) | 1


def _fit(p: int, bits: int) -> int:
    """The nearest odd number to ``p`` with ``bits`` bits."""
    return max(min(p | 1, (1 << bits) - 1), (1 << bits - 1) + 1)


def _near_power(rnd: random.Random, bits: int) -> int:
    return _fit((1 << bits) - rnd.getrandbits(rnd.randint(1, min(32, max(1, bits // 2)))), bits)


def _sparse(rnd: random.Random, bits: int) -> int:
    """2^bits or 2^(bits - 1), plus +-1 and up to three signed powers of 2, half the time at multiples of a word."""
    grid = rnd.choice((1, 1, 8, 16, 32, 64))
    places = list(range(grid, bits - 1, grid)) or [1]
    p = 1 << bits if rnd.random() < 0.6 else 1 << bits - 1
    for _ in range(rnd.randint(0, 3)):
        p += rnd.choice(_SIGNS) << rnd.choice(places)
    return _fit(p + rnd.choice(_SIGNS), bits)


def _prime(rnd: random.Random, bits: int) -> int:
    p = next_prime(_dense(rnd, bits) - 1)
    return p if p.bit_length() == bits else prev_prime(1 << bits)


def _composite(rnd: random.Random, bits: int) -> int:
    """A number with many small factors: a product of odd numbers up to 31, or a power of one."""
    factors = (3, 5, 7, 9, 11, 13, 15, 17, 19, 31) if rnd.random() < 0.7 else (rnd.choice((3, 5, 7)),)
    p = 1
    while p.bit_length() < bits:
        p *= rnd.choice(factors)
    return p if p.bit_length() <= LARGEST else _dense(rnd, bits)


def _named(rnd: random.Random, bits: int) -> int:
    """The named modulus of the nearest length; a random one of several."""
    shuffled = rnd.sample(MODULI, len(MODULI))
    return min(shuffled, key=lambda m: abs(m.bits - bits)).value


SHAPES: dict[str, Callable[[random.Random, int], int]] = {
    "ones": lambda rnd, bits: (1 << bits) - 1,
    "one and zeros": lambda rnd, bits: (1 << bits - 1) + 1,
    "near a power": _near_power,
    "sparse": _sparse,
    "dense": _dense,
    "prime": _prime,
    "composite": _composite,
    "named": _named,
}
"""Kinds of moduli: functions that draw one with ``bits`` bits (``composite``: up to four more; ``named``: about)."""


def text(p: int) -> str:
    """A modulus as an argument of a command, short if it has a name or is next to a power of two."""
    name = next((m.name for m in MODULI if m.value == p), None)
    if name:
        return name
    bits = p.bit_length()
    for power in (bits, bits - 1):
        if bits > 8 and abs(rest := p - (1 << power)) < 1 << 16:
            return f"2^{power}{rest:+d}"
    return str(p) if bits <= 20 else hex(p)
