# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Elliptic curves as programs, and the protocols above them.

In reading order: `formulas`, `points` (shared by all curve forms), `weierstrass`, `edwards`, `ladder`, `recoding` and
`serial` (digits of scalars), `result_checks`, `addition_chains`, `isomorphism`, `endomorphism`, `variable_time`;
`point_engine` and `order_engine` (programs run without hardware), `blinding` (interface of engines to protocols);
`keys`, `ecdh`, `ecdsa`, `eddsa`, `sm2`, `keygen`.

The four layers of the multi-step paper's Figure 1 are `blinding` and the protocols, the curve forms, `formulas`, and
the design's products.
"""
