# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Published test vectors through the engines, and constant time measured.

`files` (packages of vectors), `runner` (outcomes and rows of files), `rsa`; `ecc_files` (readers), `ecc_cases`,
`ecc_edges` (exceptional multiples), `ecc` (vectors of curves run and judged), `ecc_timing` (cycles over many scalars).
"""
