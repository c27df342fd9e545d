# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The fixture of the tests of the calls in C."""

from calls_bench import calls  # noqa: F401
