# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Programs over any multiplier: `microcode` (programs), `machine` (hardware), `rsa`, `ecc`; `pem` and `ranges` (checks)."""
