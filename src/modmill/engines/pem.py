# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""PEM files (RFC 7468): their labels, the text after ``-----BEGIN``, which names the content of a block, and
private keys that are encrypted in them or in DER.

A file states how much work its passphrase costs: passes of PBKDF2 (RFC 8018), memory of scrypt (RFC 7914), rounds of
bcrypt in OpenSSH's format. One wrong byte there can cost hours.
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64
from collections.abc import Iterator, Sequence
from math import prod

from Crypto.Util.asn1 import DerObjectId, DerOctetString, DerSequence

from modmill.contract import UnsupportedError
from modmill.numbers.shown import shortened

ENCRYPTION = "PBKDF2WithHMAC-SHA512AndAES256-CBC"
"""How a private key with a passphrase is encrypted, in PyCryptodome's words."""
PASSES, BLOCKS, ROUNDS = 10_000_000, 1 << 23, 1000
"""Most passes of PBKDF2, blocks of scrypt (N r p), and rounds of bcrypt: seconds, or a gigabyte."""
_SCRYPT = "1.3.6.1.4.1.11591.4.11"
_OPENSSH = b"openssh-key-v1\0"
_BODY = re.compile(rb"-----BEGIN ((?:ENCRYPTED|OPENSSH) PRIVATE KEY)-----(.*?)-----END \1-----", re.DOTALL)
_BEGIN = re.compile(rb"-----BEGIN ([^\r\n]*?)-----")


def require_label(data: bytes, accepted: Sequence[str]) -> None:
    """Raise UnsupportedError if a file has PEM blocks, or the start of one, and none has a label of ``accepted``."""
    found = [label.decode("ascii", "replace") for label in _BEGIN.findall(data)]
    if b"-----BEGIN" not in data or set(found) & set(accepted):
        return
    what = f"the PEM file is labelled {shortened(found[0])}" if found else "the PEM file has no readable label"
    raise UnsupportedError(f"{what}; accepted are {', '.join(accepted)}")


def require_affordable(data: bytes) -> None:
    """Raise UnsupportedError if the passphrase of a key, in PEM or DER, costs more than `PASSES`, `BLOCKS` or `ROUNDS`.
    Malformed data is left to those who read it."""
    found = _BODY.search(data)
    try:
        raw = a2b_base64(found[2]) if found else data
        work, most, what = _openssh(raw) if raw.startswith(_OPENSSH) else _pkcs8(raw)
    except (ValueError, IndexError, TypeError, Error):
        return
    if work > most:
        raise UnsupportedError(f"the key's passphrase costs {shortened(work)} {what}; at most {most:,} are accepted")


def _pkcs8(der: bytes) -> tuple[int, int, str]:
    """Work, its limit and its name for EncryptedPrivateKeyInfo: an algorithm, and bytes. Raises ValueError for others,
    such as a public key: an algorithm, and bits."""
    items = DerSequence().decode(der, nr_elements=2)
    DerOctetString().decode(items[1])
    numbers, oids = [], []
    for item in _leaves(items[0]):
        if isinstance(item, int):
            numbers.append(item)
        elif item[:1] == b"\6":
            oids.append(DerObjectId().decode(item).value)
    if _SCRYPT in oids:
        return prod(numbers[:3]), BLOCKS, "blocks of scrypt"
    return max(numbers, default=0), PASSES, "passes"


def _leaves(der: bytes) -> Iterator[int | bytes]:
    """Integers and other objects in sequences within sequences."""
    for item in DerSequence().decode(der)[:]:
        if isinstance(item, bytes) and item[:1] == b"\x30":
            yield from _leaves(item)
        else:
            yield item


def _openssh(raw: bytes) -> tuple[int, int, str]:
    """The same for OpenSSH's format: names of cipher and derivation, then its options, salt and rounds."""
    at = len(_OPENSSH)
    for _ in range(2):
        at += 4 + int.from_bytes(raw[at : at + 4], "big")
    size = int.from_bytes(raw[at : at + 4], "big")
    return int.from_bytes(raw[at + 4 : at + 4 + size][-4:], "big"), ROUNDS, "rounds of bcrypt"
