# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Constant time: a coprocessor takes one number of cycles for all scalars; one that leaves early is caught."""

from dataclasses import replace

import pytest
from amaranth.hdl import Mux, Signal
from small_curves import montgomery, weierstrass
from typer.testing import CliRunner

from modmill.cli import commands, vectors
from modmill.contract import UnsupportedError
from modmill.cores import built
from modmill.cores.ecc.machine import EccCore, ecc
from modmill.engines.machine import sequencer as row_sequencer
from modmill.report.rows import read
from modmill.studies.vectors import ecc_timing as study


def ladder():
    return ecc(montgomery(251), "multistep", threads=2)


def found(core, tmp_path, *operations, **options):
    return list(study.timings(core, operations, 40, store=tmp_path / "rows.jsonl", **options))


def test_one_number_of_cycles_for_all_scalars(tmp_path):
    core, told = ladder(), []
    (timing,) = found(core, tmp_path, record=tmp_path / "record.jsonl", progress=lambda *what: told.append(what))
    assert timing.fault == ""
    assert timing.cycles == (core.cycles("ladder"),) and timing.patterns == 1 and timing.wrong == 0
    assert timing.chosen >= 20 and timing.scalars == 40 and timing.jobs == timing.chosen + (40 - timing.chosen + 1) // 2
    assert timing.line.startswith(f"PASS ladder: {timing.predicted:,} cycles, as predicted; 40 scalars, ")
    (row,) = read(tmp_path / "record.jsonl")
    assert row.values["cycles"] == [timing.predicted] and row.about["timing"] == "ladder"
    assert row.about["engine"] == "multistep"
    assert told[-1][1] < told[-1][2] == 40


SKIPPED = 4


class EarlyExit(row_sequencer.DatapathSequencer):
    """A sequencer that begins behind the first digits where they are zero in all threads. Its results are right."""

    def elaborate(self, platform):
        quiet = Signal(name="quiet")
        passes = [p.passes - 1 for p in self.layout.programs]
        plain = row_sequencer.chosen

        def shortened(code, values):
            whole = plain(code, values)
            its = all(isinstance(value, int) for value in values) and list(values) == passes
            return Mux(quiet, passes[0] - SKIPPED, whole) if its else whole

        row_sequencer.chosen = shortened
        try:
            m = super().elaborate(platform)
        finally:
            row_sequencer.chosen = plain
        with m.If(self.d_write):
            m.d.sync += quiet.eq((quiet | (self.d_address == 0)) & (self.d_data[:SKIPPED] == 0))
        with m.If(self.start & quiet):
            m.d.sync += self._index.eq(SKIPPED)
        return m

    def _progress(self, *given):
        found = super()._progress(*given)
        self._index = found.index
        return found


def test_an_early_exit_is_caught(tmp_path, monkeypatch):
    monkeypatch.setattr(built, "DatapathSequencer", EarlyExit)
    core = ladder()
    program = core.held[0].instructions.program
    assert sum(step.advance for step in program.loop) == 1 and core.layout.stride == 1
    (timing,) = found(core, tmp_path)
    assert timing.wrong == 0, "its results are right, only its time is not"
    least, most = timing.cycles
    assert most == core.cycles("ladder") and least < most
    assert timing.fault == f"{least:,} to {most:,} cycles: the time depends on the scalars or points"
    assert timing.line.startswith("FAIL ladder: ")


def late(found):
    """The last word of the last answer comes a cycle later."""
    run = found.run
    return replace(found, run=replace(run, valid=[*run.valid[:-1], run.valid[-1] + 1]))


def other(found):
    """All answers come a cycle later."""
    return replace(found, cycles=[cycles + 1 for cycles in found.cycles])


def wrong(found):
    """The last result is wrong."""
    return replace(found, results=[*found.results[:-1], tuple(x ^ 1 for x in found.results[-1])])


@pytest.mark.parametrize(("fault", "line"), [
    (late, "the words of a job move at 2 different times"), (other, " were predicted"), (wrong, "1 wrong results"),
])  # fmt: skip
def test_planted_faults_of_what_a_simulation_shows_are_found(monkeypatch, tmp_path, fault, line):
    core, plain = ladder(), EccCore.simulate
    monkeypatch.setattr(EccCore, "simulate", lambda *a, **k: fault(plain(*a, **k)))
    monkeypatch.setattr(study, "_JOBS", 1000)
    (timing,) = found(core, tmp_path)
    assert line in timing.fault


def test_signing_takes_one_number_of_cycles(tmp_path):
    """The base point's multiple and the arithmetic modulo the order, on one core."""
    curve = weierstrass(1009, -3, 900)
    core = ecc(curve, "multistep", {"loadable": True}, operations=("multiply-base",), threads=2, order=True)
    timings = found(core, tmp_path)
    assert [timing.operation for timing in timings] == ["multiply-base", "signature", "quotients"]
    assert [timing.fault for timing in timings] == [""] * 3
    assert [timing.cycles for timing in timings] == [(core.cycles(name),) for name in core.jobs]


def test_chosen_scalars_are_in_range_and_at_the_edges():
    n, bits = 2**64 - 59, 64
    scalars = study.chosen(n, bits)
    assert len(set(scalars)) == len(scalars) and {0, 1, n - 1, n, 2**64 - 1, 2**63, 2**32} <= set(scalars)
    assert all(0 <= k < 1 << bits for k in scalars)


def test_requests_that_it_refuses(tmp_path):
    with pytest.raises(UnsupportedError, match="this core has the operations ladder, not multiply"):
        found(ladder(), tmp_path, "multiply")
    with pytest.raises(UnsupportedError, match="on one machine, not on 2"):
        found(replace(ladder(), cores=2), tmp_path)


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "read_curve", lambda _: montgomery(251))
    record = tmp_path / "record.jsonl"
    command = ["ecc", "timing", "--curve", "small", "--multiplier", "multistep", "--threads", "2", "--scalars", "30"]
    run = CliRunner().invoke(commands.app, [*command, "--record", str(record)], catch_exceptions=False)
    first, second = run.stdout.splitlines()
    assert run.exit_code == 0 and first == "a curve over 8 bits, multistep, 2 runs interleaved"
    assert second.startswith("PASS ladder: ") and len(list(read(record))) == 1
    with pytest.raises(UnsupportedError, match="this core has the operations ladder, not multiply"):
        CliRunner().invoke(commands.app, [*command, "--only", "multiply"], catch_exceptions=False)
    monkeypatch.setattr(built, "DatapathSequencer", EarlyExit)
    run = CliRunner().invoke(commands.app, [*command, "--only", "ladder"], catch_exceptions=False)
    assert run.exit_code == 1 and "FAIL ladder: " in run.stdout
