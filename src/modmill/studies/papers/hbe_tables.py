# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Tables I and III of the HBE paper as printed (Vivado HLS 2017.4, XC7Z020), and our modulus for each field."""

from __future__ import annotations

from dataclasses import dataclass

WIDTHS = (17, 20, 24, 28)
"""w of all implementations."""

CMR, CMM = "CMR(2w + 1, w)", "CMM(w, w)"


@dataclass(frozen=True)
class Operation:
    """A column of Table I."""

    name: str
    w: int
    slices: int
    dsp: int
    cycles: int
    ns: float


TABLE_I = (
    Operation(CMR, 17, 1, 2, 1, 2.4),
    Operation(CMR, 20, 1, 2, 1, 2.6),
    Operation(CMR, 24, 24, 1, 2, 9.0),
    Operation(CMR, 28, 35, 1, 2, 9.6),
    Operation(CMM, 17, 1, 3, 2, 7.8),
    Operation(CMM, 20, 24, 3, 2, 10.6),
    Operation(CMM, 24, 1, 4, 2, 10.6),
    Operation(CMM, 28, 39, 5, 3, 17.1),
)


@dataclass(frozen=True)
class Implementation:
    """A column of Table III."""

    bits: int
    w: int
    algorithm: str
    slices: int
    dsp: int
    bram: int
    period: float
    cycles: int
    ns: float

    @property
    def where(self) -> str:
        """Its name in lines."""
        return f"{self.bits} bits, w = {self.w}, {self.algorithm}"


TABLE_III = (
    Implementation(256, 17, "KBE", 445, 51, 1, 9.8, 98, 960.4),
    Implementation(256, 17, "HBE", 758, 35, 1, 10.3, 91, 937.3),
    Implementation(256, 20, "KBE", 1073, 45, 1, 9.6, 88, 844.8),
    Implementation(256, 20, "HBE", 784, 39, 1, 8.9, 83, 738.7),
    Implementation(256, 24, "KBE", 785, 52, 1, 9.6, 89, 854.4),
    Implementation(256, 24, "HBE", 769, 42, 1, 9.5, 81, 769.5),
    Implementation(256, 28, "KBE", 753, 76, 1, 9.7, 77, 746.9),
    Implementation(256, 28, "HBE", 843, 60, 1, 9.6, 71, 681.6),
    Implementation(384, 17, "KBE", 587, 81, 1, 7.6, 165, 1254.0),
    Implementation(384, 17, "HBE", 644, 63, 1, 10.1, 143, 1444.3),
    Implementation(384, 20, "KBE", 1215, 63, 1, 9.6, 140, 1344.0),
    Implementation(384, 20, "HBE", 869, 54, 1, 9.0, 122, 1098.0),
    Implementation(384, 24, "KBE", 1251, 76, 1, 7.6, 163, 1238.8),
    Implementation(384, 24, "HBE", 1134, 60, 1, 7.6, 132, 1003.2),
    Implementation(384, 28, "KBE", 1031, 104, 1, 9.9, 103, 1019.7),
    Implementation(384, 28, "HBE", 1145, 80, 1, 9.4, 93, 874.2),
)

FIELDS = {256: "secp256k1", 384: "P-384"}
"""Our modulus of each width; the paper names none."""

LOWER = "lower limit: delay of the logic without routing"

PAIRS = list(zip(TABLE_III[::2], TABLE_III[1::2], strict=True))
"""The columns of Table III in pairs: KBE and HBE."""


def paper_n(bits: int, w: int) -> int:
    """The paper's rule: the smallest even n with n w > log2 P, for P of ``bits`` bits that is not a power of two."""
    n = -(-bits // w)
    return n + n % 2
