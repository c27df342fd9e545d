# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""PEM files (RFC 7468): their labels, the text after ``-----BEGIN``, which names the content of a block,
and how private keys are encrypted in them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from modmill.contract import UnsupportedError
from modmill.numbers.shown import shortened

ENCRYPTION = "PBKDF2WithHMAC-SHA512AndAES256-CBC"
"""How a private key with a passphrase is encrypted, in PyCryptodome's words."""
PASSES = 10_000_000
"""Most passes of a passphrase's derivation (PBKDF2; for scrypt N r p / 8), which a file states: seconds."""
_BEGIN = re.compile(rb"-----BEGIN ([^\r\n]*?)-----")


def require_label(data: bytes, accepted: Sequence[str]) -> None:
    """Raise UnsupportedError if a file has PEM blocks, or the start of one, and none has a label of ``accepted``."""
    found = [label.decode("ascii", "replace") for label in _BEGIN.findall(data)]
    if b"-----BEGIN" not in data or set(found) & set(accepted):
        return
    what = f"the PEM file is labelled {shortened(found[0])}" if found else "the PEM file has no readable label"
    raise UnsupportedError(f"{what}; accepted are {', '.join(accepted)}")
