# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Our multiplier for p = 2^k - c: the full product on a linear array, then folds without multipliers.

`design` (algorithm, machine, design), `shape` (sizes, bounds, schedule), `product_array` (the product), `serial_fold`
(a fold, digit by digit).
"""
