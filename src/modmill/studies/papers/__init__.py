# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The papers' tables and figures: printed, predicted and measured values.

One paper each: `sor` with `sor_charts`, `sor_machines` and `sor_parameters`; `hbe` with `hbe_tables`, `hbe_costs`,
`hbe_rower` and `hbe_rowers`; `rsa64k` with `measured_circuit`; `multistep`. All papers: `bench` and `measured_core`
(rows of our cores), `reproduce`, `errata`, `items` (everything numbered and claimed, with the command that shows it).
"""
