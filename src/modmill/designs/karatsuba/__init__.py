# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Our multipliers with the product by Karatsuba's trick for pairs of digits.

For p = 2^k - c: `design` (algorithm, machine, sizes and schedule, design), `product` (the product). The folds are those
of `pseudo_mersenne`. For sparse primes: `solinas` (sizes and schedule, algorithm, machine, design), `halves` (the
product and the bits above its digits), `quotient` (Montgomery's quotient and the result).
"""
