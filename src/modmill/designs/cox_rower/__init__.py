# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""RNS Montgomery multiplication on the cox-rower machine: Kawamura's base extension (KBE) and the hierarchical one
(HBE).

    L. Djath, K. Bigou, A. Tisserand, Hierarchical Approach in RNS Base Extension for Asymmetric Cryptography, 2019

    section II, Algorithms 1 and 3   `kbe`: constants, bounds, algorithm and design of KBE
    section III, Algorithm 2         `hbe`: what rows of 2, 3 or 4 moduli change
    section V                        `schedule` (what each cycle does), `control` (the control words), `constants` (the
                                     block RAMs), `multiplier` (the machine), `slot_machine` (with numbered slots)

The integers behind both stand in `numbers.rns`; the paper's tables and figures in `studies.papers.hbe`.
"""
