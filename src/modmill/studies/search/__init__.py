# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Which core for a modulus, a device and a budget: from measured rows, and from what they predict of other cores.

In reading order: `candidates` (cores with what is known of each without tools), `estimate` (LUTs and clock fitted to
rows, with the error of that), `knowledge` (both for one device), `recommend` (the best few), `front` (what to measure
until the front is known), `proposals` (settings that Optuna tries), `measuring` (cores as points of a sweep).
"""
