# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Each proof holds for what is right, and finds every planted fault."""

import pytest
from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.designs import design
from modmill.flow.emit import verilog
from modmill.flow.tools import ToolError
from modmill.numbers.folding import fold, fold_bound, fold_bounds
from modmill.proofs import prove
from modmill.proofs.handshake.constant_time import constant_time
from modmill.proofs.netlist import Netlist
from modmill.proofs.prove import ProofFailed, Proved
from modmill.rtl.fold import bits, fold_step, reduce
from modmill.rtl.product import DspBlock, product

SMALL_PRIME = 2**31 - 1

# Eight cycles for each product; the planted leaks make that depend on an operand.
SERIAL = """
module core(clk, rst, i_valid, i_ready, i_a, i_b, o_valid, o_ready, o_r);
  input clk, rst, i_valid, o_ready;
  input [7:0] i_a, i_b;
  output i_ready, o_valid;
  output [7:0] o_r;
  reg [7:0] a, b, r;
  reg [3:0] step;
  reg done;
  wire early;
  assign early = 0;
  assign i_ready = step == 0 & ~done;
  assign o_valid = done;
  assign o_r = r;
  always @(posedge clk) begin
    if (i_valid & i_ready) begin
      a <= i_a;
      b <= i_b;
      r <= 0;
      step <= 8;
    end else if (step != 0) begin
      r <= (r << 1) + (a[7] ? b : 8'd0);
      a <= a << 1;
      step <= early ? 0 : step - 1;
      done <= step == 1 | early;
    end else if (o_ready) done <= 0;
    if (rst) begin
      step <= 0;
      done <= 0;
    end
  end
endmodule
"""
LEAKS = {
    "early out when the operand is zero": SERIAL.replace("early = 0", "early = step == 8 & b == 0"),
    "early out when the rest of an operand is zero": SERIAL.replace("early = 0", "early = a == 0"),
    "operand on the ready wire": SERIAL.replace("step == 0 & ~done", "step == 0 & ~done & ~(i_valid & i_a == 255)"),
    "through a memory": SERIAL.replace(
        "wire early;",
        "reg past [0:1]; wire early;\n  always @(posedge clk) if (i_valid & i_ready) past[i_a[0]] <= i_b[3];",
    ).replace("early = 0", "early = past[1]"),
    "through a submodule": SERIAL.replace("early = 0;", "early = hit;\n  wire hit;\n  zero zero(b, hit);")
    + "\nmodule zero(input [7:0] x, output y); assign y = ~|x; endmodule\n",
}


class Reducer(wiring.Component):
    """r = lazy residue of t; with ``dropped`` the last fold loses its carry bit."""

    def __init__(self, bound, w, u, *, dropped=False):
        self.bound, self.w, self.u, self.dropped = bound, w, u, dropped
        super().__init__({"t": In(bits(bound)), "r": Out(w)})

    def elaborate(self, _platform):
        m = Module()
        if self.dropped:
            t, bound = fold_step(m, self.t, self.bound, self.w, self.u, name="once")
            short = Signal(len(t) - 1)
            m.d.comb += short.eq(t)
            m.d.comb += self.r.eq(reduce(m, Cat(short, Const(0, 1)), bound, self.w, self.u, name="rest"))
        else:
            m.d.comb += self.r.eq(reduce(m, self.t, self.bound, self.w, self.u, name="t"))
        return m


class ChannelMultiplier(wiring.Component):
    """r = lazy residue of a b, tiled."""

    def __init__(self, w, u, block):
        self.w, self.u, self.block = w, u, block
        super().__init__({"a": In(w), "b": In(w), "r": Out(w)})

    def elaborate(self, _platform):
        m = Module()
        full = product(m, self.a, self.b, self.block, name="ab", register=None)
        m.d.comb += self.r.eq(reduce(m, full, 1 << 2 * self.w, self.w, self.u, name="t"))
        return m


class Product(wiring.Component):
    """p = a b, tiled; with ``dropped`` one carry out of a sum of rows is lost."""

    def __init__(self, a, b, block, *, dropped=False):
        self.block, self.dropped = block, dropped
        super().__init__({"a": In(a), "b": In(b), "p": Out(a + b)})

    def elaborate(self, _platform):
        m = Module()
        if not self.dropped:
            m.d.comb += self.p.eq(product(m, self.a, self.b, self.block, name="ab", register=None))
            return m
        half = len(self.b) // 2
        low = product(m, self.a, self.b[:half], self.block, name="low", register=None)
        high = product(m, self.a, self.b[half:], self.block, name="high", register=None)
        short = Signal(len(high))
        m.d.comb += [short.eq(high + low[half:]), self.p.eq(Cat(low[:half], short[:-1]))]
        return m


# ---- folding over the integers


@pytest.mark.parametrize(
    ("w", "u", "terms"),
    [(17, 1, 1), (17, 145, 20), (66, 5, 1), (66, 2**32 + 1, 1), (66, 513, 8), (256, 2**32 + 977, 1), (2048, 12345, 3)],
)
def test_folding_is_proved_at_its_full_width_and_one_fold_less_or_another_u_is_refuted(w, u, terms):
    bound = terms * ((1 << w) - 1) ** 2 + 1
    assert isinstance(good := prove.prove_reduction(w, u, bound), Proved), good
    folds = len(fold_bounds(bound, w, u))
    less = prove.prove_reduction(w, u, bound, folds=folds - 1)
    t = less.counterexample["T"]
    assert 0 <= t < bound
    for _ in range(folds - 1):
        t = fold(t, w, u)
    assert t >> w
    for factor in (u - 1, u + 1):
        other = prove.prove_reduction(w, u, bound, factor=factor)
        assert isinstance(other, ProofFailed)
        assert 0 <= other.counterexample["T"] < bound


def test_the_proof_follows_the_number_of_folds_and_the_widths_that_the_hardware_gets(monkeypatch):
    monkeypatch.setattr(prove, "fold_bounds", lambda *args: fold_bounds(*args)[:-1])
    assert isinstance(prove.prove_reduction(66, 5, 1 << 132), ProofFailed)
    # a signal one value too small: the largest sum would be cut
    monkeypatch.setattr(prove, "fold_bounds", lambda *args: (fold_bounds(*args)[0] - 1, *fold_bounds(*args)[1:]))
    failed = prove.prove_reduction(66, 5, 1 << 132)
    assert fold(failed.counterexample["T"], 66, 5) == fold_bound(1 << 132, 66, 5) - 1


# ---- emitted Verilog, bit by bit


@pytest.mark.parametrize(
    ("w", "u", "bound"), [(6, 3, 1 << 12), (6, 1, 8 * 63**2 + 1), (8, 5, 1 << 16), (9, 9, 1 << 14)]
)
def test_reducer_is_congruent(w, u, bound):
    width = max(bits(bound), w) + 1
    claim = f"r % {2**w - u} == t % {2**w - u}"
    result = prove.prove_equal_small(Reducer(bound, w, u), claim, width=width, assume=f"t < {bound}")
    assert isinstance(result, Proved), result


def test_reducer_with_a_dropped_carry_is_refuted():
    w, u = 6, 3
    m = 2**w - u
    failed = prove.prove_equal_small(Reducer(1 << 12, w, u, dropped=True), f"r % {m} == t % {m}", width=13)
    assert (failed.counterexample["t"] - failed.counterexample["r"]) % m


def test_reducer_for_another_modulus_is_refuted():
    failed = prove.prove_equal_small(Reducer(1 << 12, 6, 3), "r % 59 == t % 59", width=13)
    assert (failed.counterexample["t"] - failed.counterexample["r"]) % 59


def test_channel_multiplier_is_congruent():
    result = prove.prove_equal_small(ChannelMultiplier(6, 3, DspBlock(3, 4)), "r % 61 == a * b % 61", width=12)
    assert isinstance(result, Proved), result


@pytest.mark.parametrize(("a", "b", "block"), [(7, 7, DspBlock(3, 3)), (7, 6, DspBlock(2, 3)), (5, 9, DspBlock(3, 4))])
def test_tiled_product_is_the_product(a, b, block):
    result = prove.prove_equal_small(Product(a, b, block), "p == a * b", width=a + b)
    assert isinstance(result, Proved), result


def test_product_with_a_dropped_carry_is_refuted():
    failed = prove.prove_equal_small(Product(7, 7, DspBlock(3, 3), dropped=True), "p == a * b", width=14)
    example = failed.counterexample
    assert example["p"] != example["a"] * example["b"]


def test_an_undecided_proof_is_no_proof():
    with pytest.raises(ToolError, match="undecided"):
        prove.prove_equal_small(Product(24, 24, DspBlock(5, 7)), "p == a * b", width=48, timeout=0.2)


# ---- constant latency


def test_serial_core_has_constant_latency():
    assert constant_time(Netlist.read(SERIAL, "core")).path == ()
    assert isinstance(prove.prove_constant_latency_by_induction(SERIAL), Proved)


@pytest.mark.parametrize("leak", LEAKS)
def test_leaks_are_found(leak):
    assert SERIAL not in LEAKS[leak]
    path = constant_time(Netlist.read(LEAKS[leak], "core")).path
    assert path and path[0].startswith(("i_a", "i_b"))
    if leak != "through a memory":  # two memories wake up different: that is no leak of operands
        shown = prove.prove_constant_latency_by_induction(LEAKS[leak])
        assert isinstance(shown, ProofFailed)
        assert shown.counterexample["i_a_0"] != shown.counterexample["i_a_1"] or (
            shown.counterexample["i_b_0"] != shown.counterexample["i_b_1"]
        )


def test_a_port_that_is_missing_is_an_error():
    with pytest.raises(ToolError):
        prove.prove_constant_latency_by_induction(SERIAL, data=("i_a", "i_c"))


@pytest.mark.parametrize("name", ["sor-1m-n", "sor-1m-p", "sor-2m", "sor-ring"])
@pytest.mark.parametrize("io", ["native", "plain"])
def test_designs_have_constant_latency(name, io):
    text = verilog(design(name).fit(SMALL_PRIME).core(io))
    assert constant_time(Netlist.read(text, "core")).path == ()


@pytest.mark.parametrize("name", ["sor-1m-p", "sor-ring"])
def test_induction_agrees(name):
    text = verilog(design(name).fit(SMALL_PRIME).core("native"))
    assert isinstance(result := prove.prove_constant_latency_by_induction(text), Proved), result
