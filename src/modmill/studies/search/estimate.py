# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Numbers of cores that are not measured, from those of cores that are: a Gaussian process over cost formulas.

The logarithm of LUTs or MHz is a sum of a linear trend over all designs, a smooth deviation of all designs, and one of
each design, in which settings count too. Weights are constants below; only the noise is scaled by the rows. The
measured cores that are like the wanted one decide, and the error that is expected grows with the distance to them.

The error is found by leaving out: each measured core is predicted from all others (C. E. Rasmussen, C. K. I. Williams:
Gaussian Processes for Machine Learning. MIT Press, 2006, Section 5.4.2). These residuals also scale the error bars, so
that they hold for `HELD` of the cores that were left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, log, sqrt
from statistics import fmean, median

from modmill.studies.search.candidates import Candidate

HELD = 0.9
"""The part of left-out cores whose true value is within the error bar."""
LEAST = 8
"""Least number of measured cores for an estimate."""


@dataclass(frozen=True)
class Weights:
    """Variances of the parts of the process, in squares of logarithms: ``trend`` for each feature, ``common``
    deviation, ``own`` deviation and ``offset`` of a design, ``noise``. Lengths: over which a deviation changes, in
    logarithms of features."""

    trend: float
    common: float
    common_length: float
    own: float
    own_length: float
    offset: float
    noise: float
    middle: float = 4.0
    """Variance of what all cores share."""


LUT = Weights(0.035, 0.006, 0.54, 0.32, 2.4, 0.077, 6.4e-4)
MHZ = Weights(0.17, 0.0017, 10.0, 0.051, 1.4, 0.094, 2.9e-4)
"""Weights for LUTs and for MHz: the likeliest of some thousand for the rows of ECP5, left-out cores predicted."""


@dataclass(frozen=True)
class Estimate:
    """A number with its error bar. ``how``: in words, where it comes from."""

    value: float
    low: float
    high: float
    how: str

    def through(self, function: Callable[[float], float]) -> Estimate:
        """The estimate of a monotonic function of the number."""
        low, high = sorted((function(self.low), function(self.high)))
        return Estimate(function(self.value), low, high, self.how)

    @property
    def percent(self) -> float:
        """Half the length of the bar, in percent of the value."""
        return 50 * (self.high - self.low) / self.value if self.value else 0.0


@dataclass(frozen=True)
class Error:
    """What leaving out shows: relative errors of ``cores`` predictions, their mean, median, and that which `HELD` of
    them do not exceed."""

    cores: int
    mean: float
    middle: float
    most: float


class Process:
    """The estimate of a positive number from cores and their values. Raises ValueError for fewer than `LEAST`."""

    def __init__(self, cores: Sequence[Candidate], values: Sequence[float], weights: Weights) -> None:
        if len(cores) < LEAST:
            raise ValueError(f"{len(cores)} cores are measured, at least {LEAST} are needed")
        self._cores, self._weights = cores, weights
        logs = [log(value) for value in values]
        self._mean = fmean(logs)
        columns = [*zip(*(core.features for core in cores), strict=True)]
        self._centre = [fmean(column) for column in columns]
        matrix = [[self._like(a, b) for b in cores[: k + 1]] for k, a in enumerate(cores)]
        for k, row in enumerate(matrix):
            row[k] += weights.noise
        self._lower = _cholesky(matrix)
        self._inverse = _inverse(self._lower)
        self._logs = [value - self._mean for value in logs]
        self._weighed = _times(self._inverse, self._logs)

    @cached_property
    def _residuals(self) -> list[tuple[float, float]]:
        """Residual and expected error of each core, predicted from all others."""
        diagonal = [_dot(column, column) for column in self._columns]
        return [(weighed / own, 1 / sqrt(own)) for weighed, own in zip(self._weighed, diagonal, strict=True)]

    @cached_property
    def _columns(self) -> list[list[float]]:
        count = len(self._inverse)
        return [[self._inverse[row][column] for row in range(column, count)] for column in range(count)]

    @cached_property
    def scale(self) -> float:
        """The factor from expected errors to error bars that hold for `HELD` of the cores that were left out."""
        return _quantile([abs(residual) / expected for residual, expected in self._residuals])

    @cached_property
    def error(self) -> Error:
        """The errors of cores that were left out."""
        found = [abs(exp(-residual) - 1) for residual, _ in self._residuals]
        return Error(len(found), fmean(found), median(found), _quantile(found))

    def of(self, core: Candidate, bar: float | None = None) -> Estimate:
        """The estimate for a core; ``bar``: number of expected errors in its bar, `scale` by default."""
        like = [self._like(core, other) for other in self._cores]
        halves = _forward(self._inverse, like)
        middle = self._mean + _dot(like, self._weighed)
        spread = sqrt(max(self._like(core, core) - _dot(halves, halves), 0) + self._weights.noise)
        spread *= self.scale if bar is None else bar
        return Estimate(exp(middle), exp(middle - spread), exp(middle + spread), "predicted")

    def _like(self, a: Candidate, b: Candidate) -> float:
        """The covariance of two cores."""
        w, centre = self._weights, self._centre
        pairs = [*zip(a.features, b.features, strict=True)]
        trend = sum((x - c) * (y - c) for (x, y), c in zip(pairs, centre, strict=True))
        distance = sum((x - y) ** 2 for x, y in pairs)
        found = w.middle + w.trend * trend + w.common * exp(-distance / (2 * w.common_length**2))
        if a.design is b.design:
            other = b.numbers
            distance += sum((x - other.get(name, x)) ** 2 for name, x in a.numbers.items())
            found += w.offset + w.own * exp(-distance / (2 * w.own_length**2))
        return found


def _quantile(values: Sequence[float]) -> float:
    return sorted(values)[ceil(HELD * len(values)) - 1]


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=False))


def _cholesky(matrix: Sequence[Sequence[float]]) -> list[list[float]]:
    """The lower factor of a positive definite matrix, of which the lower half is given."""
    lower: list[list[float]] = []
    for given in matrix:
        row: list[float] = []
        for k, value in enumerate(given[:-1]):
            row.append((value - _dot(row, lower[k])) / lower[k][k])
        row.append(sqrt(given[-1] - _dot(row, row)))
        lower.append(row)
    return lower


def _inverse(lower: Sequence[Sequence[float]]) -> list[list[float]]:
    """The inverse of a lower factor, row by row."""
    found: list[list[float]] = []
    for k, row in enumerate(lower):
        made = [0.0] * k
        for j, factor in enumerate(row[:-1]):
            if factor:
                for i, value in enumerate(found[j]):
                    made[i] -= factor * value
        found.append([value / row[-1] for value in made] + [1 / row[-1]])
    return found


def _forward(inverse: Sequence[Sequence[float]], vector: Sequence[float]) -> list[float]:
    """A vector in front of which the inverse factor is applied."""
    return [_dot(row, vector) for row in inverse]


def _times(inverse: Sequence[Sequence[float]], vector: Sequence[float]) -> list[float]:
    """A vector in front of which the inverse of the whole matrix is applied."""
    halves = _forward(inverse, vector)
    found = [0.0] * len(vector)
    for row, half in zip(inverse, halves, strict=True):
        for k, value in enumerate(row):
            found[k] += value * half
    return found
