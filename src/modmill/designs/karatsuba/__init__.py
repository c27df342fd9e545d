# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Our multipliers with the product by Karatsuba's trick for pairs of digits.

For p = 2^k - c: `design` (algorithm, machines, design), `product` (the blocks, and the product with the first fold in
its columns), `halves` (the product in two halves, with the bits above its digits), `shape` (sizes and schedule, the
model of both halves). The folds are those of `pseudo_mersenne`. For sparse primes: `solinas` (sizes and schedule,
algorithm, machine, design), `positions` (of the sum: ranges, schedule, model), `quotient` (Montgomery's quotient and
the result). For any odd modulus: `montgomery` (likewise), `complement` (two half products in the blocks of one),
`tables` (its constants, built in or loaded). On two levels, for p = 2^k - c: `two_level` (sizes and schedule,
algorithm, machine, design), `two_level_product`, `top_bits` (of operands, above the digits); for sparse primes:
`two_level_solinas` (likewise), `two_level_ordered` (the product with its halves of words one after another).
"""
