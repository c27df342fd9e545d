# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Blocks that two or more designs use."""
