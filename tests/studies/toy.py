# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""An engine of a few lines with two streams of words, of which the outcome of a fault can be told by hand."""

TOP = "toy"
GIVES = 20
"""The count with which a word is given; it is 0 while the engine waits for one, and 1 in the next cycle."""
_CHECK = "word != store[2] && count >= 2"
TOY = f"""module {TOP}(clk, rst, i_valid, i_ready, i_data, o_valid, o_ready, o_data, o_last, o_alarm);
  input clk, rst, i_valid, o_ready;
  input [15:0] i_data;
  output i_ready, o_valid, o_last, o_alarm;
  output [15:0] o_data;
  reg [15:0] word;
  reg [15:0] store [0:3];
  reg [4:0] count;
  assign i_ready = count == 0;
  assign o_valid = count == {GIVES} && !o_alarm;
  assign o_data = word + store[2];
  assign o_last = 1;
  assign o_alarm = {_CHECK};
  always @(posedge clk) begin
    if (i_valid && i_ready) begin
      word <= i_data;
      store[i_data[15] ? 3 : 2] <= i_data;
    end
    if (rst) count <= 0;
    else if (o_alarm) count <= count;
    else if (count == 0) count <= i_valid;
    else if (count == {GIVES}) count <= o_ready ? 0 : count;
    else count <= count + 1;
  end
endmodule
"""
UNCHECKED = TOY.replace(_CHECK, "1'b0")
"""The same without its check: an alarm that never comes."""
WORDS = (0x1234, 0x00F1)
ANSWERS = tuple(2 * word & 0xFFFF for word in WORDS)
