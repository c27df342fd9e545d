# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Integer arithmetic: primes, named moduli and curves, RNS bases, exact bounds. Imports no other folder of Modmill."""
