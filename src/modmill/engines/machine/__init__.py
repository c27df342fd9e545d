# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The machine that runs programs: a coprocessor with a slot memory, an adder and a multiplier in slices.

In reading order: `timing` (when each part of an instruction is done), `layout` (slots, table, messages), `datapath`,
`program_memory`, `sequencer` and `slot_sequencer` (for a slot machine), `io_register`, `top` (the coprocessor),
`cluster` (several of them behind one pair of streams).
"""
