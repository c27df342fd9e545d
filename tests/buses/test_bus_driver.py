# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The driver in C: compiled strictly, for two machines, and run against the front in simulation."""

import ctypes
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import stub_engine as stub

from modmill.buses.adapters import find_bus
from modmill.buses.device import Command
from modmill.buses.files import descriptions
from modmill.buses.registers import CAUSES, register_map
from modmill.buses.simulate import BusSimulator

HOOKS = Path(__file__).parent / "hooks.h"
STRICT = ("-std=c99", "-pedantic", "-O2", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wshadow")
ZIG = (sys.executable, "-m", "ziglang", "cc")
BUS = find_bus("wishbone")
CAUSE = {name: number for number, (name, _) in enumerate(CAUSES)}
SELFTEST, TIMEOUT, DEVICE = 255, 256, 257
Read, Write = (
    ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32),
    ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("driver")
    stub.write(made, BUS)
    return made


def compiled(command, folder, *more):
    """Compile the driver."""
    return subprocess.run([*command, *STRICT, "-c", "stub.c", *more], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("machine", ["riscv32-freestanding", "x86_64-linux"])
def test_it_compiles_without_a_warning(machine, folder):
    done = compiled((*ZIG, "-target", machine), folder, "-o", f"{machine}.o")
    assert done.returncode == 0, done.stderr


def test_a_planted_warning_ends_the_compilation(folder, tmp_path):
    text = (folder / "stub.c").read_text()
    for name in ("stub.h", "stub.c"):
        (tmp_path / name).write_text((folder / name).read_text())
    (tmp_path / "stub.c").write_text(text.replace("const uint32_t major", "int unused;\n    const uint32_t major"))
    assert compiled(ZIG, tmp_path, "-o", "x.o").returncode != 0


def test_the_example_of_the_docs_compiles(tmp_path):
    """`ecc.h` of docs/buses.md is that of a coprocessor with the ladder."""
    page = (Path(__file__).parents[2] / "docs" / "buses.md").read_text()
    commands = Command(0, "setup", 9, 0), Command(1, "ladder", 24, 8)
    device = replace(stub.DEVICE, top="ecc", commands=commands, zeroise=(), selftest=())
    (tmp_path / "ecc.h").write_text(descriptions(device, BUS)["ecc.h"])
    (example,) = re.findall(r'^```c\n(#include "ecc.h".*?)^```', page, re.DOTALL | re.MULTILINE)
    declared = "int x25519(const uint32_t *setup, const uint32_t *job, uint32_t *answer);\n"
    (tmp_path / "stub.c").write_text(example.replace("static ecc_device", declared + "static ecc_device"))
    done = compiled(ZIG, tmp_path, "-o", "example.o")
    assert done.returncode == 0, done.stderr


class Device(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("patience", ctypes.c_uint32), ("failed", ctypes.c_int))


@pytest.fixture(scope="module")
def library(folder):
    return with_hooks(folder)


def with_hooks(folder):
    """The driver as a library whose accesses are those of `Driver`."""
    (folder / "hooks.c").write_text(
        '#include "stub.h"\nuint32_t (*bus_read)(uint32_t);\nvoid (*bus_write)(uint32_t, uint32_t);\n'
    )
    command = [
        *ZIG,
        "-std=c99",
        "-O2",
        "-shared",
        "-fPIC",
        "-nostdlib",
        "-include",
        HOOKS,
        "stub.c",
        "hooks.c",
        "-o",
        "driver.so",
    ]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "driver.so"))


class Driver:
    """The driver on a simulated bus; ``refused`` counts error responses."""

    def __init__(self, library, simulator):
        self.library, self.bus, self.device, self.refused = library, simulator, Device(), 0
        self.kept = Read(self.read), Write(self.write)
        for name, hook in zip(("bus_read", "bus_write"), self.kept, strict=True):
            ctypes.c_void_p.in_dll(library, name).value = ctypes.cast(hook, ctypes.c_void_p).value

    def read(self, offset):
        word, refused = self.bus.read(offset)
        self.refused += refused
        return word

    def write(self, offset, word):
        self.refused += self.bus.write(offset, word)

    def call(self, name, *arguments):
        return getattr(self.library, f"stub_{name}")(ctypes.byref(self.device), *arguments)

    def run(self, command, words, count):
        sent, answer = (ctypes.c_uint32 * max(1, len(words)))(*words), (ctypes.c_uint32 * max(1, count))()
        size = ctypes.c_size_t
        return self.call("run", command, sent, size(len(words)), answer, size(count)), list(answer)[:count]


@pytest.fixture
def driver(library, folder):
    made = Driver(library, BusSimulator((folder / "bus.v").read_text(), stub.DEVICE, BUS))
    assert made.call("open", None) == 0
    made.device.patience = 2000
    yield made
    assert made.refused == 0


def test_jobs(driver):
    assert driver.run(stub.KEY, [1, 2, 3], 0) == (0, [])
    for command, words in (
        (stub.ECHO, list(range(24))),
        (stub.ONE, [5]),
        (stub.SUM, [3, 2, *range(8)]),
        (stub.ECHO, [9] * 24),
    ):
        wanted = stub.answer(6, command, words)
        assert driver.run(command, words, len(wanted)) == (0, wanted)


def test_errors(driver):
    assert driver.run(stub.ONE, [5], 1)[0] == CAUSE["SETUP"]
    assert driver.run(stub.KEY, [1, 2, 3], 0)[0] == 0
    assert driver.run(9, [5], 1)[0] == CAUSE["COMMAND"]
    assert driver.run(stub.KEY, [1, 2, 3], 0)[0] == 0
    assert driver.run(stub.ONE, [5, 6], 1)[0] == CAUSE["LONG"]
    assert driver.run(stub.KEY, [1, 2, 3], 0)[0] == 0
    assert driver.run(stub.ECHO, [5, 6], 24)[0] == TIMEOUT
    assert driver.run(stub.KEY, [1, 2, 3], 0)[0] == 0
    assert driver.run(stub.SUM, [3, 3, *range(8)], 2)[0] == CAUSE["VALUE"]
    assert driver.run(stub.KEY, [4, 4, 4], 0)[0] == 0
    assert driver.run(stub.ONE, [1], 1) == (0, [13])


def test_zeroise_and_self_test(driver):
    assert driver.run(stub.KEY, [1, 2, 3], 0) == (0, [])
    words = (ctypes.c_uint32 * 24)(*range(24))
    assert driver.call("send", stub.ECHO, words, ctypes.c_size_t(24)) == 0
    assert driver.call("zeroise") == 0
    assert driver.run(stub.ONE, [5], 1)[0] == CAUSE["SETUP"]
    assert driver.call("selftest") == 0
    assert driver.run(stub.ONE, [5], 1)[0] == CAUSE["SETUP"]
    assert driver.run(stub.KEY, [1, 2, 3], 0) == (0, []) and driver.run(stub.ONE, [5], 1) == (0, [11])


def test_a_failed_self_test_is_an_error(library, folder):
    class Failed(Driver):
        def read(self, offset):
            status = register_map(stub.DEVICE)["STATUS"]
            passed = next(f for f in status.fields if f.name == "passed").mask
            return super().read(offset) & (~passed if offset == status.offset else 0xFFFFFFFF)

    driver = Failed(library, BusSimulator((folder / "bus.v").read_text(), stub.DEVICE, BUS))
    driver.device.patience = 2000
    assert driver.run(stub.KEY, [1, 2, 3], 0) == (0, [])
    jobs = driver.bus.read(register_map(stub.DEVICE)["JOBS"].offset)
    assert [driver.call("selftest") for _ in range(2)] == [SELFTEST, SELFTEST]
    assert (
        driver.run(stub.ONE, [5], 1)[0]
        == driver.run(stub.KEY, [1, 2, 3], 0)[0]
        == driver.call("open", None)
        == SELFTEST
    )
    assert driver.call("zeroise") == 0 and driver.run(stub.ONE, [5], 1)[0] == SELFTEST
    assert driver.bus.read(register_map(stub.DEVICE)["JOBS"].offset) == jobs
    driver.bus.reset(1)
    assert driver.call("open", None) == driver.run(stub.KEY, [1, 2, 3], 0)[0] == 0
    assert driver.run(stub.ONE, [5], 1) == (0, [11])


def test_interrupts(driver):
    driver.call("interrupts", 1, 0)
    assert driver.run(stub.KEY, [1, 2, 3], 0)[0] == 0
    words = (ctypes.c_uint32 * 1)(7)
    assert driver.call("send", stub.ONE, words, ctypes.c_size_t(1)) == 0
    assert driver.bus.wait(1000, interrupt=True) < 200
    assert driver.call("receive", words, ctypes.c_size_t(1)) == 0 and words[0] == 13
    assert driver.bus.wait(100, interrupt=True) == 100


def test_another_device_is_refused(library, folder):
    class Other(Driver):
        def read(self, offset):
            return super().read(offset) + (offset == register_map(stub.DEVICE)["DIGEST"].offset)

    driver = Other(library, BusSimulator((folder / "bus.v").read_text(), stub.DEVICE, BUS))
    assert driver.call("open", None) == DEVICE
