# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Modular exponentiation, and RSA above it.

In reading order: `exponentiation` (window and ladder as instructions), `layout` (an engine's slots and messages), `rsa`
(public and private operation, CRT, blinding), `padding` (OAEP, PKCS#1 v1.5, PSS, keys in files), `keygen`.
"""
