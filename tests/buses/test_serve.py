# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A simulated device at a socket: Python's driver, the driver in C, malformed requests, several clients."""

import random
import socket
import struct
import subprocess
import sys
import threading

import pytest
import stub_engine as stub

from modmill.buses.adapters import find_bus
from modmill.buses.registers import register_map
from modmill.buses.serve import (
    DONE,
    MOST_CYCLES,
    MOST_RESET,
    READ,
    REFUSED,
    RESET,
    UNKNOWN,
    WAIT,
    WRITE,
    Server,
    SocketBus,
)
from modmill.buses.simulate import BusDriver, BusSimulator

BUS = find_bus("wishbone")
STRICT = ("-std=c99", "-D_POSIX_C_SOURCE=200809L", "-pedantic", "-O2", "-Wall", "-Wextra", "-Werror", "-Wconversion")
OFFSET = {register.name: register.offset for register in register_map(stub.DEVICE).registers}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("served")
    stub.write(made, BUS)
    return made


@pytest.fixture
def served(folder, tmp_path):
    """A server in a thread; it ends with the process."""
    server = Server(stub.DEVICE, BusSimulator((folder / "bus.v").read_text(), stub.DEVICE, BUS), tmp_path / "s", idle=3)
    threading.Thread(target=server.run, daemon=True).start()
    return server


def job(path):
    """Set the device up and let it echo words."""
    bus = SocketBus(path)
    driver = BusDriver(stub.DEVICE, bus)
    driver.ready()
    assert driver.run(stub.KEY, [1, 2, 3], 0) == []
    words = list(range(24))
    assert driver.run(stub.ECHO, words, 24) == stub.answer(6, stub.ECHO, words)
    bus.close()


def test_jobs_through_the_socket(served):
    job(served.path)
    job(served.path)
    assert served.served.unknown == 0 and served.served.connections == 2


def asked(path, *requests):
    """The replies to requests of one connection."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(path))
        link.sendall(b"".join(struct.pack("<III", *request) for request in requests))
        received = b""
        while len(received) < 8 * len(requests):
            received += link.recv(4096)
    return list(struct.iter_unpack("<II", received))


def test_replies(served):
    digest = register_map(stub.DEVICE)["DIGEST"].reset
    replies = asked(
        served.path, (READ, OFFSET["DIGEST"], 0), (WRITE, OFFSET["DIGEST"], 1), (READ, 0x40, 0), (READ, 0x1000, 0),
        (READ, 2, 0), (4, 0, 0), (WAIT, 0, 100), (WAIT, 0, MOST_CYCLES + 1), (RESET, 0, 0), (RESET, 0, MOST_RESET + 1),
        (RESET, 0, 1), (READ, OFFSET["MAGIC"], 0),
    )  # fmt: skip
    assert replies == [
        (DONE, digest), (REFUSED, 0), (REFUSED, 0), (UNKNOWN, 0), (UNKNOWN, 0), (UNKNOWN, 0), (DONE, 100), (UNKNOWN, 0),
        (UNKNOWN, 0), (UNKNOWN, 0), (DONE, 0), (DONE, int.from_bytes(b"MMIL", "little")),
    ]  # fmt: skip


def test_no_client_reads_the_answer_of_another(served):
    setup = [
        (WAIT, 0, 100),
        (WRITE, OFFSET["COMMAND"], stub.KEY),
        *((WRITE, OFFSET["DATA_IN"], k) for k in (1, 2, 3)),
        (WAIT, 0, 200),
    ]
    one = [(WRITE, OFFSET["COMMAND"], stub.ONE), (WRITE, OFFSET["DATA_IN"], 5), (WAIT, 0, 200)]
    *_, (_, level) = asked(served.path, *setup, *one, (READ, OFFSET["LEVEL"], 0))
    assert level >> 16, "the answer is there"
    (_, level), (_, word) = asked(served.path, (READ, OFFSET["LEVEL"], 0), (READ, OFFSET["DATA_OUT"], 0))
    assert level >> 16 == 0 == word


def test_malformed_requests(served):
    """10,000 messages of random bytes, and of requests with one random word, over 50 connections."""
    rnd = random.Random(1)

    def message():
        if rnd.random() < 0.5:
            return rnd.randbytes(rnd.randrange(40))
        words = [rnd.randrange(6), 4 * rnd.randrange(20), rnd.randrange(300)]
        words[rnd.randrange(3)] = rnd.getrandbits(32)
        return struct.pack("<III", *words)

    for _ in range(50):
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(str(served.path))
            link.settimeout(20)
            sent = received = 0
            for _ in range(200):
                text = message()
                link.sendall(text)
                sent += len(text)
                while received < sent // 12 * 8:
                    received += len(link.recv(1 << 16))
    assert served.served.unknown > 1000
    job(served.path)


def test_a_failed_self_test_is_left_only_by_a_reset(folder, tmp_path):
    """Nothing else is done while it fails; the device is as after a reset when it has passed."""
    verdicts = ["", "a wrong answer", "a wrong answer", ""]
    simulator = BusSimulator((folder / "bus.v").read_text(), stub.DEVICE, BUS)
    server = Server(stub.DEVICE, simulator, tmp_path / "s", idle=3, tested=lambda: verdicts.pop(0))
    threading.Thread(target=server.run, daemon=True).start()
    job(server.path)
    bus = SocketBus(server.path)
    for state in ("failed", "failed", "passed"):
        assert bus.request(RESET, 0, 1) == (DONE, 0)
        found = [bus.request(operation, 0, 0)[0] for operation in (READ, WRITE, WAIT, 77)]
        assert (found == [REFUSED] * 4) == (state == "failed")
        assert bool(server.failed) == (state == "failed")
    bus.close()
    job(server.path)
    server.close()


def test_a_silent_client_does_not_keep_the_device(served):
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(str(served.path))
        job(served.path)
        assert silent.recv(1) == b""


def test_the_driver_in_c(served, folder):
    """stub.c with -DMODMILL_SOCKET, and what it does when nobody serves any more."""
    (folder / "main.c").write_text("""
#include "stub.h"
#include <stdio.h>
int main(int count, char **path)
{
    modmill_socket link;
    stub_device device;
    const uint32_t key[3] = {1, 2, 3}, one[1] = {5};
    uint32_t answer[1];
    int error;

    if (count < 2 || modmill_connect(&link, path[1]) != 0)
        return 99;
    error = stub_open(&device, modmill_base(&link));
    if (error == 0)
        error = stub_run(&device, STUB_RUN_SETUP, key, 3, NULL, 0);
    if (error == 0)
        error = stub_run(&device, STUB_RUN_ONE, one, 1, answer, 1);
    modmill_close(&link);
    printf("%d %u\\n", error, (unsigned)answer[0]);
    return stub_open(&device, modmill_base(&link)) == STUB_ERROR_DEVICE && link.failed ? 0 : 98;
}
""")
    command = [sys.executable, "-m", "ziglang", "cc", *STRICT, "-DMODMILL_SOCKET", "stub.c", "main.c", "-o", "main"]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run([folder / "main", served.path], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "0 11\n")
    done = subprocess.run([folder / "main", folder / "none"], capture_output=True, timeout=60)
    assert done.returncode == 99


def test_paths(served, tmp_path):
    simulator = served._bus
    with pytest.raises(FileExistsError, match="another device"):
        Server(stub.DEVICE, simulator, served.path)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match="not a socket"):
        Server(stub.DEVICE, simulator, tmp_path / "file")
    with pytest.raises(ValueError, match="at most 107 are possible; give one with --socket"):
        Server(stub.DEVICE, simulator, tmp_path / ("x" * 100))
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "left"))
    left.close()
    Server(stub.DEVICE, simulator, tmp_path / "left").close()
    assert not (tmp_path / "left").exists()
