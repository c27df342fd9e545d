# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The order in which the netlist of a machine takes rows, proved by induction over issue slots.

`induction` states the theorem and calls the parts: `ends` (start and end of a run), `steps` (from one issue slot to the
next), `products` (sums and products of a row), `memories` (rows and digits at their addresses). `rows` has what they
share.
"""
