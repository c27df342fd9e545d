# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The checker of certificates; it imports nothing of the prover. `recheck` (the lines), `cell_rules` (cells, written a
second time), `circuit` (the netlist), `replay` (its run, cycle by cycle, and the theorem) and `residues` (the end of a
run with residues).
"""
