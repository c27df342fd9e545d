# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Coprocessors for a curve: build, write to a folder, check, run.

In reading order: `machine`, `page` (the curve as JSON, the data sheet), `samples` (operations and their answers),
`check`, `engine` (protocols on the simulated RTL), `explain` (a program as a chart).
"""
