# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A paper's tables and figures: printed values beside predicted and measured ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from modmill.contract import UnsupportedError
from modmill.numbers.shown import shortened
from modmill.report.reproduction import Section
from modmill.studies.papers import hbe, multistep, rsa64k, sor
from modmill.studies.papers.bench import Bench


@dataclass(frozen=True)
class Paper:
    """A paper: its name in PAPERS, title, authors, venue, the designs that follow it, and what makes its sections."""

    key: str
    title: str
    authors: str
    venue: str
    designs: tuple[str, ...]
    sections: Callable[[Bench], Sequence[Section]]


_PAPERS = (
    Paper(
        "sor", "Improved Sum of Residues Modular Multiplication Algorithm", "M. A. Mehrabi",
        "Cryptography 3(2):14, 2019",
        ("sor-1m-n", "sor-1m-p", "sor-2m", "sor-nm", "sor-ring", "mm-pa-n", "mm-pa-p", "mm-spa"), sor.sections,
    ),
    Paper(
        "hbe", "Hierarchical Approach in RNS Base Extension for Asymmetric Cryptography",
        "L. Djath, K. Bigou, A. Tisserand", "ARITH 2019",
        ("kbe", "hbe", "kbe-extension", "hbe-extension", "kbe-reduction", "hbe-reduction", "channel-multiply",
         "channel-reduce"), hbe.sections,
    ),
    Paper(
        "rsa64k", "RSA Encryption and Decryption using the Redundant Number System on the FPGA",
        "K. Nakano, K. Kawakami, K. Shigemoto", "IPDPS Workshops 2009",
        ("radix64k-mul", "radix64k-ram", "radix64k-table"), rsa64k.sections,
    ),
    Paper(
        "multistep", "A high speed Montgomery processor of 256-bit on FPGA", "X. Zhang, X. Dong",
        "(venue not printed), 2016",
        ("multistep", "tenca-koc", "mcivor", "iddmm", "orup", "wide"), multistep.sections,
    ),
)  # fmt: skip
PAPERS = {paper.key: paper for paper in _PAPERS}


def require_papers(names: Iterable[str]) -> None:
    """Raise UnsupportedError, with all names, for a name that is not in PAPERS."""
    for name in names:
        if name not in PAPERS:
            raise UnsupportedError(f"no paper is called {shortened(name)}; there are {', '.join(PAPERS)}")


def reproduce(
    paper: str,
    *,
    measure: bool = False,
    record: Path | None = None,
    progress: Callable[[str], None] | None = None,
    recorded: bool = False,
    left_out: Callable[[str], None] | None = None,
) -> Sequence[Section]:
    """The sections of one paper, with existing rows; ``measure`` first measures missing rows (minutes).

    ``record``: a results file to which the used rows are added. ``recorded``: find cores by the rows' descriptions,
    without emitting them (see studies.papers.bench); otherwise ``left_out`` is called with each core that has only rows
    of other RTL. Raises UnsupportedError for an unknown paper.
    """
    require_papers([paper])
    bench = Bench(measure, record, progress, recorded)
    found = PAPERS[paper].sections(bench)
    if left_out:
        for name in bench.stale:
            left_out(name)
    return found
