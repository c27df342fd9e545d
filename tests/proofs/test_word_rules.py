# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The rules of cells give what Yosys computes, for constants and for unknown integers; a wrong rule is found."""

import random
import re

import pytest

from modmill.flow import tools
from modmill.proofs.arithmetic import word_rules
from modmill.proofs.arithmetic.integers import Integers
from modmill.proofs.arithmetic.polynomials import value
from modmill.proofs.arithmetic.symbolic import Symbolic
from modmill.proofs.arithmetic.word_rules import constant, value_of
from modmill.proofs.netlist import Netlist

BINARY = ("+", "-", "*", "&", "|", "^", "~^", "<", "<=", ">", ">=", "==", "!=", "&&", "||")
UNARY = ("-", "~", "!", "&", "|", "^")
PAIRS = [(0, 0), (1, 0xFFF), (0xFFF, 0xFFF), (0x800, 0x7FF), (0x5A3, 0x5A3), (0x123, 0xEDC)]


def expressions():
    """Verilog of many operators, with operands of several widths and signs."""
    rnd = random.Random(1)
    operands = [
        "i_a",
        "i_b",
        "i_a[6:2]",
        "i_b[3:0]",
        "$signed(i_a)",
        "$signed(i_b[6:0])",
        "$signed(i_a[4:0])",
        "12'd77",
    ]
    for operator in BINARY:
        for _ in range(6):
            yield f"{rnd.choice(operands)} {operator} {rnd.choice(operands)}"
    for operator in UNARY:
        yield from (f"{operator}{operand}" for operand in ("i_a", "$signed(i_b[6:0])"))
    for operator in ("<<", ">>", ">>>"):
        yield from (f"{operand} {operator} {n}" for operand in ("i_a", "$signed(i_b)") for n in (0, 3, 13, "i_b[2:0]"))
    yield from ("i_b[0] ? i_a : 12'd5", "i_b[11] ? i_a : i_b", "{12{i_b[0]}} & i_a", "{12{i_b[0]}} | i_a", "{i_b, i_a}")


TEXTS = list(expressions())


def verilog():
    lines = ["module core(input clk, input [11:0] i_a, input [11:0] i_b"]
    lines += [f", output [19:0] y{k}" for k in range(len(TEXTS))]
    return "".join([*lines, ");\n", *(f"  assign y{k} = {text};\n" for k, text in enumerate(TEXTS)), "endmodule\n"])


@pytest.fixture(scope="module")
def wanted(tmp_path_factory):
    """The outputs for each pair of operands, as Yosys evaluates them."""
    folder = tmp_path_factory.mktemp("rules")
    (folder / "core.v").write_text(verilog())
    asked = [f"tee -q -a out.txt eval -set i_a 12'd{a} -set i_b 12'd{b}" for a, b in PAIRS]
    shown = "".join(f" -show y{k}" for k in range(len(TEXTS)))
    tools.run(
        tools.yosys("-q", "-p", "read_verilog core.v; proc; cd core; " + "; ".join(line + shown for line in asked)),
        name="yosys", cwd=folder,
    )  # fmt: skip
    found = re.findall(r"Eval result: \\y(\d+) = 20'([01]{20})", (folder / "out.txt").read_text())
    assert len(found) == len(PAIRS) * len(TEXTS)
    return [int(bits, 2) for _, bits in found]


def outputs(net, operands):
    run = Symbolic(net, Integers())
    run.ports |= dict(zip(("i_a", "i_b"), operands(run.words.integers), strict=True))
    run.settle()
    return run, [run.output(f"y{k}") for k in range(len(TEXTS))]


def differences(wanted):
    """The expressions with another value, and the number of values that were compared."""
    net, found, compared = Netlist.read(verilog(), "core"), set(), 0
    for n, (a, b) in enumerate(PAIRS):
        _, bits = outputs(net, lambda _: [tuple(x >> k & 1 for k in range(12)) for x in (a, b)])  # noqa: B023
        assert all(map(constant, bits))
        found |= {TEXTS[k] for k, y in enumerate(bits) if value_of(y) != wanted[n * len(TEXTS) + k]}
    run, bits = outputs(net, lambda make: [tuple((make.atom(x, 0, 4095), k) for k in range(12)) for x in "ab"])
    make = run.words.integers
    for k, y in enumerate(bits):
        number = run.words.integer(y)
        for n, (a, b) in enumerate(PAIRS):
            names = {
                m: {"a": a, "b": b}[atom.name] for m, atom in enumerate(make.atoms) if atom.name in "ab" and atom.name
            }
            try:
                same = value(number, make.atoms, names) == wanted[n * len(TEXTS) + k]
            except KeyError:
                continue  # a function without an expression
            compared += 1
            found |= set() if same else {TEXTS[k]}
    return found, compared


def test_rules_give_what_yosys_computes(wanted):
    found, compared = differences(wanted)
    assert found == set()
    assert compared > 0.8 * len(wanted)


@pytest.mark.parametrize(
    ("type_", "other"), [("$lt", "$logic_and"), ("$and", "$or"), ("$add", "$sub"), ("$reduce_or", "$reduce_and")]
)
def test_a_wrong_rule_is_found(wanted, monkeypatch, type_, other):
    monkeypatch.setitem(word_rules.RULES, type_, word_rules.RULES[other])
    assert differences(wanted)[0]


def test_signs_count_only_if_all_operands_have_one(wanted, monkeypatch):
    """Planted: every operand is taken as signed."""
    monkeypatch.setattr(word_rules.Words, "_signed", lambda *_: True)
    assert differences(wanted)[0]
