# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Output for readers.

In reading order: `rows` (the store of measurements), `proof_rows` (what was proved), `traces` and `measured` (numbers
that know their rows); `sheet`, `recorded`, `packaging` and `seal` (files beside a core); `chart`, `drawing` and
`diagram` (schedules); `race_results`, `engines`, `engine_rows`, `ecc_rows` and `clocks` (tables); `reproduction`,
`errata`, `plots` and `families` (the papers beside ours), `formulas`, `mathematics` and `pages` (the site),
`result_tables`, `attack_tables`, `headlines`, `readme`, `picture`, `leakage_picture` and `architecture` (generated
parts of README and docs).
"""
