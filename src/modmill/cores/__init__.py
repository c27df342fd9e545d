# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What is made, written and checked as a folder of files: `multiplier`, `ecc` and `rsa` cores.

`built` is an engine with two streams of words, of which `ecc` and `rsa` are kinds; `engine_files` are the files in its
folder, `pair_check` checks it. `behind_bus` puts cores and engines behind a bus, and checks that;
`zeroise` says by which messages a front overwrites what they hold.
`folder` writes any folder completely or not at all; `batches` orders test jobs so that a stuck engine fails.
`digests` remembers the digests of emitted RTL. `proof` proves constant time of the RTL in a folder: `engine_proof` that
of a machine and of a router, `cluster_proof` of several machines behind it, `locked_proof` of two engines in lockstep.
`engine_theorem` proves what the operations of an engine compute, and `engine_noted` writes it down. `closed_machine`
runs the netlist of a machine without its multiplier, `surroundings` with anything before and after a row: `data_path`
proves what it does with a row, `sequence` in which order it takes rows. `certified` keeps the certificate of a proof in
the folder.
"""
