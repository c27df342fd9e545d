# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Elliptic curves in Python integers: the reference for the engines.

In reading order: `affine` (curves as data, textbook arithmetic), `named` (the named curves), `text` (curves as users
write them), `projective` (faster multiples for many vectors), `encoding` (points as bytes).
"""
