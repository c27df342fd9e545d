# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""C for the processor of a system, compiled by Zig to the words of its memory."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from modmill.flow import tools
from modmill.parts import need
from modmill.soc.system import WORDS

FLAGS = (
    "-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m", "-Os", "-ffreestanding", "-fno-builtin",
    "-fno-sanitize=all", "-fno-stack-protector", "-std=c99", "-Wall", "-Wextra", "-Werror",
)  # fmt: skip
"""Options of `zig cc`."""
START, SCRIPT = "start.S", "link.ld"
"""The source with the reset, which comes first, and the linker script."""


def compiled(texts: Mapping[str, str]) -> list[int]:
    """The words of the memory, from address 0, that the sources in ``texts`` (name -> text) make.

    Raises ToolError if they do not compile or do not fit the memory."""
    need("compiler")
    with tempfile.TemporaryDirectory(prefix="modmill-firmware-") as name:
        folder = Path(name)
        for file, text in texts.items():
            (folder / file).write_text(text, encoding="utf-8")
        sources = [START, *sorted(file for file in texts if file.endswith(".c"))]
        command = [
            str(resources.files("ziglang") / "zig"), "cc", *FLAGS, "-I.", "-include", "board.h", "-nostdlib",
            "-static", "-T", SCRIPT, *sources, "-o", "firmware.elf",
        ]  # fmt: skip
        environment = {"ZIG_LOCAL_CACHE_DIR": str(folder / "zig"), "ZIG_GLOBAL_CACHE_DIR": str(_cache())}
        tools.run(command, name="c++", cwd=folder, environment=environment)
        return words_of_program((folder / "firmware.elf").read_bytes())


def _cache() -> Path:
    """Where Zig keeps its own library for the processor."""
    folder = tools.cache_dir() / "firmware"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def words_of_program(elf: bytes) -> list[int]:
    """The words from address 0 that a program in ELF for a little-endian machine of 32 bits loads.

    Raises ToolError for another file, and for a program that does not fit the memory."""
    if elf[:6] != b"\x7fELF\x01\x01":
        raise tools.ToolError("zig: the firmware is no ELF file of 32 bits")
    (table,) = struct.unpack_from("<I", elf, 28)
    size, count = struct.unpack_from("<HH", elf, 42)
    memory = bytearray()
    for k in range(count):
        kind, offset, _, address, length, reserved = struct.unpack_from("<6I", elf, table + k * size)
        if kind != 1:
            continue
        if address + reserved > 4 * WORDS:
            raise tools.ToolError(f"the firmware needs {address + reserved:,} bytes; the memory has {4 * WORDS:,}")
        memory.extend(bytes(max(0, address + length - len(memory))))
        memory[address : address + length] = elf[offset : offset + length]
    memory.extend(bytes(-len(memory) % 4))
    return list(struct.unpack(f"<{len(memory) // 4}I", memory))
