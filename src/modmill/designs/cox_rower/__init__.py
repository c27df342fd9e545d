# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""RNS Montgomery multiplication on the cox-rower machine: Kawamura's base extension (KBE), the hierarchical one (HBE).

    L. Djath, K. Bigou, A. Tisserand: Hierarchical Approach in RNS Base Extension for Asymmetric Cryptography.
    ARITH, 2019.

The parts of the paper, in reading order:

    Algorithms 1, 2 and 3, line by line   `operations`: the list from which model, schedule and control are made
    the same on integers                  `model`
    Section III, Algorithm 1 (KBE)        `kbe`: formula, ranges, constants
    Section IV, Algorithm 2 (HBE)         `hbe`: what differs from KBE
    Section IV-B, error of the cox        `numbers.rns.cox`, `numbers.rns.base_pairs`: exact bounds
    Figures 1 and 3, the machine          `shape` (structure), `rowers` (rowers, ring, cox), `multiplier` (whole core)
    the cycle of each operation           `schedule` (jobs), `chart` (steps), `control` (control words),
                                          `constants` (contents of the block RAMs)
    Section V, sums of two products       `slot_machine`: numbers stay in the rowers, for RSA and ECC
    operands at the edges                 `edges`, from `numbers.rns.cox_edges`

Methods with which the paper compares itself, on the same rowers: `sq_rns` (sQ-RNS and dQ-RNS) and `shenoy_kumaresan`
(a redundant modulus); `variants` is what both share.

Elsewhere:

    Algorithms 1 and 2 as cores           `designs.extension` (Section VI, Table III)
    Algorithm 3 as a core                 `designs.reduction`
    CMM(w, w) and CMR(2w + 1, w)          `designs.channel` (Section IV-C, Table I)
    all tables, figures and claims        `studies.papers.hbe`
"""
