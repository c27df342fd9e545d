# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Integer arithmetic with exact bounds. Imports no other folder of Modmill.

In reading order: `moduli` (by name, or as users write them), `primes`, `shown` (long numbers in messages);
`progression` (multiples in an interval); `montgomery`, `folding` and `redundant_digits` (ways to reduce a product),
`rns` (residue number systems), `curves`.
"""
