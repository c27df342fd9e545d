# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Results for all operands, over the integers, with the control at concrete values.

`polynomials` (expressions of integers), `reasons` (why each holds), `ranges` and `integers` (floors and their limits),
`word_rules` (what a cell makes of words), `tables` (words that are functions of their address), `full_adders`
(carry-save words), `symbolic` (the run), `branches` (its cases), `products` (the theorem), `residue_words` and
`residues` (its end for numbers as residues), `sums` (sums of residues) and `certificate` (the proof as lines).
"""
