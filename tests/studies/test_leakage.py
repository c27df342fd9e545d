# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""t-tests of toggle traces: Welch's t against its definition, and planted leaks in a circuit of shares."""

import random
from dataclasses import replace
from math import inf, sqrt
from statistics import fmean, pvariance, variance

import pytest
import shares
from typer.testing import CliRunner

from modmill.cli.commands import app
from modmill.contract import UnsupportedError
from modmill.cores.multiplier.build import build
from modmill.cores.rsa import machine as rsa
from modmill.flow import tools
from modmill.report.attack_tables import LEAK_LIMIT, compared, leakage_table
from modmill.studies.attack import leakage
from modmill.studies.attack.keys import Case, Subject, read
from modmill.studies.attack.traces import Bench, Stream, Traced
from modmill.studies.attack.welch import Group, leaks, limit, welch
from modmill.studies.mutate import ENGINES

KEY = 0xFFFB
ENDS = 7
"""Cycle in which the circuit clears its shares."""
SEND, TAKE = Stream("i", {"i_data": shares.BITS}), Stream("o", {"o_data": shares.BITS})
BENCH = Bench(shares.TEXT, shares.TOP, SEND, TAKE, SEND, [], 2, 50)


def subject(mode):
    """The circuit in a mode. The first key drawn is `KEY`, which is that of the fixed runs."""
    first = [KEY]

    def draw(key, rnd):
        a = rnd.randrange(1 << shares.BITS)
        turned = key << 1 & 0xFFFF | key >> shares.BITS - 1
        return Case([(mode,), (a,), (a ^ key,)], lambda answer: answer[0][0] ^ answer[1][0] == turned)

    def key(rnd):
        return first.pop() if first else rnd.randrange(1 << shares.BITS)

    return Subject(BENCH, key, draw, f"mode {mode}", "sha256:0", {})


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The sums that are kept are those of one test; the compiled circuit is kept for all."""
    monkeypatch.setattr(leakage.tools, "cache_dir", lambda kept=tools.cache_dir: tmp_path)


@pytest.fixture(scope="module")
def traced():
    return Traced(BENCH, [(shares.SAFE,), (0,), (0,)])


@pytest.fixture(autouse=True)
def compiled(monkeypatch, traced):
    """The circuit is compiled once; each test has its own first run."""
    made = {False: traced}

    def again(bench, first, *, nets=False):
        assert not nets
        found = made[nets]
        found.first = list(first)
        return found

    monkeypatch.setattr(leakage, "Traced", again)


def group(values, constant=0):
    return Group.of([x - constant for x in values])


def test_t_is_that_of_its_definition():
    rnd = random.Random(1)
    a, b = ([rnd.randrange(90, 90 + spread) for _ in range(count)] for spread, count in ((30, 61), (33, 40)))
    t = (fmean(a) - fmean(b)) / sqrt(variance(a) / len(a) + variance(b) / len(b))
    found = welch(group(a, 100), group(b, 100))
    assert found == pytest.approx(t, rel=1e-12)
    squares = [[(x - fmean(values)) ** 2 for x in values] for values in (a, b)]
    t = (fmean(squares[0]) - fmean(squares[1])) / sqrt(sum(pvariance(y) / len(y) for y in squares))
    assert welch(group(a, 100), group(b, 100), 2) == pytest.approx(t, rel=1e-9)
    half = len(a) // 2
    assert group(a[:half], 100) + group(a[half:], 100) == group(a, 100)
    same, other = group([5] * 9), group([6] * 9)
    assert (welch(same, same), welch(same, other), welch(other, same)) == (0, -inf, inf)


def test_a_leak_is_in_both_halves_or_far_above_the_limit():
    whole, halves = [0.0, 6.0, 6.0, 6.0, 9.0], ([0.0, 5.0, 5.0, 5.0, 0.0], [5.0, 5.0, -5.0, 4.4, 5.0])
    assert leaks(whole, halves, 8) == [1, 4]
    assert limit(1) == pytest.approx(4.417, abs=1e-3)  # two-sided quantile of 1e-5, from tables of the normal curve
    assert LEAK_LIMIT < limit(100) < limit(10_000)


def test_every_bit_that_changes_is_counted(traced):
    sums = traced.sums(2)
    with traced.runner() as runner:
        for number, a in enumerate((0, 0xFFFF)):
            answers, late = runner.run([[(shares.SAFE,), (a,), (0x0F00,)]], [number], sums)
            assert late == [False]
            assert [x for (x,) in answers[0]] == [a, 0x1E00]
    first, second = ([x for x, *_ in sums.of(k, traced.classes.index("registers"))] for k in range(2))
    assert [y - x for x, y in zip(first, second, strict=True) if y != x] == [16, 16, 16]
    assert [k for k, (x, y) in enumerate(zip(first, second, strict=True)) if y != x] == [1, 3, ENDS]
    assert {x for k in range(2) for x in sums.of(k, traced.classes.index("memories"))} == {(0, 0, 0, 0)}
    bits = {kind: sum(p.bits for p in traced.places if traced.kind(p) == 1 + kind) for kind in range(2)}
    assert bits == {0: 3 + 3 + 4 * 16 + 1, 1: 4 * 16}


def test_a_circuit_of_shares_shows_its_key_only_in_the_second_order():
    report = leakage.run(subject(shares.SAFE), 2000, order=1)
    assert not report.leaks
    assert all(curve.largest < LEAK_LIMIT for curve in report.curves if curve.order == 1)
    assert {k for curve in report.curves if curve.order == 2 for k in curve.leaks} == {ENDS}
    assert replace(report, order=2).leaks


@pytest.mark.parametrize(
    ("mode", "kind", "cycles", "places"),
    [
        ("SHARED", "registers", [ENDS], {"a"}), ("SWAP", "registers", [5, ENDS + 1], {"x", "y", "turned"}),
        ("WRITE", "memories", [5], {"kept"}),
    ],
)  # fmt: skip
def test_planted_leaks_are_found_where_they_are(mode, kind, cycles, places):
    report = leakage.run(subject(getattr(shares, mode)), 600)
    assert report.leaks
    (found,) = (curve for curve in report.curves if (curve.kind, curve.order) == (kind, 1))
    assert found.leaks == cycles
    assert found.largest > 10
    where = f"in cycle {found.peak:>7}, leak in {len(cycles)} cycles, {cycles[0]} to {cycles[-1]}"
    assert f"largest |t| {found.largest:8.2f} {where}" in "\n".join(report.lines)
    assert {name for name, _ in report.where} == places
    control = leakage.run(subject(getattr(shares, mode)), 600, control=True, order=1)
    assert not control.leaks
    assert compared(control.about) == "random keys against random keys"
    assert compared(report.about) == "one key against random keys"
    later = leakage.run(subject(getattr(shares, mode)), 600, begin=cycles[-1] + 1)
    assert compared(later.about) == f"one key against random keys, from cycle {cycles[-1] + 1} on"
    assert not replace(later, order=1).leaks


def test_a_time_that_depends_on_the_key_is_a_leak():
    report = leakage.run(subject(shares.WAIT), 200)
    assert report.leaks
    assert 20 < len(report.late) < 80
    assert f"{len(report.late)} runs took another number of cycles" in "\n".join(report.lines)


def test_a_test_goes_on_from_what_is_kept(monkeypatch):
    def test(count, **more):
        return leakage.run(subject(shares.SAFE), count, order=1, **more)

    whole = test(600, jobs=1)
    (file,) = (tools.cache_dir() / "leakage").iterdir()
    file.write_text("[600, []]\ntorn")
    ran = []
    monkeypatch.setattr(leakage._Test, "case", lambda *given, of=leakage._Test.case: (ran.append(1), of(*given))[1])
    test(200)
    longer = test(600, jobs=2)
    assert len(ran) == 600
    assert longer.curves == whole.curves
    shorter = test(200)
    assert len(ran) == 800
    assert test(600).curves == whole.curves != shorter.curves
    assert len(ran) == 800
    with pytest.raises(ValueError, match="at least 100, not 99"):
        test(99)


def test_a_wrong_answer_ends_the_test():
    wrong = replace(subject(shares.SAFE), draw=lambda *given: replace(subject(0).draw(*given), right=lambda _: False))
    with pytest.raises(tools.ToolError, match="the answer of run 0 is wrong"):
        leakage.run(wrong, 100)


def test_what_has_no_secret_or_no_room_is_refused(tmp_path):
    (tmp_path / "contract.json").write_text("{}")
    with pytest.raises(UnsupportedError, match=r"--blind-scalar is for coprocessors of curves; .* holds a multiplier"):
        read(tmp_path, blind_scalar=3)


@pytest.mark.long
def test_the_command_on_a_multiplier_and_on_an_engine(tmp_path, monkeypatch):
    """An unprotected multiplier leaks. An engine leaks without blinding, and not with it."""
    monkeypatch.undo()
    core, engine, powers = (tmp_path / name for name in ("core", "engine", "powers"))
    build("wide", 29).write(core)
    ENGINES["ecc"]().write(engine, "x")
    rsa.engine("multistep", width=8, bits=11, threads=1, window=2).write(powers, "x")
    rows, plot = tmp_path / "rows.jsonl", tmp_path / "t.svg"
    for folder, options, leak in (
        (core, ["--nets", "--plot", str(plot)], True),
        (core, ["--control"], False),
        (engine, [], True),
        (engine, ["--control"], False),
        (powers, ["--exponent-bits", "3"], True),
        (powers, ["--exponent-bits", "3", "--blind-exponent", "8"], False),
    ):
        words = ["attack", "leakage", str(folder), "--count", "600", "--record", str(rows), *options]
        found = CliRunner().invoke(app, words)
        assert found.exit_code == int(leak), found.output
        assert ("LEAKS" in found.output) == leak
    assert plot.read_text().startswith("<?xml")
    assert leakage_table(tmp_path).count("\n") == 2 + 6
    with pytest.raises(UnsupportedError, match="which leaves 0 for --blind-scalar, not 8; ecc build --blind BITS"):
        read(engine, blind_scalar=8)
