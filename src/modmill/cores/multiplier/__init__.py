# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Multiplier cores: made, written to a folder, checked, explained.

In reading order: `build` (from a design and a modulus to a folder), `operands` (corners and random operands), `check`
(what is simulated, and what is compared), `judge` (verdicts on one run), `four_state` (the same in Icarus), `load`
(words that load another modulus), `explain` (constants, bounds and schedule as text).
"""
