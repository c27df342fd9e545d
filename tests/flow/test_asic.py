# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Cells of a Liberty library, and a core mapped to them. The library of the tests is made here; that of Debian's
qflow-tech-osu018 is used where it is installed."""

import json
import shutil
from fractions import Fraction
from pathlib import Path

import pytest
from command import modmill

from modmill.flow import asic, liberty
from modmill.flow.memories import BlockRam, behavioural
from modmill.flow.tools import ToolError

OSU018 = Path("/usr/share/qflow/tech/osu018/osu018_stdcells.lib")


def _table(name: str, values: str) -> str:
    return f'{name}(scalar) {{ values("{values}"); }}'


def _arc(pin: str, kind: str, delay: str) -> str:
    times = {"cell_rise": delay, "cell_fall": delay, "rise_transition": "0.1", "fall_transition": "0.1"}
    rows = {name: f'"{value}, {value}"' for name, value in times.items()}
    tables = " ".join(f"{name}(grid) {{ values({row}, {row}); }}" for name, row in rows.items())
    return f'    timing() {{ related_pin : "{pin}"; {kind} {tables} }}\n'


def _gate(name: str, area: float, function: str, pins: str = "AB") -> str:
    inputs = "".join(f"  pin({pin}) {{ direction : input; capacitance : 0.01; }}\n" for pin in pins)
    output = f'  pin(Y) {{ direction : output; function : "{function}";\n'
    arcs = "".join(_arc(pin, "", "0.5") for pin in pins)
    return f"cell ({name}) {{\n  area : {area};\n{inputs}{output}{arcs}  }}\n}}\n"


FLIP_FLOP = """cell (FF) {
  area : 8; /* a register: D } */
  ff(IQ, IQN) { next_state : "D"; clocked_on : "C"; }
  pin(C) { direction : input; clock : true; capacitance : 0.01; }
  pin(D) { direction : input; capacitance : 0.01;
    timing() { related_pin : "C"; timing_type : setup_rising;
      rise_constraint(scalar) { values("0.25"); } fall_constraint(scalar) { values("0.25"); } }
  }
  pin(Q) { direction : output; function : "IQ";
ARC  }
}
""".replace("ARC", _arc("C", "timing_type : rising_edge;", "1"))
HEAD = """library (small) { time_unit : "1ns"; capacitive_load_unit (1, pf); delay_model : table_lookup;
  voltage_unit : "1V"; current_unit : "1mA"; pulling_resistance_unit : "1kohm"; leakage_power_unit : "1nW";
  default_max_transition : 5;
  lu_table_template(grid) { variable_1 : input_net_transition; variable_2 : total_output_net_capacitance;
    index_1("0.01, 1"); index_2("0.001, 1"); }
"""
SINGLE = _gate("INV", 1, "A'", "A") + _gate("BUF", 1.5, "A", "A")
GATES = _gate("NAND", 2, "!(A B)") + _gate("NAND_BIG", 3, "(A*B)'") + _gate("NOR", 2.5, "!(A+B)") + SINGLE
LIBRARY = HEAD + GATES + FLIP_FLOP + "}\n"
CORE = """module core(clk, d, q);
  input clk;
  input [1:0] d;
  output reg q;
  reg [1:0] a;
  always @(posedge clk) begin
    a <= d;
    q <= ~(a[0] & a[1]);
  end
endmodule
"""


def test_cells_are_read() -> None:
    found = {cell.name: cell for cell in liberty.cells(LIBRARY)}
    assert [cell.area for cell in found.values()] == [2, 3, Fraction(5, 2), 1, Fraction(3, 2), 8]
    assert found["FF"].state and not found["NAND"].state
    assert found["NAND"].inputs == ("A", "B") and found["NAND"].functions == {"Y": "!(A B)"}
    assert liberty.smallest(list(found.values()), liberty.NAND2, "NAND").name == "NAND"
    assert liberty.smallest(list(found.values()), liberty.NOT, "inverter").name == "INV"


@pytest.mark.parametrize(
    ("function", "true"),
    [
        ("!(A B)", {0, 1, 2}), ("(A*B)'", {0, 1, 2}), ("!A | !B", {0, 1, 2}), ("A' + B'", {0, 1, 2}),
        ("A & B", {3}), ("A ^ B", {1, 2}), ("!A ^ B & A", {2 + 1}), ("!(A ^ B)", {0, 3}), ("A + B A", {2, 3}),
        ("(A+B)'", {0}),
    ],
)  # fmt: skip
def test_functions(function: str, true: set[int]) -> None:
    cell = liberty.Cell("X", Fraction(1), {"Y": function}, ("A", "B"), False)
    table = {(bool(k & 2), bool(k & 1)): k in true for k in range(4)}
    assert cell.computes(table)
    assert not cell.computes({row: not out for row, out in table.items()})
    assert not cell.computes(liberty.NOT)
    assert not liberty.Cell("X", Fraction(1), {"Y": "!(A B"}, ("A", "B"), False).computes(liberty.NAND2)


MEMORY = """module core(clk, write, address, d, q);
  input clk, write, d;
  input [1:0] address;
  output reg q;
  reg bits [0:3];
  always @(posedge clk) begin
    if (write)
      bits[address] <= d;
    q <= bits[address];
  end
endmodule
"""


def _mapped(tmp_path: Path, text: str = LIBRARY, core: str = CORE, macros: bool = False) -> asic.Mapped:
    (tmp_path / "small.lib").write_text(text)
    return asic.map_core(core, "core", tmp_path / "small.lib", macros)


def test_a_core_is_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = _mapped(tmp_path)
    assert (found.area, found.gates, found.cells, found.ff, found.memory_bits) == (26, 13, 4, 3, 0)
    stored = _mapped(tmp_path, core=MEMORY)
    assert stored.memory_bits == 4 and stored.ff == 5 and "5 flip-flops, 4 bits of memories among them" in stored.line
    assert found.period_ns is None and "no period" in found.line and found.values["cycles_per_second"] is None


def test_block_rams_are_left_out_as_macros(tmp_path: Path) -> None:
    ram = BlockRam(1, 4)
    ports = ".clk(clk), .a_address(d), .b_address(d), .b_write(q), .b_q()"
    two = f"""  wire from_first, from_second;
  {ram.name} #(.INIT(4'd1)) first({ports}, .b_d(q), .a_q(from_first));
  {ram.name} #(.INIT(4'd2)) second({ports}, .b_d(from_first), .a_q(from_second));
endmodule
"""
    core = CORE.replace("a[1]);", "from_second);").replace("endmodule\n", two) + behavioural(ram)
    found = _mapped(tmp_path, core=core, macros=True)
    assert (found.area, found.cells, found.ff, found.macros, found.memory_bits) == (18, 3, 2, {"4 x 1": 2}, 0)
    assert found.left_out.startswith("block RAMs left out") and "2 of 4 x 1 bits" in found.left_out
    found = _mapped(tmp_path, core=core)
    assert not found.macros and not found.left_out and found.memory_bits == 8 and found.ff > 10


@pytest.mark.long
@pytest.mark.skipif(not OSU018.exists(), reason="qflow-tech-osu018 is not installed")
def test_an_engine_is_mapped(tmp_path: Path) -> None:
    options = "--curve", "Curve25519", "--multiplier", "karatsuba"
    assert modmill("ecc", "build", *options, "-o", "engine", cwd=tmp_path).returncode == 0
    done = modmill("asic", "engine", "--liberty", str(OSU018), "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert sum(found["macros"].values()) > 5 and found["ff"] > 5_000 and found["gates"] > 50_000
    assert "latency" not in found


def test_the_answer_of_opensta_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in on PATH that looks for its files."""
    program = tmp_path / asic.STA
    found = "PATH=/bin:/usr/bin; grep -q FF mapped.v && grep -q small cells.lib && grep -q 'period 100' sta.tcl"
    program.write_text(f"#!/bin/sh\n{found} && echo 'worst slack 98.2500'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = _mapped(tmp_path)
    assert found.period_ns == 1.75
    assert "1.750 ns (571.4 MHz) without wires" in found.line
    assert found.values["cycles_per_second"] == 571_400_000
    program.write_text("#!/bin/sh\necho 'Error: no network has been linked.'\n")
    with pytest.raises(ToolError, match="no worst slack"):
        _mapped(tmp_path)


@pytest.mark.skipif(shutil.which(asic.STA) is None, reason="OpenSTA is not installed")
def test_opensta_times_it(tmp_path: Path) -> None:
    assert _mapped(tmp_path).period_ns == 1.75  # 1 ns from the clock, 0.5 for the NAND, 0.25 for the setup


def test_refusals(tmp_path: Path) -> None:
    for text, message in {
        "module x; endmodule": "not a Liberty library",
        "library (x) { }": "has no cell with an area",
        LIBRARY.replace("(NAND)", "(NAND) { area : 0; } cell (B)").replace("!(A B)", "A B").replace("(A*B)'", "A"):
            "no NAND with two inputs",
        HEAD + _gate("NAND", 2, "!(A B)") + "}": "no inverter",
        LIBRARY.replace('"A"; }', '"A\'"; }').replace('function : "A";', 'function : "A B";'): "no buffer",
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=message):
            _mapped(tmp_path, text)
    with pytest.raises(ToolError, match="D flip-flops are not supported"):
        _mapped(tmp_path, HEAD + GATES + "}")


@pytest.mark.skipif(not OSU018.exists(), reason="qflow-tech-osu018 is not installed")
def test_a_library_of_debian() -> None:
    found = asic.map_core(CORE, "core", OSU018)
    assert found.gates == round(found.area / 24) and found.library == OSU018.name
    assert found.ff == 3 and (found.period_ns is None) == (shutil.which(asic.STA) is None)
