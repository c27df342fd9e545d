# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command line: names, options and output of the commands; the work is done in the other folders."""

from modmill.cli.commands import app, main

__all__ = ["app", "main"]
