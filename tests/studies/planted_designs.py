# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Designs with faults, for `explore` to find: each is the carry-save multiplier with something wrong. Calls of workers:
a process finds this module by name, which it could not do with a test."""

import time
from dataclasses import replace

from amaranth.hdl import Module, Signal

from modmill.contract import UnsupportedError
from modmill.design import Setting
from modmill.designs import design
from modmill.interface import Multiplier

RIGHT = design("multistep")
SETTINGS = (
    Setting("s", int, 16, "steps in one clock", least=1, most=18),
    Setting("word", int, 0, "bits of the final adder a cycle", least=0, most=18),
    Setting("subtract", bool, True, "with the last subtraction"),
)


class Spoiled(Multiplier):
    """A multiplier around another: `wrong` changes a result, `early` shows one without operands."""

    def __init__(self, inner, *, half=None, early=False):
        super().__init__(len(inner.i_a), len(inner.i_b), len(inner.o_r), period=inner.period, lead=inner.lead)
        self.inner, self.half, self.early = inner, half, early

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = inner = self.inner
        m.d.comb += [
            inner.i_valid.eq(self.i_valid), self.i_ready.eq(inner.i_ready), inner.i_a.eq(self.i_a),
            inner.i_b.eq(self.i_b), inner.o_ready.eq(self.o_ready), self.o_valid.eq(inner.o_valid),
            self.o_r.eq(inner.o_r),
        ]  # fmt: skip
        if self.half is not None:
            last = Signal.like(self.i_a)
            with m.If(self.i_valid & self.i_ready):
                m.d.sync += last.eq(self.i_a)
            with m.If(last == self.half):
                m.d.comb += self.o_r.eq(inner.o_r ^ (1 << len(self.o_r) - 1))
        if self.early:
            shown = Signal()
            with m.If(self.o_ready):
                m.d.sync += shown.eq(1)
            with m.If(~shown):
                m.d.comb += self.o_valid.eq(1)
        return m


def _native(p, **settings):
    fitted = RIGHT.solve(p, **settings, loadable=False)
    fitted.forms = ("native",)
    return fitted


def _lost_carry(p, **settings):
    """Wrong at p / 2, from 4 bits on."""
    if p.bit_length() > 8:
        raise UnsupportedError(f"at most 8 bits, not {p.bit_length()}")
    fitted = _native(p, **settings)
    if p.bit_length() >= 4:
        machine = fitted.component
        fitted.component = lambda **options: Spoiled(machine(**options), half=p // 2)
    return fitted


def _ghost(p, **settings):
    """A result without an operand, straight after the reset."""
    fitted = _native(p, **settings)
    machine = fitted.component
    fitted.component = lambda **options: Spoiled(machine(**options), early=True)
    return fitted


def _endless(p, **settings):
    while True:
        time.sleep(0.01)


def _busy(p, **settings):
    return pow(3, 7 ** (10**8), 10)  # native code that looks at no signal


def _crash(p, **settings):
    if p > 40:
        raise TypeError("unsupported operand")
    return _native(p, **settings)


def _wordy(p, **settings):
    raise UnsupportedError("this modulus\ndoes not suit")


def _planted(name, solve):
    return replace(RIGHT, name=name, solve=solve, settings=SETTINGS)


DESIGNS = (
    _planted("right", _native), _planted("lost-carry", _lost_carry), _planted("ghost", _ghost),
    _planted("endless", _endless), _planted("busy", _busy), _planted("crash", _crash), _planted("wordy", _wordy),
)  # fmt: skip


def nap(tell, seconds):
    """A call that sleeps."""
    tell("to sleep", 0.5)
    time.sleep(seconds)
    return seconds


def leave(tell):
    """A call that ends its process."""
    raise SystemExit(3)
