# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Our multiplier for p = 2^k - c with the product by Karatsuba's trick for pairs of digits.

`design` (algorithm, machine, sizes and schedule, design), `product` (the product). The folds are those of
`pseudo_mersenne`.
"""
