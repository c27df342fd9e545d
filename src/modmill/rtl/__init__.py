# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Blocks used by two or more designs."""
