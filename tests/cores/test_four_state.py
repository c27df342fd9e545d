# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""One small core of every design in four states, where Icarus is installed: no x reaches an output after reset."""

import re

import pytest

from modmill.cores.multiplier import four_state
from modmill.cores.multiplier.build import build
from modmill.cores.multiplier.verify import Report
from modmill.designs import DESIGNS
from modmill.flow import four_state as icarus
from modmill.flow.simulate import Simulator, widths
from modmill.flow.tools import ToolError

WIDE = {
    "pseudo-mersenne": 2**61 - 1, "solinas": 2**61 - 1, "karatsuba": 2**85 - 19,
    "karatsuba-solinas": 2**85 - 2**60 - 1, "karatsuba-montgomery": 2**80 - 65,
    "karatsuba-two-level": 2**61 - 1, "karatsuba-two-level-solinas": 2**64 - 2**32 + 1,
}  # fmt: skip
"""They need 52 or 69 bits, and a modulus near a power of two."""


def small(design):
    """Its core for 97 or that of WIDE: binary where there is such a form, loaded where a modulus can be."""
    name = design.name
    loadable = any(setting.name == "loadable" for setting in design.settings)
    p = WIDE.get(name, 97)
    settings = {"loadable": True} if loadable else {}
    fitted = design.fit(p, **settings)
    return build(name, p, fitted.binary if "plain" in fitted.forms else "native", **settings)


def found(core, verilog, **how):
    """What the check finds; None where there is no Icarus and that is what it says."""
    report = Report(core.name)
    if icarus.available():
        four_state.check(core, verilog, report, **how)
        return report
    with pytest.raises(ToolError, match=r"apt install iverilog$"):
        four_state.check(core, verilog, report, **how)
    return None


def without_reset(verilog, register):
    """The text where no reset reaches that register."""
    text, count = re.subn(rf"^( *{register} <= )rst \? \d+'[hd]\w+ : ", r"\1", verilog, flags=re.MULTILINE)
    assert count == 1
    return text


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_no_x_reaches_an_output(design):
    core = small(design)
    seen = found(core, core.verilog if icarus.available() else "", cycles=1000)
    assert seen is None or (seen.failures == [] and seen.products > 6 and seen.cycles > 50)


@pytest.mark.parametrize("name", ["kbe-reduction", "hbe-reduction"])
def test_a_pass_without_a_cox_reads_no_unknown_word(name):
    """h of the other pass was the address of a word that is 0 in hardware and unknown here."""
    core = build(name, 3, "native", cox=False)
    seen = found(core, core.verilog if icarus.available() else "", cycles=1000)
    assert seen is None or seen.failures == []


def test_two_states_and_four_behave_alike():
    core = build("mcivor", 97, "montgomery", loadable=True)
    simulator = Simulator(core.verilog, widths=widths(core.contract), instances=2)
    seen = found(core, core.verilog, simulator=simulator)
    assert seen is None or seen.failures == []
    # the same core, one cycle later: x it shows none, and its products are right
    late = core.verilog.replace("module core(", "module core_inner(", 1) + _delayed(core)
    seen = found(core, late, simulator=simulator)
    assert seen is None or any("full rate: valid: number 0 has cycle" in line for line in seen.failures)
    assert seen is None or not any("unknown" in line for line in seen.failures)


def _delayed(core):
    """A core whose results wait for one more cycle."""
    a, r, k = core.contract.operand.width, core.contract.result.width, core.contract.load.width
    return f"""
module core(clk, rst, k_valid, k_ready, k_m, i_valid, i_ready, i_a, i_b, o_valid, o_ready, o_r);
  input clk, rst, k_valid, i_valid, o_ready;
  input [{k - 1}:0] k_m;
  input [{a - 1}:0] i_a, i_b;
  output k_ready, i_ready, o_valid;
  output [{r - 1}:0] o_r;
  wire valid;
  reg late;
  assign o_valid = valid & late;
  core_inner inner(clk, rst, k_valid, k_ready, k_m, i_valid, i_ready, i_a, i_b, valid, o_ready & late, o_r);
  always @(posedge clk) late <= valid & ~(o_valid & o_ready) & ~rst;
endmodule
"""


@pytest.fixture(scope="module")
def mcivor():
    return build("mcivor", 97, "native")


@pytest.mark.parametrize(
    ("register", "port"),
    [
        ("o_valid", "o_valid"),
        ("v_valid", "o_r"),
        ("pending", "o_valid"),
        ("cycle", "i_ready"),
        ("_room", "i_ready"),
    ],
)
def test_register_without_reset_is_found(mcivor, register, port):
    seen = found(mcivor, without_reset(mcivor.verilog, register), cycles=300)
    assert seen is None or any(line.startswith(f"four-state, at once: {port} ") for line in seen.failures)


def test_wrong_value_and_text_that_does_not_compile_are_found(mcivor):
    other = build("mcivor", 89, "native").verilog
    seen = found(mcivor, other, cycles=300)
    assert seen is None or any("not congruent to" in line for line in seen.failures)
    seen = found(mcivor, mcivor.verilog.replace("endmodule", "end module"))
    assert seen is None or (len(seen.failures) == 1 and "does not compile" in seen.failures[0])


def test_number_of_products_follows_cycles_and_time(mcivor):
    few = found(mcivor, mcivor.verilog, seconds=0.0)
    many = found(mcivor, mcivor.verilog, cycles=10_000)
    assert few is None or (few.products == four_state.LEAST and few.failures == []), "a slow core has one run"
    assert many is None or many.products == four_state.LEAST + 2 * four_state.MOST
