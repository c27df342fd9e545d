# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Several machines behind a router: every answer is the asked machine's, under stalls, and no word is lost."""

import random

import pytest
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import fifo, wiring
from amaranth.lib.wiring import In, Out

from modmill.contract import Refusal
from modmill.design import unused
from modmill.engines.cluster import Router, answers, everyone, joined, packet
from modmill.flow.emit import verilog
from modmill.flow.words import WordSimulator
from modmill.studies.engine import engine
from modmill.studies.engine_check import check_engine

WORD, LENGTH = 8, 5


class Toy(wiring.Component):
    """Answers a message of LENGTH words with the same words, each one more, the first word cycles later."""

    def __init__(self):
        super().__init__({
            "i_valid": In(1), "i_ready": Out(1), "i_data": In(WORD),
            "o_valid": Out(1), "o_ready": In(1), "o_data": Out(WORD), "o_last": Out(1),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = fifo.SyncFIFO(width=WORD, depth=8)
        taken, given, wait = Signal(range(LENGTH + 1)), Signal(range(LENGTH + 1)), Signal(WORD)
        whole = taken == LENGTH
        m.d.comb += [
            self.i_ready.eq(~whole), queue.w_en.eq(self.i_valid & self.i_ready), queue.w_data.eq(self.i_data),
            self.o_valid.eq(whole & (wait == 0)), self.o_data.eq(queue.r_data + 1), self.o_last.eq(given == LENGTH - 1),
            queue.r_en.eq(self.o_valid & self.o_ready),
        ]  # fmt: skip
        with m.If(queue.w_en):
            m.d.sync += [taken.eq(taken + 1), wait.eq(Mux(taken == 0, self.i_data, wait))]
        with m.Elif(whole & (wait != 0)):
            m.d.sync += wait.eq(wait - 1)
        with m.If(queue.r_en):
            m.d.sync += given.eq(given + 1)
            with m.If(self.o_last):
                m.d.sync += [given.eq(0), taken.eq(0)]
        return m


def several(machines, router=None):
    texts = router or verilog(Router(machines, WORD), "toy_router"), verilog(Toy(), "toy_core")
    return WordSimulator(joined(*texts, top="toy", machines=machines, word=WORD), WORD, top="toy")


def run(simulator, machines, gap, stall, seed):
    """Answers that came and those that should, for each machine in order."""
    rnd = random.Random(seed)
    words, wanted = [], [[] for _ in range(machines)]
    for k in range(40):
        message = [rnd.randrange(256) for _ in range(LENGTH)]
        target = everyone(WORD) if k % 10 == 9 else rnd.randrange(machines)
        for machine in range(machines) if target == everyone(WORD) else (target,):
            wanted[machine].append([(word + 1) % 256 for word in message])
        words += packet(target, message, WORD)
    count = sum(map(len, wanted)) * (LENGTH + 1)
    found = simulator.run(words, count, gap=gap, stall=stall, seed=seed, timeout=20000)
    came = [[] for _ in range(machines)]
    for machine, answer in answers(found.words, LENGTH):
        came[machine % machines].append(answer)
    return found.violations, came, wanted


@pytest.mark.parametrize("machines", [2, 5])
def test_every_machine_answers_its_own_messages(machines):
    simulator = several(machines)
    for gap, stall in ((0, 0), (0.3, 0.5)):
        violations, came, wanted = run(simulator, machines, gap, stall, machines)
        assert not violations
        assert came == wanted


def test_a_router_that_mixes_two_answers_is_noticed():
    good = verilog(Router(2, WORD), "toy_router")
    bad = good.replace(".r_last(r0_last)", ".r_last(1'd1)")  # it lets the other go before the answer ends
    assert bad != good
    violations, came, wanted = run(several(2, bad), 2, 0, 0, 1)
    assert violations or came != wanted


def test_refusals():
    with pytest.raises(Refusal, match="2 to 64 cores"):
        unused(Router(1, 8))
    with pytest.raises(Refusal, match="do not fit one packet"):
        packet(0, range(1 << 16), 8)


def test_powers_on_three_machines(tmp_path):
    """A built cluster passes the engine's own check: two side by side, other numbers, every word in the same cycle."""
    core = engine("montgomery-array", width=32, bits=32, window=2, contexts=2, cores=3)
    folder = core.write(tmp_path / "cluster", "made for a test")
    assert "## Packets" in (folder / "README.md").read_text()
    report = check_engine(folder, full=False)
    assert not report.failures
