# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Programs for a field unit: from formulas to rows that are scheduled, bounded and checked.

In reading order: `program` (a row: one product and some sums), `expressions` (formulas traced from Python),
`field_program` (blocks of formulas), `fusing` (for units that add two products), `scheduling` (which operation in which
row), `assembly` (slots and rows), `bounds` (exact multiples of p), `hazards` (a checker of rows), `interpreter` (rows
run bit by bit).
"""
