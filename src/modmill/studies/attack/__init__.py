# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Attacks on built engines, in simulation of their netlists.

In reading order: `state` (all registers and memories of a netlist); `faults` (an engine compiled for runs with one
fault each), `operation` (what an engine does while it is attacked), `draw` (the faults of a campaign), `campaign`
(faults one after another, and what came of them), `report`; `traces` (how many bits change in each cycle), `keys` (runs
with one key or random ones), `welch` (t of two groups), `leakage` (a t-test), `leakage_report`.
"""
