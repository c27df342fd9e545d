# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What a line of the race says follows from its rows, and says what the numbers are worth."""

import pytest

from modmill.report.race_results import RaceResult, footnotes, table
from modmill.report.rows import Row


def row(kind, seed=None, **values):
    return Row(kind, "sha256:1", "tool", "ecp5-85k", seed, values)


CHECK = row("check", vectors=500), "measured"
SYNTH = row("synth", dsp=10, lut=100, ff=50, bram=0, logic_delay_ns=4.0), "measured"


def made(**parts):
    return RaceResult("sor", latency=20, interval=10, predicted_dsp=12, **parts)


def shown(results):
    from rich.console import Console

    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(table(results, "title"))
    return console.export_text()


def test_routed_clock_is_the_median():
    routes = [(row("route", seed, mhz=mhz, cap_mhz=175.0), "measured") for seed, mhz in ((1, 90), (2, 110), (3, 100))]
    s = made(check=CHECK, synth=SYNTH, routes=routes)
    assert (s.mhz, s.clock, s.numbers) == (100, "routed", "measured")
    assert s.microseconds == pytest.approx(0.2)
    assert s.per_second == pytest.approx(1e7)
    assert s.per_second_per("dsp") == pytest.approx(1e6)
    assert s.per_second_per("lut") == pytest.approx(1e5)
    assert "median of seeds 1, 2, 3; capped at the blocks' limit of 175 MHz" in footnotes([s])[0]
    assert "100.0" in shown([s]) and "~" not in shown([s])


def test_logic_clock_is_labelled():
    s = made(check=CHECK, synth=SYNTH)
    assert (s.mhz, s.clock) == (250, "logic only")
    assert "250.0 ~" in shown([s])
    assert footnotes([s]) == ["~ no clock but an upper limit: delay of the logic by Yosys' sta, without routing"]


def test_no_clock():
    s = made(check=CHECK, synth=(row("synth", dsp=1, lut=2, ff=3, bram=0, logic_delay_ns=None), "recorded"))
    assert s.mhz is None and s.per_second is None and s.numbers == "measured + recorded"
    assert footnotes([s])[0].startswith("no clock: this target has none without place and route")


def test_predictions_are_marked():
    s = made(state="does not fit", note="does not fit: needs 12 DSP of 10")
    assert s.numbers == "predicted" and s.value("dsp") == 12 and s.value("lut") is None
    assert "12 *" in shown([s]) and "does not fit: needs 12 DSP of 10" in shown([s])
    assert s.describe()["numbers"] == "predicted"


def test_designs_that_do_not_apply_stand_below_the_table():
    s = RaceResult("other", "does not apply", "the modulus is too long")
    assert "other" not in shown([s])
    assert "other does not apply: the modulus is too long" in footnotes([s])


def test_failed_check_is_shown():
    assert "FAILED: wrong" in shown([made(state="failed", note="wrong")])
