# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The tools behind a core: emit, lint, simulate, prove, synthesise, place and route; one file for each tool."""
