# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Pure integers: primes, named moduli and curves, RNS bases, exact bounds. Imports nothing else of ours."""
