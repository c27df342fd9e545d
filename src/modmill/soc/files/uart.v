// SPDX-License-Identifier: Apache-2.0
// Copyright The Modmill authors
//
// Words of 32 bits over a serial line: 8 bits, no parity, one stop bit, DIVIDER cycles a bit; of a word its lowest byte
// comes first. A break (the line is low for 16 bits) resets what is behind it.

module uart_receiver #(
  parameter DIVIDER = 217,
  parameter WIDTH = 12
) (
  input clk,
  input rst,
  input rx,
  output reg broken,
  output reg valid,
  output reg [7:0] data
);
  reg [1:0] seen;
  reg [3:0] left;  // bits of a byte, with start and stop
  reg [WIDTH-1:0] count;
  reg [WIDTH+3:0] low;  // cycles for which the line is low

  always @(posedge clk) begin
    seen <= {seen[0], rx};
    low <= seen[1] ? 0 : broken ? low : low + 1;
    broken <= !seen[1] && low >= 16 * DIVIDER;
    valid <= 0;
    if (left == 0) begin
      if (!seen[1] && !broken) begin
        left <= 10;
        count <= DIVIDER / 2;
      end
    end else if (count != 0) begin
      count <= count - 1;
    end else begin
      count <= DIVIDER - 1;
      left <= left == 10 && seen[1] ? 0 : left - 1;
      if (left == 1) valid <= seen[1];
      else if (left != 10) data <= {seen[1], data[7:1]};
    end
    if (rst) begin
      left <= 0;
      valid <= 0;
    end
  end
endmodule

module uart_sender #(
  parameter DIVIDER = 217,
  parameter WIDTH = 12
) (
  input clk,
  input rst,
  input valid,
  output ready,
  input [7:0] data,
  output tx
);
  reg [9:0] shift;
  reg [3:0] left;
  reg [WIDTH-1:0] count;

  assign ready = left == 0;
  assign tx = left == 0 || shift[0];
  always @(posedge clk) begin
    if (valid && ready) begin
      shift <= {1'b1, data, 1'b0};
      left <= 10;
      count <= DIVIDER - 1;
    end else if (left != 0) begin
      count <= count == 0 ? DIVIDER - 1 : count - 1;
      if (count == 0) begin
        shift <= {1'b1, shift[9:1]};
        left <= left - 1;
      end
    end
    if (rst) left <= 0;
  end
endmodule

// Bytes to words, through a queue of 16 words. `lost` stays high after a word came while the queue was full.
module uart_words (
  input clk,
  input rst,
  input byte_valid,
  input [7:0] byte_data,
  output valid,
  input ready,
  output [31:0] data,
  output reg lost
);
  reg [31:0] queue [0:15];
  reg [4:0] written;
  reg [4:0] read;
  reg [1:0] place;
  reg [23:0] lower;
  wire full = written - read == 5'd16;
  wire whole = byte_valid && place == 2'd3;

  assign valid = written != read;
  assign data = queue[read[3:0]];
  always @(posedge clk) begin
    if (byte_valid) begin
      lower <= {byte_data, lower[23:8]};
      place <= place + 1;
    end
    if (whole && !full) begin
      queue[written[3:0]] <= {byte_data, lower};
      written <= written + 1;
    end
    if (valid && ready) read <= read + 1;
    lost <= lost || (whole && full);
    if (rst) begin
      written <= 0;
      read <= 0;
      place <= 0;
      lost <= 0;
    end
  end
endmodule

// Words to bytes.
module uart_bytes (
  input clk,
  input rst,
  input valid,
  output ready,
  input [31:0] data,
  output byte_valid,
  input byte_ready,
  output [7:0] byte_data
);
  reg [1:0] place;

  assign byte_valid = valid;
  assign byte_data = data >> {place, 3'b000};
  assign ready = byte_ready && place == 2'd3;
  always @(posedge clk) begin
    if (valid && byte_ready) place <= place + 1;
    if (rst) place <= 0;
  end
endmodule
