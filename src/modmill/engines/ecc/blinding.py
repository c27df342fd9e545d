# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Multiples of points on an engine, as the protocols of elliptic curves ask for them: ranges, blinding, checks.

Figure 1 of the multi-step Montgomery paper has four floors: protocol, point multiplication, point operations, field
operations. A `PointEngine` is everything below the protocols (`ecdh`, `ecdsa`, `eddsa`); `Ecc` stands between:

    k' = k + r N            r random, N = n h (on the twist of a Montgomery curve 2 p + 2 - n h), so k' P = k P
    (X : Y : Z) = (l x : l y : l)      l random, handed to the engine

Every point that comes back is checked to be on the curve, on the host. Sources: blinding of scalars and coordinates,
J.-S. Coron, "Resistance against differential power analysis for elliptic curve cryptosystems", CHES 1999, block 5;
the check, I. Biehl, B. Meyer, V. Mueller, "Differential fault attacks on elliptic curve cryptosystems", CRYPTO 2000.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from modmill.contract import Fault, UnsupportedError
from modmill.engines.ecc.points import BLIND as GIVEN_BLIND
from modmill.numbers.curves.affine import Curve, Montgomery, Point, Weierstrass
from modmill.numbers.curves.projective import multiple_u, multiples
from modmill.numbers.primes import square_root

BLIND = range(129)
"""Bits of the random multiple of the order that a scalar may be blinded with."""


NUMBERS = {
    "signature": (("k", "z", "r", "d"), ("s",)),
    "quotients": (("s", "z", "r"), ("u1", "u2")),
    "multiply-add": (("k", "s", "r"), ("S",)),
}
"""For each operation modulo the order the numbers that it takes, in [0, n), and those that it gives."""
Run = tuple[tuple[int, ...], Mapping[str, int]]
"""What an operation is run on: scalars, and numbers by name."""


class PointEngine(ABC):
    """What the protocols ask of an engine for one curve; an engine gives ``curve`` and `results`.

    Scalars are in [0, 2^bits); 0, n and their neighbours are nothing special. ``blinds``: for each item the number in
    [1, p) by which its projective coordinates start multiplied; 1 for none. The time of `multiply`, `multiply_base` and
    `ladder` depends on ``bits`` and the number of items alone; that of `multiply_two` may show its scalars and points,
    which are public. A curve has the first three or, where it is a Montgomery curve, the ladder. Items run interleaved
    where the engine has several threads.
    """

    if TYPE_CHECKING:  # a field of one engine, a property of another

        @property
        def curve(self) -> Curve:
            """The curve."""

    @abstractmethod
    def results(self, operation: str, bits: int, runs: Sequence[Run]) -> list[tuple[int, ...]]:
        """What each run of an operation gives: the coordinates of a point, or a u-coordinate.

        multiply          k         x, y, blind        k P           (0, 0) is the neutral element of a Weierstrass
        multiply-base     k         blind              k G           curve
        multiply-two      u1, u2    x, y               u1 G + u2 P   ``bits`` is 0: scalars are below n
        ladder            k         u, blind           u of k P      0 for the neutral element
        """

    def multiply(
        self, scalars: Sequence[int], points: Sequence[Point], bits: int, blinds: Sequence[int]
    ) -> list[Point]:
        """k P for each pair; P any point of the curve, but not the point at infinity."""
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
        """The u-coordinate of k P for each k and each u of a P, on the curve or its twist; 0 for the neutral."""
        items = zip(scalars, us, blinds, strict=True)
        return [u for (u,) in self.results("ladder", bits, [((k,), {"u": u, GIVEN_BLIND: b}) for k, u, b in items])]

    def _points(self, operation: str, bits: int, runs: Sequence[Run]) -> list[Point]:
        neutral = (0, 0) if isinstance(self.curve, Weierstrass) else None
        return [None if (x, y) == neutral else (x, y) for x, y in self.results(operation, bits, runs)]


def _given(P: Point) -> dict[str, int]:
    if P is None:
        raise UnsupportedError("the engine takes no point at infinity")
    return {"x": P[0], "y": P[1]}


class OrderArithmetic(ABC):
    """Arithmetic modulo the prime order n of the base point, as signatures need it: all numbers are in [0, n), and what
    is inverted is not 0. ``where``: where it is done, in words."""

    if TYPE_CHECKING:

        @property
        def where(self) -> str:
            """Where it is done."""

    @abstractmethod
    def results(self, n: int, operation: str, runs: Sequence[Mapping[str, int]]) -> list[tuple[int, ...]]:
        """What each run of an operation of `NUMBERS` gives for numbers in [0, n) by their names."""

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
    """The results of one of `NUMBERS` by Python's integers; ``inverse``: of a number modulo n."""
    match operation:
        case "signature":
            return (inverse(given["k"]) * (given["z"] + given["r"] * given["d"]) % n,)
        case "quotients":
            w = inverse(given["s"])
            return given["z"] * w % n, given["r"] * w % n
    return ((given["r"] + given["k"] * given["s"]) % n,)


@dataclass(frozen=True)
class HostOrder(OrderArithmetic):
    """Python's integers, on the host: not constant in time. An inverse is taken of x b, b random, and multiplied."""

    where: str = "host"

    def results(self, n: int, operation: str, runs: Sequence[Mapping[str, int]]) -> list[tuple[int, ...]]:
        """What each run gives."""
        return [order_reference(operation, n, given, lambda x: self._inverse(n, x)) for given in runs]

    def _inverse(self, n: int, x: int) -> int:
        """x^-1 = b (x b)^-1 mod n."""
        b = 1 + secrets.randbelow(n - 1)
        return b * pow(x * b, -1, n) % n


def reference(curve: Curve, operation: str, run: Run) -> tuple[int, ...]:
    """What a run of an operation of a `PointEngine` must give, by `numbers.curves`."""
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
    """The engine on `numbers.curves`: not bit-exact, not constant in time, for tests and for keys of no value.

    Raises UnsupportedError for scalars that are longer than it is told.
    """

    curve: Curve

    def results(self, operation: str, bits: int, runs: Sequence[Run]) -> list[tuple[int, ...]]:
        """What each run gives."""
        for k in (k for scalars, _ in runs for k in scalars if operation != "multiply-two"):
            if not 0 <= k < 1 << bits:
                raise UnsupportedError(f"a scalar of {k.bit_length()} bits does not fit the engine's {bits}")
        return [reference(self.curve, operation, run) for run in runs]


@dataclass(frozen=True)
class Ecc:
    """Point multiplication for protocols, on an engine, which is never asked for nothing.

    ``blind_scalar``: bits of the random multiple of the order added to each secret scalar, 0 for none.
    ``blind_coordinates``: whether projective coordinates start multiplied by a random number. ``check``: whether a
    signature is verified before it is released. ``order``: what computes modulo the order. ``below``: a random number
    below its argument.
    """

    engine: PointEngine
    blind_scalar: int = 0
    blind_coordinates: bool = False
    check: bool = True
    order: OrderArithmetic = field(default_factory=HostOrder)
    below: Callable[[int], int] = secrets.randbelow

    def __post_init__(self) -> None:
        if self.blind_scalar not in BLIND:
            raise UnsupportedError(f"scalars are blinded with {BLIND[0]} to {BLIND[-1]} bits, not {self.blind_scalar}")

    @property
    def curve(self) -> Curve:
        """The curve of the engine."""
        return self.engine.curve

    @property
    def bits(self) -> int:
        """Length of the scalars that reach the engine's `multiply` and `multiply_base`."""
        group = self.curve.n * self.curve.h if self.blind_scalar else self.curve.n
        return group.bit_length() + self.blind_scalar

    def multiply(self, scalars: Sequence[int], points: Sequence[Point]) -> list[Point]:
        """k P for each pair, k secret, in [0, n]; P any point of the curve, the neutral one included.

        Raises UnsupportedError for a scalar out of range, a point off the curve and, on a Weierstrass curve of even
        cofactor, a point outside the group of the base point; Fault when a result is off the curve.
        """
        self._require(scalars)
        for P in points:
            if not self.curve.contains(P):
                raise UnsupportedError(f"the point is not on {self.curve.title}")
        self._require_group(points)
        if not points:
            return []
        real = [self.curve.base if P is None else P for P in points]
        found = self.engine.multiply(self._blinded(scalars), real, self.bits, self._blinds(len(scalars)))
        kept = [self.curve.zero if P is None else kP for P, kP in zip(points, found, strict=True)]
        return self._on_curve(kept)

    def multiply_base(self, scalars: Sequence[int]) -> list[Point]:
        """k G for each scalar, secret, in [0, n]. Raises UnsupportedError and Fault as `multiply` does."""
        self._require(scalars)
        if not scalars:
            return []
        return self._on_curve(self.engine.multiply_base(self._blinded(scalars), self.bits, self._blinds(len(scalars))))

    def multiply_two(self, scalars: Sequence[tuple[int, int]], points: Sequence[Point]) -> list[Point]:
        """u1 G + u2 P for each pair below n, all of them public; P on the curve and not at infinity.

        Raises UnsupportedError as `multiply` does for the points, Fault when a result is off the curve.
        """
        self._require_group(points)
        return self._on_curve(self.engine.multiply_two(scalars, points)) if scalars else []

    def ladder(self, scalars: Sequence[int], us: Sequence[int], bits: int) -> list[int]:
        """The u-coordinates of k P for secret k in [0, 2^bits) and any u in [0, p), by the engine's ladder.

        A result is not checked: every u belongs to the curve or to its twist.
        """
        curve = self.curve
        if not isinstance(curve, Montgomery):
            raise UnsupportedError(f"{curve.title} is no Montgomery curve: it has no ladder on u alone")
        if not us:
            return []
        if self.blind_scalar:
            orders = [_points_with(curve, u) for u in us]
            scalars = [k + N * self.below(1 << self.blind_scalar) for k, N in zip(scalars, orders, strict=True)]
            bits = max(bits, *(N.bit_length() for N in both_orders(curve))) + self.blind_scalar
        return self.engine.ladder(scalars, us, bits, self._blinds(len(us)))

    def _require_group(self, points: Sequence[Point]) -> None:
        """On a Weierstrass curve with points of order two, sums are right in the group of the base point alone."""
        curve = self.curve
        if not isinstance(curve, Weierstrass) or curve.h % 2:
            return
        for P in points:
            if P is not None and multiples(curve, [(curve.n, P)]) is not None:
                raise UnsupportedError(
                    f"the point is not in the group of the base point of {curve.title}, of odd order n"
                )

    def _require(self, scalars: Sequence[int]) -> None:
        for k in scalars:
            if not 0 <= k <= self.curve.n:
                raise UnsupportedError(
                    f"a scalar of {k.bit_length()} bits is not in [0, n], n of {self.curve.n.bit_length()}"
                )

    def _blinded(self, scalars: Sequence[int]) -> list[int]:
        if not self.blind_scalar:
            return list(scalars)
        group = self.curve.n * self.curve.h
        return [k + group * self.below(1 << self.blind_scalar) for k in scalars]

    def _blinds(self, count: int) -> list[int]:
        return [1 + self.below(self.curve.p - 1) if self.blind_coordinates else 1 for _ in range(count)]

    def _on_curve(self, points: Sequence[Point]) -> list[Point]:
        if not all(self.curve.contains(P) for P in points):
            raise Fault(f"a result is not on {self.curve.title}; nothing is released")
        return list(points)


def require_point(curve: Curve, P: Point) -> Point:
    """The point itself. Raises UnsupportedError when it is neutral, off the curve or outside the group of the base
    point.

    The last is looked at only where there is a cofactor, on the host: the point is public.
    """
    if not curve.contains(P):
        raise UnsupportedError(f"the public point is not on {curve.title}")
    if curve.zero == P:
        raise UnsupportedError(f"the public point is the neutral element of {curve.title}")
    if curve.h != 1 and multiples(curve, [(curve.n, P)]) != curve.zero:
        raise UnsupportedError(f"the public point is not in the group of prime order of {curve.title}")
    return P


def require_scalar(curve: Curve, k: int) -> int:
    """The private scalar itself. Raises UnsupportedError when it is not in [1, n)."""
    if not 0 < k < curve.n:
        what = str(k) if abs(k) < 2 else f"of {k.bit_length()} bits"
        raise UnsupportedError(f"the private scalar {what} is not in [1, n - 1] of {curve.title}")
    return k


def require_weierstrass(curve: Curve) -> Weierstrass:
    """The curve itself. Raises UnsupportedError when it has another form."""
    if not isinstance(curve, Weierstrass):
        raise UnsupportedError(f"{curve.title} is no Weierstrass curve: ECDH and ECDSA need one")
    if curve.arithmetic:
        raise UnsupportedError(f"{curve.title} is for arithmetic alone, not for ECDH and ECDSA: {curve.unsuited()}")
    return curve


def both_orders(curve: Montgomery) -> tuple[int, int]:
    """The number of points of the curve, and of its twist: together 2 p + 2."""
    own = curve.n * curve.h
    return own, 2 * curve.p + 2 - own


def _points_with(curve: Montgomery, u: int) -> int:
    """The number of points of the one of the two on which u lies."""
    own, twist = both_orders(curve)
    return twist if square_root(curve.right(u) * curve.B, curve.p) is None else own
