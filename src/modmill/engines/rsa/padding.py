# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""RSA with padding, and keys in files: PyCryptodome pads and reads files, an engine computes the powers.

PyCryptodome's ciphers and signatures accept any object with the numbers of a key and the two operations on integers;
``_Key`` is such an object.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from Crypto.Cipher import PKCS1_v1_5, oaep
from Crypto.Hash import SHA1, SHA3_224, SHA3_256, SHA3_384, SHA3_512, SHA224, SHA256, SHA384, SHA512
from Crypto.PublicKey import RSA
from Crypto.Signature import pkcs1_15, pss

from modmill.contract import UnsupportedError
from modmill.engines.pem import ENCRYPTION, PASSES, require_label
from modmill.engines.rsa.rsa import PrivateKey, PublicKey, Rsa
from modmill.numbers.shown import shortened

HASHES: dict[str, Any] = {
    "sha1": SHA1, "sha224": SHA224, "sha256": SHA256, "sha384": SHA384, "sha512": SHA512,
    "sha512-224": SHA512.new(truncate="224"), "sha512-256": SHA512.new(truncate="256"),
    "sha3-224": SHA3_224, "sha3-256": SHA3_256, "sha3-384": SHA3_384, "sha3-512": SHA3_512,
}  # fmt: skip
_LABELS = (
    "PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PUBLIC KEY", "RSA PUBLIC KEY",
    "CERTIFICATE",
)  # fmt: skip
"""Labels of PEM blocks that PyCryptodome reads as RSA keys."""
CIPHERS, SIGNATURES = ("oaep", "pkcs1"), ("pss", "pkcs1")


def read_key(data: bytes, passphrase: str | None = None) -> PublicKey | PrivateKey:
    """Read the RSA key in a PEM or DER file (PKCS#1, PKCS#8, X.509), with its private half if the file has one.

    Raises UnsupportedError if the data is no RSA key, if its passphrase is missing or wrong, and as `PublicKey` and
    `PrivateKey` do.
    """
    require_label(data, _LABELS)
    try:
        found = RSA.import_key(data, passphrase, max_iteration_count=PASSES)
    except (ValueError, IndexError, TypeError) as error:
        why = str(error) or "unknown format"
        raise UnsupportedError(
            f"the file cannot be read as an RSA key (PEM or DER, perhaps with a passphrase): {why}"
        ) from None
    n, e = int(found.n), int(found.e)
    if not found.has_private():
        return PublicKey(n, e)
    return PrivateKey(n, e, int(found.d), int(found.p), int(found.q))


def write_key(key: PrivateKey, passphrase: str | None = None) -> bytes:
    """The key as PKCS#8 in PEM, encrypted if there is a passphrase. Raises UnsupportedError for an empty passphrase."""
    if passphrase == "":
        raise UnsupportedError("the passphrase is empty; omit it for a file that is not encrypted")
    made = RSA.construct((key.n, key.e, key.d, key.p, key.q))
    return bytes(made.export_key("PEM", passphrase, pkcs=8, protection=ENCRYPTION if passphrase else None)) + b"\n"


def require_private(key: PublicKey) -> PrivateKey:
    """Return the key. Raises UnsupportedError if it has no private half."""
    if not isinstance(key, PrivateKey):
        raise UnsupportedError("the file holds a public key; decryption and signatures need a private key")
    return key


def encrypt(
    rsa: Rsa, key: PublicKey, message: bytes, padding: str = "oaep", hash: str = "sha256", mask_hash: str = "",
    label: bytes = b"",
) -> bytes:  # fmt: skip
    """The ciphertext of a message. ``hash``, ``mask_hash`` (default: ``hash``) and ``label`` are for OAEP. Raises
    UnsupportedError for a message too long for the key and for an unknown padding or hash."""
    cipher = _cipher(_Key(rsa, key), padding, hash, mask_hash, label)
    try:
        return bytes(cipher.encrypt(message))
    except ValueError:
        raise UnsupportedError(
            f"a message of {len(message)} bytes is too long for {padding} with a key of {key.bits} bits"
        ) from None


def decrypt(
    rsa: Rsa, key: PublicKey, ciphertext: bytes, padding: str = "oaep", hash: str = "sha256", mask_hash: str = "",
    label: bytes = b"", *, implicit: bool = True,
) -> bytes:  # fmt: skip
    """The message of a ciphertext.

    PKCS#1 v1.5 rejects implicitly: a ciphertext with wrong padding gives a pseudorandom message that depends only on
    key and ciphertext, so that the result does not reveal the error (as in OpenSSL from 3.2 on). ``implicit`` = False
    refuses such a ciphertext, for tests. Raises UnsupportedError for a public key, for a ciphertext of wrong length
    and, with OAEP, for one that fails decryption.
    """
    cipher = _cipher(_Key(rsa, require_private(key)), padding, hash, mask_hash, label)
    if len(ciphertext) != key.size:
        raise UnsupportedError(f"a ciphertext for this key must have {key.size} bytes, got {len(ciphertext)}")
    sentinel = () if padding == "oaep" or implicit else (None,)
    try:
        message = cipher.decrypt(ciphertext, *sentinel)
    except UnsupportedError:
        raise
    except ValueError:
        message = None
    if message is None:
        raise UnsupportedError("the ciphertext cannot be decrypted with this key, padding and hash")
    return bytes(message)


def sign(
    rsa: Rsa, key: PublicKey, message: bytes, padding: str = "pss", hash: str = "sha256", mask_hash: str = "",
    salt: int | None = None,
) -> bytes:  # fmt: skip
    """The signature of a message. ``salt``: length of the salt of PSS in bytes, by default that of the hash. Raises
    UnsupportedError for a public key, a key too short for the hash, and an unknown padding or hash."""
    scheme = _scheme(_Key(rsa, require_private(key)), padding, mask_hash or hash, salt)
    try:
        return bytes(scheme.sign(_hash(hash).new(message)))
    except UnsupportedError:
        raise
    except ValueError:
        raise UnsupportedError(f"a key of {key.bits} bits is too short for {padding} with {hash}") from None


def verify(
    rsa: Rsa, key: PublicKey, message: bytes, signature: bytes, padding: str = "pss", hash: str = "sha256",
    mask_hash: str = "", salt: int | None = None,
) -> bool:  # fmt: skip
    """Whether a signature is valid for a message and a key. Raises UnsupportedError for an unknown padding or hash."""
    scheme = _scheme(_Key(rsa, key), padding, mask_hash or hash, salt)
    try:
        scheme.verify(_hash(hash).new(message), signature)
    except (ValueError, TypeError):
        return False
    return True


class _Key:
    """A key with the interface that PyCryptodome's ciphers and signatures use."""

    def __init__(self, rsa: Rsa, key: PublicKey) -> None:
        self._rsa, self._key = rsa, key
        self.n, self.e = key.n, key.e
        if isinstance(key, PrivateKey):
            self._d = key.d

    def has_private(self) -> bool:
        return isinstance(self._key, PrivateKey)

    def size_in_bits(self) -> int:
        return self._key.bits

    def size_in_bytes(self) -> int:
        return self._key.size

    def _encrypt(self, x: int) -> int:
        if x >= self.n:
            raise ValueError
        return self._rsa.public(self._key, [int(x)])[0]

    def _decrypt_to_bytes(self, x: int) -> bytes:
        if x >= self.n:
            raise ValueError
        (result,) = self._rsa.private(require_private(self._key), [int(x)])
        return result.to_bytes(self._key.size, "big")


def _hash(name: str) -> Any:
    return HASHES[_one_of("hash", name, HASHES)]


def _one_of(what: str, name: str, known: Sequence[str] | dict[str, Any]) -> str:
    if name not in known:
        raise UnsupportedError(f"{what} must be one of {', '.join(known)}, not {shortened(name)}")
    return name


def _mask(name: str) -> Any:
    return partial(pss.MGF1, hash_gen=_hash(name))


def _cipher(key: _Key, padding: str, hash: str, mask_hash: str, label: bytes) -> Any:
    if _one_of("the padding of a ciphertext", padding, CIPHERS) == "pkcs1":
        return PKCS1_v1_5.new(key)  # type: ignore[arg-type]
    return oaep.new(key, hashmod=_hash(hash), mask_func=_mask(mask_hash or hash), label=label)  # type: ignore[arg-type]


def _scheme(key: _Key, padding: str, mask_hash: str, salt: int | None) -> Any:
    if _one_of("the padding of a signature", padding, SIGNATURES) == "pkcs1":
        return pkcs1_15.new(key)  # type: ignore[arg-type]
    return pss.new(key, mask_func=_mask(mask_hash), salt_bytes=salt)  # type: ignore[arg-type]
