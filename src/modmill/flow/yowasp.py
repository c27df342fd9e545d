# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Start a WebAssembly tool with a larger stack: ``python -P yowasp.py yosys -V``.

Yosys sorts cells by recursion along their chain, and in wasmtime's default stack it traps ("call stack exhausted") with
the chains of a measured core of 1,024 bits. The pages of a stack are used only as deep as it grows. Tools run in the
folder of their files, so this file is started by its path.
"""

import sys
import threading
from collections.abc import Sequence
from pkgutil import resolve_name

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


def start(tool: str, arguments: Sequence[str]) -> int:
    """Run a tool (yosys, nextpnr_FAMILY or ecppack) to its end; return its exit code."""
    package = "nextpnr_ecp5" if tool == "ecppack" else tool
    run = resolve_name(f"yowasp_{package}:run_{tool}")
    threading.stack_size(STACK + _HOST)
    vars(wasmtime)["Config"] = _Config  # yowasp_runtime, which asks for it when it starts, has no option
    return run(arguments)


if __name__ == "__main__":
    sys.exit(start(sys.argv[1], sys.argv[2:]))
