# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Programs over any multiplier.

In reading order: `microcode` (programs), `machine` (runs them), `rsa` and `ecc` (what they compute, and the protocols);
`theorem` (proofs of what programs compute); `pem` and `ranges` (labels of key files and limits of secret numbers, for
both).
"""
