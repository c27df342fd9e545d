# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Curves as text: every named curve by its parameters, own curves of each form, and each fault."""

import pytest

from modmill.numbers.curves.affine import Edwards, Montgomery, Weierstrass
from modmill.numbers.curves.named import CURVES
from modmill.numbers.curves.text import FORMS, parse_curve

TOY = "weierstrass p=23 a=18 b=1 x=0 y=1 n=29"


def text_of(curve, separator=" "):
    form = next(form for form, (made, _) in FORMS.items() if made is type(curve))
    values = {"p": curve.p, **curve.coefficients(), "x": curve.base[0], "y": curve.base[1], "n": curve.n, "h": curve.h}
    return separator.join([form, *(f"{key}={value:#x}" for key, value in values.items())])


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
def test_parameters_of_a_named_curve_are_that_curve(curve):
    assert parse_curve(text_of(curve)) is curve
    assert parse_curve(text_of(curve, ", ")) is curve
    assert parse_curve(f" {curve.name.lower()} ") is curve


def test_own_curves():
    assert parse_curve(TOY) == Weierstrass(23, (0, 1), 29, a=18, b=1)
    assert parse_curve(TOY.replace("a=18", "a=-5").upper().lower()) == parse_curve(TOY)
    assert parse_curve("montgomery p=2^8+1 A=45 x=4 y=70 n=67 h=4") == Montgomery(257, (4, 70), 67, 4, A=45)
    assert parse_curve("Edwards p=257 a=1 d=39 x=6 y=164 n=71 h=4") == Edwards(257, (6, 164), 71, 4, a=1, d=39)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the curve is empty"),
        ("P-257", "no curve is named 'P-257'"),
        ("hessian p=23", "begin with one of weierstrass, montgomery, edwards, not 'hessian'"),
        ("p=23 a=1", "begin with one of"),
        (TOY.replace("n=29", ""), "the curve's n is missing"),
        ("edwards p=23", "the curve's a, d, x, y, n are missing"),
        (f"{TOY} n=29", "n is given twice"),
        (f"{TOY} d=29", "KEY=VALUE with a key among p, a, b, x, y, n, h, not 'd=29'"),
        (f"{TOY} h", "not 'h'"),
        (f"{TOY} h=", "ends where a number is expected"),
        (TOY.replace("p=23", "p=0"), "p = 0 is not one"),
        (TOY.replace("p=23", "p=-23"), "p = -23 is not one"),
        (TOY.replace("p=23", "p=25"), "p = 25 is not one"),
        (TOY.replace("y=1", "y=2"), "not on the curve"),
        (TOY.replace("n=29", "n=31"), "not the order"),
        (TOY.replace("n=29", "n=-29"), "must be prime"),
    ],
)
def test_each_fault_is_refused(text, message):
    with pytest.raises(ValueError, match=message) as caught:
        parse_curve(text)
    assert "\n" not in str(caught.value)
