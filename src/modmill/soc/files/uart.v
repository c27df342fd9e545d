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

// Requests of four words to accesses, and replies of three words: operation, address, data, check; status, data, check.
// The check is the CRC-32 of all words so far without the checks. After a wrong one `wrong` is high and nothing is done.
module uart_accesses #(
  parameter READ = 0,
  parameter WRITE = 1,
  parameter WAIT = 2,
  parameter MOST = 1,  // cycles of an operation WAIT
  parameter [1:0] DONE = 0,
  parameter [1:0] REFUSED = 1,
  parameter [1:0] UNKNOWN = 2
) (
  input clk,
  input rst,
  input i_valid,
  output i_ready,
  input [31:0] i_data,
  output o_valid,
  input o_ready,
  output [31:0] o_data,
  output reg wrong,
  output select,
  output reg [11:0] address,
  output [31:0] write_data,
  output [3:0] strobe,
  input ready,
  input error,
  input [31:0] read_data,
  input irq
);
  localparam CHECK = 3'd3;  // the steps before it take the words of a request
  localparam ACCESS = 3'd4;
  localparam STATUS = 3'd5;
  localparam DATA = 3'd6;
  localparam END = 3'd7;
  reg [2:0] step;
  reg [5:0] left;  // bits of a word that are not in the sum yet
  reg [31:0] word;
  reg [31:0] sum;
  reg [1:0] operation;
  reg known;
  reg [1:0] status;
  reg [31:0] data;
  reg [20:0] passed;
  wire waits = operation == WAIT;
  wire takes = i_valid && i_ready;
  wire ended = !known || (waits ? irq || {11'b0, passed} == data : ready);
  wire [1:0] outcome = !known ? UNKNOWN : !waits && error ? REFUSED : DONE;

  assign i_ready = step <= CHECK && left == 0 && !wrong;
  assign o_valid = step >= STATUS && left == 0;
  assign o_data = step == STATUS ? {30'b0, status} : step == DATA ? data : ~sum;
  assign select = step == ACCESS && known && !waits;
  assign write_data = data;
  assign strobe = {4{operation == WRITE}};
  always @(posedge clk) begin
    if (left != 0) begin
      left <= left - 1;
      word <= word >> 1;
      sum <= (sum >> 1) ^ (sum[0] ^ word[0] ? 32'hedb88320 : 32'h0);
    end
    if (takes && step != CHECK) begin
      word <= i_data;
      left <= 32;
      step <= step + 1;
    end
    if (takes) case (step)
      3'd0: begin
        operation <= i_data[1:0];
        known <= i_data == READ || i_data == WRITE || i_data == WAIT;
      end
      3'd1: begin
        address <= i_data[11:0];
        known <= known && (waits || (i_data[31:12] == 0 && i_data[1:0] == 0));
      end
      3'd2: begin
        data <= i_data;
        known <= known && (!waits || i_data <= MOST);
      end
      default: begin
        wrong <= i_data != ~sum;
        if (i_data == ~sum) step <= ACCESS;
      end
    endcase
    passed <= step == ACCESS ? passed + 1 : 0;
    if (step == ACCESS && ended) begin
      status <= outcome;
      data <= outcome != DONE ? 0 : waits ? {11'b0, passed} : operation == READ ? read_data : 0;
      step <= STATUS;
      word <= {30'b0, outcome};
      left <= 32;
    end
    if (o_valid && o_ready) begin
      step <= step == END ? 0 : step + 1;
      word <= data;
      left <= step == STATUS ? 32 : 0;
    end
    if (rst) begin
      step <= 0;
      left <= 0;
      sum <= ~32'h0;
      wrong <= 0;
    end
  end
endmodule
