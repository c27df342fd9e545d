# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Sweeps: every core of a plan, measured on all processors or on a cluster, into a store that survives kills.

In reading order: `plan` (a TOML file and its points), `machines` (those of RSA and curves as points), `points` and
`measuring` (one point), `child` (the process that measures it) and `limited` (which starts it and ends it at its
limits), `store` (Parquet files), `clusters` (where points run), `run` (the sweep).
"""
