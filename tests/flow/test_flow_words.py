# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The simulator of word streams reports words, times and every planted fault of the handshake."""

import pytest

from modmill.flow.words import WordSimulator

ECHO = """
module core(input clk, input rst, input i_valid, output i_ready, input [11:0] i_data,
            output reg o_valid, input o_ready, output reg [11:0] o_data, output reg o_last);
  reg [7:0] count;
  assign i_ready = !o_valid | o_ready;
  always @(posedge clk) begin
    count <= count + 1;
    if (i_valid & i_ready) begin
      o_valid <= 1;
      o_data <= ~i_data;
      o_last <= i_data[1:0] == 3;
    end else if (o_ready) o_valid <= 0;
    // fault
    if (rst) begin
      o_valid <= 0;
      count <= 0;
    end
  end
endmodule
"""
FAULTS = {
    "o_valid dropped": "if (o_valid & !o_ready) o_valid <= 0;",
    "o_data or o_last changed": "if (o_valid & !o_ready) o_data <= o_data + 1;",
    "o_last changed": "if (o_valid & !o_ready) o_last <= ~o_last;",
    "a word more": "if (count == 200) o_valid <= 1;",
    "timeout: 0 of 20": "o_valid <= 0;",
}
WORDS = list(range(20))


def test_words_and_times():
    run = WordSimulator(ECHO, 12).run(WORDS, 20)
    assert run.words == [4095 - word for word in WORDS]
    assert run.violations == []
    assert run.accepted == list(range(1, 21))
    assert run.valid == list(range(2, 22))
    assert run.cycles == 22
    assert run.last == [False, False, False, True] * 5


def test_two_side_by_side_with_pauses_and_stalls():
    runs = WordSimulator(ECHO, 12, instances=2).run_pair((WORDS, 20), (WORDS[::-1], 20), gap=0.5, stall=0.5)
    assert [run.words for run in runs] == [[4095 - word for word in words] for words in (WORDS, WORDS[::-1])]
    assert all(not run.violations and run.cycles > 40 for run in runs)
    assert runs[0].accepted != runs[1].accepted


@pytest.mark.parametrize(("expected", "fault"), FAULTS.items())
def test_planted_faults_are_reported(expected, fault):
    run = WordSimulator(ECHO.replace("// fault", fault), 12).run(WORDS, 20, gap=0.3, stall=0.5, timeout=100)
    assert any(expected in line for line in run.violations), run.violations


def test_an_engine_that_always_shows_a_word_and_takes_none_times_out():
    stuck = ECHO.replace("// fault", "o_valid <= 1;").replace("count <= 0;", "count <= 0; o_valid <= 1;")
    stuck = stuck.replace("i_ready = !o_valid | o_ready", "i_ready = 0")
    run = WordSimulator(stuck, 12).run(WORDS, 5, timeout=100)
    assert any("a word more" in line for line in run.violations)
    assert any("timeout" in line for line in run.violations)


def test_a_reset_that_works_only_at_power_up_is_noticed():
    text = ECHO.replace("      o_valid <= 0;\n      count", "      count").replace(
        "  // fault", "  end\n  initial o_valid = 0;\n  always @(posedge clk) begin"
    )
    simulator = WordSimulator(text, 12)
    runs = [simulator.run(WORDS, 20, seed=seed) for seed in range(1, 9)]
    assert any("straight after reset" in line for run in runs for line in run.violations)


def test_valid_after_reset_is_reported():
    text = ECHO.replace("      o_valid <= 0;\n      count", "      o_valid <= 1;\n      count")
    run = WordSimulator(text, 12).run(WORDS, 20)
    assert any("straight after reset" in line for line in run.violations)


def test_what_does_not_fit_is_refused():
    simulator = WordSimulator(ECHO, 12)
    for call, why in [
        (lambda: simulator.run([4096], 1), "word 0, 4096, does not fit 12 bits"),
        (lambda: simulator.run([1], 1, gap=1.0), "gap must be in"),
        (lambda: simulator.run_pair(([1], 1), ([1], 1)), "holds 1 instances, not 2"),
        (lambda: WordSimulator(ECHO, 65), "1 to 64 bits, not 65"),
        (lambda: WordSimulator(ECHO, 12, instances=3), "1 or 2, not 3"),
    ]:
        with pytest.raises(ValueError, match=why):
            call()
