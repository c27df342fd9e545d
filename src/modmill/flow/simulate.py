# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Cycle-accurate simulation of a core: Verilator -> C++ -> shared library -> ctypes.

Operands are handed over in one batch and the handshake is driven inside the library (`harness.cpp`), with pauses of
the producer and stalls of the consumer on request. Registers and memories without contents start from random values.
Compiled libraries are kept in the cache folder under a digest of all that went into them.
"""

import ctypes
import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path

from modmill.contract import PORTS
from modmill.flow import tools

Loads = Sequence[tuple[int, Sequence[int]]]
"""Words of stream k, and before which operands they come: (0, words) for those before all."""
DEFAULT_TIMEOUT = 1_000_000
"""Cycles without any event at the ports after which a run gives up."""

_STEP_CYCLES = 100_000  # between two looks at Ctrl-C
_SPLIT_STATEMENTS = 20_000  # size of one C++ file that Verilator writes
_SEPARATE_BYTES = 50_000  # C++ files above this size are compiled on their own, in parallel
_VERILATOR = (
    "--cc", "-O3", "--no-timing", "-Wno-fatal", "-Wno-lint", "-Wno-style",
    "--x-assign", "unique", "--x-initial", "unique", "--prefix", "Vmodel", "--Mdir", "cpp",
    "--output-split", str(_SPLIT_STATEMENTS),
)  # fmt: skip
_FAST = ("-O2",)
_SLOW = ("-O0", "-fno-sanitize=all")  # for what runs once; it halves the compile time of those files
_CXX = (
    "-fPIC", "-fvisibility=hidden", "-std=c++17", "-DVL_TIME_CONTEXT", "-DVERILATOR=1", "-DVM_COVERAGE=0",
    "-DVM_SC=0", "-DVM_TIMING=0", "-DVM_TRACE=0", "-DVM_TRACE_FST=0", "-DVM_TRACE_VCD=0", "-DVM_TRACE_SAIF=0",
)  # fmt: skip
_RUNTIME = ("verilated", "verilated_threads")
_ABSENT = {"i_b": "no_operand", "k_valid": "no_valid", "k_ready": "no_ready", "k_m": "no_word"}
_FAULTS = (
    "o_valid dropped before o_ready",
    "o_r changed while waiting for o_ready",
    "a result without an operand",
    "o_valid high straight after reset",
    "operands accepted before the modulus was loaded",
    "a word of the modulus accepted before all results were taken",
)


@dataclass(frozen=True)
class Widths:
    """Widths in bits of i_a, i_b (0: there is none), o_r and k_m (0: there is no stream k)."""

    a: int
    b: int
    r: int
    k: int = 0

    def __post_init__(self) -> None:
        for name, bits in (("a", self.a), ("b", self.b), ("r", self.r), ("k", self.k)):
            if bits < 1 and (name, bits) not in (("b", 0), ("k", 0)):
                raise ValueError(f"width of {name} must be at least 1 bit, not {bits}")


@dataclass(frozen=True)
class Run:
    """What one simulation showed. Cycle 0 is the first cycle after reset; nothing is offered in it.

    The k-th entries belong together: the operands were accepted at the end of cycle `accepted[k]`, the result was
    first valid in cycle `valid[k]` and was taken at the end of cycle `taken[k]`. `cycles` ends with the last result
    taken. `loaded` has the cycles at whose ends the words of stream k were accepted. `violations` lists faults of the
    handshake, one line each; with a timeout `results` is short.
    """

    results: list[int]
    accepted: list[int]
    valid: list[int]
    taken: list[int]
    cycles: int
    violations: list[str]
    loaded: list[int] = field(default_factory=list)

    @property
    def latencies(self) -> list[int]:
        """Cycles from accepting each pair of operands to its result being valid."""
        return [valid - accepted for valid, accepted in zip(self.valid, self.accepted, strict=False)]


class _Job(ctypes.Structure):  # the same layout stands in harness.cpp
    _fields_ = [
        ("operands", ctypes.c_uint64),
        ("a", ctypes.c_char_p),
        ("b", ctypes.c_char_p),
        ("words", ctypes.c_uint64),
        ("k", ctypes.c_char_p),
        ("before", ctypes.POINTER(ctypes.c_uint64)),
        ("gap", ctypes.c_uint32),
        ("stall", ctypes.c_uint32),
        ("seed", ctypes.c_uint64),
        ("timeout", ctypes.c_uint64),
        ("r", ctypes.POINTER(ctypes.c_uint32)),
        ("accepted", ctypes.POINTER(ctypes.c_uint64)),
        ("valid", ctypes.POINTER(ctypes.c_uint64)),
        ("taken", ctypes.POINTER(ctypes.c_uint64)),
        ("loaded", ctypes.POINTER(ctypes.c_uint64)),
        ("loaded_count", ctypes.c_uint64),
        ("accepted_count", ctypes.c_uint64),
        ("valid_count", ctypes.c_uint64),
        ("taken_count", ctypes.c_uint64),
        ("cycles", ctypes.c_uint64),
        ("timed_out", ctypes.c_uint64),
        ("faults", ctypes.c_uint64 * len(_FAULTS)),
        ("first", ctypes.c_uint64 * len(_FAULTS)),
    ]


class Simulator:
    """A core compiled for simulation.

    `verilog` is the text of the core, `top` its module, `widths` those of its ports. With `instances=2` the library
    holds two cores side by side (for `run_pair`). `cache=False` compiles anew. The first use on a machine takes a few
    seconds more, because Verilator's runtime is compiled too.

    Raises ToolError when the text does not compile.
    """

    def __init__(
        self, verilog: str, *, top: str = "core", widths: Widths, cache: bool = True, instances: int = 1
    ) -> None:
        if instances not in (1, 2):
            raise ValueError(f"instances must be 1 or 2, not {instances}")
        self.widths = widths
        self.instances = instances
        source = _Source(verilog, top, widths, instances)
        self.library = library(source.full_verilog, source.full_top, source.harness, cache=cache)
        self._functions = ctypes.CDLL(str(self.library))
        self._functions.modmill_start.argtypes = [ctypes.POINTER(_Job)]
        self._functions.modmill_start.restype = ctypes.c_void_p
        self._functions.modmill_step.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
        self._functions.modmill_end.argtypes = [ctypes.c_void_p]

    def run(
        self,
        a: Sequence[int],
        b: Sequence[int],
        *,
        loads: Loads = (),
        gap: float = 0.0,
        stall: float = 0.0,
        seed: int = 1,
        timeout: int = DEFAULT_TIMEOUT,
    ) -> Run:
        """Power up, reset, feed all operands and collect the results.

        `gap` is the probability that the producer pauses before an operand, `stall` the probability per cycle that
        the consumer begins to hold o_ready low; both last one cycle or a burst, and one stall in four waits for a
        result and then holds it. While i_valid is low the operands are noise. `seed` settles all of it and the
        registers' first values. `timeout` counts cycles without an event. `loads` lists (k, words): the words that
        stream k brings before the k-th operands, which are offered meanwhile and must wait.

        Raises ValueError for operands that do not fit the ports and for probabilities outside [0, 1).
        """
        if self.instances != 1:
            raise ValueError("this simulator holds two cores: use run_pair")
        return self._run([(a, b)], loads, gap, stall, seed, timeout)[0]

    def run_pair(
        self,
        first: tuple[Sequence[int], Sequence[int]],
        second: tuple[Sequence[int], Sequence[int]],
        *,
        loads: Loads = (),
        gap: float = 0.0,
        stall: float = 0.0,
        seed: int = 1,
        timeout: int = DEFAULT_TIMEOUT,
    ) -> tuple[Run, Run]:
        """As `run`, for two cores in one simulation, each with operands, pauses and stalls of its own.

        ``loads`` are for both.
        """
        if self.instances != 2:
            raise ValueError("this simulator holds one core: build it with instances=2")
        one, two = self._run([first, second], loads, gap, stall, seed, timeout)
        return one, two

    def _run(
        self,
        operands: Sequence[tuple[Sequence[int], Sequence[int]]],
        loads: Loads,
        gap: float,
        stall: float,
        seed: int,
        timeout: int,
    ) -> list[Run]:
        for name, probability in (("gap", gap), ("stall", stall)):
            if not 0 <= probability < 1:
                raise ValueError(f"{name} must be in [0, 1), not {probability}")
        stream = [(place, word) for place, words in loads for word in words]
        if stream and not self.widths.k:
            raise ValueError("this core has no stream k")
        k_words = _packed("k", [word for _, word in stream], self.widths.k)
        before = (ctypes.c_uint64 * max(1, len(stream)))(*(place for place, _ in stream))
        jobs = (_Job * len(operands))()
        buffers = []
        for k, (a, b) in enumerate(operands):
            if len(a) != len(b):
                raise ValueError(f"as many operands b as a are needed, not {len(b)} and {len(a)}")
            r = (ctypes.c_uint32 * max(1, len(a) * _words(self.widths.r)))()
            times = [(ctypes.c_uint64 * max(1, len(a)))() for _ in range(3)]
            times.append((ctypes.c_uint64 * max(1, len(stream)))())
            packed = _packed("a", a, self.widths.a), _packed("b", b, self.widths.b)
            chances = int(gap * 2**32), int(stall * 2**32)
            jobs[k] = _Job(
                len(a), *packed, len(stream), k_words, before, *chances, (2 * seed + k) % 2**64, timeout, r, *times
            )
            buffers.append((packed, r, times))
        simulation = self._functions.modmill_start(jobs)
        try:
            while not self._functions.modmill_step(simulation, _STEP_CYCLES):
                pass
        finally:
            self._functions.modmill_end(simulation)
        return [_result(job, r, times, self.widths.r) for job, (_, r, times) in zip(jobs, buffers, strict=True)]


def _words(bits: int) -> int:
    return -(-bits // 32)


def _packed(name: str, values: Sequence[int], bits: int) -> bytes:
    size = 4 * max(1, _words(bits))
    for k, value in enumerate(values):
        if value < 0 or value >> bits:
            raise ValueError(f"operand {name}[{k}] = {value} does not fit {bits} bits")
    return b"".join(int(value).to_bytes(size, "little") for value in values)


def _result(job: _Job, r: "ctypes.Array[ctypes.c_uint32]", times: list, bits: int) -> Run:
    size = 4 * _words(bits)
    raw = bytes(r)
    accepted, valid, taken, loaded = times
    violations = [
        f"{text} ({count} times, first in cycle {first})"
        for text, count, first in zip(_FAULTS, job.faults, job.first, strict=True)
        if count
    ]
    if job.timed_out:
        violations.append(
            f"timeout: {job.taken_count} results of {job.operands} operands ({job.accepted_count} accepted), "
            f"nothing happened for {job.timeout} cycles"
        )
    return Run(
        results=[int.from_bytes(raw[k * size : (k + 1) * size], "little") for k in range(job.taken_count)],
        accepted=list(accepted[: job.accepted_count]),
        valid=list(valid[: job.valid_count]),
        taken=list(taken[: job.taken_count]),
        cycles=job.cycles,
        violations=violations,
        loaded=list(loaded[: job.loaded_count]),
    )


@dataclass(frozen=True)
class _Source:
    """All that determines a compiled library."""

    verilog: str
    top: str
    widths: Widths
    instances: int

    @property
    def full_top(self) -> str:
        return self.top if self.instances == 1 else "modmill_pair"

    @property
    def full_verilog(self) -> str:
        return self.verilog if self.instances == 1 else self.verilog + self._pair()

    @cached_property
    def harness(self) -> str:
        suffixes = [""] if self.instances == 1 else ["_0", "_1"]
        benches = " ".join(
            f"bench[{k}] = std::make_unique<TheBench>({', '.join(self._pin(port, suffix) for port in PORTS[2:])});"
            for k, suffix in enumerate(suffixes)
        )
        settings = {"INSTANCES": str(self.instances), "MODMILL_BENCHES": benches}
        for name, port, bits in (
            ("K", "k_m", self.widths.k),
            ("A", "i_a", self.widths.a),
            ("B", "i_b", self.widths.b),
            ("R", "o_r", self.widths.r),
        ):
            settings[f"{name}_WORDS"] = str(max(1, _words(bits)))
            settings[f"{name}_LAST"] = f"{(1 << ((bits - 1) % 32 + 1)) - 1:#x}u" if bits else "0u"
            settings[f"MODMILL_{name}"] = f"std::declval<Vmodel>().{port}{suffixes[0]}" if bits else _ABSENT[port]
        defines = "".join(f"#define {name} {value}\n" for name, value in settings.items())
        return defines + resources.files("modmill.flow").joinpath("harness.cpp").read_text()

    def _pin(self, port: str, suffix: str) -> str:
        there = self.widths.b if port == "i_b" else self.widths.k if port.startswith("k_") else 1
        return f"top.{port}{suffix}" if there else _ABSENT[port]

    def _pair(self) -> str:
        ports = {
            "i_valid": ("input", 1), "i_ready": ("output", 1), "i_a": ("input", self.widths.a),
            "i_b": ("input", self.widths.b), "o_valid": ("output", 1), "o_ready": ("input", 1),
            "o_r": ("output", self.widths.r),
        }  # fmt: skip
        if not self.widths.b:
            del ports["i_b"]
        if self.widths.k:
            ports |= {"k_valid": ("input", 1), "k_ready": ("output", 1), "k_m": ("input", self.widths.k)}
        lines = ["module modmill_pair(input clk, input rst"]
        for k in range(2):
            lines += [f"  , {way} [{bits - 1}:0] {port}_{k}" for port, (way, bits) in ports.items()]
        lines.append(");")
        for k in range(2):
            connections = ", ".join(f".{port}({port}_{k})" for port in ports)
            lines.append(f"  {self.top} core_{k}(.clk(clk), .rst(rst), {connections});")
        return "\n" + "\n".join([*lines, "endmodule", ""])


def library(verilog: str, top: str, harness: str, *, cache: bool = True) -> Path:
    """The shared library of a design and the C++ text that drives it, compiled unless it is in the cache.

    In ``harness`` the model is the class Vmodel of Vmodel.h. Raises ToolError when the text does not compile.
    """
    versions = [tools.version(tool) for tool in ("verilator", "zig")]
    parts = [verilog, top, harness, versions, _VERILATOR, _FAST, _SLOW, _CXX]
    kept = tools.cache_dir() / "simulators" / f"{hashlib.sha256(json.dumps(parts).encode()).hexdigest()}.so"
    if not cache or not kept.exists():
        _compile(verilog, top, harness, kept)
    return kept


def _compile(verilog: str, top: str, harness: str, library: Path) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="modmill-simulate-") as name, ThreadPoolExecutor(_jobs()) as pool:
        folder = Path(name)
        runtime = pool.submit(_runtime_objects)
        (folder / "core.v").write_text(verilog)
        command = tools.verilator(*_VERILATOR, "--top-module", top, "core.v")
        tools.run(command, name="verilator", cwd=folder, environment=tools.verilator_environment())
        files = sorted((folder / "cpp").glob("*.cpp"))
        large = [file for file in files if file.stat().st_size > _SEPARATE_BYTES]
        small = "".join(f'#include "{file.name}"\n' for file in files if file not in large)
        (folder / "cpp" / "modmill.cpp").write_text(harness + small)
        large.sort(key=lambda file: -file.stat().st_size)
        objects = list(pool.map(_object, [*large, folder / "cpp" / "modmill.cpp"]))
        linked = folder / "library.so"
        command = tools.zig("c++", "-shared", "-s", "-o", str(linked), *map(str, [*objects, *runtime.result()]))
        tools.run(command, name="zig", cwd=folder)
        _put(linked, library)


def _jobs() -> int:
    return max(1, len(os.sched_getaffinity(0)))


def _object(file: Path, target: Path | None = None) -> Path:
    target = target or file.with_suffix(".o")
    include = tools.verilator_root() / "include"
    flags = [
        *(_SLOW if "__Slow" in file.name else _FAST),
        *_CXX,
        f"-I{include}",
        f"-I{include / 'vltstd'}",
        f"-I{file.parent}",
    ]
    # Objects are kept under our own digest, so Zig's copy of each of them goes away with the folder.
    environment = {"ZIG_LOCAL_CACHE_DIR": str(target.parent / "zig")}
    tools.run(tools.zig("c++", "-c", *flags, str(file), "-o", str(target)), name="zig", environment=environment)
    return target


def _runtime_objects() -> list[Path]:
    """Verilator's runtime, compiled once per machine."""
    key = json.dumps([tools.version("verilator"), tools.version("zig"), _FAST, _CXX])
    kept = tools.cache_dir() / "verilator-runtime" / hashlib.sha256(key.encode()).hexdigest()[:16]
    kept.mkdir(parents=True, exist_ok=True)
    for name in _RUNTIME:
        if not (kept / f"{name}.o").exists():
            with tempfile.TemporaryDirectory(prefix="modmill-simulate-") as folder:
                built = _object(tools.verilator_root() / "include" / f"{name}.cpp", Path(folder, f"{name}.o"))
                _put(built, kept / f"{name}.o")
    return [kept / f"{name}.o" for name in _RUNTIME]


def _put(file: Path, target: Path) -> None:
    """Copy a file so that other processes see either nothing or all of it."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name)
    with os.fdopen(handle, "wb") as output:
        output.write(file.read_bytes())
    os.replace(name, target)
