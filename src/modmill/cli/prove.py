# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill prove``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from modmill.cli.check import Built
from modmill.cli.options import Json, Record
from modmill.cli.output import recorded, require_writable
from modmill.cli.progress import show


def prove(
    folder: Built,
    public_modulus: Annotated[
        bool, typer.Option("--public-modulus", help="Multipliers: timing may depend on a loaded modulus.")
    ] = False,
    products: Annotated[
        bool, typer.Option("--products", help="Multipliers: also prove every product, over the integers.")
    ] = False,
    control: Annotated[
        bool, typer.Option("--control", help="Multipliers: also prove one result for each pair, in order.")
    ] = False,
    operations: Annotated[
        bool, typer.Option("--operations", help="Engines: also prove what each operation computes, for all inputs.")
    ] = False,
    certificate: Annotated[
        bool,
        typer.Option("--certificate", help="Prove nothing; check the certificate that an earlier --products wrote."),
    ] = False,
    as_json: Json = False,
    record: Record = None,
) -> None:
    """Prove constant time of the RTL in a folder, for all operands and all pauses. Status 1 if something is open."""
    from modmill.cores.proofs.proof import prove as proved
    from modmill.cores.proofs.proof import recheck

    if certificate:
        if public_modulus or products or control or operations or record:
            raise ValueError("--certificate checks a proof that was made; it goes with no option but --json")
        show(f"checking the certificate of {folder}")
        answer = recheck(folder)
        print(json.dumps(vars(answer), indent=2) if as_json else "\n".join(answer.lines))
        if answer.refused:
            raise typer.Exit(1)
        return
    require_writable(record)
    show(f"proving constant time of {folder}")

    def progress(what: str, done: int, total: int) -> None:
        show(f"proving the product {what} ({done} of {total})")

    proof = proved(
        folder, public_modulus=public_modulus, products=products, control=control, operations=operations,
        rows=record, progress=progress,
    )  # fmt: skip
    print(json.dumps(proof.describe(), indent=2) if as_json else "\n".join(proof.lines))
    recorded(record)
    if proof.state != "PROVED":
        raise typer.Exit(1)
