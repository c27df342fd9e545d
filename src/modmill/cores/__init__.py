# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What is made, written and checked as a folder of files: `multiplier`, `ecc` and `rsa` cores.

`built` is an engine with two streams of words, of which `ecc` and `rsa` are kinds; `engine_files` are the files in its
folder, `pair_check` checks it. `behind_bus` puts cores and engines behind a bus, and checks that, `slot_check` their
key slots; `zeroise` says by which messages a front overwrites what they hold; `driven` has the calls in Python on such
a device.
`folder` writes any folder completely or not at all; `batches` orders test jobs so that a stuck engine fails.
`digests` remembers the digests of emitted RTL. `proofs` proves what lies in a folder.
"""
