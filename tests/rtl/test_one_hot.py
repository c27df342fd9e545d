# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The one-hot machine goes where Amaranth's own FSM goes, and is in one state."""

import random

import pytest
from amaranth.hdl import Cat, Module, Signal

from components import run_bench
from modmill.rtl.one_hot import OneHot

STATES = "ABCDE"


def described(state, following, go):
    """A machine's transitions, told to ``state`` and ``following``: with overrides, stays and conditions."""
    with state("A"):
        following("B")
    with state("B"):
        following("C")
        with go(0):
            following("D")
        with go(1):
            following("B")
    with state("C"):
        with go(0):
            following("A")
    with state("D"):
        with go(2):
            following("E")
        with go(0):
            following("D")
        with go(1):
            following("E")
    with state("E"):
        following("A")


def test_it_goes_where_the_library_goes():
    m = Module()
    inputs, theirs = Signal(3), Signal(5)
    with OneHot(m, "ours") as machine:
        described(machine.state, machine.next, lambda k: m.If(inputs[k]))
    with m.FSM(name="theirs") as fsm:

        def following(name):
            m.next = name

        described(m.State, following, lambda k: m.If(inputs[k]))
    m.d.comb += theirs.eq(Cat(fsm.ongoing(name) for name in STATES))
    seen = []

    async def bench(ctx):
        rnd = random.Random(1)
        for _ in range(400):
            ctx.set(inputs, rnd.getrandbits(3))
            seen.append((ctx.get(Cat(machine.ongoing(name) for name in STATES)), ctx.get(theirs)))
            await ctx.tick()

    run_bench(m, bench)
    assert all(ours == theirs and ours.bit_count() == 1 for ours, theirs in seen)
    assert len(set(seen)) == len(STATES)


def test_a_state_without_a_description_is_refused():
    m = Module()
    with pytest.raises(ValueError, match="ours: undefined state B"), OneHot(m, "ours") as machine:
        with machine.state("A"):
            machine.next("B")
