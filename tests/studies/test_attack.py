# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Campaigns of faults: the draw, what is kept, the report, and engines with and without protection."""

import json
import re
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from modmill.buses.adapters import find_bus
from modmill.buses.files import bus_texts
from modmill.cli.commands import app
from modmill.contract import ALARM, UnsupportedError
from modmill.cores.behind_bus import bus_faults
from modmill.cores.proofs.proof import prove
from modmill.engines.machine.lockstep import LATENCY
from modmill.flow import tools
from modmill.report.attack_tables import OUTCOMES, faults_table
from modmill.report.rows import Row
from modmill.report.rows import read as rows_of
from modmill.studies.attack import campaign
from modmill.studies.attack.draw import SHARES, Draw
from modmill.studies.attack.faults import KINDS
from modmill.studies.attack.operation import read
from modmill.studies.attack.state import Place
from modmill.studies.mutate import ENGINES

PLACES = [Place("a", 1), Place("b", 30, low=2), Place("m", 8, 4, memory=True), Place("n", 1, 3, memory=True)]


def test_a_fault_has_the_same_number_in_every_campaign():
    draw = Draw(PLACES, 100, 7)
    assert [draw[k] for k in range(50)] == [Draw(PLACES, 100, 7)[k] for k in range(50)]
    assert [draw[k] for k in range(50)] != [Draw(PLACES, 100, 8)[k] for k in range(50)]


def test_all_kinds_and_places_are_drawn_in_their_shares():
    faults = [Draw(PLACES, 100, 1)[k] for k in range(4000)]
    kinds, places = Counter(f.kind for f in faults), Counter(f.place for f in faults)
    for kind, share in SHARES.items():
        assert abs(kinds[kind] - 4000 * share / sum(SHARES.values())) < 150
    assert places[0] == places[1] == 1000
    assert abs(places[2] - 2000 * 32 / 35) < 60
    assert {(f.word, f.bit) for f in faults if f.place == 2} == {(word, bit) for word in range(4) for bit in range(8)}
    assert {(f.word, f.bit) for f in faults if f.place == 3} == {(word, 0) for word in range(3)}
    assert {f.cycle for f in faults} == set(range(100))


def test_registers_without_memories_and_memories_without_registers():
    assert {Draw(PLACES[:2], 9, 1)[k].place for k in range(4)} == {0, 1}
    assert {Draw(PLACES[2:], 9, 1)[k].place for k in range(40)} == {0, 1}
    with pytest.raises(ValueError, match="no register and no memory"):
        Draw([], 9, 1)


class _Runner:
    """Releases a wrong word after each flip in register 1, and counts what it runs."""

    ran = 0

    def run(self, faults):
        _Runner.ran += len(faults)
        return [OUTCOMES[-1] if (f.place, f.kind) == (1, "flip") else OUTCOMES[0] for f in faults]

    def close(self):
        pass


@pytest.fixture
def operation(tmp_path, monkeypatch):
    monkeypatch.setattr(tools, "cache_dir", lambda: tmp_path)
    monkeypatch.setattr(_Runner, "ran", 0)
    attacked = SimpleNamespace(places=PLACES, cycles=100, key="k", runner=_Runner)
    engine = SimpleNamespace(digest="sha256:0", top="toy")
    about = {"operation": "nothing"}
    return SimpleNamespace(
        engine=engine, words=[1], what="nothing", attacked=lambda: attacked, about=lambda: about
    )  # fmt: skip


def test_a_campaign_goes_on_from_what_is_kept(operation):
    first = campaign.run(operation, 90, jobs=2)
    assert _Runner.ran == 100
    longer = campaign.run(operation, 210, jobs=3)
    assert _Runner.ran == 220
    assert longer.outcomes[:90] == first.outcomes
    assert len(longer.outcomes) == 210
    assert campaign.run(operation, 210).outcomes == longer.outcomes
    assert _Runner.ran == 220
    assert campaign.run(operation, 210, seed=2).outcomes != longer.outcomes
    assert _Runner.ran == 440
    (file, _) = sorted((tools.cache_dir() / "faults").iterdir(), key=lambda path: path.stat().st_mtime)
    file.write_text(file.read_text()[:-9] + "\n[7, 3]\n")  # a torn line and one of another kind
    assert campaign.run(operation, 210).outcomes == longer.outcomes
    assert _Runner.ran == 440 + campaign.BLOCK
    with pytest.raises(ValueError, match="at least 1, not 0"):
        campaign.run(operation, 0)


def test_the_report_counts_and_names_what_was_released(operation):
    report = campaign.run(operation, 400)
    flips = [f for f, _ in report.outcomes if (f.place, f.kind) == (1, "flip")]
    assert report.released == flips
    assert flips
    values = report.values()
    assert (values["faults"], values["released"], values["no effect"]) == (400, len(flips), 400 - len(flips))
    assert values["registers"] == {"all": 2, "bits": 31, "hit": 2}
    assert values["memories"] == {"all": 2, "bits": 35, "hit": 2}
    assert sum(row["faults"] for row in values["classes"].values()) == 400
    assert values["classes"]["flip, registers"]["released"] == len(flips)
    lines = list(report.lines)
    assert lines[0].startswith("toy: 400 faults in nothing (100 cycles): ")
    assert lines[-2].endswith(f"flip bit {2 + flips[9].bit} of b in cycle {flips[9].cycle}")
    assert lines[-1] == f"  and {len(flips) - 10} more"
    row = report.row()
    assert (row.kind, row.digest, row.seed, row.about["operation"]) == ("faults", "sha256:0", 1, "nothing")
    assert len(report.describe()["outcomes"]) == 400


def test_what_has_no_such_operation_is_refused(tmp_path):
    (tmp_path / "contract.json").write_text("{}")
    found = CliRunner().invoke(app, ["attack", "faults", str(tmp_path)])
    assert isinstance(found.exception, UnsupportedError)
    assert "holds a multiplier; faults are planted in what rsa build and ecc build write" in str(found.exception)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(ENGINES))
def test_engines_with_and_without_protection(tmp_path, name):
    """The same engine alone and in lockstep; the other's options are refused."""
    alone = ENGINES[name]()
    pair = replace(alone, lockstep=True)
    folders = {made.lockstep: made.write(tmp_path / f"{made.lockstep}", "x") for made in (alone, pair)}
    with pytest.raises(UnsupportedError, match=r"--exponent-bits|--operation"):
        read(folders[False], *(("", 3) if name == "ecc" else ("multiply", 0)))
    record = json.loads((folders[True] / f"{pair.STEM}.json").read_text())
    assert record["options"]["lockstep"] is True
    assert ALARM in record["ports"]
    if name == "ecc":
        proof = prove(folders[True])
        assert (proof.timing, list(proof.found)) == ("PROVED", ["ecc_engine"])
    assert pair.trial().latency == alone.trial().latency + LATENCY
    for locked, folder in folders.items():
        rows = tmp_path / f"{locked}.jsonl"
        found = CliRunner().invoke(app, ["attack", "faults", str(folder), "--count", "600", "--record", str(rows)])
        (row,) = rows_of(rows)
        counts = row.values
        assert found.exit_code == int(not locked), found.output
        assert (counts["released"] == 0) == locked
        assert (counts["detected"] > 50) == locked
        assert sum(counts[outcome] for outcome in OUTCOMES) == 600
        assert {key.split(",")[0] for key in counts["classes"]} == set(KINDS)


def test_the_table_shows_every_campaign_with_its_cost(tmp_path):
    about = {"modulus_bits": 64, "bits": 64, "design": "multistep", "operation": "powers"}
    hit = {"all": 9, "bits": 99, "hit": 4}
    values = {"faults": 1000, **dict.fromkeys(OUTCOMES, 250), "registers": hit, "memories": hit, "cycles": 5000}
    cost = {"lut": 1, "ff": 22, "dsp": 333, "bram": 4444}
    rows = [
        Row("faults", "sha256:2", "modmill", "", 1, values, {**about, "lockstep": True, "check_result": True}),
        Row("faults", "sha256:1", "modmill", "", 1, {**values, "released": 1234}, about),
        Row("synth", "sha256:2", "yosys", "ecp5-85k", None, cost, about),
        Row("synth", "sha256:1", "yosys", "xc7v", None, cost, about),
    ]
    (tmp_path / "some.jsonl").write_text("".join(row.line() for row in rows))
    head, _, alone, pair = faults_table(tmp_path).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in (head, alone, pair)]
    found, other = (dict(zip(cells[0], line, strict=True)) for line in cells[1:])
    assert (found["protection"], other["protection"]) == ("none", "`--lockstep`, `--check-result`")
    assert found["**wrong result released**"] == "1,234"
    assert found["registers and memories hit"] == "8 of 18"
    assert {found[name.upper()] for name in cost} == {"not measured"}
    assert [other[name.upper()] for name in cost] == ["1", "22", "333", "4,444"]
    assert faults_table(tmp_path / "none") == ""


@pytest.mark.long
@pytest.mark.parametrize(("bus", "cores"), [("axi4-lite", 1), ("axi-stream", 1), ("apb separate", 2)])
def test_an_engine_in_lockstep_behind_a_bus(bus, cores):
    """The check passes. If the second engine gets other words, that is an alarm, unless the alarm is not wired."""
    bus, _, separate = bus.partition(" ")
    made = replace(ENGINES["ecc"](), lockstep=True, cores=cores, bus=bus, bus_clock="separate" if separate else "same")
    text = bus_texts(made.device, find_bus(bus), made.verilog)["bus.v"]

    def found(text):
        return list(bus_faults(text, made.device, find_bus(bus), list(made.exchanges())))

    assert found(text) == []
    differing = text.replace(".i_data(b_data)", ".i_data(~b_data)")
    assert differing != text
    assert "ALARM" in found(differing)[0]
    deaf, count = re.subn(r"device_alarm <= [^;]*;", "device_alarm <= 0;", differing)
    assert count
    assert "ALARM" not in found(deaf)[0]
