# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Emitted Verilog is clean, keeps the hierarchy, does not depend on the process, and simulates."""

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth.hdl import C, Cat, ClockSignal, Elaboratable, Instance, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from cores import icarus_complaints
from modmill.cores.multiplier.build import build
from modmill.flow import emit, tools
from modmill.flow.lint import lint
from modmill.flow.simulate import Simulator, Widths

TABLE = [3, 1, 4, 1, 5, 9, 2, 6]


class Delay(Elaboratable):
    """One register."""

    def __init__(self, width: int) -> None:
        self.d = Signal(width)
        self.q = Signal(width, reset_less=True)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.q.eq(self.d)
        return m


class Example(wiring.Component):
    """(a * b + 5 * a + TABLE[a mod 8]) after three cycles: a state machine, a ROM, tiles and equal submodules."""

    i_valid: In(1)
    i_ready: Out(1)
    i_a: In(12)
    i_b: In(12)
    o_valid: Out(1)
    o_ready: In(1)
    o_r: Out(25)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        product, multiple = Signal(24), Signal(24)
        for name, operand, result in (("ab", self.i_b, product), ("five", C(5, 12), multiple)):
            m.submodules[name] = Instance(
                "dsp_mul_12x12_r2", i_clk=ClockSignal(), i_a=self.i_a, i_b=operand, o_p=result
            )
        m.submodules.table = table = Memory(shape=4, depth=8, init=TABLE)
        read = table.read_port(domain="comb")
        m.d.comb += read.addr.eq(self.i_a[:3])
        m.submodules.delay_0 = d0 = Delay(4)
        m.submodules.delay_1 = d1 = Delay(4)
        held = Signal(25, reset_less=True)
        m.d.comb += [d0.d.eq(read.data), d1.d.eq(d0.q), self.o_r.eq(held)]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.i_ready.eq(1)
                with m.If(self.i_valid):
                    m.next = "FIRST"
            with m.State("FIRST"):
                m.next = "SECOND"
            with m.State("SECOND"):
                m.d.sync += held.eq(product + multiple + d1.q)
                m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += self.o_valid.eq(1)
                with m.If(self.o_ready):
                    m.next = "IDLE"
        return m


@pytest.fixture(scope="module")
def text() -> str:
    return emit.verilog(Example())


def test_text_is_clean(text: str) -> None:
    ports = re.findall(r"^  (?:in|out)put +(?:wire|reg) +(?:\[\d+:0\] )?(\w+),?$", text.split(");")[0], re.MULTILINE)
    assert text.startswith("module core(\n")
    assert ports == ["clk", "rst", "i_valid", "i_ready", "i_a", "i_b", "o_valid", "o_ready", "o_r"]
    assert re.findall(r"^module (\w+)", text, re.MULTILINE) == ["core", "core_delay", "core_dsp_mul_12x12_r2"]
    assert "\\" not in text
    assert re.findall(r"^\(\*.*\n(module \w+)", text, re.MULTILINE) == ["module core_dsp_mul_12x12_r2"]
    assert lint(text) == []
    assert icarus_complaints(text) == ""


def test_registers_have_no_initial_values(text: str) -> None:
    assert text.count("initial") == 1  # the ROM


class Counters(Elaboratable):
    """A counter that starts known in simulation, and one that starts unknown."""

    def __init__(self) -> None:
        self.i_valid, self.o_r = Signal(), Signal(8)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        known, unknown = (Signal(4, reset_less=True, name=name, init=3) for name in ("known", "unknown"))
        known.attrs["initial_value"] = 1
        m.d.sync += [known.eq(known + 1), unknown.eq(unknown + 1)]
        m.d.comb += self.o_r.eq(Cat(known, unknown))
        return m


def test_initial_values_are_for_simulation_alone(tmp_path: Path) -> None:
    counters = Counters()
    counters.signature = wiring.Signature({"i_valid": In(1), "o_r": Out(8)})  # type: ignore[attr-defined]
    text = emit.verilog(counters)
    block = "`ifndef SYNTHESIS\n  initial begin\n    known = 4'h3;\n  end\n`endif\n"
    assert text.count(block) == 1
    assert "attribute" not in text
    bare = emit.without_initial_values(text)
    assert bare == text.replace(block, "")
    assert emit.without_initial_values(bare) == bare
    assert lint(text) == []
    netlists = []
    for verilog in (text, bare):
        (tmp_path / "core.v").write_text(verilog)
        script = "read_verilog core.v; synth -top core; write_verilog -noattr net.v"
        tools.run(tools.yosys("-q", "-p", script), name="yosys", cwd=tmp_path)
        netlists.append((tmp_path / "net.v").read_text())
    assert netlists[0] == netlists[1]


def test_stripped_array_is_the_text_without_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the attribute changes in a core's text is what `without_initial_values` takes away."""
    marked = build("montgomery-array", "97", "native", columns=2, lanes=1).verilog
    monkeypatch.setattr(emit, "_ATTRIBUTES", re.compile(r"^ *attribute \\(?:init|initial_value) .*\n", re.MULTILINE))
    monkeypatch.setattr(emit, "_initial_value", lambda match: "")
    plain = build("montgomery-array", "97", "native", columns=2, lanes=1).verilog
    assert plain != marked
    assert emit.without_initial_values(marked) == plain


def test_emitted_core_works(text: str) -> None:
    rng = random.Random(2)
    a = [rng.getrandbits(12) for _ in range(300)]
    b = [rng.getrandbits(12) for _ in range(300)]
    run = Simulator(text, widths=Widths(12, 12, 25)).run(a, b, gap=0.2, stall=0.2)
    assert run.violations == []
    assert run.results == [x * y + 5 * x + TABLE[x % 8] for x, y in zip(a, b, strict=True)]
    assert set(run.latencies) == {3}


class _Constants(wiring.Component):
    """Sums, differences, products and comparisons of i_a with constants of 32 bits and next to them, after a cycle."""

    VALUES = (0xC7C1856D, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 0x100000001)

    i_valid: In(1)
    i_ready: Out(1)
    i_a: In(40)
    i_b: In(40)
    o_valid: Out(1)
    o_ready: In(1)
    o_r: Out(128 * len(VALUES))

    @staticmethod
    def results(a, k):
        """Widths and values, for Amaranth's numbers as for Python's: with a constant, and with it and a's low bits."""
        low = a & 0xFFFF
        return (41, a + k), (41, a - k), (34, low - k), (1, a < k), (1, low < k), (10, (a * k) >> 62)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        values = []
        for value in self.VALUES:
            for width, result in self.results(self.i_a, value):
                values.append(Signal(width))
                m.d.comb += values[-1].eq(result)
        held = Signal(len(self.o_r))
        m.d.comb += [self.i_ready.eq(~self.o_valid | self.o_ready), self.o_r.eq(held)]
        with m.If(self.i_ready):
            m.d.sync += [self.o_valid.eq(self.i_valid), held.eq(Cat(*values))]
        return m

    @classmethod
    def expected(cls, a: int) -> int:
        out = place = 0
        for value in cls.VALUES:
            for width, result in cls.results(a, value):
                out |= (int(result) & (1 << width) - 1) << place
                place += width
        return out


def test_constants_of_32_bits_are_not_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    near = [value + delta for value in _Constants.VALUES for delta in (-1, 0, 1)]
    a = [0, 1, (1 << 40) - 1, *near, *(random.Random(3).getrandbits(40) for _ in range(50))]
    right = [_Constants.expected(x) for x in a]

    def results(text: str) -> list[int]:
        return Simulator(text, widths=Widths(40, 40, 128 * len(_Constants.VALUES))).run(a, a).results

    text = emit.verilog(_Constants())
    assert results(text) == right
    # the planted fault: the numbers as Yosys prints them
    monkeypatch.setattr(emit, "_unsigned", lambda text: text)
    printed = emit.verilog(_Constants())
    assert " - -943618707;" in printed and " - -943618707;" not in text
    assert results(printed) != right


@pytest.mark.parametrize(
    ("line", "sized"),
    [
        ("assign t = word == -1;", False), ("assign t = -1 != word;", False), ("assign t = -1;", False),
        ("assign t = on ? -1 : word;", False), ("table[3] = -1;", False), ("word <= -1;", False),
        ("assign t = long == -1;", True), ("assign t = word[31:0] == -1;", True), ("assign t = word + -1;", True),
        ("assign t = long - -1;", True), ("assign t = -1 - word;", True), ("assign t = -1 <= word;", True),
        ("assign { t, word } = long < -1;", True), ("assign t = - word;", False),
    ],
)  # fmt: skip
def test_where_a_constant_gets_its_width(line: str, sized: bool) -> None:
    head = "module core(clk);\n  wire [31:0] word;\n  reg [32:0] long;\n"
    text = f"{head}  {line}\nendmodule\n"
    assert emit._unsigned(text) == (text.replace("-1", "32'd4294967295") if sized else text)


def test_text_does_not_depend_on_the_process(text: str) -> None:
    script = "import sys; from test_flow_emit import Example, emit; sys.stdout.write(emit.verilog(Example()))"
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        here = Path(__file__).parent
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, env=environment, cwd=here, check=True
        )
        assert done.stdout.decode() == text


class _Faulty(Example):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self.fault == "loop":
            x = Signal(4)
            m.d.comb += [x.eq(x + self.i_a), self.o_r.eq(x)]
        elif self.fault == "black box":
            m.submodules.x = Instance("mystery", i_a=self.i_a, o_r=self.o_r)
        else:
            m.d.comb += self.o_r.eq(Cat(self.i_b, self.i_a))
        return m


def test_what_yosys_prints_is_kept_for_the_same_rtlil(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a design that is refused is refused again."""
    runs, run = [], tools.run
    monkeypatch.setattr(tools, "run", lambda *of, **how: (runs.append(how["name"]), run(*of, **how))[1])
    first = emit.netlist(_Faulty("none"))
    assert emit.netlist(_Faulty("none")) == first and runs == ["yosys"]
    assert emit.netlist(_Faulty("none"), "other") == first.replace("core", "other") and runs == ["yosys"] * 2
    for _ in range(2):
        with pytest.raises(ValueError, match="combinational loop"):
            emit.netlist(_Faulty("loop"))
    assert runs == ["yosys"] * 4


def test_refusals() -> None:
    with pytest.raises(ValueError, match="combinational loop in module core"):
        emit.verilog(_Faulty("loop"))
    with pytest.raises(ValueError, match="mystery is an Instance"):
        emit.verilog(_Faulty("black box"))
    assert "(clk, rst, i_valid," in emit.netlist(_Faulty("none"))


class _Twice(Example):
    """A submodule that reads three signals of its parent, two of them of the same name."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.sums = sums = Module()
        names = [Signal(12, name="x"), Signal(12, name="x"), Signal(12, name="x")]
        held = Signal(25)
        m.d.sync += [names[0].eq(self.i_a), names[1].eq(self.i_b), names[2].eq(self.i_b)]
        sums.d.sync += held.eq(names[0] + names[1] + names[2])
        m.d.comb += self.o_r.eq(held)
        return m


def test_ports_of_equal_names_get_numbers() -> None:
    text = emit.netlist(_Twice())
    assert "module core_sums(clk, rst, x, x_1, x_2, held);" in text
    assert lint(text) == []


def test_lint_finds_faults() -> None:
    head = "module core(a, y); input a; output y; wire z;"
    assert "syntax" in lint(head + " assign y = a & ; endmodule")[0]
    found = " ".join(lint(head + " assign y = a & z; assign y = a; endmodule"))
    assert "UNDRIVEN" in found
    assert "MULTIDRIVEN" in found
    assert "MODMISSING" in lint(head + " other x(a, y); endmodule")[0]
