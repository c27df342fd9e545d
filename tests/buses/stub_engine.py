# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A small engine with pauses of its own, and the device that describes it: every kind of message, in few cycles."""

from dataclasses import replace

from modmill.buses.device import Command, Counted, Device, Sent
from modmill.buses.files import bus_texts

KEY, ECHO, ONE, SUM = range(4)
SETUP = 0x80000001, 2, 0x7FFFFFFF
COUNTED = Counted(most=9, times=1, plus=1, shift=1, numbers=2, threads=2, stated=True)
DEVICE = Device(
    "curve", "stub", "sha256:89abcdef" + 56 * "0", 255, 8, 2,
    (Command(KEY, "setup", 3, 0), Command(ECHO, "echo", 24, 24), Command(ONE, "one", 1, 1),
     Command(SUM, "sum", COUNTED.words(9), 2, COUNTED)),
    power_up=5, buffer=16,
    zeroise=(Sent(SUM, (9, 5), zeros=True, cut=True), Sent(KEY, zeros=True, cycles=64),
             Sent(ECHO, zeros=True, cycles=512), Sent(ONE, zeros=True, cycles=256)),
    selftest=(
        Sent(KEY, (1, 2, 3)), Sent(ONE, part=(5,), answer=(11,)), Sent(SUM, (1, 1), tuple(range(6)), answer=(23, 8))
    ),
)  # fmt: skip


def several(machines):
    """The device with several of these engines."""
    commands = tuple(command.dealt(machines) for command in DEVICE.commands)
    zeroise = tuple(replace(sent, cycles=machines * sent.cycles) for sent in DEVICE.zeroise)
    return replace(DEVICE, commands=commands, threads=2 * machines, machines=machines, zeroise=zeroise)


def keyed(device, slots, own):
    """The device with key slots for the first words of echoes and for sums; ``own``: each slot has a setup."""
    secret = {ECHO: 4, SUM: COUNTED.varying(COUNTED.most)}
    commands = tuple(replace(command, secret=secret.get(command.number, 0)) for command in device.commands)
    return replace(device, commands=commands, key_slots=slots, key_setup=() if own else SETUP)


def several_verilog(machines):
    """Its Verilog, as that of several machines of an engine."""
    return VERILOG.replace("module stub(", "module stub_core(") if machines > 1 else VERILOG


def write(folder, bus):
    """Write the stub behind a bus, with all files of the front."""
    for name, text in bus_texts(DEVICE, bus, VERILOG).items():
        (folder / name).write_text(text)


def answer(key, command, words, machines=1):
    """The answer of the stub; ``key``: sum of the words of the last setup."""
    if machines > 1:
        head, each = words[: DEVICE.commands[command].head], words[DEVICE.commands[command].head :]
        size = len(each) // machines
        parts = [[*head, *each[k * size : (k + 1) * size]] for k in range(machines)]
        return [word for part in parts for word in answer(key, command, part)]
    mask = 2**32 - 1
    if command == SUM:
        return [(sum(words) + key) & mask, len(words)]
    return [(word + key) & mask for word in words]


VERILOG = """
module stub(input clk, input rst, input i_valid, output i_ready, input [31:0] i_data,
            output reg o_valid, input o_ready, output reg [31:0] o_data, output reg o_last);
  reg hold;            // set by the bench: takes no words
  reg [31:0] words [0:63];
  reg [31:0] key, sum;
  reg [15:0] noise;
  reg [6:0] count, wanted, at;
  reg [1:0] command;
  reg [2:0] state;     // command, words, work, answer
  reg [7:0] work;
  initial hold = 0;
  assign i_ready = state < 2 & noise[0] & ~hold;
  wire take = i_valid & i_ready;
  always @(posedge clk) begin
    noise <= {noise[14:0], noise[15] ^ noise[13] ^ noise[12] ^ noise[10]};
    case (state)
      0: if (take) begin
        command <= i_data[1:0];
        count <= 0;
        sum <= 0;
        wanted <= i_data[1:0] == 0 ? 3 : i_data[1:0] == 1 ? 24 : i_data[1:0] == 2 ? 1 : 127;
        state <= 1;
      end
      1: if (take) begin
        words[count] <= i_data;
        sum <= sum + i_data;
        count <= count + 1;
        if (command == 3 & count == 0)
          wanted <= 2 + 2 * (((i_data + 1) >> 1) + 2);
        if (count + 1 == wanted) begin
          state <= command == 0 ? 0 : 2;
          if (command == 0) key <= sum + i_data;
        end
        work <= 40;
        at <= 0;
      end
      2: begin
        work <= work - 1;
        if (work == 0) state <= 3;
      end
      3: if (~o_valid | o_ready) begin
        o_valid <= noise[1] & at != (command == 3 ? 2 : wanted);
        o_data <= command == 3 ? (at == 0 ? sum + key : wanted) : words[at] + key;
        o_last <= at + 1 == (command == 3 ? 2 : wanted);
        if (at == (command == 3 ? 2 : wanted)) state <= 0;
        else if (noise[1]) at <= at + 1;
      end
    endcase
    if (rst) begin
      state <= 0;
      o_valid <= 0;
      noise <= 1;
    end
  end
endmodule
"""
