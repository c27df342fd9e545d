# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The machine that runs programs: a coprocessor with a slot memory, an adder and a multiplier.

In reading order: `timing` (the cycle of each part of an instruction), `layout` (slots, program table, messages),
`datapath` (slot memory and adder in slices), `program_memory`, `sequencer` and `slot_sequencer` (for a slot machine),
`word_register` and `io_register` (numbers in and out), `top` (the coprocessor), `cluster` (several
coprocessors behind one pair of streams), `lockstep` (two equal engines whose words are compared); `random_port` (random
words and their health tests), `serial` (recodings bit by bit) and `blinder` (blinding in front of a coprocessor).
"""
