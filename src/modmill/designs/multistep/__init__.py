# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Multi-step radix-2 Montgomery multiplication in carry-save, without DSP blocks.

    X. Zhang, X. Dong: A high speed Montgomery processor of 256-bit on FPGA. 2016

    Algorithms 1 to 3, Figures 2 and 3   `design`: bounds, algorithm, schedule, machine, one step

The paper's table and claims are in `studies.papers.multistep`.
"""
