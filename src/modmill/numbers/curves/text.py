# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Curves as users write them: a name, or the parameters one by one.

    P-256
    weierstrass p=2^256-2^32-977 a=0 b=7 x=0x79be... y=0x483a... n=0xffff...
    montgomery p=2^255-19 A=486662 x=9 y=0x20ae... n=2^252+2774... h=8

Coefficients may be negative and are taken modulo p; B and h default to 1. A curve with the parameters of a named curve
is that curve; every other curve is validated.
"""

from collections.abc import Callable
from dataclasses import replace

from modmill.numbers.curves.affine import Curve, Edwards, Montgomery, Weierstrass
from modmill.numbers.curves.named import find_curve, same_curve
from modmill.numbers.moduli import parse_integer
from modmill.numbers.shown import shortened

FORMS: dict[str, tuple[Callable[..., Curve], tuple[str, ...]]] = {
    "weierstrass": (Weierstrass, ("a", "b")),
    "montgomery": (Montgomery, ("A", "B")),
    "edwards": (Edwards, ("a", "d")),
}
"""Each form's class and its coefficients."""
_DEFAULT = {"h": 1, "B": 1}


def parse_curve(text: str, *, pairing: bool = False) -> Curve:
    """The curve of a name, or of a form and KEY=VALUE after it, separated by spaces or commas.

    Keys are p, the coefficients of the form, x, y (of the base point; u and v of a Montgomery curve), n and h; values
    are integers as `parse_integer` reads them. Raises ValueError, in one line, for an unknown name, for keys that are
    missing, repeated or unknown, and for a curve that fails its validation.
    ``pairing``: also accept pairing curves, and Weierstrass curves with points of order two, for arithmetic only.
    """
    words = text.replace(",", " ").split()
    if not words:
        raise ValueError("the curve is empty; give a name, or a form and its parameters")
    if len(words) == 1 and "=" not in words[0]:
        return find_curve(words[0], pairing=pairing)
    form = words[0].lower()
    if form not in FORMS:
        raise ValueError(f"a curve's parameters begin with one of {', '.join(FORMS)}, not {shortened(words[0])}")
    made, letters = FORMS[form]
    given = _values(words[1:], ("p", *letters, "x", "y", "n", "h"))
    p = given["p"]
    if p < 5:
        raise ValueError(f"the field needs a prime p of at least 5; p = {shortened(p)} is not one")
    coefficients = {letter: given[letter] % p for letter in letters}
    curve = made(p, (given["x"], given["y"]), given["n"], given["h"], **coefficients)
    return proved(curve, pairing=pairing)


def proved(curve: Curve, *, pairing: bool = False) -> Curve:
    """The named curve with these parameters, or else the curve itself, validated. ``pairing`` as in `parse_curve`.
    Raises ValueError as `Curve.validate` does, and for a curve of `PAIRING_CURVES` unless ``pairing``."""
    named = same_curve(curve)
    if named is curve:
        curve.validate(pairing=pairing)
        return replace(curve, arithmetic=True) if pairing and curve.unsuited() else curve
    return find_curve(named.name, pairing=pairing)


def _values(words: list[str], keys: tuple[str, ...]) -> dict[str, int]:
    """The values of KEY=VALUE words; each key may occur once."""
    found: dict[str, int] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in keys:
            raise ValueError(f"parameters are KEY=VALUE with a key among {', '.join(keys)}, not {shortened(word)}")
        if key in found:
            raise ValueError(f"{key} is given twice")
        found[key] = parse_integer(value)
    found = {**{key: value for key, value in _DEFAULT.items() if key in keys}, **found}
    missing = [key for key in keys if key not in found]
    if missing:
        raise ValueError(f"the curve's {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    return found
