# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The version of Modmill, named in every file that it writes."""

__version__ = "0.1.0"
