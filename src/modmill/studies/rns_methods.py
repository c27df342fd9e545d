# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A survey: every RNS multiplication that the HBE paper compares or builds on, with its counts for one modulus.

L. Djath, K. Bigou, A. Tisserand: Hierarchical Approach in RNS Base Extension for Asymmetric Cryptography. ARITH, 2019,
Sections II and V. Operations are counted while the method in `numbers.rns` multiplies, over the smallest bases that
satisfy its own conditions for this modulus. Cycles are those of the schedule of our design of the method, where there
is one. Where there is none, `why` says what the rowers lack; such a method is shown in numbers only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from textwrap import wrap
from typing import Any

from modmill.contract import UnsupportedError
from modmill.designs import design as find_design
from modmill.numbers.primes import is_prime
from modmill.numbers.rns.choice_of_moduli import MAX_CHANNELS
from modmill.numbers.rns.counting import Count
from modmill.numbers.rns.double_level import DoubleLevel
from modmill.numbers.rns.exact_extension import MixedRadix
from modmill.numbers.rns.extension import Approximate
from modmill.numbers.rns.hybrid_position import HybridPosition, hpr_primes
from modmill.numbers.rns.quadratic_residues import DoubleQ, SingleQ
from modmill.numbers.rns.residues import Base, pseudo_mersenne
from modmill.numbers.rns.rns_montgomery import Full, Gandino, Guillermin, Montgomery

Made = Montgomery | HybridPosition


@dataclass(frozen=True)
class Surveyed:
    """A method. ``make(p, w, n)``: over n moduli of w bits in base A, or ValueError if they do not suffice. ``d``:
    digits; n must be a multiple of d times ``c``. ``design`` with its ``settings``: our machine of it; without one
    ``why`` says why there is none."""

    name: str
    source: str
    make: Callable[[int, int, int], Made]
    design: str = ""
    settings: tuple[tuple[str, Any], ...] = ()
    why: str = ""
    c: int = 1
    d: int = 1


@dataclass(frozen=True)
class Result:
    """A row of the survey. ``n``: moduli of A (HPR: of all d digits); ``p``: the modulus, another than the given one
    for HPR; ``cycles``: (interval, latency) of our design at its own n."""

    method: Surveyed
    w: int
    n: int
    p: int
    count: Count
    cycles: tuple[int, int] | None

    @property
    def products(self) -> int:
        """Products of w x w bits, those of MUL included."""
        return self.count.mm + self.count.mul * (self.method.c - 1)

    def describe(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "method": self.method.name, "source": self.method.source, "n": self.n, "modulus": hex(self.p),
            "products": self.products, "reductions": self.count.mr, "additions": self.count.add + self.count.wide,
            "small": self.count.small, "design": self.method.design or None,
            "interval": self.cycles and self.cycles[0], "latency": self.cycles and self.cycles[1],
            "why": self.method.why or None,
        }  # fmt: skip


def dealt(w: int, n: int) -> tuple[Base, Base]:
    """The first 2 n odd moduli 2^w - u, dealt alternately."""
    moduli = tuple(islice(pseudo_mersenne(w), 2 * n))
    return Base(w, moduli[::2]), Base(w, moduli[1::2])


def prime_bases(w: int, n: int) -> tuple[Base, Base]:
    """The largest 2 n primes of w bits that are 3 mod 4, dealt alternately."""
    found = tuple(islice((m for m in range((1 << w) - 1, 1 << (w - 1), -4) if is_prime(m)), 2 * n))
    return Base(w, found[::2]), Base(w, found[1::2])


def _mixed(p: int, w: int, n: int) -> Full:
    a, b = dealt(w, n)
    return Full(p, Approximate.of(a, b.moduli), MixedRadix(b, a.moduli))


def _redundant(p: int, w: int, n: int) -> Full:
    return Full.without_cox(p, *dealt(w, n), 1 << n.bit_length())


def _hierarchical(c: int) -> Callable[[int, int, int], Gandino]:
    return lambda p, w, n: Gandino.of(p, *dealt(w, n), c=c)


def _hybrid(d: int) -> Callable[[int, int, int], HybridPosition]:
    def make(_p: int, w: int, n: int) -> HybridPosition:
        prime = next(hpr_primes(w, n, d), None)
        if prime is None:
            raise ValueError(f"n = {n}, d = {d}: no M^{d} - beta is prime for the first modulus M")
        rest = (m for m in pseudo_mersenne(w) if m not in prime.a.moduli)
        others = tuple(islice(rest, n // d + 1))
        for count in (n // d, n // d + 1):
            with suppress(ValueError):
                return HybridPosition.of(d, prime.beta, prime.a, Base(w, others[:count]))
        raise ValueError(f"n = {n} moduli do not suffice for d = {d}")

    return make


_KAWAMURA = "Kawamura et al., EUROCRYPT 2000"
METHODS = (
    Surveyed("Montgomery, KBE", _KAWAMURA, lambda p, w, n: Full.of(p, *dealt(w, n)),
             why="it is kbe with 3 n products more: kbe has their constants merged (Gandino)"),
    Surveyed("Montgomery, KBE, merged constants", "Gandino et al., ARITH 2011", lambda p, w, n: Gandino.of(
             p, *dealt(w, n)), "kbe"),
    *(Surveyed(f"Montgomery, HBE c = {c}", "Djath et al., ARITH 2019", _hierarchical(c), "hbe", (("columns", c),), c=c)
      for c in (2, 3, 4)),
    Surveyed("Montgomery, KBE, plain residues", "Guillermin, CHES 2010", lambda p, w, n: Guillermin.of(p, *dealt(w, n)),
             why="it is kbe with n products more, by |B_j|, in exchange for plain residues over B"),
    Surveyed("Montgomery, sQ-RNS", "Kawamura et al., JCEN 2019", lambda p, w, n: SingleQ.of(p, *prime_bases(w, n)),
             "sq-rns"),
    Surveyed("Montgomery, dQ-RNS", "Kawamura et al., JCEN 2019", lambda p, w, n: DoubleQ.of(p, *prime_bases(w, n)),
             "dq-rns"),
    Surveyed("Montgomery, redundant modulus", "Shenoy, Kumaresan, IEEE TC 1989; Bajard et al., ARITH 2001", _redundant,
             "shenoy-kumaresan"),
    Surveyed("Montgomery, mixed radix", "Szabo, Tanaka, 1967", _mixed,
             why="each digit waits for the one before: n - 1 dependent products, each reduced and sent to all rowers. "
             "From an address to a residue that can be read again the rowers take 26 cycles for secp256k1, so its "
             "second extension alone takes 390; and they subtract no residues"),
    Surveyed("Montgomery, double level", "Bajard, Merkiche, CARDIS 2014", lambda p, w, n: DoubleLevel.of(
             p, *dealt(w, n)),
             why="the operations are those of kbe; what differs is the reduction inside a channel, by two products of "
             "more than w bits instead of folding; it pays for moduli far from 2^w, and those of our rowers are near"),
    *(Surveyed(f"HPR, d = {d}", source, _hybrid(d), d=d,
               why="serves only moduli M^d - beta made from its bases, so no modulus that a standard names; its rowers "
               f"need a channel modulo 2^g, {d} digits of each number, and subtractions of residues, which ours lack")
      for d, source in ((2, "Bigou, Tisserand, CHES 2015"), (4, "Bigou, Tisserand, ARITH 2016"))),
)  # fmt: skip
"""All methods, in the order of the survey."""


def survey(p: int, w: int) -> Iterator[Result]:
    """Yield the row of each method for modulus ``p`` and channels of ``w`` bits. Raises ValueError if no bases of up to
    `MAX_CHANNELS` moduli serve a method."""
    for method in METHODS:
        made = _smallest(method, p, w)
        n = made.a.n * method.d
        yield Result(method, w, n, made.p, made.count, _cycles(method, p, w))


NOTES = """products: w x w bits, those of a sum of a row included; reductions: of a row's number to w bits; small: of a
few bits. Printed costs of the papers leave out additions and what is small. HPR: n moduli for all digits, over the
first modulus M^d - beta of at least this size, because it serves no other."""


def lines(name: str, w: int, found: Sequence[Result]) -> Iterator[str]:
    """The survey as a table, then the sources, and why methods have no machine."""
    yield f"{name}, w = {w}: operations of one product, counted as the method runs over its smallest bases"
    yield ""
    row = "{:<34} {:>4} {:>9} {:>11} {:>10} {:>6}  {}".format
    yield row("method", "n", "products", "reductions", "additions", "small", "our machine: interval, latency")
    for one in found:
        cycles = f"{one.method.design}: {one.cycles[0]}, {one.cycles[1]}" if one.cycles else "none"
        count = one.count
        yield row(one.method.name, one.n, one.products, count.mr, count.add + count.wide, count.small, cycles)
    yield ""
    yield from wrap(NOTES, 112)
    for one in found:
        yield ""
        yield f"{one.method.name}: {one.method.source}"
        machine = f"the design {one.method.design}" if one.cycles else one.method.why or "not with this width"
        yield from wrap(machine, 112, initial_indent="    ", subsequent_indent="    ")


def _smallest(method: Surveyed, p: int, w: int) -> Made:
    """The method over the fewest moduli."""
    step = method.c * method.d
    least = -(-p.bit_length() // w)
    failed = ""
    for n in range(-(-least // step) * step, MAX_CHANNELS + 1, step):
        try:
            return method.make(p, w, n)
        except ValueError as error:
            failed = str(error)
    raise ValueError(f"{method.name} has no bases for this {p.bit_length()}-bit modulus with w = {w}: {failed}")


def _cycles(method: Surveyed, p: int, w: int) -> tuple[int, int] | None:
    if not method.design:
        return None
    with suppress(UnsupportedError):
        schedule = find_design(method.design).fit(p, w=w, **dict(method.settings)).schedule
        return schedule.interval, schedule.latency
    return None
