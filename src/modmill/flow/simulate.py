# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Cycle-accurate simulation of a core.

All operands are passed in one batch; the compiled library (`harness.cpp`) drives the handshake, with optional pauses of
the producer and stalls of the consumer.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from modmill.contract import PORTS, Contract
from modmill.flow.library import Library, Start, StartJob, chances, violations

Loads = Sequence[tuple[int, Sequence[int]]]
"""(k, words): the words of stream k that come before operand pair k; (0, words) come first."""
DEFAULT_TIMEOUT = 1_000_000
"""A run ends after this number of cycles without an event at the ports."""

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
    """Widths in bits of i_a, i_b (0: no port i_b), o_r and k_m (0: no stream k).

    Raises ValueError for any other width below 1.
    """

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
    """The outcome of one simulation. Cycle 0 is the first cycle after reset (the last reset, if a run is restarted).

    Entry k of each list belongs to operand pair k: first valid in cycle `offered[k]`, accepted at the end of cycle
    `accepted[k]`; its result was first valid in cycle `valid[k]` and taken at the end of cycle `taken[k]`. `cycles`
    ends with the last result taken. `loaded`: the cycles at whose ends the words of stream k were accepted.
    `violations`: faults of the handshake, one line each; after a timeout `results` is short.
    """

    results: list[int]
    accepted: list[int]
    valid: list[int]
    taken: list[int]
    cycles: int
    violations: list[str]
    loaded: list[int] = field(default_factory=list)
    offered: list[int] = field(default_factory=list)

    @property
    def latencies(self) -> list[int]:
        """Cycles from each accepted operand pair to its valid result."""
        return [valid - accepted for valid, accepted in zip(self.valid, self.accepted, strict=False)]


class _Job(ctypes.Structure):  # has the same layout in harness.cpp
    _fields_ = [
        ("start", StartJob),
        ("operands", ctypes.c_uint64),
        ("a", ctypes.c_char_p),
        ("b", ctypes.c_char_p),
        ("words", ctypes.c_uint64),
        ("k", ctypes.c_char_p),
        ("before", ctypes.POINTER(ctypes.c_uint64)),
        ("gap", ctypes.c_uint32),
        ("stall", ctypes.c_uint32),
        ("hold", ctypes.c_uint32),
        ("timeout", ctypes.c_uint64),
        ("r", ctypes.POINTER(ctypes.c_uint32)),
        ("offered", ctypes.POINTER(ctypes.c_uint64)),
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

    `verilog`: the text of the core; `top`: its module; `widths`: the widths of its ports. `instances=2` simulates two
    cores side by side (for `run_pair`). `cache=False` ignores a compiled library in the cache. `power_up`: least cycles
    of the reset after power-up, as in the contract. The first use on a machine takes a few seconds longer, because
    Verilator's runtime is compiled too.

    Raises ToolError if the text does not compile.
    """

    def __init__(
        self,
        verilog: str,
        *,
        top: str = "core",
        widths: Widths,
        cache: bool = True,
        instances: int = 1,
        power_up: int = 1,
    ) -> None:
        self.widths = widths
        self.instances = instances
        self._power_up = power_up
        self._library = Library(
            verilog, top, "harness.cpp", _macros(widths), _ports(widths), _pins(widths), _Job, instances=instances,
            cache=cache,
        )  # fmt: skip

    @property
    def library(self) -> Path:
        """The compiled file."""
        return self._library.path

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
        start: Start = Start(),  # noqa: B008 - frozen
    ) -> Run:
        """Power up, reset, feed all operands and collect the results.

        `gap` is the probability that the producer pauses before an operand, `stall` the probability per cycle that
        the consumer begins to hold o_ready low; both last one cycle or a burst, and one stall in four waits for a
        result and then holds it. While i_valid is low the operands are noise. `seed` determines all random choices and
        the initial register contents; `start`: how the run begins. `timeout` counts cycles without an event. `loads`
        lists (k, words): the words of stream k before operand pair k, which is offered meanwhile and must wait.

        Raises ValueError for operands that do not fit the ports and for probabilities outside [0, 1).
        """
        if self.instances != 1:
            raise ValueError("this simulator holds two cores; call run_pair")
        return self._run([(a, b)], loads, gap, stall, seed, timeout, [start])[0]

    def run_pair(
        self,
        first: tuple[Sequence[int], Sequence[int]],
        second: tuple[Sequence[int], Sequence[int]],
        *,
        loads: Loads = (),
        gap: float = 0.0,
        stall: float = 0.0,
        hold: int = 0,
        seed: int = 1,
        timeout: int = DEFAULT_TIMEOUT,
        starts: tuple[Start, Start] = (Start(), Start()),
    ) -> tuple[Run, Run]:
        """As `run`, for two cores in one simulation, each with its own operands, pauses and stalls.

        ``loads`` are for both. ``starts``: only ``first`` of the second one is used, because the cores share their
        reset. ``hold``: longest stall in cycles; 0: as in `run`.
        """
        if self.instances != 2:
            raise ValueError("this simulator holds one core; run_pair needs instances=2")
        one, two = self._run([first, second], loads, gap, stall, seed, timeout, starts, hold)
        return one, two

    def _run(
        self,
        operands: Sequence[tuple[Sequence[int], Sequence[int]]],
        loads: Loads,
        gap: float,
        stall: float,
        seed: int,
        timeout: int,
        starts: Sequence[Start],
        hold: int = 0,
    ) -> list[Run]:
        pauses = chances(gap=gap, stall=stall)
        stream = [(place, word) for place, words in loads for word in words]
        if stream and not self.widths.k:
            raise ValueError("the modulus of this core is built in: it has no stream k, so loads must be empty")
        k_words = _packed("k", [word for _, word in stream], self.widths.k)
        before = (ctypes.c_uint64 * max(1, len(stream)))(*(place for place, _ in stream))
        jobs = (_Job * len(operands))()
        buffers = []
        for k, (a, b) in enumerate(operands):
            if len(a) != len(b):
                raise ValueError(f"a and b must have as many operands, not {len(a)} and {len(b)}")
            r = (ctypes.c_uint32 * max(1, len(a) * _words(self.widths.r)))()
            times = [(ctypes.c_uint64 * max(1, len(a)))() for _ in range(4)]
            times.append((ctypes.c_uint64 * max(1, len(stream)))())
            packed = _packed("a", a, self.widths.a), _packed("b", b, self.widths.b)
            start = starts[k].job(2 * seed + k, self._power_up)
            jobs[k] = _Job(start, len(a), *packed, len(stream), k_words, before, *pauses, hold, timeout, r, *times)
            buffers.append((packed, r, times))
        self._library.run(jobs)
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
    offered, accepted, valid, taken, loaded = times
    missing = f"{job.taken_count} results of {job.operands} operands ({job.accepted_count} accepted)"
    return Run(
        results=[int.from_bytes(raw[k * size : (k + 1) * size], "little") for k in range(job.taken_count)],
        accepted=list(accepted[: job.accepted_count]),
        valid=list(valid[: job.valid_count]),
        taken=list(taken[: job.taken_count]),
        cycles=job.cycles,
        violations=violations(job, _FAULTS, missing),
        loaded=list(loaded[: job.loaded_count]),
        offered=list(offered[: job.accepted_count]),
    )


def _ports(widths: Widths) -> dict[str, tuple[str, int]]:
    ports = {
        "i_valid": ("input", 1), "i_ready": ("output", 1), "i_a": ("input", widths.a), "i_b": ("input", widths.b),
        "o_valid": ("output", 1), "o_ready": ("input", 1), "o_r": ("output", widths.r),
    }  # fmt: skip
    if not widths.b:
        del ports["i_b"]
    if widths.k:
        ports |= {"k_valid": ("input", 1), "k_ready": ("output", 1), "k_m": ("input", widths.k)}
    return ports


def _pins(widths: Widths) -> list[str]:
    there = _ports(widths)
    return [f"top.{port}{{}}" if port in there else _ABSENT[port] for port in PORTS[2:]]


def _macros(widths: Widths) -> dict[str, str]:
    macros = {}
    for name, port in (("K", "k_m"), ("A", "i_a"), ("B", "i_b"), ("R", "o_r")):
        bits = getattr(widths, name.lower())
        macros[f"{name}_WORDS"] = str(max(1, _words(bits)))
        macros[f"{name}_LAST"] = f"{(1 << ((bits - 1) % 32 + 1)) - 1:#x}u" if bits else "0u"
        macros[f"MODMILL_{name}"] = f"std::declval<Vmodel>().{port}{{}}" if bits else _ABSENT[port]
    return macros


def widths(contract: Contract) -> Widths:
    """The port widths of a core, for `Simulator`."""
    second = contract.operand.width if contract.operands == 2 else 0
    return Widths(contract.operand.width, second, contract.result.width, contract.load.width if contract.load else 0)


def loads(contract: Contract, place: int = 0) -> Loads:
    """The words that load the contract's modulus before operand pair ``place``; empty if the modulus is built in."""
    return [(place, contract.load.words)] if contract.load else []
