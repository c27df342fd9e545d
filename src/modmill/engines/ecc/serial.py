# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The recodings of `recoding` as a circuit does them (`engines.machine.serial`)."""

from __future__ import annotations

from modmill.contract import UnsupportedError
from modmill.engines.ecc.points import Recoding
from modmill.engines.ecc.recoding import Comb, Gray, Odd, Signed, Unsigned
from modmill.engines.machine.serial import Serial


def serial(recoding: Recoding) -> Serial:
    """A recoding of one secret scalar in bits. Raises UnsupportedError for one that splits scalars in halves."""
    match recoding:
        case Unsigned() | Signed():
            offset = sum(1 << (recoding.window * (i + 1) - 1) for i in range(recoding.count))
            offset *= isinstance(recoding, Signed)
            return Serial(_windows(recoding.window, recoding.count), offset, offset)
        case Odd():
            odd = (1 << recoding.window * recoding.count) - 1  # the sum is even, so its lowest bit is left out
            return Serial(_windows(recoding.window, recoding.count, 1), odd - recoding.n, odd)
        case Comb():
            columns = range(recoding.columns)
            return Serial(tuple(_teeth(recoding, j, v) for j in reversed(range(recoding.passes)) for v in columns))
        case Gray():
            return Serial(_windows(1, recoding.count), gray=True)
    raise UnsupportedError("a scalar that is split in halves cannot be blinded inside: build without --endomorphism")


def _windows(window: int, count: int, first: int = 0) -> tuple[tuple[int | None, ...], ...]:
    """Windows of bits from place ``first`` on, the highest one first."""
    return tuple(tuple(range(first + window * i, first + window * (i + 1))) for i in reversed(range(count)))


def _teeth(comb: Comb, row: int, column: int) -> tuple[int | None, ...]:
    """The places of a digit of a comb."""
    at = comb.passes * column + row
    inside = at < comb.apart  # else these bits belong to the next tooth
    return tuple(comb.apart * tooth + at if inside else None for tooth in range(comb.teeth))
