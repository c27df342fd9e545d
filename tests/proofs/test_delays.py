# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Shift registers of control with open contents: what never happens with them never happens without."""

from dataclasses import replace
from itertools import product

import pytest

from modmill.cores.multiplier.build import build
from modmill.proofs.handshake import delays
from modmill.proofs.handshake.constant_time import dependent, users_of
from modmill.proofs.handshake.monitors import Monitored, Pace
from modmill.proofs.handshake.result_way import Results
from modmill.proofs.netlist import Netlist

LENGTH = 6
CHAIN = f"""module core(input clk, rst, i_valid, o_ready, output i_ready, o_valid);
  reg [{LENGTH - 1}:0] tokens;
  assign i_ready = ~o_valid | o_ready, o_valid = tokens[{LENGTH - 1}];
  always @(posedge clk)
    if (rst) tokens <= 0;
    else if (i_ready) tokens <= {{tokens[{LENGTH - 2}:0], i_valid}};
endmodule
"""


def answers(net):
    """For many signals: whether they never happen with open contents, and whether they never happen."""
    for kind, number in product(("under way", "silent", "due"), (1, LENGTH - 1, LENGTH, LENGTH + 1)):
        watched = Monitored(net, Pace(LENGTH, 1), steady=False)
        waits = watched.all_of([watched.inverse(watched.empty), watched.inverse(watched.o_valid)])
        wrong = {
            "under way": lambda w=watched, n=number: w.equal(w.under_way, n),
            "silent": lambda w=watched, n=number, on=waits: w.all_of([on, w.equal(w.age(n, on), n)]),
            "due": lambda w=watched, n=number: w.all_of([
                w.mark.due, w.o_valid, w.inverse(w.mark.start), w.equal(w.marked_age(2 * LENGTH), n)
            ]),
        }[kind]()  # fmt: skip
        yield kind, number, watched.never(wrong, 10).answer == "never", watched.search(wrong, 10).answer == "never"


def test_open_contents_show_the_same():
    found = list(answers(Netlist.read(CHAIN, "core")))
    assert all(short == exact for _, _, short, exact in found), found
    assert {(kind, exact) for kind, _, _, exact in found} == {
        *product(("under way", "silent", "due"), (False, True)),
    }


@pytest.mark.parametrize("more", [-1, 1])
def test_a_chain_of_another_length_is_noticed(monkeypatch, more):
    """Planted: the contents of a shorter or a longer chain."""
    chains = delays._Cone.chains
    monkeypatch.setattr(delays._Cone, "chains", lambda cone: (replace(c, length=c.length + more) for c in chains(cone)))
    assert any(short and not exact for _, _, short, exact in answers(Netlist.read(CHAIN, "core")))


@pytest.mark.parametrize(
    "text",
    [
        CHAIN.replace(", i_valid}", ", i_valid & tokens[2]}"),  # a bit inside is used
        CHAIN.replace("tokens <= 0", "tokens <= 8"), CHAIN.replace("if (rst) tokens <= 0;\n    else ", ""),
    ],
    ids=["used", "set", "not reset"],
)  # fmt: skip
def test_only_chains_that_nothing_else_uses_are_replaced(text):
    watched = Monitored(Netlist.read(text, "core"), Pace(LENGTH, 1), steady=False)
    short = delays.shortened(watched, watched.o_valid)
    lengths = [chain.length for chain in delays._Cone(watched, watched.o_valid).chains()]
    assert max(lengths, default=0) < LENGTH - 1 and (short is None) == (not lengths)


RING = {
    "": "",
    "leaving <= rst ? 3'h0 : done": "leaving <= rst ? 3'h0 : done & o_ready",
    "number_sum = number + 1'h1": "number_sum = number + 2'h3",
    "leaving_sum = leaving + 1'h1": "leaving_sum = leaving + 2'h3",
}


@pytest.fixture(scope="module")
def ring():
    return build("karatsuba-two-level", "2^61-1", "native")


@pytest.mark.parametrize("right", RING)
def test_a_result_is_found_in_a_ring_of_words(ring, right):
    """Results wait in memories that are written and read in turn. Planted: counters that do not follow each other."""
    assert not right or ring.verilog.count(right) == 1
    at, net = ring.contract.timing, Netlist.read(ring.verilog.replace(right, RING[right]), "core")
    data = [bit for port in ("i_a", "i_b") for bit in net.module["ports"][port]["bits"]]
    watched = Monitored(net, Pace(at.latency, at.interval), steady=False)
    results = Results(watched, dependent(net, users_of(net), data), 3, through=False)
    assert watched.search(results.wrong(), 20).answer == ("perhaps" if right else "never")
    assert all("bank0.block.words" in name for name in results.stored)
