# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Programs for a field unit: from formulas to instructions that are scheduled, bounded and checked.

In reading order: `program` (an instruction: one product and some sums), `expressions` (formulas traced from Python),
`field_program` (blocks of formulas), `fusing` (for units that add two products), `scheduling` (which operation in which
instruction), `assembly` (slots and instructions), `bounds` (exact multiples of p), `hazards` (a checker of
instructions), `interpreter` (instructions run bit by bit).
"""
