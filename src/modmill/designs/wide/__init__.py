# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Montgomery multiplication with one or three wide multipliers, by Karatsuba's method.

`design` (bounds, algorithm, schedule, design), `karatsuba` (the multiplier).
"""
