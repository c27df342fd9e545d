# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The front of cores: the same as that of the whole grid, with few cores measured."""

import random
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import inf, log
from pathlib import Path

import pytest
from command import refused

from modmill.designs import design as find_design
from modmill.flow.targets import target as find_target
from modmill.parts import present
from modmill.report.rows import Row, read, shipped_folder
from modmill.studies.search.candidates import Candidate, candidates
from modmill.studies.search.estimate import Estimate
from modmill.studies.search.front import OBJECTIVES, WIDE, Search, beats, front
from modmill.studies.search.knowledge import Figures, Knowledge
from modmill.studies.search.recommend import Budget

ECP5 = find_target("ecp5-25k")
P = (1 << 61) - 1
DESIGNS = [find_design(name) for name in ("mcivor", "multistep", "tenca-koc")]


@dataclass
class Bench:
    """Stands in for the tools: LUTs and MHz follow a rule, with 5 % that no formula knows. ``failing``: no row."""

    failing: tuple = ()
    asked: list = field(default_factory=list)

    def __call__(self, kind, cores):
        self.asked += [(kind, core.key) for core in cores]
        return [row_of(kind, core) for core in cores if core.label not in self.failing]


def row_of(kind, core):
    luck = random.Random(core.label).uniform(0.95, 1.05)
    about = {"design": core.design.name, "modulus": hex(core.fitted.p), "io": "native"}
    about["parameters"] = dict(core.fitted.settings)
    digest = f"sha256:{sha256(repr(core.key).encode()).hexdigest()}"
    lut = round(luck * 25 * (core.fitted.size + 2) * log(core.fitted.p.bit_length()))
    values = (
        {"lut": lut, "dsp": core.dsp, "ff": 1, "bram": 0} if kind == "synth" else {"mhz": luck * 170 - core.fitted.size}
    )
    return Row(kind, digest, "tool", ECP5.name, 1 if kind == "route" else None, values, about)


def start():
    """Rows of cores for other moduli."""
    bench = Bench()
    others = [Candidate.of(d, (1 << 16 * k) - 1, {}) for d in DESIGNS for k in range(2, 7)]
    return [*bench("synth", others), *bench("route", others)]


def grid():
    return [*candidates(P, ECP5, DESIGNS)]


def keys(figures):
    return {f.core.key for f in figures}


def whole(objectives=("area", "throughput"), cores=None):
    cores = cores or grid()
    known = Knowledge(ECP5, [row_of(kind, core) for kind in ("synth", "route") for core in cores])
    return front([known.of(core) for core in cores], objectives)


def test_the_front_is_what_nothing_beats():
    rnd = random.Random(7)
    core = grid()[0]
    several = []
    for _ in range(60):
        lut, mhz = rnd.randint(1, 9), rnd.randint(1, 9)
        several.append(Figures(core, 0, Estimate(lut, lut, lut, ""), Estimate(mhz, mhz - 0.5, mhz + 0.5, "")))
    numbers = [[OBJECTIVES[name](f, "value") for name in ("area", "throughput")] for f in several]
    kept = [f for f, one in zip(several, numbers, strict=True) if not any(beats(other, one) for other in numbers)]
    found = front(several, ("area", "throughput"))
    assert sorted(map(id, kept)) == sorted(map(id, found)) and 0 < len(found) < len(several)
    assert not beats([1, 2], [1, 2]) and not beats([1, 3], [2, 2]) and beats([1, 2], [1, 3])
    f = several[0]
    assert OBJECTIVES["throughput"](f, "good") < OBJECTIVES["throughput"](f, "bad")
    assert OBJECTIVES["latency"](f, "good") < OBJECTIVES["latency"](f, "bad")


def test_the_front_of_the_grid_is_found_with_few_measurements():
    bench, cores = Bench(), grid()
    search = Search(ECP5, start(), cores, bench)
    found = search.go()
    assert keys(found) == keys(whole()) and len(found) > 3
    assert len(bench.asked) == len(set(bench.asked)) == search.measured["synth"] + search.measured["route"]
    assert search.measured["route"] <= search.measured["synth"] < len(cores) * 2 / 3
    assert all(f.lut.how == "measured" and f.mhz.how == "measured, 1 seed" for f in found)


def test_a_limit_on_measurements_and_on_the_budget_holds():
    bench = Bench()
    search = Search(ECP5, start(), grid(), bench, most={"synth": 5, "route": 2})
    assert len(search.go()) <= 2 and search.measured == {"synth": 5, "route": 2}
    first = {key for kind, key in bench.asked[:4]}
    predicted = [*map(Knowledge(ECP5, start()).of, grid())]
    wide = keys(f for f in predicted if f.lut.high > WIDE * f.lut.low)
    assert first <= wide | keys(front(predicted, ("area", "throughput")))
    limits = Budget(lut=1200).limits(ECP5.capacity)
    found = Search(ECP5, start(), grid(), Bench(), limits=limits).go()
    assert found and all(f.lut.value <= 1200 for f in found)


def test_a_core_that_was_synthesised_on_another_device_is_synthesised_before_it_is_routed():
    """A clock without LUTs of the same device would not count."""
    other = [replace(row_of("synth", core), target="ecp5-85k") for core in grid()]
    search = Search(ECP5, [*start(), *other], grid(), Bench())
    assert keys(search.go()) == keys(whole()) and not search.failed


def test_a_core_that_fails_is_left_out_and_ends_nothing():
    best = whole()[0].core
    found = Search(ECP5, start(), grid(), Bench(failing=(best.label,))).go()
    assert best.key not in keys(found)
    rest = [core for core in grid() if core.key != best.key]
    assert keys(found) == keys(whole(cores=rest))


def test_without_routes_cycles_count():
    search = Search(ECP5, start(), grid(), Bench(), ("area", "interval"), kinds=("synth",))
    assert keys(search.go()) == keys(whole(("area", "interval"))) and "route" not in search.measured


@pytest.mark.skipif(not present("search"), reason="the part search is not installed")
def test_proposals_change_several_settings_and_obey_the_limits():
    from modmill.studies.search.proposals import proposed

    known, limits = Knowledge(ECP5, start()), Budget(lut=1500).limits(ECP5.capacity)
    found = proposed(known, P, DESIGNS, ("area", "throughput"), limits, 80)
    assert len(keys(map(known.of, found))) == len(found) > 5
    assert any(len(core.given) > 1 for core in found)
    assert all(known.of(core).lut.value <= 1500 and core.fitted.p == P for core in found)
    again = proposed(known, P, DESIGNS, ("area", "throughput"), limits, 80)
    assert [core.key for core in again] == [core.key for core in found]


def test_a_core_of_a_search_is_a_point_of_a_sweep():
    from modmill.studies.search.measuring import point
    from modmill.studies.sweep.plan import parse

    core = Candidate.of(find_design("multistep"), P, {"s": 4})
    plan = {"moduli": [hex(P)], "designs": ["multistep"], "targets": ["ecp5-25k"], "measure": ["synth", "route"]}
    points = parse({**plan, "seeds": [1], "settings": {"multistep": {"s": 4}}}).points()
    assert [point(core, kind, ECP5).key for kind in ("synth", "route")] == [p.key for p in points]


def test_a_wrong_search_is_refused_with_one_line(tmp_path):
    line = refused("search", "-m", "P-256", "--objective", "speed", cwd=tmp_path)
    assert "--objective takes area, throughput, latency, interval, not 'speed'" in line


def replay(p, target, objectives, rows=(), batch=2):
    """The whole front of the routed cores of a modulus, the one found by a search that gets rows only when it asks, the
    search, and the number of cores. ``rows``: further ones than those in files of lines."""
    rows = [*rows, *(row for path in sorted(Path(shipped_folder()).glob("*.jsonl")) for row in read(path))]
    known = Knowledge(target, rows)
    cores, measured = {}, {}
    for c in known.measured():
        if p in c.serves and c.routes and c.target == target.name:
            core = Candidate.of(c.design, p, dict(c.settings))
            cores[core.key] = core
            measured[core.key, "synth"], measured[core.key, "route"] = [c.synth], [*c.routes]
    hidden = {row.key for found in measured.values() for row in found}
    rest = [row for row in rows if row.key not in hidden]
    whole = front([known.of(core) for core in cores.values()], objectives)
    search = Search(
        target, rest, [*cores.values()], lambda kind, batch: [r for core in batch for r in measured[core.key, kind]],
        objectives, batch=batch,
    )  # fmt: skip
    return whole, search.go(), search, len(cores)


@pytest.mark.long
@pytest.mark.parametrize("objectives", [("area", "throughput"), ("area", "throughput", "latency")])
def test_the_front_of_the_routed_cores_is_found_without_routing_all(objectives):
    p = (1 << 256) - (1 << 32) - 977
    whole, found, search, count = replay(p, find_target("ecp5-85k"), objectives)
    assert keys(found) == keys(whole) and count >= 30
    assert search.measured["route"] < count / 2


@pytest.mark.long
@pytest.mark.skipif(not present("sweep"), reason="the part sweep is not installed")
def test_the_front_of_a_routed_grid_is_found_with_a_tenth_of_the_routes():
    from modmill.studies.sweep.store import read_folder

    rows = read_folder(shipped_folder() / "routed")
    whole, found, search, count = replay((1 << 52) - 47, ECP5, ("throughput", "latency"), rows, 1)
    assert keys(found) == keys(whole) and count == 173
    assert search.measured["route"] <= count / 10


@pytest.mark.long
@pytest.mark.skipif(not present("sweep"), reason="the part sweep is not installed")
def test_settings_that_nobody_measured_are_looked_at_before_they_are_ruled_out(monkeypatch):
    """The front of area and throughput has many small cores of settings unlike all others. A third of the grid is
    routed; without a look at wide bars a third of them is missed."""
    from modmill.studies.sweep.store import read_folder

    rows = read_folder(shipped_folder() / "routed")
    whole, found, search, count = replay((1 << 52) - 47, ECP5, ("area", "throughput"), rows)
    assert len(keys(whole) - keys(found)) <= len(whole) / 8 and search.measured["route"] <= count / 3
    monkeypatch.setattr("modmill.studies.search.front.WIDE", inf)
    whole, found, *_ = replay((1 << 52) - 47, ECP5, ("area", "throughput"), rows)
    assert len(keys(whole) - keys(found)) > len(whole) / 4


@pytest.mark.long
def test_the_front_of_a_synthesised_grid_is_found_with_a_tenth():
    import tempfile

    from modmill.cores.multiplier.build import build
    from modmill.flow.synthesise import synthesise
    from modmill.studies.race.measure import about

    p = (1 << 64) - 59
    designs = ["montgomery-array", "pseudo-mersenne", "karatsuba", "multistep", "tenca-koc", "mcivor", "iddmm", "orup"]
    cores = [*candidates(p, ECP5, [*map(find_design, designs)], pairs=True)]
    cores = [core for core in cores if core.dsp <= ECP5.capacity.dsp and core.fitted.size <= 64]
    rows = {}

    def measure(kind, batch):
        for core in batch:
            if core.key not in rows:
                made = build(core.design.name, hex(p), "native", **core.given)
                with tempfile.TemporaryDirectory() as folder:
                    values = synthesise(made.verilog, made.top, ECP5, Path(folder)).values
                rows[core.key] = Row(kind, made.digest, "tool", ECP5.name, None, values, about(made))
        return [rows[core.key] for core in batch]

    shipped = [row for path in sorted(Path(shipped_folder()).glob("*.jsonl")) for row in read(path)]
    search = Search(ECP5, shipped, cores, measure, ("area", "interval"), kinds=("synth",))
    found = search.go()
    known = Knowledge(ECP5, [*shipped, *measure("synth", cores)])
    assert keys(found) == keys(front([known.of(core) for core in cores], ("area", "interval")))
    assert search.measured["synth"] <= len(cores) / 10
