# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Answers to groups of RSA tests: key pairs with probable primes, signatures and their verification.

    keyGen            FIPS 186-5, A.1.3 (FIPS 186-4, B.3.3): new pairs (GDT), or whether two numbers are primes that the
                      method accepts (KAT)
    sigGen, sigVer    PKCS#1 v1.5, and PSS with MGF1 and the hash of the message

An engine computes all powers with secret exponents, and those with public exponents if it is as wide as the modulus,
which sigVer needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from modmill.contract import UnsupportedError
from modmill.engines.rsa import keygen, padding
from modmill.engines.rsa.rsa import PrivateKey, PublicKey, Rsa
from modmill.studies.acvp.engines import Engines
from modmill.studies.acvp.files import Answer, Item, hash_of, hexadecimal, ordinary

PADDINGS = {"pkcs1v1.5": "pkcs1", "pss": "pss"}
"""ACVP's name of a padding -> Modmill's."""
PROBABLE = ("probable", "B.3.3")
"""Names of the method with probable primes in the revisions of the protocol."""


def new_keys(group: Item, tests: Sequence[Item], engines: Engines) -> Answer:
    """Key pairs, or whether primes are accepted."""
    bits = group.integer("modulo")
    group.served("randPQ", PROBABLE)
    rsa = engines.rsa(group, bits, private=True)
    if group.served("testType", ["GDT", "KAT"]) == "KAT":
        return {}, [{"testPassed": _accepts(rsa, bits, group, test)} for test in tests]
    form = group.served("keyFormat", ["standard", "crt"], "standard")
    return {}, [_shown(keygen.generate(rsa, bits, _exponent(group, engines)), form) for _ in tests]


def siggen(group: Item, tests: Sequence[Item], engines: Engines) -> Answer:
    """Signatures by one key."""
    ordinary(group)
    bits = group.integer("modulo")
    rsa, options = engines.rsa(group, bits, private=True), _options(group)
    messages = [test.data("message") for test in tests]
    key = engines.key(rsa, bits)
    shown = [{"signature": padding.sign(rsa, key, message, **options).hex().upper()} for message in messages]
    return {"n": hexadecimal(key.n), "e": hexadecimal(key.e)}, shown


def sigver(group: Item, tests: Sequence[Item], engines: Engines) -> Answer:
    """Whether signatures are valid; one with a key that is not accepted is not."""
    ordinary(group)
    rsa, options = engines.rsa(group, group.integer("modulo"), private=False), _options(group)
    return {}, [{"testPassed": _right(rsa, group, test, options)} for test in tests]


def _right(rsa: Rsa, group: Item, test: Item, options: dict[str, Any]) -> bool:
    holder = test if "n" in test.values else group
    n, e = holder.number("n"), holder.number("e")
    message, signature = test.data("message"), test.data("signature")
    try:
        key = PublicKey(n, e)
    except UnsupportedError:
        return False
    return key.bits == group.integer("modulo") and padding.verify(rsa, key, message, signature, **options)


def _options(group: Item) -> dict[str, Any]:
    """Padding, hash and salt of a group, as the functions of `padding` take them."""
    name = PADDINGS[group.served("sigType", PADDINGS)]
    options: dict[str, Any] = {"padding": name, "hash": hash_of(group, usable=padding.HASHES.__contains__)}
    if name == "pss":
        group.served("maskFunction", ["mgf1"], "mgf1")
        options["salt"] = group.integer("saltLen")
    return options


def _exponent(group: Item, engines: Engines) -> int:
    """The public exponent of a new key pair: the group's, or a random one."""
    if group.served("pubExp", ["fixed", "random"], "random") == "random":
        return keygen.EXPONENTS[engines.below(1 << 63)]
    try:
        return keygen.require_exponent(group.number("fixedPubExp"))
    except UnsupportedError as error:
        raise UnsupportedError(f"{group.where}: {error}") from None


def _accepts(rsa: Rsa, bits: int, group: Item, test: Item) -> bool:
    """Whether the method accepts both numbers as primes."""
    e = test.number("e") if "e" in test.values else group.number("fixedPubExp")
    p, q = test.number("pRand"), test.number("qRand")
    right = e in keygen.EXPONENTS and keygen.candidate(bits, e, p) and keygen.candidate(bits, e, q, p)
    count = keygen.rounds(bits)
    return (
        right
        and all(keygen.probable_prime(rsa.engine, prime, count, rsa.below) for prime in (p, q))
        and keygen.accepted(bits, e, p, q) is not None
    )


def _shown(key: PrivateKey, form: str) -> dict[str, Any]:
    values = {"e": key.e, "p": key.p, "q": key.q, "n": key.n}
    if form == "crt":
        values |= {
            "dmp1": key.d % (key.p - 1), "dmq1": key.d % (key.q - 1), "iqmp": pow(key.q, -1, key.p)
        }  # fmt: skip
    else:
        values["d"] = key.d
    return {name: hexadecimal(value) for name, value in values.items()}
