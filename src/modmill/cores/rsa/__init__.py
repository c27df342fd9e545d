# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Exponentiation engines: made, written to a folder, checked, run.

In reading order: `machine`, `page` (the data sheet), `check`, `engine` (RSA on the simulated RTL or the bit-exact
model).
"""
