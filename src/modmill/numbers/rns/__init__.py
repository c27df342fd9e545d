# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Residue number systems in Python integers: the algorithms of the RNS designs, with exact bounds.

In reading order: `residues` (moduli, the Chinese remainder theorem), `cox` (the estimate of the multiple of A),
`extension` (base extension: KBE is Algorithm 1 and HBE is Algorithm 2 of the HBE paper), `exact_extension` and
`fixed_point` (other extensions), `choice_of_moduli`, `reduction_front` (moduli with cheap reductions), `base_pairs`
(two bases and the proof that they suffice),
`rns_montgomery` (Algorithm 3), `sum_of_residues` and `sor_parameters` (the SOR paper), `cox_edges` and `edges`
(operands at the edge of the approximations), `counting` and `rns_costs` (Tables I and II of the HBE paper),
`quadratic_residues`, `hybrid_position`, `double_level` (the methods to which the papers compare themselves),
`conditions` (predicates with formula and numbers).
"""
