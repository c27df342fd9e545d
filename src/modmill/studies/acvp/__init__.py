# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Request files of NIST's Automated Cryptographic Validation Protocol (ACVP), answered by engines in folders.

In reading order: `files` (the JSON, read value by value), `engines` (which engine answers a group), `curves` (ECDSA,
EdDSA, key agreement), `rsa`, `respond` (a whole file).
"""
