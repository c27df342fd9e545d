# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A circuit that rotates a key of two shares, a and b with a ^ b = key, and never has both in one register.

The first word of a run is its mode: `SAFE`, or one of the planted leaks. `SHARED`: the register of a takes b too, so as
many bits change as the key has ones. `SWAP`: the shares change places if the lowest bit of the key is 1. `WRITE`: the
rotated shares are written to the memory only if that bit is 1. `WAIT`: then the answer comes a cycle later.
"""

TOP = "shares"
BITS = 16
SAFE, SHARED, SWAP, WRITE, WAIT = range(5)
TEXT = f"""module {TOP}(clk, rst, i_valid, i_ready, i_data, o_valid, o_ready, o_data, o_last);
  input clk, rst, i_valid, o_ready;
  input [15:0] i_data;
  output i_ready, o_valid, o_last;
  output [15:0] o_data;
  reg [2:0] mode, count;
  reg [15:0] a, b, x, y;
  reg [15:0] kept [0:3];
  reg turned;
  wire bit_0 = a[0] ^ b[0];
  assign i_ready = count < 3;
  assign o_valid = count >= 6;
  assign o_data = count == 6 ? x : y;
  assign o_last = count == 7 && kept[mode[1:0]] != 1;
  always @(posedge clk) begin
    if (rst) count <= 0;
    else if (count < 3) count <= count + i_valid;
    else if (count == 4 && mode == {WAIT} && bit_0 && !turned) turned <= 1;
    else count <= count + 1;
    if (count == 0) begin
      mode <= i_data;
      turned <= 0;
    end
    if (count == 1) a <= i_data;
    if (count == 2) b <= i_data;
    if (count == 3) x <= {{a[14:0], a[15]}};
    if (count == 4) y <= {{b[14:0], b[15]}};
    if (count == 5 && mode == {SWAP} && bit_0) {{x, y, turned}} <= {{y, x, 1'b1}};
    if (count == 5 && mode == {WRITE} && bit_0) kept[mode[1:0]] <= x;
    if (count == 7) a <= mode == {SHARED} ? b : 0;
    if (count == 7) b <= 0;
  end
endmodule
"""
