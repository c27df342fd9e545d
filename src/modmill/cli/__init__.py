# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command line: what a command is called and what it prints; the work is done below."""

from modmill.cli.commands import app, main

__all__ = ["app", "main"]
