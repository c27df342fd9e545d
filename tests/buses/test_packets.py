# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Files and drivers of a front of packets: what they say, and what C and Python do with a simulated device."""

import re
import runpy
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET

import pytest
import stub_engine as stub
from test_serve import STRICT

from marks import long
from modmill.buses.adapters import find_bus
from modmill.buses.files import bus_texts
from modmill.buses.front import whole
from modmill.buses.registers import SELFTEST, ZEROISE, register_map
from modmill.buses.serve import Server, SocketBus
from modmill.buses.simulate import BusFault, BusSimulator, PacketDriver
from modmill.buses.stream import CONTROLS, PACKET_CYCLES, STREAM_CAUSES, WORDS
from modmill.cores.behind_bus import Exchange, bus_faults, loading, product
from modmill.cores.multiplier.build import build
from modmill.cores.multiplier.operands import judged, randoms
from modmill.cores.rsa.machine import engine
from modmill.soc.system import System
from modmill.studies.bus import Subject, measure

BUS = find_bus("axi-stream")
CAUSES = [name for name, _ in STREAM_CAUSES]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("packets")
    stub.write(made, BUS)
    return made


def device(folder):
    return PacketDriver(stub.DEVICE, BusSimulator((folder / "bus.v").read_text(), stub.DEVICE, BUS))


# Each function reads one file: headers, causes, and the fields of STATUS with their lowest bit and number of bits.


def of_c(folder):
    text = (folder / "stub.h").read_text()
    headers = dict(re.findall(r"define STUB_(?:RUN|PACKET)_([A-Z]+) (\w+)u", text))
    causes = re.findall(r"define STUB_ERROR_(\w+) (\d+) ", text)
    fields = re.findall(r"define STUB_STATUS_(\w+)_LSB (\d+)u\n.*_MASK (0x\w+)u", text)
    return (
        {name.lower(): int(number, 0) for name, number in headers.items()},
        ["NONE", *(name for name, number in sorted(causes, key=lambda x: int(x[1])) if int(number) < 255)],
        {name.lower(): (int(low), (int(mask, 16) >> int(low)).bit_length()) for name, low, mask in fields},
    )


def of_python(folder):
    found = runpy.run_path(str(folder / "stub.py"))
    fields = {name: field[:2] for name, field in found["REGISTERS"]["STATUS"]["fields"].items()}
    return {name: c[0] for name, c in found["COMMANDS"].items()} | found["CONTROLS"], list(found["CAUSES"]), fields


def of_markdown(folder):
    text = (folder / "packets.md").read_text()
    headers, status, causes = (text.split(f"\n| {name}")[1].split("\n\n")[0] for name in ("header", "bits", "cause"))
    fields = re.findall(r"^\| (\d+):(\d+) \| (\w+)", status, re.MULTILINE)
    return (
        {name: int(n, 0) for n, name in re.findall(r"^\| (\w+) \| (\w+) \| ", headers, re.MULTILINE) if n[0].isdigit()},
        re.findall(r"^\| \d+ \| (\w+) \|", causes, re.MULTILINE),
        {name: (int(low), int(high) - int(low) + 1) for high, low, name in fields},
    )


READERS = {"stub.h": of_c, "stub.py": of_python, "packets.md": of_markdown}


def described(folder):
    """Whether each file says what the description does."""
    status = {f.name: (f.low, f.width) for f in register_map(stub.DEVICE)["STATUS"].fields}
    model = {c.name: c.number for c in stub.DEVICE.commands} | CONTROLS, CAUSES, status
    return {name: read(folder) == model for name, read in READERS.items()}


def test_three_files_say_the_same(folder):
    assert described(folder) == dict.fromkeys(READERS, True)


@pytest.mark.parametrize(
    ("file", "right", "wrong"),
    [
        ("stub.h", "PACKET_ABORT 0x101u", "PACKET_ABORT 0x111u"), ("stub.h", "ERROR_PART 9", "ERROR_PART 11"),
        ("stub.h", "STATUS_DONE_LSB 3u", "STATUS_DONE_LSB 4u"), ("stub.py", '"echo": (1,', '"echo": (2,'),
        ("stub.py", '"cause": (8, 4,', '"cause": (9, 4,'), ("packets.md", "| 0x103 | zeroise", "| 0x104 | zeroise"),
        ("packets.md", "| 10 | ABORTED", "| 10 | ENDED"), ("packets.md", "| 11:8 | cause", "| 12:9 | cause"),
    ],
)  # fmt: skip
def test_a_planted_shift_is_caught(file, right, wrong, folder, tmp_path):
    for name in READERS:
        text = (folder / name).read_text()
        (tmp_path / name).write_text(text.replace(right, wrong) if name == file else text)
    assert (tmp_path / file).read_text() != (folder / file).read_text()
    assert described(tmp_path) == {name: name != file for name in READERS}


def test_ipxact_has_both_interfaces(folder):
    space = "{http://www.accellera.org/XMLSchema/IPXACT/1685-2014}"
    found = {}
    for each in ET.parse(folder / "bus.xml").iter(f"{space}busInterface"):
        kind = next(side for side in ("slave", "master") if each.find(f"{space}{side}") is not None)
        names = [n.text for pair in each.iter(f"{space}portMap") for n in pair.iter(f"{space}name")]
        found[each.find(f"{space}name").text] = kind, dict(zip(names[1::2], names[::2], strict=True))
    assert {name: kind for name, (kind, _) in found.items()} == {"s_axis": "slave", "m_axis": "master"}
    mapped = {port: logical for _, ports in found.values() for port, logical in ports.items()}
    assert mapped == {name: name[7:].upper() for name in BUS.adapter.ports}
    assert not list(ET.parse(folder / "bus.xml").iter(f"{space}memoryMap"))


def test_python_encodes_and_decodes(folder):
    """Bytes of packets through the simulated device."""
    known, sent = runpy.run_path(str(folder / "stub.py")), device(folder)

    def exchange(header, words=()):
        packet = known["encode"](header, words)
        sent.put([int.from_bytes(packet[k : k + 4], "little") for k in range(0, len(packet), 4)])
        return known["decode"](b"".join(word.to_bytes(4, "little") for word in sent.get()))

    status, words = exchange(known["CONTROLS"]["identify"])
    digest = register_map(stub.DEVICE)["DIGEST"]
    assert status["ready"] == 1 and len(words) == WORDS and words[digest.offset // 4] == digest.reset
    assert exchange(known["COMMANDS"]["one"][0], [5])[0]["cause"] == "SETUP"
    assert exchange(known["COMMANDS"]["setup"][0], [1, 2, 3])[0]["loaded"] == 1
    assert exchange(known["COMMANDS"]["one"][0], [5])[1] == [11]
    for wrong in (b"", bytes(7)):
        with pytest.raises(ValueError, match="at least one word"):
            known["decode"](wrong)


def test_the_driver_of_the_check(folder):
    driver = device(folder)
    assert driver.act(ZEROISE, "zeroised")[0] == 1 and driver.act(SELFTEST, "passed")[0] == 1
    with pytest.raises(BusFault, match="command 2: SETUP"):
        driver.run(stub.ONE, [5], 1)
    driver.run(stub.KEY, [1, 2, 3], 0)
    with pytest.raises(BusFault, match="1 of 2 words"):
        driver.run(stub.ONE, [5], 2)


@pytest.fixture
def served(folder, tmp_path):
    """A server in a thread; it ends with the process."""
    server = Server(stub.DEVICE, BusSimulator((folder / "bus.v").read_text(), stub.DEVICE, BUS), tmp_path / "s", idle=3)
    threading.Thread(target=server.run, daemon=True).start()
    return server


PROGRAM = """
#include "stub.h"
#include <stdio.h>
int main(int count, char **path)
{
    modmill_socket link;
    stub_device device;
    const uint32_t key[3] = {1, 2, 3}, one[1] = {5};
    uint32_t answer[2];

    if (count < 2 || modmill_connect(&link, path[1]) != 0)
        return 99;
    device.base = modmill_base(&link);
    STUB_PUT(&device, STUB_RUN_ECHO, 0); /* of a packet that has no end */
    printf("%d", stub_open(&device, modmill_base(&link)));
    printf(" %d", stub_run(&device, STUB_RUN_ONE, one, 1, answer, 1));
    printf(" %d", stub_run(&device, STUB_RUN_SETUP, key, 3, NULL, 0));
    printf(" %d", stub_run(&device, STUB_RUN_ONE, one, 1, answer, 1));
    printf(" %u", (unsigned)answer[0]);
    printf(" %d", stub_run(&device, STUB_RUN_ONE, one, 1, answer, 2));
    printf(" %d", stub_run(&device, STUB_RUN_ECHO, key, 3, answer, 2));
    stub_send(&device, STUB_RUN_SETUP, key, 3); /* an answer that nobody takes */
    printf(" %d", stub_zeroise(&device));
    printf(" %u", (unsigned)((device.status & STUB_STATUS_ZEROISED_MASK) != 0u));
    printf(" %d", stub_selftest(&device));
    device.failed = 1; /* as after another self-test */
    printf(" %d", stub_run(&device, STUB_RUN_SETUP, key, 3, NULL, 0));
    printf(" %d", stub_selftest(&device));
    device.patience = 3;
    printf(" %d\\n", stub_receive(&device, NULL, 0));
    modmill_close(&link);
    return stub_open(&device, modmill_base(&link)) == STUB_ERROR_TIMEOUT && link.failed ? 0 : 98;
}
"""


def test_the_driver_in_c(served, folder):
    """Through the socket: errors, another length, answers of former packets, a timeout."""
    (folder / "main.c").write_text(PROGRAM)
    command = [sys.executable, "-m", "ziglang", "cc", *STRICT, "-DMODMILL_SOCKET", "stub.c", "main.c", "-o", "main"]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run([folder / "main", served.path], capture_output=True, text=True, timeout=60)
    setup = CAUSES.index("SETUP")
    assert (done.returncode, done.stdout) == (0, f"0 {setup} 0 0 11 257 {setup} 0 1 0 255 255 256\n")
    driver = PacketDriver(stub.DEVICE, bus := SocketBus(served.path))
    assert driver.run(stub.KEY, [1, 2, 3], 0) == [] and driver.run(stub.ONE, [5], 1) == [11]
    bus.close()


@pytest.mark.parametrize("kind", ["multiplier", long("engine"), long("separate")])
def test_a_core_behind_packets_is_checked(kind):
    """Vectors, errors, an abort, zeroising compared with a new device, the self-test; planted faults in the front."""
    if kind == "multiplier":
        core = build("mcivor", "2^61-1", bus="axi-stream", loadable=True)
        products = judged(core.contract, randoms(core.contract, 2, 1))
        exchanges = [*loading(core.contract), *(product(core.contract, e.a, e.b, e.value) for e in products)]
    else:
        more = {"bus_clock": "separate"} if kind == "separate" else {}
        core = engine("mcivor", width=64, bits=17, threads=1, cores=2, bus="axi-stream", **more)
        exchanges = [*core.exchanges()]
    text = whole(core.device, BUS, core.verilog)
    assert list(bus_faults(text, core.device, BUS, exchanges)) == []


@pytest.mark.parametrize(
    ("right", "wrong", "caught"),
    [
        (r"entered <= [^;]*;", "entered <= 0;", "no end|the cause"),
        long(
            r"(?s)(module stub_front_packets\b.*?)endmodule",
            r"\1reg [31:0] kept; always @(posedge clk) if (taken) kept <= data; endmodule", "zeroising",
        ),
        long(r"aborted <= [^;]*;", "aborted <= 0;", "ended is NONE"),
    ],
)  # fmt: skip
def test_a_planted_fault_is_caught_by_a_check(right, wrong, caught):
    right_answer = stub.answer(6, stub.ECHO, words := [*range(1, 25)]).__eq__
    text = whole(stub.DEVICE, BUS, stub.VERILOG.replace("initial hold = 0;", "").replace("& ~hold", ""))
    edited, count = re.subn(right, wrong, text)
    assert count
    exchanges = [Exchange(stub.KEY, [1, 2, 3]), Exchange(stub.ECHO, words, 24, right_answer)]
    found = "".join(bus_faults(edited, stub.DEVICE, BUS, exchanges))
    assert found and re.search(caught, found), found


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    core = build("mcivor", "2^61-1", bus="axi-stream", io="plain")
    return core, core.write(tmp_path_factory.mktemp("core") / "made", check=False)


def test_a_core_is_written_and_not_for_a_board(written):
    core, made = written
    names = {path.name for path in made.iterdir()}
    assert {"packets.md", "core_calls.c", "core.c"} <= names
    assert not {"registers.rdl", "registers.md", "modmill_uio.h"} & names
    with pytest.raises(ValueError, match="reach registers; build core with --bus axi4-lite, wishbone, apb, ahb-lite"):
        System.of([(core.device, BUS, (made / "bus.v").read_text())])


@pytest.mark.long
def test_a_core_is_measured(written):
    found = measure(Subject.read(written[1]), "ecp5-85k", synthesis=False)
    assert found.row().about["bus"] == "axi-stream" and found.commands["a product"]["bare"]
    assert found.own["zeroise"] <= found.own["stated"] + PACKET_CYCLES


PRODUCT = """
#include "core_calls.h"
#include <stdio.h>
int main(int count, char **path)
{
    modmill_socket link;
    core_engine engine;
    const uint32_t a[CORE_WORDS] = {0x89abcdefu, 0x01234567u}, b[CORE_WORDS] = {0x76543210u, 0x0edcba98u};
    uint32_t out[CORE_WORDS];
    int error;

    if (count < 2 || modmill_connect(&link, path[1]) != 0)
        return 99;
    error = core_engine_open(&engine, modmill_base(&link));
    if (error == CORE_OK)
        error = core_modmul(&engine, out, a, b);
    printf("%d %lu\\n", error, (unsigned long)out[0] | (unsigned long)out[1] << 32);
    return 0;
}
"""


def test_calls_in_c_over_packets(written, tmp_path):
    """The same calls as above registers, through the socket."""
    core, made = written
    server = Server(core.device, BusSimulator((made / "bus.v").read_text(), core.device, BUS), tmp_path / "s", idle=3)
    threading.Thread(target=server.run, daemon=True).start()
    (made / "main.c").write_text(PRODUCT)
    sources = ["core.c", "core_calls.c", "main.c"]
    command = [sys.executable, "-m", "ziglang", "cc", *STRICT, "-DMODMILL_SOCKET", *sources, "-o", "main"]
    subprocess.run(command, cwd=made, check=True)
    done = subprocess.run([made / "main", server.path], capture_output=True, text=True, timeout=60)
    a, b = 0x0123456789ABCDEF, 0x0EDCBA9876543210
    assert done.stdout == f"0 {a * b % core.contract.p}\n"


def test_texts_name_no_registers_that_do_not_exist():
    text = bus_texts(stub.DEVICE, BUS, stub.VERILOG)["packets.md"]
    assert not re.search("CONTROL|IRQ|DATA_OUT|COMMAND\\.", text)
