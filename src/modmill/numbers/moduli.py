# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Moduli in use, by name and with their source, and a parser for any other modulus.

The table has every prime of Table 2 of the sum-of-residues paper (Mehrabi 2019). Two of them are corrected: secp160r1
is 2^160-2^31-1 (the paper prints 2^32, which gives a composite), and P-384, printed as "SECP2384R1", has the term +2^32
(the paper prints +2^31, which gives a composite). Tests prove that every value is an odd prime.
"""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from modmill.numbers.primes import is_prime
from modmill.numbers.shown import shortened

MAX_BITS = 8192
"""Length of the longest accepted modulus, in bits; a number inside an expression may have twice this length."""

_ACCEPTED = "accepted are a name such as P-256, an expression such as 2^255-19, 0x... in hexadecimal, or a decimal"
_MAX_TEXT = 5000
_MAX_DEPTH = 50
_TOKEN = re.compile(r"\s*(?:(0x[0-9a-f_]+|[0-9][0-9_]*|\*\*|[-+*^()])|(\S))", re.IGNORECASE)
"""A token, or a character that begins none."""


@dataclass(frozen=True)
class Modulus:
    """A modulus. Raises ValueError if the value is below 3, even, or longer than MAX_BITS.

    name: its name in MODULI, or None; value: 3 <= value < 2^8192, odd; prime: whether it is prime; source: the
    standard that defines it; text: the user's text, or the definition of a named modulus.
    """

    name: str | None
    value: int
    prime: bool
    source: str
    text: str

    def __post_init__(self) -> None:
        _check(self.value)

    @property
    def bits(self) -> int:
        """The length of the value in bits."""
        return self.value.bit_length()


@lru_cache(1024)
def parse_modulus(text: str) -> Modulus:
    """Read a modulus: a name, an expression with + - * ^ ** and parentheses, 0x... in hexadecimal, or a decimal.

    Names ignore case, spaces, hyphens and underscores. A number equal to a named modulus gets its name and source. An
    odd composite is accepted with prime=False. Raises ValueError, in one line, for a text that cannot be parsed and for
    a value that is below 3, even or longer than MAX_BITS.
    """
    text = text.strip()
    if not text:
        raise ValueError(f"the modulus is empty; {_ACCEPTED}")
    if len(text) > _MAX_TEXT:
        raise ValueError(f"the modulus has {len(text)} characters; at most {_MAX_TEXT} are accepted")
    if text[0].isalpha():
        return _named(text)
    value = _Expression(text).value()
    _check(value)
    if known := _BY_VALUE.get(value):
        return Modulus(known.name, value, True, known.source, text)
    return Modulus(None, value, is_prime(value), "given by the user", text)


def parse_integer(text: str) -> int:
    """The value of an expression, 0x... or a decimal, of either sign. Raises ValueError as `parse_modulus` does."""
    return _Expression(text).value()


def _named(text: str) -> Modulus:
    """The modulus of a name or alias. Raises ValueError, with the nearest names, when there is none."""
    key = key_of(text)
    if key in _BY_KEY:
        return _BY_KEY[key]
    nearest = dict.fromkeys(str(_BY_KEY[k].name) for k in get_close_matches(key, _BY_KEY, n=12, cutoff=0.5))
    hint = f"the nearest names are {', '.join(list(nearest)[:4])}" if nearest else _ACCEPTED
    if re.fullmatch(r"[0-9a-f_]+", text, re.IGNORECASE):
        hint += "; a hexadecimal number starts with 0x"
    raise ValueError(f"no modulus is named {shortened(text)}; {hint}")


def _check(value: int) -> None:
    """Raise ValueError unless value is odd, at least 3 and at most MAX_BITS long."""
    bits = value.bit_length()
    if value < 3:
        raise ValueError(f"the modulus must be at least 3, got {shortened(value)}")
    if bits > MAX_BITS:
        raise ValueError(f"the modulus has {bits} bits; at most {MAX_BITS} are accepted")
    if value % 2 == 0:
        raise ValueError(f"the modulus must be odd, got {shortened(value)} (even)")


class _Expression:
    """An integer expression with Python's precedence: ^ and ** bind tightest, from the right; then -, *, and + -.

    sum = product {(+|-) product}; product = signed {* signed}; signed = (+|-) signed | power;
    power = atom [(^|**) signed]; atom = number | ( sum ).
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        self._depth = 0
        for token, other in _TOKEN.findall(text):
            if other:
                raise ValueError(f"cannot read {other!r} in {shortened(text)}; {_ACCEPTED}")
            self._tokens.append(token.lower())
        self._tokens.reverse()

    def value(self) -> int:
        """The value of the whole text. Raises ValueError when it is no expression or grows too large."""
        value = self._sum()
        if self._tokens:
            raise self._unexpected(self._tokens[-1])
        return value

    def _take(self, *wanted: str) -> str:
        """The next token, which is passed, if it is a wanted one; else the empty text."""
        return self._tokens.pop() if self._tokens and self._tokens[-1] in wanted else ""

    def _sum(self) -> int:
        value = self._product()
        while operator := self._take("+", "-"):
            term = self._product()
            value = self._bounded(value + term if operator == "+" else value - term)
        return value

    def _product(self) -> int:
        value = self._signed()
        while self._take("*"):
            value = self._bounded(value * self._signed())
        return value

    def _signed(self) -> int:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ValueError(f"{shortened(self._text)} is nested more than {_MAX_DEPTH} deep")
        sign = self._take("+", "-")
        value = self._signed() if sign else self._power()
        self._depth -= 1
        return -value if sign == "-" else value

    def _power(self) -> int:
        base = self._atom()
        if not self._take("^", "**"):
            return base
        exponent = self._signed()
        if exponent < 0:
            raise ValueError(f"the exponent {shortened(exponent)} in {shortened(self._text)} is negative")
        # A number of b bits is at least 2^(b-1), so its power has more than (b-1) exponent bits. Refuse before
        # computing it.
        if abs(base) > 1 and (base.bit_length() - 1) * exponent >= 2 * MAX_BITS:
            power = f"{shortened(base)}^{shortened(exponent)}"
            raise ValueError(f"{power} in {shortened(self._text)} is too large; a modulus has at most {MAX_BITS} bits")
        return self._bounded(base**exponent)

    def _atom(self) -> int:
        if self._take("("):
            value = self._sum()
            if not self._take(")"):
                raise ValueError(f"a closing parenthesis is missing in {shortened(self._text)}")
            return value
        if not self._tokens:
            raise ValueError(f"{shortened(self._text)} ends where a number is expected; {_ACCEPTED}")
        token = self._tokens.pop()
        digits = token.removeprefix("0x").replace("_", "")
        if not token[0].isdigit() or not digits:
            raise self._unexpected(token)
        if len(digits) > MAX_BITS // 2:
            raise ValueError(f"a number of {len(digits)} digits is too large; a modulus has at most {MAX_BITS} bits")
        return self._bounded(int(digits, 16 if token.startswith("0x") else 10))

    def _bounded(self, value: int) -> int:
        """``value`` itself. Raises ValueError when it has more than twice MAX_BITS."""
        if (bits := value.bit_length()) > 2 * MAX_BITS:
            raise ValueError(f"{shortened(self._text)} reaches {bits} bits; a modulus has at most {MAX_BITS} bits")
        return value

    def _unexpected(self, token: str) -> ValueError:
        return ValueError(f"{shortened(token)} is out of place in {shortened(self._text)}; {_ACCEPTED}")


_SEC2 = "SEC 2 v2.0 (2010)"
_SEC2_V1 = "SEC 2 v1.0 (2000)"
_NIST = "NIST SP 800-186 (2023), section 3.2.1"
_BRAINPOOL = "RFC 5639 (2010), section 3"
_BN = "EIP-196 and EIP-197 (2017); Barreto and Naehrig (2005) with x = 4965661367192848881"
_BLS = "draft-irtf-cfrg-pairing-friendly-curves; BLS12 with x = -0xd201000000010000"
_X = "4965661367192848881"
_Z = "0xd201000000010000"

# name, definition, source, aliases. A name is that of a field; a name that ends in -n or -r is the order of a group.
# fmt: off
_TABLE: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("Ed25519", "2^255-19", "RFC 7748 (2016), section 4.1", ("Curve25519", "X25519", "edwards25519")),
    ("Ed448", "2^448-2^224-1", "RFC 7748 (2016), section 4.2", ("Curve448", "X448", "edwards448", "Ed448-Goldilocks")),
    ("secp160k1", "2^160-2^32-21389", _SEC2_V1, ("secp160r2",)),
    ("secp160r1", "2^160-2^31-1", _SEC2_V1, ()),
    ("secp192k1", "2^192-2^32-4553", _SEC2, ()),
    ("secp224k1", "2^224-2^32-6803", _SEC2, ()),
    ("secp256k1", "2^256-2^32-977", _SEC2, ()),
    ("P-192", "2^192-2^64-1", "FIPS 186-4 (2013), D.1.2.1", ("secp192r1", "prime192v1", "NIST P-192")),
    ("P-224", "2^224-2^96+1", _NIST, ("secp224r1", "NIST P-224")),
    ("P-256", "2^256-2^224+2^192+2^96-1", _NIST, ("secp256r1", "prime256v1", "NIST P-256")),
    ("P-384", "2^384-2^128-2^96+2^32-1", _NIST, ("secp384r1", "NIST P-384")),
    ("P-521", "2^521-1", _NIST, ("secp521r1", "NIST P-521")),
    ("SM2", "2^256-2^224-2^96+2^64-1", "GB/T 32918.5 (2017)", ("sm2p256v1",)),
    ("brainpoolP160r1", "0xe95e4a5f737059dc60dfc7ad95b3d8139515620f", _BRAINPOOL, ()),
    ("brainpoolP192r1", "0xc302f41d932a36cda7a3463093d18db78fce476de1a86297", _BRAINPOOL, ()),
    ("brainpoolP224r1", "0xd7c134aa264366862a18302575d1d787b09f075797da89f57ec8c0ff", _BRAINPOOL, ()),
    ("brainpoolP256r1", "0xa9fb57dba1eea9bc3e660a909d838d726e3bf623d52620282013481d1f6e5377", _BRAINPOOL, ("BP256",)),
    ("brainpoolP320r1", "0xd35e472036bc4fb7e13c785ed201e065f98fcfa6f6f40def4f92b9ec7893ec28fcd412b1f1b32e27",
     _BRAINPOOL, ("BP320",)),
    ("brainpoolP384r1",
     "0x8cb91e82a3386d280f5d6f7e50e641df152f7109ed5456b412b1da197fb71123acd3a729901d1a71874700133107ec53",
     _BRAINPOOL, ("BP384",)),
    ("brainpoolP512r1", "0xaadd9db8dbe9c48b3fd4e6ae33c9fc07cb308db3b3c9d20ed6639cca70330871"
     "7d4d9b009bc66842aecda12ae6a380e62881ff2f2d82c68528aa6056583a48f3", _BRAINPOOL, ("BP512",)),
    ("FRP256v1", "0xf1fd178c0b3ad58f10126de8ce42435b3961adbcabc8ca6de8fcf353d86e9c03",
     "ANSSI, JORF no. 0241 of 16 October 2011, page 17533", ("ANSSI-FRP256v1",)),
    ("BN254-p", f"36*{_X}^4+36*{_X}^3+24*{_X}^2+6*{_X}+1", _BN, ("BN254", "alt_bn128", "BN128", "BN254-Fp")),
    ("BN254-r", f"36*{_X}^4+36*{_X}^3+18*{_X}^2+6*{_X}+1", _BN, ("alt_bn128-r", "BN128-r", "BN254-Fr", "BN254-n")),
    # (x-1)^2 (x^4-x^2+1)/3 + x
    ("BLS12-381-p",
     "0x1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab",
     _BLS, ("BLS12-381", "BLS12-381-Fp")),
    ("BLS12-381-r", f"{_Z}^4-{_Z}^2+1", _BLS, ("BLS12-381-Fr", "BLS12-381-n")),
    ("Ed25519-n", "2^252+27742317777372353535851937790883648493", "RFC 8032 (2016), section 5.1", ("Curve25519-n",)),
    ("secp256k1-n", "0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", _SEC2, ()),
    ("P-256-n", "0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551",
     _NIST, ("secp256r1-n", "prime256v1-n")),
    ("P-384-n", "0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973",
     _NIST, ("secp384r1-n",)),
    ("P-521-n", "2^521-0x5ae79787c40d069948033feb708f65a2fc44a36477663b851449048e16ec79bf7", _NIST, ("secp521r1-n",)),
    ("M127", "2^127-1", "Mersenne prime; Costello and Longa, FourQ (2015)", ("Mersenne127", "FourQ")),
    ("Goldilocks", "2^64-2^32+1", "Solinas prime; Plonky2 (2022)", ("Goldilocks64",)),
)
# fmt: on


def key_of(name: str) -> str:
    """The key by which a name is found: lower case, without spaces, hyphens and underscores."""
    return re.sub(r"[\s_-]", "", name).lower()


MODULI: tuple[Modulus, ...] = tuple(
    Modulus(name, _Expression(text).value(), True, source, text) for name, text, source, _ in _TABLE
)
"""Every named modulus."""

_BY_VALUE = {modulus.value: modulus for modulus in MODULI}
_BY_KEY = {
    key_of(alias + suffix): modulus
    for modulus, (name, _, _, aliases) in zip(MODULI, _TABLE, strict=True)
    for alias in (name, *aliases)
    for suffix in (("",) if name.endswith(("-n", "-r")) else ("", "-p"))
}
