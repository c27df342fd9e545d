# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Delay lines and rings against a list of what went in."""

import random

import pytest
from amaranth.hdl import Module, Signal

from components import waveform
from modmill.rtl.delay import DelayLines


@pytest.mark.parametrize("longest", [17, 33])
@pytest.mark.parametrize("cycles", [1, 2, 3, 4, 5, 11, 16, 17])
def test_a_line_gives_what_went_in_that_many_cycles_ago(cycles, longest):
    m = Module()
    value = Signal(9)
    out = DelayLines(m, longest).line(value, cycles, name="line")
    rnd = random.Random(cycles)
    words = [rnd.getrandbits(9) for _ in range(120)]
    seen = waveform(m, [[(value, word)] for word in words], out)
    assert seen[cycles:] == words[: len(words) - cycles]


@pytest.mark.parametrize("cycles", [1, 2, 3, 4, 11, 16])
def test_a_line_without_a_register_at_its_end(cycles):
    m = Module()
    value = Signal(9)
    out = Signal(9)
    m.d.comb += out.eq(DelayLines(m, 17).straight(value, cycles, name="line"))
    rnd = random.Random(cycles)
    words = [rnd.getrandbits(9) for _ in range(80)]
    seen = waveform(m, [[(value, word)] for word in words], out)
    assert seen[cycles:] == words[: len(words) - cycles]


@pytest.mark.parametrize("cycles", [(6, 5), (1, 2), (3, 16)])
def test_one_of_two_former_values(cycles):
    m = Module()
    value, second, out = Signal(9), Signal(), Signal(9)
    m.d.comb += out.eq(DelayLines(m, 17).either(value, cycles, second, name="line"))
    rnd = random.Random(sum(cycles))
    words = [(rnd.getrandbits(9), rnd.getrandbits(1)) for _ in range(120)]
    seen = waveform(m, [[(value, word), (second, which)] for word, which in words], out)
    for t in range(max(cycles), len(words)):
        assert seen[t] == words[t - cycles[words[t - 1][1]]][0]


@pytest.mark.parametrize("cycles", [1, 2, 3, 4, 12])
def test_clearing_gives_zero_in_the_next_cycle_only(cycles):
    m = Module()
    value, clear = Signal(9), Signal()
    out = DelayLines(m, 16).line(value, cycles, name="line", clear=clear)
    rnd = random.Random(cycles)
    words = [rnd.randrange(1, 1 << 9) for _ in range(80)]
    clears = [rnd.random() < 0.3 for _ in words]
    seen = waveform(m, [[(value, w), (clear, c)] for w, c in zip(words, clears, strict=True)], out)
    for t in range(cycles + 1, len(words)):
        assert seen[t] == (0 if clears[t - 1] else words[t - cycles])


@pytest.mark.parametrize("cycles", [1, 2, 3, 4, 5, 15, 17])
def test_a_ring_keeps_a_word_for_each_place(cycles):
    m = Module()
    value, first = Signal(9), Signal()
    out = DelayLines(m, 17).ring(first, value, cycles, name="ring")
    rnd = random.Random(cycles)
    inputs = [(rnd.getrandbits(9), t < cycles or rnd.random() < 0.1) for t in range(150)]
    seen = waveform(m, [[(value, v), (first, f)] for v, f in inputs], out)
    held = [0] * cycles
    for t, (word, now) in enumerate(inputs[:-1]):
        if now:
            held[t % cycles] = word
        assert seen[t + 1] == held[t % cycles]


def test_what_goes_round_may_change():
    m = Module()
    value, first, more = Signal(9), Signal(), Signal(9)
    out = DelayLines(m, 7).ring(first, value, 7, name="ring", write=more)
    m.d.comb += more.eq(out + 3)
    seen = waveform(m, [[(value, t), (first, t < 7)] for t in range(70)], out)
    assert [seen[t + 1] for t in range(69)] == [t % 7 + 3 * (t // 7) for t in range(69)]


def test_a_line_that_is_too_long_is_refused():
    m = Module()
    with pytest.raises(ValueError, match="17 cycles does not fit a memory of 16 words"):
        DelayLines(m, 17).line(Signal(), 18, name="line")
