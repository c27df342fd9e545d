# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""`modmill serve`: a written core as a device, until a signal."""

import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
from command import SOURCE, refused

from modmill.buses.serve import SocketBus
from modmill.buses.simulate import BusDriver, BusFault
from modmill.cores.behind_bus import Exchange, product
from modmill.cores.multiplier.build import build
from modmill.studies import bus


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build("mcivor", "2^61-1", bus="apb").write(tmp_path_factory.mktemp("serve") / "core", check=False)


def test_a_core_is_served_until_ctrl_c(folder, tmp_path):
    command = [
        sys.executable, "-m", "modmill", "serve", folder, "--self-test", "--socket", tmp_path / "link", "--quiet"
    ]  # fmt: skip
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


def test_the_self_test_runs_one_job_of_each_command_after_its_setup(monkeypatch):
    """The second modulus has jobs that the first one lacks; a wrong answer and an error of the device are told."""
    said = []

    class Driver:
        def ready(self):
            said.append("ready")

        def run(self, command, words, count):
            said.append((command, *words))
            if 9 in words:
                raise BusFault("command 2: SEQUENCE")
            return [sum(words)] * count

    def job(command, word, right=True):
        return Exchange(command, [word], 1, lambda words: words == [word] and right)

    commands = [SimpleNamespace(name=name) for name in ("setup", "multiply", "signature")]
    setups = Exchange(0, [1]), Exchange(0, [2]), Exchange(0, [3])
    whole = [setups[0], job(1, 4), job(1, 5), setups[1], job(1, 6), setups[2], job(1, 7), job(2, 8)]
    subject = SimpleNamespace(device=SimpleNamespace(commands=commands), bus=None, exchanges=whole)
    monkeypatch.setattr(bus, "driver_of", lambda *_: Driver())
    assert bus.self_test(subject, None) == ""
    assert said == ["ready", (0, 1), (1, 4), (0, 3), (2, 8)]
    subject.exchanges = [*whole[:-1], job(2, 8, False)]
    assert bus.self_test(subject, None) == "a wrong answer to signature"
    subject.exchanges = [*whole[:-1], job(2, 9)]
    assert bus.self_test(subject, None) == "command 2: SEQUENCE"


def test_a_core_without_a_bus_is_refused(tmp_path):
    bare = build("mcivor", "2^61-1").write(tmp_path / "bare", check=False)
    assert "build it with --bus" in refused("serve", bare)
