# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Designs and engines side by side.

`cores` (all designs for one modulus), `measure` (what sweeps measure in the same way), `measured_cores` (from existing
rows), `machines` (whole engines), `ecc` (one operation of a curve), `placements` (the schedules that ship), `known`
(the digests that ship).
"""
