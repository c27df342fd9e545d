# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Named moduli against their definitions and against OpenSSL's curves; the reader of moduli against what users type."""

import ast
import operator
import random
import re
from dataclasses import FrozenInstanceError, replace
from time import perf_counter

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from modmill.numbers.moduli import MAX_BITS, MODULI, Modulus, parse_modulus
from modmill.numbers.primes import is_prime


def value(name):
    return parse_modulus(name).value


# The moduli by their definitions, in Python's own arithmetic.
BN_X = 4965661367192848881
BLS_X = -0xD201000000010000
BLS_R = BLS_X**4 - BLS_X**2 + 1
DEFINITIONS = {
    "Ed25519": 2**255 - 19,
    "Ed25519-n": 2**252 + 27742317777372353535851937790883648493,
    "Ed448": 2**448 - 2**224 - 1,
    "secp160k1": 2**160 - 2**32 - 21389,
    "secp160r1": 2**160 - 2**31 - 1,
    "secp192k1": 2**192 - 2**32 - 4553,
    "P-192": 2**192 - 2**64 - 1,
    "secp224k1": 2**224 - 2**32 - 6803,
    "P-224": 2**224 - 2**96 + 1,
    "secp256k1": 2**256 - 2**32 - 977,
    "P-256": 2**256 - 2**224 + 2**192 + 2**96 - 1,
    "P-384": 2**384 - 2**128 - 2**96 + 2**32 - 1,
    "P-521": 2**521 - 1,
    "SM2": 0xFFFFFFFEFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF00000000FFFFFFFFFFFFFFFF,
    "BN254-p": 36 * BN_X**4 + 36 * BN_X**3 + 24 * BN_X**2 + 6 * BN_X + 1,
    "BN254-r": 36 * BN_X**4 + 36 * BN_X**3 + 18 * BN_X**2 + 6 * BN_X + 1,
    "BLS12-381-p": (BLS_X - 1) ** 2 * BLS_R // 3 + BLS_X,
    "BLS12-381-r": BLS_R,
    "M127": 2**127 - 1,
    "Goldilocks": 2**64 - 2**32 + 1,
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_definition(name):
    assert value(name) == DEFINITIONS[name]


@pytest.mark.parametrize("modulus", MODULI, ids=lambda m: m.name)
def test_named_modulus_is_an_odd_prime_with_a_source(modulus):
    assert modulus.prime and is_prime(modulus.value)
    assert modulus.source
    assert modulus.bits == modulus.value.bit_length()
    assert parse_modulus(modulus.name) is modulus
    assert parse_modulus(modulus.text).value == modulus.value
    length = re.search(r"\d{3}", modulus.name)
    if length and not modulus.name.startswith(("Ed25519", "BLS12-381-r")):
        assert modulus.bits == int(length[0])


def test_names_and_values_are_distinct():
    assert len({m.name for m in MODULI}) == len({m.value for m in MODULI}) == len(MODULI)


def test_misprints_of_the_sum_of_residues_paper_are_corrected():
    assert not is_prime(2**160 - 2**32 - 1) and value("secp160r1") != 2**160 - 2**32 - 1
    assert not is_prime(2**384 - 2**128 - 2**96 + 2**31 - 1) and value("P-384") != 2**384 - 2**128 - 2**96 + 2**31 - 1


@pytest.mark.parametrize(
    ("name", "curve"),
    [
        ("secp256k1", ec.SECP256K1()),
        ("P-256", ec.SECP256R1()),
        ("P-384", ec.SECP384R1()),
        ("P-521", ec.SECP521R1()),
    ],
)
def test_field_and_order_are_those_of_openssl(name, curve):
    """G and (n-1) G = -G share x, and their y add up to p: this fixes both n and p."""
    g, minus_g = (ec.derive_private_key(k, curve).public_key().public_numbers() for k in (1, value(f"{name}-n") - 1))
    assert g.x == minus_g.x
    assert g.y + minus_g.y == value(name)


@pytest.mark.parametrize(
    ("name", "curve"),
    [
        ("P-224", ec.SECP224R1()),
        ("brainpoolP256r1", ec.BrainpoolP256R1()),
        ("brainpoolP384r1", ec.BrainpoolP384R1()),
        ("brainpoolP512r1", ec.BrainpoolP512R1()),
    ],
)
def test_field_is_that_of_openssl(name, curve):
    """Two points fix the a and b of y^2 = x^3 + a x + b modulo p; every other point must satisfy it."""
    p = value(name)
    points = [ec.derive_private_key(k, curve).public_key().public_numbers() for k in range(1, 7)]
    (x1, t1), (x2, t2), *others = [(q.x, q.y**2 - q.x**3) for q in points]
    a = (t1 - t2) * pow(x1 - x2, -1, p) % p
    assert [(t - a * x - (t1 - a * x1)) % p for x, t in others] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("SECP256R1", "P-256"),
        ("prime256v1", "P-256"),
        ("NIST P-256", "P-256"),
        ("p256", "P-256"),
        (" p_256 ", "P-256"),
        ("P-256-p", "P-256"),
        ("secp256r1-n", "P-256-n"),
        ("curve25519", "Ed25519"),
        ("ED25519", "Ed25519"),
        ("X25519", "Ed25519"),
        ("Curve448", "Ed448"),
        ("secp160r2", "secp160k1"),
        ("secp192r1", "P-192"),
        ("BN254", "BN254-p"),
        ("alt_bn128", "BN254-p"),
        ("alt_bn128_p", "BN254-p"),
        ("BLS12-381", "BLS12-381-p"),
        ("bls12_381_r", "BLS12-381-r"),
        ("BRAINPOOLP256R1", "brainpoolP256r1"),
        ("goldilocks", "Goldilocks"),
    ],
)
def test_alias(alias, name):
    assert parse_modulus(alias).name == name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2^255-19", 2**255 - 19),
        ("2**521-1", 2**521 - 1),
        ("2 ^ 255 - 19", 2**255 - 19),
        ("0xFFFFffff", 2**32 - 1),
        ("0xffff_ffff", 2**32 - 1),
        ("340282366920938463463374607431768211297", 2**128 - 159),
        ("1_000_003", 1000003),
        ("3", 3),
        ("-(1-2^3)", 7),
        ("-2^2+9", 5),
        ("2^3^2-1", 511),
        ("2*(3+4)*5-1-2-4", 63),
        ("+5", 5),
        ("1^(2^4000)+2", 3),
        ("0^5+3", 3),
        ("2^8192-1", 2**8192 - 1),
        ("(2^4096-1)*(2^4096+1)", 2**8192 - 1),
        ("2^9000-2^9000+5", 5),
    ],
)
def test_expression(text, expected):
    assert parse_modulus(text).value == expected


def test_random_expressions_agree_with_python():
    source = random.Random(2)
    operators = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow}

    def expression(depth):
        if depth == 0:
            return source.choice(["7", "12", "0x1f", "255"])
        a, b = expression(depth - 1), expression(depth - 1)
        return source.choice(
            [f"{a}+{b}", f"{a}-{b}", f"{a}*{b}", f"({a})", f"-{a}", f"({a})**2", f"2^3*{b}", f"2**2**2-{b}"]
        )

    def evaluate(node):
        if isinstance(node, ast.BinOp):
            return operators[type(node.op)](evaluate(node.left), evaluate(node.right))
        return -evaluate(node.operand) if isinstance(node, ast.UnaryOp) else node.value

    seen = 0
    for _ in range(3000):
        text = expression(4)
        expected = evaluate(ast.parse(text.replace("^", "**"), mode="eval").body)
        if expected >= 3 and expected % 2:
            assert parse_modulus(text).value == expected, text
            seen += 1
    assert seen > 500


def test_number_of_a_named_modulus_gets_its_name():
    modulus = parse_modulus("2^255-19")
    assert (modulus.name, modulus.text, modulus.prime) == ("Ed25519", "2^255-19", True)


def test_unnamed_prime_and_composite():
    assert parse_modulus("2^61-1") == Modulus(None, 2**61 - 1, True, "given by the user", "2^61-1")
    assert parse_modulus("15") == Modulus(None, 15, False, "given by the user", "15")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("P-255", "no modulus is named 'P-255'; the nearest names are P-256"),
        ("brainpool256", "brainpoolP256r1"),
        ("deadbeef", "a hexadecimal number starts with 0x"),
        ("qqqqqq", "accepted are a name such as P-256"),
        ("", "the modulus is empty; accepted are"),
        ("   ", "the modulus is empty"),
        ("0", "at least 3, got 0"),
        ("1", "at least 3, got 1"),
        ("2", "at least 3, got 2"),
        ("-7", "at least 3, got -7"),
        ("2-2^300", "at least 3, got -0x"),
        ("10", r"modulus must be odd, got 10 \(even\)"),
        ("2^255-20", r"modulus must be odd, got 0x7f.* \(even\)"),
        ("2^8192+1", "modulus has 8193 bits; at most 8192 are accepted"),
        ("2^9000-1", "modulus has 9000 bits"),
        ("9^9^9", r"9\^387420489 in '9\^9\^9' is too large"),
        ("2^(2^4000)", "too large"),
        ("(2^10000)*(2^10000)", "reaches 20001 bits"),
        ("9" * 4200, "4200 digits is too large"),
        ("1" * 6000, "6000 characters"),
        ("2^-1", "exponent -1 in '2\\^-1' is negative"),
        ("2^", "ends where a number is expected"),
        ("2^255-", "ends where a number is expected"),
        ("(2^255-19", "closing parenthesis is missing"),
        ("2^255-19)", r"'\)' is out of place"),
        ("2 3", "'3' is out of place"),
        ("2*^3", r"'\^' is out of place"),
        ("2^n-1", "cannot read 'n' in"),
        ("0x", "cannot read 'x'"),
        ("0x_", "'0x_' is out of place"),
        ("0xfg", "cannot read 'g'"),
        ("7/2", "cannot read '/'"),
        ("1.5", "cannot read '.'"),
        ("²3", "cannot read"),
        ("__import__('os')", "cannot read '_'"),
        ("os.system('x')\nP-256", "no modulus is named"),
        ("(" * 2000 + "3", "nested more than 50 deep"),
        ("-" * 2000 + "3", "nested more than 50 deep"),
        ("3^" * 2000 + "3", "nested more than 50 deep"),
    ],
)
def test_refused_quickly_in_one_short_line(text, message):
    start = perf_counter()
    with pytest.raises(ValueError, match=message) as caught:
        parse_modulus(text)
    assert perf_counter() - start < 0.5
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_modulus_refuses_what_no_core_can_take():
    good = parse_modulus("P-256")
    for bad in (0, 1, 2, 4, -3, 2 ** (MAX_BITS + 1) - 1):
        with pytest.raises(ValueError, match="modulus"):
            replace(good, value=bad)
    with pytest.raises(FrozenInstanceError):
        good.value = 5
