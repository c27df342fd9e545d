# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Studies of cores and engines.

In reading order: `race` (designs side by side), `papers` (the papers' tables and figures), `vectors` (published test
vectors), `acvp` (NIST's request files), `rns_methods` (a survey), `explore` and `explore_engines` with `exploring`
(random cores and engines), `sweep` (many cores, on many machines), `search` (the best for a budget), `mutate` (planted
faults), `attack` (faults while an engine runs), `bus` (fronts), `site`.
"""
