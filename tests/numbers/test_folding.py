# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Folding: exhaustive at small widths, bounds attained, corners at full width."""

import pytest

from modmill.numbers.folding import fold, fold_bound, fold_bounds, reduce


@pytest.mark.parametrize(("w", "u", "bound"), [(4, 1, 300), (5, 3, 1100), (6, 7, 5000), (6, 13, 4097), (7, 19, 20000)])
def test_exhaustive(w, u, bound):
    m = (1 << w) - u
    for t in range(bound):
        r = reduce(t, bound, w, u)
        assert 0 <= r < 1 << w and (r - t) % m == 0


@pytest.mark.parametrize(("w", "u", "bound"), [(5, 3, 1100), (6, 13, 4097)])
def test_bound_is_attained(w, u, bound):
    assert max(fold(t, w, u) for t in range(bound)) + 1 == fold_bound(bound, w, u)


@pytest.mark.parametrize(("w", "u"), [(66, 1), (66, 5), (66, 513), (17, 1), (17, 511), (14, 3), (34, 75)])
def test_corners_at_full_width(w, u):
    m = (1 << w) - u
    for bound in (1 << 2 * w, 40 << 2 * w, 3 << w):
        tops = [bound - 1, 0, 1, m, m - 1, ((bound - 1) >> w << w) - 1, (1 << w) - 1, 1 << w]
        for t in tops:
            r = reduce(t, bound, w, u)
            assert 0 <= r < 1 << w and (r - t) % m == 0


def test_one_fold_fewer_would_not_do():
    """The planted fault: without the last fold some value stays at or above 2^w."""
    w, u, bound = 6, 13, 4097
    folds = len(fold_bounds(bound, w, u))

    def short(t):
        for _ in range(folds - 1):
            t = fold(t, w, u)
        return t

    assert any(short(t) >= 1 << w for t in range(bound))


def test_refusals():
    with pytest.raises(ValueError, match="outside"):
        reduce(300, 300, 4, 1)
    with pytest.raises(ValueError, match="no progress"):
        fold_bounds(1 << 12, 4, 16)
