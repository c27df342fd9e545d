# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Readable Verilog is the same netlist as what Yosys printed, and has no numbered nets."""

import re

import pytest
from cones import differences
from test_golden import small

from marks import long
from modmill.buses.adapters import find_bus
from modmill.buses.front import whole
from modmill.cores.ecc.machine import ecc
from modmill.cores.multiplier.build import build
from modmill.designs import DESIGNS
from modmill.flow import emit
from modmill.flow.lint import lint
from modmill.flow.readable import putting, readable
from modmill.flow.readable.expressions import parsed, width

NUMBERED = re.compile(r"\b_\d+_\b")


def module(body: str, name: str = "core") -> str:
    ports = ["input [3:0] a", "input [3:0] b", "input [1:0] s", "input clk", "output [7:0] y", "output [3:0] z"]
    both = "".join(f"  {port};\n  wire {port.split(None, 1)[1]};\n" for port in ports)
    return f"module {name}({', '.join(port.split()[-1] for port in ports)});\n{both}{body}endmodule\n"


TRAPS = {
    "a sum without its carry": "  wire [3:0] _0_;\n  assign _0_ = a + b;\n  assign y = _0_ + a;\n  assign z = b;\n",
    "a sum with its carry": "  wire [4:0] _0_;\n  assign _0_ = a + b;\n  assign y = { 3'h0, _0_ };\n  assign z = b;\n",
    "a complement in a wider sum": "  wire [3:0] _0_;\n  assign _0_ = ~ a;\n  assign y = _0_ + b;\n  assign z = b;\n",
    "a sum that is compared": "  wire [3:0] _0_;\n  assign _0_ = a - b;\n  assign y = _0_ == 8'h0f;\n  assign z = b;\n",
    "signs beside no signs": "  wire [5:0] _0_;\n  assign _0_ = $signed(a) + $signed(b);\n  assign y = _0_ & a;\n"
    "  assign z = b;\n",
    "a difference as a condition": "  wire [3:0] _0_;\n  assign _0_ = a - b;\n  assign y = _0_ ? a : b;\n"
    "  assign z = b;\n",
    "a narrow sum in a joined net": "  wire [7:0] _0_;\n  assign _0_ = a * b;\n  assign y = { _0_[3:0], b };\n"
    "  assign z = { _0_[0], a[2:0] };\n",
    "a shifted sum": "  wire [3:0] _0_;\n  assign _0_ = a + b;\n  assign y = _0_ >> s;\n  assign z = b;\n",
    "a difference from the left": "  wire [7:0] _0_;\n  assign _0_ = a - b;\n  assign y = a - _0_;\n  assign z = b;\n",
    "a number without a width": "  wire [7:0] _0_;\n  assign _0_ = a + 5;\n  assign y = _0_ - 1;\n  assign z = b;\n",
    "a selection": "  wire _1_;\n  wire _2_;\n  function [3:0] _0_;\n    input [3:0] a;\n    input [7:0] b;\n"
    "    input [1:0] s;\n    casez (s) // synopsys parallel_case\n      2'b?1:\n        _0_ = b[3:0];\n      2'b1?:\n"
    "        _0_ = b[7:4];\n      default:\n        _0_ = a;\n    endcase\n  endfunction\n"
    "  assign z = _0_(a, { b, 1'h1, s, 1'h0 }, { _1_, _2_ });\n  assign _1_ = s == 2'h2;\n  assign _2_ = ! s;\n"
    "  assign y = a;\n",
    "a signed net": "  wire signed [3:0] t;\n  assign t = a;\n  assign y = t;\n  assign z = t & b;\n",
    "a register": "  wire [3:0] _0_;\n  reg [3:0] r;\n  always @(posedge clk)\n    r <= _0_;\n"
    "  assign _0_ = s[0] ? a : r;\n  assign y = r;\n  assign z = b;\n",
}


def trapped() -> tuple[str, list[str]]:
    """All traps as modules, and the names of those that are not the same netlist when they are readable."""
    text = "\n".join(module(body, f"trap{k}") for k, body in enumerate(TRAPS.values()))
    found = differences(text, readable(text))
    return readable(text), [name for k, name in enumerate(TRAPS) if any(f"trap{k}: " in line for line in found)]


def test_widths_and_signs_keep_the_value():
    written, different = trapped()
    assert different == []
    assert not NUMBERED.search(written)
    assert lint(written, top="trap0") == []


def test_a_fault_is_found(monkeypatch):
    """Planted: operators are put into any expression, whatever the widths."""
    monkeypatch.setattr(putting._Putting, "_fits", lambda *of, **how: True)
    assert trapped()[1] == [
        "a sum without its carry", "a sum with its carry", "a complement in a wider sum", "a sum that is compared",
        "signs beside no signs", "a shifted sum", "a number without a width",
    ]  # fmt: skip


def test_a_selection_is_a_case():
    written = readable(module(TRAPS["a selection"]))
    assert "case (s)\n      2'h0: z_of = {1'h1, s, 1'h0};\n      2'h2: z_of = b;\n      default: z_of = a;\n" in written
    assert "casez" not in written


def test_a_selection_by_several_values_stays_a_function():
    text = module(TRAPS["a selection"].replace("_1_ = s == 2'h2", "_1_ = a == 4'h2"))
    assert differences(text, readable(text)) == []
    assert "casez" in readable(text) and "case (" not in readable(text)


def test_an_unknown_item_is_refused():
    with pytest.raises(ValueError, match=r"unknown item in module core:   specify"):
        readable(module("  specify\n"))


@pytest.mark.parametrize(
    ("design", "modulus"),
    [case for d in DESIGNS for case in ((d.name, small(d.name)), long(d.name, "2^61-1"))],
)
def test_every_design_keeps_its_netlist(design, modulus):
    """The digest does not depend on how the text is written."""
    core = build(design, modulus, "plain" if design == "kbe" else "native")
    netlist = core._netlist
    assert differences(netlist, core.verilog) == []
    assert not NUMBERED.search(core.verilog)
    assert "parallel_case" not in core.verilog
    assert unexplained(core.verilog) == []
    assert core.fitted.core(core.io).timing == core.contract.timing
    assert re.findall(r"^module", core.verilog, re.MULTILINE) == re.findall(r"^module", netlist, re.MULTILINE)
    assert (
        core.digest == emit.netlist_digest(f"// a comment\n{netlist}") != emit.netlist_digest(f"{netlist}endmodule\n")
    )


def unexplained(verilog: str) -> list[str]:
    """The modules whose comment lacks a purpose, a latency or a source."""
    comments = re.findall(r"((?:^//.*\n)*)(?:^\(\*.*\n)*^module (\w+)", verilog, re.MULTILINE)
    assert comments
    said = re.compile(
        r"(?s)// (?!Latency)[^.]{6,}.*Latency: (?:\d+ cycles?|the cycles of|that of .*cycles)\b.*\n// Source: \w"
    )
    return [
        name
        for comment, name in comments
        if not said.match(comment.replace("\n// ", " ").replace(" Source:", "\n// Source:"))
    ]


@pytest.mark.parametrize("lost", ["The product of two numbers. ", "Latency: ", "Source: "])
def test_a_module_without_its_comment_is_found(lost):
    """Planted: a comment without its purpose, its latency or its source."""
    text = "// The product of two numbers. Latency: 80 cycles.\n// Source: a book, Section 1\nmodule core(a);\n"
    assert unexplained(text) == []
    assert unexplained(text.replace(lost, "")) == ["core"]


def test_an_engine_keeps_its_netlist():
    core = ecc("P-192", "radix64k-ram", {})
    assert differences(core._netlist, core.verilog) == []


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("radix64k-ram", {"bus": "axi4-lite"}), ("montgomery-array", {"cores": 2}), ("hbe", {"bus": "ahb-lite"}),
        ("karatsuba-solinas", {"bus": "wishbone"}), ("sor-2m", {"bus": "apb"}),
    ],
)  # fmt: skip
def test_each_module_of_an_engine_says_what_it_is_for(name, settings):
    """Its latency and its source, too."""
    core = ecc("P-192", name, {}, **settings)
    text = whole(core.device, find_bus(core.bus), core.verilog) if core.bus else core.verilog
    assert not NUMBERED.search(text)
    assert unexplained(text) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a+b*c", "a + (b * c)"), ("(a+b)*c", "(a + b) * c"), ("a-(b-c)", "a - (b - c)"), ("a-b-c", "a - b - c"),
        ("a&b&c", "a & b & c"), ("a&(b&c)", "a & (b & c)"), ("~(a|b)", "~(a | b)"), ("a & ~b", "a & ~b"),
        ("a & |b", "a & (|b)"), ("a ? b : c ? a : b", "a ? b : c ? a : b"), ("{a, a, a}", "{3{a}}"),
        ("{b, a, a, a}", "{b, {3{a}}}"), ("{2{a, b}}", "{2{a, b}}"), ("t[a]", "t[a]"), ("a[3:1]", "a[3:1]"),
        ("{a, b ? -5 : 7}", "{a, b ? 32'd4294967291 : 32'd7}"), ("{2{-1}}", "{2{32'd4294967295}}"),
        ("(a == b) ? 3'h1 : 3'd2", "(a == b) ? 3'h1 : 3'd2"), ("$signed(a) >>> 2", "$signed(a) >>> 2"),
    ],
)  # fmt: skip
def test_expressions_are_printed_as_they_are_read(text, shown):
    assert str(parsed(text)) == shown
    assert parsed(shown) == parsed(str(parsed(text)))


def test_widths_of_expressions():
    nets = {"a": 4, "b": 7}
    sizes = {"a + b": 7, "a == b": 1, "{a, b}": 11, "a >> b": 4, "a ? a : b": 7, "b[5:2]": 4, "b[2]": 1, "~a": 4,
             "&a": 1, "3'h5": 3, "5": 32, "{3{a}}": 12, "$signed(b)": 7, "t[a]": 17, "t[0]": 17}  # fmt: skip
    assert {text: width(parsed(text), nets, {"t": 17}) for text in sizes} == sizes


def test_what_follows_an_expression_is_refused():
    with pytest.raises(ValueError, match="b follows the expression in a b"):
        parsed("a b")
