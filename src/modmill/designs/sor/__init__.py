# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Modular multiplication by a sum of residues (SOR).

    M. A. Mehrabi, Improved Sum of Residues Modular Multiplication Algorithm, Cryptography 3 (2019) 14

    Algorithm 2                         `improved`: SOR_1M_N, SOR_1M_P, SOR_2M and N multipliers
    Figures A1 to A3                    `improved_schedule`: its operations in their cycles
    Figures 1 to 5                      `improved_machine`
    Algorithm 1 (Phillips, Kong, Lim)   `original`: MM_PA and MM_SPA, with which the paper compares itself
    beyond the paper                    `ring`: our own machine for the same algorithm
                                        `ring_schedule`: its operations; `ring_machine`, on `ring_rower`

What all of them share stands in `family`: base and constants, tables, contract.
The integers behind them stand in `numbers.rns.sum_of_residues`; the paper's tables in `studies.papers.sor`.
"""
