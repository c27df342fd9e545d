# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The choice of moduli for two bases: pairwise coprime 2^w - u with the smallest largest u, so that folding is cheap,
or with the fewest signed digits in u.

At most one multiple of each prime can be taken: this is a largest independent set in the graph of candidates that share
a factor. A solver such as CP-SAT finds as many moduli, but often others: the choice must not change with a solver's
version, because the emitted RTL follows from it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import gcd, prod

from modmill.numbers.rns.residues import coprime, signed_digits

MAX_CHANNELS = 1024
"""Largest number of moduli in one base."""

_EXACT_CANDIDATES = 5000
_DEEPEST = 200


@dataclass(frozen=True)
class Choice:
    """Pairwise coprime moduli 2^w - u in ascending u; ``proved``: no choice of as many has a smaller largest u."""

    w: int
    u: tuple[int, ...]
    proved: bool

    @property
    def moduli(self) -> tuple[int, ...]:
        """The moduli, largest first."""
        return tuple((1 << self.w) - u for u in self.u)


def choose_moduli(
    w: int, count: int, *, even: bool = True, digits: int | None = None, avoid: int = 1, effort: int = 1000
) -> Choice:
    """``count`` pairwise coprime moduli 2^w - u, 0 <= u < 2^(w-1), with the smallest largest u.

    u is odd, or 0 where ``even`` lets 2^w in; ``digits`` keeps only u with at most that many signed digits (folding is
    then a few additions); all moduli are coprime to ``avoid``. The search stops after ``effort`` branches per bound on
    u, the same on every machine; when it does, or beyond 5000 candidates, the best choice known (at worst the greedy
    one) comes with ``proved`` = False.

    Raises ValueError if there are fewer such moduli, and for w < 2, count outside 1 ... 2048 or digits < 1.
    """
    if w < 2:
        raise ValueError(f"moduli need at least 2 bits, got w = {w}")
    if not 1 <= count <= 2 * MAX_CHANNELS:
        raise ValueError(f"the number of moduli must be in 1 ... {2 * MAX_CHANNELS}, got {count}")
    if digits is not None and digits < 1:
        raise ValueError(f"u needs at least 1 signed digit, got digits = {digits}")
    for bits in range(1, w):
        candidates = [m for u in distances(bits, even, digits) if gcd(m := (1 << w) - u, avoid) == 1]
        taken = list(islice(coprime(candidates), count))
        if len(taken) == count:
            candidates = candidates[: candidates.index(taken[-1]) + 1]
            break
    proved = exact = len(candidates) <= _EXACT_CANDIDATES
    conflicts = _conflicts(candidates) if exact else []
    # fewest candidates, in ascending u, that hold `count` coprime ones
    low, high = count, len(candidates) + (len(taken) < count)
    while exact and low < high:
        middle = (low + high) // 2
        try:
            found = _largest_independent(conflicts, (1 << middle) - 1, _Effort(effort))
        except _ExhaustedError:
            proved, found = False, 0
        if found.bit_count() >= count:
            high = middle
            taken = [m for i, m in enumerate(candidates) if found >> i & 1][:count]
        else:
            low = middle + 1
    if len(taken) < count:
        sort = f"2^{w} - u, {'u = 0 or ' if even else ''}u odd{f' with {digits} signed digits' if digits else ''}"
        raise ValueError(
            f"{'there are' if proved else 'the search finds'} fewer than {count} pairwise coprime moduli {sort}"
            f"{' and coprime to the modulus' if avoid != 1 else ''}: a greedy search finds {len(taken)}"
        )
    return Choice(w, tuple((1 << w) - m for m in taken), proved)


def light_moduli(w: int, count: int, *, avoid: int = 1) -> Choice:
    """``count`` pairwise coprime moduli 2^w - u with few signed digits in all u: as many u = 1 and u = 2^k +- 1 as
    possible, and three digits with the smallest largest u.

    u is odd and below 2^((w - 6) / 2), with which three folds reduce a sum of 32 products, or below the least power of
    two that the nearest moduli of three digits need; of the powers of two up to there, the bound is the one with the
    fewest digits. ``proved`` is False, because the objective is another. Arguments as `choose_moduli`. Raises
    ValueError as that does, and if three digits below the bound do not suffice.
    """
    near = choose_moduli(w, count, even=False, digits=3, avoid=avoid).u[-1].bit_length()
    choices = [us for bits in range(near, max(near, (w - 6) // 2) + 1) if (us := _light(w, count, bits, avoid))]
    if not choices:
        raise ValueError(f"{count} moduli 2^{w} - u need u of more than {near} bits if most have two signed digits")
    return Choice(w, min(choices, key=lambda us: (signed_digits_of(us), us[-1])), False)


def _light(w: int, count: int, bits: int, avoid: int) -> tuple[int, ...]:
    """The u of `light_moduli` below 2^bits; empty if they do not suffice."""
    two = [u for u in distances(bits, False, 2) if len(signed_digits(u)) <= 2 and gcd((1 << w) - u, avoid) == 1]
    taken: tuple[int, ...] = ()
    for first in [[], *([u] for u in two if u == 1)]:
        base = prod((1 << w) - u for u in first)
        others = [u for u in two if u > 1 and gcd((1 << w) - u, base) == 1]
        conflicts = _conflicts([(1 << w) - u for u in others])
        found = _largest_independent(conflicts, (1 << len(others)) - 1, _Effort(10_000))
        chosen = (*first, *(others[i] for i in _vertices(found)))
        taken = max(taken, chosen, key=lambda us: 3 * len(us) - signed_digits_of(us))
    taken = tuple(sorted(taken))[:count]
    if len(taken) < count:
        base = prod((1 << w) - u for u in taken)
        taken += choose_moduli(w, count - len(taken), even=False, digits=3, avoid=avoid * base).u
    return tuple(sorted(taken)) if max(taken) < 1 << bits else ()


def signed_digits_of(us: Iterable[int]) -> int:
    """The signed digits of all u: the additions of one fold modulo each 2^w - u."""
    return sum(len(signed_digits(u)) for u in us)


def distances(bits: int, even: bool, digits: int | None) -> list[int]:
    """The candidates u < 2^bits in ascending order: odd (or 0), with at most so many signed digits."""
    zero = [0] if even else []
    if digits is None or 2 * digits > bits:  # no u below 2^bits has more than bits / 2 + 1 signed digits
        return [*zero, *range(1, 1 << bits, 2)]
    steps = [sign << k for k in range(2, bits + 1) for sign in (1, -1)]
    sums = {1, -1}
    for _ in range(digits - 1):  # sums of a number's lowest digits never pass 2^bits
        sums |= {s + step for s in sums for step in steps if abs(s + step) < 1 << bits}
    return [*zero, *sorted(u for u in sums if 0 < u < 1 << bits)]


def _conflicts(moduli: Sequence[int]) -> list[int]:
    """For each modulus the set (as bits of an integer) of those that share a factor with it."""
    sets = [0] * len(moduli)
    for i, a in enumerate(moduli):
        for j in range(i):
            if gcd(a, moduli[j]) != 1:
                sets[i] |= 1 << j
                sets[j] |= 1 << i
    return sets


class _ExhaustedError(Exception):
    """The search has used up its effort."""


@dataclass
class _Effort:
    left: int

    def spend(self, depth: int) -> None:
        self.left -= 1
        if self.left < 0 or depth > _DEEPEST:
            raise _ExhaustedError


def _largest_independent(conflicts: Sequence[int], alive: int, effort: _Effort, depth: int = 0) -> int:
    """A largest set of vertices without a conflict, among those ``alive``. Raises _ExhaustedError."""
    effort.spend(depth)
    taken, alive = _without_dominated(conflicts, alive)
    while alive:
        part = _component(conflicts, alive)
        alive &= ~part
        vertex = max(_vertices(part), key=lambda v: (conflicts[v] & part).bit_count())
        rest = part & ~(1 << vertex)
        without = _largest_independent(conflicts, rest, effort, depth + 1)
        having = _largest_independent(conflicts, rest & ~conflicts[vertex], effort, depth + 1) | 1 << vertex
        taken |= max(without, having, key=int.bit_count)
    return taken


def _without_dominated(conflicts: Sequence[int], alive: int) -> tuple[int, int]:
    """Take vertices without conflicts; drop each vertex whose conflicts include all conflicts of a neighbour. In a
    largest independent set that neighbour can replace such a vertex. Returns (taken, still open)."""
    taken, before = 0, -1
    while alive != before:
        before = alive
        for v in _vertices(before):
            if not alive >> v & 1:
                continue
            closed = conflicts[v] & alive | 1 << v
            for x in _vertices(closed & ~(1 << v)):
                if not closed & ~(conflicts[x] | 1 << x):
                    alive &= ~(1 << x)
                    closed &= ~(1 << x)
            if closed == 1 << v:
                taken |= closed
                alive &= ~closed
    return taken, alive


def _component(conflicts: Sequence[int], alive: int) -> int:
    """The vertices connected with the first."""
    part = front = alive & -alive
    while front:
        v = front.bit_length() - 1
        new = conflicts[v] & alive & ~part
        part |= new
        front = front & ~(1 << v) | new
    return part


def _vertices(members: int) -> Iterator[int]:
    while members:
        low = members & -members
        yield low.bit_length() - 1
        members ^= low
