# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Cycle-accurate simulation of a core.

All operands are passed in one batch; the compiled library (`harness.cpp`) drives the handshake, with optional pauses of
the producer and stalls of the consumer.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

from modmill.contract import ALARM, PORTS, Contract
from modmill.flow import library
from modmill.flow.library import U32, U64, U64S, Library, Pace, Start, StartJob

Loads = Sequence[tuple[int, Sequence[int]]]
"""(k, words): the words of stream k that come before operand pair k; (0, words) come first."""
Pairs = tuple[Sequence[int], Sequence[int]]
"""Operands a and operands b."""
_ABSENT = {"i_b": "no_operand", "k_valid": "no_valid", "k_ready": "no_ready", "k_m": "no_word", ALARM: "no_alarm"}
FAULTS = (
    "o_valid dropped before o_ready",
    "o_r changed while waiting for o_ready",
    "a result without an operand",
    "o_valid high straight after reset",
    "operands accepted before the modulus was loaded",
    "a word of the modulus accepted before all results were taken",
    ALARM_HIGH := f"{ALARM} high",
    ALARM_FELL := f"{ALARM} low again without a reset",
)
"""Violations of the handshake; an alarm, and one that does not stay."""


@dataclass(frozen=True)
class Widths:
    """Widths in bits of i_a, i_b (0: no port i_b), o_r and k_m (0: no stream k). ``alarm``: whether there is o_alarm.

    Raises ValueError for any other width below 1.
    """

    a: int
    b: int
    r: int
    k: int = 0
    alarm: bool = False

    def __post_init__(self) -> None:
        for name, bits in (("a", self.a), ("b", self.b), ("r", self.r), ("k", self.k)):
            if bits < 1 and (name, bits) not in (("b", 0), ("k", 0)):
                raise ValueError(f"width of {name} must be at least 1 bit, not {bits}")

    def stream(self, loads: Loads) -> list[tuple[int, int]]:
        """(k, word) for each word in ``loads``. Raises ValueError if there is no stream k or a word does not fit."""
        found = [(place, word) for place, words in loads for word in words]
        if found and not self.k:
            raise ValueError("the modulus of this core is built in: it has no stream k, so loads must be empty")
        _require_fit("k", [word for _, word in found], self.k)
        return found

    def require_fit(self, a: Sequence[int], b: Sequence[int]) -> None:
        """Raise ValueError unless these are as many operands a and b, and each fits its port (no port: 0 only)."""
        if len(a) != len(b):
            raise ValueError(f"a and b must have the same number of operands, not {len(a)} and {len(b)}")
        _require_fit("a", a, self.a)
        _require_fit("b", b, self.b)


@dataclass(frozen=True)
class Run:
    """The outcome of one simulation. Cycle 0 is the first cycle after reset (the last reset, if a run is restarted).

    Entry k of each list belongs to operand pair k: first valid in cycle `offered[k]`, accepted at the end of cycle
    `accepted[k]`; its result was first valid in cycle `valid[k]` and taken at the end of cycle `taken[k]`. `cycles`
    ends with the last result taken. `loaded`: the cycles at whose ends the words of stream k were accepted.
    `violations`: those of FAULTS, one line each; after a timeout `results` is short.
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
    _fields_ = library.fields(
        (StartJob, "start"), (U64, "operands"), (ctypes.c_char_p, "a b"), (U64, "words"), (ctypes.c_char_p, "k"),
        (U64S, "before"), (U32, "gap stall hold"), (U64, "timeout"), (ctypes.POINTER(U32), "r"),
        (U64S, "offered accepted valid taken loaded"),
        (U64, "loaded_count accepted_count valid_count taken_count cycles timed_out"),
        (U64 * len(FAULTS), "faults first"),
    )  # fmt: skip


class CorePace(Pace, total=False):
    """`Pace`, and the words of stream k.

    ``loads``: they come before the operand pairs, which are offered meanwhile and must wait. ``hold``: longest stall in
    cycles; 0: a stall lasts one cycle or a burst, and one in four waits for a result and then holds it.
    """

    loads: Loads
    hold: int


class Simulator:
    """A core compiled for simulation.

    `verilog`: the text of the core; `top`: its module; `widths`: the widths of its ports. `instances=2` simulates two
    cores side by side (for `run_pair`). `power_up`: least cycles of the reset after power-up, as in the contract. The
    first use on a machine takes a few seconds longer, because Verilator's runtime is compiled too.

    Raises ToolError if the text does not compile.
    """

    def __init__(
        self, verilog: str, *, top: str = "core", widths: Widths, instances: int = 1, power_up: int = 1
    ) -> None:
        self._widths, self._power_up = widths, power_up
        self._library = Library(
            verilog, top, "harness.cpp", _macros(widths), _ports(widths), _pins(widths), _Job, instances
        )

    def run(self, a: Sequence[int], b: Sequence[int], *, start: Start | None = None, **pace: Unpack[CorePace]) -> Run:
        """Power up, reset, feed all operands and collect the results; ``start``: how the run begins.

        While i_valid is low the operands are noise. Raises ValueError for operands that do not fit the ports and for
        probabilities outside [0, 1).
        """
        return self._run([(a, b)], [start or Start()], **pace)[0]

    def run_pair(
        self, first: Pairs, second: Pairs, *, starts: tuple[Start, Start] = (Start(), Start()), **pace: Unpack[CorePace]
    ) -> tuple[Run, Run]:
        """As `run`, for two cores in one simulation, each with its own operands, pauses and stalls.

        ``loads`` are for both. ``starts``: only ``first`` of the second one is used, because the cores share their
        reset.
        """
        one, two = self._run([first, second], starts, **pace)
        return one, two

    def _run(
        self, operands: Sequence[Pairs], starts: Sequence[Start], *, loads: Loads = (),
        gap: float = 0.0, stall: float = 0.0, hold: int = 0, seed: int = 1, timeout: int = library.DEFAULT_TIMEOUT,
    ) -> list[Run]:  # fmt: skip
        pauses = library.chances(gap=gap, stall=stall)
        stream = self._widths.stream(loads)
        k_words = _packed([word for _, word in stream], self._widths.k)
        before = library.array(U64, len(stream), (place for place, _ in stream))
        jobs = (_Job * len(operands))()
        buffers = []
        for k, (a, b) in enumerate(operands):
            self._widths.require_fit(a, b)
            packed = _packed(a, self._widths.a), _packed(b, self._widths.b)
            r = library.array(U32, len(a) * _words(self._widths.r))
            times = [library.array(U64, count) for count in (*[len(a)] * 4, len(stream))]
            start = starts[k].job(2 * seed + k, self._power_up)
            jobs[k] = _Job(start, len(a), *packed, len(stream), k_words, before, *pauses, hold, timeout, r, *times)
            buffers.append((packed, r, times))
        self._library.run(jobs)
        return [_result(job, r, times, self._widths.r) for job, (_, r, times) in zip(jobs, buffers, strict=True)]


def _words(bits: int) -> int:
    return -(-bits // 32)


def _require_fit(name: str, values: Sequence[int], bits: int) -> None:
    for k, value in enumerate(values):
        if value < 0 or value >> bits:
            raise ValueError(f"operand {name}[{k}] = {value} does not fit {bits} bits")


def _packed(values: Sequence[int], bits: int) -> bytes:
    size = 4 * max(1, _words(bits))
    return b"".join(int(value).to_bytes(size, "little") for value in values)


def _result(job: _Job, r: "ctypes.Array[Any]", times: list, bits: int) -> Run:
    size, raw = 4 * _words(bits), bytes(r)
    counts = job.accepted_count, job.accepted_count, job.valid_count, job.taken_count, job.loaded_count
    offered, accepted, valid, taken, loaded = (list(x[:n]) for x, n in zip(times, counts, strict=True))
    results = [int.from_bytes(raw[k * size : (k + 1) * size], "little") for k in range(job.taken_count)]
    missing = f"{job.taken_count} results of {job.operands} operands ({job.accepted_count} accepted)"
    return Run(results, accepted, valid, taken, job.cycles, library.violations(job, FAULTS, missing), loaded, offered)


def _ports(widths: Widths) -> dict[str, tuple[str, int]]:
    ports = {
        "i_valid": ("input", 1), "i_ready": ("output", 1), "i_a": ("input", widths.a), "i_b": ("input", widths.b),
        "o_valid": ("output", 1), "o_ready": ("input", 1), "o_r": ("output", widths.r),
        "k_valid": ("input", 1), "k_ready": ("output", 1), "k_m": ("input", widths.k), ALARM: ("output", 1),
    }  # fmt: skip
    absent = ("i_b",) * (not widths.b) + ("k_valid", "k_ready", "k_m") * (not widths.k) + (ALARM,) * (not widths.alarm)
    return {name: port for name, port in ports.items() if name not in absent}


def _pins(widths: Widths) -> list[str]:
    there = _ports(widths)
    return [f"top.{port}{{}}" if port in there else _ABSENT[port] for port in (*PORTS[2:], ALARM)]


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
    load = contract.load.width if contract.load else 0
    return Widths(contract.operand.width, second, contract.result.width, load, contract.alarm)


def loads(contract: Contract, place: int = 0) -> Loads:
    """The words that load the contract's modulus before operand pair ``place``; empty if the modulus is built in."""
    return [(place, contract.load.words)] if contract.load else []


def patience(contract: Contract) -> int:
    """A timeout in cycles that is longer than any pause of a core with this contract."""
    load = contract.load.cycles if contract.load else 0
    return 8 * (contract.timing.latency + contract.timing.interval + load) + 200
