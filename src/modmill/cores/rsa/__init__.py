# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Exponentiation engines: build, write to a folder, check, run.

In reading order: `machine`, `page` (the data sheet), `check`, `engine` (RSA on the simulated RTL or the bit-exact
model).
"""
