# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The search of all states: a counter that wraps in time, one that does not, and what is unknown."""

import pytest

from modmill.flow import tools
from modmill.proofs.states import Graph, never

COUNTER = r"""module top(input clk, input rst, input i_valid, input [4:0] other, output bad);
  reg [2:0] \reg$at ;
  reg \flag$f ;
  always @(posedge clk) begin
    \reg$at <= rst ? 3'd0 : i_valid ? (\reg$at == 3'd5 ? 3'd0 : \reg$at + 3'd1) : \reg$at ;
    \flag$f <= rst ? 1'b0 : \flag$f & (\reg$at != 3'd3);
  end
  assign bad = BAD;
endmodule
"""
FREE = COUNTER.replace("rst ? 3'd0 : i_valid ?", "i_valid ?")


def graph(text: str, bad: str, tmp_path) -> Graph:
    (tmp_path / "top.v").write_text(text.replace("BAD", bad.replace("at", "\\reg$at ").replace("flag", "\\flag$f ")))
    read = "read_verilog top.v; proc; opt_clean; techmap; opt_clean"
    script = f"{read}; simplemap; aigmap; opt_clean; write_aiger -zinit -symbols a.aig"
    tools.run(tools.yosys("-q", "-p", script), name="yosys", cwd=tmp_path)
    return Graph.read(tmp_path / "a.aig")


@pytest.mark.parametrize(
    ("text", "bad", "proved"),
    [
        (COUNTER, "~rst & at > 3'd5", True),
        (COUNTER, "~rst & at > 3'd4", False),
        (COUNTER, "~rst & flag", True),
        (COUNTER, "~rst & at == 3'd2 & &other", False),
        (COUNTER, "~rst & at > 3'd5 & &other", True),
        (FREE, "~rst & at > 3'd5", False),
        (FREE, "~rst & at == 3'd4 & at[0]", True),
    ],
)
def test_what_a_reset_reaches(text, bad, proved, tmp_path):
    found = graph(text, bad, tmp_path)
    assert any(name.startswith("reg$") for name in found.latches)
    assert never(found, 10) == proved


def test_an_unfinished_search_proves_nothing(tmp_path):
    assert not never(graph(COUNTER, "~rst & at > 3'd5", tmp_path), 0)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "a.aig").write_bytes(b"aag 0 0 0 0 0\n")
    with pytest.raises(ValueError, match="no binary AIGER file"):
        Graph.read(tmp_path / "a.aig")


def test_a_graph_without_registers_has_one_state():
    both = ((4, 3),)  # i_valid & ~rst
    assert never(Graph(("rst", "i_valid"), (), (), both, 0), 10)
    assert not never(Graph(("rst", "i_valid"), (), (), both, 6), 10)
