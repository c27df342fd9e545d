# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Exploring: what is drawn, how it is judged, what is found in planted designs, and a fixed part of the space."""

import json
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import planted_designs
import pytest

from marks import long
from modmill.buses.front import whole
from modmill.contract import UnsupportedError
from modmill.cores.multiplier.verify import SHORT
from modmill.design import Setting
from modmill.designs import DESIGNS, design
from modmill.flow import four_state
from modmill.report import rows
from modmill.studies.explore import Failure, Found, explore, summed
from modmill.studies.exploring import moduli, trial
from modmill.studies.exploring.shrink import shrink, smaller_moduli
from modmill.studies.exploring.space import AHEAD, OFTEN, Case, Space, classes, label, value_of
from modmill.studies.exploring.trial import Limits, Outcome, Trial, attempt, message_fault
from modmill.studies.exploring.workers import Died, Overtime, Worker, kill, spent, tree
from processes import alive

PLANTED = "planted_designs:DESIGNS"
QUICK = Trial(effort=replace(SHORT, randoms=60), four_state=0)


def untold(stage, limit):
    """Nobody hears of stages."""


# ---- what is drawn


@pytest.mark.parametrize("size", moduli.SIZES)
@pytest.mark.parametrize("shape", moduli.SHAPES)
def test_moduli_are_odd_and_of_their_size(size, shape):
    rnd, (least, most) = random.Random(1), moduli.SIZES[size]
    for _ in range(20):
        p = moduli.draw(rnd, size, shape, words=[20, 35])
        assert p >= 3
        assert p % 2 == 1
        assert p.bit_length() <= moduli.LARGEST
        if shape != "named":
            assert least <= p.bit_length() <= most + 4
        assert design("multistep").fit(p).p == p


def test_moduli_next_to_the_words_of_a_design_are_drawn():
    rnd = random.Random(1)
    drawn = {moduli.draw(rnd, "word", "dense", [23]).bit_length() for _ in range(300)}
    assert drawn >= {22, 23, 24, 45, 46, 47, 15, 16, 17, 31, 32, 33, 63, 64, 65}


@pytest.mark.parametrize("p", [3, 97, 2**61 - 1, 2**89 + 1, 2**255 - 19, 0x1234567890ABCDEF1])
def test_a_modulus_is_written_as_the_command_reads_it(p):
    from modmill.numbers.moduli import parse_modulus

    assert parse_modulus(moduli.text(p)).value == p


def test_values_belong_to_the_class_that_was_asked_for():
    rnd = random.Random(1)
    settings = [
        Setting("w", int, 16, "", least=1, most=64), Setting("n", int, 0, "", least=0, most=40),
        Setting("d", str, "x", "", ("x", "y")), Setting("e", bool, True, ""),
        Setting("t", int, 3, "", least=1, most=100, limits=lambda p, values: (1, p.bit_length())),
    ]  # fmt: skip
    values = {s.name: s.default for s in settings}
    for s in settings:
        for wanted in classes(s):
            for _ in range(20):
                value = value_of(rnd, s, wanted, 1023, values)
                assert wanted in label(s, value, 1023, values), (s.name, wanted, value)
    assert classes(settings[0]) == ["default", "below", "least", "between", "most", "beyond"]
    assert label(settings[4], 10, 1023, values) == {"most"}
    assert label(settings[4], 11, 1023, values) == {"beyond"}
    assert value_of(rnd, settings[4], "between", 3, values) == 3, "2 bits leave nothing between"


def test_limits_see_only_values_that_build_would_use():
    """The search of sq-rns for bases has no end for n = -1, which `build` refuses before it."""
    seen = []

    def limits(p, values):
        seen.append(values["n"])
        return 1, p.bit_length()

    n = Setting("n", int, 0, "", least=0, most=40)
    made = replace(design("sq-rns"), settings=(n, Setting("t", int, 3, "", least=1, limits=limits)))
    _, cases = drawn(1, 100, lambda _: "refused", [made])
    drawn_n = {dict(case.settings).get("n", 0) for case in cases}
    assert min(drawn_n) < 0 and max(drawn_n) > 40
    assert seen and all(0 <= value <= 40 for value in seen)


def drawn(seed, count, outcome, designs=DESIGNS):
    space, cases = Space(designs, seed), []
    for _ in range(count):
        cases.append(space.draw())
        space.learn(cases[-1], outcome(cases[-1]))
    return space, [one.case for one in cases]


def test_the_same_seed_draws_the_same_cases():
    some = [design(name) for name in ("multistep", "orup", "solinas")]
    first, again, other = (drawn(seed, 40, lambda _: "checked", some)[1] for seed in (5, 5, 6))
    assert first == again
    assert first != other
    assert {case.design for case in first} == {"multistep", "orup", "solinas"}


def test_every_class_comes_up_often_enough_and_what_never_does_is_named():
    def outcome(one):
        outside = {"below", "beyond", "huge"} & {wanted for _, wanted in one.covers}
        return "refused" if outside or ("stages", "3") in one.covers else "checked"

    space, cases = drawn(1, 120, outcome, [design("iddmm")])
    assert space.below() == {"iddmm stages: 3": 0}
    assert len({case.p for case in cases}) > 60
    assert Space([design("iddmm")], 1).below()["iddmm"] == 0, "nothing was built yet"


def test_a_design_with_classes_to_be_tried_comes_earlier():
    """One class of iddmm never comes up; wide soon has all of its own."""

    def outcome(one):
        outside = {"below", "beyond", "huge"} & {wanted for _, wanted in one.covers}
        return "refused" if outside or ("stages", "3") in one.covers else "checked"

    space, _ = drawn(1, 4 * AHEAD, outcome, [design("iddmm"), design("wide")])
    assert set(space.below()) == {"iddmm stages: 3"}
    tries = {name: c.drawn - 0.8 * c.outcomes["refused"] for name, c in space.counts.items()}
    assert AHEAD - 2 <= tries["iddmm"] - tries["wide"] <= AHEAD + 2


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_a_class_that_is_seldom_built_is_tried_with_what_was_built_with_it(seed):
    """One class of iddmm is built in one form and at one size only: by chance that is one case in twelve."""

    def outcome(one):
        outside = {"below", "beyond", "huge"} & {wanted for _, wanted in one.covers}
        rare = ("stages", "3") in one.covers and not {("io", "native"), ("size", "tiny")} <= one.covers
        return "refused" if outside or rare else "checked"

    assert drawn(seed, 90, outcome, [design("iddmm")])[0].below() == {}


# ---- what a refusal must say


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("w takes 12 to 34, not 35", None),
        ("this design has no plain form", None),
        ("no subtract here", None),
        ("a line\nand another 5", "several lines"),
        ("5" * 401, "401 characters"),
        ("it does not suit", "no number and no choice"),
    ],
)
def test_refusals_that_do_not_help_are_faults(text, fault):
    found = message_fault(text, Case("multistep", 97, "native", (("subtract", False),)))
    assert found is None if fault is None else fault in found


# ---- planted designs, in this process


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("right", "checked", ""),
        ("ghost", "failed", "without an operand"),
        ("crash", "crash", "TypeError in planted_designs.py"),
        ("wordy", "message", "several lines"),
    ],
)
def test_outcome_of_a_planted_design(name, kind, text):
    outcome = attempt(untold, replace(QUICK, designs=PLANTED), Case(name, 97, "native"))
    assert (outcome.kind, text in outcome.text) == (kind, True), outcome
    assert outcome.wrong == (kind != "checked")


def test_a_form_that_is_not_there_is_refused():
    outcome = attempt(untold, Trial(PLANTED), Case("right", 97, "montgomery"))
    assert outcome.kind == "refused"
    assert "take --io native" in outcome.text


def test_further_moduli_are_loaded():
    case = Case("multistep", 0x8D, "native", (("loadable", True), ("s", 4)))
    stages = []
    outcome = attempt(lambda *stage: stages.append(stage), QUICK, case)
    assert outcome.kind == "checked", outcome
    named = ["to choose its parameters", "to write its Verilog", "to simulate it"]
    assert [name for name, _ in stages] == named + ["to simulate it in four states"] * outcome.four_state
    from modmill.studies.exploring.trial import further_moduli

    further = further_moduli(design("multistep").fit(0x8D, loadable=True), 1)
    assert len(further) == 3
    assert {f.p.bit_length() for f in further[:2]} == {8}
    assert further_moduli(design("multistep").fit(0x8D), 1) == []


# ---- shrinking


def test_a_case_shrinks_to_the_least_that_fails():
    case = Case("iddmm", 2**255 - 19, "native", (("digit", 21), ("stages", 3), ("dsp", "25x18"), ("subtract", False)))
    tried = []

    def fails(one):
        tried.append(one)
        return one.p.bit_length() > 20 and dict(one.settings).get("stages") == 3

    found = shrink(case, design("iddmm"), fails, seconds=30)
    assert found.settings == (("stages", 3),)
    assert found.p == min(p for p in smaller_moduli(2**255 - 19) if p.bit_length() > 20)
    assert len(tried) == len(set(tried)), "no case is tried twice"


def test_a_case_that_nothing_smaller_shares_stays():
    case = Case("iddmm", 97, "native", (("digit", 21),))
    assert shrink(case, design("iddmm"), lambda one: False, seconds=30) == case
    start = time.monotonic()
    assert shrink(case, design("iddmm"), lambda one: time.sleep(0.3) or True, seconds=1) != case
    assert time.monotonic() - start < 5


# ---- workers


def test_a_worker_answers_and_ends_with_what_it_started(tmp_path):
    worker = Worker(tmp_path)
    assert worker.call(planted_designs.nap, 0.1) == 0.1
    assert len(tree(worker._process.pid)) == 1
    with pytest.raises(RuntimeError, match="ValueError"):
        worker.call(planted_designs.nap, -1)
    with pytest.raises(Died, match="status 3"):
        worker.call(planted_designs.leave)
    worker.close()
    with pytest.raises(Died, match="closed"):
        worker.call(planted_designs.nap, 0)


def test_a_process_ends_with_all_below_it_and_their_time_counts():
    """A process in a session of its own, which starts another of that kind, which works."""
    below = "subprocess.Popen([sys.executable, '-c', 'while True: pass'], start_new_session=True).wait()"
    process = subprocess.Popen([sys.executable, "-c", f"import subprocess, sys; {below}"], start_new_session=True)
    end = time.monotonic() + 60
    while len(found := tree(process.pid)) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    own = found[0].cpu_times()
    while spent(process.pid) < own.user + own.system + 0.2 and time.monotonic() < end:
        time.sleep(0.05)
    kill(process.pid)
    assert process.wait(10) == -signal.SIGKILL
    while alive(found[1]) and time.monotonic() < end:
        time.sleep(0.05)
    assert time.monotonic() < end
    assert tree(process.pid) == [] and spent(process.pid) == 0


def test_solves_that_never_end_are_stopped(tmp_path):
    worker = Worker(tmp_path)
    trial = Trial(PLANTED, limits=Limits(fit=0.6))
    for name in ("endless", "busy"):
        with pytest.raises(Overtime, match=r"to choose its parameters did not end within 0\.6 s"):
            worker.call(attempt, trial, Case(name, 97, "native"))
    worker.close()


# ---- whole runs


def test_a_run_finds_and_shrinks_a_carry_lost_at_half_the_modulus(tmp_path):
    record = tmp_path / "rows.jsonl"
    found = explore(
        100, 39, ["lost-carry"], most=2, workers=1, trial=replace(QUICK, designs=PLANTED), shrink_seconds=60,
        record=record,
    )  # fmt: skip
    assert found.failures
    failure = found.failures[0]
    assert failure.smaller.settings == ()
    assert 9 <= failure.smaller.p <= 15
    assert failure.command.startswith(f"modmill build lost-carry -m {failure.smaller.p} --io native --no-check ")
    (row,) = rows.read(record)
    assert (row.kind, row.seed, row.about["study"]) == ("check", 39, "explore")
    assert row.values["cores"] == sum(row.values[k] for k in ("built", "refused")) == found.cores
    assert row.values["failed"] == len(found.failures)
    assert row.values["least"] < OFTEN
    assert json.loads(json.dumps(found.describe()))["failures"][0]["command"] == failure.command


def test_a_run_reports_crashes_and_what_takes_too_long(caplog):
    caplog.set_level("INFO", "modmill.studies.explore")
    trial = Trial(PLANTED, limits=Limits(fit=0.5))
    found = explore(60, 1, ["crash", "endless"], most=6, workers=1, trial=trial, shrink_seconds=1)
    assert {f.outcome.kind for f in found.failures} == {"crash", "slow"}
    assert all(f.command.startswith("modmill build ") and "check" not in f.command.split() for f in found.failures)
    ends = [f"{f.outcome.kind}: {f.command}: {f.outcome.text}" for f in found.failures]
    assert [message for message in caplog.messages if ", to be shrunk: " not in message] == ends
    assert len(caplog.messages) == 2 * len(ends)
    assert found.line.startswith(f"{found.cores} cores: ")


def test_a_crash_shrinks_to_the_smallest_modulus():
    trial = replace(QUICK, designs=PLANTED)
    found = explore(60, 2, ["crash"], most=4, workers=1, trial=trial, shrink_seconds=90)
    smallest = min(found.failures, key=lambda failure: failure.smaller.p)
    assert smallest.smaller.settings == ()
    assert 41 <= smallest.smaller.p <= 63
    assert smallest.case.p > 63


def test_an_error_in_one_thread_ends_the_run(monkeypatch):
    def broken(*arguments):
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("modmill.studies.explore.shrink", broken)
    trial = replace(QUICK, designs=PLANTED)
    with pytest.raises(ZeroDivisionError, match="planted"):
        explore(60, 2, ["crash"], workers=2, trial=trial, shrink_seconds=90)


def test_an_unknown_design_is_refused():
    with pytest.raises(UnsupportedError, match="no design is called 'sor-9'"):
        explore(1, 1, ["sor-9"])


def test_numbers_of_a_run():
    assert summed({"checked": 3, "failed": 1, "built": 2, "refused": 4, "slow": 1}) == {
        "built": 6, "refused": 4, "checked": 4, "failed": 2,
    }  # fmt: skip
    found = Found(7, seconds=61.4)
    found.outcomes.update({"checked": 3, "refused": 1})
    assert found.line.startswith("4 cores: 3 built, 1 refused, 3 checked, 0 failed in 61 s (seed 7, ")
    case = Case("right", 97, "native", (("s", 4),))
    failure = Failure(case, Outcome("failed", "x"), case)
    assert failure.command == (
        "modmill build right -m 97 --io native --set s=4 --no-check -o explored && modmill check explored"
    )


# ---- a fixed part of the space

SMALL, WIDER = (
    40,
    {
        "pseudo-mersenne": 64,
        "karatsuba": 119,
        "karatsuba-two-level": 80,
        "karatsuba-two-level-solinas": 80,
        "karatsuba-solinas": 119,
        "karatsuba-montgomery": 64,
    },
)
"""Bits of the moduli of the fixed part at most: larger ones compile for long. These designs serve none below 50
to 69 bits."""
CORES = 1
"""Cores of each design in the suite; the long tests have two."""

COSTLY, ROWERS = 10_000, 16
"""Predicted size times latency, or size of a core with one operand; above them only `modmill explore` tries a core."""


def costly(case):
    try:
        fitted = design(case.design).fit(case.p, **dict(case.settings))
    except UnsupportedError:
        return False
    if design(case.design).operands == 1:
        return fitted.size > ROWERS
    return fitted.size * fitted.contract(case.io).timing.latency > COSTLY if case.io == "native" else fitted.size > 100


SLOWEST = ("sor-1m-n", "hbe-reduction", "kbe-extension", "dq-rns", "shenoy-kumaresan")
"""Designs whose cores take longest here; others of their families are shorter."""


@pytest.mark.parametrize("cores", [CORES, long(2)])
@pytest.mark.parametrize("name", [long(d.name) if d.name in SLOWEST else d.name for d in DESIGNS])
def test_a_fixed_part_of_the_space(name, cores):
    space, checked = Space([design(name)], 20), 0
    for _ in range(200):
        one = space.draw()
        if one.case.p.bit_length() > WIDER.get(name, SMALL) or costly(one.case):
            continue
        outcome = attempt(untold, QUICK, one.case)
        assert not outcome.wrong, (outcome, one.case.command)
        space.learn(one, outcome.kind)
        checked += outcome.kind == "checked"
        if checked == cores:
            return
    pytest.fail(f"only {checked} cores of {name} were checked")


def test_planted_designs_are_where_trials_look():
    assert {d.name for d in planted_designs.DESIGNS} >= {"lost-carry", "ghost", "endless", "busy", "crash", "wordy"}


def test_a_worker_that_is_closed_while_its_process_starts_ends_too(tmp_path, monkeypatch):
    worker = Worker(tmp_path)
    started = worker._started

    def close_before_it_is_there():
        pipe = started()
        process, worker._process = worker._process, None
        worker.close()
        worker._process = process
        return pipe

    monkeypatch.setattr(worker, "_started", close_before_it_is_there)
    start = time.monotonic()
    with pytest.raises(Died):
        worker.call(attempt, Trial(PLANTED, limits=Limits(fit=60)), Case("endless", 97, "native"))
    assert time.monotonic() - start < 30


@pytest.mark.skipif(not four_state.available(), reason="needs Icarus")
def test_two_states_get_the_reset_of_the_contract_too():
    """A core that needs three cycles of reset after power-up: both simulations it is compared in get them."""
    case = Case("hbe", 3, "montgomery", (("n", 6),))
    outcome = attempt(untold, Trial(effort=QUICK.effort, four_state=10**6), case)
    assert (outcome.kind, outcome.text, outcome.four_state) == ("checked", "", True)


def test_a_core_is_tried_behind_its_bus(monkeypatch):
    """Planted: behind the bus, and only there, the core gives another result."""
    case = Case("channel-reduce", 5, "plain", (), "apb")
    assert case.command.endswith("--bus apb")
    assert attempt(untold, QUICK, case).kind == "checked"

    def wrong(device, bus, verilog):
        assert verilog.count(".r_data(o_r)") == 1
        return whole(device, bus, verilog.replace(".r_data(o_r)", ".r_data(o_r[2:1])"))

    monkeypatch.setattr(trial, "whole", wrong)
    outcome = attempt(untold, QUICK, case)
    assert outcome.kind == "failed", outcome
    assert attempt(untold, QUICK, replace(case, bus="")).kind == "checked"
