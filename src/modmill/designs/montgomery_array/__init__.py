# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Our high-radix Montgomery multiplier on a linear array with interleaved products.

`design` (bounds, algorithm, machine, design), `shape` (sizes, schedule), `array` (a column for each digit),
`folded_array` (fewer columns than digits), `lanes` (several arrays with one port).
"""
