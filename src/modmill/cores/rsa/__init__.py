# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Exponentiation engines: build, write to a folder, check, run.

In reading order: `pairs` (bases and exponents that are tried), `machine`, `page` (the data sheet), `circuit` and
`circuit_page` (engines on the circuit of the radix-64K paper), `check`, `engine` (RSA on the simulated RTL or the
bit-exact model).
"""
