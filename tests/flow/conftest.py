# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Makes `cores` importable."""
