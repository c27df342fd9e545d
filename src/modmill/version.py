# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The version of this software, which every file that it writes names."""

__version__ = "0.1.0"
