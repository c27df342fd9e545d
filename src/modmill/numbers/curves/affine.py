# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Elliptic curves over prime fields, with textbook affine arithmetic: the reference for all other point arithmetic.

    Weierstrass   y^2 = x^3 + a x + b            4 a^3 + 27 b^2 != 0              neutral element: None
    Montgomery    B v^2 = u^3 + A u^2 + u        B (A^2 - 4) != 0                 neutral element: None
    Edwards       a x^2 + y^2 = 1 + d x^2 y^2    a d (a - d) != 0                 neutral element: (0, 1)

Sums by chord and tangent, with one inversion modulo p each. The code is slow and shares nothing with an engine. For
Edwards curves a must be a square modulo p and d a non-square, so that the addition law is complete. Source: D. J.
Bernstein, T. Lange: Faster Addition and Doubling on Elliptic Curves. ASIACRYPT, 2007, Section 3. `numbers.curves.named`
has the table of curves, `numbers.curves.encoding` the encodings of points, `numbers.curves.projective` faster
multiples.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from math import isqrt

from modmill.numbers.primes import is_prime, square_root
from modmill.numbers.shown import shortened

Affine = tuple[int, int]
"""Coordinates of a point, each in [0, p)."""
Point = Affine | None
"""A point; None is the point at infinity of a Weierstrass or Montgomery curve."""

MAX_FIELD_BITS = 1024
"""Length of the longest accepted field prime, in bits."""
_EMBEDDING = 100
"""Smallest embedding degree accepted (SEC 1 v2.0 (2009), Section 3.1.1.2.1)."""


@dataclass(frozen=True)
class Curve(ABC):
    """Abstract base of the three forms.

    p: the field prime; base: the base point G; n: its order, a prime; h: the cofactor, so that the curve has n h
    points. name, oid (dotted numbers) and source may be empty; aliases: other names. arithmetic: no protocols, for the
    reason that `unsuited` gives. The constructor checks nothing; `validate` checks a user's curve once.
    """

    p: int
    base: Affine
    n: int
    h: int = 1
    name: str = ""
    oid: str = ""
    source: str = "given by the user"
    aliases: tuple[str, ...] = ()
    arithmetic: bool = False

    @property
    def bits(self) -> int:
        """Bits of p."""
        return self.p.bit_length()

    @property
    def size(self) -> int:
        """Bytes of a coordinate."""
        return -(-self.bits // 8)

    @property
    def zero(self) -> Point:
        """The neutral element."""
        return None

    @property
    def title(self) -> str:
        """The name, or a description for messages."""
        return self.name or f"a curve over {self.bits} bits"

    def coefficients(self) -> dict[str, int]:
        """The coefficients of the equation, by letter: the fields that a form adds."""
        return {field.name: getattr(self, field.name) for field in fields(self)[len(fields(Curve)) :]}

    def contains(self, P: Point) -> bool:
        """Whether P is the neutral element or satisfies the equation, with both coordinates in [0, p)."""
        if P is None:
            return self.zero is None
        return all(0 <= c < self.p for c in P) and self._holds(*P)

    def negate(self, P: Point) -> Point:
        """-P."""
        return P and (P[0], -P[1] % self.p)

    @abstractmethod
    def add(self, P: Point, Q: Point) -> Point:
        """P + Q for any two points on the curve."""

    def multiply(self, k: int, P: Point) -> Point:
        """k P for any integer k and P on the curve, by double-and-add."""
        if k < 0:
            k, P = -k, self.negate(P)
        total = self.zero
        for bit in bin(k)[2:]:
            total = self.add(total, total)
            if bit == "1":
                total = self.add(total, P)
        return total

    def embedding_degree(self) -> int:
        """The least i < 100 with p^i = 1 mod n; 0 if there is none or n < 101."""
        power = 1
        for i in range(1, _EMBEDDING):
            power = power * self.p % self.n
            if power == 1 and self.n > _EMBEDDING:
                return i
        return 0

    def unsuited(self) -> str:
        """The reason why ECDH and ECDSA are not offered on the curve; empty if they are."""
        degree = self.embedding_degree()
        return f"its embedding degree is {degree}: logarithms move into the field of p^{degree} elements" * (degree > 0)

    def validate(self, *, pairing: bool = False) -> None:
        """Prove that the curve is usable. Raises ValueError, in one line, for the first condition that fails.

        Conditions: p an odd prime, the curve non-singular, G on the curve and not neutral, n prime, n G = O, Hasse's
        bound |n h - p - 1| <= 2 sqrt(p), and n > 4 sqrt(p), so that no other multiple of n satisfies the bound and the
        curve has n h points. Refused as weak: n = p, and, unless ``pairing``, p^i = 1 mod n for an i < 100.
        """
        self.check_field()
        for letter, value in self.coefficients().items():
            if not 0 <= value < self.p:
                raise ValueError(f"the coefficient {letter} = {shortened(value)} is not in [0, p)")
        self._check_equation()
        x, y = self.base
        if self.base == self.zero:
            raise ValueError(f"the base point ({x}, {y}) is the neutral element of the curve; it must be another point")
        if not self.contains(self.base):
            raise ValueError(f"the base point ({shortened(x)}, {shortened(y)}) is not on the curve")
        self._check_order()
        if not pairing and (degree := self.embedding_degree()):
            raise ValueError(
                f"p^{degree} = 1 mod n: logarithms move into the field of p^{degree} elements (embedding degree "
                f"{degree}); --allow-pairing builds arithmetic on such a curve"
            )

    def check_field(self) -> None:
        """Raise ValueError unless p is a prime of at least 5 and at most 1024 bits."""
        if self.p.bit_length() > MAX_FIELD_BITS:
            raise ValueError(f"the field prime has {self.bits} bits; at most {MAX_FIELD_BITS} are accepted")
        if self.p < 5 or not is_prime(self.p):
            raise ValueError(f"the field needs a prime p of at least 5; p = {shortened(self.p)} is not one")

    def _check_order(self) -> None:
        p, n, h = self.p, self.n, self.h
        small = n.bit_length() <= p.bit_length() + 1  # else the test for a prime may take minutes
        if n < 2 or (small and not is_prime(n)):
            raise ValueError(f"the order of the base point must be prime; n = {shortened(n)} is not")
        if h < 1 or (n * h - p - 1) ** 2 > 4 * p:
            raise ValueError(
                f"n h = {shortened(n)} * {h} is more than 2 sqrt(p) away from p + 1 = {shortened(p + 1)} (Hasse)"
            )
        if n * n <= 16 * p:
            raise ValueError(f"n = {shortened(n)} is at most 4 sqrt(p) = {isqrt(16 * p)} and does not fix the cofactor")
        if self.multiply(n, self.base) != self.zero:
            raise ValueError(f"n G is not the neutral element: n = {shortened(n)} is not the order of the base point")
        if n == p:
            raise ValueError("n = p: the curve is anomalous, and its logarithms are easy")

    @abstractmethod
    def _check_equation(self) -> None:
        """Raise ValueError if the curve is singular."""

    @abstractmethod
    def _holds(self, x: int, y: int) -> bool:
        """Whether (x, y) satisfies the equation."""


def _chord(p: int, cubic: tuple[int, int, int], P: Point, Q: Point) -> Point:
    """P + Q on B y^2 = x^3 + A x^2 + a x + b, ``cubic`` = (B, A, a): the negated third point of the chord, or of the
    tangent if P = Q."""
    if P is None or Q is None:
        return Q if P is None else P
    (B, A, a), (x1, y1), (x2, y2) = cubic, P, Q
    if x1 == x2:
        if (y1 + y2) % p == 0:
            return None
        slope = (3 * x1 * x1 + 2 * A * x1 + a) * pow(2 * B * y1, -1, p)
    else:
        slope = (y2 - y1) * pow(x2 - x1, -1, p)
    x3 = (B * slope * slope - A - x1 - x2) % p
    return x3, (slope * (x1 - x3) - y1) % p


@dataclass(frozen=True)
class Weierstrass(Curve):
    """y^2 = x^3 + a x + b, 0 <= a, b < p."""

    a: int = 0
    b: int = 0

    def unsuited(self) -> str:
        """The reason of `Curve.unsuited`, or an even cofactor (points of order two)."""
        why = [super().unsuited()] if self.embedding_degree() else []
        if self.h % 2 == 0:
            why.append(f"its cofactor {shortened(self.h)} is even: sums are right on multiples of the base point only")
        return "; ".join(why)

    def right(self, x: int) -> int:
        """The right-hand side x^3 + a x + b mod p."""
        return ((x * x + self.a) * x + self.b) % self.p

    def add(self, P: Point, Q: Point) -> Point:
        return _chord(self.p, (1, 0, self.a), P, Q)

    def _check_equation(self) -> None:
        if (4 * self.a**3 + 27 * self.b**2) % self.p == 0:
            raise ValueError("the curve is singular: 4 a^3 + 27 b^2 = 0 mod p")

    def _holds(self, x: int, y: int) -> bool:
        return (y * y - self.right(x)) % self.p == 0


@dataclass(frozen=True)
class Montgomery(Curve):
    """B v^2 = u^3 + A u^2 + u, 0 <= A, B < p. Its base point is (u, v)."""

    A: int = 0
    B: int = 1

    @property
    def a24(self) -> int:
        """(A - 2) / 4 mod p, the constant of RFC 7748's ladder."""
        return (self.A - 2) * pow(4, -1, self.p) % self.p

    def right(self, u: int) -> int:
        """The right-hand side u^3 + A u^2 + u mod p, equal to B v^2."""
        return ((u + self.A) * u + 1) * u % self.p

    def add(self, P: Point, Q: Point) -> Point:
        return _chord(self.p, (self.B, self.A, 1), P, Q)

    def multiply_u(self, k: int, u: int) -> int:
        """The u-coordinate of k times a point with coordinate u; 0 if this is the neutral element; k >= 0, 0 <= u < p.

        u may be on the curve or on its twist. It is on the curve with B = u^3 + A u^2 + u, where v = 1, and
        u-coordinates do not depend on B. If this B is zero, u has order two.
        """
        u %= self.p
        B = self.right(u)
        if B == 0:
            return u if k % 2 else 0
        P = replace(self, B=B).multiply(k, (u, 1))
        return 0 if P is None else P[0]

    def _check_equation(self) -> None:
        if self.B * (self.A**2 - 4) % self.p == 0:
            raise ValueError("the curve is singular: B (A^2 - 4) = 0 mod p")

    def _holds(self, u: int, v: int) -> bool:
        return (self.B * v * v - self.right(u)) % self.p == 0


@dataclass(frozen=True)
class Edwards(Curve):
    """a x^2 + y^2 = 1 + d x^2 y^2, 0 <= a, d < p, a a square and d a non-square modulo p."""

    a: int = 1
    d: int = 0

    @property
    def zero(self) -> Affine:
        """The neutral element, (0, 1)."""
        return 0, 1

    def negate(self, P: Point) -> Point:
        """-P = (-x, y)."""
        return P and (-P[0] % self.p, P[1])

    def add(self, P: Point, Q: Point) -> Point:
        """P + Q, by one formula for all pairs. Raises ValueError for None: this form has no point at infinity."""
        if P is None or Q is None:
            raise ValueError("an Edwards curve has no point at infinity; its neutral element is (0, 1)")
        p, (x1, y1), (x2, y2) = self.p, P, Q
        k = self.d * x1 * x2 * y1 * y2
        x3 = (x1 * y2 + y1 * x2) * pow(1 + k, -1, p) % p
        return x3, (y1 * y2 - self.a * x1 * x2) * pow(1 - k, -1, p) % p

    def _check_equation(self) -> None:
        if self.a * self.d * (self.a - self.d) % self.p == 0:
            raise ValueError("the curve is singular: a d (a - d) = 0 mod p")
        if square_root(self.a, self.p) is None or square_root(self.d, self.p) is not None:
            raise ValueError("the addition law has exceptions: a must be a square modulo p and d a non-square")

    def _holds(self, x: int, y: int) -> bool:
        return (self.a * x * x + y * y - 1 - self.d * x * x * y * y) % self.p == 0
