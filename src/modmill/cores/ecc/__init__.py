# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Coprocessors for a curve: made, written to a folder, checked, run.

In reading order: `machine`, `page` (the curve as JSON, the data sheet), `samples` (operations and their answers),
`check`, `engine` (protocols on the simulated RTL), `explain` (a program as a chart).
"""
