# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Multiplier cores: build, write to a folder, check, explain.

In reading order: `build` (from a design and a modulus to a folder), `operands` (corner cases and random operands),
`verify` (simulation of the RTL), `judge` (faults of one run), `four_state` (simulation with unknown values), `folder`
(read a folder; words that load another modulus), `check` (compare and verify a folder), `noted` (states of proofs in
its record), `explain` (constants, bounds and schedule as text), `notebook` (a core as HTML).
"""
