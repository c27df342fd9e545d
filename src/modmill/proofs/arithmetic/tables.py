# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Memories whose words are an integer function of the address: word z is floor(k m / 2^s) modulo 2^w, where k is the
residue of c z modulo 2^n, for all addresses z of n bits.

So a table in block RAM, or a column of one, gives bits of the multiple of p that a digit of Montgomery's quotient
needs: m is p, and c is -1 / p modulo 2^n. That a memory has such words is seen from all of its words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Form = tuple[int, int, int]
"""c, m and s."""


def form_of(words: Sequence[int], width: int, p: int) -> Form | None:
    """The form of words of ``width`` bits, one for each address, that are bits of multiples of p; None if there is
    none or p is even."""
    if not p & 1:
        return None
    factor = -pow(p, -1, len(words)) % len(words)
    shifts = range(p.bit_length() + len(words).bit_length() - 1)
    return next((form for s in shifts if has_form(words, width, form := (factor, p, s))), None)


def has_form(words: Sequence[int], width: int, form: Form) -> bool:
    """Whether the words of all addresses have this form."""
    return all(map(int.__eq__, words, _made(len(words), width, form)))


def _made(count: int, width: int, form: Form) -> Iterator[int]:
    factor, multiple, shift = form
    return ((factor * z % count * multiple >> shift) & (1 << width) - 1 for z in range(count))
