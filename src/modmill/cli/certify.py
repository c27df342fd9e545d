# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The commands ``modmill acvp``, ``rsa keygen`` and ``ecc keygen``: what certifiers ask of an engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from modmill.cli import options
from modmill.cli.ecc import find_ecc, read_curve
from modmill.cli.ecc import report as report_points
from modmill.cli.output import passphrase_of, write, write_private
from modmill.cli.progress import note, show
from modmill.cli.rsa import Bits, find_engine
from modmill.cli.rsa import report as report_powers

Rtl = Annotated[
    bool, typer.Option("--rtl", help="Simulate the Verilog in the folder; default: interpret its programs bit-exactly.")
]
Passphrase = Annotated[
    Path | None, typer.Option("--passphrase-file", help="File with a passphrase that encrypts the key.")
]


def acvp(
    request: Annotated[Path, typer.Argument(metavar="REQUEST.json", help="A file of vector sets of NIST's ACVP.")],
    engine: Annotated[
        list[Path], typer.Option("--engine", metavar="DIR", help="The folder of a built engine; repeatable.")
    ],
    rtl: Rtl = False,
    key: Annotated[
        list[Path], typer.Option("--key", metavar="KEY.pem", help="An RSA key for sigGen; default: new ones.")
    ] = [],  # noqa: B006 - typer reads the default, nothing changes it
    partial: Annotated[
        bool, typer.Option("--partial", help="Leave out groups that no engine can answer, each with a note.")
    ] = False,
    output: options.File = None,
) -> None:
    """Answer a request file of ACVP: RSA, ECDSA, EdDSA and KAS-ECC, with the engines in folders."""
    from modmill.engines.rsa.padding import read_key, require_private
    from modmill.studies.acvp.engines import Engines
    from modmill.studies.acvp.respond import read, respond

    document = read(request)
    show("reading the engines")
    engines = Engines.read(engine, rtl=rtl, keys=[require_private(read_key(path.read_bytes())) for path in key])
    show("answering")
    response = respond(document, engines, partial=partial, note=note)
    write(f"{json.dumps(response, indent=2)}\n".encode(), output)
    for name, cycles in engines.work.items():
        note(f"{name}: {cycles:,} cycles simulated")


def rsa_keygen(
    engine: Annotated[
        str, typer.Option(help="model: on contracts; exact: bit-exact; rtl: simulated hardware; a folder: its engine.")
    ] = "exact",
    bits: Bits = 2048,
    exponent: Annotated[
        int, typer.Option(metavar="NUMBER", help="The public exponent, odd, above 65536 and below 2^256.")
    ] = 65537,
    rtl: Rtl = False,
    passphrase: Passphrase = None,
    output: options.File = None,
) -> None:
    """Make an RSA key pair by FIPS 186-5 with probable primes, which the engine tests, and test the pair."""
    from modmill.engines.rsa.keygen import generate
    from modmill.engines.rsa.padding import write_key
    from modmill.engines.rsa.rsa import Rsa

    machine = find_engine(engine, "", [], modelled=not rtl)
    show(f"searching for primes of {bits // 2} bits")
    key = generate(Rsa(machine), bits, exponent)
    write_private(write_key(key, passphrase_of(passphrase)), output)
    report_powers(machine)


def ecc_keygen(
    curve: options.Curve,
    engine: Annotated[
        str, typer.Option(metavar="DIR|reference", help="A built core, or the reference in Python, for tests.")
    ] = "reference",
    rtl: Rtl = False,
    passphrase: Passphrase = None,
    output: options.File = None,
) -> None:
    """Make a key pair on a curve and test it: by a signature, or by an exchange of X25519 or X448."""
    from modmill.engines.ecc.keygen import generate
    from modmill.engines.ecc.keys import write_key

    ecc = find_ecc(engine, read_curve(curve), modelled=not rtl)
    (key,) = generate(ecc)
    write_private(write_key(key, passphrase_of(passphrase)), output)
    report_points(ecc)
