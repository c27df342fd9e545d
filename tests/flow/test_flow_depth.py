# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Levels of lookup tables, of texts whose depth is known and of a core with DSP blocks."""

import subprocess
import sys

import pytest

from modmill.cores.multiplier.build import build
from modmill.flow import tiles
from modmill.flow.depth import measure

AND = """
module core(clk, a, o);
  input clk;
  input [{top}:0] a;
  output reg o;
  always @(posedge clk) o <= &a;
endmodule
"""
CHAIN = """
module core(clk, a, b, c, o);
  input clk;
  input [{top}:0] a, b, c;
  output reg o;
  wire [{n}:0] s;
  assign s[0] = o;
  genvar i;
  generate for (i = 0; i < {n}; i = i + 1) assign s[i + 1] = (s[i] & a[i]) ^ (b[i] | ~c[i] & s[i]); endgenerate
  always @(posedge clk) o <= s[{n}];
endmodule
"""


@pytest.mark.parametrize(
    ("bits", "levels"), [(4, {4: 1, 6: 1}), (6, {4: 2, 6: 1}), (16, {4: 2, 6: 2}), (64, {4: 3, 6: 3})]
)
def test_levels_of_a_tree(bits, levels):
    assert measure(AND.format(top=bits - 1)).levels == levels


def test_a_chain_of_functions_of_four_inputs():
    """A carry-select form is shorter than the chain, and neither form is shorter with fewer inputs."""
    found = measure(CHAIN.format(n=6, top=5))
    assert found.levels[4] <= 6 and found.levels[6] <= found.levels[4]
    assert found.luts[6] <= found.luts[4] and set(found.values) > {"levels_4", "luts_6"}


def test_paths_end_at_dsp_blocks(monkeypatch):
    core = build("channel-multiply", "2^17-145", "native")
    assert tiles.find(core.verilog)
    found = measure(core.verilog)
    monkeypatch.setattr(tiles, "find", lambda _: {})
    through = measure(core.verilog)
    assert all(found.levels[k] < through.levels[k] and found.luts[k] < through.luts[k] - 100 for k in (4, 6))


def test_the_command_prints_the_levels(tmp_path):
    build("mcivor", "97", "native").write(tmp_path / "core", check=False)
    done = subprocess.run(
        [sys.executable, "-m", "modmill", "depth", str(tmp_path / "core")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "levels of LUTs with 4 inputs" in done.stdout
    done = subprocess.run(
        [sys.executable, "-m", "modmill", "depth", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1
