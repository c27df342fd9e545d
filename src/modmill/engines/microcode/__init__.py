# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Programs for a field unit: from formulas to instructions that are scheduled, bounded and checked.

In reading order: `program` (an instruction: one product and some sums), `expressions` (formulas traced from Python),
`field_program` (programs of basic blocks), `fusing` (for units that add two products), `scheduling` (assigns operations
to instructions), `assembly` (assigns slots), `bounds` (exact multiples of p), `hazards` (checks finished instructions),
`interpreter` (runs instructions with bit-exact products).
"""
