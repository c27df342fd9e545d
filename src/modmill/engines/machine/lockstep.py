# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Two equal engines in lockstep behind one pair of word streams: no word leaves unless both have sent it.

    words i -----------> first engine  -> word of the first  -> equal? -> words o
    words i -> 1 cycle -> second engine -> word of the second -> equal?

The second engine gets all inputs one cycle later, so that one glitch of the clock meets two different states, and so
that synthesis finds no equal registers to merge. Its reset begins with that of the first one, because what registers
hold at power-up must not change its memories, and ends one cycle later. In each cycle its ready and valid, and its data
if valid, are compared with those of the first one a cycle ago. A word waits in two registers, one from each engine, and
`o_valid` is high only while they are equal. The second engine has the random words of the first one, a cycle later. Any
difference raises `o_alarm` until the reset, and no word enters or leaves any more. The alarm is held twice,
complemented: if the two disagree, that is an alarm too.

A fault in one register of either engine or of this block therefore releases no wrong word. Faults outside are not seen:
what arrives wrong at i is computed on, and what leaves right at o may be changed later. Two faults that change both
engines alike, one cycle apart, are not seen either.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.contract import ALARM
from modmill.engines.machine.cluster import RANDOM, RANDOM_DECLARED, machine_of
from modmill.engines.machine.random_port import PORTS, RANDOM_WORD
from modmill.rtl.delay import later

LATENCY = 2
"""Cycles from a word at the first engine's output to the same word at o."""
_QUIET = 2
"""Cycles after a reset in which nothing is compared: registers without a reset differ until it has passed."""


class Lockstep(wiring.Component):
    """Compare two engines: streams ``i`` and ``o`` outside, ``a`` to and ``x`` from the first engine, ``b`` to and
    ``y`` from the second one, whose reset is ``b_rst``. ``alarms``: the engines have alarms of their own, ``x_alarm``
    and ``y_alarm``, which raise that of this block.

    Cost: about 110 registers and 60 LUTs with words of 32 bits, and the second engine. Latency: `LATENCY` cycles.
    Throughput: a word every third cycle at o.
    """

    def __init__(self, word: int, alarms: bool = False, random: bool = False) -> None:
        super().__init__({
            "i_valid": In(1), "i_ready": Out(1), "i_data": In(word),
            "o_valid": Out(1), "o_ready": In(1), "o_data": Out(word), "o_last": Out(1), ALARM: Out(1),
            **{f"{name}_{port}": way for name in "ab" for port, way in (
                ("valid", Out(1)), ("ready", In(1)), ("data", Out(word)),
            )},
            **{f"{name}_{port}": way for name in "xy" for port, way in (
                ("valid", In(1)), ("ready", Out(1)), ("data", In(word)), ("last", In(1)),
            )},
            "b_rst": Out(1), "rst_now": In(1), **({"x_alarm": In(1), "y_alarm": In(1)} if alarms else {}),
            **(_random_ports() if random else {}),
        })  # fmt: skip
        self._word, self._alarms, self._random = word, alarms, random

    def elaborate(self, platform: object) -> Module:
        m = Module()
        alarm, calm = Signal(name="alarm"), Signal(name="calm", init=1)
        raised = alarm | ~calm
        quiet = Signal(_QUIET, init=(1 << _QUIET) - 1)
        m.d.sync += quiet.eq(quiet << 1)
        held = []  # word, last and valid from each engine
        for name in "xy":
            word = Signal(self._word, name=f"{name}_word", reset_less=True)
            last, valid = Signal(name=f"{name}_last_word", reset_less=True), Signal(name=f"{name}_there")
            held.append((word, last, valid))
        (first, first_last, first_there), (second, second_last, second_there) = held
        equal = (first == second) & (first_last == second_last)

        m.d.comb += [
            self.a_valid.eq(self.i_valid & ~raised), self.a_data.eq(self.i_data),
            self.i_ready.eq(self.a_ready & ~raised), self.x_ready.eq(~first_there),
            self.o_valid.eq(first_there & second_there & equal & ~raised), self.o_data.eq(first),
            self.o_last.eq(first_last), getattr(self, ALARM).eq(raised),
        ]  # fmt: skip
        late = {name: later(m, value, f"{name}_late") for name, value in (
            ("a_valid", self.a_valid), ("a_data", self.a_data), ("a_ready", self.a_ready), ("x_valid", self.x_valid),
            ("x_data", self.x_data), ("x_last", self.x_last), ("x_ready", self.x_ready), ("rst", self.rst_now),
        )}  # fmt: skip
        m.d.comb += [
            self.b_valid.eq(late["a_valid"]), self.b_data.eq(late["a_data"]), self.y_ready.eq(late["x_ready"]),
            self.b_rst.eq(late["rst"] | self.rst_now),
        ]  # fmt: skip
        taken = self.o_valid & self.o_ready
        for (word, last, there), name in zip(held, "xy", strict=True):
            valid, ready, data, ends = (getattr(self, f"{name}_{port}") for port in ("valid", "ready", "data", "last"))
            with m.If(valid & ready):
                m.d.sync += [word.eq(data), last.eq(ends), there.eq(1)]
            with m.Elif(taken):
                m.d.sync += there.eq(0)
        alone = later(m, first_there & ~second_there, "alone")
        differs = Cat(
            late["a_ready"] != self.b_ready,
            late["x_valid"] != self.y_valid,
            self.y_valid & ((late["x_data"] != self.y_data) | (late["x_last"] != self.y_last)),
            first_there & second_there & ~equal,
            second_there & ~first_there,
            alone & first_there & ~second_there,
            *((self.x_alarm, self.y_alarm) if self._alarms else ()),
            *([self._share(m, raised)] if self._random else []),
        ).any()
        with m.If(differs & ~quiet[-1]):
            m.d.sync += [alarm.eq(1), calm.eq(0)]
        with m.If(raised):  # one of the two is enough
            m.d.sync += [alarm.eq(1), calm.eq(0)]
        return m

    def _share(self, m: Module, raised: Value) -> Value:
        """Give random words to both engines; return whether the second one does not take what the first one took."""
        port = {name: getattr(self, name) for name in _random_ports()}
        ready = port["a_random_ready"] & ~raised
        m.d.comb += [
            port["a_random_valid"].eq(port["random_valid"] & ~raised), port["a_random_data"].eq(port["random_data"]),
            port["random_ready"].eq(ready), port["b_random_valid"].eq(later(m, port["a_random_valid"], "random_late")),
            port["b_random_data"].eq(later(m, port["random_data"], "random_word_late")),
        ]  # fmt: skip
        return later(m, port["a_random_ready"], "random_wanted_late") != port["b_random_ready"]


def _random_ports() -> dict[str, Any]:
    """The ports of random words: ``random`` outside, ``a_random`` and ``b_random`` to the engines."""
    return PORTS | {f"{to}_{name}": member.flip() for to in "ab" for name, member in PORTS.items()}


def engine_module(top: str) -> str:
    """The name of the module of both engines in the module ``top``."""
    return f"{top}_engine"


def machine_pair(text: str, top: str) -> str:
    """Verilog of one machine in lockstep, module ``top``_core, from that of several machines in lockstep: a text of
    `paired` with engines of `assembled`, and with the first module ``top``."""
    machine = machine_of(text, engine_module(top))
    inside = re.sub(rf"\b{engine_module(top)}\b", f"{engine_module(top)}_core", machine)
    return re.sub(rf"^module {top}\b", f"module {top}_core", inside, flags=re.MULTILINE)


def paired(lockstep: str, engine: str, *, top: str, word: int, alarms: bool = False, random: bool = False) -> str:
    """Verilog of a module ``top`` that connects two engines, module `engine_module`, and a `Lockstep`, module
    ``top``_lockstep, of which the texts are given. ``alarms``, ``random``: both are made with alarms of the engines,
    with a port for random words."""
    streams = [f"{name}_{port}" for name in "ab" for port in ("valid", "ready", "data")]
    streams += [f"{name}_{port}" for name in "xy" for port in ("valid", "ready", "data", "last")]
    inside = ("b_rst", *(("x_alarm", "y_alarm") if alarms else ()))
    given = [f"{to}_random_{name}" for to in "ab" for name in ("valid", "ready", "data")] * random
    outside = ("clk", "rst", "i_valid", "i_ready", "i_data", "o_valid", "o_ready", "o_data", "o_last")
    pinned = (*outside, ALARM, *streams, *inside, *given, *(PORTS if random else ()))
    pins = textwrap.fill(
        ", ".join(f".{name}({name})" for name in pinned) + ", .rst_now(rst)", 116,
        initial_indent="    ", subsequent_indent="    ",
    )  # fmt: skip
    single = ", ".join(name for name in (*streams, *inside, *given) if not name.endswith("data"))
    wide = ", ".join(name for name in streams if name.endswith("data"))
    engines = "".join(
        f"  {engine_module(top)} {name}(.clk(clk), .rst({rst}), .i_valid({to}_valid), .i_ready({to}_ready),\n"
        f"    .i_data({to}_data), .o_valid({of}_valid), .o_ready({of}_ready), .o_data({of}_data),\n"
        f"    .o_last({of}_last){f', .{ALARM}({of}_alarm)' if alarms else ''}{_own(to) if random else ''});\n"
        for name, rst, to, of in (("first", "rst", "a", "x"), ("second", "b_rst", "b", "y"))
    )
    words = f"  wire [{RANDOM_WORD - 1}:0] a_random_data, b_random_data;\n" if random else ""
    return f"""// Two engines in lockstep: no word leaves unless both have sent it; any difference raises {ALARM}.
// Latency: that of an engine, and {LATENCY} cycles more.
// Source: a block of Modmill ({__name__})
module {top}({", ".join(outside)}, {ALARM}{RANDOM if random else ""});
  input clk, rst, i_valid, o_ready;
  input [{word - 1}:0] i_data;
  output i_ready, o_valid, o_last, {ALARM};
  output [{word - 1}:0] o_data;
{RANDOM_DECLARED if random else ""}  wire {single};
  wire [{word - 1}:0] {wide};
{words}  {top}_lockstep compare(
{pins});
{engines}endmodule

{lockstep}
{engine}"""


def _own(to: str) -> str:
    """The pins of an engine for random words, behind others."""
    return "".join(f",\n    .{name}({to}_{name})" for name in PORTS)
