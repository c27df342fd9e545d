# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What the papers print, one file each, and what becomes of it here."""
