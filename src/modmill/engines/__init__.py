# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Programs over any multiplier: modular exponentiation and RSA."""
