# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Start a WebAssembly tool with a larger stack: ``python -P yowasp.py yosys -V``.

Yosys sorts cells by recursion along their chain, and in wasmtime's default stack it traps ("call stack exhausted") with
the chains of a measured core of 1,024 bits. The pages of a stack are used only as deep as it grows. Tools run in the
folder of their files, so this file is started by its path.

The runtime finds what it compiled before by a digest of the tool's file. To read and digest all of Yosys at every start
takes long, so the digest here is of the file's line in the RECORD of its package, which has a digest of it.
"""

import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import wasmtime
from wasmtime import _ffi

STACK = 64 << 20
"""Stack of the tool, in bytes."""
_HOST = 1 << 20  # for what the runtime itself needs in the tool's thread


class _Config(wasmtime.Config):
    """The runtime's settings, with the larger stack."""

    def __init__(self) -> None:
        super().__init__()
        _ffi.wasmtime_config_async_stack_size_set(self.ptr(), STACK)  # the stack may not exceed it, nor is it used
        self.max_wasm_stack = STACK


_read = Path.read_bytes


class _Unread(bytes):
    """The line of a file in the RECORD of its package, in place of its content."""

    path: Path


def _of_file(path: Path) -> bytes:
    """The bytes of a file; of a tool those of `_Unread`, if there is such a line."""
    package = path.parent.name
    records = path.parents[1].glob(f"{package}-*.dist-info/RECORD") if path.suffix == ".wasm" else ()
    for line in (line for record in records for line in record.read_text().splitlines()):
        if line.startswith(f"{package}/{path.name},sha256="):
            found = _Unread(line.encode())
            found.path = path
            return found
    return _read(path)


class _Module(wasmtime.Module):
    """The compiled tool; its file is read where it is compiled."""

    def __init__(self, engine: wasmtime.Engine, wasm: Any) -> None:
        super().__init__(engine, _read(wasm.path) if isinstance(wasm, _Unread) else wasm)


def start(tool: str, arguments: Sequence[str]) -> int:
    """Run a tool (yosys, nextpnr_FAMILY or ecppack) to its end; return its exit code."""
    package = "nextpnr_ecp5" if tool == "ecppack" else tool
    run = resolve_name(f"yowasp_{package}:run_{tool}")
    threading.stack_size(STACK + _HOST)
    vars(wasmtime).update(Config=_Config, Module=_Module)  # yowasp_runtime, which asks for them, has no options
    Path.read_bytes = _of_file  # type: ignore[method-assign,assignment]
    return run(arguments)


if __name__ == "__main__":
    sys.exit(start(sys.argv[1], sys.argv[2:]))
