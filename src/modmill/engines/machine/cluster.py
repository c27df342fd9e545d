# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Several machines in one device behind one pair of word streams.

    words i -> head -> node 0 -> node 1 -> ...        each node gives words to its machine or to the next node
    words o <-         node 0 <- node 1 <- ...        and forwards one machine's answer after the other

A packet in: the machine's number, or ``everyone(word)`` for all, the number of words in two words (least significant
first), and the words of one or more messages. A packet out: the machine's number and the words of one answer. Answers
of a machine come in the order of its messages.

Each net connects at most two neighbouring nodes, from register to register: a node signals one cycle in advance that
it accepts a word, and its word register follows the input until then. The reset also goes from node to node; each node
resets its machine. The ports are closed until the last machine has left its reset.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.contract import UnsupportedError
from modmill.engines.machine.random_port import PORTS, RANDOM_WORD
from modmill.rtl.delay import later

HOP = 2
"""Registers in the path of the reset from node to node."""

COUNT_BITS = 24
"""Maximum bits of the number of words in a packet."""


def everyone(word: int) -> int:
    """The number that addresses all machines, for words of ``word`` bits: all ones."""
    return (1 << word) - 1


def packet(machine: int, words: Sequence[int], word: int) -> list[int]:
    """A packet for a machine. Raises UnsupportedError if the number of words does not fit its field."""
    count = len(words)
    if count >> min(COUNT_BITS, 2 * word):
        raise UnsupportedError(f"{count} words do not fit one packet")
    return [machine, count & everyone(word), count >> word, *words]


@dataclass(frozen=True)
class Packets:
    """Format of messages to ``machines`` machines: in packets, or without if there is only one machine. Job k goes to
    machine k modulo ``machines``. ``word``: bits of a word."""

    machines: int
    word: int

    @property
    def head(self) -> int:
        """Number of words before those of an answer: the machine's number."""
        return int(self.machines > 1)

    def sent(self, words: Sequence[int], job: int | None = None) -> list[int]:
        """The words of a message in the stream: that of job number ``job`` to its machine; None: to all machines."""
        if self.machines == 1:
            return list(words)
        return packet(everyone(self.word) if job is None else job % self.machines, words, self.word)

    def ordered(self, words: Sequence[int], length: int | Sequence[int]) -> tuple[list[int], list[int]]:
        """(numbers of the jobs in the order of their answers, words of the answers in the order of the jobs).
        ``words``: whole answers to jobs 0, 1, ... ``length``: number of words of every answer, or of each job's."""
        lengths = [length] * (len(words) // (length + self.head)) if isinstance(length, int) else list(length)
        count = len(lengths)
        if self.machines == 1:
            return list(range(count)), list(words)
        waiting = [iter(range(machine, count, self.machines)) for machine in range(self.machines)]
        came: list[tuple[int, list[int]]] = []
        at = 0
        while at < len(words) and len(came) < count:
            job = next(waiting[words[at] % self.machines], count)
            own = lengths[job] if job < count else max(lengths)
            came.append((job, list(words[at + 1 : at + 1 + own])))
            at += 1 + own
        return [job for job, _ in came], [word for _, answer in sorted(came) for word in answer]


class _Head(wiring.Component):
    """Decode the heads of packets: each word leaves with a bit for every machine that is to receive it.

    Latency: 1 cycle from a word at ``i`` to the same word at ``d``.
    """

    def __init__(self, machines: int, word: int) -> None:
        self._machines, self._word = machines, word
        super().__init__({
            "i_valid": In(1), "i_ready": Out(1), "i_data": In(word),
            "d_valid": Out(1), "d_ready": In(1), "d_data": Out(word), "d_select": Out(machines),
            "shut": In(1),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        left = Signal(COUNT_BITS, reset_less=True)
        low, word = (Signal(self._word, name=name, reset_less=True) for name in ("low", "word"))
        select = Signal(self._machines, reset_less=True)
        m.d.comb += [self.d_data.eq(word), self.d_select.eq(select)]
        take = self.i_valid & self.i_ready
        with m.If(self.d_ready):
            m.d.sync += self.d_valid.eq(0)
        with m.FSM(name="packet"):
            with m.State("MACHINE"):
                m.d.comb += self.i_ready.eq(~self.d_valid & ~self.shut)
                with m.If(take):
                    all_of_them = self.i_data == everyone(self._word)
                    m.d.sync += select.eq(
                        Cat(all_of_them | (self.i_data == machine) for machine in range(self._machines))
                    )
                    m.next = "LOW"
            with m.State("LOW"):
                m.d.comb += self.i_ready.eq(1)
                with m.If(take):
                    m.d.sync += low.eq(self.i_data)
                    m.next = "HIGH"
            with m.State("HIGH"):
                m.d.comb += self.i_ready.eq(1)
                with m.If(take):
                    m.d.sync += left.eq(Cat(low, self.i_data))
                    m.next = "WORDS"
            with m.State("WORDS"):
                m.d.comb += self.i_ready.eq(~self.d_valid & (left != 0))
                with m.If(take):
                    m.d.sync += [self.d_valid.eq(1), word.eq(self.i_data), left.eq(left - 1)]
                with m.If(left == 0):
                    m.next = "MACHINE"
        return m


class _Node(wiring.Component):
    """The node of one machine.

    d: words from the head; bit 0 of ``d_select``: for this machine (``c``), other bits: for the machines behind it
    (``e``). u: answers to the head, from this machine (``r``) or from those behind it (``v``). A node accepts a word
    every third cycle from the head, every second one to it. ``clear``: reset of the node; it reaches the next node HOP
    cycles later at ``cleared``, and this node and its machine (``rst``) one cycle after that.

    Latency: 1 cycle for a word in each direction.
    """

    def __init__(self, number: int, behind: int, word: int) -> None:
        self._number, self._behind, self._word = number, behind, word

        def stream(name: str, way: Any, back: Any, extra: dict[str, Any]) -> dict[str, Any]:
            return {f"{name}_valid": way(1), f"{name}_ready": back(1), f"{name}_data": way(word), **extra}

        super().__init__({
            **stream("d", In, Out, {"d_select": In(behind + 1)}), **stream("c", Out, In, {}),
            **stream("e", Out, In, {"e_select": Out(max(1, behind))}), **stream("r", In, Out, {"r_last": In(1)}),
            **stream("v", In, Out, {"v_last": In(1)}), **stream("u", Out, In, {"u_last": Out(1)}),
            "clear": In(1), "cleared": Out(1), "rst": Out(1),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        passed: Value = self.clear
        for k in range(HOP):
            passed = later(m, passed, f"clear_{k}")
        rst = later(m, passed, "clear_here")
        m.d.comb += [self.cleared.eq(passed), self.rst.eq(rst)]

        # ---- words for machines: pending for this one (here), for the others (on)
        here, on, free = (Signal(name=name, reset_less=True) for name in ("here", "on", "free"))
        word = Signal(self._word, reset_less=True)
        select = Signal(max(1, self._behind), reset_less=True)
        m.d.comb += [
            self.d_ready.eq(free), self.c_valid.eq(here), self.e_valid.eq(on), self.c_data.eq(word),
            self.e_data.eq(word), self.e_select.eq(select),
        ]  # fmt: skip
        with m.If(self.c_ready):
            m.d.sync += here.eq(0)
        with m.If(self.e_ready):
            m.d.sync += on.eq(0)
        m.d.sync += free.eq(~here & ~on & ~(free & self.d_valid))
        with m.If(free):
            m.d.sync += [word.eq(self.d_data), here.eq(self.d_valid & self.d_select[0])]
            if self._behind:
                m.d.sync += [on.eq(self.d_valid & self.d_select[1:].any()), select.eq(self.d_select[1:])]

        # ---- answers: the source that is sending; if both have an answer, they alternate
        own, others, others_first, full, last = (
            Signal(name=name, reset_less=True) for name in ("own", "others", "others_first", "full", "last")
        )
        answer = Signal(self._word, reset_less=True)
        m.d.comb += [
            self.u_valid.eq(full), self.u_data.eq(answer), self.u_last.eq(last),
            self.r_ready.eq(own & ~full), self.v_ready.eq(others & ~full),
        ]  # fmt: skip
        with m.If(self.u_ready):
            m.d.sync += full.eq(0)
        with m.If(~full):
            m.d.sync += [
                answer.eq(Mux(own, self.r_data, Mux(others, self.v_data, self._number))),
                last.eq((own & self.r_last) | (others & self.v_last)),
            ]
        with m.If(~own & ~others):
            with m.If(self.v_valid & (others_first | ~self.r_valid)):
                m.d.sync += others.eq(1)
            with m.Elif(self.r_valid & ~full):
                m.d.sync += [full.eq(1), own.eq(1)]
        for passing, valid, ends in ((own, self.r_valid, self.r_last), (others, self.v_valid, self.v_last)):
            with m.If(passing & valid & ~full):
                m.d.sync += full.eq(1)
                with m.If(ends):
                    m.d.sync += [others_first.eq(own), passing.eq(0)]
        with m.If(rst):
            m.d.sync += [signal.eq(0) for signal in (here, on, free, own, others, others_first, full)]
        return m


class Router(wiring.Component):
    """Head and nodes: streams ``i`` and ``o`` outside, ``c0`` and ``r0`` to and from machine 0, and so on.

    Cost: about 150 LUTs and 150 registers for each machine, with words of 32 bits. Latency: 1 cycle for each node in
    each direction. Throughput: a word every third cycle to the machines, every second cycle back. Raises
    UnsupportedError for fewer than 2 or more than 64 machines.
    """

    def __init__(self, machines: int, word: int) -> None:
        if not 2 <= machines <= 64:
            raise UnsupportedError(f"a cluster has 2 to 64 cores, not {machines}")
        self.machines, self.word = machines, word
        members: dict[str, Any] = {
            "i_valid": In(1), "i_ready": Out(1), "i_data": In(word),
            "o_valid": Out(1), "o_ready": In(1), "o_data": Out(word), "o_last": Out(1),
        }  # fmt: skip
        for k in range(machines):
            members |= {
                f"c{k}_valid": Out(1), f"c{k}_ready": In(1), f"c{k}_data": Out(word),
                f"r{k}_valid": In(1), f"r{k}_ready": Out(1), f"r{k}_data": In(word), f"r{k}_last": In(1),
                f"c{k}_rst": Out(1),
            }  # fmt: skip
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.head = head = _Head(self.machines, self.word)
        # long enough that all machines and nodes are in reset at the same time; the ports open when all have left it
        through = HOP * self.machines + 2
        left, shut = Signal(range(2 * through + 3), init=2 * through + 2), Signal(init=1)
        clear: Value = later(m, left > through, "clear")
        m.d.sync += shut.eq(left != 0)
        with m.If(left != 0):
            m.d.sync += left.eq(left - 1)
        m.d.comb += head.shut.eq(shut)
        nodes = [_Node(k, self.machines - 1 - k, self.word) for k in range(self.machines)]
        _connect(m, self, "i", head, "i")
        source: Any = head
        out = "d"
        for k, node in enumerate(nodes):
            m.submodules[f"node_{k}"] = node
            _connect(m, source, out, node, "d", "select")
            m.d.comb += [node.clear.eq(clear), getattr(self, f"c{k}_rst").eq(node.rst)]
            clear, source, out = node.cleared, node, "e"
            for name in ("valid", "data"):
                m.d.comb += getattr(self, f"c{k}_{name}").eq(getattr(node, f"c_{name}"))
            for name in ("valid", "data", "last"):
                m.d.comb += getattr(node, f"r_{name}").eq(getattr(self, f"r{k}_{name}"))
            m.d.comb += [node.c_ready.eq(getattr(self, f"c{k}_ready")), getattr(self, f"r{k}_ready").eq(node.r_ready)]
        for node, behind in pairwise(nodes):
            _connect(m, behind, "u", node, "v", "last")
        first = nodes[0]
        m.d.comb += [
            self.o_valid.eq(first.u_valid & ~shut),
            first.u_ready.eq(self.o_ready),
            self.o_data.eq(first.u_data),
            self.o_last.eq(first.u_last),
        ]
        return m


def _connect(m: Module, source: Any, out: str, sink: Any, into: str, *more: str) -> None:
    """Connect stream ``out`` of a component to stream ``into`` of another. ``more``: signals besides valid and data."""
    m.d.comb += getattr(sink, f"{into}_valid").eq(getattr(source, f"{out}_valid"))
    m.d.comb += getattr(source, f"{out}_ready").eq(getattr(sink, f"{into}_ready"))
    m.d.comb += [getattr(sink, f"{into}_{x}").eq(getattr(source, f"{out}_{x}")) for x in ("data", *more)]


def assembled(
    machine: Callable[[str], str], emitted: Callable[[Router, str], str], top: str, of: Packets, power_up: int = 1,
    alarm: str = "", random: bool = False,
) -> str:  # fmt: skip
    """Verilog of one machine, or of several behind a router, with the first module ``top``.

    ``machine(name)``, ``emitted(router, name)``: functions that return the Verilog of a machine and of the router, with
    the first module ``name``. ``power_up``: cycles of a machine's reset after power-up. ``alarm``: an output of
    machines that is high if that of any machine is; empty: none. ``random``: machines have a port for random words.
    """
    if of.machines == 1:
        return machine(top)
    router = emitted(Router(of.machines, of.word), f"{top}_router")
    text = machine(f"{top}_core")
    at_once = power_up > 1 or random or bool(alarm)  # in arbitrary states machines take no random words, raise no alarm
    return joined(
        router, text, top=top, machines=of.machines, word=of.word, at_once=at_once, alarm=alarm, random=random
    )


RANDOM = "".join(f", {port}" for port in PORTS)
"""The port for random words in a list of ports."""
RANDOM_DECLARED = f"  input random_valid;\n  input [{RANDOM_WORD - 1}:0] random_data;\n  output random_ready;\n"


@dataclass(frozen=True)
class SharedRandom:
    """A port for random words that ``machines`` machines share: of those that want a word, the first one gets it.
    ``name``: of the nets of a machine, with braces for its number."""

    machines: int
    name: str

    def nets_of(self, machine: int) -> dict[str, str]:
        """The net of each port of a machine."""
        own = self.name.format(machine)
        return {"random_valid": f"{own}_valid", "random_ready": f"{own}_ready", "random_data": "random_data"}

    def pins(self, machine: int) -> str:
        """The pins of a machine, behind others."""
        return "".join(f", .{port}({net})" for port, net in self.nets_of(machine).items())

    @property
    def nets(self) -> str:
        """The nets of all machines."""
        every = [self.name.format(k) for k in range(self.machines)]
        wanted = [f"{own}_ready" for own in every]
        lines = [f"wire {', '.join([*wanted, *(f'{own}_valid' for own in every)])};"]
        for k, own in enumerate(every):
            before = f" & ~({' | '.join(wanted[:k])})" if k else ""
            lines.append(f"assign {own}_valid = random_valid{before};")
        lines.append(f"assign random_ready = {' | '.join(wanted)};")
        return "".join(f"  {line}\n" for line in lines)


def machine_of(text: str, top: str) -> str:
    """Verilog of one machine, module ``top``_core, of those in a text of `assembled` with the first module ``top``."""
    modules = re.finditer(r"(?:^//[^\n]*\n)*^module (\w+).*?^endmodule\n", text, re.DOTALL | re.MULTILINE)
    kept = [x[0] for x in modules if x[1] != top and not x[1].startswith(f"{top}_router")]
    return "\n".join(kept)


def joined(
    router: str, machine: str, *, top: str, machines: int, word: int, at_once: bool = False, alarm: str = "",
    random: bool = False,
) -> str:  # fmt: skip
    """Verilog of a module ``top`` that connects a router, module ``top``_router, and machines, module ``top``_core.

    ``at_once``: the reset also reaches every machine in its first cycle. Machines need this if random contents of
    registers at power-up could change their constants, or be an alarm, before the router's reset arrives. ``alarm``,
    ``random``: as of `assembled`.
    """
    reset, more = "rst | " if at_once else "", f", {alarm}" if alarm else ""
    shared = SharedRandom(machines, "c{}_random") if random else None
    nets, cores = [], []
    ports = [
        ".clk(clk), .rst(rst), .i_valid(i_valid), .i_ready(i_ready), .i_data(i_data), .o_valid(o_valid), "
        ".o_ready(o_ready), .o_data(o_data), .o_last(o_last)"
    ]
    for k in range(machines):
        names = [f"c{k}_valid", f"c{k}_ready", f"r{k}_valid", f"r{k}_ready", f"r{k}_last", f"c{k}_rst"]
        nets.append(f"  wire {', '.join(names)};\n  wire [{word - 1}:0] c{k}_data, r{k}_data;\n")
        ports.append(", ".join(f".{name}({name})" for name in (*names, f"c{k}_data", f"r{k}_data")))
        raised = f", .{alarm}(c{k}_alarm)" if alarm else ""
        raised += shared.pins(k) if shared else ""
        cores.append(
            f"  {top}_core core_{k}(.clk(clk), .rst({reset}c{k}_rst), .i_valid(c{k}_valid), .i_ready(c{k}_ready), "
            f".i_data(c{k}_data), .o_valid(r{k}_valid), .o_ready(r{k}_ready), .o_data(r{k}_data), "
            f".o_last(r{k}_last){raised});\n"
        )
    if alarm:
        alarms = [f"c{k}_alarm" for k in range(machines)]
        nets.append(f"  wire {', '.join(alarms)};\n  assign {alarm} = {' | '.join(alarms)};\n")
    nets.append(shared.nets if shared else "")
    return f"""// {machines} machines behind one pair of word streams.
// Latency: the cycles of a machine, and 1 cycle for each node in each direction.
// Source: a block of Modmill ({__name__})
module {top}(clk, rst, i_valid, i_ready, i_data, o_valid, o_ready, o_data, o_last{more}{RANDOM if random else ""});
  input clk, rst, i_valid, o_ready;
  input [{word - 1}:0] i_data;
  output i_ready, o_valid, o_last{more};
  output [{word - 1}:0] o_data;
{RANDOM_DECLARED if random else ""}{"".join(nets)}  {top}_router router({(", " + chr(10) + "    ").join(ports)});
{"".join(cores)}endmodule

{router}
{machine}"""
