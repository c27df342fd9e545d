# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Elliptic curves on integers only: the oracle of the engines.

In reading order: `affine` (curves as data, textbook arithmetic), `named` (the curves with a name), `text` (curves as
users write them), `projective` (fast multiples for many vectors), `encoding` (points as bytes).
"""
