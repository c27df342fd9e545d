# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Control registers without reset: counters, addresses of memories.

A counter of which only differences matter may start at any value, so a reset would cost hardware and do nothing. In a
four-state simulator such a counter would stay unknown. Therefore the Verilog gives it an initial value for simulation,
and also the registers with reset that it depends on. All other registers start unknown. In hardware, and in
simulations of `emit.without_initial_values`, all registers start at arbitrary values; a core must be correct then too.
"""

from __future__ import annotations

from amaranth.hdl import ShapeLike, Signal

INITIAL = {"initial_value": 1}
"""Attribute of a register whose initial value `flow.emit` keeps.

Also for a register with reset that a free-running one depends on: it must be known before the first reset.
"""


def free_running(shape: ShapeLike, *, name: str) -> Signal:
    """A register without reset. It starts at 0 in simulation, and at any value in hardware."""
    return Signal(shape, name=name, reset_less=True, attrs=INITIAL)
