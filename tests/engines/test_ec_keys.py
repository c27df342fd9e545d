# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Keys in files: published ones, and whatever a file may hold: a key that is right, or one line of refusal."""

import random
import re
from pathlib import Path

import cryptography_vectors
import pytest

from modmill.contract import UnsupportedError
from modmill.engines.ecc.blinding import require_scalar
from modmill.engines.ecc.keys import Key, read_curve, read_key
from modmill.numbers.curves.affine import Weierstrass
from modmill.numbers.curves.named import find_curve
from modmill.numbers.curves.projective import multiples

ROOT = Path(cryptography_vectors.__file__).parent / "asymmetric"
EXPLICIT = sorted((ROOT / "EC").glob("*explicit*seed.pem"))
OTHERS = sorted(
    path for name in ("X25519", "X448", "Ed25519", "Ed448") for path in (ROOT / name).glob("*[bp8].[dp]e[rm]")
)


@pytest.mark.parametrize("path", EXPLICIT, ids=lambda path: path.stem)
def test_explicit_parameters_of_a_named_curve(path):
    key = read_key(path.read_bytes())
    assert key.curve is find_curve(path.stem.split("-")[0])
    assert (key.secret is None) == ("-pub-" in path.stem)
    assert read_curve(path.read_bytes()) is key.curve
    assert key.curve.contains(key.point)


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.name)
def test_keys_of_rfc_8410(path):
    key = read_key(path.read_bytes())
    assert key.curve is find_curve(path.parent.name)
    assert (key.secret is None) == ("-pub" in path.stem)


@pytest.mark.parametrize(("name", "why"), [
    ("EC/ec-missing-curve.pem", "does not name its curve"),
    ("EC/ec_private_key_non_zero_unused_bits.der", "BIT STRING"),
    ("EC/explicit_parameters_wap_wsg_idm_ecid_wtls11_private_key.pem", "not over a prime field"),
    ("EC/secp128r1_private_key.pem", "no named curve has the object identifier 1.3.132.0.28"),
    ("EC/sect233r1-spki.pem", "no named curve has the object identifier 1.3.132.0.27"),
    ("Ed25519/ed25519-pub-non-zero-unused-bits.der", "BIT STRING"),
    ("Ed25519/ed25519-pkcs8-enc.pem", "passphrase"),
    ("PKCS8/unenc-rsa-pkcs8.pem", "no named curve has the object identifier 1.2.840.113549.1.1.1"),
])  # fmt: skip
def test_files_that_are_refused(name, why):
    with pytest.raises(UnsupportedError, match=why) as caught:
        read_key((ROOT / name).read_bytes())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\x30\0", b"\x30\x80", b"-----BEGIN X-----", bytes(range(256)), b"\x30" * 9]
)
def test_data_that_is_no_file_of_a_key(data):
    for read in (read_key, read_curve):
        with pytest.raises(
            UnsupportedError, match=r"cannot be read as an elliptic-curve key|is labelled 'X'; accepted are PRIVATE KEY"
        ):
            read(data)


@pytest.mark.parametrize("label", ["PRIVAT KEY", "Private Key", "PRIVATE KEY ", "RSA PRIVATE KEY", "X" * 5000])
def test_unknown_labels_of_pem_files_are_refused(label):
    """Behind each label stands a good key."""
    data = EXPLICIT[0].read_bytes()
    assert read_key(data)
    text = re.sub(rb"(-----(?:BEGIN|END) )[A-Z ]+-----", rb"\1" + label.encode() + b"-----", data)
    with pytest.raises(UnsupportedError, match=r"is labelled '.*accepted are PRIVATE KEY, .*PUBLIC KEY") as caught:
        read_key(text)
    assert len(str(caught.value)) < 300


def coherent(key):
    """Whether everything in a key belongs together."""
    if isinstance(key.curve, Weierstrass):
        key.curve.validate()
        P = key.point if key.public is not None else None
        if key.secret is None:
            return P is not None
        k = require_scalar(key.curve, int.from_bytes(key.secret, "big"))
        return P is None or multiples(key.curve, [(k, key.curve.base)]) == P
    return all(half is None or len(half) in (32, 56, 57) for half in (key.secret, key.public))


@pytest.mark.parametrize("name", [
    "EC/secp256r1-explicit-no-seed.pem", "EC/secp256k1-pub-explicit-no-seed.pem", "X448/x448-pkcs8.der",
    "Ed25519/ed25519-pub.der",
])  # fmt: skip
def test_damaged_files_give_a_coherent_key_or_a_line(name):
    from Crypto.IO import PEM

    rnd = random.Random(name)
    data = (ROOT / name).read_bytes()
    der = PEM.decode(data.decode())[0] if name.endswith("pem") else data
    assert coherent(read_key(der))
    refused = 0
    for _ in range(600):
        damaged = bytearray(der)
        for _ in range(rnd.choice((1, 1, 2))):
            at = rnd.randrange(len(damaged))
            match rnd.randrange(4):
                case 0:
                    damaged[at] ^= 1 << rnd.randrange(8)
                case 1:
                    damaged[at] = rnd.choice((0, 1, 2, 3, 4, 5, 6, 0x30, 0x7F, 0x80, 0xFF))
                case 2:
                    del damaged[at]
                case 3:
                    damaged.insert(at, rnd.randrange(256))
        try:
            key = read_key(bytes(damaged))
        except UnsupportedError as refusal:
            refused += "\n" not in str(refusal)
        else:
            assert coherent(key)
            refused += 1
    assert refused == 600


def test_an_incoherent_key_is_caught():
    key = read_key((ROOT / "EC" / "secp256r1-explicit-no-seed.pem").read_bytes())
    assert coherent(key)
    assert not coherent(Key(key.curve, (1).to_bytes(32, "big"), key.public))
