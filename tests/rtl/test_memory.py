# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The block RAM in Amaranth's simulator against a list, cycle by cycle."""

import random

import pytest
from amaranth.hdl import Module, ResetInserter, Signal

from components import run_bench
from modmill.rtl.memory import BlockRam


def simulate(ram, traffic, resets=()):
    """Outputs (a_q, b_q) in each cycle of (a_address, b_address, b_write, b_d); reset is high in the cycles given."""
    m = Module()
    reset, out = Signal(), []
    m.submodules.ram = ResetInserter(reset)(ram)

    async def bench(ctx):
        for cycle, (a, b, write, word) in enumerate(traffic):
            for signal, value in zip(
                (ram.a_address, ram.b_address, ram.b_write, ram.b_d), (a, b, write, word), strict=True
            ):
                ctx.set(signal, value)
            ctx.set(reset, cycle in resets)
            out.append((ctx.get(ram.a_q), ctx.get(ram.b_q)))
            await ctx.tick()

    run_bench(m, bench)
    return out


def listed(width, words, traffic):
    """The words that the block RAM's contract says of the same traffic, one for each cycle in which it is addressed."""
    words, out, held = list(words), [], 0
    for a, b, write, word in traffic:
        seen_a = words[a] ^ (2**width - 1) if write and a == b else words[a]
        held = held if write else words[b]
        if write:
            words[b] = word
        out.append((seen_a, held))
    return out


def random_traffic(width, depth, cycles, seed):
    rnd = random.Random(seed)

    def address():
        return rnd.randrange(depth if rnd.random() < 0.3 else 4)  # so that the ports meet

    return [(address(), address(), rnd.random() < 0.5, rnd.getrandbits(width)) for _ in range(cycles)]


@pytest.mark.parametrize(("width", "depth"), [(1, 16), (18, 256), (36, 1024), (72, 512)])
@pytest.mark.parametrize("registers", [1, 2])
def test_the_block_ram_keeps_its_contract(width, depth, registers):
    rnd = random.Random(width)
    words = [rnd.getrandbits(width) for _ in range(depth)]
    traffic = random_traffic(width, depth, 400, depth)
    found = simulate(BlockRam(width, depth, words, registers=registers), traffic)
    assert found[registers:] == listed(width, words, traffic)[: 400 - registers]


def test_a_word_comes_two_cycles_after_its_address_and_after_its_write():
    words = list(range(100, 116))
    traffic = [(3, 4, 0, 0), (5, 6, 1, 7), (6, 6, 0, 0), (0, 0, 0, 0), (0, 0, 0, 0)]
    found = simulate(BlockRam(8, 16, words), traffic)
    assert found[2] == (103, 104)
    assert found[3] == (105, 104)  # port B wrote: its first register kept the word before
    assert found[4] == (7, 7)


def test_a_collision_shows():
    found = simulate(BlockRam(8, 16, [0x5A] * 16), [(1, 1, 1, 0x33), (1, 1, 0, 0), (0, 0, 0, 0), (0, 0, 0, 0)])
    assert [a for a, _ in found[2:]] == [0xA5, 0x33]


def test_reset_touches_neither_registers_nor_contents():
    words, traffic = list(range(16)), random_traffic(4, 16, 60, 1)
    found = simulate(BlockRam(4, 16, words), traffic, resets={5, 6, 20, 41})
    assert found[2:] == listed(4, words, traffic)[:-2]


def test_words_behind_the_contents_given_are_zero():
    found = simulate(BlockRam(8, 16, [9]), [(0, 15, 0, 0), (0, 0, 0, 0), (0, 0, 0, 0)])
    assert found[2] == (9, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 16, []), "words of 1 to 72 bits, not 0"),
        ((73, 16, []), "words of 1 to 72 bits, not 73"),
        ((8, 24, []), "2\\^k words, from 16 to 1024, not 24"),
        ((8, 2048, []), "2\\^k words, from 16 to 1024, not 2048"),
        ((65, 1024, []), "at most 65536 bits, not 65 x 1024"),
        ((8, 16, [0] * 17), "contents of 17 words"),
        ((8, 16, [1, 256]), "word 1 of the contents, 256, does not fit 8 bits"),
        ((8, 16, [-1]), "word 0 of the contents, -1"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(ValueError, match=message):
        BlockRam(*arguments)
    with pytest.raises(ValueError, match="1 or 2 registers behind a port, not 0"):
        BlockRam(8, 16, [], registers=0)
