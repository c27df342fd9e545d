# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Multiples of points for the protocols of elliptic curves: range checks, blinding, check of results.

Figure 1 of the multi-step Montgomery paper has four layers: protocol, point multiplication, point operations, field
operations. A `PointEngine` is everything below the protocols (`ecdh`, `ecdsa`, `eddsa`); `Ecc` is the layer between:

    k' = k + r N            r random, N = n h (on the twist of a Montgomery curve 2 p + 2 - n h), so k' P = k P
    (X : Y : Z) = (l x : l y : l)      l random, an input of the engine

The host checks that every point from an engine is on the curve.

Sources: blinding of scalars and coordinates, J.-S. Coron: Resistance against differential power analysis for elliptic
curve cryptosystems, CHES 1999, Section 5; check of results, I. Biehl, B. Meyer, V. Mueller: Differential fault attacks
on elliptic curve cryptosystems, CRYPTO 2000.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from modmill.contract import Fault, UnsupportedError
from modmill.engines.ecc.points import BLIND as GIVEN_BLIND
from modmill.engines.ranges import require_range
from modmill.numbers.curves.affine import Curve, Montgomery, Point, Weierstrass
from modmill.numbers.curves.projective import multiple_u, multiples
from modmill.numbers.primes import square_root

BLIND = range(129)
"""Accepted lengths, in bits, of the random factor r of a blinded scalar k + r N."""

NUMBERS = {
    "signature": (("k", "z", "r", "d"), ("s",)),
    "quotients": (("s", "z", "r"), ("u1", "u2")),
    "multiply-add": (("k", "s", "r"), ("S",)),
}
"""Names of the inputs, in [0, n), and of the results of each operation modulo the order."""
Run = tuple[tuple[int, ...], Mapping[str, int]]
"""Inputs of one run of an operation: scalars, and numbers by name."""


class PointEngine(ABC):
    """Interface of an engine for one curve to the protocols; a subclass implements ``curve`` and `results`.

    Scalars are in [0, 2^bits), 0 and multiples of n included. ``blinds``: for each item a number in [1, p) that
    multiplies its initial projective coordinates; 1 for no blinding. The time of `multiply`, `multiply_base` and
    `ladder` depends only on ``bits`` and the number of items; that of `multiply_two` may depend on its scalars and
    points, which are public. A Montgomery curve has only `ladder`, other curves have the other three. An engine with
    several threads runs the items interleaved.
    """

    if TYPE_CHECKING:  # a field of one engine, a property of another

        @property
        def curve(self) -> Curve:
            """The curve."""

    @abstractmethod
    def results(self, operation: str, bits: int, runs: Sequence[Run]) -> list[tuple[int, ...]]:
        """Return the results of each run: the affine coordinates of a point, or a u-coordinate.

        operation         scalars   numbers            result
        multiply          k         x, y, blind        k P           (0, 0) is the neutral element of a Weierstrass
        multiply-base     k         blind              k G           curve
        multiply-two      u1, u2    x, y               u1 G + u2 P   ``bits`` is 0: scalars are below n
        ladder            k         u, blind           u of k P      0 for the neutral element
        """

    def multiply(
        self, scalars: Sequence[int], points: Sequence[Point], bits: int, blinds: Sequence[int]
    ) -> list[Point]:
        """k P for each pair; P is any point of the curve. Raises UnsupportedError for the point at infinity."""
        items = zip(scalars, points, blinds, strict=True)
        return self._points("multiply", bits, [((k,), _given(P) | {GIVEN_BLIND: blind}) for k, P, blind in items])

    def multiply_base(self, scalars: Sequence[int], bits: int, blinds: Sequence[int]) -> list[Point]:
        """k G for each scalar."""
        items = zip(scalars, blinds, strict=True)
        return self._points("multiply-base", bits, [((k,), {GIVEN_BLIND: blind}) for k, blind in items])

    def multiply_two(self, scalars: Sequence[tuple[int, int]], points: Sequence[Point]) -> list[Point]:
        """u1 G + u2 P for each pair (u1, u2) below n, and each P as in `multiply`."""
        return self._points("multiply-two", 0, [(both, _given(P)) for both, P in zip(scalars, points, strict=True)])

    def ladder(self, scalars: Sequence[int], us: Sequence[int], bits: int, blinds: Sequence[int]) -> list[int]:
        """The u-coordinate of k P for each k and u of P, on the curve or its twist; 0 for the neutral element."""
        items = zip(scalars, us, blinds, strict=True)
        return [u for (u,) in self.results("ladder", bits, [((k,), {"u": u, GIVEN_BLIND: b}) for k, u, b in items])]

    def _points(self, operation: str, bits: int, runs: Sequence[Run]) -> list[Point]:
        neutral = (0, 0) if isinstance(self.curve, Weierstrass) else None
        return [None if (x, y) == neutral else (x, y) for x, y in self.results(operation, bits, runs)]


def _given(P: Point) -> dict[str, int]:
    if P is None:
        raise UnsupportedError("an engine cannot multiply the point at infinity: an affine point (x, y) is needed")
    return {"x": P[0], "y": P[1]}


class OrderArithmetic(ABC):
    """Arithmetic modulo the prime order n of the base point, for signatures. All numbers are in [0, n); numbers to be
    inverted are not 0. ``where``: text that says where it runs."""

    if TYPE_CHECKING:

        @property
        def where(self) -> str:
            """Where it runs, as text."""

    @abstractmethod
    def results(self, n: int, operation: str, runs: Sequence[Mapping[str, int]]) -> list[tuple[int, ...]]:
        """Return the results of each run of an operation of `NUMBERS`; a run maps names to numbers in [0, n)."""

    def signatures(self, n: int, items: Sequence[tuple[int, int, int, int]]) -> list[int]:
        """k^-1 (z + r d) mod n of each (k, z, r, d)."""
        return [s for (s,) in self._results(n, "signature", items)]

    def quotients(self, n: int, items: Sequence[tuple[int, int, int]]) -> list[tuple[int, int]]:
        """(z s^-1, r s^-1) mod n of each (s, z, r)."""
        return [(u1, u2) for u1, u2 in self._results(n, "quotients", items)]

    def multiply_adds(self, n: int, items: Sequence[tuple[int, int, int]]) -> list[int]:
        """r + k s mod n of each (k, s, r)."""
        return [S for (S,) in self._results(n, "multiply-add", items)]

    def _results(self, n: int, operation: str, items: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        names, _ = NUMBERS[operation]
        return self.results(n, operation, [dict(zip(names, item, strict=True)) for item in items])


def order_reference(operation: str, n: int, given: Mapping[str, int], inverse: Callable[[int], int]) -> tuple[int, ...]:
    """Results of an operation of `NUMBERS` by Python's integers; ``inverse``: function for x^-1 mod n."""
    match operation:
        case "signature":
            return (inverse(given["k"]) * (given["z"] + given["r"] * given["d"]) % n,)
        case "quotients":
            w = inverse(given["s"])
            return given["z"] * w % n, given["r"] * w % n
    return ((given["r"] + given["k"] * given["s"]) % n,)


@dataclass(frozen=True)
class HostOrder(OrderArithmetic):
    """Python's integers, on the host, not in constant time. The number to be inverted is multiplied by a random b."""

    where: str = "host"

    def results(self, n: int, operation: str, runs: Sequence[Mapping[str, int]]) -> list[tuple[int, ...]]:
        def inverse(x: int) -> int:
            b = 1 + secrets.randbelow(n - 1)
            return b * pow(x * b, -1, n) % n

        return [order_reference(operation, n, given, inverse) for given in runs]


def reference(curve: Curve, operation: str, run: Run) -> tuple[int, ...]:
    """Expected results of a run of an operation of a `PointEngine`, by `numbers.curves`."""
    scalars, given = run
    if operation == "ladder":
        assert isinstance(curve, Montgomery)
        return (multiple_u(curve, scalars[0], given["u"]),)
    terms: list[tuple[int, Point]] = []
    if operation != "multiply":
        terms.append((scalars[0], curve.base))
    if operation != "multiply-base":
        terms.append((scalars[-1], (given["x"], given["y"])))
    found = multiples(curve, terms)
    return found if found is not None else (0, 0)


@dataclass(frozen=True)
class ReferenceEngine(PointEngine):
    """An engine on `numbers.curves`, neither bit-exact nor in constant time: for tests and test keys only. Raises
    UnsupportedError for scalars outside [0, 2^bits)."""

    curve: Curve

    def results(self, operation: str, bits: int, runs: Sequence[Run]) -> list[tuple[int, ...]]:
        secret = [] if operation == "multiply-two" else [k for scalars, _ in runs for k in scalars]
        require_range(secret, 1 << bits, f"a scalar must be in [0, 2^{bits})")
        return [reference(self.curve, operation, run) for run in runs]


@dataclass(frozen=True)
class Ecc:
    """Point multiplication for protocols, on an engine. The engine is not called for an empty list.

    ``blind_scalar``: bits of the random multiple of the order that is added to each secret scalar, 0 for none.
    ``blind_coordinates``: whether projective coordinates are multiplied by a random number at the start. ``check``:
    whether a signature is verified before it is released. ``order``: arithmetic modulo the order. ``below``: function
    that returns a random number below its argument. Raises UnsupportedError if ``blind_scalar`` is not in `BLIND`.
    """

    engine: PointEngine
    blind_scalar: int = 0
    blind_coordinates: bool = False
    check: bool = True
    order: OrderArithmetic = field(default_factory=HostOrder)
    below: Callable[[int], int] = secrets.randbelow

    def __post_init__(self) -> None:
        if self.blind_scalar not in BLIND:
            raise UnsupportedError(
                f"the blinding of a scalar has {BLIND[0]} to {BLIND[-1]} bits, got {self.blind_scalar}"
            )

    @property
    def curve(self) -> Curve:
        """The curve of the engine."""
        return self.engine.curve

    @property
    def bits(self) -> int:
        """Length in bits of the scalars passed to the engine's `multiply` and `multiply_base`, with blinding."""
        return scalar_bits(self.curve, self.blind_scalar)

    def multiply(self, scalars: Sequence[int], points: Sequence[Point]) -> list[Point]:
        """k P for each pair; k is secret, in [0, n]; P is any point of the curve, including the neutral one.

        Raises UnsupportedError for a scalar out of range, a point off the curve and, on a Weierstrass curve of even
        cofactor, a point outside the group of the base point; Fault if a result is off the curve.
        """
        self._require(scalars)
        if not all(map(self.curve.contains, points)):
            raise UnsupportedError(f"the point is not on {self.curve.title}")
        self._require_group(points)
        if not points:
            return []
        real = [self.curve.base if P is None else P for P in points]
        found = self.engine.multiply(self._blinded(scalars), real, self.bits, self._blinds(len(scalars)))
        return self._on_curve([self.curve.zero if P is None else kP for P, kP in zip(points, found, strict=True)])

    def multiply_base(self, scalars: Sequence[int]) -> list[Point]:
        """k G for each secret scalar k in [0, n]. Raises UnsupportedError and Fault as `multiply` does."""
        self._require(scalars)
        if not scalars:
            return []
        return self._on_curve(self.engine.multiply_base(self._blinded(scalars), self.bits, self._blinds(len(scalars))))

    def multiply_two(self, scalars: Sequence[tuple[int, int]], points: Sequence[Point]) -> list[Point]:
        """u1 G + u2 P for each pair (u1, u2) below n and each P; all are public. P is on the curve, not at infinity.
        Raises UnsupportedError as `multiply` does for the points, Fault if a result is off the curve."""
        self._require_group(points)
        return self._on_curve(self.engine.multiply_two(scalars, points)) if scalars else []

    def ladder(self, scalars: Sequence[int], us: Sequence[int], bits: int) -> list[int]:
        """The u-coordinates of k P for secret k in [0, 2^bits) and any u in [0, p), by the engine's ladder.

        Results are not checked, because every u belongs to the curve or to its twist. Raises UnsupportedError for a
        curve that is not a Montgomery curve.
        """
        curve = self.curve
        if not isinstance(curve, Montgomery):
            raise UnsupportedError(f"{curve.title} has no ladder: the ladder needs a Montgomery curve")
        if not us:
            return []
        if self.blind_scalar:
            own, twist = both_orders(curve)
            bits = max(bits + self.blind_scalar, scalar_bits(curve, self.blind_scalar))
            orders = [twist if on_twist(curve, u) else own for u in us]
            scalars = [k + N * self.below(1 << self.blind_scalar) for k, N in zip(scalars, orders, strict=True)]
        return self.engine.ladder(scalars, us, bits, self._blinds(len(us)))

    def _require_group(self, points: Sequence[Point]) -> None:
        """On a Weierstrass curve with points of order two, sums are correct only in the group of the base point."""
        curve = self.curve
        even = isinstance(curve, Weierstrass) and curve.h % 2 == 0
        for P in points if even else ():
            if P is not None and multiples(curve, [(curve.n, P)]) is not None:
                raise UnsupportedError(
                    f"the point is not in the group of the base point of {curve.title}: "
                    "only multiples of the base point are accepted"
                )

    def _require(self, scalars: Sequence[int]) -> None:
        n = self.curve.n
        require_range(scalars, n + 1, f"a scalar must be in [0, n], n of {n.bit_length()} bits")

    def _blinded(self, scalars: Sequence[int]) -> list[int]:
        if not self.blind_scalar:
            return list(scalars)
        group = self.curve.n * self.curve.h
        return [k + group * self.below(1 << self.blind_scalar) for k in scalars]

    def _blinds(self, count: int) -> list[int]:
        return [1 + self.below(self.curve.p - 1) if self.blind_coordinates else 1 for _ in range(count)]

    def _on_curve(self, points: Sequence[Point]) -> list[Point]:
        if not all(map(self.curve.contains, points)):
            raise Fault(f"a result is not on {self.curve.title}; nothing is released")
        return list(points)


def require_point(curve: Curve, P: Point) -> Point:
    """Return the public point. Raises UnsupportedError if it is neutral, off the curve or outside the group of the base
    point, which is tested on the host if the cofactor is not 1."""
    if not curve.contains(P):
        raise UnsupportedError(f"the public point is not on {curve.title}")
    if curve.zero == P:
        raise UnsupportedError(f"the public point is the neutral element of {curve.title}")
    if curve.h != 1 and multiples(curve, [(curve.n, P)]) != curve.zero:
        raise UnsupportedError(f"the public point is not in the group of prime order of {curve.title}")
    return P


def require_scalar(curve: Curve, k: int) -> int:
    """Return the private scalar. Raises UnsupportedError if it is not in [1, n)."""
    if not 0 < k < curve.n:
        what = str(k) if abs(k) < 2 else f"of {k.bit_length()} bits"
        raise UnsupportedError(f"the private scalar {what} is not in [1, n - 1] of {curve.title}")
    return k


def require_weierstrass(curve: Curve) -> Weierstrass:
    """Return the curve. Raises UnsupportedError if it has another form, or is for arithmetic only."""
    if not isinstance(curve, Weierstrass):
        raise UnsupportedError(f"{curve.title} is not a Weierstrass curve: ECDH and ECDSA need one")
    if curve.arithmetic:
        raise UnsupportedError(f"{curve.title} is for arithmetic only, not for ECDH and ECDSA: {curve.unsuited()}")
    return curve


def scalar_bits(curve: Curve, blind: int = 0) -> int:
    """Bits of the scalars of an engine for the curve: those of n, for a ladder of p; with ``blind`` bits of blinding
    those of k + r N for every r and every group order N."""
    ladder = isinstance(curve, Montgomery)
    if not blind:
        return (curve.p if ladder else curve.n).bit_length()
    orders = both_orders(curve) if isinstance(curve, Montgomery) else (curve.n * curve.h,)
    return max(x.bit_length() for x in (*orders, curve.p if ladder else 0)) + blind


def both_orders(curve: Montgomery) -> tuple[int, int]:
    """Number of points of the curve and of its twist; their sum is 2 p + 2."""
    own = curve.n * curve.h
    return own, 2 * curve.p + 2 - own


def on_twist(curve: Montgomery, u: int) -> bool:
    """Whether the points with this u-coordinate are on the twist of the curve, and not on the curve."""
    return square_root(curve.right(u) * curve.B, curve.p) is None
