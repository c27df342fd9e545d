# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""`modmill serve`: a written core as a device, until a signal."""

import os
import signal
import subprocess
import sys

import pytest
from command import SOURCE, refused

from modmill.buses.serve import SocketBus
from modmill.buses.simulate import BusDriver
from modmill.cores.behind_bus import product
from modmill.cores.multiplier.build import build


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build("mcivor", "2^61-1", bus="apb").write(tmp_path_factory.mktemp("serve") / "core", check=False)


def test_a_core_is_served_until_ctrl_c(folder, tmp_path):
    command = [sys.executable, "-m", "modmill", "serve", folder, "--socket", tmp_path / "link", "--quiet"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": SOURCE}
    ) as server:
        assert server.stdout.readline() == f"core behind APB4 at {tmp_path / 'link'}\n"
        core = build("mcivor", "2^61-1", bus="apb")
        driver = BusDriver(core.device, SocketBus(tmp_path / "link"))
        one = product(core.contract, 5, 7, 35)
        driver.ready()
        assert one.right(driver.run(one.command, one.words, one.count))
        server.send_signal(signal.SIGINT)
        said = server.stdout.read()
        assert server.wait(30) == 0
    assert said.startswith("1 connections, ") and " cycles" in said
    assert not (tmp_path / "link").exists()


def test_a_core_without_a_bus_is_refused(tmp_path):
    bare = build("mcivor", "2^61-1").write(tmp_path / "bare", check=False)
    assert "build it with --bus" in refused("serve", bare)
