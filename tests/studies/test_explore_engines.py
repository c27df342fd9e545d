# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Random engines are right or refused; a planted fault is found; what the exploration found stays found."""

import random

import pytest

from modmill.contract import UnsupportedError
from modmill.cores.rsa.machine import engine
from modmill.engines.machine.layout import MicrocodeLayout
from modmill.numbers.curves.affine import Curve
from modmill.studies.explore_engines import FORMS, EngineCase, attempt_engine, draw, random_curve

SMALL = EngineCase("rsa", "multistep", (("width", 17), ("bits", 5), ("threads", 2), ("word", 32), ("window", 2)))


def tried(case):
    return attempt_engine(lambda stage, limit: None, case)


def test_random_engines_are_right_or_refused():
    rnd, kinds = random.Random(7), []
    while kinds.count("checked") < 2:
        outcome = tried(draw(rnd, True))
        assert not outcome.wrong, (outcome.case.line, outcome.text)
        kinds.append(outcome.kind)


def test_a_wrong_constant_is_found(monkeypatch):
    """The number 1 that leads out of the multiplier's domain is 3 in the message that sets a modulus."""
    plain = MicrocodeLayout.number
    monkeypatch.setattr(MicrocodeLayout, "number", lambda layout, x: plain(layout, 3 if x == 1 else x))
    outcome = tried(SMALL)
    assert outcome.wrong and outcome.kind == "failed" and "is wrong" in outcome.text


def test_what_is_no_refusal_is_a_crash(monkeypatch):
    monkeypatch.setattr(MicrocodeLayout, "setup", lambda *_: 1 // 0)
    outcome = tried(SMALL)
    assert outcome.kind == "crash" and outcome.text.startswith("ZeroDivisionError in test_explore_engines.py:")
    monkeypatch.setattr(MicrocodeLayout, "__post_init__", lambda _: (_ for _ in ()).throw(UnsupportedError("a\nb")))
    assert tried(SMALL).kind == "message"


def test_numbers_of_one_word_come_when_they_were_predicted():
    """65537 needs no digits: the last base waited for the one before it, which the prediction did not know."""
    for threads in (1, 2, 3):
        core = engine("multistep", width=14, bits=10, method="ladder", threads=threads)
        assert core.layout.number_words == 1
        found = core.simulate(core.fitted, 1, [(5, 65537)] * threads)
        assert found.cycles == [core.cycles(1)]


def test_an_engine_for_any_modulus_of_a_length_whose_largest_prime_is_a_mersenne_number():
    """It is made for 2^17 - 1, for which R = 1: that says nothing of the moduli that are loaded."""
    core = engine("multistep", width=17, bits=5, threads=1)
    assert core.fitted.p == 2**17 - 1 and core.contract.factor % core.fitted.p == 1
    assert "square" in core.layout.numbers_of_modulus


def test_a_multiplier_with_a_rhythm_of_its_own_behind_conversions_is_refused():
    """Its operands were lost: it takes them in one cycle of 19, which the engine took for any cycle."""
    core = engine("kbe", p=622259933793501085, io="montgomery", threads=1)
    with pytest.raises(
        UnsupportedError, match="accepts operands only in one cycle of 19, which a unit that offers them"
    ):
        _ = core.layout


@pytest.mark.parametrize(("form", "a"), FORMS, ids=lambda x: getattr(x, "__name__", x))
def test_random_curves_are_usable_and_their_points_counted(form, a):
    curve = random_curve(random.Random(7), form, a, 10)
    assert isinstance(curve, Curve) and curve.bits in (10, 11)
    curve.validate()
    points = sum(curve._holds(x, y) for x in range(curve.p) for y in range(curve.p)) + (curve.zero is None)
    assert points == curve.n * curve.h


def test_every_kind_of_choice_is_drawn():
    rnd = random.Random(2)
    cases = [draw(rnd) for _ in range(400)]
    for name, least in (
        ("method", 2),
        ("threads", 6),
        ("word", 9),
        ("io", 3),
        ("sums", 6),
        ("order", 2),
        ("bus", 5),
        ("lockstep", 1),
        ("check_result", 1),
        ("fixed_addresses", 1),
        ("random_blind", 6),
        ("random_entropy", 9),
    ):
        assert len({dict(case.arguments).get(name) for case in cases} - {None}) >= least, name
    assert len({case.design for case in cases}) > 20 and {type(case.curve).__name__ for case in cases} >= {
        "Weierstrass", "Montgomery", "Edwards"
    }  # fmt: skip
    names = (("ecc" if case.curve else "circuit_engine" if case.circuit else "engine") for case in cases)
    assert all(case.line.startswith(f"{name}(") for case, name in zip(cases, names, strict=True))
    shapes = [dict(case.arguments)["shape"] for case in cases if case.curve]
    assert {shape.endomorphism for shape in shapes} == {shape.joint for shape in shapes} == {False, True}
    checked = [case for case in cases if dict(case.arguments).get("check_result")]
    assert {case.curve is None for case in checked} == {False, True} and {
        dict(case.arguments).get("public_exponent", 65537) for case in checked
    } > {65537}
    assert {case.curve is None for case in cases if dict(case.arguments).get("parity")} == {False, True}
    circuits = [case for case in cases if case.circuit]
    assert len({dict(case.arguments)["word"] for case in circuits}) > 3 and len({case.design for case in circuits}) == 3
