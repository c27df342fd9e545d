# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Marks of tests."""

from typing import Any

import pytest


def long(*values: Any) -> Any:
    """Values for one more run of a test that has others; `./mill test -m long` takes these, the suite does not."""
    return pytest.param(*values, marks=pytest.mark.long)
