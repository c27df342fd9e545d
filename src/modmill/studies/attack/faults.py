# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Simulation of an engine with one fault at a time, in any bit that it remembers.

The registers and memories are those of `state`; `Attacked` compares their sizes with those of the model. A fault is

    flip               one bit is inverted at the start of a cycle
    stuck at 0, at 1   one bit keeps this value from a cycle on until the end
    skip               a register, or a whole memory, misses the first clock edge from a cycle on that would change it

and its outcome

    no effect    all words of the answer are right, and no word follows
    detected     the alarm was high, and no wrong word left before it or in the cycles after it, but words 0 beside it
    withheld     no wrong word left, but the answer is incomplete; whoever waits for it must give up
    released     a wrong word left, or one too many, or a wrong `o_last`
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from modmill.flow import library, tools
from modmill.flow.library import U64, U64S, Start, StartJob
from modmill.report.attack_tables import OUTCOMES
from modmill.studies.attack.state import Instance, named, ports_macro, state_macro

KINDS = ("flip", "stuck at 0", "stuck at 1", "skip")
_SOURCES = ("modmill.flow", "model.cpp"), *(("modmill.studies.attack", name) for name in ("state.cpp", "faults.cpp"))
_SNAPSHOTS = 512
"""Maximum number of snapshots of the run without a fault."""


@dataclass(frozen=True)
class Fault:
    """A fault. ``kind``: of `KINDS`. ``place``: number of the register or memory; ``word``, ``bit``: in it, not used by
    a skip. ``cycle``: from the reset on, counted from 0."""

    kind: str
    place: int
    word: int
    bit: int
    cycle: int


class _Operation(ctypes.Structure):  # has the same layout in faults.cpp
    _fields_ = library.fields(
        (StartJob, "start"), (U64, "words"), (U64S, "i"), (U64, "wanted patience snapshots jumps"), (U64S, "o last"),
        (U64, "taken cycles"),
    )  # fmt: skip


class _Fault(ctypes.Structure):  # has the same layout in faults.cpp
    _fields_ = library.fields((U64, "kind place word bit cycle outcome end"))


class Attacked:
    """An engine with two streams of words, compiled for runs with faults.

    ``verilog``, ``top``: its text and first module; ``alarm``: its output that is high from the cycle on in which it
    finds a fault, if it has one. ``words``: all words at i, sent without a pause; ``wanted``: number of words at o.
    ``patience``: cycles without a word after which an answer counts as withheld. ``power_up``: least cycles of the
    reset.

    `places`: the registers and memories. `key`: digest of netlist, harness and tools. `answer`: the words of the run
    without a fault; `cycles`: its length, from the reset to the last word and a little more. Raises ToolError if the
    text does not compile or an answer is missing.
    """

    def __init__(
        self, verilog: str, top: str, words: Sequence[int], wanted: int, patience: int, *, power_up: int = 1,
        alarm: str = "",
    ) -> None:  # fmt: skip
        text, self.places = named(verilog, top, ports=True)
        harness = [
            state_macro(top, len(self.places)), ports_macro(top, self.places),
            f"#define MODMILL_ALARM {f'model->{alarm}' if alarm else '0'}\n",
            *((resources.files(room) / name).read_text() for room, name in _SOURCES),
        ]  # fmt: skip
        compiled = library.library(text, top, "".join(harness))
        self.key, self._library = compiled.stem, ctypes.CDLL(str(compiled))
        begin, places, run, end = (
            getattr(self._library, f"modmill_{name}") for name in ("begin", "places", "run", "end")
        )
        begin.argtypes, begin.restype = [ctypes.POINTER(_Operation)], ctypes.c_void_p
        places.argtypes, places.restype = [ctypes.c_void_p], U64
        run.argtypes, run.restype = [ctypes.c_void_p, ctypes.POINTER(_Fault), U64], None
        end.argtypes, end.restype = [ctypes.c_void_p], None
        for name in ("words", "bytes"):
            each = getattr(self._library, f"modmill_{name}")
            each.argtypes, each.restype = [ctypes.c_void_p, U64], U64
        self._given = list(words), wanted, patience, power_up
        with self.runner() as runner:
            runner.require_places()
            self.answer, self.cycles = runner.answer, runner.cycles

    def runner(self, seed: int = 1, *, jumps: bool = True) -> Runner:
        """A new instance of the model, for one thread. ``seed``: of the contents of its registers and memories at
        power-up. ``jumps``: cycles in which no port has the address of a wrong word are left out."""
        return Runner(self, seed, jumps)


class Runner(Instance):
    """An instance of the model after its run without a fault; a context manager."""

    def __init__(self, attacked: Attacked, seed: int, jumps: bool) -> None:
        self._attacked, self._library = attacked, attacked._library
        words, wanted, patience, power_up = attacked._given
        self._buffers = library.array(U64, len(words), words), library.array(U64, wanted), library.array(U64, wanted)
        i, o, last = self._buffers
        tools.step("simulating")
        self._operation = _Operation(
            Start().job(seed, power_up), len(words), i, wanted, patience, _SNAPSHOTS, jumps, o, last
        )
        self._simulation = self._library.modmill_begin(ctypes.byref(self._operation))
        self.answer, self.cycles = list(o[: self._operation.taken]), int(self._operation.cycles)
        if self._operation.taken != wanted:
            self.close()
            raise tools.ToolError(f"simulation: {self._operation.taken} of {wanted} words of an answer without a fault")

    def require_places(self) -> None:
        """Raise ToolError unless the model has all registers and memories of the netlist, in their sizes."""
        places, found = self._attacked.places, self._library.modmill_places(self._simulation)
        if found != len(places):
            raise tools.ToolError(f"verilator: {found} of {len(places)} registers and memories are in the model")
        for k, place in enumerate(places):
            words, size = (getattr(self._library, f"modmill_{x}")(self._simulation, k) for x in ("words", "bytes"))
            if words != place.words or 8 * size < place.width:
                raise tools.ToolError(f"verilator: {place.name} has {words} words of at most {8 * size} bits")

    def run(self, faults: Sequence[Fault]) -> list[str]:
        """The outcome of each fault, of `OUTCOMES`. Other threads go on meanwhile."""
        table = (_Fault * max(1, len(faults)))()
        for entry, fault in zip(table, faults, strict=False):
            entry.kind, entry.place, entry.word = KINDS.index(fault.kind), fault.place, fault.word
            entry.bit, entry.cycle = fault.bit, fault.cycle
        self._library.modmill_run(self._simulation, table, len(faults))
        return [OUTCOMES[entry.outcome] for entry in table[: len(faults)]]
