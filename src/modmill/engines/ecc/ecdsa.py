# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""ECDSA: signatures with deterministic or random nonces, their verification and encodings.

    e = the leftmost bits of the message's hash, as many as n has bits
    r = x of k G mod n,   s = k^-1 (e + r d) mod n
    valid if r and s are in [1, n) and x of (e s^-1) G + (r s^-1) Q is r mod n

The engine computes k G and the sum of two multiples, the host the hash, and `Ecc.order` the arithmetic modulo n.

Sources: FIPS 186-5 (2023), Section 6.4; deterministic nonces, RFC 6979 (2013), Section 3.2; DER form, RFC 3279, Section
2.2.3; raw form, r and s with as many bytes each as n, IEEE P1363.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from Crypto.Util.asn1 import DerSequence

from modmill.contract import Fault, UnsupportedError
from modmill.engines.ecc.blinding import Ecc, require_point, require_scalar, require_weierstrass
from modmill.numbers.curves.affine import Curve, Point
from modmill.numbers.shown import shortened

HASHES = {
    name: name.replace("-", "_").replace("shake", "shake_") for name in (
        "sha1", "sha224", "sha256", "sha384", "sha512", "sha512-224", "sha512-256",
        "sha3-224", "sha3-256", "sha3-384", "sha3-512", "shake128", "shake256", "sm3",
    )
}  # fmt: skip
"""Names of hashes on the command line, and in `hashlib`."""
SHAKE = {"shake128": 32, "shake256": 64}
"""Bytes of output of SHAKE (RFC 8692, Section 3)."""
NONCES = ("deterministic", "hedged", "random")
FORMS = ("der", "raw")
TRIES = 64
_HEDGE = 32
"""Random bytes in a hedged nonce."""

Signature = tuple[int, int]
"""(r, s)."""


def digest(name: str, message: bytes) -> bytes:
    """The hash of a message. Raises UnsupportedError for an unknown hash, and if this Python lacks it."""
    return bytes(_new(name)(message).digest(*([SHAKE[name]] if name in SHAKE else [])))


def nonces(n: int, d: int, hashed: bytes, hash: str = "sha256", extra: bytes = b"") -> Iterator[int]:
    """Yield the nonces of RFC 6979, each in [1, n), for the private scalar d and a message's hash.

    ``extra``: the additional data of its Section 3.6. Raises UnsupportedError for SHAKE, for which it defines none.
    PyCryptodome is not used here: it computes only the first nonce, inside its signature, and only for its own curves.
    """
    if hash in SHAKE:
        raise UnsupportedError(f"deterministic nonces need HMAC, which is not defined for {hash}: take random nonces")
    new, bits = _new(hash), n.bit_length()
    size = -(-bits // 8)
    key_data = d.to_bytes(size, "big") + (leftmost(hashed, bits) % n).to_bytes(size, "big") + extra

    def mac(key: bytes, data: bytes) -> bytes:
        return hmac.new(key, data, new).digest()

    V, K = b"\1" * len(hashed), bytes(len(hashed))
    for separator in (b"\0", b"\1"):
        K = mac(K, V + separator + key_data)
        V = mac(K, V)
    while True:
        T = b""
        while 8 * len(T) < bits:
            V = mac(K, V)
            T += V
        k = leftmost(T, bits)
        if 0 < k < n:
            yield k
        K = mac(K, V + b"\0")
        V = mac(K, V)


def draws(ecc: Ecc, d: int, hashed: bytes, hash: str, nonce: str) -> Iterator[int]:
    """Yield nonces in [1, n) for the private scalar d and a message's hash. ``nonce``: deterministic (RFC 6979), hedged
    (the same with random data), or random. Raises UnsupportedError for another kind, and as `nonces` does."""
    if nonce not in NONCES:
        raise UnsupportedError(f"nonces must be one of {', '.join(NONCES)}, not {shortened(nonce)}")
    n = ecc.curve.n
    if nonce == "random":
        return iter(lambda: 1 + ecc.below(n - 1), 0)
    extra = ecc.below(1 << 8 * _HEDGE).to_bytes(_HEDGE, "big") if nonce == "hedged" else b""
    return nonces(n, d, hashed, hash, extra)


def leftmost(data: bytes, bits: int) -> int:
    """The first ``bits`` bits of the data, or all if there are fewer, as a big-endian number."""
    return int.from_bytes(data, "big") >> max(0, 8 * len(data) - bits)


def sign(
    ecc: Ecc, items: Sequence[tuple[int, bytes]], hash: str = "sha256", nonce: str = "deterministic", *,
    low_s: bool = False, hashed: bool = False,
) -> list[Signature]:  # fmt: skip
    """The signature of each (private scalar, message). ``low_s``: take the smaller of s and n - s, as Bitcoin does.
    ``hashed``: the messages are hashes already, and ``hash`` is only that of deterministic nonces.

    With ``Ecc.check`` all are verified before any is released; raises Fault if one is wrong. Raises UnsupportedError
    for a scalar out of range, an unknown hash or kind of nonce, and a curve of another form.
    """
    curve = require_weierstrass(ecc.curve)
    hashes = [message if hashed else digest(hash, message) for _, message in items]
    scalars = [require_scalar(curve, d) for d, _ in items]
    sources = [draws(ecc, d, hashed, hash, nonce) for d, hashed in zip(scalars, hashes, strict=True)]
    n, found = curve.n, [(0, 0)] * len(items)
    for _ in range(TRIES):  # r or s is zero with probability of about 1 / n
        todo = [i for i, signature in enumerate(found) if not all(signature)]
        if not todo:
            break
        ks = [next(sources[i]) for i in todo]
        rs = [P[0] % n if P else 0 for P in ecc.multiply_base(ks)]
        es = [leftmost(hashes[i], n.bit_length()) % n for i in todo]
        ss = ecc.order.signatures(n, list(zip(ks, es, rs, [scalars[i] for i in todo], strict=True)))
        for i, r, s in zip(todo, rs, ss, strict=True):
            found[i] = r, s
    else:
        raise Fault(f"r or s was zero in {TRIES} tries; nothing is released")
    signatures = [(r, min(s, n - s) if low_s else s) for r, s in found]
    if ecc.check:
        _check(ecc, items, signatures, hash, hashed)
    return signatures


def verify(
    ecc: Ecc, items: Sequence[tuple[Point, bytes, Signature]], hash: str = "sha256", *, low_s: bool = False,
    hashed: bool = False,
) -> list[bool]:  # fmt: skip
    """Whether each (public point, message, signature) is valid. ``low_s``: reject s above n / 2. ``hashed``: the
    messages are hashes already.

    Raises UnsupportedError for a public point that is neutral, off the curve or outside the group of the base point,
    for an unknown hash, and for a curve of another form.
    """
    curve = require_weierstrass(ecc.curve)
    n = curve.n
    for Q in {Q for Q, _, _ in items}:
        require_point(curve, Q)
    good = [i for i, (_, _, (r, s)) in enumerate(items) if 0 < r < n and 0 < s < n and (2 * s < n or not low_s)]
    hashes = [items[i][1] if hashed else digest(hash, items[i][1]) for i in good]
    zs = [leftmost(each, n.bit_length()) % n for each in hashes]
    both = ecc.order.quotients(n, [(items[i][2][1], z, items[i][2][0]) for i, z in zip(good, zs, strict=True)])
    points = ecc.multiply_two(both, [items[i][0] for i in good])
    right = {i for i, P in zip(good, points, strict=True) if P is not None and P[0] % n == items[i][2][0]}
    return [i in right for i in range(len(items))]


def encode(curve: Curve, signature: Signature, form: str = "der") -> bytes:
    """The bytes of a signature; ``form``: ``der`` or ``raw``. Raises UnsupportedError for another form."""
    if _form(form) == "der":
        return bytes(DerSequence(signature).encode())
    size = -(-curve.n.bit_length() // 8)
    return b"".join(number.to_bytes(size, "big") for number in signature)


def decode(curve: Curve, data: bytes, form: str = "der") -> Signature:
    """Decode a signature; its numbers may be out of range. Raises UnsupportedError for a malformed one."""
    if _form(form) == "der":
        try:
            numbers = DerSequence().decode(data, strict=True, nr_elements=2, only_ints_expected=True)
        except (ValueError, IndexError) as error:
            raise UnsupportedError(f"malformed DER signature: {error}") from None
        return int(numbers[0]), int(numbers[1])
    size = -(-curve.n.bit_length() // 8)
    if len(data) != 2 * size:
        raise UnsupportedError(f"a raw signature on {curve.title} must have {2 * size} bytes, got {len(data)}")
    return int.from_bytes(data[:size], "big"), int.from_bytes(data[size:], "big")


def _new(name: str) -> Callable[..., Any]:
    if name not in HASHES:
        raise UnsupportedError(f"hash must be one of {', '.join(HASHES)}, not {shortened(name)}")
    try:
        hashlib.new(HASHES[name])
    except ValueError:
        raise UnsupportedError(f"this Python's hashlib has no {name}") from None
    return lambda data=b"": hashlib.new(HASHES[name], data)


def _form(form: str) -> str:
    if form not in FORMS:
        raise UnsupportedError(f"the form of a signature must be one of {', '.join(FORMS)}, not {shortened(form)}")
    return form


def _check(
    ecc: Ecc, items: Sequence[tuple[int, bytes]], signatures: Sequence[Signature], hash: str, hashed: bool
) -> None:
    keys = list({d for d, _ in items})
    publics = dict(zip(keys, ecc.multiply_base(keys), strict=True))
    whole = [(publics[d], message, one) for (d, message), one in zip(items, signatures, strict=True)]
    if None in publics.values() or not all(verify(ecc, whole, hash, hashed=hashed)):
        raise Fault("a signature failed its verification; nothing is released")
