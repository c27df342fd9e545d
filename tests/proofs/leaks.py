# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A small multiplier whose timing leaks its operands, in three ways or none, or a loaded modulus."""

LEAKS = {
    "early exit on zero": ("a == 0", "count <= 0"),
    "stall at a carry": ("sum[4]", "count <= count"),
    "slow address of a table": ("table_[a[1:0]] == 0", "count <= 3"),
}
"""Condition and effect on the counter."""
NONE = ("0", "count <= 0")
OF_MODULUS = ("m[3]", "count <= count")


def leaking(condition, effect):
    return f"""
module core(clk, rst, k_valid, k_ready, k_m, i_valid, i_ready, i_a, i_b, o_valid, o_ready, o_r);
  input clk, rst, k_valid, i_valid, o_ready; input [3:0] k_m, i_a, i_b; output k_ready, i_ready, o_valid;
  output [4:0] o_r;
  reg [3:0] a, b, m; reg [2:0] count; reg [4:0] table_ [3:0]; wire [4:0] sum = a + b;
  assign k_ready = count == 0; assign i_ready = count == 0 & !k_valid; assign o_valid = count == 1;
  assign o_r = sum ^ table_[a[1:0]] ^ m;
  always @(posedge clk) begin
    if (k_valid & k_ready) m <= k_m;
    if (i_valid & i_ready) begin a <= i_a; b <= i_b; table_[count[1:0]] <= 3; end
    if (rst) count <= 0; else if (i_valid & i_ready) count <= 5;
    else if ({condition}) {effect}; else if (count != 0) count <= count - 1;
  end
endmodule
"""
