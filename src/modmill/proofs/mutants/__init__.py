# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Planted faults: `mutate` (a netlist with one change in each copy), `taint` (what a change can reach), `equivalence`
(changes that no operand shows, by proof) and `all_operands` (small cores, exhaustively).
"""
