# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A core and its benches, compiled: Verilator -> C++ -> shared library -> ctypes.

A harness is a C++ file that defines Job, one job of one bench, and TheBench, which drives the ports in every cycle and
records its observations in the job; `model.cpp` comes before it, `simulation.cpp` after it. Registers and memories
without contents start from random values. Compiled libraries are kept in the cache folder under a digest of all their
sources and options.
"""

import ctypes
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, TypedDict

from modmill.flow import tools

PAIR = "modmill_pair"
"""The module with two cores side by side."""
DEFAULT_TIMEOUT = 1_000_000
"""A run ends after this number of cycles without an event at the ports."""
U32, U64 = ctypes.c_uint32, ctypes.c_uint64
U64S = ctypes.POINTER(U64)
_STEP_CYCLES = 100_000  # cycles between two checks for Ctrl-C
_SPLIT_STATEMENTS = 20_000  # size of one C++ file that Verilator writes
_SPLIT_FUNCTIONS = 500  # statements of one C++ function; GCC takes minutes for functions of 2,000
_SEPARATE_BYTES = 200_000  # C++ files above this size are compiled on their own, in parallel
_VERILATOR = (
    "--cc", "-O3", "--no-timing", "-Wno-fatal", "-Wno-lint", "-Wno-style",
    "--x-assign", "unique", "--x-initial", "unique", "--prefix", "Vmodel", "--Mdir", "cpp",
    "--output-split", str(_SPLIT_STATEMENTS), "--output-split-cfuncs", str(_SPLIT_FUNCTIONS),
)  # fmt: skip
_TABLE = "__VdfgBinToOneHot_Tab_"  # a table of Verilator, with a bit for each number that a net is compared with
_MOST_READS = 2_000  # of such tables in one C++ file
_FAST = ("-Os",)  # compiles sooner than -O2
_SLOW = ("-O0",)  # for code that runs once; it halves the compile time of those files
_CXX = (
    "-fPIC", "-fno-sanitize=all", "-fvisibility=hidden", "-std=c++17", "-DVL_TIME_CONTEXT", "-DVERILATOR=1",
    "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TIMING=0", "-DVM_TRACE=0", "-DVM_TRACE_FST=0", "-DVM_TRACE_VCD=0",
    "-DVM_TRACE_SAIF=0",
)  # fmt: skip
_PROGRAM = ("-O3", "-fPIC", "-fno-sanitize=all", "-fvisibility=hidden", "-std=c++17")
_RUNTIME = ("verilated", "verilated_threads")
_HEADERS = ("verilated.h", "cstdint", "cstring", "memory", "random")
"""Headers of most C++ files of a model; they take longer to read than the files, so they are precompiled."""
_TEMPLATES = "-fpch-instantiate-templates"
"""Option of Clang for such headers: their templates are instantiated once, which takes as long as to compile a small
model."""


class Pace(TypedDict, total=False):
    """How a run goes on.

    ``gap``: probability that the producer pauses before an operand or word; ``stall``: probability per cycle that the
    consumer begins to hold o_ready low; both in [0, 1), 0 by default, and both last one cycle or a burst. ``seed``: of
    all random choices and the initial register contents. ``timeout``: limit of cycles without an event at the ports.
    """

    gap: float
    stall: float
    seed: int
    timeout: int


@dataclass(frozen=True)
class Start:
    """How a run begins: power-up with random contents of all registers and memories, then a reset.

    ``reset``: cycles of a reset, at least 1; the one after power-up is longer if the core needs it. ``first``: the
    first cycle after the reset, counted from 0, in which operands or words are offered. ``noise``: whether the core
    runs on random inputs before that reset (after another one of the same length). ``restart``: the cycle in which a
    reset aborts the run, which then starts again; 0: never. Raises ValueError for a reset of 0 and for negative
    numbers.
    """

    reset: int = 1
    first: int = 1
    noise: bool = True
    restart: int = 0

    def __post_init__(self) -> None:
        if self.reset < 1 or self.first < 0 or self.restart < 0:
            raise ValueError(f"a reset must last at least 1 cycle, first and restart must be at least 0, not {self}")

    def job(self, seed: int, power_up: int) -> "StartJob":
        """The start for the compiled bench; ``power_up``: least cycles of the reset after power-up."""
        return StartJob(seed % 2**64, self.reset, power_up, self.first, self.noise, self.restart)


def array(kind: Any, count: int, values: Iterable[int] = ()) -> "ctypes.Array[Any]":
    """A ctypes array of ``count`` numbers, at least one, which begins with ``values``."""
    return (kind * max(1, count))(*values)


def fields(*groups: tuple[type, str]) -> list[tuple[str, type]]:
    """Fields of a ctypes structure, from groups of a type and the names of its fields, separated by spaces."""
    return [(name, kind) for kind, names in groups for name in names.split()]


class StartJob(ctypes.Structure):
    """A start and a seed; has the same layout in model.cpp."""

    _fields_ = fields((U64, "seed reset power_up first noise restart"))


class Library:
    """A model in one or two instances, each with its bench.

    ``harness``: a C++ file of this folder. ``defines``: macros for it. ``ports``: direction and width in bits of every
    port except clk and rst. ``pins``: constructor arguments of a bench, ``top.NAME{}``, where ``{}`` stands for the
    suffix of an instance's ports. ``job``: the ctypes structure of the job, which begins with a StartJob. Raises
    ToolError if the text does not compile, ValueError for another number of instances.
    """

    def __init__(
        self, verilog: str, top: str, harness: str, defines: Mapping[str, str], ports: Mapping[str, tuple[str, int]],
        pins: Sequence[str], job: type[ctypes.Structure], instances: int,
    ) -> None:  # fmt: skip
        if instances not in (1, 2):
            raise ValueError(f"instances must be 1 or 2, not {instances}")
        self._instances = instances
        suffixes = [""] if instances == 1 else ["_0", "_1"]
        if instances == 2:
            verilog, top = verilog + _pair(top, ports), PAIR
        benches = " ".join(
            f"bench[{k}] = std::make_unique<TheBench>({', '.join(pin.format(suffix) for pin in pins)});"
            for k, suffix in enumerate(suffixes)
        )
        macros = {"INSTANCES": str(instances), "MODMILL_BENCHES": benches}
        macros |= {name: value.format(suffixes[0]) for name, value in defines.items()}
        texts = [f"#define {name} {value}\n" for name, value in macros.items()]
        folder = resources.files("modmill.flow")
        texts += [(folder / name).read_text() for name in ("model.cpp", harness, "simulation.cpp")]
        self._functions = ctypes.CDLL(str(library(verilog, top, "".join(texts))))
        self._functions.modmill_start.argtypes = [ctypes.POINTER(job)]
        self._functions.modmill_start.restype = ctypes.c_void_p
        self._functions.modmill_step.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
        self._functions.modmill_end.argtypes = [ctypes.c_void_p]

    def run(self, jobs: "ctypes.Array[Any]") -> None:
        """Power up, reset, and run until every bench is done; the results are in the jobs, one for each instance.

        Raises ValueError for another number of jobs.
        """
        if len(jobs) != self._instances:
            raise ValueError(f"this simulator holds {self._instances} instances, not {len(jobs)} (run: 1, run_pair: 2)")
        tools.step("simulating")
        simulation = self._functions.modmill_start(jobs)
        try:
            while not self._functions.modmill_step(simulation, _STEP_CYCLES):
                pass
        finally:
            self._functions.modmill_end(simulation)


def chances(**probabilities: float) -> list[int]:
    """Probabilities in units of 2^-32. Raises ValueError for one outside [0, 1)."""
    for name, probability in probabilities.items():
        if not 0 <= probability < 1:
            raise ValueError(f"{name} must be in [0, 1), not {probability}")
    return [int(probability * 2**32) for probability in probabilities.values()]


def violations(job: Any, texts: Sequence[str], missing: str) -> list[str]:
    """A job's faults, one line each. ``texts``: in the order of its counters; ``missing``: what a timeout left
    undone."""
    counted = zip(texts, job.faults, job.first, strict=True)
    found = [f"{text} ({count} times, first in cycle {first})" for text, count, first in counted if count]
    return found + [f"timeout: {missing}, nothing happened for {job.timeout} cycles"] * bool(job.timed_out)


def _pair(top: str, ports: Mapping[str, tuple[str, int]]) -> str:
    lines = ["", f"module {PAIR}(input clk, input rst"]
    lines += [f"  , {way} [{bits - 1}:0] {port}_{k}" for k in range(2) for port, (way, bits) in ports.items()]
    pins = [", ".join(f".{port}({port}_{k})" for port in ports) for k in range(2)]
    cores = [f"  {top} core_{k}(.clk(clk), .rst(rst), {pins[k]});" for k in range(2)]
    return "\n".join([*lines, ");", *cores, "endmodule", ""])


def library(verilog: str, top: str, harness: str) -> Path:
    """The shared library of a design and its C++ harness, compiled unless it is in the cache.

    In ``harness`` the model is the class Vmodel of Vmodel.h. Raises ToolError if the text does not compile.
    """
    versions = [tools.version("verilator"), tools.compiler().version]
    parts = [verilog, top, harness, versions, _VERILATOR, _FAST, _SLOW, _CXX]
    kept = tools.cache_dir() / "simulators" / f"{hashlib.sha256(json.dumps(parts).encode()).hexdigest()}.so"
    if not kept.exists():
        _compile(verilog, top, harness, kept)
    return kept


def prepare() -> None:
    """Compile what every simulator needs, unless it is in the caches: headers, Verilator's runtime, and the C++
    library, which Zig compiles when it links for the first time. Raises ToolError if that fails."""
    for flags in (_FAST, _SLOW):
        _headers(flags)
    with tempfile.TemporaryDirectory(prefix="modmill-prepare-") as name:
        made = map(str, _runtime_objects())
        command = [*tools.compiler().command, "-shared", "-s", "-o", str(Path(name) / "runtime.so"), *made]
        tools.run(command, name="c++", environment=_zig_caches(Path(name)))


def compiled(package: str, name: str) -> ctypes.CDLL:
    """A C++ file of a package as a library, compiled unless it is in the cache. Raises ToolError if it does not
    compile."""
    source = resources.files(package) / name
    command = [*tools.compiler().command, *_PROGRAM, "-shared", "-s"]
    folder = _once([source.read_text(), tools.compiler().version, _PROGRAM])

    def make(target: Path) -> None:
        with resources.as_file(source) as file:
            whole = [*command, str(file), "-o", str(target)]
            tools.run(whole, name="c++", environment=_zig_caches(target.parent))

    return ctypes.CDLL(str(_kept(folder / Path(name).with_suffix(".so").name, make)))


def _compile(verilog: str, top: str, harness: str, library: Path) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    processors = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="modmill-simulate-") as name, ThreadPoolExecutor(processors) as pool:
        folder = Path(name)
        runtime = pool.submit(_runtime_objects)
        (folder / "core.v").write_text(verilog)
        files = _translated(folder, top)
        large = [file for file in files if file.stat().st_size > _SEPARATE_BYTES]
        small = "".join(f'#include "{file.name}"\n' for file in files if file not in large)
        (folder / "cpp" / "modmill.cpp").write_text(harness + small)
        large.sort(key=lambda file: -file.stat().st_size)
        objects = list(pool.map(_object, [*large, folder / "cpp" / "modmill.cpp"]))
        linked = folder / "library.so"
        made = map(str, [*objects, *runtime.result()])
        command = [*tools.compiler().command, "-shared", "-s", "-o", str(linked), *made]
        tools.run(command, name="c++", cwd=folder, environment=_zig_caches(folder))
        tools.keep(linked, library)


def _translated(folder: Path, top: str) -> list[Path]:
    """The C++ files that Verilator makes of core.v in a folder.

    If a counter is compared with hundreds of numbers, conditions read hundreds of entries of a table in one expression,
    for which GCC takes minutes and gigabytes. Then the text is translated again without such tables."""
    for options in ((), ("-fno-dfg",)):
        command = tools.verilator(*_VERILATOR, *options, "--top-module", top, "core.v")
        tools.run(command, name="verilator", cwd=folder)
        files = sorted((folder / "cpp").glob("*.cpp"))
        if all(file.read_text().count(_TABLE) <= _MOST_READS for file in files):
            break
        for file in files if not options else ():
            file.unlink()
    return files


def _object(file: Path) -> Path:
    """The object file of a C++ file of a model, in the same folder."""
    flags = _SLOW if "__Slow" in file.name else _FAST
    target = file.with_suffix(".o")
    headers = _headers(flags)
    include = ("-include", str(headers.with_suffix(""))) if tools.compiler().gnu else ("-include-pch", str(headers))
    _compile_file(file, target, options=(*flags, "-c", *include))
    return target


def _compile_file(file: Path, target: Path, options: Sequence[str]) -> None:
    include = tools.verilator_root() / "include"
    paths = (include, include / "vltstd", file.parent)
    places = [f"-I{path}" for path in paths]
    command = [*tools.compiler().command, *options, *_CXX, *places, str(file), "-o", str(target)]
    tools.run(command, name="c++", environment=_zig_caches(target.parent))


def _zig_caches(folder: Path) -> dict[str, str]:
    """Where Zig keeps what it compiles. Objects are kept under our own digest, so their cache is deleted with
    ``folder``. The C++ library is kept for each installation of Zig: two that share a cache compile it anew by turns,
    for up to a minute each time."""
    library = _once(["zig", str(tools.compiler().program)])
    return {"ZIG_LOCAL_CACHE_DIR": str(folder / "zig"), "ZIG_GLOBAL_CACHE_DIR": str(library)}


def _runtime_objects() -> list[Path]:
    """Verilator's runtime, compiled once on each machine."""
    folder = _once([tools.version("verilator"), tools.compiler().version, _FAST, _CXX])
    sources = [tools.verilator_root() / "include" / f"{name}.cpp" for name in _RUNTIME]
    options = (*_FAST, "-c")
    return [_kept(folder / f"{s.stem}.o", partial(_compile_file, s, options=options)) for s in sources]


def _headers(flags: Sequence[str]) -> Path:
    """The headers, compiled once for each installation of Verilator and compiler, which requires the same files."""
    files = [tools.verilator_root() / "include" / "verilated.h", tools.compiler().program]
    options = (*flags, *(() if tools.compiler().gnu else (_TEMPLATES,)), "-x", "c++-header")
    folder = _once([*((str(file), file.stat().st_mtime_ns) for file in files), options, _CXX, _HEADERS])
    text = "".join(f"#include <{header}>\n" for header in _HEADERS)
    header = _kept(folder / "headers.h", lambda path: path.write_text(text))
    made = folder / ("headers.h.gch" if tools.compiler().gnu else "headers.h.pch")
    return _kept(made, partial(_compile_file, header, options=options))


def _once(key: Sequence[Any]) -> Path:
    """The folder for files that are compiled once."""
    digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16]
    folder = tools.cache_dir() / "verilator-runtime" / digest
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()  # a compiled header contains its path, and a cache may have several


def _kept(target: Path, make: Callable[[Path], object]) -> Path:
    """The file that ``make`` writes, unless it exists. It is written only once: a compiled header requires the same
    file."""
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            with tempfile.TemporaryDirectory(prefix="modmill-simulate-") as name:
                made = Path(name, target.name)
                make(made)
                tools.keep(made, target)
    return target
