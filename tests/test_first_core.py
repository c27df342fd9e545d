# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The notebook of docs/ runs, and its stored outputs are those of a run."""

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from first_core import PATH, executed, outputs


@pytest.mark.slow
def test_the_notebook_runs_and_shows_what_a_run_gives(tmp_path):
    stored = nbformat.read(PATH, 4)
    told = list(outputs(stored))
    found = list(outputs(executed(stored, tmp_path)))
    assert found == told, "run python tests/first_core.py"
    assert any("PASS" in text for text in found) and any("recorded" in text for text in found)


@pytest.mark.slow
def test_a_cell_that_fails_is_caught(tmp_path):
    broken = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import modmill\nassert modmill.DESIGNS == ()")])
    with pytest.raises(CellExecutionError):
        executed(broken, tmp_path)


def test_only_seconds_may_differ():
    cell = nbformat.v4.new_code_cell()
    cell.outputs = [nbformat.v4.new_output("stream", text="PASS in 24 cycles, 2.5 s")]
    assert list(outputs(nbformat.v4.new_notebook(cells=[cell]))) == ["PASS in 24 cycles, "]
