# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The driver in C and Python's over Linux's UIO, on a stand-in: a file as the registers, a socket as the interrupt.

The stand-in acts when a program enables the interrupt: it takes the message of one word from the file, lets the
simulated device do it, puts the answer into the file and reports an interrupt.
"""

import ctypes
import mmap
import os
import socket
import subprocess
import sys
import threading

import pytest
import stub_engine as stub

from modmill.buses.adapters import find_bus
from modmill.buses.registers import SPAN, register_map
from modmill.buses.simulate import BusDriver, BusFault, BusSimulator
from modmill.buses.uio import UioBus

BUS, MAP = find_bus("wishbone"), register_map(stub.DEVICE)
STRICT = ("-std=c99", "-D_POSIX_C_SOURCE=200809L", "-pedantic", "-O2", "-Wall", "-Wextra", "-Werror", "-Wconversion")
PROGRAM = """
#include "stub.h"
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **arguments)
{
    modmill_uio uio;
    stub_device device;
    const uint32_t one[1] = {5};
    uint32_t answer[1] = {0};
    int error;

    if (count < 4 || modmill_uio_open(&uio, arguments[1]) != 0)
        return 99;
    (void)close(uio.fd);
    uio.fd = atoi(arguments[2]); /* of the interrupt */
    uio.milliseconds = atoi(arguments[3]);
    error = stub_open(&device, modmill_uio_base(&uio));
    device.patience = 2;
    stub_interrupts(&device, 1, 1);
    if (error == 0)
        error = stub_run(&device, STUB_RUN_ONE, one, 1, answer, 1);
    printf("%d %u %d\\n", error, (unsigned)answer[0], uio.milliseconds);
    modmill_uio_close(&uio);
    return uio.fd == -1 ? 0 : 98;
}
"""
TIMEOUT = 256


def status(field):
    return next(f.mask for f in MAP["STATUS"].fields if f.name == field)


class Kernel:
    """A file with the registers of a device that is ready, and a thread that does the jobs of one word."""

    def __init__(self, folder, simulator):
        self.path, self.driver, self.messages = folder / "uio0", BusDriver(stub.DEVICE, simulator), []
        self.path.write_bytes(bytes(SPAN))
        with self.path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), SPAN)
        for register in MAP.registers:
            if register.constant:
                self[register.name] = register.reset
        self["STATUS"], self["LEVEL"] = status("ready"), 16
        self.here, self.there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        threading.Thread(target=self.work, daemon=True).start()

    def __getitem__(self, name):
        return ctypes.c_uint32.from_buffer(self.memory, MAP[name].offset).value

    def __setitem__(self, name, word):
        ctypes.c_uint32.from_buffer(self.memory, MAP[name].offset).value = word

    def work(self):
        while self.here.recv(4) == (1).to_bytes(4, sys.byteorder):
            command, word = self["COMMAND"], self["DATA_IN"]
            self.messages.append((command, word, self["IRQ_ENABLE"]))
            self.driver.ready()
            self.driver.run(stub.KEY, [1, 2, 3], 0)
            (self["DATA_OUT"],) = self.driver.run(command, [word], 1)
            self["LEVEL"] = 16 | 1 << 16
            self["STATUS"] = status("done")
            self.here.send(b"\1\0\0\0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("uio")
    stub.write(made, BUS)
    return made


@pytest.fixture
def kernel(folder, tmp_path):
    made = Kernel(tmp_path, BusSimulator((folder / "bus.v").read_text(), stub.DEVICE, BUS))
    yield made
    made.there.close()


def ran(folder, kernel, milliseconds):
    """What the program prints."""
    (folder / "main.c").write_text(PROGRAM)
    command = [sys.executable, "-m", "ziglang", "cc", *STRICT, "-DMODMILL_UIO", "stub.c", "main.c", "-o", "main"]
    subprocess.run(command, cwd=folder, check=True)
    fd = kernel.there.fileno()
    command = [folder / "main", kernel.path, str(fd), str(milliseconds)]
    done = subprocess.run(command, pass_fds=[fd], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return tuple(map(int, done.stdout.split()))


def test_the_driver_in_c_sleeps_until_the_interrupt(folder, kernel):
    """With two reads of STATUS it gets its answer only if it is woken; without sleep it gives up."""
    assert ran(folder, kernel, 20_000) == (0, 11, 20_000)
    assert kernel.messages == [(stub.ONE, 5, 3)]
    kernel["STATUS"] = status("ready")
    assert ran(folder, kernel, 0)[0] == TIMEOUT and len(kernel.messages) == 1


def test_a_planted_fault_of_the_interrupt_is_found(folder, kernel, tmp_path):
    """The program never enables it."""
    for name in ("stub.h", "stub.c", "modmill_uio.h"):
        (tmp_path / name).write_text((folder / name).read_text())
    text = (folder / "modmill_uio.h").read_text()
    assert "word = 1u" in text
    (tmp_path / "modmill_uio.h").write_text(text.replace("word = 1u", "word = 0u"))
    assert ran(tmp_path, kernel, 100)[0] == TIMEOUT


def test_a_device_that_is_not_there(folder, kernel, tmp_path):
    ran(folder, kernel, 20_000)
    assert subprocess.run([folder / "main", tmp_path / "none", "0", "0"]).returncode == 99
    with pytest.raises(OSError, match="none"):
        UioBus(tmp_path / "none")


def test_the_driver_in_python(kernel):
    bus = UioBus(kernel.path)
    bus._interrupts = os.dup(kernel.there.fileno())
    driver = BusDriver(stub.DEVICE, bus)
    assert driver.read("MAGIC") == MAP["MAGIC"].reset
    assert driver.run(stub.ONE, [9], 1) == [15]
    assert kernel.messages == [(stub.ONE, 9, 3)]
    kernel["STATUS"] = status("error") | 3 << next(f.low for f in MAP["STATUS"].fields if f.name == "cause")
    with pytest.raises(BusFault, match="an error instead of ready"):
        driver.ready()
    bus.close()
