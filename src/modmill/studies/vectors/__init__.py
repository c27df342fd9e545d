# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Published test vectors through the engines, and constant time measured.

`files` (where they lie), `runner` (files judged one after another, their rows kept), `rsa`; `ecc_files` (read into
cases), `ecc_cases`, `ecc_edges` (exceptional multiples), `ecc` (run and judged), `ecc_timing` (cycles over many
scalars).
"""
