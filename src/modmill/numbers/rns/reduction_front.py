# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The cheapest reductions: moduli 2^w - u with few signed digits in all u, against the largest u.

A fold adds a multiple for each signed digit of u, so the digits of all u are the logic of the reductions; the largest u
gives the number of folds. The front has the choices of which none is better in both. "Well-suited forms of moduli" are
the future work of L. Djath, K. Bigou, A. Tisserand (ARITH, 2019); the paper names no measure, this one is ours.

CP-SAT takes the moduli, at most one multiple of each prime, and proves each point. Which moduli it takes may change
with its version, so no design uses them; `choice_of_moduli` has choices that do not change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import gcd

from modmill.numbers.folding import fold_bounds
from modmill.numbers.rns.choice_of_moduli import choose_moduli, distances, signed_digits_of
from modmill.numbers.rns.residues import signed_digits

EFFORT = 10.0
"""Deterministic seconds of CP-SAT for a bound on u."""
_SMALL = tuple(q for q in range(3, 1000) if all(q % d for d in range(2, q)))
"""Primes whose multiples are a clique each; of larger ones only pairs are taken."""


@dataclass(frozen=True)
class Point:
    """A choice of moduli 2^w - u: ``weight``, the signed digits of all u; ``u``, ascending; ``proved``: among the
    candidates no choice with so small a largest u has fewer digits."""

    w: int
    weight: int
    u: tuple[int, ...]
    proved: bool

    @property
    def largest_u(self) -> int:
        """The largest u."""
        return self.u[-1]

    @property
    def most_digits(self) -> int:
        """Most signed digits of a u."""
        return max(len(signed_digits(u)) for u in self.u)

    @property
    def folds(self) -> int:
        """Folds of a sum of len(u) / 2 + 1 products, by the largest u."""
        return len(fold_bounds((len(self.u) // 2 + 1) * ((1 << self.w) - 1) ** 2 + 1, self.w, self.largest_u))


@dataclass(frozen=True)
class Front:
    """The search for ``count`` pairwise coprime moduli 2^w - u, u odd, coprime to ``avoid``.

    Candidates: all u up to the smallest largest u of three signed digits, and those of three signed digits below
    2^(2 w / 3). Errors as `choose_moduli`.
    """

    w: int
    count: int
    avoid: int = 1

    @cached_property
    def candidates(self) -> list[int]:
        """The candidates u in ascending order."""
        near = choose_moduli(self.w, self.count, even=False, digits=3, avoid=self.avoid).u[-1]
        every = distances(min(self.w - 1, near.bit_length()), False, None)
        few = distances(min(self.w - 1, max(near.bit_length(), 2 * self.w // 3)), False, 3)
        found = {u for u in every if u <= near} | set(few)
        return sorted(u for u in found if gcd((1 << self.w) - u, self.avoid) == 1)

    @cached_property
    def _exclusive(self) -> list[list[int]]:
        """Sets of candidates, as places, of which at most one may be taken: multiples of one prime."""
        rest = [(1 << self.w) - u for u in self.candidates]
        found = []
        for q in _SMALL:
            multiples = [i for i, m in enumerate(rest) if m % q == 0]
            for i in multiples:
                while rest[i] % q == 0:
                    rest[i] //= q
            found.append(multiples)
        found += [[i, j] for i, j in combinations(range(len(rest)), 2) if gcd(rest[i], rest[j]) > 1]
        return [places for places in found if len(places) > 1]

    def lightest(self, known: int) -> Point | None:
        """The choice among the first ``known`` candidates with the fewest signed digits; None if there is none."""
        from ortools.sat.python import cp_model

        model = cp_model.CpModel()
        us = self.candidates[:known]
        taken = [model.new_bool_var("") for _ in us]
        for places in self._exclusive:
            if len(own := [taken[i] for i in places if i < known]) > 1:
                model.add_at_most_one(own)
        model.add(sum(taken) == self.count)
        model.minimize(sum(len(signed_digits(u)) * x for u, x in zip(us, taken, strict=True)))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers, solver.parameters.random_seed = 1, 1
        solver.parameters.max_deterministic_time = EFFORT
        status = solver.solve(model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None
        chosen = tuple(u for u, x in zip(us, taken, strict=True) if solver.value(x))
        return Point(self.w, signed_digits_of(chosen), chosen, status == cp_model.OPTIMAL)

    def points(self) -> list[Point]:
        """The front, from the smallest largest u to the fewest digits."""
        last = self.lightest(len(self.candidates))
        if last is None:
            raise ValueError(f"the search finds no {self.count} pairwise coprime moduli of {self.w} bits")
        found: list[Point] = []
        for point in sorted(self._between(self.count - 1, None, len(self.candidates), last), key=lambda p: p.largest_u):
            if not found or point.weight < found[-1].weight:
                found.append(point)
        return found

    def _between(self, low: int, first: Point | None, high: int, last: Point) -> Iterator[Point]:
        """Points with more than ``low`` and at most ``high`` candidates, whose ends are known: the fewest digits are a
        falling function of the number of candidates."""
        if first is not None and first.weight == last.weight:
            return
        if high - low == 1:
            yield last
            return
        middle = (low + high) // 2
        found = self.lightest(middle)
        if found is not None:
            yield from self._between(low, first, middle, found)
        yield from self._between(middle, found, high, last)
