# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Search of all states that a reset reaches, one by one: for control of few inputs, however it counts.

The first state is any state of the circuit, however it came about: registers are unknown, and flags are 1. After one
cycle of reset, a register that would stay unknown is tried with both values. From there every state is visited under
all inputs of the handshake; other inputs are unknown in each cycle, unless there are few of them. An unknown bit stands
for both values, so what is proved holds for each; a violation may come from what is unknown and proves nothing.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from modmill.flow.library import U32, U64, array, compiled, fields

FLAG, REGISTER, STARTED = "flag$", "reg$", "started$"
"""Prefixes of the names of latches: a flag, which only makes things worse; a register, of which nothing is known before
the reset; a bit that is 1 after power-up. All other latches begin with 0, as in the graph."""
PICK = "pick"
"""Input of a monitor."""
CONTROL = ("i_valid", "o_ready", "k_valid", PICK)
"""Inputs of which all values are tried in each state."""
_FEW = 4
"""Most other inputs of which all values are tried."""
_MOST_BYTES = 3 << 30
_MOST_TRACE = 1 << 16
"""Most cycles of a trace."""
_UNKNOWN, _CHOSEN, _RESET = range(3)
_UNKNOWN_BIT = 2
_U8 = ctypes.c_uint8


class _Problem(ctypes.Structure):
    """Has the same layout in states.cpp."""

    _fields_ = [
        *fields((U32, "inputs latches gates")),
        *fields((ctypes.POINTER(U32), "next left right"), (U32, "bad"), (ctypes.POINTER(_U8), "input first flag")),
        *fields((U64, "most"), (ctypes.c_double, "seconds"), (U64, "states")),
        *fields((ctypes.POINTER(_U8), "trace"), (U32, "room length")),
    ]


@dataclass(frozen=True)
class Graph:
    """An AND-inverter graph with one output. A literal is 2 x variable + 1 if it is inverted; the variables are 0, the
    inputs, the latches, the gates. ``gates``: pairs of literals; ``after``: a literal for each latch."""

    inputs: tuple[str, ...]
    latches: tuple[str, ...]
    after: tuple[int, ...]
    gates: tuple[tuple[int, int], ...]
    bad: int

    @classmethod
    def read(cls, file: Path) -> Graph:
        """Read a file in the binary AIGER format, with the names of inputs and latches.

        Raises ValueError if it is no such file or has more than one output."""
        data = file.read_bytes()
        header, _, rest = data.partition(b"\n")
        words = header.split()
        if len(words) != 6 or words[0] != b"aig" or words[4] != b"1":
            raise ValueError(f"{file.name} is no binary AIGER file with one output: {header[:80]!r}")
        inputs, latches, outputs, gates = map(int, words[2:])
        *lines, rest = rest.split(b"\n", latches + outputs)
        at = iter(rest)
        pairs = []
        for k in range(1 + inputs + latches, 1 + inputs + latches + gates):
            left = 2 * k - _delta(at)
            pairs.append((left, left - _delta(at)))
        names = {word: name for word, _, name in (line.partition(" ") for line in bytes(at).decode().split("\n"))}
        return cls(
            tuple(names.get(f"i{k}", "") for k in range(inputs)), tuple(names.get(f"l{k}", "") for k in range(latches)),
            tuple(int(line.split()[0]) for line in lines[:latches]), tuple(pairs), int(lines[latches]),
        )  # fmt: skip

    def used(self) -> set[int]:
        """The variables on which the output or a latch depends in the same cycle."""
        found = {literal >> 1 for literal in (*self.after, self.bad)}
        first = 1 + len(self.inputs) + len(self.latches)
        for k in range(first + len(self.gates) - 1, first - 1, -1):
            if k in found:
                found.update(literal >> 1 for literal in self.gates[k - first])
        return found


def _delta(data: Iterator[int]) -> int:
    found = shift = 0
    for byte in data:
        found |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    return found


def never(graph: Graph, seconds: float) -> bool:
    """Whether the output is shown to be 0 in every cycle outside a reset, within ``seconds``.

    Raises ToolError if the search does not compile."""
    return search(graph, seconds).answer == "never"


@dataclass(frozen=True)
class Found:
    """The result of a search. ``answer``: that the output is "never" 1, "perhaps", or that there are "too many" states.
    ``states``: number of those visited. ``trace``: for each cycle after the reset the values of `chosen` inputs with
    which the output may be 1."""

    answer: str
    states: int
    trace: tuple[dict[str, int], ...]


_ANSWERS = ("never", "perhaps", "too many")


def search(graph: Graph, seconds: float, most_bytes: int = _MOST_BYTES) -> Found:
    """Visit all states, within ``seconds`` of processor time and ``most_bytes`` of memory for states.

    Raises ToolError if the search does not compile."""
    moves = _moves(graph)
    trace = array(_U8, _MOST_TRACE)
    problem = _Problem(
        inputs=len(graph.inputs), latches=len(graph.latches), gates=len(graph.gates), bad=graph.bad, seconds=seconds,
        next=array(U32, len(graph.after), graph.after),
        left=array(U32, len(graph.gates), (pair[0] for pair in graph.gates)),
        right=array(U32, len(graph.gates), (pair[1] for pair in graph.gates)),
        input=array(_U8, len(graph.inputs), moves),
        first=array(_U8, len(graph.latches), map(_first, graph.latches)),
        flag=array(_U8, len(graph.latches), map(_is_flag, graph.latches)),
        most=most_bytes // (8 * max(1, -(-2 * len(graph.latches) // 64))), trace=trace, room=_MOST_TRACE,
    )  # fmt: skip
    answer = _ANSWERS[compiled("modmill.proofs", "states.cpp").modmill_states(ctypes.byref(problem))]
    names = [graph.inputs[k] for k, move in enumerate(moves) if move == _CHOSEN]
    steps = trace[: problem.length] if answer == "perhaps" else []
    return Found(answer, problem.states, tuple({n: s >> k & 1 for k, n in enumerate(names)} for s in steps))


def _moves(graph: Graph) -> list[int]:
    """How each input moves."""
    used = graph.used()
    free = [
        k for k, name in enumerate(graph.inputs) if k + 1 in used and not name.startswith(("rst", "first$", "init:"))
    ]
    others = [k for k in free if not graph.inputs[k].startswith(CONTROL)]
    chosen = {*free} if len(others) <= _FEW else {*free} - {*others}
    return [_RESET if name == "rst" else _CHOSEN if k in chosen else _UNKNOWN for k, name in enumerate(graph.inputs)]


def _is_flag(latch: str) -> bool:
    names = latch.split()
    return bool(names) and all(name.startswith(FLAG) for name in names)


def _first(latch: str) -> int:
    """State before the reset. A latch may have several names."""
    names = latch.split()
    if any(name.startswith(REGISTER) for name in names):
        return _UNKNOWN_BIT
    return int(bool(names) and all(name.startswith((FLAG, STARTED)) for name in names))
