# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Proofs of the RTL in a folder, from the parts in `modmill.proofs`.

`proof` proves a core, and the constant time of any folder: `engine_proof` that of a machine and of a router,
`blinded_proof` of a machine behind a block for random words, `cluster_proof` of several machines behind a router,
`locked_proof` of two engines in lockstep. `engine_theorem` proves what the operations of an engine compute, and
`engine_noted` writes it down. `closed_machine` runs the netlist of a machine without its multiplier, `surroundings`
with anything before and after a row: `data_path` proves what it does with a row, `sequence` in which order it takes
rows. `certified` keeps the certificate of a proof in the folder.
"""
