# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Mutants in one text do as the original until one is chosen; none that simulation finds is proved equivalent."""

from collections import Counter

import pytest

from modmill.flow.lint import lint
from modmill.flow.simulate import Simulator, Widths
from modmill.flow.tools import ToolError
from modmill.proofs.mutants.equivalence import Operands, _Graph, _Pair, _unreached, _views, equivalent
from modmill.proofs.mutants.mutate import CLASSES, DROPPED, Places, chosen, mutate, planted
from modmill.proofs.netlist import Netlist

ADDER = """
module core(clk, rst, i_valid, i_ready, i_a, i_b, o_valid, o_ready, o_r);
  input clk, rst, i_valid, o_ready;
  input [3:0] i_a, i_b;
  output i_ready, o_valid;
  output [4:0] o_r;
  reg full, again;
  reg [4:0] total [1:0];
  reg at, kept;
  wire take = i_valid & i_ready;
  initial begin total[0] = 5'd0; total[1] = 5'd0; kept = 1'b0; end
  assign i_ready = o_ready | ~full;
  assign o_valid = full & again;
  assign o_r = total[kept];
  always @(posedge clk) begin
    if (take) total[at] <= i_a + i_b;
    if (take) kept <= at;
    if (rst) at <= 1'b0; else if (take) at <= ~at;
    if (rst) full <= 1'b0; else if (i_ready) full <= i_valid;
    if (rst) again <= 1'b0; else again <= take | (full & ~o_ready);
  end
endmodule
"""
"""Adds two numbers. ``again`` is equal to ``full`` in every state that a reset reaches, and made in another way."""
A = [(k * 7 + 3) % 16 for k in range(64)]
B = [(k * k + k // 16) % 16 for k in range(64)]


@pytest.fixture(scope="module")
def mutated():
    """Most mutants of the adder that there are."""
    return mutate(ADDER, "core", 160)


def simulated(text):
    """Numbers of the mutants that simulation finds."""
    simulator = Simulator(text.verilog, widths=Widths(4, 4, 5))
    wanted = [a + b for a, b in zip(A, B, strict=True)]

    def right(number):
        with chosen(number):
            runs = [simulator.run(A, B, gap=g, stall=s, seed=k + 1, timeout=100)
                    for k, (g, s) in enumerate(((0, 0), (0.3, 0.3), (0.5, 0), (0, 0.6)))]  # fmt: skip
        return all(run.results == wanted and not run.violations for run in runs) and runs[0].cycles == 66

    assert right(0), "the original must pass"
    return {number for number in range(1, len(text.mutants) + 1) if not right(number)}


@pytest.fixture(scope="module")
def found(mutated):
    """Numbers of the mutants that simulation finds."""
    return simulated(mutated)


@pytest.fixture(scope="module")
def proved(mutated, found):
    """Mutants that are proved equivalent, tried with those that pass and 20 that do not."""
    some = sorted(found)[:: len(found) // 20]
    return equivalent(mutated, sorted({*range(1, len(mutated.mutants) + 1)} - found | {*some}), 5)


def numbers(mutated, **wanted):
    """Numbers of mutants with these fields."""
    return {
        number
        for number, mutant in enumerate(mutated.mutants, 1)
        if all(getattr(mutant, name) == value for name, value in wanted.items())
    }


def test_every_class_is_drawn_and_named(mutated):
    kinds = Counter(mutant.kind for mutant in mutated.mutants)
    assert set(kinds) == set(CLASSES)
    assert numbers(mutated, kind="reset", what=DROPPED, name="full")
    assert all(mutant.name for mutant in mutated.mutants)


def test_classes_share_a_draw(mutated):
    some = mutate(ADDER, "core", 25, seed=3)
    kinds = Counter(mutant.kind for mutant in some.mutants)
    assert len(some.mutants) == 25
    assert max(kinds[k] for k in CLASSES[:4]) - min(kinds[k] for k in CLASSES[:4]) <= 1
    assert kinds["initial"] <= 2
    assert some.verilog == mutate(ADDER, "core", 25, seed=3).verilog
    assert some.mutants != mutate(ADDER, "core", 25, seed=4).mutants


def test_simulation_finds_what_must_be_found(mutated, found):
    assert numbers(mutated, what="add becomes sub") <= found
    assert numbers(mutated, kind="reset", name="full", what=DROPPED) <= found
    assert len(found) > len(mutated.mutants) / 2


def test_nothing_that_simulation_finds_is_proved_equivalent(found, proved):
    assert found
    assert not found & proved


def test_known_equivalent_mutants_are_proved(mutated, proved):
    """full & again is full | again, as both are equal in every state that a reset reaches."""
    gate = numbers(mutated, cell="$and", name="o_valid", what="and becomes or")
    assert gate
    assert gate <= proved


def test_a_mutant_that_changes_no_function_is_proved():
    text = ADDER.replace("full & again;", "(full & again) | (full & again & i_a[0]);")
    same = mutate(text, "core", 1000)
    wanted = numbers(same, what="bit 0 of B is stuck at 0", cell="$or", name="o_valid")
    assert wanted
    assert equivalent(same, sorted(wanted), 5) == wanted


CLEARED = """
module core(clk, rst, i_valid, i_ready, i_a, i_b, o_valid, o_ready, o_r);
  input clk, rst, i_valid, o_ready;
  input [3:0] i_a, i_b;
  output i_ready, o_valid;
  output [3:0] o_r;
  reg full;
  reg [3:0] total;
  assign i_ready = 1'b1;
  assign o_valid = full;
  assign o_r = total;
  always @(posedge clk) begin
    if (rst) full <= 1'b0; else full <= i_valid;
    if (i_b[0]) total <= 4'd0; else total <= i_a;
  end
endmodule
"""


def test_a_register_with_a_reset_of_its_own_is_seen_with_it():
    """Planted: its reset is stuck, and what it would take instead is the same in both."""
    text = mutate(CLEARED, "core", 1000)
    wrong = numbers(text, what="bit 0 of SRST is stuck at 0")
    assert wrong
    assert equivalent(text, sorted(wrong), 5) == set()


HELD = """
module core(clk, rst, i_valid, i_ready, i_a, i_b, o_valid, o_ready, o_r);
  input clk, rst, i_valid, o_ready;
  input [3:0] i_a, i_b;
  output i_ready, o_valid;
  output [4:0] o_r;
  reg full, turn;
  reg [3:0] total;
  assign i_ready = o_ready | ~full;
  assign o_valid = full;
  assign o_r = {turn, total};
  always @(posedge clk) begin
    if (rst) full <= 1'b0; else if (i_ready) full <= i_valid;
    if (i_valid & i_ready) total <= i_a ^ i_b;
    if (rst) turn <= 1'b0; else turn <= turn ? turn : full;
  end
endmodule
"""


def test_a_register_that_a_low_enable_writes_keeps_its_reset():
    """Its reset becomes a multiplexer, which must act while the register is held too."""
    enabled = (c["parameters"].get("EN_POLARITY", "1") for c in Netlist.read(HELD, "core").cells.values())
    assert any(int(polarity, 2) == 0 for polarity in enabled)
    text = mutate(HELD, "core", 1000)
    assert any("reset value" in mutant.line and "o_r[4]" in mutant.line for mutant in text.mutants)
    plain, with_mutants = (
        Simulator(verilog, widths=Widths(4, 4, 5)).run(A, B, gap=0.3, seed=1, timeout=100)
        for verilog in (HELD, text.verilog)
    )
    assert plain.results == with_mutants.results


def test_operands_beyond_the_largest_do_not_count():
    text = mutate(CLEARED, "core", 1000)
    top = numbers(text, what="bit 3 of D is stuck at 0")
    assert top
    assert equivalent(text, sorted(top), 5) == set()
    assert equivalent(text, sorted(top), 5, operands=Operands(7)) == top


def test_operands_in_digits_count_up_to_their_value():
    """Two digits of two bits, one bit apart: up to 3 the highest bit, worth 4, is 0, and the one below not."""
    text = mutate(CLEARED, "core", 1000)
    high, low = (numbers(text, what=f"bit {k} of D is stuck at 0") for k in (3, 2))
    assert high
    assert low
    assert equivalent(text, sorted(high | low), 5, operands=Operands(3, digit=2, step=1)) == high
    assert equivalent(text, sorted(high | low), 5, operands=Operands(3)) == high | low


TABLE = CLEARED.replace(
    "assign o_r = total;", "reg [3:0] words [0:15];\n  assign o_r = words[total] ^ {4{full}};"
).replace(
    "  always",
    "  initial begin\n" + "".join(f"    words[{k}] = {k * k % 7};\n" for k in range(16)) + "  end\n  always",
    1,
)
"""Squares modulo 7 of the numbers at i_a: they are 0, 1, 2 and 4, and their highest bit is 0."""


def test_a_table_that_is_never_written_is_read_as_it_stands():
    """The highest bit is 0 in all words, the one below is not."""
    text = mutate(TABLE, "core", 1000)
    same, other = (numbers(text, what=f"bit {k} of A is stuck at 0", cell="$xor") for k in (3, 2))
    assert same
    assert other
    assert equivalent(text, sorted(same | other), 5) == same


PARITY = CLEARED.replace("assign o_r = total;", "assign o_r = total ^ {4{full}};")


def test_values_beyond_their_range_do_not_count():
    """Below 4 bit 2 is 0, below 5 not; with the operand b as selector only if it is 2 or 5."""
    text = mutate(PARITY, "core", 1000)
    low, high = (numbers(text, what=f"bit {k} of A is stuck at 0", cell="$xor") for k in (1, 2))
    assert low
    assert high
    both = sorted(low | high)
    assert equivalent(text, both, 5, ranges={("total", ""): {0: 4}}) == high
    assert equivalent(text, both, 5, ranges={("total", ""): {0: 5}}) == set()
    assert equivalent(text, both, 5, ranges={("total", "i_b"): {2: 4, 5: 3}}) == high
    assert equivalent(text, both, 5, ranges={("total", "i_b"): {2: 4, 5: 5}}) == set()


SHIFT = (
    CLEARED.replace("reg full;", "reg full;\n  reg [1:0] turn;")
    .replace("full <= i_valid;", "full <= turn == 2'd2;")
    .replace(
        "if (i_b[0]) total <= 4'd0; else total <= i_a;",
        "if (rst) turn <= 2'd0; else turn <= turn + 2'd1;\n"
        "    total <= {turn == 2'd0 ? {i_a[1] & i_b[1], i_a[0]} : i_b[1:0], total[3:2]};",
    )
)
"""A shift register of two words. In turn 3 it has those of turns 1 and 2, in turn 2 those of turns 0 and 1."""


@pytest.mark.parametrize(("text", "same"), [(SHIFT, True), (SHIFT.replace("turn == 2'd2", "turn == 2'd1"), False)])
def test_a_word_that_has_left_a_shift_register_differs_no_more(text, same):
    """The word of turn 0 differs. Ranges, here of all values, leave only the view in which data are flags."""
    netlist = Netlist.read(text, "core")
    sites = [site for group in Places(netlist).groups() for site in group]
    text = planted(netlist, "core", [site for site in sites if site.mutant.what == "and becomes or"])
    assert len(text.mutants) == 1
    assert equivalent(text, [1], 5, ranges={("total", ""): {0: 16}}) == ({1} if same else set())


QUEUE = ADDER
for old, new in (
    ("total [1:0]", "total [31:0]"), ("reg at, kept", "reg [4:0] at, kept"), ("at <= 1'b0", "at <= 5'd0"),
    ("at <= ~at", "at <= at == 5'd2 ? 5'd0 : at + 5'd1"),
    ("kept = 1'b0", "kept = 5'd0; total[2] = 5'd0; total[9] = 5'd0"),
):  # fmt: skip
    QUEUE = QUEUE.replace(old, new)
"""The adder with three places in a memory of 32 words, too large to be exact: data in it are flags."""


def test_data_as_flags():
    """No mutant that simulation finds is proved; words that are written before they are read, or never read, are."""
    text = mutate(QUEUE, "core", 80)
    killed = simulated(text)
    assert len(killed) > 30
    graph = _Graph(text.module)
    view = next(iter(_views(text, graph)))
    memory = {name for name, cell in text.module["cells"].items() if cell["type"] == "$mem_v2"}
    assert memory and memory <= view.data
    some = {*range(1, len(text.mutants) + 1)} - killed | {*sorted(killed)[::8]}
    miters = {f"m{k}": _Pair(text, graph, k, view, 1, {}).miter(None) for k in some}
    proved = {int(name[1:]) for name in _unreached(miters, 5, exact=True)}
    assert not killed & proved
    visited = {int(name[1:]) for name in _unreached(miters, 0, exact=False, visited=True)}
    assert not killed & visited
    assert len(visited) > 10, "states are visited"
    words = {k for k, m in enumerate(text.mutants, 1) if m.cell == "$mem_v2" and m.kind == "initial"}
    assert len(words) >= 2
    assert words <= proved
    assert proved > words


def test_mutated_text_is_clean_but_for_what_chooses(mutated):
    assert [line for line in lint(mutated.verilog) if "$c" not in line and "chosen" not in line] == []


def test_refusals():
    with pytest.raises(ValueError, match="at least 1, not 0"):
        mutate(ADDER, "core", 0)
    with pytest.raises(ToolError, match="yosys"):
        mutate("module core(;", "core", 1)
