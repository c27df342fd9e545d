# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A SoC of LiteX with VexRiscv and a core of Modmill behind its bus, in LiteX's simulation: python3 sim.py DIR MAIN.c

DIR is what `modmill build`, `ecc build` or `rsa build` wrote with --bus wishbone or axi4-lite. MAIN.c has
`int main(void)`; it includes litex.h of this folder, for the console, the address and the interrupt of the core. Its
driver and calls are compiled along. The simulation ends with main, and its last line is "status" with main's value.

Needs the packages litex, pythondata-cpu-vexriscv and pythondata-misc-tapcfg, Verilator, a C++ compiler, the headers of
libevent, json-c and zlib, and a C compiler for RV32IM: that of the variable RISCV_CC, or riscv64-unknown-elf-gcc.
"""

import importlib.util
import os
import shlex
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from litex.build.generic_platform import Pins, Subsignal
from litex.build.io import CRG
from litex.build.sim import SimPlatform
from litex.build.sim.config import SimConfig
from litex.gen import LiteXModule
from litex.soc.integration import export
from litex.soc.integration.soc_core import SoCCore
from litex.soc.interconnect.csr import CSRStorage
from migen import Display, Finish, If

HERE = Path(__file__).resolve().parent
COMPILER = "riscv64-unknown-elf-gcc -march=rv32im -mabi=ilp32"
RAM = 0x40000000
RAM_SIZE = 0x20000
PADS = [
    ("sys_clk", 0, Pins(1)),
    ("serial", 0, *(Subsignal(f"{way}_{name}", Pins(bits)) for way in ("source", "sink")
                    for name, bits in (("valid", 1), ("ready", 1), ("data", 8)))),
]  # fmt: skip


class End(LiteXModule):
    """A register that ends the simulation with a status."""

    def __init__(self):
        self.status = CSRStorage(8)
        self.sync += If(self.status.re, Display("status %d", self.status.storage), Finish())


class Soc(SoCCore):
    """VexRiscv, memory from which it starts, the console, and a core."""

    def __init__(self, add):
        platform = SimPlatform("SIM", PADS)
        self.crg = CRG(platform.request("sys_clk"))
        SoCCore.__init__(
            self, platform, clk_freq=1_000_000, cpu_type="vexriscv", cpu_reset_address=RAM, uart_name="sim",
            integrated_main_ram_size=RAM_SIZE, with_timer=False, ident="", ident_version=False,
        )  # fmt: skip
        self.end = End()
        add(self)


def compiled(soc, folder, main, work):
    """The words of the firmware."""
    for name, text in (
        ("csr.h", export.get_csr_header(soc.csr.regions, soc.constants, with_access_functions=False)),
        ("mem.h", export.get_mem_header(soc.mem_regions)),
        ("soc.h", export.get_soc_header(soc.constants, with_access_functions=False)),
    ):
        (work / name).write_text(text)
    sources = [HERE / "start.S", main, *sorted(folder.glob("*.c"))]
    command = [
        *shlex.split(os.environ.get("RISCV_CC", COMPILER)), "-Os", "-std=c99", "-Wall", "-Wextra", "-ffreestanding",
        "-fno-builtin", "-nostdlib", "-static", f"-I{work}", f"-I{HERE}", f"-I{folder}", "-T", HERE / "link.ld",
        *sources, "-o", work / "main.elf",
    ]  # fmt: skip
    subprocess.run(command, check=True)
    return words_of((work / "main.elf").read_bytes())


def words_of(elf):
    """The words that a program in ELF loads from the start of the memory on."""
    (table,), (size, count), memory = struct.unpack_from("<I", elf, 28), struct.unpack_from("<HH", elf, 42), bytearray()
    for k in range(count):
        kind, offset, _, address, length = struct.unpack_from("<5I", elf, table + k * size)
        if kind == 1 and length:
            memory.extend(bytes(max(0, address - RAM + length - len(memory))))
            memory[address - RAM : address - RAM + length] = elf[offset : offset + length]
    memory.extend(bytes(-len(memory) % 4))
    return list(struct.unpack(f"<{len(memory) // 4}I", memory))


def main():
    """Build and run."""
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    folder, source = (Path(text).resolve() for text in sys.argv[1:])
    found = list(folder.glob("*_litex.py"))
    if len(found) != 1:
        sys.exit(f"{folder} has no description for LiteX; build it with --bus wishbone or --bus axi4-lite")
    spec = importlib.util.spec_from_file_location(found[0].stem, found[0])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    soc = Soc(getattr(module, f"add_{found[0].stem.removesuffix('_litex')}"))
    soc.finalize()
    config = SimConfig()
    config.add_clocker("sys_clk", freq_hz=1_000_000)
    config.add_module("serial2console", "serial")
    with tempfile.TemporaryDirectory(prefix="modmill-litex-") as name:
        soc.init_ram("main_ram", compiled(soc, folder, source, Path(name)))
        soc.build(build_dir=name, sim_config=config, opt_level="O1", interactive=False, verbose=False)


if __name__ == "__main__":
    main()
