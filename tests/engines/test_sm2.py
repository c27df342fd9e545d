# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""SM2 signatures: the example of the standard, `openssl` in both directions, and what is refused."""

import random
import shutil
import subprocess
from dataclasses import replace

import pytest

from modmill.contract import Fault, UnsupportedError
from modmill.engines.ecc import ecdsa, keys, sm2
from modmill.engines.ecc.blinding import Ecc, ReferenceEngine
from modmill.numbers.curves.affine import Weierstrass
from modmill.numbers.curves.encoding import encode_sec1
from modmill.numbers.curves.named import find_curve

CURVE = find_curve("SM2")
ECC = Ecc(ReferenceEngine(CURVE))
MESSAGE = b"message digest"
D = 0x3945208F7B2144B13F36E38AC6D39F95889393692860B51A42FB81EF4DF7C5B8
K = 0x59276E27D506861A16680F3AD9C02DCCEF3CC1FA3CDBE4CE6D54B80DEAC1BC21
Q = (
    0x09F9DF311E5421A150DD7D161E4BC5C672179FAD1833FC076BB08FF356F35020,
    0xCCEA490CE26775A52DC6EA718CC1AA600AED05FBF35E084A6632F6072DA9AD13,
)
R, S = (
    0xF5A03B0648D2C4630EEAC513E1BB81A15944DA3827D5B74143AC7EACEEE720B3,
    0xB1B6AA29DF212FD8763182BC0D421CA1BB9038FD1F7F42D4840B69C485BBC1AA,
)
"""Key, nonce, public point and signature of GB/T 32918.5-2017, Annex A.2."""


def test_the_example_of_the_standard():
    e = sm2.digest_for(CURVE, Q, MESSAGE)
    assert e.hex().upper() == "F0B43E94BA45ACCAACE692ED534382EB17E6AB5A19CE7B31F4486FDFC0D28640"
    given = replace(ECC, below=lambda _: K - 1)
    assert sm2.sign(given, [(D, MESSAGE)], nonce="random") == [(R, S)]
    n = CURVE.n
    wrong = [(Q, MESSAGE, pair) for pair in ((R, S ^ 1), (R, n - R), (0, S), (R + n, S))]
    wrong += [(Q, MESSAGE + b"!", (R, S)), (CURVE.base, MESSAGE, (R, S))]
    assert sm2.verify(ECC, [(Q, MESSAGE, (R, S)), *wrong]) == [True] + [False] * len(wrong)
    assert sm2.verify(ECC, [(Q, MESSAGE, (R, S))], b"alice") == [False]


@pytest.mark.parametrize("nonce", ecdsa.NONCES)
def test_nonces(nonce):
    one, two, other = sm2.sign(ECC, [(D, MESSAGE), (D, MESSAGE), (D, MESSAGE + b"!")], b"alice", nonce)
    assert (one == two) == (nonce == "deterministic")
    assert one != other
    assert sm2.verify(ECC, [(Q, MESSAGE, one), (Q, MESSAGE, two)], b"alice") == [True, True]


def test_hedged_nonces_are_those_with_random_data():
    """As those of the annex of RFC 6979, if there is no random data, and never random alone."""
    curve = find_curve("P-256")
    hashed = ecdsa.digest("sha256", b"sample")
    for number in (0, 1, 5):
        ecc = Ecc(ReferenceEngine(curve), below=lambda _, number=number: number)
        hedged = next(ecdsa.draws(ecc, D, hashed, "sha256", "hedged"))
        assert hedged == next(ecdsa.nonces(curve.n, D, hashed, "sha256", number.to_bytes(32, "big")))
    assert len({next(ecdsa.draws(ECC, D + k, hashed, "sha256", "hedged")) for k in range(3)}) == 3


@pytest.mark.parametrize("do, message", [
    (lambda: sm2.sign(Ecc(ReferenceEngine(find_curve("P-256"))), [(D, MESSAGE)]), "need the curve SM2, not P-256"),
    (lambda: sm2.sign(ECC, [(CURVE.n - 1, MESSAGE)]), "in \\[1, n - 2\\]"),
    (lambda: sm2.sign(ECC, [(0, MESSAGE)]), "is not in \\[1, n - 1\\]"),
    (lambda: sm2.sign(ECC, [(D, MESSAGE)], nonce="none"), "nonces must be one of deterministic, hedged, random"),
    (lambda: sm2.verify(ECC, [(Q, MESSAGE, (R, S))], b"a" * 8192), "fewer than 8,192 bytes, got 8,192"),
    (lambda: sm2.verify(ECC, [((1, 1), MESSAGE, (R, S))]), "not on SM2"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(do, message):
    with pytest.raises(UnsupportedError, match=message):
        do()


def test_a_fault_releases_nothing():
    class Wrong(ReferenceEngine):
        def results(self, operation, bits, runs):
            found = super().results(operation, bits, runs)
            if operation == "multiply-base" and runs[0][0] != (D,):  # the point of the nonce
                return [self.curve.base] * len(found)
            return found

    with pytest.raises(Fault, match="a signature failed its verification"):
        sm2.sign(Ecc(Wrong(CURVE)), [(D, MESSAGE)])


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
def test_openssl_accepts_and_is_accepted(tmp_path):
    def openssl(*words):
        return subprocess.run(["openssl", *words], cwd=tmp_path, capture_output=True, timeout=60)

    d = random.Random(1).randrange(1, CURVE.n - 1)
    (P,) = ECC.multiply_base([d])
    assert isinstance(CURVE, Weierstrass)
    key = keys.Key(CURVE, d.to_bytes(32, "big"), encode_sec1(CURVE, P))
    (tmp_path / "key.pem").write_bytes(keys.write_key(key))
    (tmp_path / "message").write_bytes(MESSAGE)
    options = "-inkey", "key.pem", "-rawin", "-in", "message", "-digest", "sm3", "-pkeyopt", "distid:alice"
    (ours,) = sm2.sign(ECC, [(d, MESSAGE)], b"alice")
    (tmp_path / "ours").write_bytes(ecdsa.encode(CURVE, ours))
    assert openssl("pkeyutl", "-verify", *options, "-sigfile", "ours").returncode == 0
    assert openssl("pkeyutl", "-sign", *options, "-out", "theirs").returncode == 0
    theirs = ecdsa.decode(CURVE, (tmp_path / "theirs").read_bytes())
    assert sm2.verify(ECC, [(P, MESSAGE, theirs)], b"alice") == [True]
