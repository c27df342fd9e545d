# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Montgomery multiplication on redundant radix-2^r numbers.

    K. Nakano, K. Kawakami, K. Shigemoto: RSA Encryption and Decryption using the Redundant Number System on the FPGA.
    IPDPS Workshops, 2009

    sections 2 and 5, Lemmas 1 to 7, Theorems 9 and 10   `design`: bounds, algorithm and the three designs
    section 2                                            `blocks`: digit sums without carries, tables, conversion
    section 5, Figures 1 to 3                            `shape`: sizes and schedule
    sections 4 and 5                                     `machine`: the loop, loading of a modulus, the binary form
    sections 4 and 6, Theorem 11                         `circuit`: powers, the result goes back as an operand

The arithmetic on integers is in `numbers.redundant_digits`, the paper's tables are in `studies.papers.rsa64k`.
"""
