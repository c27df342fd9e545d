# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What the programs of an engine compute, proved for all inputs, scalars and exponents, without samples.

In reading order: `polynomials` (identities modulo p), `group_law` (the formulas of `ecc.formulas` are the group law of
the curve, for all points), `normal_forms` (values of a program, compared), `instructions` (a program's parts executed
on them), `scalars` (recodings executed on an unknown integer), `point_programs` (what each pass of a loop does, and by
induction the whole program; with `point_runs`, its parts on normal forms, `point_tables`, `point_scalars` and
`ladder_programs`), `power_programs` (the same of powers), `order_programs` (modulo an order; bounds), `parts` (what is
said of each part).
"""
