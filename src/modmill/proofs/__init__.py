# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What is proved of a netlist; `cores.proofs` puts the parts together for a core or an engine.

In reading order: `netlist` (cells and bits as Yosys reads the Verilog); `handshake` (operands and keys do not reach it;
one result for each pair, in order); `arithmetic` (what the results are, for all operands) and `checker` (its
certificate is checked again, and shares nothing with the prover); `mutants` (planted faults, and which of them change
nothing). `miter` (two copies side by side) and `states` (those that a reset reaches) serve several of them; `prove` has
proofs by solvers at small widths.
"""
