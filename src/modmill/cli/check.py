# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill check``, for every folder that a build wrote; also as ``rsa check`` and ``ecc check``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modmill.cli.options import Json
from modmill.cli.output import verdict
from modmill.cli.progress import show

if TYPE_CHECKING:
    from modmill.cores.multiplier.verify import Report
    from modmill.cores.pair_check import PairReport

Built = Annotated[Path, typer.Argument(metavar="DIR", help="A folder that build, rsa build or ecc build wrote.")]


def check(
    folder: Built,
    vectors: Annotated[
        int | None,
        typer.Option(
            min=0, max=10_000_000,
            help="Multipliers: number of random products; default 2000, fewer if the core is slow.",
        ),
    ] = None,
    four_state: Annotated[
        bool,
        typer.Option(
            "--four-state",
            help="Multipliers: also simulate in four states with Icarus; no x may reach an output.",
        ),
    ] = False,
    full: Annotated[
        bool | None,
        typer.Option("--full/--short", help="RSA engines: one message with exponents of full length. Default: --full."),
    ] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Verify a built core or engine: recompute its files, simulate its RTL. Status 1 if it fails."""
    from modmill.cores.folder import kind_of

    kind = kind_of(folder)
    for option, given, takes in (
        ("--vectors is", vectors is not None, "a multiplier"), ("--four-state is", four_state, "a multiplier"),
        ("--full and --short are", full is not None, "an RSA engine"),
    ):  # fmt: skip
        if given and takes != kind:
            raise ValueError(f"{option} only for {takes}; {folder} holds {kind}")
    show(f"checking {folder}")
    verdict(_report(kind, folder, vectors, four_state, full is not False), as_json=as_json)


def _report(kind: str, folder: Path, vectors: int | None, four_state: bool, full: bool) -> Report | PairReport:
    if kind == "a multiplier":
        from modmill.cores.multiplier.check import check as check_multiplier

        return check_multiplier(folder, vectors, four_state=four_state)
    if kind == "an RSA engine":
        from modmill.cores.rsa.check import check_engine

        return check_engine(folder, full=full)
    from modmill.cores.ecc.check import check_ecc

    return check_ecc(folder)
