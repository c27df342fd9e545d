# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Blocks that two or more designs use.

In reading order: `product` (tiled multipliers), `fold` and `booth_fold` (reduction modulo 2^w - u), `memory`, `delay`;
`periodic`, `acceptance`, `free_running` and `strobe_ring` (control of machines that never stall); `one_hot` (state
machines); `counting` (counters of few LUTs); `digits`, `digit_serial`, `words` and `conditional_subtract` (numbers
digit by digit, up to the last subtraction); `excess` and `canonical` (a longer result reduced by cells of its own);
`mux_adder` (a choice and an adder at once); `convert` (binary to residues and back); `extension` and `extension_shape`
(base extension on two rowers), `passes` and `passes_shape` (one or two of them on any number of rowers).
"""
