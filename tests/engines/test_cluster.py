# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Several machines behind a router: every answer is the asked machine's, under stalls, and no word is lost."""

import random

import pytest
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import fifo, wiring
from amaranth.lib.wiring import In, Out

from modmill.contract import UnsupportedError
from modmill.cores.rsa.check import check_engine
from modmill.cores.rsa.machine import engine
from modmill.engines.machine.cluster import Router, everyone, joined, packet
from modmill.flow.emit import verilog
from modmill.flow.words import WordSimulator

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


def answers(words, length):
    """(machine, words) of every answer in a stream of answers of ``length`` words each."""
    return [(words[k], words[k + 1 : k + 1 + length]) for k in range(0, len(words), length + 1)]


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


def interrupted(machines, router, cut):
    """The cluster in a module that gives no answer at first, and resets it for one cycle after ``cut`` words."""
    inner = joined(router, verilog(Toy(), "toy_core"), top="toy", machines=machines, word=WORD)
    return WordSimulator(
        f"""module cut(clk, rst, i_valid, i_ready, i_data, o_valid, o_ready, o_data, o_last);
  input clk, rst, i_valid, o_ready;
  input [{WORD - 1}:0] i_data;
  output i_ready, o_valid, o_last;
  output [{WORD - 1}:0] o_data;
  reg [8:0] count;
  wire ready, valid, after = count == {cut + 60}, pulse = count == {cut + 59};
  assign i_ready = ready & (count < {cut} | after), o_valid = valid & after;
  always @(posedge clk)
    if (rst) count <= 0;
    else if (count >= {cut} ? ~after : i_valid & i_ready) count <= count + 1;
  toy inner(.clk(clk), .rst(rst | pulse), .i_valid(i_valid & i_ready), .i_ready(ready), .i_data(i_data),
    .o_valid(valid), .o_ready(o_ready & o_valid), .o_data(o_data), .o_last(o_last));
endmodule
{inner}""",
        WORD,
        top="cut",
    )


@pytest.mark.parametrize(("machines", "more", "held"), [(2, 4, True), (5, 4, True), (5, 2, True), (5, 2, False)])
def test_a_reset_of_one_cycle_reaches_every_machine(machines, more, held):
    router = verilog(Router(machines, WORD), "toy_router")
    if not held:  # the planted fault: nothing waits for the reset to have gone round
        open_at_once = router.replace(".shut(shut)", ".shut(1'd0)")
        assert open_at_once != router
        router = open_at_once
    cut = machines * (LENGTH + 3) + more  # answers stand in all nodes, and a packet is cut short, or its head
    words = [word for k in range(10) for word in packet(k % machines, [k] * LENGTH, WORD)][:cut]
    messages = [(k % machines, [7 * k + 3 & 255] * LENGTH) for k in range(20)]
    words += [word for machine, message in messages for word in packet(machine, message, WORD)]
    found = interrupted(machines, router, cut).run(words, len(messages) * (LENGTH + 1), timeout=5000)
    came = sorted((machine, tuple(answer)) for machine, answer in answers(found.words, LENGTH))
    wanted = sorted((machine, tuple((w + 1) % 256 for w in message)) for machine, message in messages)
    assert (came == wanted and not found.violations) == held


def test_refusals():
    with pytest.raises(UnsupportedError, match="2 to 64 cores"):
        Router(1, 8)
    with pytest.raises(UnsupportedError, match="do not fit one packet"):
        packet(0, range(1 << 16), 8)


def test_powers_on_three_machines(tmp_path):
    """A built cluster passes the engine's own check: two side by side, other numbers, every word in the same cycle."""
    core = engine("montgomery-array", width=32, bits=32, window=2, threads=2, cores=3)
    folder = core.write(tmp_path / "cluster", "made for a test")
    assert "## Packets" in (folder / "README.md").read_text()
    report = check_engine(folder, full=False)
    assert not report.failures
