# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""RNS Montgomery multiplication with the hierarchical base extension (HBE) on a cox-rower machine with rows.

Source:  L. Djath, K. Bigou, A. Tisserand, Hierarchical Approach in RNS Base Extension for Asymmetric Cryptography,
         ARITH 2019, Algorithms 2 and 3, Figure 3; merged into the Montgomery multiplication as in Section V.
Formula: as in designs.kbe, with the sums over rows: X_r = sum_j xi_(r,j) A_r / a_(r,j), not reduced, and
         zeta_j = x~ y~ |B_j A^-1| + sum_r |X_r| |p A_r^-1 B_j^-1|,  w_i = sum_r |Z_r| |B / B_r| - h |B|
Range:   as in designs.kbe; the cox sees the t top bits of the c w of Z_r, with the exact error of that truncation.

Deviations from the paper: the residues of a row go through the ring as one unreduced number, and each rower reduces it
modulo its own modulus by folding in logic, one number a cycle, where the paper broadcasts; the cox of the second
extension has its offset from the exact error, because the paper's "no additional constraint" fails for some bases.
A product takes n + 7 multiplications of every rower for c = 2; the schedule is the least that the machine's registers
allow.
"""

from __future__ import annotations

from modmill.design import Design, Source
from modmill.designs.kbe import SETTINGS, fit

DESIGNS = (
    Design(
        name="hbe",
        module="hbe",
        title="RNS Montgomery multiplication with the hierarchical base extension, two moduli a row",
        source=Source(
            "L. Djath, K. Bigou, A. Tisserand",
            "Hierarchical Approach in RNS Base Extension for Asymmetric Cryptography",
            "ARITH",
            2019,
            "Algorithms 2 and 3, Figure 3; machine and schedule are ours",
        ),
        needs="any odd modulus of at least 2 bits, as long as enough coprime channel moduli exist",
        settings=SETTINGS,
        solve=lambda p, **settings: fit(p, 2, **settings),
    ),
)
