# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The front of packets against another house's source and sink, and planted faults that the same benches must catch."""

import re
from dataclasses import replace
from functools import partial

import pytest
import stub_engine as stub
from test_bus_fronts import failures

from marks import long
from modmill.buses.adapters import find_bus
from modmill.buses.front import whole

failures = partial(failures, "axi-stream", module="stream_bench")


@pytest.fixture(scope="module")
def verilog():
    """Verilog of the stub behind its streams."""
    return whole(stub.DEVICE, find_bus("axi-stream"), stub.VERILOG)


def test_a_source_and_a_sink_of_another_house(verilog, tmp_path):
    assert failures(verilog, tmp_path) == 0, (tmp_path / "run.log").read_text()[-6000:]


@pytest.mark.long
def test_several_machines(tmp_path):
    text = whole(stub.several(3), find_bus("axi-stream"), stub.several_verilog(3))
    assert failures(text, tmp_path, machines=3) == 0, (tmp_path / "run.log").read_text()[-6000:]


@pytest.mark.long
def test_a_slow_clock_of_its_own(tmp_path):
    """Words of an answer come later than they are taken; a planted front that does not wait for them is found."""
    text = whole(replace(stub.DEVICE, separate=True), find_bus("axi-stream"), stub.VERILOG)
    assert failures(text, tmp_path, SEPARATE="1") == 0, (tmp_path / "run.log").read_text()[-6000:]
    wrong, count = re.subn(r"some_3 <= [^;]*;", "some_3 <= 1;", text)
    assert count and failures(wrong, tmp_path, "jobs", SEPARATE="1") == 1


@pytest.mark.long
def test_1000_jobs_in_a_row(verilog, tmp_path):
    assert failures(verilog, tmp_path, "in_a_row") == 0, (tmp_path / "run.log").read_text()[-6000:]


@pytest.mark.parametrize(
    ("right", "wrong", "bench"),
    [
        long(r"incomplete <= [^;]*;", "incomplete <= 0;", "refused"),
        (r"aborted <= [^;]*;", "aborted <= 0;", "ends"),
        long(r"entered <= [^;]*;", "entered <= 0;", "refused"),
        long(r"tells <= [^;]*;", "tells <= 0;", "identifies"),
        long(r"acted <= [^;]*;", "acted <= 0;", "ends"),
        long(r"else bank_jobs <= value_jobs;", "else bank_jobs <= 0;", "jobs"),
        long(r"jobs_count \? jobs_coming", "jobs_count ? jobs_coming[8:0]", "in_a_row"),
        long(r"room <= [^;]*;", "room <= 1;", "full"),
        long(r" open <= rst \? 1'h0 : ~cleared;", " open <= ~cleared;", "resets"),
        long(r"m_axis_tvalid & m_axis_tready", "m_axis_tvalid", "jobs"),
        long(r"m_axis_tvalid <= rst \? 1'h0 : ", "m_axis_tvalid <= ", "resets"),
        long(r"(out_level <= rst \? 5'h00 : )state_reset \? 5'h00 : ", r"\1", "ends"),
        long(r"key <= sum \+ i_data", "if (sum) key <= sum + i_data", "ends"),
        long(r"differs <= data\w*\[(\d+):0\] != varying", "differs <= 0", "refused"),
    ],
)  # fmt: skip
def test_a_planted_fault_is_caught(right, wrong, bench, verilog, tmp_path):
    text, count = re.subn(right, wrong, verilog)
    assert count, f"nothing to change: {right}"
    assert failures(text, tmp_path, bench) == 1
