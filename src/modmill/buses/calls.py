# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""TOP_calls.h and TOP_calls.c: multiples of points and protocols as calls in C99, above the driver of an engine for a
curve.

The files come from the engine's own description: the recodings of its programs, the layout of its messages, the words
of SETUP. In C the recoding of a secret scalar is in constant time: loops are fixed, and no address depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import isqrt
from typing import Any, ClassVar

from modmill.buses.device import WORD
from modmill.engines.ecc.point_engine import SECRET
from modmill.engines.ecc.points import BLIND, Recoding
from modmill.engines.ecc.recoding import Both, Comb, Gray, Odd, Signed
from modmill.engines.ecc.weierstrass import SplitScalar, TwoScalars
from modmill.engines.machine.layout import words_of
from modmill.numbers.curves.affine import Curve, Edwards, Montgomery, Weierstrass
from modmill.numbers.curves.encoding import edwards_size
from modmill.numbers.curves.named import CURVE448, CURVE25519, ED448, ED25519
from modmill.numbers.primes import is_prime

ERRORS = (
    ("RANGE", "a scalar, a coordinate or the factor `blind` is out of range"),
    ("POINT", "the point is not on the curve"),
    ("NEUTRAL", "a point is the neutral element, or a shared secret is all zero"),
    ("RESULT", "a result of the engine is wrong, or the signature is; nothing is released"),
    ("NONCE", "r or s is 0: take another nonce"),
)
"""Names and meanings of the errors of the calls."""
FIRST_ERROR = 258
"""Number of the first of them; the driver's own are below it."""
PLAIN = "plain"
"""The kind of a scalar that is sent without recoding."""
_LINE = 8
_KINDS = {
    Odd: "odd",
    Signed: "signed",
    Comb: "comb",
    Gray: "gray",
    Both: "both",
    TwoScalars: "both",
    SplitScalar: "halved",
}


@dataclass(frozen=True)
class Operation:
    """A program of the engine: the ``command`` that runs it, ``recoding`` of its scalars, names of its ``inputs`` in
    the order of a message, number of ``results``, words of the digits of a thread, and whether it is modulo n."""

    name: str
    command: int
    recoding: Recoding
    inputs: tuple[str, ...]
    results: int
    digit_words: int
    order: bool


@dataclass(frozen=True)
class Calls:
    """What the calls need to know of an engine for a ``curve``, whose numbers are binary.

    ``bits``: length of its scalars. ``number_words``: words of a number in a message. ``threads``: runs of a job.
    ``digit_bits``: distance of two digits in a word; ``per_word``: digits of a word. ``setups``: data words of SETUP
    for p, and for n if there are operations modulo n. ``random``: the engine blinds secret scalars inside, so that
    these are sent without recoding, in the words of ``digit_words``; it may also draw the number `BLIND`, which
    ``inputs`` do not have then.
    """

    curve: Curve
    bits: int
    number_words: int
    threads: int
    digit_bits: int
    per_word: int
    operations: tuple[Operation, ...]
    setups: tuple[tuple[int, ...], ...]
    random: bool = False

    TEMPLATES: ClassVar[tuple[str, str]] = ("calls.h.j2", "calls.c.j2")
    ABOUT: ClassVar[str] = "multiples of points, and protocols"

    @property
    def form(self) -> str:
        """Form of the curve: weierstrass, edwards or montgomery."""
        return {Weierstrass: "weierstrass", Edwards: "edwards", Montgomery: "montgomery"}[type(self.curve)]

    @cached_property
    def op(self) -> dict[str, Operation]:
        """The operations by name."""
        return {operation.name: operation for operation in self.operations}

    @property
    def words(self) -> int:
        """Words of p."""
        return words_for(self.curve.bits)

    @property
    def scalar_words(self) -> int:
        """Words of a scalar."""
        return words_for(self.bits)

    @property
    def order_bits(self) -> int:
        """Bits of n."""
        return self.curve.n.bit_length()

    @property
    def order_words(self) -> int:
        """Words of n."""
        return words_for(self.order_bits)

    @property
    def long(self) -> int:
        """Words of the longest number."""
        return max(self.words, self.scalar_words, self.order_words)

    @property
    def job_words(self) -> int:
        """Words of the longest job or answer."""
        size = self.number_words
        return self.threads * max(
            max(o.digit_words + self.flagged + max(1, len(o.inputs) * size), o.results * size) for o in self.operations
        )  # fmt: skip

    @property
    def x(self) -> str:
        """The function of RFC 7748 on this curve: x25519, x448 or empty."""
        names: dict[Curve, str] = {CURVE25519: "x25519", CURVE448: "x448"}
        name = names.get(self.curve, "")
        return name if "ladder" in self.op and self.bits >= self.curve.bits else ""

    @property
    def protocols(self) -> bool:
        """Whether ECDH and ECDSA are possible: the order is prime, and scalars below n are not too long."""
        curve = self.curve
        return isinstance(curve, Weierstrass) and curve.h == 1 and not curve.arithmetic and self.bits >= self.order_bits

    @property
    def used(self) -> tuple[Operation, ...]:
        """The operations that the calls run."""
        calls = {"signature": self.signs, "quotients": self.verifies, "multiply-add": self.eddsa}
        return tuple(o for o in self.operations if calls.get(o.name, not o.order))

    @property
    def draws(self) -> bool:
        """Whether the engine draws the random factor of coordinates."""
        return self.random and not any(BLIND in o.inputs for o in self.operations)

    @property
    def flagged(self) -> bool:
        """Whether a word behind a scalar says if the point is on the twist."""
        return self.random and self.form == "montgomery"

    @property
    def field(self) -> bool:
        """Whether there is arithmetic modulo p in C."""
        return self.form != "montgomery" or self.flagged

    @property
    def adds(self) -> bool:
        """Whether numbers are added in C."""
        return self.field or bool(self.x)

    @property
    def multiplies(self) -> bool:
        """Whether words are multiplied in C."""
        return self.field or self.split is not None

    @property
    def minus_inverse(self) -> int:
        """-1 / p modulo 2^32."""
        return -pow(self.curve.p, -1, 1 << WORD) % (1 << WORD)

    @property
    def ecdh(self) -> bool:
        """Whether there is a call for ECDH."""
        return self.protocols and "multiply" in self.op

    @property
    def public(self) -> bool:
        """Whether there is a call for a public key."""
        return self.protocols and "multiply-base" in self.op

    @property
    def signs(self) -> bool:
        """Whether there is a call for a signature by ECDSA."""
        return self.public and "signature" in self.op

    @property
    def verifies(self) -> bool:
        """Whether there is a call for its verification."""
        return self.protocols and {"multiply-two", "quotients"} <= self.op.keys()

    @property
    def ed(self) -> str:
        """The signatures of RFC 8032 on this curve: ed25519, ed448 or empty."""
        names: dict[Curve, str] = {ED25519: "ed25519", ED448: "ed448"}
        return names.get(self.curve, "")

    @property
    def ed_bytes(self) -> int:
        """Bytes of an encoded point."""
        assert isinstance(self.curve, Edwards)
        return edwards_size(self.curve)

    @property
    def ed_context(self) -> bool:
        """Whether these signatures have a context."""
        return self.ed == "ed448"

    @property
    def eddsa(self) -> bool:
        """Whether there are calls for a public key and for a signature by Ed25519 or Ed448."""
        return bool(self.ed) and self.bits >= self.order_bits and {"multiply-base", "multiply-add"} <= self.op.keys()

    @property
    def eddsa_verifies(self) -> bool:
        """Whether there is a call for its verification."""
        return self.eddsa and "multiply-two" in self.op

    @property
    def split(self) -> SplitScalar | TwoScalars | None:
        """A recoding that splits scalars by an endomorphism, the same split for all operations; None without one."""
        found = (o.recoding for o in self.operations if isinstance(o.recoding, SplitScalar | TwoScalars))
        return next((recoding for recoding in found if recoding.split), None)

    @property
    def halves(self) -> tuple[tuple[int, int, int], ...]:
        """For each vector (x, y) of the endomorphism (f, -x, -y), up to a common sign of the last two: k is split in
        (k, 0) plus the sum of q (-x, -y), q the integer nearest to f k / n."""
        assert self.split is not None
        assert self.split.split is not None
        (a1, b1), (a2, b2) = self.split.split.vectors
        determinant = a1 * b2 - a2 * b1
        assert abs(determinant) == self.curve.n
        found = []
        for factor, (x, y) in ((b2, (a1, b1)), (-b1, (a2, b2))):
            sign = 1 if (factor < 0) == (determinant < 0) else -1
            found.append((abs(factor), -sign * x, -sign * y))
        return tuple(found)

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of recoding of each operation with scalars, by name."""
        plain = SECRET if self.random else ()
        found = {o.name: PLAIN if o.name in plain else _KINDS[type(o.recoding)] for o in self.operations if not o.order}
        two = self.op.get("multiply-two")
        if two and isinstance(two.recoding, TwoScalars) and two.recoding.split:
            found[two.name] = "split"
        return found

    def context(self) -> dict[str, Any]:
        """What the templates need besides the names of the device."""
        first, rounds = sha512_constants()
        return {
            "c": self, "errors": ERRORS, "first_error": FIRST_ERROR, "words_for": words_for, "number": shown,
            "listed": listed, "signed_offset": signed_offset, "pow": pow, "sha512_first": first,
            "sha512_rounds": rounds, "keccak": Keccak.constants(), "listed_long": partial(listed, bits=64),
        }  # fmt: skip


def words_for(bits: int) -> int:
    """Number of words of a number of these bits."""
    return -(-bits // WORD)


def signed_offset(recoding: Signed) -> int:
    """The number that is added to a scalar before it is split into windows."""
    return sum(1 << recoding.window * i + recoding.window - 1 for i in range(recoding.count))


def shown(number: int, words: int) -> str:
    """The words of a number modulo 2^(32 words) as an initializer in C, least significant word first."""
    return listed(words_of(number, words, WORD))


def listed(words: Sequence[int], bits: int = WORD) -> str:
    """Words of ``bits`` bits, 32 or 64, as an initializer in C."""
    each = _LINE * WORD // bits
    suffix = "u" if bits == WORD else "ull"
    lines = (words[k : k + each] for k in range(0, len(words), each))
    shown = (", ".join(f"0x{word:0{bits // 4}x}{suffix}" for word in line) for line in lines)
    return "{\n" + ",\n".join(f"    {line}" for line in shown) + "\n}"


def sha512_constants() -> tuple[list[int], list[int]]:
    """The first value of SHA-512 and the constants of its rounds: the 64 bits after the point of the square roots of
    the first 8 primes, and of the cube roots of the first 80. Source: FIPS 180-4, Sections 4.2.3 and 5.3.5."""
    primes = [n for n in range(2, 410) if is_prime(n)]
    return [isqrt(n << 128) % 2**64 for n in primes[:8]], [_cube_root(n << 192) % 2**64 for n in primes]


@dataclass(frozen=True)
class Keccak:
    """Constants of Keccak-f[1600]. ``rounds``: of iota. ``lanes``: those to which steps of pi from (1, 0) on come,
    (x, y) as x + 5 y. ``turns``: of rho, to the right. Source: FIPS 202, Sections 3.2.2 to 3.2.5."""

    rounds: tuple[int, ...]
    lanes: tuple[int, ...]
    turns: tuple[int, ...]

    @classmethod
    def constants(cls) -> Keccak:
        """The constants by their definitions."""
        bits, register = [], 1
        for _ in range(255):
            bits.append(register & 1)
            register = register << 1 ^ (0x171 if register >> 7 else 0)
        rounds = tuple(sum(bits[(j + 7 * i) % 255] << (1 << j) - 1 for j in range(7)) for i in range(24))
        lanes, turns, x, y = [], [], 1, 0
        for t in range(24):
            turns.append(-((t + 1) * (t + 2) // 2) % 64)
            x, y = y, (2 * x + 3 * y) % 5
            lanes.append(x + 5 * y)
        return cls(rounds, tuple(lanes), tuple(turns))


def _cube_root(number: int) -> int:
    """The integer below the cube root, bit by bit."""
    root = 0
    for k in reversed(range(number.bit_length() // 3 + 1)):
        if (root | 1 << k) ** 3 <= number:
            root |= 1 << k
    return root
