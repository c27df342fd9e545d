# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Planted faults of built machines: another RTL in a folder, a module around the machine that spoils answers."""

import json
import re

from modmill.cores.engine_files import names
from modmill.flow.emit import digest
from modmill.report.seal import record_text, sealed

INSIDE = """module {top}(input clk, input rst, input i_valid, output i_ready, input [31:0] i_data,
              output o_valid, input o_ready, output [31:0] o_data, output o_last);
  wire [31:0] word;
  wire there, taken, open, last;
  reg [3:0] late;
  {top}_inside whole(.clk(clk), .rst(rst), .i_valid(i_valid), .i_ready(i_ready), .i_data(i_data), .o_ready(taken),
    .o_valid(there), .o_data(word), .o_last(last));
  always @(posedge clk)
    if (rst | (there & taken)) late <= 0;
    else if (there) late <= late + (late != 15);
"""
LAST = "  assign o_last = last;\n"


def declared(body):
    """The head of the module ``core``, with its ports as wires."""
    return re.search(r"^module core\(.*?^\);", body, re.MULTILINE | re.DOTALL)[0].replace("output reg ", "output wire")


def stamped(folder, stem="engine"):
    """The folder with digest and seal of what lies in it, as if it had been written so."""
    head, text = (folder / f"{stem}.v").read_text().split("\n\n", 1)
    texts = {name: (folder / name).read_text() for name in names(stem)}
    record = json.loads(texts.pop(f"{stem}.json"))
    old, new = record["digest"], digest(text)
    texts = {name: given.replace(old, new) for name, given in texts.items()}
    texts[f"{stem}.v"] = f"{re.sub(r'sha256:[0-9a-f]{64}', new, head)}\n\n{text}"
    texts[f"{stem}.json"] = record_text(sealed(record | {"digest": new}, texts))
    for name, given in texts.items():
        (folder / name).write_text(given)


def forged(folder, text, stem="engine"):
    """The folder with another RTL and the digests to go with it."""
    head, _ = (folder / f"{stem}.v").read_text().split("\n\n", 1)
    (folder / f"{stem}.v").write_text(f"{head}\n\n{text}")
    stamped(folder, stem)


def spoiled(folder, fault, stem="engine"):
    """The folder with a module around its machine, whose answers go through ``fault``."""
    _, text = (folder / f"{stem}.v").read_text().split("\n\n", 1)
    text = text.replace(f"module {stem}(", f"module {stem}_inside(", 1)
    last = "" if "assign o_last" in fault else LAST
    forged(folder, f"{INSIDE.format(top=stem)}{last}{fault}\nendmodule\n\n{text}", stem)
