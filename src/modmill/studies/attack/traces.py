# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Toggle traces of a netlist: how many bits change in every cycle of a run, summed over many runs.

A trace has a number for each cycle and each class of `CLASSES`: the Hamming distance of all registers, of all memories,
or of all nets, from the state before the clock edge. Nets change without glitches: each is counted once a cycle. No
trace is stored. For each cycle and class the sums of the first four powers are kept as integers, apart for each group
of runs, so the order of the runs does not matter.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from modmill.flow import library, tools
from modmill.flow.library import U32, U64, U64S, Start, StartJob
from modmill.studies.attack.state import Instance, Place, named, state_macro

CLASSES = ("registers", "memories", "nets")
ALL = "all"
"""The sum of the classes."""
_SOURCES = ("modmill.flow", "model.cpp"), *(("modmill.studies.attack", name) for name in ("state.cpp", "leakage.cpp"))
_MOMENTS = struct.Struct("<qQQqQQ")


@dataclass(frozen=True)
class Stream:
    """A stream of words with valid and ready. ``name``: prefix of both; ``ports``: width in bits of each other port. A
    word is a tuple with a number for each port."""

    name: str
    ports: Mapping[str, int]

    @property
    def size(self) -> int:
        """Numbers of 64 bits that hold a word."""
        return sum(map(_size, self.ports.values()))

    def packed(self, words: Sequence[tuple[int, ...]]) -> list[int]:
        """Words in numbers of 64 bits."""
        mask = (1 << 64) - 1
        return [
            x >> 64 * k & mask
            for word in words
            for x, bits in zip(word, self.ports.values(), strict=True)
            for k in range(_size(bits))
        ]

    def unpacked(self, numbers: Sequence[int]) -> list[tuple[int, ...]]:
        """The words in numbers of 64 bits."""
        left = iter(numbers)
        return [
            tuple(sum(next(left) << 64 * k for k in range(_size(bits))) for bits in self.ports.values())
            for _ in range(len(numbers) // self.size)
        ]

    def macro(self, name: str, how: str) -> str:
        """The macros of its ports for the harness: ``how`` is put or get."""
        at, calls = 0, []
        for port, bits in self.ports.items():
            calls.append(f"{how}(model->{port}, word + {at});")
            at += _size(bits)
        return f"#define {name}(word) do {{ {' '.join(calls)} }} while (0)\n#define {name}_WORDS {self.size}\n"


def _size(bits: int) -> int:
    return -(-bits // 64)


@dataclass(frozen=True)
class Bench:
    """What is simulated: a text and its first module ``top``, with a stream at which words are sent, one at which an
    answer of ``wanted`` words comes, and one at which ``loads`` come once. ``patience``: cycles without a word after
    which a run has failed. ``power_up``: least cycles of the reset."""

    verilog: str
    top: str
    send: Stream
    take: Stream
    load: Stream
    loads: Sequence[tuple[int, ...]]
    wanted: int
    patience: int
    power_up: int = 1


class _Opening(ctypes.Structure):  # has the same layout in leakage.cpp
    _fields_ = library.fields(
        (StartJob, "start"), (U64, "loads"), (U64S, "k"), (U64, "words"), (U64S, "i"), (U64, "wanted patience"),
        (U64S, "kinds"), (U64, "classes cycles"),
    )  # fmt: skip


class _Batch(ctypes.Structure):  # has the same layout in leakage.cpp
    _fields_ = library.fields((U64, "runs"), (U64S, "i groups o seeds late"))


class Sums:
    """Sums of powers of (count - count in the first run), for ``groups`` groups of runs, each class and each cycle."""

    def __init__(self, groups: int, classes: int, cycles: int) -> None:
        self.groups, self.classes, self.cycles = groups, classes, cycles
        self.buffer = ctypes.create_string_buffer(groups * classes * cycles * _MOMENTS.size)

    def of(self, group: int, kind: int) -> Iterator[tuple[int, int, int, int]]:
        """Sums of the powers 1 to 4, a cycle after the other."""
        size = self.cycles * _MOMENTS.size
        at = (group * self.classes + kind) * size
        for first, second, low, high, low4, high4 in _MOMENTS.iter_unpack(memoryview(self.buffer)[at : at + size]):
            yield first, second, low + (high << 64), low4 + (high4 << 64)


class Traced:
    """A netlist compiled for toggle traces. ``first``: words of the first run. ``nets``: whether nets are counted too.

    `places`: registers, memories and nets. `classes`: names of the classes that it has, the last one is `ALL`.
    `cycles`: of a run. `key`: digest of netlist, harness and tools. Raises ToolError if the text does not compile or no
    answer comes.
    """

    def __init__(self, bench: Bench, first: Sequence[tuple[int, ...]], *, nets: bool = False) -> None:
        text, self.places = named(bench.verilog, bench.top, nets=nets)
        load = bench.load.name
        harness = [
            state_macro(bench.top, len(self.places)),
            bench.load.macro("MODMILL_LOAD", "put"), bench.send.macro("MODMILL_SEND", "put"),
            bench.take.macro("MODMILL_TAKE", "get"),
            f"#define MODMILL_LOAD_VALID model->{load}_valid\n#define MODMILL_LOAD_READY model->{load}_ready\n",
            *((resources.files(room) / name).read_text() for room, name in _SOURCES),
        ]  # fmt: skip
        compiled = library.library(text, bench.top, "".join(harness))
        self.key, self._library = compiled.stem, ctypes.CDLL(str(compiled))
        begin, places, bits, run, look, end = (
            getattr(self._library, f"modmill_{name}") for name in ("begin", "places", "bits", "run", "look_at", "end")
        )
        begin.argtypes, begin.restype = [ctypes.POINTER(_Opening)], ctypes.c_void_p
        places.argtypes, places.restype = [ctypes.c_void_p], U64
        bits.argtypes, bits.restype = [ctypes.c_void_p, U64], U64
        run.argtypes, run.restype = [ctypes.c_void_p, ctypes.POINTER(_Batch), ctypes.c_char_p], None
        look.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Batch), U64, ctypes.POINTER(U32)]
        look.restype = None
        end.argtypes, end.restype = [ctypes.c_void_p], None
        self.bench, self.first = bench, list(first)
        self.classes = (*CLASSES[: 2 + nets], ALL)
        with self.runner() as runner:
            runner.require_places()
            self.cycles = runner.cycles

    def sums(self, groups: int) -> Sums:
        """Sums of no runs."""
        return Sums(groups, len(self.classes), self.cycles)

    def kind(self, place: Place) -> int:
        """0 for what never changes, else 1 + the number of its class."""
        return 0 if place.constant else 1 + CLASSES.index("nets" if place.net else _REMEMBERED[place.memory])

    def runner(self) -> Runner:
        """A new instance of the model, for one thread."""
        return Runner(self)


_REMEMBERED = {False: "registers", True: "memories"}


class Runner(Instance):
    """An instance of the model after its first run; a context manager."""

    def __init__(self, traced: Traced) -> None:
        self._traced, self._library, bench = traced, traced._library, traced.bench
        tools.step("simulating")
        loads, sent = bench.load.packed(bench.loads), bench.send.packed(traced.first)
        self._words = len(traced.first)
        self._opening = _Opening(
            Start().job(1, bench.power_up), len(bench.loads), library.array(U64, len(loads), loads), self._words,
            library.array(U64, len(sent), sent), bench.wanted, bench.patience,
            library.array(U64, len(traced.places), map(traced.kind, traced.places)), len(traced.classes) - 1, 0,
        )  # fmt: skip
        self._simulation = self._library.modmill_begin(ctypes.byref(self._opening))
        self.cycles = int(self._opening.cycles)
        if not self.cycles:
            self.close()
            raise tools.ToolError(f"simulation: no answer of {bench.wanted} words in {bench.patience:,} cycles")

    def require_places(self) -> None:
        """Raise ToolError unless the model has all registers, memories and nets, in their sizes."""
        places, found = self._traced.places, self._library.modmill_places(self._simulation)
        if found != len(places):
            raise tools.ToolError(f"verilator: {found} of {len(places)} registers, memories and nets are in the model")
        for k, place in enumerate(places):
            if (bits := self._library.modmill_bits(self._simulation, k)) < place.bits:
                raise tools.ToolError(f"verilator: {place.name} has {bits} of {place.bits} bits")

    def run(
        self, runs: Sequence[Sequence[tuple[int, ...]]], groups: Sequence[int], sums: Sums, seeds: Sequence[int] = ()
    ) -> tuple[list[list[tuple[int, ...]]], list[bool]]:
        """Run with the words of each run, and add its trace to the sums of its group. ``seeds``: of the random words of
        each run, below 2^64, for a model with a port for them. Returns the answers, and for each whether it ended in
        another cycle than that of the first run. Other threads go on meanwhile.

        Raises ValueError for a run of another number of words than the first.
        """
        batch, o, late = self._batch(runs, groups, seeds)
        self._library.modmill_run(self._simulation, ctypes.byref(batch), sums.buffer)
        size = len(o) // len(runs)
        answers = [self._traced.bench.take.unpacked(o[k * size : (k + 1) * size]) for k in range(len(runs))]
        return answers, [bool(x) for x in late[: len(runs)]]

    def look_at(
        self, runs: Sequence[Sequence[tuple[int, ...]]], cycle: int, seeds: Sequence[int] = ()
    ) -> list[list[int]]:
        """The bits that change in this cycle of each run, in every place of `Traced.places`."""
        batch, *_ = self._batch(runs, [0] * len(runs), seeds)
        size = len(self._traced.places)
        into = library.array(U32, len(runs) * size)
        self._library.modmill_look_at(self._simulation, ctypes.byref(batch), cycle, into)
        return [into[k * size : (k + 1) * size] for k in range(len(runs))]

    def _batch(
        self, runs: Sequence[Sequence[tuple[int, ...]]], groups: Sequence[int], seeds: Sequence[int]
    ) -> tuple[_Batch, Any, Any]:
        if any(len(words) != self._words for words in runs):
            raise ValueError(f"a run must have {self._words} words, as the first")
        bench = self._traced.bench
        sent = [number for words in runs for number in bench.send.packed(words)]
        o, late = library.array(U64, len(runs) * bench.wanted * bench.take.size), library.array(U64, len(runs))
        given = library.array(U64, len(sent), sent), library.array(U64, len(runs), groups)
        return _Batch(len(runs), *given, o, library.array(U64, len(runs), seeds), late), o, late
