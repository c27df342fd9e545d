#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Run the notebook of docs/ from its first cell to its last.

python3 tests/first_core.py     run it and store its outputs
"""

import re
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

PATH = Path(__file__).resolve().parents[1] / "docs" / "first-core.ipynb"
SECONDS = 600
"""For one cell; the first simulation on a machine compiles Verilator's runtime."""


def executed(notebook, folder):
    """The notebook with the outputs of a run in a folder, without times and other traces of the run.

    Raises nbclient's CellExecutionError if a cell fails.
    """
    where = {"metadata": {"path": folder}}
    done = NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=where, coalesce_streams=True)
    notebook = done.execute()
    for cell in notebook.cells:
        cell.metadata = {}
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


def outputs(notebook):
    """The texts of all outputs, without seconds."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            texts = (
                [output.text] if "text" in output else [output.data[kind] for kind in sorted(output.get("data", {}))]
            )
            yield from (re.sub(r"\b[\d.]+ s\b", "", text) for text in texts)


def main():
    """Store the outputs of a run."""
    notebook = nbformat.read(PATH, 4)
    with tempfile.TemporaryDirectory() as folder:
        PATH.write_text(nbformat.writes(executed(notebook, folder)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
