# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Which core for a budget: numbers from rows, estimates with the error of leaving out, and one line if none fits."""

import functools
import json
from itertools import pairwise
from math import exp
from statistics import fmean

import pytest
from command import refused

from modmill import placement
from modmill.contract import UnsupportedError
from modmill.design import parse_set
from modmill.designs import design as find_design
from modmill.flow.targets import target as find_target
from modmill.numbers.moduli import parse_modulus
from modmill.report.rows import read, shipped_folder
from modmill.studies.search.candidates import Candidate, MissingSchedule, candidates, unsolved
from modmill.studies.search.estimate import HELD, LUT, Process
from modmill.studies.search.knowledge import Knowledge
from modmill.studies.search.recommend import SHOWN, Budget, overrun, recommend, used

P256 = parse_modulus("P-256").value
DESIGNS = [find_design(name) for name in ("solinas", "karatsuba-solinas", "montgomery-array", "mcivor")]


@functools.cache
def known(target="ecp5-25k"):
    """What the rows of two files say; they have cores of every family."""
    rows = [row for name in ("P-256", "secp256k1") for row in read(shipped_folder() / f"{name}.jsonl")]
    return Knowledge(find_target(target), rows)


def toys(count=12):
    """Cores of a design without tools, and values that follow a rule."""
    design = find_design("mcivor")
    cores = [Candidate.of(design, (1 << 16 * k) - 1, {}) for k in range(2, count + 2)]
    return cores, [7.0 * core.fitted.p.bit_length() ** 1.1 for core in cores]


def test_a_rule_is_found_and_a_wrong_value_shows_in_the_error():
    cores, values = toys()
    process = Process(cores, values, LUT)
    assert process.error.middle < 0.01 and process.error.most < 0.05 and process.error.cores == len(cores)
    core = Candidate.of(find_design("mcivor"), (1 << 100) - 1, {})
    found = process.of(core)
    assert found.low < 7.0 * 100**1.1 < found.high and found.percent < 10
    values[5] *= 3
    wrong = Process(cores, values, LUT)
    assert wrong.error.most > 0.1 and wrong.of(core).percent > found.percent


def test_leaving_out_in_closed_form_is_leaving_out():
    cores, values = toys()
    values = [value * (1 + 0.1 * (k % 3)) for k, value in enumerate(values)]
    whole = Process(cores, values, LUT)
    errors = []
    for k, core in enumerate(cores):
        errors.append(abs(_refitted(whole, k)(core) / values[k] - 1))
    assert whole.error.mean == pytest.approx(fmean(errors), rel=1e-6)


def _refitted(process, k):
    """The estimate from all cores but one, solved anew."""
    others = [core for j, core in enumerate(process._cores) if j != k]
    logs = {id(core): value for core, value in zip(process._cores, process._logs, strict=True)}
    count = len(others)
    matrix = [[process._like(a, b) + (process._weights.noise if a is b else 0) for b in others] for a in others]
    right = [logs[id(core)] for core in others]
    for i in range(count):  # Gauss
        for j in range(i + 1, count):
            factor = matrix[j][i] / matrix[i][i]
            matrix[j] = [x - factor * y for x, y in zip(matrix[j], matrix[i], strict=True)]
            right[j] -= factor * right[i]
    for i in reversed(range(count)):
        right[i] = (right[i] - sum(matrix[i][j] * right[j] for j in range(i + 1, count))) / matrix[i][i]
    return lambda core: exp(process._mean + sum(process._like(core, b) * w for b, w in zip(others, right, strict=True)))


def test_bars_hold_for_most_of_the_cores_that_were_left_out():
    process = known().lut
    held = [abs(residual) <= process.scale * expected for residual, expected in process._residuals]
    assert HELD <= fmean(held) < HELD + 0.1


def test_few_rows_are_refused():
    with pytest.raises(UnsupportedError, match="0 measured cores have LUTs on gw2a, at least 8 are needed"):
        Knowledge(find_target("gowin"), [])


def test_a_measured_core_has_the_numbers_of_its_rows():
    figures = known().of(Candidate.of(find_design("solinas"), P256, {}))
    assert figures.lut.how == "measured on ecp5-85k" and figures.mhz.how == "measured on ecp5-85k, 3 seeds"
    clocks = [row.values["mhz"] for row in figures.rows if row.kind == "route"]
    assert (figures.mhz.low, figures.mhz.high) == (min(clocks), max(clocks)) and len(clocks) == 3
    assert figures.rate.value == pytest.approx(figures.mhz.value * 1e6 / figures.core.interval)
    assert known("ecp5-85k").of(figures.core).lut.how == "measured"
    predicted = known().of(Candidate.of(find_design("montgomery-array"), P256, {"columns": 4}))
    assert predicted.lut.how == "predicted" and predicted.lut.low < predicted.lut.value < predicted.lut.high
    assert predicted.mhz.high <= find_target("ecp5-25k").dsp_cap_mhz


def test_the_spread_of_seeds_is_relative_to_their_median():
    contender = next(c for c in known().measured() if c.design.name == "solinas" and len(c.routes) == 3)
    slow, fast = map(float, contender.spread.split())
    clocks = sorted(row.values["mhz"] for row in contender.routes)
    assert (slow, fast) == pytest.approx((clocks[0] / clocks[1], clocks[2] / clocks[1]), abs=1e-4) and slow < fast
    assert next(c for c in known().measured() if len(c.routes) == 1).spread == ""


def test_a_loaded_core_has_the_rows_of_another_modulus_of_its_length():
    of = [Candidate.of(find_design("montgomery-array"), p, {}) for p in (P256, (1 << 256) - 189, (1 << 255) - 19)]
    assert of[0].key == of[1].key != of[2].key


@pytest.mark.parametrize("want", ["throughput", "latency", "area"])
def test_three_cores_fit_the_budget_in_the_wanted_order(want):
    budget = Budget(dsp=20, lut=8000, us=2)
    found = recommend(known(), P256, budget, want, DESIGNS)
    limits = budget.limits(find_target("ecp5-25k").capacity)
    assert len({f.core.design.name for f in found}) == len(found) == SHOWN
    for f in found:
        assert f.dsp <= 20 and f.lut.value <= 8000 and f.us.value <= 2 and overrun(f, limits) <= 1
    order = [{"throughput": -f.rate.value, "latency": f.us.value, "area": f.area.value}[want] for f in found]
    assert order == sorted(order)


def test_the_printed_command_builds_the_recommended_core():
    for f in recommend(known(), P256, Budget(us=2), "area", DESIGNS):
        words = f.core.command.split()
        assert words[:2] == ["modmill", "build"] and words[words.index("--io") + 1] == "native"
        sets = [word for before, word in pairwise(words) if before == "--set"]
        design = find_design(words[2])
        p = parse_modulus(words[words.index("--modulus") + 1]).value
        assert Candidate.of(design, p, design.checked(parse_set(sets))).key == f.core.key


def test_nothing_that_fits_is_one_line_with_the_nearest():
    with pytest.raises(UnsupportedError, match=r"no core for P-256 fits on ecp5-25k; the nearest is ") as error:
        recommend(known(), P256, Budget(dsp=0, lut=100, us=0.1), "area", DESIGNS)
    assert (
        " DSP of 0, " in str(error.value) and " LUT of 100, " in str(error.value) and " µs of 0.1" in str(error.value)
    )
    with pytest.raises(UnsupportedError, match="--want takes throughput, latency, area, not 'speed'"):
        recommend(known(), P256, Budget(), "speed", DESIGNS)


def test_the_device_is_a_limit_too():
    limits = Budget(dsp=1000).limits(find_target("ecp5-25k").capacity)
    assert limits == {"DSP": 28, "LUT": 24288}
    wide = known().of(Candidate.of(find_design("wide"), P256, {}))
    assert used(wide)["DSP"] > 28 and overrun(wide, limits) > 1


def test_no_schedule_is_solved():
    p = (1 << 255) - 31 * 27 * 3 * 5 * 7 - 2
    need = placement.need
    with unsolved(), pytest.raises(MissingSchedule):
        Candidate.of(find_design("kbe"), p | 1, {"interval": 61})
    assert placement.need is need
    assert [c.given for c in candidates(P256, find_target(), [find_design("wide")])] == [
        {}, {"levels": 1}, {"levels": 2}, {"multipliers": 3}, {"pipelined": False}
    ]  # fmt: skip


def test_the_command_prints_and_refuses(tmp_path):
    import subprocess
    import sys

    line = [sys.executable, "-m", "modmill", "recommend", "-m", "P-256", "--target", "ecp5-25k", "--max-us", "2"]
    line += ["--design", "solinas", "--design", "mcivor", "--json", "-q"]
    found = json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout)
    assert [core["design"] for core in found["cores"]] == ["solinas", "mcivor"]
    assert found["cores"][0]["mhz"]["from"] == "measured on ecp5-85k, 3 seeds" and found["left_out"]["lut"]["cores"] > 8
    none = ["--max-dsp", "0", "--max-lut", "500", "--design", "mcivor", "-q"]
    assert "; the nearest is mcivor" in refused("recommend", "-m", "P-256", *none, cwd=tmp_path)
