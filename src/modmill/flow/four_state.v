// SPDX-License-Identifier: Apache-2.0
// Copyright The Modmill authors
//
// Bench of a core in four states; the other half is four_state.py, which sets the parameters and defines MODMILL_TOP and
// MODMILL_PINS, the core and its connections, for a core without stream k MODMILL_BUILT_IN, and for one without an alarm
// MODMILL_WITHOUT_ALARM.

`timescale 1ns / 1ns
module modmill_four_state;
  parameter A = 0, B = 0, K = 0, R = 0;  // highest bits of i_a, i_b, k_m and o_r
  parameter STALLS = 1;                  // length of the pattern of stalls in cycles
  parameter UNKNOWN = 1;                 // the run ends after this number of cycles with x on the handshake
  reg clk, rst, i_valid, o_ready, k_valid;
  reg [A:0] i_a, next_a;
  reg [B:0] i_b, next_b;
  reg [K:0] k_m, next_k;
  wire i_ready, o_valid, k_ready, o_alarm;
  wire [R:0] o_r;
  `MODMILL_TOP dut (`MODMILL_PINS);
`ifdef MODMILL_BUILT_IN
  assign k_ready = 1'b0;
`endif
`ifdef MODMILL_WITHOUT_ALARM
  assign o_alarm = 1'b0;
`endif
  reg stalls [0:STALLS - 1];
  integer accepted_at [0:1023];
  integer operands, words, resets, first, timeout;
  integer operand_file, word_file, log, fields, cycle, accepted, seen, taken, loaded, gap, word_gap, before;
  integer last_event, longest, drained_at, unknown;
  reg due, waiting, draining, finished;
  task next_operands;
    if (accepted < operands) fields = $fscanf(operand_file, "%h %h %d", next_a, next_b, gap);
  endtask
  task next_word;
    if (loaded < words) fields = $fscanf(word_file, "%h %d %d", next_k, before, word_gap);
  endtask
  task drive;
    begin
      k_valid = 0;
      k_m = {(K + 1){1'bx}};
      if (cycle >= first && loaded < words && before <= accepted) begin
        if (word_gap > 0) word_gap = word_gap - 1;
        else begin
          k_valid = 1;
          k_m = next_k;
        end
      end
      i_valid = 0;
      i_a = {(A + 1){1'bx}};
      i_b = {(B + 1){1'bx}};
      if (cycle >= first && accepted < operands) begin
        if (gap > 0) gap = gap - 1;
        else begin
          i_valid = 1;
          i_a = next_a;
          i_b = next_b;
        end
      end
      o_ready = draining | ~stalls[cycle % STALLS];
    end
  endtask
  task note;
    begin
      $fwrite(log, "%b%b%b%b%b%b%b", k_valid, k_ready, i_valid, i_ready, o_valid, o_ready, o_alarm);
      if (o_valid !== 1'b0) $fwrite(log, " %h", o_r);
      $fwrite(log, "\n");
      if (^{i_ready, o_valid, k_ready} === 1'bx) unknown = unknown + 1;
    end
  endtask
  task sample;
    begin
      if (k_valid && k_ready) begin
        loaded = loaded + 1;
        last_event = cycle;
        next_word;
      end
      if (i_valid && i_ready) begin
        accepted_at[accepted % 1024] = cycle;
        accepted = accepted + 1;
        last_event = cycle;
        next_operands;
      end
      if (o_valid && taken < accepted) begin
        if (seen == taken) begin
          seen = seen + 1;
          last_event = cycle;
          if (cycle - accepted_at[taken % 1024] > longest) longest = cycle - accepted_at[taken % 1024];
        end
        if (o_ready) begin
          taken = taken + 1;
          last_event = cycle;
        end
      end
      if (taken == operands && !draining) begin
        draining = 1;
        drained_at = cycle + 16 + longest;
      end
      finished = unknown == UNKNOWN || (draining ? cycle >= drained_at : cycle - last_event > timeout);
    end
  endtask
  initial begin
    fields = $value$plusargs("operands=%d", operands);
    fields = $value$plusargs("words=%d", words);
    fields = $value$plusargs("reset=%d", resets);
    fields = $value$plusargs("first=%d", first);
    fields = $value$plusargs("timeout=%d", timeout);
    operand_file = $fopen("operands", "r");
    word_file = $fopen("words", "r");
    log = $fopen("log", "w");
    $readmemb("stalls", stalls);
    cycle = 0; accepted = 0; seen = 0; taken = 0; loaded = 0; last_event = 0; longest = 0; unknown = 0;
    waiting = 0; draining = 0; finished = 0;
    next_operands;
    next_word;
    clk = 0;
    rst = 1;
    repeat (resets) begin
      #1 clk = 1;
      #1 clk = 0;
    end
    rst = 0;
    while (!finished) begin
      drive;
      #1 note;
      sample;
      clk = 1;
      #1 clk = 0;
      cycle = cycle + 1;
    end
    $fclose(log);
    $finish;
  end
endmodule
