# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""RNS Montgomery multiplication on the cox-rower machine: Kawamura's base extension (KBE), the hierarchical one (HBE).

L. Djath, K. Bigou, A. Tisserand, Hierarchical Approach in RNS Base Extension for Asymmetric Cryptography, 2019

Algorithms 1 and 2, line by line   `operations`: the one list from which all else is made
the same on integers               `model`
Sections III and IV, ranges        `kbe` and `hbe`: constants, bounds, the two designs; proofs in `numbers.rns`
Figures 1 and 3, the machine       `shape` (its structure), `rowers` (rowers, ring, cox), `multiplier` (the whole)
which cycle does what              `schedule` (jobs, chart), `control` (control words), `constants` (block RAMs)
Section V, Algorithm 3             `kbe`, `slot_machine` (numbers that stay in the rowers, for RSA and ECC)
Section VI, tables and figures     `studies.papers.hbe`
"""
