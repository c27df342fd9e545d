# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The papers' tables and figures: printed, predicted and measured values.

`sor` and `sor_charts`, `hbe` and `hbe_costs`, `rsa64k`, `multistep` (one paper each), `bench` and `measured_core` (rows
of our cores), `reproduce` (all papers).
"""
