# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The digit-digit multiplier: all operands of small moduli, the cited cycles, its two multipliers never taken twice."""

import pytest
from bench import judge_all

from modmill.contract import UnsupportedError
from modmill.designs import design
from modmill.designs.iddmm import Kind
from modmill.schedule import Schedule, ScheduleError


def fit(p, **settings):
    return design("iddmm").fit(p, **settings)


@pytest.mark.parametrize(
    ("p", "digit", "stages", "subtract"),
    [(3, 2, 1, True), (5, 2, 1, True), (7, 2, 2, False), (9, 3, 3, True), (13, 2, 1, True), (15, 4, 1, False)],
)
def test_all_operands_in_the_machine(p, digit, stages, subtract):
    judge_all(fit(p, digit=digit, stages=stages, subtract=subtract), step=1 if subtract else 5)


def test_a_machine_with_the_digits_of_another_modulus_is_found(monkeypatch):
    fitted, other = fit(5, digit=2), fit(7, digit=2).component()
    monkeypatch.setattr(type(fitted), "component", lambda self: other)
    with pytest.raises(AssertionError):
        judge_all(fitted)


@pytest.mark.parametrize(("digit", "printed", "dsp"), [(32, 79, 8), (64, 23, 32)])
def test_printed_cycles(digit, printed, dsp):
    fitted = fit((1 << 256) - 189, digit=digit)
    q = fitted.params
    assert q.cycles == printed == q.n**2 + 2 * q.n - 1
    steps = fitted.schedule
    assert steps[Kind.QM(q.n - 1, q.n - 1).name].end - steps[Kind.QUOTIENT(0).name].start == printed
    assert fitted.cost.dsp == dsp


def test_one_cycle_less_for_a_digit_would_take_a_multiplier_twice():
    schedule = fit((1 << 256) - 189).schedule
    with pytest.raises(ScheduleError, match="taken twice"):
        Schedule(schedule.steps, schedule.interval - 1)


def test_refusals():
    with pytest.raises(UnsupportedError, match="digit takes a whole number from 2 to 256, not 1"):
        fit(97, digit=1)
    with pytest.raises(UnsupportedError, match="stages takes one of 1, 2, 3"):
        fit(97, stages=4)
