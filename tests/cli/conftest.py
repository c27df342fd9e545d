# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Fixtures of the tests of the command line."""

import pytest
from messages import MESSAGE


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The folder that commands run in, with a message in a file."""
    (tmp_path / "message").write_bytes(MESSAGE)
    monkeypatch.chdir(tmp_path)
    return tmp_path
