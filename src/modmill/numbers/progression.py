# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Multiples of a number modulo another that fall into an interval."""


def first_within(step: int, n: int, low: int, length: int) -> int | None:
    """The least t >= 0 with (step t - low) mod ``n`` < ``length``; None if there is none. 0 <= low < n, length >= 1.

    As in Euclid's algorithm: without a multiple of ``step`` in the interval, the number of times that n is subtracted
    is the answer to the same question modulo ``step``.
    """
    if length >= n or low == 0 or low + length > n:
        return 0
    step %= n
    if 2 * step > n:
        step, low = n - step, n - (low + length - 1)
    if step == 0:
        return None
    t = -(-low // step)
    if step * t < low + length:
        return t
    times = first_within(-n % step, step, low % step, length)
    return None if times is None else -(-(low + n * times) // step)
