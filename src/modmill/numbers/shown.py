# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Values for messages: what a user wrote, and numbers of any length, in a few characters."""

from __future__ import annotations

MOST = 48
"""Characters of a text that are shown whole."""
_HEAD, _TAIL = 30, 8
_WHOLE_BITS = 128
"""Numbers up to this length are shown in decimal."""


def shortened(item: object) -> str:
    """A value for a message: a text in quotes, a number without, anything else as Python writes it.

    A text of more than 48 characters keeps its first 30 and last 8 and tells its length. A number of more than 128 bits
    is shown in hexadecimal, its middle left out, with its length: Python's limit on decimal digits does not apply.
    """
    if isinstance(item, bool) or not isinstance(item, int | str):
        return _clipped(repr(item))
    if isinstance(item, str):
        if len(item) <= MOST:
            return repr(item)
        return f"{item[:_HEAD] + '...' + item[-_TAIL:]!r} ({len(item):,} characters)"
    if item.bit_length() <= _WHOLE_BITS:
        return str(item)
    digits = f"{abs(item):x}"
    return f"{'-' if item < 0 else ''}0x{digits[:16]}...{digits[-8:]} ({item.bit_length():,} bits)"


def _clipped(text: str) -> str:
    return text if len(text) <= MOST else f"{text[:_HEAD]}...{text[-_TAIL:]}"


def name(text: str) -> str:
    """A name or path for a message, without quotes: 120 characters at most, else its beginning and its end."""
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= 120 else f"{text[:60]}...{text[-50:]}"
