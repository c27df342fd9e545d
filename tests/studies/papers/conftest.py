# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Fixtures of the tests of papers."""

import pytest


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """No rows but those a test plants."""
    monkeypatch.setenv("MODMILL_CACHE", str(tmp_path))
    monkeypatch.setattr("modmill.report.rows.shipped_folder", lambda: tmp_path / "none")
    return tmp_path
