# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""RNS Montgomery multiplication with the hierarchical base extension (HBE) on a cox-rower machine with rows.

Source:  L. Djath, K. Bigou, A. Tisserand: Hierarchical Approach in RNS Base Extension for Asymmetric Cryptography.
         ARITH, 2019, Algorithms 2 and 3, Figure 3. Lines 1-3 are merged into the Montgomery multiplication, as the
         paper proposes in Section IV-A. `operations` maps each line to an operation.
Formula: as in `kbe`, with the sums over rows: X_r = sum_j xi_(r,j) A_r / a_(r,j), not reduced, and
         zeta_j = x~ y~ |B_j A^-1| + sum_r |X_r| |p A_r^-1 B_j^-1|,  w_i = sum_r |Z_r| |B / B_r| - h |B|
Range:   as in `kbe`; the cox sees the t top bits of the c w of Z_r, with the exact error of that truncation.

Deviations from the paper:
- X_r travels through a ring of rowers; the paper broadcasts it. Each rower reduces the passing X_r modulo its own
  modulus by folding in logic, one number a cycle.
- The first extension has no cox (the paper allows this in Section IV-A). The cox of the second one has an offset d from
  its exact error, because the paper's "no additional constraints" (Section IV-B) fails for some bases.
- c = 3 and c = 4 are built too; they are future work in the paper.
A product takes 2 n / c + 2 c + 3 multiplications in every rower, n + 7 for c = 2. With n / m rowers each rower
multiplies m times as often. The interval is the least for which the solver finds a schedule.
"""

from __future__ import annotations

from typing import Any

from modmill.design import Design, Setting, Source
from modmill.designs.cox_rower.kbe import SETTINGS, RnsMontgomery, fit


def fit_rows(p: int, *, columns: int, **settings: Any) -> RnsMontgomery:
    """The instance of `kbe.fit` with rows of ``columns`` moduli. Raises the same errors."""
    fitted = fit(p, columns, **settings)
    fitted.settings["columns"] = columns
    return fitted


DESIGNS = (
    Design(
        name="hbe",
        page="hbe",
        title="RNS Montgomery multiplication with the hierarchical base extension, two to four moduli a row",
        source=Source(
            "L. Djath, K. Bigou, A. Tisserand",
            "Hierarchical Approach in RNS Base Extension for Asymmetric Cryptography",
            "ARITH",
            2019,
            "Algorithms 2 and 3, Figure 3; machine and schedule are ours",
        ),
        needs="any odd modulus of at least 2 bits, as long as enough coprime channel moduli exist",
        settings=(*SETTINGS, Setting("columns", int, 2, "moduli in a row", choices=(2, 3, 4))),
        solve=fit_rows,
    ),
)
