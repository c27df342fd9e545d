# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Registers that no reset reaches although they steer something: counters, places in memories.

A counter of which only differences matter may begin anywhere, so a reset of it would be hardware for nothing. But a
four-state simulator never gets to know a counter that nothing sets. So the Verilog text gives such a register, and
those registers with a reset from which it takes its steps, an initial value for simulation. All other registers start
unknown. Hardware starts them anywhere, and so does simulation of `emit.without_initial_values`: a core must be right
all the same.
"""

from __future__ import annotations

from amaranth.hdl import ShapeLike, Signal

INITIAL = {"initial_value": 1}
"""Attribute of a register of which `flow.emit` keeps the initial value.

For a register with a reset that a free-running one depends on: it must be known before the first reset too.
"""


def free_running(shape: ShapeLike, *, name: str) -> Signal:
    """A register without reset that starts at 0 in simulation, and anywhere in hardware."""
    return Signal(shape, name=name, reset_less=True, attrs=INITIAL)
