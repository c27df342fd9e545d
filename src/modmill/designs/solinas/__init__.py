# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Our Montgomery multiplier for sparse primes; their quotient needs no multiplier.

`design` (bounds, algorithm, machine, design), `shape` (sizes, schedule), `product_columns` (x y), `sparse_quotient`
(the quotient's words), `carry_select` (the long addition at the end).
"""
