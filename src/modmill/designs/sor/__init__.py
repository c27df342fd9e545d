# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Modular multiplication by a sum of residues (SOR).

    M. A. Mehrabi: Improved Sum of Residues Modular Multiplication Algorithm. Cryptography 3(2):14, 2019.

The parts of the paper, in reading order:

    Section 2.1, reduction mod 2^n - 2^t - 1   `numbers.folding`, `rtl.fold`
    Section 2.2, Algorithm 1: alpha            `numbers.rns.sum_of_residues`, exact bounds
    Section 3, equations (14) to (18): V       `original`: MM_PA and MM_SPA, with which the paper compares itself
    Section 3.1, equations (19) to (26): kappa `numbers.rns.sum_of_residues`, exact bounds
    Algorithm 2, step by step                  `improved_schedule`: its operations, in the cycles of Figures A1 to A3
    the same on integers                       `improved`: SOR_1M_N, SOR_1M_P, SOR_2M, and N multiplier sets
    Section 4, Figures 1 to 5                  `improved_machine`
    Tables 1 to 5                              `studies.papers.sor`

`family` has what all designs here share: parameters, the tables of Algorithm 2, contract. Our own machine for the same
algorithm: `ring`, with its operations in `ring_schedule` and the machine in `ring_rower` and `ring_machine`.
"""
