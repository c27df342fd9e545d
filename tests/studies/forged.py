# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Planted faults of built machines: another RTL in a folder, a module around the machine that spoils answers."""

import json
import re

from modmill.studies.build import digest

INSIDE = """module {top}(input clk, input rst, input i_valid, output i_ready, input [31:0] i_data,
              output o_valid, input o_ready, output [31:0] o_data, output o_last);
  wire [31:0] word;
  wire there, taken, open;
  reg [3:0] late;
  {top}_inside whole(.clk(clk), .rst(rst), .i_valid(i_valid), .i_ready(i_ready), .i_data(i_data), .o_ready(taken),
    .o_valid(there), .o_data(word), .o_last(o_last));
  always @(posedge clk)
    if (rst | (there & taken)) late <= 0;
    else if (there) late <= late + (late != 15);
"""


def forged(folder, text, stem="engine"):
    """The folder with another RTL and the digests to go with it."""
    source = (folder / f"{stem}.v").read_text()
    head, _ = source.split("\n\n", 1)
    head = re.sub(r"sha256:[0-9a-f]{64}", digest(text), head)
    (folder / f"{stem}.v").write_text(f"{head}\n\n{text}")
    record = json.loads((folder / f"{stem}.json").read_text()) | {"digest": digest(text)}
    (folder / f"{stem}.json").write_text(json.dumps(record))


def spoiled(folder, fault, stem="engine"):
    """The folder with a module around its machine, whose answers go through ``fault``."""
    _, text = (folder / f"{stem}.v").read_text().split("\n\n", 1)
    text = text.replace(f"module {stem}(", f"module {stem}_inside(", 1)
    forged(folder, f"{INSIDE.format(top=stem)}{fault}\nendmodule\n\n{text}", stem)
