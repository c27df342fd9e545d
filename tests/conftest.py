# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What all tests may use."""

import signal

import pytest

from modmill.flow import tools

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as in a background job, whose programs would too
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A folder with a cache of its own, in which only the simulator's compiled runtime is the machine's."""
    runtime = tools.cache_dir() / "verilator-runtime"
    runtime.mkdir(parents=True, exist_ok=True)
    own = tmp_path / "cache"
    own.mkdir()
    (own / runtime.name).symlink_to(runtime)
    monkeypatch.setenv("MODMILL_CACHE", str(own))
    return tmp_path
