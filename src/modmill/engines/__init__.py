# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Programs over any multiplier: `microcode`, the `machine` that runs it, `rsa` and `ecc`."""
