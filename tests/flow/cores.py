# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Small hand-written cores for the tests of the flow: a multiplier modulo P with two stages, and faulty copies.

And what Icarus says of an emitted text, where it is installed.
"""

import os
import subprocess
import tempfile

from modmill.flow import four_state
from modmill.flow.simulate import Widths

P = 4_294_967_291  # largest prime below 2^32
WIDTHS = Widths(32, 32, 32)

GOOD = f"""
module core(clk, rst, i_valid, i_ready, i_a, i_b, o_valid, o_ready, o_r);
  input clk, rst, i_valid, o_ready;
  input [31:0] i_a, i_b;
  output i_ready, o_valid;
  output [31:0] o_r;
  reg full, done;
  reg [63:0] product;
  reg [31:0] result;
  wire give = done & o_ready;
  wire move = full & (~done | give);
  assign i_ready = ~full | move;
  assign o_valid = done;
  assign o_r = result;
  always @(posedge clk) begin
    if (i_valid & i_ready) product <= i_a * i_b;
    if (move) result <= product % 64'd{P};
    full <= (i_valid & i_ready) | (full & ~move);
    done <= move | (done & ~give);
    if (rst) begin
      full <= 0;
      done <= 0;
    end
  end
endmodule
"""


def _with(old: str, new: str) -> str:
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


VALID_DROPPED = _with("move | (done & ~give)", "move")
READY_IGNORED = _with("i_ready = ~full | move", "i_ready = 1'b1")
RESULT_CHANGED = _with("if (move) result", "if (full) result").replace("~full | move", "1'b1", 1)
NO_RESET = _with("      done <= 0;\n", "")
WRONG_VALUE = _with(str(P), str(P - 2))
VALID_WAITS_FOR_READY = _with("o_valid = done", "o_valid = done & o_ready")
EXTRA_RESULT = _with("done <= move | (done & ~give)", "done <= move | (done & ~give) | (give & result[0])")
FULL_NOT_RESET = _with("      full <= 0;\n", "")
SLOW_RESET = _with("    if (rst) begin", "    was_rst <= rst;\n    if (rst & was_rst) begin").replace(
    "  reg full, done;", "  reg full, done, was_rst;"
)
"""It needs a reset of two cycles."""


def icarus_complaints(verilog: str) -> str:
    """What Icarus says when it reads a text as Verilog-2001; nothing where it is not installed."""
    if not four_state.available():
        return ""
    with tempfile.NamedTemporaryFile("w", suffix=".v") as file:  # version 11 does not read `-`
        file.write(verilog)
        file.flush()
        done = subprocess.run(
            ["iverilog", "-g2001", "-o", os.devnull, file.name],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    return done.stdout + done.stderr or ("" if done.returncode == 0 else f"exit code {done.returncode}")
