# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Values for messages: texts and numbers of any length, shown in a few characters."""

from collections.abc import Iterable

MOST = 48
"""Length up to which a text is shown whole, in characters."""
_HEAD, _TAIL = 30, 8
_WHOLE_BITS = 128
"""Length up to which a number is shown in decimal, in bits."""


def shortened(item: object) -> str:
    """A value for a message: a text in quotes, a number without, anything else as Python writes it.

    Of a text of more than 48 characters the first 30, the last 8 and the length are shown. A number of more than 128
    bits is shown in hexadecimal without its middle digits, with its length; so Python's limit on decimal digits does
    not apply.
    """
    if isinstance(item, bool) or not isinstance(item, int | str):
        text = repr(item)
        return text if len(text) <= MOST else f"{text[:_HEAD]}...{text[-_TAIL:]}"
    if isinstance(item, str):
        if len(item) <= MOST:
            return repr(item)
        return f"{item[:_HEAD] + '...' + item[-_TAIL:]!r} ({len(item):,} characters)"
    if item.bit_length() <= _WHOLE_BITS:
        return str(item)
    digits = f"{abs(item):x}"
    return f"{'-' if item < 0 else ''}0x{digits[:16]}...{digits[-8:]} ({item.bit_length():,} bits)"


def name(text: str) -> str:
    """A name or path for a message, without quotes: its beginning and its end if it has more than 120 characters."""
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= 120 else f"{text[:60]}...{text[-50:]}"


def near(wanted: str, names: Iterable[str], otherwise: str = "") -> str:
    """The names like a mistyped one, in words for a message: ``the nearest is wide``; ``otherwise`` without any."""
    from difflib import get_close_matches

    found = get_close_matches(wanted, list(names), n=3)
    return f"the nearest {'is' if len(found) == 1 else 'are'} {', '.join(found)}" if found else otherwise
